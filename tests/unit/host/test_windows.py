"""What Windows is told, by its documented calls. Nobody of us has Windows: its library is one that writes down."""

import ctypes
import os
import subprocess
import sys

import pytest

from handtools.host import windows_jobs
from handtools.host.files import syscalls
from handtools.host.files.folder_handle import FolderHandle


class Library:
    """Stands in for kernel32: each call is written down and succeeds, unless it is named in `fails`."""

    def __init__(self, fails=()):
        self.told, self._functions, self._fails = [], {}, fails

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return self._functions.setdefault(name, self._function(name))

    def _function(self, name):
        def call(*values):
            self.told.append((name, *values))
            return 0 if name in self._fails else 7

        return call


@pytest.fixture
def windows(monkeypatch):
    """Python's names for Windows, over a library that writes down what it is told."""

    def prepare(fails=()):
        library = Library(fails)
        monkeypatch.setattr(ctypes, "WinDLL", lambda name, use_last_error: library, raising=False)
        monkeypatch.setattr(ctypes, "get_last_error", lambda: 32, raising=False)
        monkeypatch.setattr(
            ctypes, "WinError", lambda code: PermissionError(13, f"error {code}"), raising=False
        )
        return library

    return prepare


def test_a_file_is_replaced_in_one_call_that_keeps_the_old_one(windows):
    library = windows()
    syscalls.replace_keeping_old("a", "new", "old")
    assert library.told == [("ReplaceFileW", "a", "new", "old", 2, None, None)]


def test_a_replacement_that_windows_refuses_is_an_error_with_the_name(windows):
    windows({"ReplaceFileW"})
    with pytest.raises(PermissionError, match="error 32") as refusal:
        syscalls.replace_keeping_old("a", "new", "old")
    assert refusal.value.filename == "a"


def test_an_exchange_on_windows_leaves_the_old_file_at_the_temporary_name(windows, monkeypatch, tmp_path):
    library = windows()
    for name, data in {"a": b"old", "t": b"new"}.items():
        (tmp_path / name).write_bytes(data)

    def replace(name, new, kept, *_):
        os.rename(name, kept)
        os.rename(new, name)
        return 1

    library._functions["ReplaceFileW"] = replace
    monkeypatch.setattr(os, "name", "nt")
    folder = FolderHandle(None, str(tmp_path))
    folder._exchange_by_link(*(str(tmp_path / name) for name in ("a", "t", "s")))
    monkeypatch.undo()
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == {"a": b"new", "t": b"old"}


def test_a_job_ends_all_its_processes_when_it_is_closed(windows):
    library = windows()
    job = windows_jobs.JobObject()
    (_, handle, kind, limits, size) = library.told[1]
    given = limits._obj
    assert (handle, kind) == (7, 9)
    assert given.BasicLimitInformation.LimitFlags == 0x2000
    assert size == ctypes.sizeof(given) == (144 if ctypes.sizeof(ctypes.c_void_p) == 8 else 112)
    job.add(5)
    job.terminate()
    job.close()
    job.close()
    assert library.told[2:] == [
        ("AssignProcessToJobObject", 7, 5),
        ("TerminateJobObject", 7, 1),
        ("CloseHandle", 7),
    ]


def test_a_job_that_windows_refuses_is_an_error(windows):
    windows({"CreateJobObjectW"})
    with pytest.raises(PermissionError):
        windows_jobs.JobObject()


LOCKS = """
import os, sys, tempfile, types
import anyio, anyio._backends._asyncio
sys.modules["fcntl"] = None
held = {}

def locking(fd, mode, size):
    assert size == 1 and os.lseek(fd, 0, os.SEEK_CUR) == 0
    found = os.fstat(fd)
    key = found.st_dev, found.st_ino
    if mode == 0:
        assert held.pop(key) == fd
    elif key in held:
        raise PermissionError(13, "Permission denied")
    else:
        held[key] = fd

sys.modules["msvcrt"] = types.SimpleNamespace(locking=locking, LK_NBLCK=2, LK_UNLCK=0)
from handtools.core.errors import Busy
from handtools.host.files.file_locks import FileLocks, try_lock, unlock

async def run():
    folder = tempfile.mkdtemp()
    async with FileLocks(folder).hold(["a", "b"], timeout=0):
        assert len(held) == 2
        try:
            async with FileLocks(folder).hold(["a"], timeout=0.01):
                raise SystemExit("not busy")
        except Busy:
            pass
    lock = try_lock(folder + "/x")
    assert try_lock(folder + "/x") is None
    unlock(lock)
    assert not held

anyio.run(run)
print("works")
"""


def test_locks_on_windows_exclude_other_handles():
    done = subprocess.run(
        [sys.executable, "-c", LOCKS], capture_output=True, text=True, timeout=60, check=False
    )
    assert done.stdout == "works\n", done.stderr
