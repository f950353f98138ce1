"""The log of a workspace in object storage: journal and changed files in segments, each written once.

A segment is created under its number only if that key does not exist. So if two hosts both believe that
they own a workspace, one of them finds the number taken and gives up. A workspace is recovered from its
template, the newest checkpoint and the segments after it.

Anyone who can write to the store can forge a log. So everything read from it is validated here before use:
names, paths, kinds, modes and sizes. Invalid data raises `StorageFault`. Paths are restored through
directory fds, so that none of them can escape the workspace.
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
    join_path,
    open_inner_folder,
)
from handtools.host.files.folder_trees import SubfolderCache, TreeEntry, remove_tree, walk_tree
from handtools.runtime.journal.database import JournalCopy

PUT_ATTEMPTS = 5
FIRST_PAUSE_SECONDS = 0.1
_COMPRESSION_LEVEL = 3
_GETS_AT_ONCE = 8
_HEAD, _REMOVED = "head", "removed"
_COLLECTIONS = "collections"
"""Folder with one object for each day on which garbage was collected."""
_SEGMENT_NAME, _CHECKPOINT_NAME = re.compile("[0-9]{8}"), re.compile("([0-9]{8})[.]checkpoint")
_CHECKPOINT_SUFFIX, _BASE_SUFFIX = ".checkpoint", ".base"
KEPT_FOLDERS = ("outputs", "blobs", "sessions")
"""Folders next to the journal whose files are stored with it: outputs, large old versions, shell state."""
VAULT_FOLDER = "vault"
"""The folder next to the journal with files that were moved aside for undo."""
MAX_SEGMENT_BYTES = 4 << 30
"""Maximum size of a segment, both unpacked and stored."""
MAX_SEGMENT_HEAD_BYTES = 64 << 20
"""Maximum size of the path list in a segment, enough for about 500,000 paths."""
MAX_RESTORED_BYTES = MAX_ARCHIVE_BYTES
"""Maximum total size of the files restored from a log."""
MAX_LOG_SEGMENTS = 100_000
"""Maximum number of segments after the newest checkpoint; also limits how often a workspace can be moved."""
_MAX_NOTE_BYTES = 64 << 10
"""Maximum size of an object that is neither a segment nor a template."""
_MAX_PATH_CHARS = 1 << 18
_ODD_NAMES = frozenset({"", ".", ".."})
_MAX_LINK_BYTES = 4095
_MAX_TIME = 1 << 62
_MAX_WINDOW_BYTES = 8 << 20
_HEAD_LENGTH = struct.Struct(">I")
_NOT_THERE_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""Errors that mean a path does not exist. ELOOP means that one of its parents is a symlink."""
REMOVED_LOG_SECONDS = 86400.0
"""Minimum time for which the log of a removed workspace is kept."""
T = TypeVar("T")


class SegmentTaken(HostError):
    """Another host has written a segment with this number, so it owns the workspace now."""


@dataclass(frozen=True, slots=True)
class LogHead:
    """The start of a log: the template or parent from which the workspace was created."""

    template: str
    tenant: str = ""
    parent: str = ""
    segment: int = 0
    """For a fork, the number of segments in the parent's log when it was made."""


PathKind = Literal["file", "link", "folder", "tree", "gone"]
_PATH_KINDS = frozenset(get_args(PathKind))


class PathState(NamedTuple):
    """The state of a path."""

    path: str
    kind: PathKind
    """`tree` is a folder that replaces whatever is at the path; `gone` means that nothing is there."""
    mode: int = 0
    data: bytes = b""
    mtime: int = 0
    """Modification time of a file in nanoseconds; large files are recognised by it."""


