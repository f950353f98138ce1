"""System calls that fail in the middle of an operation: a few of those that were wrong once; the bench has all."""

import argparse
import os
import platform
import sys

import pytest

from bench.faults import attempt, record, run
from bench.faults.failing_syscalls import ARM, DISARM, Fault, hold_calls, mark, run_with_fault
from bench.faults.operations import OPERATIONS
from bench.faults.power_cut import SCENARIOS, cuts, harm_of
from bench.faults.power_cut import record as record_log

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


def nth(calls, name, path, number):
    """The index of a call by its name and a part of its path."""
    return [n for n, (called, at, _) in enumerate(calls) if called == name and path in at][number]


def attempted(tmp_path, operation, what, *call, stays=False, after=()):
    """What is wrong after an operation in which a call has failed, the first such one after another call."""
    chosen = next(each for each in OPERATIONS if each.name == operation)
    recorded = record(chosen, tmp_path)
    calls = recorded.observed.calls
    first = nth(calls, *after, -1) if after else 0
    fault = Fault(first + nth(calls[first:], *call), what, stays=stays)
    happened, problems = attempt(chosen, recorded, fault, tmp_path)
    assert happened
    return problems


def test_a_record_that_could_not_be_completed_is_completed_by_the_next_call(tmp_path):
    write = ("pwrite64", "-wal", 0)
    assert not attempted(tmp_path, "overwrite", "EIO", *write, after=("unlinkat", "/work/.handtools-"))


@pytest.mark.parametrize(
    ("operation", "what", "stays", "name", "path", "number"),
    [
        # What was begun can't be taken back while the disk is full: the next call does.
        ("patch four files", "ENOSPC", True, "renameat2", "", -1),
        # A large file that was complete but for its time is ours, and is not said to be another program's.
        ("edit a large file", "EIO", True, "utimensat", "/work/.handtools-", 0),
        # A file that a command wrote is read whole, also where the system gives half of it first.
        ("land a command", "short", False, "pread64", "upper/a.txt", 0),
        ("land a command", "short", False, "pread64", "upper/n/new.txt", 0),
        # A checkpoint that stops halfway leaves a file that is shorter than it says: its log has the rest.
        ("append to the journal", "EIO", False, "pread64", "-wal", 2),
        # A read that the disk refuses makes no journal a damaged one.
        ("open after a crash", "EIO", False, "pread64", "/state/journal.sqlite", 4),
        ("open after a crash", "EIO", True, "pread64", "/state/journal.sqlite", 4),
        # The parent is unmounted when its new layer can't be made, and a half-made fork has its name.
        ("fork a layer", "EIO", False, "mkdir", "parent/upper", 0),
        ("fork a layer", "ENOSPC", True, "rename", "fork/workspace.partial", 0),
        # A layer that can't be read is no layer without changes.
        ("merge a fork", "EIO", False, "newfstatat", "fork/upper", 0),
    ],
)
def test_after_a_fault_all_is_old_or_new_and_goes_on(tmp_path, operation, what, stays, name, path, number):
    assert not attempted(tmp_path, operation, what, name, path, number, stays=stays)


def test_a_run_that_goes_on_does_not_try_a_point_again(tmp_path):
    given = argparse.Namespace(
        quick=False,
        operation=["list"],
        points=1,
        point=None,
        seed=1,
        told=False,
        tried=tmp_path / "tried",
        power_cut=False,
    )

    def points():
        return {figure.name: figure.value for figure in run(given)}["injection points"]

    assert points() == 1
    rows = given.tried.read_text()
    assert len(rows.splitlines()) == 1
    assert points() == 1
    assert given.tried.read_text() == rows


def test_a_power_cut_loses_neither_an_answered_change_nor_its_undo(tmp_path):
    [edit] = [each for each in SCENARIOS if each.name == "edit"]
    recorded = record_log(edit, tmp_path / "place")
    answered = [cut for cut in cuts(recorded.log) if cut.answered]
    harm = [harm_of(cut, edit, recorded, tmp_path / "place") for cut in answered[:12]]
    assert harm == [[]] * 12


def test_a_second_handle_fails_only_for_too_many(tmp_path):
    def action():
        fd = os.open(tmp_path, os.O_RDONLY)
        hold_calls()
        mark(ARM)
        try:
            os.dup(fd)
        except OSError as error:
            return error.strerror.encode()
        return b"made"

    assert run_with_fault(action, os.fspath(tmp_path), Fault(0, "EMFILE")).report == b"Too many open files"
    assert run_with_fault(action, os.fspath(tmp_path), Fault(0, "EIO")).report == b"made"
