"""Local files: read, list and change files in a workspace folder on this machine, and nothing outside it.

For undo, a large file is moved to the backups instead of copied. The file that replaces it is identified by
its size and a modification time that we set, so that both are known before it is written.
"""

import contextlib
import errno
import os
import secrets
import stat
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from handtools.core.changes import BackupRef, Change, Node
from handtools.core.errors import InvalidInput, NotFound, SymlinkInPath, TooLarge, UsageError, WrongKind
from handtools.core.files import FileFacts, GitNamedPath, PlannedWrite, SettingPredicate
from handtools.host.files.backups import FolderBackups
from handtools.host.files.change_detection import (
    FileState,
    file_state,
    observe_node,
    planned_stat_mark,
    stat_mark,
    state_of,
    will_show_changes,
)
from handtools.host.files.folder_handle import FolderHandle, join_path, kind_of_mode, not_a_file_error
from handtools.host.files.os_errors import os_error_as_tool_error
from handtools.host.files.path_resolution import WorkspaceRoot
from handtools.host.files.syscalls import is_local_filesystem, read_bytes_at
from handtools.host.files.temporary_file import is_temporary_name, temporary_name
from handtools.host.files.transaction import clean_up_after_crash, commit_steps

MIN_BYTES_MOVED_TO_BACKUPS = 1 << 20
"""Files smaller than this many bytes are copied for undo instead of moved to the backups."""
LARGE_FILES_FOLDER = "large"
"""The backup item for large files; the journal records each file before it is moved there."""


def is_large_file(node: Node | None, large_bytes: int) -> bool:
    """Whether a node is a file with more than `large_bytes` bytes that is not marked to be moved yet."""
    return node is not None and node.kind == "file" and node.held is None and len(node.data) > large_bytes


def with_large_files_held(
    change: Change, folder: FolderHandle, name: str, backups: FolderBackups, large_bytes: int
) -> Change:
    """Return the change with its large files marked to be moved to the backups instead of copied.

    This requires backups on the same file system and a file without other hard links.
    """
    if not backups.suits(folder.own_stat().st_dev):
        return change
    before, after, found = change.before, change.after, folder.find(name)
    # Another hard link could be used to change the bytes after the file was moved.
    is_alone = found is not None and stat.S_ISREG(found.st_mode) and found.st_nlink == 1
    if before is not None and found is not None and is_alone and is_large_file(before, large_bytes):
        before = _as_held(before, stat_mark(found))
    if after is not None and is_large_file(after, large_bytes):
        after = _as_held(after, planned_stat_mark(len(after.data)), fresh=True)
    return Change(change.path, before, after)


def _as_held(node: Node, mark: str, *, fresh: bool = False) -> Node:
    ref = f"{LARGE_FILES_FOLDER}/{secrets.token_hex(8)}"
    return Node("file", node.data, node.mode, BackupRef(ref, mark, len(node.data), fresh))


WHOLE_LIMIT_BYTES = 1 << 30
"""The largest file, in bytes, that is read in one piece."""
_PSEUDO_FILE_BYTES = 1 << 16
MAX_GIT_CHECKED_BYTES = 4 << 20
"""A larger file with a private name is treated as private, even if git tracks it."""
_MAX_REMEMBERED_FILES = 10_000
_MISSING_ERRNOS = {errno.ENOENT, errno.ENOTDIR}


