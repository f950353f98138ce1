"""Detect whether a file or folder tree has changed.

A file's mark identifies its version: a string made from its size and modification time, or its digest.
"""

import contextlib
import hashlib
import os
import stat
import time
from collections.abc import Iterator, Mapping

from handtools.core.changes import BackupRef, FolderItem, Node, folder_node, sha256_hex, unpack_folder
from handtools.host.files import syscalls
from handtools.host.files.folder_handle import FolderHandle, kind_of_mode
from handtools.host.files.folder_trees import TreeEntry, walk_tree
from handtools.host.files.syscalls import read_bytes_at

MAX_HASHED_FILE_BYTES = 256 << 10
"""Files up to this many bytes are compared by digest, larger ones by size and modification time."""
MAX_RECORDED_FILE_BYTES = 64 << 10
"""The contents of files up to this many bytes are recorded, so that they can be shown and merged."""
MIN_BELIEVED_AGE_NS = 2_000_000_000
"""A file that changed this short a time ago may change again without a new ctime; git's limit is similar."""
FileState = tuple[int, ...]
"""A regular file's device, inode, size, mtime and ctime; empty if there is no such file."""
_STAT_PREFIX = "stat:"
_HASH_CHUNK_BYTES = 1 << 20


def file_state(path: str) -> FileState:
    """Return the state of the file at a path; a change of the content changes it."""
    try:
        found = os.lstat(path)
    except (OSError, ValueError):
        return ()
    return state_of(found) if stat.S_ISREG(found.st_mode) else ()


def state_of(found: os.stat_result) -> FileState:
    """Return the state of a file from its stat."""
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


def will_show_changes(state: FileState, now: int) -> bool:
    """Whether every change after `now`, in nanoseconds, leads to another state of this file."""
    return bool(state) and state[-1] < now - MIN_BELIEVED_AGE_NS


def stat_mark(found: os.stat_result) -> str:
    """Return a file's mark made from its size and modification time; the file is not read."""
    return f"{_STAT_PREFIX}{found.st_size}-{found.st_mtime_ns}"


def planned_stat_mark(size: int) -> str:
    """Return the size-and-time mark for a new file; its time must be set to the one in the mark."""
    return f"{_STAT_PREFIX}{size}-{time.time_ns()}"


def stat_mark_time(mark: str) -> int:
    """Return the modification time, in nanoseconds, from a size-and-time mark."""
    return int(mark.rpartition("-")[2])


def is_stat_mark(mark: str) -> bool:
    """Whether a mark consists of size and time instead of a digest."""
    return mark.startswith(_STAT_PREFIX)


def file_mark(fd: int, found: os.stat_result, *, like: str = "") -> str:
    """Return the mark of an open file, of the same kind as `like`: size and time, or a digest.

    Without `like`, the kind depends on the file's size.
    """
    if like.startswith(_STAT_PREFIX) or (not like and found.st_size > MAX_HASHED_FILE_BYTES):
        return stat_mark(found)
    return content_mark(fd)


def content_mark(fd: int) -> str:
    """Return the digest of an open file's contents, read in chunks."""
    seen = hashlib.sha256()
    start = 0
    while part := read_bytes_at(fd, _HASH_CHUNK_BYTES, start):
        seen.update(part)
        start += len(part)
    return seen.hexdigest()


def observe_node(folder: FolderHandle, name: str, *, like_node: Node) -> Node | None:
    """Return the file, symlink or folder now at a name, with marks of the same kind as in `like_node`.

    None if the name does not exist.
    """
    found = folder.find(name)
    if found is None:
        return None
    kind, mode = kind_of_mode(found.st_mode), stat.S_IMODE(found.st_mode)
    if kind == "folder":
        if like_node.kind != "folder" or like_node.held is None:
            return Node("folder", mode=mode)
        marks = {leaf.path: leaf.mark for leaf in unpack_folder(like_node.data)}
        return folder_node(list(list_tree_items(folder, name, marks)), mode=mode, ref=like_node.held.ref)
    if kind == "link":
        target = folder.link_target(name)
        return Node(
            "link", target, None, like_node.held and BackupRef(like_node.held.ref, sha256_hex(target), 0)
        )
    return _held_file_node(folder, name, like_node) if kind == "file" else Node("folder")


def _held_file_node(folder: FolderHandle, name: str, like_node: Node) -> Node:
    ref = like_node.held.ref if like_node.held else ""
    try:
        fd = folder.open_file(name)
    except PermissionError:
        found = folder.stat(name)
        backup = BackupRef(ref, stat_mark(found), found.st_size)
        return Node("file", b"", stat.S_IMODE(found.st_mode), backup)
    try:
        found = os.fstat(fd)
        wanted = like_node.held.mark if like_node.held and like_node.kind == "file" else ""
        data = (
            read_bytes_at(fd, MAX_RECORDED_FILE_BYTES, 0)
            if found.st_size <= MAX_RECORDED_FILE_BYTES
            else b""
        )
        mark = (
            sha256_hex(data)
            if data and not wanted.startswith(_STAT_PREFIX)
            else file_mark(fd, found, like=wanted)
        )
        backup = BackupRef(ref, mark, found.st_size)
        if like_node.held and _may_be_alike(like_node.held, backup):
            backup = BackupRef(ref, mark, found.st_size, content=content_mark(fd))
        return Node("file", data, stat.S_IMODE(found.st_mode), backup)
    finally:
        os.close(fd)


def _may_be_alike(backup: BackupRef, backup_ref: BackupRef) -> bool:
    """Whether only the time of a file differs, not its size, so that its contents have to be compared."""
    return bool(backup.content) and backup.mark != backup_ref.mark and backup.bytes == backup_ref.bytes


def list_tree_items(folder: FolderHandle, name: str, marks: Mapping[str, str]) -> Iterator[FolderItem]:
    """List everything below a folder.

    A file's mark is of the same kind as in `marks`, by path; others get a size-and-time mark.
    """
    with folder.child(name) as top:
        for entry in walk_tree(top):
            yield tree_item(entry, like=marks.get(entry.path, _STAT_PREFIX))


def tree_item(entry: TreeEntry, *, like: str = _STAT_PREFIX) -> FolderItem:
    """Return the item for an entry found by a walk; a file's mark is of the same kind as `like`."""
    kind, mode = entry.kind, entry.mode
    if kind == "file":
        return FolderItem(entry.path, "file", mode, _leaf_mark(entry, like), entry.found.st_size)
    if kind == "folder":
        return FolderItem(entry.path, "folder", mode, "", 0)
    if kind == "link":
        target = os.fsdecode(entry.folder.link_target(entry.name))
        return FolderItem(entry.path, "link", 0, target, 0)
    return FolderItem(entry.path, "file", mode, "special", 0)


def _leaf_mark(entry: TreeEntry, like: str) -> str:
    if like.startswith(_STAT_PREFIX):
        return stat_mark(entry.found)
    with contextlib.suppress(OSError):
        flags = os.O_RDONLY | syscalls.OPEN_FLAGS | syscalls.NO_FOLLOW
        fd = os.open(entry.folder.name_for_os(entry.name), flags, dir_fd=entry.folder.fd)
        try:
            return file_mark(fd, entry.found, like=like)
        finally:
            os.close(fd)
    return "unreadable"
