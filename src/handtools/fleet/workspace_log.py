"""The log of a workspace in object storage: journal and changed files in segments, each written exactly once.

ADR 240.

A segment is put under its number on the condition that there is none: of two hosts that both think they have a
workspace, one finds the number taken and lets go. A workspace is put together again from its template and the log.
"""

import contextlib
import io
import json
import os
import secrets
import stat
import tarfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeVar

import zstandard

from handtools.core.errors import HostError, NotFound, StorageFault
from handtools.fleet.templates import Template, TemplateStore
from handtools.host.files.folder_handle import FolderHandle, open_inner_folder, walk_tree
from handtools.host.files.tree_copy_and_removal import remove_tree
from handtools.runtime.journal.database import JournalCopy

PUT_ATTEMPTS = 5
FIRST_PAUSE_SECONDS = 0.1
_COMPRESSION_LEVEL = 3
T = TypeVar("T")


class SegmentTaken(HostError):
    """Another host has written the segment: the workspace is its own now."""


@dataclass(frozen=True, slots=True)
class LogHead:
    """What a workspace began with."""

    template: str
    tenant: str = ""
    parent: str = ""
    segment: int = 0
    """How many segments of the parent's log a fork begins with."""


class PathState(NamedTuple):
    """What is at a path."""

    path: str
    kind: Literal["file", "link", "folder", "tree", "gone"]
    """A tree is a folder that replaces what was there."""
    mode: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Segment:
    """A step of a log."""

    database: bytes | None
    """The whole journal where it is new or its own log has begun anew."""
    log: bytes
    """What the journal's write-ahead log has gained."""
    paths: tuple[PathState, ...]
    writer: str
    """The host's incarnation."""

    @classmethod
    def of(cls, copy: JournalCopy, paths: Sequence[PathState], writer: str) -> "Segment":
        """A segment of what a journal has gained and what changed with it."""
        return cls(copy.database, copy.log, tuple(paths), writer)

    def pack(self) -> bytes:
        """The bytes that are stored."""
        blobs = [self.database or b"", self.log, *(state.data for state in self.paths)]
        head = {
            "writer": self.writer,
            "whole": self.database is not None,
            "paths": [[state.path, state.kind, state.mode] for state in self.paths],
            "sizes": [len(blob) for blob in blobs],
        }
        line = json.dumps(head, separators=(",", ":")).encode() + b"\n"
        return zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL).compress(line + b"".join(blobs))

    @classmethod
    def unpack(cls, packed: bytes) -> "Segment":
        """Read what `pack` wrote."""
        line, _, rest = zstandard.ZstdDecompressor().decompressobj().decompress(packed).partition(b"\n")
        head = json.loads(line)
        blobs, at = [], 0
        for size in head["sizes"]:
            blobs.append(rest[at : at + size])
            at += size
        states = [
            PathState(path, kind, mode, data)
            for (path, kind, mode), data in zip(head["paths"], blobs[2:], strict=True)
        ]
        return cls(blobs[0] if head["whole"] else None, blobs[1], tuple(states), head["writer"])