class LocalFiles:
    """Reads and changes files below one folder. Keeps no fd open, so thousands of instances are fine.

    `kernel=False` resolves paths part by part even if openat2 is available. A replaced file larger than
    `large_bytes` is moved to the backups, if there are any.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        backups: FolderBackups | None = None,
        kernel: bool = True,
        large_bytes: int = MIN_BYTES_MOVED_TO_BACKUPS,
    ) -> None:
        self._root = WorkspaceRoot(Path(root), kernel=kernel)
        self._backups = backups
        self._large_bytes = large_bytes
        self._near: bool | None = None
        self._tracked: dict[str, tuple[str, FileState, str, FileState]] = {}
        """Paths whose content git tracks as long as these files, its own and git's index, have these states."""

    @property
    def root(self) -> Path:
        """The absolute path of the workspace folder, with symlinks resolved."""
        return Path(self._root.real)

    @property
    def backups(self) -> FolderBackups | None:
        """The backups for files moved out of the workspace; None if there are none."""
        return self._backups

    @property
    def is_fast_to_read(self) -> bool:
        """Whether the workspace is on a local file system, where a stat needs no network."""
        if self._near is None:
            self._near = all(map(is_local_filesystem, self._root.folders.values()))
        return self._near

    def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """Read a regular file, or `size` bytes of it from `start`; the path must come from `locate`."""
        return self._stat_and_read(path, start, size)[1]

    def _stat_and_read(self, path: str, start: int, size: int | None) -> tuple[os.stat_result, bytes]:
        try:
            found, fd = self._root.stat_and_open_path(self._root.relative_located_path(path))
            if fd is None:
                raise not_a_file_error(found, path)
            try:
                return found, _read_part(fd, found.st_size, path, start, size)
            finally:
                os.close(fd)
        except OSError as error:
            raise os_error_as_tool_error(error, path) from error

    def facts(self, path: str) -> FileFacts | None:
        """Return kind, size, mode and times of a path from `locate`; None if it does not exist."""
        inside = self._root.relative_located_path(path)
        try:
            return _facts_from(inside or ".", self._root.stat(inside))
        except OSError as error:
            if error.errno in _MISSING_ERRNOS:
                return None
            raise os_error_as_tool_error(error, path) from error

    def names(self, path: str) -> list[FileFacts]:
        """List a folder's entries with their kind, size and times, sorted by name.

        Symlinks are not followed, and our temporary files are left out.
        """
        inside = self._root.relative_located_path(path)
        prefix = f"{inside}/" if inside else ""
        try:
            found = self._root.names(inside)
        except OSError as error:
            if error.errno == errno.ENOTDIR and self.facts(path):
                raise WrongKind(f"`{path}` is not a folder.", hint="Read it instead.") from None
            raise os_error_as_tool_error(error, path) from error
        return [_facts_from(prefix + name, it) for name, it in found if it and not is_temporary_name(name)]

    def node(self, path: str, *, like_node: Node | None = None) -> Node | None:
        """Snapshot a path for undo: kind, mode, and bytes or a backup reference. Never follows symlinks."""
        inside = self._root.relative_located_path(path)
        try:
            folder, name = self._root.open_parent_folder(inside)
            with folder:
                if like_node is not None and like_node.held:
                    return observe_node(folder, name, like_node=like_node)
                return _node_at(folder, name, path)
        except OSError as error:
            if error.errno in _MISSING_ERRNOS:
                return None
            raise os_error_as_tool_error(error, path) from error

    def renamed_path(self, path: str) -> str | None:
        """Return the current path of a file that git commits have renamed; None if there is no rename."""
        from handtools.host.files.git_repository import path_after_git_renames

        name, top, below = self._root.split(self._root.relative_located_path(path))
        found = path_after_git_renames(top, below, workspace=self._root.real)
        return found and join_path(name, found)

    def is_tracked_by_git(self, path: str) -> bool:
        """Whether git tracks the content of the file at a path.

        As in git, a tracked file is not read again as long as neither its state nor the index has changed.
        """
        from handtools.host.files.git_repository import git_index_above, git_index_lists

        known = self._tracked.get(path)
        if known is not None and file_state(known[0]) == known[1] and file_state(known[2]) == known[3]:
            return True
        _, top, below = self._root.split(self._root.relative_located_path(path))
        index = git_index_above(top, below)
        index_state, now = file_state(index), time.time_ns()
        if not index_state:
            return False
        try:
            found, data = self._stat_and_read(path, 0, MAX_GIT_CHECKED_BYTES + 1)
        except (NotFound, WrongKind):
            return False
        if len(data) > MAX_GIT_CHECKED_BYTES or not git_index_lists(index, index_state, data):
            return False
        if will_show_changes(state_of(found), now):
            if len(self._tracked) >= _MAX_REMEMBERED_FILES:
                self._tracked.clear()
            self._tracked[path] = os.path.join(top, below), state_of(found), index, index_state
        return True

    def git_named_paths(
        self, paths: Collection[str], is_plain: SettingPredicate
    ) -> tuple[GitNamedPath, ...]:
        """List workspace paths named in git settings of repositories that contain the workspace or `paths`."""
        from handtools.host.files.paths_in_git_settings import git_named_paths

        inside = (self._root.split(self._root.relative_located_path(path)) for path in paths)
        return git_named_paths(
            self._root.folders, [os.path.join(top, below) for _, top, below in inside], is_plain
        )

    def verifies_git_pack(self, stem: str, refs: Mapping[str, str]) -> bool:
        """Whether the index files of a git pack are correct; False if that can't be determined."""
        from handtools.host.files.git_repository import verify_pack

        _, top, below = self._root.split(self._root.relative_located_path(stem))
        files: dict[str, str] = {}
        for suffix in ("pack", "idx", "rev"):
            place = os.path.join(top, f"{below}.{suffix}")
            if self._backups is not None and suffix in refs:
                files[suffix] = self._backups.file_path(refs[suffix])
            elif suffix != "rev" or os.path.lexists(place):
                files[suffix] = place
        id_chars = len(stem.rpartition("-")[2])
        return verify_pack(files, id_chars, self._root.real)

    def writable(self, path: str) -> bool:
        """Whether this user has write permission for the file at a path."""
        inside = self._root.relative_located_path(path)
        try:
            folder, name = self._root.open_parent_folder(inside)
            with folder:
                return folder.writable(name)
        except OSError as error:
            raise os_error_as_tool_error(error, path) from error

    def locate(self, path: str) -> str:
        """Resolve symlinks inside the workspace and return the path that locks, rules and the journal use.

        Nothing needs to exist at the path.
        """
        inside = self._root.relative(path)
        try:
            return self._root.locate(inside) or "."
        except OSError as error:
            raise os_error_as_tool_error(error, path) from error

    def plan(self, changes: Iterable[Change]) -> list[PlannedWrite]:
        """Turn changes into planned writes with temporary names, with large files marked to be moved.

        Changes nothing on disk.
        """
        steps = [PlannedWrite(self._with_large_files_held(change), temporary_name()) for change in changes]
        for step in steps:
            self._root.check_changeable(step.change.path)
        return steps

    def perform(self, writes: Sequence[PlannedWrite], *, synced: bool = True) -> None:
        """Carry out all planned writes or none.

        Rolls back and raises `Stale` if a file does not match its `before`.
        """
        if writes:
            # `locate` has resolved the paths; a symlink that has appeared since must not be followed.
            commit_steps(
                [self._validated_write(step) for step in writes],
                self._root.open_folder_no_follow,
                self._backups,
                synced=synced,
            )

    def sync(self, paths: Collection[str]) -> None:
        """Fsync the files at some paths and all their folders; skips what is gone. Raises `OSError`."""
        names_by_folder: dict[str, list[str]] = {}
        for path in paths:
            parent, _, name = self._root.relative_located_path(path).rpartition("/")
            names_by_folder.setdefault(parent, []).append(name)
        for parent, names in names_by_folder.items():
            with (
                contextlib.suppress(FileNotFoundError, NotADirectoryError, SymlinkInPath),
                self._root.open_folder_no_follow(parent) as folder,
            ):
                for name in names:
                    _sync_file(folder, name)
                folder.sync()

    def sweep(self, write: PlannedWrite) -> str | None:
        """Clean up a planned write's temporary file after a crash.

        If another program's bytes had to be kept, returns a sentence with their path.
        """
        exact = self._validated_write(write)
        try:
            return clean_up_after_crash(exact, self._root.open_folder_no_follow, self._backups)
        except OSError as error:
            if error.errno not in _MISSING_ERRNOS:
                raise os_error_as_tool_error(error, exact.change.path) from error
            return None

    def _with_large_files_held(self, change: Change) -> Change:
        nodes = (change.before, change.after)
        if self._backups is None or not any(is_large_file(node, self._large_bytes) for node in nodes):
            return change
        parent, _, name = self._root.relative_located_path(change.path).rpartition("/")
        try:
            with self._root.open_folder_no_follow(parent) as folder:
                return with_large_files_held(change, folder, name, self._backups, self._large_bytes)
        except (OSError, SymlinkInPath):
            return change  # `perform` will fail with the proper error

    def _validated_write(self, write: PlannedWrite) -> PlannedWrite:
        path = self._root.relative_located_path(write.change.path)
        if path == write.change.path and is_temporary_name(write.temporary):
            return write
        if not path or not is_temporary_name(write.temporary):
            raise UsageError("A step needs a path below the workspace and a temporary name from `plan`.")
        return PlannedWrite(Change(path, write.change.before, write.change.after), write.temporary)


