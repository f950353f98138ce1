"""The log of a workspace in object storage: journal and changed files in segments, each written exactly once.

ADR 240, 242.

A segment is put under its number on the condition that there is none: of two hosts that both think they have a
workspace, one finds the number taken and lets go. A workspace is put together again from its template, the newest
checkpoint and the segments from there on.

Whoever can write to the store can write a log. So what is read from it is checked here, before anything is done
with it: names, paths, kinds, modes and sizes. What is wrong is a `StorageFault`. Paths are restored through
handles of folders, so that none of them leads out of the workspace.
"""

import errno
import io
import json
import os
import re
import secrets
import stat
import struct
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from tempfile import TemporaryFile
from typing import Any, Literal, NamedTuple, Self, TypeVar, get_args

import zstandard

from handtools.core.errors import HostError, NotFound, StorageFault, TooLarge
from handtools.fleet.object_store import open_object_store
from handtools.fleet.tar_archives import MAX_ARCHIVE_BYTES, pack_folder
from handtools.fleet.templates import TEMPLATE_DIGEST, Template, TemplateStore
from handtools.fleet.workspaces import WORKSPACE_NAME
from handtools.host.files.folder_handle import (
    OPEN_FOLDER_TO_ENTER_FLAGS,
    FolderHandle,
    SubfolderCache,
    join_path,
    open_inner_folder,
    walk_tree,
)
from handtools.host.files.tree_copy_and_removal import remove_tree
from handtools.runtime.journal.database import JournalCopy