@dataclass(frozen=True, slots=True)
class Segment:
    """One entry of a log: new journal data and changed files. A checkpoint replaces all earlier segments."""

    database: bytes | None
    """The entire journal database, if it is new or its WAL (write-ahead log) was restarted."""
    log: bytes
    """New data in the journal's WAL."""
    paths: tuple[PathState, ...]
    writer: str
    """The incarnation (id of the run) of the host that wrote it."""
    states: tuple[PathState, ...] = ()
    """Files next to the journal: long outputs, and files moved aside for undo."""
    is_fence: bool = False
    """Whether the segment only marks that a host took over the workspace. A fence is never deleted."""

    @classmethod
    def from_changes(
        cls, copy: JournalCopy, paths: Sequence[PathState], states: Sequence[PathState], writer: str
    ) -> "Segment":
        """A segment with new journal data and the paths that changed."""
        return cls(copy.database, copy.log, tuple(paths), writer, tuple(states))

    @classmethod
    def takeover_fence(cls, writer: str) -> "Segment":
        """A segment that takes over a workspace: the previous host finds its next segment number taken."""
        return cls(None, b"", (), writer, is_fence=True)

    def pack(self) -> bytes:
        """Serialize and compress the segment. Raises `TooLarge` if it is larger than `unpack` accepts."""
        states = (*self.paths, *self.states)
        blobs = [self.database or b"", self.log, *(state.data for state in states)]
        head = {
            "writer": self.writer,
            "whole": self.database is not None,
            "fence": self.is_fence,
            "paths": [[state.path, state.kind, state.mode, state.mtime] for state in states],
            "kept": len(self.states),
            "sizes": [len(blob) for blob in blobs],
        }
        line = json.dumps(head, separators=(",", ":")).encode()
        size = _HEAD_LENGTH.size + len(line) + sum(map(len, blobs))
        if len(line) > MAX_SEGMENT_HEAD_BYTES or size > MAX_SEGMENT_BYTES:
            raise TooLarge(
                f"A workspace's log accepts {MAX_SEGMENT_BYTES >> 20:,} MiB at once. The changes not yet "
                f"stored are {size >> 20:,} MiB in {len(states):,} paths.",
                hint="Delete unneeded files; the next call stores the rest.",
            )
        packed = io.BytesIO()
        compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL)
        with compressor.stream_writer(packed, size=size, closefd=False) as target:
            for part in (_HEAD_LENGTH.pack(len(line)), line, *blobs):
                target.write(part)
        return packed.getvalue()

    @classmethod
    def unpack(cls, packed: bytes, *, with_data: bool = True) -> "Segment":
        """Parse the output of `pack`. With `with_data=False`, only the header is read.

        Raises `StorageFault` if it is invalid. Never unpacks more than the header declares and the limit
        allows.
        """
        machine = zstandard.ZstdDecompressor(max_window_size=_MAX_WINDOW_BYTES)
        try:
            size = zstandard.get_frame_parameters(packed).content_size
            with machine.stream_reader(packed) as stream:
                (length,) = _HEAD_LENGTH.unpack(_read_exactly(stream, _HEAD_LENGTH.size))
                if length > MAX_SEGMENT_HEAD_BYTES:
                    raise _damaged_log_fault(f"a path list of {length:,} bytes")
                head = _SegmentHead.parse(_read_exactly(stream, length))
                if size > MAX_SEGMENT_BYTES or size != _HEAD_LENGTH.size + length + sum(head.sizes):
                    raise _damaged_log_fault(
                        f"a segment of {size:,} bytes whose parts are {sum(head.sizes):,} bytes"
                    )
                blobs = [_read_exactly(stream, each) for each in head.sizes] if with_data else []
        except zstandard.ZstdError as damage:
            raise _damaged_log_fault("a segment that can't be unpacked") from damage
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
    """The header of a segment."""

    writer: str
    is_whole: bool
    is_fence: bool
    states: list[PathState]
    kept: int
    sizes: list[int]
    """Sizes of the journal, of its WAL, and of the data of each path."""

    @classmethod
    def parse(cls, line: bytes) -> Self:
        """Parse the header of a segment. Raises `StorageFault` if `Segment.pack` can't have written it."""
        head = _parse_header(line)
        states = [_path_state_from_row(row) for row in _require_list(head.get("paths"))]
        sizes = [_require_whole_number(each) for each in _require_list(head.get("sizes"))]
        kept = _require_whole_number(head.get("kept"))
        if len(sizes) != len(states) + 2 or kept > len(states):
            raise _damaged_log_fault("a segment whose header does not match its parts")
        writer, whole, fence = (head.get(key) for key in ("writer", "whole", "fence"))
        if not (isinstance(writer, str) and isinstance(whole, bool) and isinstance(fence, bool)):
            raise _damaged_log_fault("a segment with an invalid writer, `whole` or `fence`")
        for state in states[len(states) - kept :]:
            if not _is_stored_with_journal(state):
                raise _damaged_log_fault(f"a {state.kind} {state.path[:200]!r} next to a journal")
        return cls(writer, whole, fence, states, kept, sizes)