def _facts_from(path: str, found: os.stat_result) -> FileFacts:
    kind = kind_of_mode(found.st_mode)
    return FileFacts(
        path=path,
        kind=kind or "other",
        bytes=0 if kind == "folder" else found.st_size,
        mode=stat.S_IMODE(found.st_mode),
        modified=found.st_mtime,
        links=found.st_nlink,
        changed=found.st_ctime,
    )


def _sync_file(folder: FolderHandle, name: str) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):
        _, fd = folder.stat_and_open_file(name)
        if fd is not None:
            try:
                os.fsync(fd)
            finally:
                os.close(fd)


def _node_at(folder: FolderHandle, name: str, path: str) -> Node | None:
    found = folder.find(name)
    if found is None:
        return None
    kind, mode = kind_of_mode(found.st_mode), stat.S_IMODE(found.st_mode)
    if kind is None:
        raise WrongKind(f"`{path}` is a pipe, a socket or a device.", hint="Use another path.")
    if kind == "folder":
        return Node("folder", mode=mode)
    if kind == "link":
        return Node("link", folder.link_target(name))
    found, fd = folder.stat_and_open_file(name)
    if fd is None:
        raise not_a_file_error(found, path)
    try:
        data = _read_part(fd, found.st_size, path, 0, None)
        return Node("file", data, stat.S_IMODE(found.st_mode))
    finally:
        os.close(fd)


def _read_part(fd: int, known: int, path: str, start: int, size: int | None) -> bytes:
    if start < 0 or (size is not None and size < 0):
        raise InvalidInput("`start` and `size` can't be negative.", hint="Count from 0.")
    # Size 0 may mean a pseudo-file, such as in /proc, whose content is generated on read.
    wanted = max(known - start, 0) if known else _PSEUDO_FILE_BYTES
    if size is not None:
        wanted = min(size, wanted)
    if wanted > WHOLE_LIMIT_BYTES:
        limit = f"{WHOLE_LIMIT_BYTES >> 20} MiB"
        raise TooLarge(f"`{path}` is larger than {limit}.", hint="Read it in parts.")
    return read_bytes_at(fd, wanted, start)