PUT_ATTEMPTS = 5
FIRST_PAUSE_SECONDS = 0.1
_COMPRESSION_LEVEL = 3
_GETS_AT_ONCE = 8
_HEAD, _REMOVED = "head", "removed"
_COLLECTIONS = "collections"
"""The folder of the days on which garbage was collected."""
_SEGMENT_NAME, _CHECKPOINT_NAME = re.compile("[0-9]{8}"), re.compile("([0-9]{8})[.]checkpoint")
_CHECKPOINT_SUFFIX, _BASE_SUFFIX = ".checkpoint", ".base"
KEPT_FOLDERS = ("outputs", "blobs", "sessions")
"""Folders beside the journal whose files are stored with it: outputs, large old versions, the shells' state."""
VAULT_FOLDER = "vault"
"""The folder beside the journal with what was moved aside for undo."""
MAX_SEGMENT_BYTES = 4 << 30
"""Most bytes of a segment, unpacked; also of what is stored of it."""
MAX_SEGMENT_HEAD_BYTES = 64 << 20
"""Most bytes of the list of paths in a segment: enough for some 500,000."""
MAX_RESTORED_BYTES = MAX_ARCHIVE_BYTES
"""Most bytes of the files that are restored from a log."""
MAX_LOG_SEGMENTS = 100_000
"""Most segments behind the newest checkpoint, and most hosts that a workspace was handed over to."""
_MAX_NOTE_BYTES = 64 << 10
"""Most bytes of an object that is neither segment nor template."""
_MAX_PATH_CHARS = 1 << 18
_ODD_NAMES = frozenset({"", ".", ".."})
_MAX_LINK_BYTES = 4095
_MAX_TIME = 1 << 62
_MAX_WINDOW_BYTES = 8 << 20
_HEAD_LENGTH = struct.Struct(">I")
_NOT_THERE_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""Errors that say that nothing is at a path: the last one, that a link is above it."""
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


PathKind = Literal["file", "link", "folder", "tree", "gone"]
_PATH_KINDS = frozenset(get_args(PathKind))


class PathState(NamedTuple):
    """What is at a path."""

    path: str
    kind: PathKind
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
        """The bytes that are stored; raises `TooLarge` for more than `unpack` takes."""
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
        line = json.dumps(head, separators=(",", ":")).encode()
        size = _HEAD_LENGTH.size + len(line) + sum(map(len, blobs))
        if len(line) > MAX_SEGMENT_HEAD_BYTES or size > MAX_SEGMENT_BYTES:
            raise TooLarge(
                f"The log of a workspace takes {MAX_SEGMENT_BYTES >> 20:,} MiB at once. What changed since it was "
                f"last stored is {size >> 20:,} MiB, with {len(states):,} paths.",
                hint="Remove what is not needed, and it is stored with the next call.",
            )
        packed = io.BytesIO()
        compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL)
        with compressor.stream_writer(packed, size=size, closefd=False) as target:
            for part in (_HEAD_LENGTH.pack(len(line)), line, *blobs):
                target.write(part)
        return packed.getvalue()

    @classmethod
    def unpack(cls, packed: bytes, *, with_data: bool = True) -> "Segment":
        """Read what `pack` wrote; without the data of files and journal, only its head is looked at.

        Raises `StorageFault` for anything else. No more is unpacked than the head says and a segment may have.
        """
        machine = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
        try:
            size = zstandard.get_frame_parameters(packed).content_size
            with machine.stream_reader(packed) as stream:
                (length,) = _HEAD_LENGTH.unpack(_read_exactly(stream, _HEAD_LENGTH.size))
                if length > MAX_SEGMENT_HEAD_BYTES:
                    raise _bad_log(f"a list of paths of {length:,} bytes")
                head = _SegmentHead.read(_read_exactly(stream, length))
                if size > MAX_SEGMENT_BYTES or size != _HEAD_LENGTH.size + length + sum(head.sizes):
                    raise _bad_log(f"a segment of {size:,} bytes whose parts are {sum(head.sizes):,} bytes")
                blobs = [_read_exactly(stream, each) for each in head.sizes] if with_data else []
        except zstandard.ZstdError as damage:
            raise _bad_log("a segment that can't be unpacked") from damage
        states = head.states
        if with_data:
            states = [
                PathState(path, kind, mode, data, mtime)
                for (path, kind, mode, _, mtime), data in zip(states, blobs[2:], strict=True)
            ]
        first_kept = len(states) - head.kept
        return cls(
            (blobs[0] if with_data else b"") if head.is_whole else None,
            blobs[1] if with_data else b"",
            tuple(states[:first_kept]),
            head.writer,
            tuple(states[first_kept:]),
            head.is_fence,
        )


@dataclass(frozen=True, slots=True)
class _SegmentHead:
    """What a segment says of itself before its data."""

    writer: str
    is_whole: bool
    is_fence: bool
    states: list[PathState]
    kept: int
    sizes: list[int]
    """Of the journal, of its log, and of what is at each path."""

    @classmethod
    def read(cls, line: bytes) -> Self:
        """Read the head of a segment; raises `StorageFault` for one that `Segment.pack` can't have written."""
        head = _table(line)
        states = [_state_of(row) for row in _listed(head.get("paths"))]
        sizes = [_whole_number(each) for each in _listed(head.get("sizes"))]
        kept = _whole_number(head.get("kept"))
        if len(sizes) != len(states) + 2 or kept > len(states):
            raise _bad_log("a segment with parts that nothing is said about")
        writer, whole, fence = (head.get(key) for key in ("writer", "whole", "fence"))
        if not (isinstance(writer, str) and isinstance(whole, bool) and isinstance(fence, bool)):
            raise _bad_log("a segment that does not say who wrote it")
        for state in states[len(states) - kept :]:
            if not _is_kept(state):
                raise _bad_log(f"a {state.kind} {state.path[:200]!r} beside a journal")
        return cls(writer, whole, fence, states, kept, sizes)


def _bad_log(what: str) -> StorageFault:
    return StorageFault(
        f"The object store has {what}, which no host writes.",
        hint="Look who can write to the store. What is in it was not used.",
    )


