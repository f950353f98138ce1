"""System calls that Python lacks (openat2, renameat2, file leases), complete reads and writes, mounts.

If a call is missing, these functions raise or report it, and callers work with reduced guarantees. macOS
has renameatx_np instead of renameat2, and Windows has its own calls for files that other programs have
open. They are called as documented, but we have not tested them on macOS and Windows.
"""

import contextlib
import errno
import functools
import os
import signal
import stat
import struct
import sys
from collections.abc import Callable, Collection
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

try:
    import fcntl
except ImportError:  # Windows: no leases, no flock
    fcntl = None  # type: ignore[assignment]
try:
    import ctypes
except ImportError:  # a Python built without libffi
    ctypes = None  # type: ignore[assignment]

PATH_ONLY: int = os.O_PATH | os.O_CLOEXEC if hasattr(os, "O_PATH") else 0
"""Flags to open a path without opening the file (O_PATH), so without side effects on pipes and devices."""
DIRECTORY: int = getattr(os, "O_DIRECTORY", 0)
NO_FOLLOW: int = getattr(os, "O_NOFOLLOW", 0)
OPEN_FLAGS: int = (
    getattr(os, "O_CLOEXEC", 0)
    | getattr(os, "O_NOCTTY", 0)
    | getattr(os, "O_NONBLOCK", 0)
    | getattr(os, "O_BINARY", 0)
    | getattr(os, "O_NOINHERIT", 0)
)
"""Flags for every open: close on exec, no controlling terminal, non-blocking, binary."""
HAS_DIR_FD: bool = {os.open, os.stat, os.rename, os.unlink, os.mkdir} <= os.supports_dir_fd
"""Whether the system can look up names relative to a directory fd (`dir_fd`)."""


def is_root() -> bool:
    """Whether this process runs as root and may change file owners; always false on Windows."""
    return hasattr(os, "geteuid") and os.geteuid() == 0


RESOLVE_NO_MAGICLINKS, RESOLVE_NO_SYMLINKS, RESOLVE_BENEATH = 0x02, 0x04, 0x08

_OPENAT2 = 437
_RENAMEAT2 = {"x86_64": 316, "aarch64": 276, "riscv64": 276}
_ON_MACOS: bool = sys.platform == "darwin"
_RENAME_NOREPLACE, _RENAME_EXCHANGE = (4, 2) if _ON_MACOS else (1, 2)
_AT_FDCWD = -2 if _ON_MACOS else -100
_F_SETSIG = 10  # F_SETSIG, which may be missing from the fcntl module of Python 3.11
_UNSUPPORTED_ERRNOS = {errno.ENOSYS, errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP}
_SHORTAGE_ERRNOS = {errno.EMFILE, errno.ENFILE, errno.ENOMEM}
"""Temporary errors that don't tell whether the kernel has the call, so the result must not be cached."""


class SyscallUnsupported(Exception):
    """Raised when this kernel or file system does not support the system call."""


@functools.cache
def _load_openat2() -> Callable[..., int] | None:
    """The C function for openat2, through ctypes; None on systems other than Linux."""
    if ctypes is None or not sys.platform.startswith("linux"):
        return None
    number, text = ctypes.c_long, ctypes.c_char_p
    opening = ctypes.CDLL(None, use_errno=True)["syscall"]
    opening.restype, opening.argtypes = number, (number, number, text, text, number)
    return functools.partial(opening, _OPENAT2)


@functools.cache
def _load_renameat2() -> Callable[..., int] | None:
    """The C function for renameat2, or renameatx_np on macOS, through ctypes; None if there is neither."""
    if ctypes is None or not (_ON_MACOS or sys.platform.startswith("linux")):
        return None
    number, text = ctypes.c_long, ctypes.c_char_p
    if _ON_MACOS:
        fd = ctypes.c_int
        renaming = ctypes.CDLL(None, use_errno=True)["renameatx_np"]
        renaming.restype, renaming.argtypes = fd, (fd, text, fd, text, ctypes.c_uint)
        return renaming
    call = _RENAMEAT2.get(os.uname().machine)
    if call is None:
        return None
    renaming = ctypes.CDLL(None, use_errno=True)["syscall"]
    renaming.restype, renaming.argtypes = number, (number, number, text, number, text, number)
    return functools.partial(renaming, call)


def _last_os_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))


@functools.lru_cache(maxsize=32)
def _open_how(flags: int, resolve: int) -> bytes:
    return struct.pack("QQQ", flags, 0, resolve)