class LogStore:
    """The logs and templates of a fleet below one address of fsspec, such as `s3://bucket/fleet`. Blocking."""

    def __init__(self, url: str, **options: Any) -> None:
        try:
            import fsspec  # pyright: ignore[reportMissingImports]
        except ImportError as missing:
            raise HostError("Logs need fsspec: pip install 'handtools-slim[fleet]'.") from missing
        self._files, self._top = fsspec.core.url_to_fs(url, use_listings_cache=False, **options)
        self.stored_bytes = 0
        """How many bytes of segments were stored through this object."""
        self._is_local = "file" in (
            self._files.protocol if isinstance(self._files.protocol, tuple) else (self._files.protocol,)
        )

    def begin(self, name: str, head: LogHead) -> None:
        """Begin the log of a workspace; the same again is no error, another one is."""
        wanted = json.dumps([head.template, head.tenant, head.parent, head.segment]).encode()
        if not self._put_new(f"workspaces/{name}/head", wanted):
            raise SegmentTaken(f"There is a log of a workspace {name} already.")

    def end(self, name: str) -> None:
        """Note that a workspace was removed; its log stays, for forks that begin with it."""
        self._put_new(f"workspaces/{name}/removed", b"")

    def is_ended(self, name: str) -> bool:
        """Whether a workspace was removed."""
        return self._get(f"workspaces/{name}/removed") is not None

    def head(self, name: str) -> LogHead | None:
        """What a workspace began with; None without a log of it."""
        found = self._get(f"workspaces/{name}/head")
        return None if found is None else LogHead(*json.loads(found))

    def placed_on(self, name: str) -> str:
        """The host that a workspace was handed over to last; empty where its name says on which it is."""
        return self._placement(name)[1]

    def place(self, name: str, host: str) -> None:
        """Note that a host has a workspace from now on; raises `SegmentTaken` if another was noted meanwhile."""
        number, known = self._placement(name)
        if known != host and not self._put_new(f"workspaces/{name}/place-{number:08d}", host.encode()):
            raise SegmentTaken(f"Workspace {name} was handed over to another host meanwhile.")

    def _placement(self, name: str) -> tuple[int, str]:
        """How often a workspace was handed over, and to whom last."""
        number, host = 0, b""
        while (found := self._get(f"workspaces/{name}/place-{number:08d}")) is not None:
            number, host = number + 1, found
        return number, host.decode()

    def append(self, name: str, number: int, packed: bytes) -> None:
        """Store a segment under its number; raises `SegmentTaken` if another one is there."""
        if not self._put_new(f"workspaces/{name}/{number:08d}", packed):
            raise SegmentTaken(f"Segment {number} of workspace {name} was written by another host.")
        self.stored_bytes += len(packed)

    def segment(self, name: str, number: int) -> bytes | None:
        """A stored segment; None where the log ends before it."""
        return self._get(f"workspaces/{name}/{number:08d}")

    def segments(self, name: str, most: int | None = None) -> Iterator[Segment]:
        """The segments of a log in order, from the first on."""
        number = 0
        while most is None or number < most:
            packed = self.segment(name, number)
            if packed is None:
                return
            yield Segment.unpack(packed)
            number += 1

    def put_template(self, template: Template) -> None:
        """Store a template for hosts that do not have it."""
        if self._files.exists(self._path(f"templates/{template.digest}")):
            return
        packed = io.BytesIO()
        with tarfile.open(fileobj=packed, mode="w") as archive:
            archive.add(template.tree, ".")
        data = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL).compress(packed.getvalue())
        self._put_new(f"templates/{template.digest}", data)

    def fetch_template(self, digest: str, into: TemplateStore) -> Template:
        """Bring a template here; raises `NotFound`."""
        packed = self._get(f"templates/{digest}")
        if packed is None:
            raise NotFound(f"No template {digest[:12]} is stored.", hint="Add it to the fleet again.")
        data = zstandard.ZstdDecompressor().decompressobj().decompress(packed)
        return into.add_stored(digest, io.BytesIO(data))

    def _put_new(self, key: str, data: bytes) -> bool:
        """Put an object where none is; whether it, or the same, is there now."""

        def put() -> bool:
            try:
                self._create(self._path(key), data)
            except OSError:
                # Stores say in different ways that something is there; and an answer that was lost leaves its
                # object behind, which is ours then.
                found = self._get(key)
                if found is None:
                    raise
                return found == data
            return True

        return _retried(put)

    def _create(self, path: str, data: bytes) -> None:
        if not self._is_local:
            self._files.pipe_file(path, data, mode="create")
            return
        # A link is there at once and whole, or not at all.
        place = Path(path)
        place.parent.mkdir(parents=True, exist_ok=True)
        partial = place.with_name(f".{secrets.token_hex(8)}")
        try:
            partial.write_bytes(data)
            os.link(partial, place)
        finally:
            partial.unlink()

    def _get(self, key: str) -> bytes | None:
        def get() -> bytes | None:
            try:
                found: bytes = self._files.cat_file(self._path(key))
            except FileNotFoundError:
                return None
            return found

        return _retried(get)

    def _path(self, key: str) -> str:
        return f"{self._top}/{key}"