def _read_exactly(stream: zstandard.ZstdDecompressionReader, size: int) -> bytes:
    data = stream.read(size) if size else b""
    if len(data) != size:
        raise _bad_log("a segment that is cut off")
    return data


def _parsed(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise _bad_log("something else than JSON") from problem


def _table(text: bytes) -> dict[str, Any]:
    found = _parsed(text)
    if not isinstance(found, dict):
        raise _bad_log("a segment without a head")
    return found


def _listed(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _bad_log("a segment without a list of its parts")
    return value


def _whole_number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_SEGMENT_BYTES:
        raise _bad_log(f"{str(value)[:40]!r} in the place of a size")
    return value


def _state_of(row: Any) -> PathState:
    """A row of a segment's list of paths, checked."""
    if type(row) is not list or len(row) != 4:
        raise _bad_log("a path of which nothing is known")
    path, kind, mode, mtime = row
    # Not `isinstance`: a bool is no mode.
    is_typed = type(path) is type(kind) is str and type(mode) is type(mtime) is int
    if not (is_typed and kind in _PATH_KINDS and 0 <= mode <= 0o7777 and -_MAX_TIME < mtime < _MAX_TIME):
        raise _bad_log(f"a path of which it says {str(row[1:])[:200]}")
    path_names(path)
    return PathState(path, kind, mode, b"", mtime)


def _is_kept(state: PathState) -> bool:
    """Whether something may be stored with a journal: a file of its own, or what was moved aside for undo."""
    folder, *inner = state.path.split("/")
    if folder == VAULT_FOLDER:
        return bool(inner)
    return folder in KEPT_FOLDERS and len(inner) == 1 and state.kind in {"file", "gone"}


def path_names(path: str) -> list[str]:
    """The names in a path below a folder; raises `StorageFault` for an absolute one, and one with `..` in it."""
    names = path.split("/")
    is_plain = _ODD_NAMES.isdisjoint(names) and "\0" not in path and len(path) <= _MAX_PATH_CHARS
    if not (is_plain and (path.isascii() or _is_encodable(path))):
        raise _bad_log(f"the path {path[:200]!r}")
    return names


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


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
    """The logs and templates of a fleet at one address, such as `s3://bucket/fleet`. Blocking."""

    def __init__(self, url: str, **options: Any) -> None:
        self._objects = open_object_store(url, **options)
        self.stored_bytes = 0
        """How many bytes of segments were stored through this object."""

    def begin(self, name: str, head: LogHead) -> bool:
        """Begin the log of a workspace; False if it may have been begun before. Another log there is an error."""
        wanted = json.dumps([head.template, head.tenant, head.parent, head.segment]).encode()
        put = self._put_new(self._key(name, _HEAD), wanted)
        if put == "other":
            raise SegmentTaken(f"There is a log of a workspace {name} already.")
        return put == "new"

    def end(self, name: str) -> None:
        """Note that a workspace was removed; its log stays for a while, for forks that begin with it."""
        self._put_new(self._key(name, _REMOVED), b"removed\n")

    def head(self, name: str) -> LogHead | None:
        """What a workspace began with; None without a log of it."""
        found = self._get(self._key(name, _HEAD), _MAX_NOTE_BYTES)
        if found is None:
            return None
        match _parsed(found):
            case [str(template), str(tenant), str(parent), int(segment)] if (
                TEMPLATE_DIGEST.fullmatch(template)
                and (not parent or WORKSPACE_NAME.fullmatch(parent))
                and segment >= 0
            ):
                return LogHead(template, tenant, parent, segment)
        raise _bad_log(f"a beginning of workspace {name}")

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
        host = ""
        for number in range(MAX_LOG_SEGMENTS):
            found = self._get(self._key(name, f"place-{number:08d}"), _MAX_NOTE_BYTES)
            if found is None:
                return number, host
            host = found.decode("ascii", "replace")
            if not WORKSPACE_NAME.fullmatch(host):
                raise _bad_log(f"a host without a name that has workspace {name}")
        raise _bad_log(f"too many hosts that workspace {name} was handed over to")

    def objects(self, name: str) -> LogObjects:
        """List what is stored of a log."""
        names = set(self._names(self._key(name)))
        return LogObjects(
            frozenset(int(each) for each in names if _SEGMENT_NAME.fullmatch(each)),
            frozenset(int(found[1]) for each in names if (found := _CHECKPOINT_NAME.fullmatch(each))),
            _REMOVED in names,
        )

    def append(self, name: str, number: int, packed: bytes) -> None:
        """Store a segment under its number; raises `SegmentTaken` if another one is there."""
        if self._put_new(self._key(name, f"{number:08d}"), packed) == "other":
            raise SegmentTaken(f"Segment {number} of workspace {name} was written by another host.")
        self.stored_bytes += len(packed)

    def segment(self, name: str, number: int) -> bytes | None:
        """A stored segment; None where there is none."""
        return self._get(self._key(name, f"{number:08d}"), MAX_SEGMENT_BYTES)

    def segments(self, name: str, numbers: Iterable[int]) -> list[bytes | None]:
        """Stored segments, several at once."""
        with ThreadPoolExecutor(_GETS_AT_ONCE) as threads:
            return list(threads.map(lambda number: self.segment(name, number), numbers))

    def put_checkpoint(self, name: str, number: int, packed: bytes) -> None:
        """Store what stands for so many segments; one that is there already says the same."""
        self._put_new(self._key(name, f"{number:08d}{_CHECKPOINT_SUFFIX}"), packed)

    def checkpoint(self, name: str, number: int) -> bytes | None:
        """A stored checkpoint; None where there is none."""
        return self._get(self._key(name, f"{number:08d}{_CHECKPOINT_SUFFIX}"), MAX_SEGMENT_BYTES)

    def put_base(self, name: str, number: int, packed: bytes) -> None:
        """Store what forks of a workspace begin with that are made after so many segments."""
        self._put_new(self._key(name, f"{number:08d}{_BASE_SUFFIX}"), packed)

    def base(self, name: str, number: int) -> bytes | None:
        """What forks begin with that were made after so many segments."""
        return self._get(self._key(name, f"{number:08d}{_BASE_SUFFIX}"), MAX_SEGMENT_BYTES)

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
        names = [each for each in self._names("workspaces") if WORKSPACE_NAME.fullmatch(each)]
        with ThreadPoolExecutor(_GETS_AT_ONCE) as threads:
            objects = dict(zip(names, threads.map(self.objects, names), strict=True))
            ended = {name for name, found in objects.items() if found.is_ended}
            heads = threads.map(self.head, [name for name in names if name not in ended])
            needed = {head.parent for head in heads if head is not None}
        gone = 0
        for name in ended - needed:
            if time.time() - self._modified(self._key(name, _REMOVED)) >= min_age:
                # The head last: without it there is no log, and with it what is left is found again.
                inner = [each for each in self._names(self._key(name)) if each not in {_HEAD, _REMOVED}]
                for some in (inner, [_HEAD], [_REMOVED]):
                    self._delete(self._key(name, each) for each in some)
                gone += 1
        return gone

    def put_template(self, template: Template) -> None:
        """Store a template for hosts that do not have it."""
        if self._retried(lambda: self._objects.has(f"templates/{template.digest}")):
            return
        compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL)
        with TemporaryFile() as packed:
            with compressor.stream_writer(packed, closefd=False) as target:
                pack_folder(template.tree, target)
            packed.seek(0)
            self._put_new(f"templates/{template.digest}", packed.read())

    def fetch_template(self, digest: str, into: TemplateStore) -> Template:
        """Bring a template here; raises `NotFound`, and `StorageFault` if what is stored has another digest."""
        is_digest = TEMPLATE_DIGEST.fullmatch(digest)
        packed = self._get(f"templates/{digest}", MAX_ARCHIVE_BYTES) if is_digest else None
        if packed is None:
            raise NotFound(f"No template {digest[:12]} is stored.", hint="Add it to the fleet again.")
        return into.add_stored(digest, io.BytesIO(packed))

    def _put_new(self, key: str, data: bytes) -> Literal["new", "same", "other"]:
        """Put an object where none is; says what is there now."""

        def put() -> Literal["new", "same", "other"]:
            try:
                self._create(key, data)
            except self._objects.errors:
                # Stores say in different ways that something is there; and an answer that was lost leaves its
                # object behind, which is ours then.
                found = self._get(key, len(data), is_compared=True)
                if found is None:
                    raise
                return "same" if found == data else "other"
            return "new"

        return self._retried(put)

    def _create(self, key: str, data: bytes) -> None:
        self._objects.create(key, data)

    def _get(self, key: str, most: int, *, is_compared: bool = False) -> bytes | None:
        """An object; None where there is none. More than `most` bytes are an error, unless they are compared."""
        found = self._retried(lambda: self._objects.get(key, most + 1))
        if found is not None and len(found) > most and not is_compared:
            raise _bad_log(f"{key}, of more than {most:,} bytes")
        return found

    def _names(self, folder: str) -> list[str]:
        return self._retried(lambda: self._objects.names(folder))

    def _modified(self, key: str) -> float:
        return self._retried(lambda: self._objects.modified(key))

    def _delete(self, keys: Iterable[str]) -> None:
        listed = list(keys)
        self._retried(lambda: self._objects.delete(listed))

    def _key(self, name: str, key: str = "") -> str:
        """Where something of a workspace's log is stored, or all of it."""
        if not WORKSPACE_NAME.fullmatch(name):
            raise NotFound(f"{name[:80]!r} is not the name of a workspace.", hint="Look at the list.")
        return f"workspaces/{name}/{key}".rstrip("/")

    def _retried(self, work: Callable[[], T]) -> T:
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(PUT_ATTEMPTS):
            try:
                return work()
            except self._objects.errors as failure:
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
            path_names(path)
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
            except OSError as error:
                if error.errno not in _NOT_THERE_ERRNOS:
                    raise
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
    """Make paths of a folder what they were when the states were taken; of a path, its last state counts."""
    with PathRestore(root, [states]) as restore:
        restore.write(0, states)


@dataclass(slots=True)
class _PathNode:
    """What becomes of a path: a folder with its entries, or what a state says."""

    is_folder: bool = True
    replaces: bool = False
    """Whether it is a folder that has nothing of what was there before."""
    is_needed: bool = False
    """Whether the folder has to be there: not for what only says that something below is gone."""
    mode: int | None = None
    """Of a folder; None if nobody said."""
    source: tuple[int, int] | None = None
    """Of a file or a link: which of the states it is, in which list. Without one, nothing is there."""
    children: "dict[str, _PathNode]" = field(default_factory=dict)


def _merged_states(lists: Sequence[Sequence[PathState]]) -> _PathNode:
    """What many states make of a folder, one after another."""
    top = _PathNode()
    for step, states in enumerate(lists):
        for number, state in enumerate(states):
            _add_state(top, state, (step, number))
    return top


def _add_state(top: _PathNode, state: PathState, source: tuple[int, int]) -> None:
    *above, name = path_names(state.path)
    folder = top
    for each in above:
        inner = folder.children.get(each)
        if inner is None:
            inner = folder.children[each] = _PathNode()
        elif not inner.is_folder:
            if state.kind == "gone":
                return
            inner = folder.children[each] = _PathNode(replaces=True)
        inner.is_needed = inner.is_needed or state.kind != "gone"
        folder = inner
    known = folder.children.get(name)
    if state.kind == "folder" and (known is None or known.is_folder):
        known = known or folder.children.setdefault(name, _PathNode())
        known.mode, known.is_needed = state.mode, True
    elif state.kind in {"folder", "tree"}:
        folder.children[name] = _PathNode(replaces=True, is_needed=True, mode=state.mode)
    else:
        folder.children[name] = _PathNode(is_folder=False, source=None if state.kind == "gone" else source)


class PathRestore:
    """Makes paths of a folder what lists of states say, one list after another: of a path, the last state counts.

    The states are known from the start, and folders are made then; the data of a list is needed for a moment, so
    that lists can be longer than memory. No link is followed, and nothing outside of the folder is touched,
    whatever the states say. Files get no set-user-id or set-group-id bit.
    """

    def __init__(self, root: str, lists: Sequence[Sequence[PathState]]) -> None:
        tree = _merged_states(lists)
        self._left = MAX_RESTORED_BYTES
        self._modes: list[tuple[str, int]] = []
        self._wanted: dict[int, list[int]] = {}
        with ExitStack() as stack:
            self._top = stack.enter_context(FolderHandle.at(root))
            self._subtree = stack.enter_context(SubfolderCache(self._top, flags=OPEN_FOLDER_TO_ENTER_FLAGS))
            self._make_room(tree)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        with self._stack:
            if kind is None:
                # The innermost first: a folder that may not be entered is made so when nothing more comes in.
                for path, mode in reversed(self._modes):
                    above, _, name = path.rpartition("/")
                    self._subtree.folder(above).set_mode(name, mode)

    def write(self, step: int, states: Sequence[PathState]) -> None:
        """Write the files and links of one of the lists, which has its data now."""
        for number in self._wanted.pop(step, ()):
            state = states[number]
            above, _, name = state.path.rpartition("/")
            self._left -= len(state.data)
            if self._left < 0:
                raise TooLarge(
                    f"The log has more than {MAX_RESTORED_BYTES >> 30} GiB of files.",
                    hint="Look who can write to the store.",
                )
            self._write(self._subtree.folder(above), name, state)

    def _write(self, folder: FolderHandle, name: str, state: PathState) -> None:
        if state.kind == "link":
            if not state.data or b"\0" in state.data or len(state.data) > _MAX_LINK_BYTES:
                raise _bad_log(f"a link {state.path[:200]!r} to {state.data[:200]!r}")
            folder.create_link(name, state.data)
            return
        with open(folder.create_file(name, 0o600), "wb") as file:
            file.write(state.data)
            file.flush()
            os.fchmod(file.fileno(), state.mode & 0o777)
            os.utime(file.fileno(), ns=(state.mtime, state.mtime))

    def _make_room(self, tree: _PathNode) -> None:
        """Remove what goes or is replaced, and make all folders."""
        waiting = [("", tree)]
        while waiting:
            above, node = waiting.pop()
            folder = self._subtree.folder(above)
            for name, child in node.children.items():
                path = join_path(above, name)
                if child.is_folder:
                    if self._make_folder(folder, name, path, child):
                        waiting.append((path, child))
                    continue
                remove_tree(folder, name)
                if child.source is not None:
                    step, number = child.source
                    self._wanted.setdefault(step, []).append(number)

    def _make_folder(self, folder: FolderHandle, name: str, path: str, node: _PathNode) -> bool:
        """Make a folder, or keep the one that is there; False if there is none and none is needed."""
        known = folder.find(name)
        is_there = known is not None and stat.S_ISDIR(known.st_mode)
        if not node.is_needed and not is_there:
            return False
        mode = node.mode
        if known is not None and is_there and not node.replaces:
            mode = stat.S_IMODE(known.st_mode) if mode is None else mode
            if known.st_mode & 0o700 != 0o700:
                folder.set_mode(name, 0o700)
            elif node.mode is None:
                mode = None  # it stays as it is
        else:
            remove_tree(folder, name)
            folder.create_folder(name)
        if mode is not None:
            self._modes.append((path, mode & 0o1777))
        return True