@functools.cache
def has_openat2() -> bool:
    """Whether the kernel has openat2, which can resolve a path without leaving a folder."""
    try:
        os.close(openat2(_AT_FDCWD, "/", PATH_ONLY, 0))
    except SyscallUnsupported:
        return False
    except OSError as error:  # older container runtimes block the call with EPERM
        if error.errno in _SHORTAGE_ERRNOS:
            raise
        return False
    return True


@functools.cache
def can_reopen_path_handles() -> bool:
    """Whether an O_PATH descriptor can be reopened for reading through `/proc/self/fd`."""
    return bool(PATH_ONLY) and os.path.isdir("/proc/self/fd")


def openat2(folder: int, path: str, flags: int, resolve: int) -> int:
    """Open a path relative to a directory fd with openat2 and its `resolve` flags; returns a descriptor."""
    opening = _load_openat2()
    if opening is None:
        raise SyscallUnsupported
    how = _open_how(flags, resolve)
    fd = opening(folder, os.fsencode(path), how, len(how))
    if fd < 0:
        raise _last_os_error()
    return fd


def rename_exchange(folder: int | None, one: str, other: str) -> None:
    """Swap two names in a folder atomically (renameat2 with RENAME_EXCHANGE)."""
    _renameat2(folder, one, folder, other, _RENAME_EXCHANGE)


def rename_no_replace(folder: int | None, old: str, new: str, *, into: int | None = None) -> None:
    """Rename, optionally `into` another folder; fails with EEXIST if the new name exists."""
    _renameat2(folder, old, folder if into is None else into, new, _RENAME_NOREPLACE)


def _renameat2(folder: int | None, old: str, other: int | None, new: str, flags: int) -> None:
    renaming = _load_renameat2()
    if renaming is None:
        raise SyscallUnsupported
    at, to = (_AT_FDCWD if handle is None else handle for handle in (folder, other))
    if renaming(at, os.fsencode(old), to, os.fsencode(new), flags) == 0:
        return
    error = _last_os_error()
    if error.errno in _UNSUPPORTED_ERRNOS:
        raise SyscallUnsupported from error
    raise error


LeaseState = Literal["held", "writer", "unavailable"]
LeaseWaiters = Literal["nobody", "readers", "writers"]


def try_read_lease(fd: int) -> LeaseState:
    """Try once to take a read lease on a file: the kernel then blocks processes that open it for writing.

    Returns `writer` if the file is already open for writing, `unavailable` if there are no leases here.
    """
    return _set_lease(fd, "F_RDLCK")


def try_write_lease(fd: int) -> bool:
    """Try once to take a write lease on a file: the kernel then blocks every open, even for reading.

    False if the file is already open elsewhere, or leases are not available.
    """
    return _set_lease(fd, "F_WRLCK") == "held"


def _set_lease(fd: int, kind: str) -> LeaseState:
    if fcntl is None or not hasattr(fcntl, "F_SETLEASE"):
        return "unavailable"
    try:
        # SIGURG is ignored by default; the default lease signal, SIGIO, would kill the process.
        fcntl.fcntl(fd, _F_SETSIG, signal.SIGURG)
        fcntl.fcntl(fd, fcntl.F_SETLEASE, getattr(fcntl, kind))
    except OSError as error:
        # Not the owner and not privileged, or no leases on this file system: callers compare bytes instead.
        return "writer" if error.errno == errno.EAGAIN else "unavailable"
    return "held"


def is_lease_unbroken(fd: int) -> bool:
    """Whether no process has tried to open the file for writing since the lease was taken."""
    return bool(fcntl.fcntl(fd, fcntl.F_GETLEASE) == fcntl.F_RDLCK)


def lease_waiters(fd: int) -> LeaseWaiters:
    """Which processes, if any, are waiting to open a file on which we have a write lease."""
    state = fcntl.fcntl(fd, fcntl.F_GETLEASE)
    if state == fcntl.F_WRLCK:
        return "nobody"
    return "readers" if state == fcntl.F_RDLCK else "writers"


def end_lease(fd: int) -> None:
    """Release a file lease. Closing is not enough: a forked child's copy of the fd keeps the lease."""
    fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_UNLCK)


def read_bytes_at(fd: int, size: int, start: int) -> bytes:
    """Read `size` bytes of an open file from offset `start`; fewer only at the end of the file."""
    found = _read_some(fd, size, start)
    while len(found) < size and (more := _read_some(fd, size - len(found), start + len(found))):
        found += more
    return found


def _read_some(fd: int, size: int, start: int) -> bytes:
    if hasattr(os, "pread"):
        return os.pread(fd, size, start)
    os.lseek(fd, start, os.SEEK_SET)
    return os.read(fd, size)


