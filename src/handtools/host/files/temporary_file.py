"""Temporary files: a new version is written next to its target, then replaces the target."""

import contextlib
import os
import re
import secrets
import stat

from handtools.core.changes import Node
from handtools.host.files.change_detection import stat_mark_time
from handtools.host.files.folder_handle import FolderHandle
from handtools.host.files.kernel_leases import LeasedFile
from handtools.host.files.syscalls import copy_xattrs, is_root, write_all

TEMPORARY_PREFIX = ".handtools-"
_TOKEN_BYTES = 12
_TEMPORARY = re.compile(rf"{re.escape(TEMPORARY_PREFIX)}[0-9a-f]{{{2 * _TOKEN_BYTES}}}")
_MAX_NAME_BYTES = 255
_SECOND_NS = 1_000_000_000
_MAX_SECONDS_AHEAD = 2
_PRIVILEGE = stat.S_ISUID | stat.S_ISGID
_UNCOPIED_ATTRIBUTES = {"security.capability"}  # a privilege granted to the old bytes, not to the new ones


def temporary_name() -> str:
    """Return a random name for a temporary file next to its target."""
    return TEMPORARY_PREFIX + secrets.token_hex(_TOKEN_BYTES)


def spare_name(temporary: str) -> str:
    """Return the name that the old file has during a swap in several renames, to find it after a crash."""
    return _other_name(temporary, 8)


def unfinished_name(temporary: str) -> str:
    """Return the name that a large new file has until it is complete. After a crash, it can be deleted."""
    return _other_name(temporary, 4)


def _other_name(temporary: str, bit: int) -> str:
    first, rest = temporary[len(TEMPORARY_PREFIX)], temporary[len(TEMPORARY_PREFIX) + 1 :]
    return f"{TEMPORARY_PREFIX}{int(first, 16) ^ bit:x}{rest}"


def is_temporary_name(name: str) -> bool:
    """Whether a file name has the form of our temporary names."""
    return _TEMPORARY.fullmatch(name) is not None


def conflict_copy_name(name: str) -> str:
    """Return a visible name next to the target for keeping another program's bytes after a conflict."""
    ending = f".handtools-recovered-{secrets.token_hex(3)}"
    while len(os.fsencode(name)) > _MAX_NAME_BYTES - len(ending):
        name = name[:-1]
    return name + ending


def write_node_under_temporary_name(
    folder: FolderHandle, name: str, node: Node, leased: LeasedFile | None = None, *, synced: bool = True
) -> os.stat_result:
    """Create a file, symlink or folder with the content of `node`; returns its stat result.

    A file gets the owner and attributes of `leased`, the file that it will replace. Entries that root creates get
    the owner of their folder, who could not change them otherwise.
    """
    if node.kind == "file":
        return _create_temporary_file(folder, name, node, leased, synced=synced)
    if node.kind == "link":
        folder.create_link(name, node.data)
    else:
        folder.create_folder(name)
    if is_root():
        folder.set_owner(name, folder.own_stat())
    if node.kind == "folder" and node.mode is not None:
        folder.set_mode(name, node.mode)
    return folder.stat(name)


def _create_temporary_file(
    folder: FolderHandle, name: str, node: Node, leased: LeasedFile | None, *, synced: bool
) -> os.stat_result:
    writing = unfinished_name(name) if node.held else name
    # A new file follows the umask, as in any editor. A replacement is private until it has the old file's
    # mode.
    fd = folder.create_file(writing, 0o666 if leased is None else 0o600)
    try:
        made = os.fstat(fd)
        write_all(fd, node.data)
        if leased is None and is_root():
            _copy_owner(folder.own_stat(), made, fd)
        if leased is not None:
            _copy_metadata_to(leased, fd, made, node.mode)
        elif node.mode is not None:
            _set_mode(fd, node.mode & ~_PRIVILEGE)
        if node.held:
            _set_time(fd, stat_mark_time(node.held.mark))
        elif leased is not None and len(node.data) == leased.found.st_size:
            _set_later_second(fd, leased.found)
        if synced:
            os.fsync(fd)
    finally:
        os.close(fd)
    if writing != name:
        folder.move_new(writing, name)
    return made


def copy_metadata(folder: FolderHandle, name: str, leased: LeasedFile) -> None:
    """Give a file the owner, mode and extended attributes of the file that it replaces."""
    fd = folder.open_file(name)
    try:
        _copy_metadata_to(leased, fd, os.fstat(fd), None)
    finally:
        os.close(fd)


def _copy_metadata_to(leased: LeasedFile, fd: int, made: os.stat_result, mode: int | None) -> None:
    was = leased.found
    kept = _copy_owner(was, made, fd)
    if leased.fd is not None:
        copy_xattrs(leased.fd, fd, but=_UNCOPIED_ATTRIBUTES)
    privilege = was.st_mode & _PRIVILEGE if kept else 0
    wanted = stat.S_IMODE(was.st_mode) if mode is None else mode
    # Last, because chown clears the setuid and setgid bits. Never set one that the old file lacked.
    _set_mode(fd, wanted & ~_PRIVILEGE | wanted & privilege)


def _copy_owner(was: os.stat_result, now: os.stat_result, fd: int) -> bool:
    if (was.st_uid, was.st_gid) == (now.st_uid, now.st_gid):
        return True
    if not hasattr(os, "fchown"):
        return False
    try:
        os.fchown(fd, was.st_uid, was.st_gid)
    except OSError:
        with contextlib.suppress(OSError):
            os.fchown(fd, -1, was.st_gid)
        return False
    return True


def _set_time(fd: int, time_ns: int) -> None:
    # Last, because every write updates the time, by which the journal identifies the file.
    if os.utime in os.supports_fd:
        os.utime(fd, ns=(time_ns, time_ns))


def _set_later_second(fd: int, was: os.stat_result) -> None:
    """Set a file's mtime at least one second after the replaced file's, unless that is far in the future.

    Otherwise Python could run old code: it reuses the cached bytecode of a source file if the size and the
    second of the mtime are the same.
    """
    now = os.fstat(fd).st_mtime_ns // _SECOND_NS
    before = was.st_mtime_ns // _SECOND_NS
    if now <= before < now + _MAX_SECONDS_AHEAD:
        _set_time(fd, (before + 1) * _SECOND_NS)


def _set_mode(fd: int, mode: int) -> None:
    if hasattr(os, "fchmod"):
        os.fchmod(fd, mode)