def _damaged_log_fault(what: str) -> StorageFault:
    return StorageFault(
        f"The object store contains {what}, which no host would write.",
        hint="Check who can write to the store. The invalid data was not used.",
    )


def _read_exactly(stream: zstandard.ZstdDecompressionReader, size: int) -> bytes:
    data = stream.read(size) if size else b""
    if len(data) != size:
        raise _damaged_log_fault("a truncated segment")
    return data


def _parse_json(text: bytes) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as problem:
        raise _damaged_log_fault("data that is not JSON") from problem


def _parse_header(text: bytes) -> dict[str, Any]:
    found = _parse_json(text)
    if not isinstance(found, dict):
        raise _damaged_log_fault("a segment without a header")
    return found


def _require_list(value: Any) -> list[Any]:
    if not isinstance(value, list):
        raise _damaged_log_fault("a segment without a list of its parts")
    return value


def _require_whole_number(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= MAX_SEGMENT_BYTES:
        raise _damaged_log_fault(f"{str(value)[:40]!r} instead of a size")
    return value


def _path_state_from_row(row: Any) -> PathState:
    """Validate a row of a segment's path list."""
    if type(row) is not list or len(row) != 4:
        raise _damaged_log_fault("a path without its properties")
    path, kind, mode, mtime = row
    # Not `isinstance`, because bool is a subclass of int.
    is_typed = type(path) is type(kind) is str and type(mode) is type(mtime) is int
    if not (is_typed and kind in _PATH_KINDS and 0 <= mode <= 0o7777 and -_MAX_TIME < mtime < _MAX_TIME):
        raise _damaged_log_fault(f"a path with the properties {str(row[1:])[:200]}")
    relative_path_parts(path)
    return PathState(path, kind, mode, b"", mtime)


def _is_stored_with_journal(state: PathState) -> bool:
    """Whether a path is one of the files that are stored with a journal (`KEPT_FOLDERS`, `VAULT_FOLDER`)."""
    folder, *inner = state.path.split("/")
    if folder == VAULT_FOLDER:
        return bool(inner)
    return folder in KEPT_FOLDERS and len(inner) == 1 and state.kind in {"file", "gone"}


def relative_path_parts(path: str) -> list[str]:
    """The components of a relative path. Raises `StorageFault` if it is absolute or contains `..`."""
    names = path.split("/")
    is_plain = _ODD_NAMES.isdisjoint(names) and "\0" not in path and len(path) <= _MAX_PATH_CHARS
    if not (is_plain and (path.isascii() or _is_encodable(path))):
        raise _damaged_log_fault(f"the path {path[:200]!r}")
    return names


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class LogObjects:
    """The numbers of the segments and checkpoints that are stored for a log."""

    segments: frozenset[int]
    checkpoints: frozenset[int]
    is_ended: bool

    @property
    def newest_checkpoint_number(self) -> int:
        """The number of segments that the newest checkpoint replaces; 0 if there is no checkpoint."""
        return max(self.checkpoints, default=0)


class LogStore:
    """The logs and templates of a fleet at one URL, such as `s3://bucket/fleet`. All methods block."""

    def __init__(self, url: str, **options: Any) -> None:
        self._objects = open_object_store(url, **options)
        self.stored_bytes = 0
        """Bytes of segments stored through this object."""

    def create_log(self, name: str, head: LogHead) -> bool:
        """Create the log of a workspace; False if the same log may have existed already.

        Raises `SegmentTaken` if the workspace has a different log.
        """
        wanted = json.dumps([head.template, head.tenant, head.parent, head.segment]).encode()
        put = self._create_or_compare(self._object_key(name, _HEAD), wanted)
        if put == "other":
            raise SegmentTaken(f"Workspace {name} already has a different log.")
        return put == "new"

    def mark_workspace_removed(self, name: str) -> None:
        """Mark a workspace as removed. Its log is deleted later, when no fork needs it any more."""
        self._create_or_compare(self._object_key(name, _REMOVED), b"removed\n")

    def read_head(self, name: str) -> LogHead | None:
        """The head of a workspace's log; None if it has no log."""
        found = self._read_object(self._object_key(name, _HEAD), _MAX_NOTE_BYTES)
        if found is None:
            return None
        match _parse_json(found):
            case [str(template), str(tenant), str(parent), int(segment)] if (
                TEMPLATE_DIGEST.fullmatch(template)
                and (not parent or WORKSPACE_NAME.fullmatch(parent))
                and segment >= 0
            ):
                return LogHead(template, tenant, parent, segment)
        raise _damaged_log_fault(f"an invalid initial state of workspace {name}")

    def host_moved_to(self, name: str) -> str:
        """The host that a workspace was last moved to; empty if it was never moved."""
        return self._move_count_and_host(name)[1]

    def assign_to_host(self, name: str, host: str) -> None:
        """Assign a workspace to a host. Raises `SegmentTaken` if another host was assigned concurrently."""
        number, known = self._move_count_and_host(name)
        place = self._object_key(name, f"place-{number:08d}")
        if known != host and self._create_or_compare(place, host.encode()) == "other":
            raise SegmentTaken(f"Workspace {name} was moved to another host at the same time.")

    def _move_count_and_host(self, name: str) -> tuple[int, str]:
        """How often a workspace was moved, and the host that it was last moved to."""
        host = ""
        for number in range(MAX_LOG_SEGMENTS):
            found = self._read_object(self._object_key(name, f"place-{number:08d}"), _MAX_NOTE_BYTES)
            if found is None:
                return number, host
            host = found.decode("ascii", "replace")
            if not WORKSPACE_NAME.fullmatch(host):
                raise _damaged_log_fault(f"an invalid host name for workspace {name}")
        raise _damaged_log_fault(f"too many moves of workspace {name}")

    def list_log_objects(self, name: str) -> LogObjects:
        """List the stored objects of a log."""
        names = set(self._object_names(self._object_key(name)))
        return LogObjects(
            frozenset(int(each) for each in names if _SEGMENT_NAME.fullmatch(each)),
            frozenset(int(found[1]) for each in names if (found := _CHECKPOINT_NAME.fullmatch(each))),
            _REMOVED in names,
        )

    def append_segment(self, name: str, number: int, packed: bytes) -> None:
        """Store a segment under its number. Raises `SegmentTaken` if a different segment has that number."""
        if self._create_or_compare(self._object_key(name, f"{number:08d}"), packed) == "other":
            raise SegmentTaken(f"Segment {number} of workspace {name} was written by another host.")
        self.stored_bytes += len(packed)

    def read_segment(self, name: str, number: int) -> bytes | None:
        """A stored segment; None if it does not exist."""
        return self._read_object(self._object_key(name, f"{number:08d}"), MAX_SEGMENT_BYTES)

    def read_segments(self, name: str, numbers: Iterable[int]) -> list[bytes | None]:
        """Stored segments, fetched concurrently."""
        with ThreadPoolExecutor(_GETS_AT_ONCE) as threads:
            return list(threads.map(lambda number: self.read_segment(name, number), numbers))

    def put_checkpoint(self, name: str, number: int, packed: bytes) -> None:
        """Store a checkpoint that replaces the first `number` segments. If there is one, it is equivalent."""
        self._create_or_compare(self._object_key(name, f"{number:08d}{_CHECKPOINT_SUFFIX}"), packed)

    def read_checkpoint(self, name: str, number: int) -> bytes | None:
        """A stored checkpoint; None if it does not exist."""
        return self._read_object(
            self._object_key(name, f"{number:08d}{_CHECKPOINT_SUFFIX}"), MAX_SEGMENT_BYTES
        )

    def put_fork_base(self, name: str, number: int, packed: bytes) -> None:
        """Store the initial state of forks made after `number` segments."""
        self._create_or_compare(self._object_key(name, f"{number:08d}{_BASE_SUFFIX}"), packed)

    def read_fork_base(self, name: str, number: int) -> bytes | None:
        """The initial state of forks made after `number` segments; None if it does not exist."""
        return self._read_object(self._object_key(name, f"{number:08d}{_BASE_SUFFIX}"), MAX_SEGMENT_BYTES)

    def delete_segments(self, name: str, numbers: Iterable[int], checkpoint: int) -> None:
        """Delete segments that a newer checkpoint replaces, and the previous checkpoint if there is one."""
        names = [f"{number:08d}" for number in numbers]
        if checkpoint:
            names.append(f"{checkpoint:08d}{_CHECKPOINT_SUFFIX}")
        self._delete_objects(self._object_key(name, each) for each in names)

    def collect_daily_garbage(self) -> int | None:
        """Delete unneeded logs and return their number, or None if a host has already done it today.

        All hosts of a fleet call this, and one of them does the work.
        """
        today = time.strftime("%Y-%m-%d", time.gmtime())
        if self._create_or_compare(f"{_COLLECTIONS}/{today}", secrets.token_bytes(8)) == "other":
            return None
        earlier = [each for each in self._object_names(_COLLECTIONS) if each < today]
        self._delete_objects(f"{_COLLECTIONS}/{each}" for each in earlier)
        return self.collect_garbage()

    def collect_garbage(self, *, min_age: float = REMOVED_LOG_SECONDS) -> int:
        """Delete the logs of workspaces that were removed at least `min_age` seconds ago.

        Logs that a fork needs are kept. Returns the number of deleted logs. It lists every log and reads the
        head of each active one, so run it once a day, not for each call.
        """
        names = [each for each in self._object_names("workspaces") if WORKSPACE_NAME.fullmatch(each)]
        with ThreadPoolExecutor(_GETS_AT_ONCE) as threads:
            objects = dict(zip(names, threads.map(self.list_log_objects, names), strict=True))
            ended = {name for name, found in objects.items() if found.is_ended}
            heads = threads.map(self.read_head, [name for name in names if name not in ended])
            needed = {head.parent for head in heads if head is not None}
        gone = 0
        for name in ended - needed:
            if time.time() - self._modification_time(self._object_key(name, _REMOVED)) >= min_age:
                # Delete the head and the removal mark last: if interrupted, the next collection continues.
                inner = [
                    each
                    for each in self._object_names(self._object_key(name))
                    if each not in {_HEAD, _REMOVED}
                ]
                for some in (inner, [_HEAD], [_REMOVED]):
                    self._delete_objects(self._object_key(name, each) for each in some)
                gone += 1
        return gone

    def put_template(self, template: Template) -> None:
        """Store a template for hosts that do not have it."""
        if self._call_with_retries(lambda: self._objects.has_object(f"templates/{template.digest}")):
            return
        compressor = zstandard.ZstdCompressor(level=_COMPRESSION_LEVEL)
        with TemporaryFile() as packed:
            with compressor.stream_writer(packed, closefd=False) as target:
                pack_folder(template.tree, target)
            packed.seek(0)
            self._create_or_compare(f"templates/{template.digest}", packed.read())

    def fetch_template(self, digest: str, store: TemplateStore) -> Template:
        """Download a template. Raises `NotFound`, or `StorageFault` if the digest does not match."""
        is_digest = TEMPLATE_DIGEST.fullmatch(digest)
        packed = self._read_object(f"templates/{digest}", MAX_ARCHIVE_BYTES) if is_digest else None
        if packed is None:
            raise NotFound(f"Template {digest[:12]} is not stored.", hint="Add it to the fleet again.")
        return store.restore_template(digest, io.BytesIO(packed))

    def _create_or_compare(self, key: str, data: bytes) -> Literal["new", "same", "other"]:
        """Create an object if the key is free; otherwise return whether the existing one is the same."""

        def put() -> Literal["new", "same", "other"]:
            try:
                self._create_object(key, data)
            except self._objects.errors:
                # Stores report an existing key in different ways, so read the object. If the response to
                # our own request was lost, the existing object is ours.
                found = self._read_object(key, len(data), is_compared=True)
                if found is None:
                    raise
                return "same" if found == data else "other"
            return "new"

        return self._call_with_retries(put)

    def _create_object(self, key: str, data: bytes) -> None:
        self._objects.create_object(key, data)

    def _read_object(self, key: str, most: int, *, is_compared: bool = False) -> bytes | None:
        """An object; None if it does not exist. More than `most` bytes are an error, unless `is_compared`."""
        found = self._call_with_retries(lambda: self._objects.read_start(key, most + 1))
        if found is not None and len(found) > most and not is_compared:
            raise _damaged_log_fault(f"{key}, of more than {most:,} bytes")
        return found

    def _object_names(self, folder: str) -> list[str]:
        return self._call_with_retries(lambda: self._objects.list_names(folder))

    def _modification_time(self, key: str) -> float:
        return self._call_with_retries(lambda: self._objects.creation_time(key))

    def _delete_objects(self, keys: Iterable[str]) -> None:
        listed = list(keys)
        self._call_with_retries(lambda: self._objects.delete_objects(listed))

    def _object_key(self, name: str, key: str = "") -> str:
        """The key of an object in a workspace's log, or of the log's folder."""
        if not WORKSPACE_NAME.fullmatch(name):
            raise NotFound(f"{name[:80]!r} is not a valid workspace name.", hint="List the workspaces.")
        return f"workspaces/{name}/{key}".rstrip("/")

    def _call_with_retries(self, work: Callable[[], T]) -> T:
        pause = FIRST_PAUSE_SECONDS
        for attempt in range(PUT_ATTEMPTS):
            try:
                return work()
            except self._objects.errors as failure:
                if attempt == PUT_ATTEMPTS - 1:
                    raise StorageFault(
                        f"The object store failed: {failure or type(failure).__name__}.",
                        hint="Send the same call again later. It will not run twice.",
                    ) from failure
            time.sleep(pause)
            pause *= 2
        raise AssertionError("unreachable")


def read_path_states(root: str, paths: dict[str, bool]) -> list[PathState]:
    """The current states of paths in a folder. If a path's value is True, everything below it is included."""
    states: list[PathState] = []
    with FolderHandle.at(root) as top:
        for path, whole in paths.items():
            relative_path_parts(path)
            above, _, name = path.rpartition("/")
            try:
                with open_inner_folder(top, above) as folder:
                    found = folder.find(name)
                    if found is None:
                        states.append(PathState(path, "gone"))
                        continue
                    entry = TreeEntry(path, folder, name, found)
                    if not (whole and entry.is_folder):
                        states += _path_states_of_entry(path, entry)
                        continue
                    states.append(PathState(path, "tree", entry.mode))
                    with folder.child(name) as inside:
                        for each in walk_tree(inside):
                            states += _path_states_of_entry(f"{path}/{each.path}", each)
            except OSError as error:
                if error.errno not in _NOT_THERE_ERRNOS:
                    raise
                states.append(PathState(path, "gone"))
    return states


def _path_states_of_entry(path: str, entry: TreeEntry) -> Iterator[PathState]:
    """The state of an entry. Yields nothing for other kinds than files, symlinks and folders."""
    if entry.kind == "folder":
        yield PathState(path, "folder", entry.mode)
    elif entry.kind == "link":
        yield PathState(path, "link", 0, entry.folder.link_target(entry.name))
    elif entry.kind == "file":
        with open(entry.folder.open_file(entry.name), "rb") as file:
            yield PathState(path, "file", entry.mode, file.read(), entry.found.st_mtime_ns)


def apply_path_states(root: str, states: Sequence[PathState]) -> None:
    """Restore paths of a folder to the given states. If a path has several states, the last one counts."""
    with PathRestore(root, [states]) as restore:
        restore.write_files_of_step(0, states)


@dataclass(slots=True)
class _PathNode:
    """The final state of a path: a folder with its entries, a file, a symlink, or nothing."""

    is_folder: bool = True
    replaces: bool = False
    """Whether it is a folder that replaces what was there before."""
    is_needed: bool = False
    """Whether the folder must exist; False if the states only delete paths below it."""
    mode: int | None = None
    """Mode of a folder; None if no state contains it."""
    source: tuple[int, int] | None = None
    """For a file or symlink, the index of the list and of the state in it. None for a deleted path."""
    children: "dict[str, _PathNode]" = field(default_factory=dict)


def _merge_states_to_tree(listed_states: Sequence[Sequence[PathState]]) -> _PathNode:
    """Merge lists of states, applied in order, into one tree."""
    top_node = _PathNode()
    for step, states in enumerate(listed_states):
        for number, state in enumerate(states):
            _add_state(top_node, state, (step, number))
    return top_node


def _add_state(top_node: _PathNode, state: PathState, source: tuple[int, int]) -> None:
    *above, name = relative_path_parts(state.path)
    folder = top_node
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
    """Restores paths of a folder from lists of states, applied in order. The last state of a path counts.

    The constructor takes the states without data and creates the folders. `write_files_of_step`
    takes the data of one list at a time, so all lists together may be larger than memory. No symlink is
    followed and nothing outside the folder is changed, whatever the states contain. Files get no setuid or
    setgid bit.
    """

    def __init__(self, root: str, states: Sequence[Sequence[PathState]]) -> None:
        tree = _merge_states_to_tree(states)
        self._left = MAX_RESTORED_BYTES
        self._modes: list[tuple[str, int]] = []
        self._wanted: dict[int, list[int]] = {}
        with ExitStack() as stack:
            self._top = stack.enter_context(FolderHandle.at(root))
            self._subtree = stack.enter_context(SubfolderCache(self._top, flags=OPEN_FOLDER_TO_ENTER_FLAGS))
            self._delete_replaced_and_make_folders(tree)
            self._stack = stack.pop_all()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *rest: object) -> None:
        with self._stack:
            if kind is None:
                # Innermost first: after its mode is set, a folder may be inaccessible.
                for path, mode in reversed(self._modes):
                    above, _, name = path.rpartition("/")
                    self._subtree.folder(above).set_mode(name, mode)

    def write_files_of_step(self, step: int, states: Sequence[PathState]) -> None:
        """Write the files and symlinks of list number `step`; its states now include their data."""
        for number in self._wanted.pop(step, ()):
            state = states[number]
            above, _, name = state.path.rpartition("/")
            self._left -= len(state.data)
            if self._left < 0:
                raise TooLarge(
                    f"The log contains more than {MAX_RESTORED_BYTES >> 30} GiB of files.",
                    hint="Check who can write to the object store.",
                )
            self._write_file_or_symlink(self._subtree.folder(above), name, state)

    def _write_file_or_symlink(self, folder: FolderHandle, name: str, state: PathState) -> None:
        if state.kind == "link":
            if not state.data or b"\0" in state.data or len(state.data) > _MAX_LINK_BYTES:
                raise _damaged_log_fault(f"a symlink {state.path[:200]!r} to {state.data[:200]!r}")
            folder.create_link(name, state.data)
            return
        with open(folder.create_file(name, 0o600), "wb") as file:
            file.write(state.data)
            file.flush()
            os.fchmod(file.fileno(), state.mode & 0o777)
            os.utime(file.fileno(), ns=(state.mtime, state.mtime))

    def _delete_replaced_and_make_folders(self, top_node: _PathNode) -> None:
        """Delete paths that are removed or replaced, and create all folders."""
        waiting = [("", top_node)]
        while waiting:
            above, node = waiting.pop()
            folder = self._subtree.folder(above)
            for name, child in node.children.items():
                path = join_path(above, name)
                if child.is_folder:
                    if self._make_or_reuse_folder(folder, name, path, child):
                        waiting.append((path, child))
                    continue
                remove_tree(folder, name)
                if child.source is not None:
                    step, number = child.source
                    self._wanted.setdefault(step, []).append(number)

    def _make_or_reuse_folder(self, folder: FolderHandle, name: str, path: str, node: _PathNode) -> bool:
        """Create a folder or use the existing one; False if there is none and none is needed."""
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
                mode = None  # keep the current mode
        else:
            remove_tree(folder, name)
            folder.create_folder(name)
        if mode is not None:
            self._modes.append((path, mode & 0o1777))
        return True
