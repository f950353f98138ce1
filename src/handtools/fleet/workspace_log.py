"""The log of a workspace in object storage: journal and changed files in segments, each written exactly once.

ADR 240, 242.

A segment is put under its number on the condition that there is none: of two hosts that both think they have a
workspace, one finds the number taken and lets go. A workspace is put together again from its template, the newest
checkpoint and the segments from there on.
"""

import contextlib
import importlib
import io
import json
import os
import re
import secrets
import stat
import tarfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
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
_GETS_AT_ONCE = 8
_HEAD, _REMOVED = "head", "removed"
_COLLECTIONS = "collections"
"""The folder of the days on which garbage was collected."""
_SEGMENT_NAME = re.compile(r"[0-9]{8}")
_CHECKPOINT_SUFFIX, _BASE_SUFFIX = ".checkpoint", ".base"
REMOVED_LOG_SECONDS = 86400.0
"""How long the log of a removed workspace is kept at least."""
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
    mtime: int = 0
    """In nanoseconds, of a file: large ones are known by it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A step of a log; a checkpoint is one that stands for all before it."""

    database: bytes | None
    """The whole journal where it is new or its own log has begun anew."""
    log: bytes
    """What the journal's write-ahead log has gained."""
    paths: tuple[PathState, ...]
    writer: str
    """The host's incarnation."""
    kept: tuple[PathState, ...] = ()
    """Files beside the journal: long outputs, and what was moved aside for undo."""
    is_fence: bool = False
    """Whether a host has only taken the workspace over with it; such a segment is never deleted."""

    @classmethod
    def of(
        cls, copy: JournalCopy, paths: Sequence[PathState], kept: Sequence[PathState], writer: str
    ) -> "Segment":
        """A segment of what a journal has gained and what changed with it."""
        return cls(copy.database, copy.log, tuple(paths), writer, tuple(kept))

    @classmethod
    def fence(cls, writer: str) -> "Segment":
        """A segment with which a host takes a workspace over: who had it before finds its next number taken."""
        return cls(None, b"", (), writer, is_fence=True)

    def pack(self) -> bytes:
        """The bytes that are stored."""
        states = (*self.paths, *self.kept)
        blobs = [self.database or b"", self.log, *(state.data for state in states)]
        head = {
            "writer": self.writer,
            "whole": self.database is not None,
            "fence": self.is_fence,
            "paths": [[state.path, state.kind, state.mode, state.mtime] for state in states],
            "kept": len(self.kept),
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
            PathState(path, kind, mode, data, mtime)
            for (path, kind, mode, mtime), data in zip(head["paths"], blobs[2:], strict=True)
        ]
        first_kept = len(states) - head["kept"]
        return cls(
            blobs[0] if head["whole"] else None,
            blobs[1],
            tuple(states[:first_kept]),
            head["writer"],
            tuple(states[first_kept:]),
            head["fence"],
        )


@dataclass(frozen=True, slots=True)
class LogObjects:
    """What is stored of a log, by number."""

    segments: frozenset[int]
    checkpoints: frozenset[int]
    is_ended: bool

    @property
    def newest_checkpoint(self) -> int:
        """How many segments the newest checkpoint stands for; 0 without one."""
        return max(self.checkpoints, default=0)


