"""Windows calls for files that other programs have open: open a file replaceably, and replace it.

They are called as documented, but we have not tested them on Windows.
"""

import ctypes
import os
from importlib import import_module
from typing import Any

_GENERIC_READ = 0x80000000
_SHARE_READ_WRITE_DELETE = 0x1 | 0x2 | 0x4
_OPEN_EXISTING = 3
_OPEN_REPARSE_POINT = 0x00200000
"""Opens a symlink itself, not its target."""
_INVALID_HANDLE = ctypes.c_void_p(-1).value
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
    if handle in {None, _INVALID_HANDLE}:
        raise _last_error(path)
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
    fd: int = import_module("msvcrt").open_osfhandle(handle, flags)
    return fd


def replace_keeping_old(name: str, new: str, kept: str) -> None:
    """Rename `new` to `name` and the old file to `kept`; the ACLs stay with `name`."""
    if not _kernel32().ReplaceFileW(name, new, kept, _IGNORE_MERGE_ERRORS, None, None):
        raise _last_error(name, new)
