"""System calls that fail in the middle of an operation: a few of those that were wrong once; the bench has all."""

import os
import platform
import sys

import pytest

from bench.faults import attempt, record
from bench.faults.failing_syscalls import ARM, DISARM, Fault, hold_calls, mark, run_with_fault
from bench.faults.operations import OPERATIONS

pytestmark = [
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="machine: not Linux"),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="machine: not x86-64"),
    pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() != 0, reason="machine: not root"),
]


def written(folder, fault):
    """What a program is told that writes twice, and what is in its file then."""

    def action():
        fd = os.open(folder / "f", os.O_CREAT | os.O_RDWR)
        hold_calls()
        told = []
        mark(ARM)
        for data in (b"first ", b"second"):
            try:
                told.append(os.write(fd, data))
            except OSError as error:
                told.append(os.strerror(error.errno))
        mark(DISARM)
        return repr((told, os.pread(fd, 100, 0))).encode()

    return eval(run_with_fault(action, os.fspath(folder), fault).report)


def test_a_call_of_a_child_fails_and_the_next_one_does_not(tmp_path):
    assert written(tmp_path, Fault(0, "ENOSPC")) == (["No space left on device", 6], b"second")


def test_a_call_can_fail_for_good(tmp_path):
    refused = "Input/output error"
    assert written(tmp_path, Fault(0, "EIO", stays=True)) == ([refused, refused], b"")


def test_a_half_of_a_write_is_truly_written(tmp_path):
    assert written(tmp_path, Fault(0, "short")) == ([3, 6], b"firsecond")


def nth(calls, name, path, number=0):
    """The index of a call by its name and the end of its path."""
    return [n for n, (called, at, _) in enumerate(calls) if called == name and path in at][number]


@pytest.mark.parametrize(
    ("operation", "what", "stays", "name", "path", "number"),
    [
        # The end of the record can't be written: the next call completes it, and the change can be undone.
        ("overwrite", "EIO", False, "pwrite64", "-wal", -8),
        # Neither can what was begun be taken back: the next call does.
        ("overwrite", "EIO", True, "renameat2", "", 0),
        ("patch four files", "ENOSPC", True, "renameat2", "", -1),
        # A checkpoint that stops halfway leaves a file that is shorter than it says: its log has the rest.
        ("append to the journal", "EIO", False, "pread64", "-wal", 2),
        # SQLite opens what it can't write to for reading, and goes on so.
        ("open a new journal", "EMFILE", False, "openat", "journal.sqlite", 1),
        # The parent is unmounted when its new layer can't be made, and a half-made fork has its name.
        ("fork a layer", "EIO", False, "mkdir", "parent/upper", 0),
        ("fork a layer", "ENOSPC", True, "rename", "fork/workspace.partial", 0),
        # A layer that can't be read is no layer without changes.
        ("merge a fork", "EIO", False, "newfstatat", "fork/upper", 0),
        # What the tool could not expect is the machine's state, and no bug.
        ("land a command", "EMFILE", False, "openat", "/upper", 0),
    ],
)
def test_after_a_fault_all_is_old_or_new_and_goes_on(tmp_path, operation, what, stays, name, path, number):
    chosen = next(each for each in OPERATIONS if each.name == operation)
    recorded = record(chosen, tmp_path)
    fault = Fault(nth(recorded.observed.calls, name, path, number), what, stays=stays)
    happened, problems = attempt(chosen, recorded, fault, tmp_path)
    assert happened
    assert not problems
