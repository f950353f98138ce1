"""Calls of Windows for files that others have open: open one so that it can be replaced, and replace one.

As documented, and not run by us on Windows. ADR 261.
"""

import ctypes
import os
from importlib import import_module
from typing import Any

_GENERIC_READ = 0x80000000
_SHARE_READ_WRITE_DELETE = 0x1 | 0x2 | 0x4
_OPEN_EXISTING = 3
_OPEN_REPARSE_POINT = 0x00200000
"""A link is opened itself, not what it leads to."""
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
    """Open a file for reading so that others may rename, replace or delete it meanwhile; returns a descriptor."""
    handle = _kernel32().CreateFileW(
        path, _GENERIC_READ, _SHARE_READ_WRITE_DELETE, None, _OPEN_EXISTING, _OPEN_REPARSE_POINT, None
    )
    if handle in {None, _INVALID_HANDLE}:
        raise _last_error(path)
    flags = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOINHERIT", 0)
    fd: int = import_module("msvcrt").open_osfhandle(handle, flags)
    return fd


def replace_keeping_old(name: str, new: str, kept: str) -> None:
    """Give the file `new` the name of another one, then called `kept`; access lists stay with the name."""
    if not _kernel32().ReplaceFileW(name, new, kept, _IGNORE_MERGE_ERRORS, None, None):
        raise _last_error(name, new)
