"""Windows job objects: kill a process together with everything it started.

Written from Microsoft's documentation; we have not run it on Windows.
"""

import ctypes
from typing import Any

_EXTENDED_LIMIT_INFORMATION = 9
_KILL_ON_JOB_CLOSE = 0x2000
_SIZE, _COUNT = ctypes.c_size_t, ctypes.c_uint32


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", _COUNT),
        ("MinimumWorkingSetSize", _SIZE),
        ("MaximumWorkingSetSize", _SIZE),
        ("ActiveProcessLimit", _COUNT),
        ("Affinity", _SIZE),
        ("PriorityClass", _COUNT),
        ("SchedulingClass", _COUNT),
    )


class ExtendedLimits(ctypes.Structure):
    """JOBOBJECT_EXTENDED_LIMIT_INFORMATION."""

    _fields_ = (
        ("BasicLimitInformation", _BasicLimits),
        ("IoInfo", ctypes.c_uint64 * 6),
        ("ProcessMemoryLimit", _SIZE),
        ("JobMemoryLimit", _SIZE),
        ("PeakProcessMemoryUsed", _SIZE),
        ("PeakJobMemoryUsed", _SIZE),
    )


class JobObject:
    """A job object. Processes that a process in the job starts join the job and are killed with it."""

    def __init__(self) -> None:
        self._kernel32 = _kernel32()
        self._handle = self._kernel32.CreateJobObjectW(None, None)
        if not self._handle:
            raise _last_error()
        limits = ExtendedLimits()
        limits.BasicLimitInformation.LimitFlags = _KILL_ON_JOB_CLOSE
        if not self._kernel32.SetInformationJobObject(
            self._handle, _EXTENDED_LIMIT_INFORMATION, ctypes.byref(limits), ctypes.sizeof(limits)
        ):
            error = _last_error()
            self.close()
            raise error

    def add(self, process_handle: int) -> None:
        """Add a process to the job by its handle."""
        if not self._kernel32.AssignProcessToJobObject(self._handle, process_handle):
            raise _last_error()

    def terminate(self) -> None:
        """Kill every process in the job."""
        if not self._kernel32.TerminateJobObject(self._handle, 1):
            raise _last_error()

    def close(self) -> None:
        """Close the job, which kills the processes still in it."""
        if self._handle:
            self._kernel32.CloseHandle(self._handle)
            self._handle = None


def _kernel32() -> Any:
    kernel32 = vars(ctypes)["WinDLL"]("kernel32", use_last_error=True)
    handle, number = ctypes.c_void_p, ctypes.c_uint32
    kernel32.CreateJobObjectW.argtypes, kernel32.CreateJobObjectW.restype = (
        (handle, ctypes.c_wchar_p),
        handle,
    )
    kernel32.SetInformationJobObject.argtypes = (handle, ctypes.c_int, handle, number)
    kernel32.AssignProcessToJobObject.argtypes = (handle, handle)
    kernel32.TerminateJobObject.argtypes = (handle, ctypes.c_uint)
    kernel32.CloseHandle.argtypes = (handle,)
    return kernel32


def _last_error() -> OSError:
    windows: Any = vars(ctypes)
    error: OSError = windows["WinError"](windows["get_last_error"]())
    return error