class LogStore:
    """The logs and templates of a fleet below one address of fsspec, such as `s3://bucket/fleet`. Blocking."""

    def __init__(self, url: str, **options: Any) -> None:
        try:
            import fsspec  # pyright: ignore[reportMissingImports]
        except ImportError as missing:
            raise HostError("Logs need fsspec: pip install 'handtools-slim[fleet]'.") from missing
        if url.startswith("s3:"):
            # Else s3fs asks for the size of every object before it reads it, which is a second request for each.
            options.setdefault("max_concurrency", 1)
        self._files, self._top = fsspec.core.url_to_fs(url, use_listings_cache=False, **options)
        self.stored_bytes = 0
        """How many bytes of segments were stored through this object."""
        self._is_local = "file" in (
            self._files.protocol if isinstance(self._files.protocol, tuple) else (self._files.protocol,)
        )
        self._errors: tuple[type[Exception], ...] = (OSError, TimeoutError, *_client_errors())

    def begin(self, name: str, head: LogHead) -> bool:
        """Begin the log of a workspace; False if it may have been begun before. Another log there is an error."""
        wanted = json.dumps([head.template, head.tenant, head.parent, head.segment]).encode()
        put = self._put_new(self._key(name, _HEAD), wanted)
        if put == "other":
            raise SegmentTaken(f"There is a log of a workspace {name} already.")
        return put == "new"

    def end(self, name: str) -> None:
        """Note that a workspace was removed; its log stays for a while, for forks that begin with it."""
        self._put_new(self._key(name, _REMOVED), b"")

    def head(self, name: str) -> LogHead | None:
        """What a workspace began with; None without a log of it."""
        found = self._get(self._key(name, _HEAD))
        return None if found is None else LogHead(*json.loads(found))

    def placed_on(self, name: str) -> str:
        """The host that a workspace was handed over to last; empty where its name says on which it is."""
        return self._placement(name)[1]

    def place(self, name: str, host: str) -> None:
        """Note that a host has a workspace from now on; raises `SegmentTaken` if another was noted meanwhile."""
        number, known = self._placement(name)
        place = self._key(name, f"place-{number:08d}")
        if known != host and self._put_new(place, host.encode()) == "other":
            raise SegmentTaken(f"Workspace {name} was handed over to another host meanwhile.")

    def _placement(self, name: str) -> tuple[int, str]:
        """How often a workspace was handed over, and to whom last."""
        number, host = 0, b""
        while (found := self._get(self._key(name, f"place-{number:08d}"))) is not None:
            number, host = number + 1, found
        return number, host.decode()

    def objects(self, name: str) -> LogObjects:
        """List what is stored of a log."""
        names = set(self._names(f"workspaces/{name}"))
        return LogObjects(
            frozenset(int(each) for each in names if _SEGMENT_NAME.fullmatch(each)),
            frozenset(
                int(each.removesuffix(_CHECKPOINT_SUFFIX))
                for each in names
                if each.endswith(_CHECKPOINT_SUFFIX)
            ),
            _REMOVED in names,
        )

    def append(self, name: str, number: int, packed: bytes) -> None:
        """Store a segment under its number; raises `SegmentTaken` if another one is there."""
        if self._put_new(self._key(name, f"{number:08d}"), packed) == "other":
            raise SegmentTaken(f"Segment {number} of workspace {name} was written by another host.")
        self.stored_bytes += len(packed)

    def segment(self, name: str, number: int) -> bytes | None:
        """A stored segment; None where there is none."""
        return self._get(self._key(name, f"{number:08d}"))

    def segments(self, name: str, numbers: Iterable[int]) -> list[bytes | None]:
        """Stored segments, several at once."""
        with ThreadPoolExecutor(_GETS_AT_ONCE) as threads:
            return list(threads.map(lambda number: self.segment(name, number), numbers))

    def put_checkpoint(self, name: str, number: int, packed: bytes) -> None:
        """Store what stands for so many segments; one that is there already says the same."""
        self._put_new(self._key(name, f"{number:08d}{_CHECKPOINT_SUFFIX}"), packed)

    def checkpoint(self, name: str, number: int) -> bytes | None:
        """A stored checkpoint; None where there is none."""
        return self._get(self._key(name, f"{number:08d}{_CHECKPOINT_SUFFIX}"))

    def put_base(self, name: str, number: int, packed: bytes) -> None:
        """Store what forks of a workspace begin with that are made after so many segments."""
        self._put_new(self._key(name, f"{number:08d}{_BASE_SUFFIX}"), packed)

    def base(self, name: str, number: int) -> bytes | None:
        """What forks begin with that were made after so many segments."""
        return self._get(self._key(name, f"{number:08d}{_BASE_SUFFIX}"))

    def delete_segments(self, name: str, numbers: Iterable[int], checkpoint: int) -> None:
        """Delete segments that a newer checkpoint stands for, and an older checkpoint, if there is one."""
        names = [f"{number:08d}" for number in numbers]
        if checkpoint:
            names.append(f"{checkpoint:08d}{_CHECKPOINT_SUFFIX}")
        self._delete(self._key(name, each) for each in names)

    def collect_daily_garbage(self) -> int | None:
        """Delete logs that nobody needs any more, unless somebody has done so today: then None.

        Every host of a fleet asks for it, and one of them does it.
        """
        today = time.strftime("%Y-%m-%d", time.gmtime())
        if self._put_new(f"{_COLLECTIONS}/{today}", secrets.token_bytes(8)) == "other":
            return None
        earlier = [each for each in self._names(_COLLECTIONS) if each < today]
        self._delete(f"{_COLLECTIONS}/{each}" for each in earlier)
        return self.collect_garbage()

    def collect_garbage(self, *, min_age: float = REMOVED_LOG_SECONDS) -> int:
        """Delete logs of workspaces that were removed some seconds ago and that no fork needs; returns how many.

        It lists every log, and reads the head of each that has not ended: for once a day, and not for each call.
        """
        names = self._names("workspaces")
        with ThreadPoolExecutor(_GETS_AT_ONCE) as threads:
            objects = dict(zip(names, threads.map(self.objects, names), strict=True))
            ended = {name for name, found in objects.items() if found.is_ended}
            heads = threads.map(self.head, [name for name in names if name not in ended])
            needed = {head.parent for head in heads if head is not None}
        gone = 0
        for name in ended - needed:
            if time.time() - self._modified(self._key(name, _REMOVED)) >= min_age:
                # The head last: without it there is no log, and with it what is left is found again.
                inner = [
                    each for each in self._names(f"workspaces/{name}") if each not in {_HEAD, _REMOVED}
                ]
                for some in (inner, [_HEAD], [_REMOVED]):
                    self._delete(self._key(name, each) for each in some)
                gone += 1
        return gone

    def put_template(self, template: Template) -> None:
        """Store a template for hosts that do not have it."""
        if self._retried(lambda: self._files.exists(self._path(f"templates/{template.digest}"))):
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

    def _put_new(self, key: str, data: bytes) -> Literal["new", "same", "other"]:
        """Put an object where none is; says what is there now."""

        def put() -> Literal["new", "same", "other"]:
            try:
                self._create(self._path(key), data)
            except self._errors:
                # Stores say in different ways that something is there; and an answer that was lost leaves its
                # object behind, which is ours then.
                found = self._get(key)
                if found is None:
                    raise
                return "same" if found == data else "other"
            return "new"

        return self._retried(put)

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

        return self._retried(get)

    def _names(self, folder: str) -> list[str]:
        def names() -> list[str]:
            try:
                found: list[str] = self._files.ls(self._path(folder), detail=False)
            except FileNotFoundError:
                return []
            return [each.rstrip("/").rpartition("/")[2] for each in found]

        return self._retried(names)

    def _modified(self, key: str) -> float:
        return float(self._retried(lambda: self._files.modified(self._path(key))).timestamp())

    def _delete(self, keys: Iterable[str]) -> None:
        paths = [self._path(key) for key in keys]

        def delete() -> None:
            if self._is_local:
                for path in paths:
                    Path(path).unlink(missing_ok=True)
            elif paths:
                self._files.rm(paths)

        self._retried(delete)

    def _key(self, name: str, key: str) -> str:
        return f"workspaces/{name}/{key}"

    def _path(self, key: str) -> str:
        return f"{self._top}/{key}"

    def _retried(self, work: Callable[[], T]) -> T:
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(PUT_ATTEMPTS):
            try:
                return work()
            except self._errors as failure:
                if attempt == PUT_ATTEMPTS - 1:
                    raise StorageFault(
                        f"The object store can't be used: {failure or type(failure).__name__}.",
                        hint="Send the same call again later: it is not run twice.",
                    ) from failure
            time.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable")