def _retried(work: Callable[[], T]) -> T:
    pause = FIRST_PAUSE_SECONDS
    for attempt in range(PUT_ATTEMPTS):
        try:
            return work()
        except (OSError, TimeoutError) as failure:
            if attempt == PUT_ATTEMPTS - 1:
                raise StorageFault(
                    f"The object store can't be used: {failure or type(failure).__name__}.",
                    hint="Send the same call again later: it is not run twice.",
                ) from failure
        time.sleep(pause)
        pause *= 2
    raise AssertionError("unreachable")


def path_states(root: str, paths: dict[str, bool]) -> list[PathState]:
    """What is at some paths of a folder now; with True, also all below, as for a folder that came as a whole."""
    found: list[PathState] = []
    with FolderHandle.at(root) as top:
        for path, whole in paths.items():
            above, _, name = path.rpartition("/")
            try:
                with open_inner_folder(top, above) as folder:
                    facts = folder.find(name)
                    if facts is None:
                        found.append(PathState(path, "gone"))
                        continue
                    if not (whole and stat.S_ISDIR(facts.st_mode)):
                        found.append(_state(folder, name, path, facts))
                        continue
                    found.append(PathState(path, "tree", stat.S_IMODE(facts.st_mode)))
                    with folder.child(name) as inside:
                        found += [
                            _state(each.folder, each.name, f"{path}/{each.path}", each.facts)
                            for each in walk_tree(inside)
                        ]
            except (FileNotFoundError, NotADirectoryError):
                found.append(PathState(path, "gone"))
    return found


def _state(folder: FolderHandle, name: str, path: str, facts: os.stat_result) -> PathState:
    mode = stat.S_IMODE(facts.st_mode)
    if stat.S_ISDIR(facts.st_mode):
        return PathState(path, "folder", mode)
    if stat.S_ISLNK(facts.st_mode):
        return PathState(path, "link", 0, folder.link_target(name))
    with open(folder.open_file(name), "rb") as file:
        return PathState(path, "file", mode, file.read())


def apply_path_states(root: str, states: Sequence[PathState]) -> None:
    """Make paths of a folder what they were when the states were taken."""
    with FolderHandle.at(root) as top:
        # Only the last word about a path counts; a folder's mode comes when all is in it.
        for state in states:
            above, _, name = state.path.rpartition("/")
            if state.kind != "gone":
                os.makedirs(os.path.join(root, above), exist_ok=True)
            try:
                with open_inner_folder(top, above) as folder:
                    _apply(folder, name, state)
            except (FileNotFoundError, NotADirectoryError):
                if state.kind != "gone":
                    raise
        for state in states:
            if state.kind in {"folder", "tree"} and os.path.isdir(os.path.join(root, state.path)):
                with contextlib.suppress(OSError):
                    os.chmod(os.path.join(root, state.path), state.mode, follow_symlinks=True)


def _apply(folder: FolderHandle, name: str, state: PathState) -> None:
    known = folder.find(name)
    is_folder = known is not None and stat.S_ISDIR(known.st_mode)
    if known is not None and not (state.kind == "folder" and is_folder):
        remove_tree(folder, name)
        known = None
    if state.kind == "link":
        folder.create_link(name, state.data)
    elif state.kind == "file":
        fd = folder.create_file(name, 0o600)
        with open(fd, "wb") as file:
            file.write(state.data)
            os.fchmod(file.fileno(), state.mode)
    elif state.kind in {"folder", "tree"} and known is None:
        folder.create_folder(name)