def write_all(fd: int, data: bytes) -> None:
    """Write all bytes at the current position of an open file."""
    done = os.write(fd, data)
    while done < len(data):
        done += os.write(fd, memoryview(data)[done:])


def copy_xattrs(source: int | str, target: int | str, *, but: Collection[str] = ()) -> None:
    """Copy the extended attributes that the system lets us copy, except those in `but`."""
    with contextlib.suppress(OSError, AttributeError):  # only Linux has these calls
        for name in os.listxattr(source):
            if name not in but:
                with contextlib.suppress(OSError):
                    os.setxattr(target, name, os.getxattr(source, name))


SMALL_FILE_BYTES = 64 << 10
SETTINGS_BYTES = 1 << 20
"""The largest settings file that is read, in bytes."""


def read_small_text(
    path: str | os.PathLike[str], most: int = SMALL_FILE_BYTES, *, links: bool = False
) -> str:
    """Read a file's text; empty if it is not a regular file, exceeds `most` bytes or is a symlink.

    With `links`, symlinks are followed.
    """
    try:
        fd = os.open(path, os.O_RDONLY | OPEN_FLAGS | (0 if links else NO_FOLLOW))
    except (OSError, ValueError):
        return ""
    try:
        facts = os.fstat(fd)
        plain = stat.S_ISREG(facts.st_mode) and facts.st_size <= most
        return read_bytes_at(fd, facts.st_size, 0).decode("utf-8", "replace") if plain else ""
    finally:
        os.close(fd)


NETWORK_FILESYSTEMS = ("nfs", "cifs", "smb", "fuse", "9p", "afs", "ceph", "lustre", "gluster", "virtiofs")


def is_local_filesystem(folder: str | Path) -> bool:
    """Whether a folder is on a local file system; False if the type is unknown."""
    kind = filesystem_type(folder)
    return kind is not None and not kind.startswith(NETWORK_FILESYSTEMS)


def filesystem_type(folder: str | Path) -> str | None:
    """The type of a folder's file system, such as `ext4`; None if it can't be determined."""
    try:
        device = os.stat(folder).st_dev
        rows = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return None
    wanted = f"{os.major(device)}:{os.minor(device)}"
    mounts = [(row.split(" ")[2], row.split(" ")[4], row.partition(" - ")[2].split(" ")[0]) for row in rows]
    kinds = [kind for number, _, kind in mounts if number == wanted]
    if not kinds:
        # btrfs subvolumes have device numbers that mountinfo does not list: use the innermost mount
        # instead.
        above = [(len(place), kind) for _, place, kind in mounts if Path(folder).is_relative_to(place)]
        kinds = [kind for _, kind in sorted(above, key=lambda each: each[0])]
    return kinds[-1] if kinds else None


_GENERIC_READ = 0x80000000
_SHARE_READ_WRITE_DELETE = 0x1 | 0x2 | 0x4
_OPEN_EXISTING = 3
_OPEN_REPARSE_POINT = 0x00200000
"""Opens a symlink itself, not its target."""
_IGNORE_MERGE_ERRORS = 0x2


def _kernel32() -> Any:
    kernel32 = vars(ctypes)["WinDLL"]("kernel32", use_last_error=True)
    text, number, pointer = ctypes.c_wchar_p, ctypes.c_uint32, ctypes.c_void_p
    kernel32.CreateFileW.argtypes = (text, number, number, pointer, number, number, pointer)
    kernel32.CreateFileW.restype = pointer
    kernel32.ReplaceFileW.argtypes = (text, text, text, number, pointer, pointer)
    kernel32.ReplaceFileW.restype = ctypes.c_int
    return kernel32


def _last_error(*paths: str) -> OSError:
    windows: Any = vars(ctypes)
    error: OSError = windows["WinError"](windows["get_last_error"]())
    error.filename, error.filename2 = (*paths, None)[:2]
    return error


def open_replaceable(path: str) -> int:
    """Open a file for reading while others may still rename, replace or delete it; returns a descriptor."""
    handle = _kernel32().CreateFileW(
        path, _GENERIC_READ, _SHARE_READ_WRITE_DELETE, None, _OPEN_EXISTING, _OPEN_REPARSE_POINT, None
    )
    if handle in {None, ctypes.c_void_p(-1).value}:
        raise _last_error(path)
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
    fd: int = import_module("msvcrt").open_osfhandle(handle, flags)
    return fd


def replace_keeping_old(name: str, new: str, kept: str) -> None:
    """Rename `new` to `name` and the old file to `kept`; the ACLs stay with `name`."""
    if not _kernel32().ReplaceFileW(name, new, kept, _IGNORE_MERGE_ERRORS, None, None):
        raise _last_error(name, new)