def _client_errors() -> list[type[Exception]]:
    """What clients of object stores raise beside `OSError` when a server can't be reached."""
    found: list[type[Exception]] = []
    for module, name in (("botocore.exceptions", "BotoCoreError"), ("aiohttp", "ClientError")):
        with contextlib.suppress(ImportError):
            found.append(getattr(importlib.import_module(module), name))
    return found


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
                        found += _states(folder, name, path, facts)
                        continue
                    found.append(PathState(path, "tree", stat.S_IMODE(facts.st_mode)))
                    with folder.child(name) as inside:
                        for each in walk_tree(inside):
                            found += _states(each.folder, each.name, f"{path}/{each.path}", each.facts)
            except (FileNotFoundError, NotADirectoryError):
                found.append(PathState(path, "gone"))
    return found


def _states(folder: FolderHandle, name: str, path: str, facts: os.stat_result) -> Iterator[PathState]:
    """What is at a name; nothing for what is neither file, link nor folder, which no log can hold."""
    mode = stat.S_IMODE(facts.st_mode)
    if stat.S_ISDIR(facts.st_mode):
        yield PathState(path, "folder", mode)
    elif stat.S_ISLNK(facts.st_mode):
        yield PathState(path, "link", 0, folder.link_target(name))
    elif stat.S_ISREG(facts.st_mode):
        with open(folder.open_file(name), "rb") as file:
            yield PathState(path, "file", mode, file.read(), facts.st_mtime_ns)


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
            file.flush()
            os.fchmod(file.fileno(), state.mode)
            os.utime(file.fileno(), ns=(state.mtime, state.mtime))
    elif state.kind in {"folder", "tree"} and known is None:
        folder.create_folder(name)
