"""`python -m bench all` says of each goal what a bench said of it, and of nothing else that it holds."""

import subprocess
import sys
from pathlib import Path

import pytest

from bench.all_benches import Outcome, exit_code, read_outcome
from bench.figures import Figure, NotRun

MET = Figure(name="edits lost", value=0, unit="edits", goal=0)
LOST = Figure(name="edits lost", value=1, unit="edits", goal=0)
SLOW = Figure(name="a read", value=9, unit="ms", baseline=1, goal=3)
SHOWN = Figure(name="a start", value=9, unit="ms")
ABSENT = NotRun("calls on Ray", "Ray is not installed here")


def outcome(*said: Figure | NotRun, code: int = 0, complaint: str = "") -> Outcome:
    return read_outcome("core", "".join(f"{each.as_json()}\n" for each in said), code, complaint)


def test_goals_are_met_missed_or_not_measured():
    found = outcome(MET, SLOW, SHOWN, ABSENT, code=1)
    names = [
        [each["name"] for each in part]
        for part in (found.met, found.missed, found.without_goal, found.not_run)
    ]
    assert names == [["edits lost"], ["a read"], ["a start"], ["calls on Ray"]]
    assert not found.failure


def test_a_miss_is_told_with_what_the_bench_said_about_it():
    complaint = "core: the edit of a.py was lost\nraylet: noise\n"
    assert outcome(LOST, code=1, complaint=complaint).remarks == ["core: the edit of a.py was lost"]
    assert outcome(MET, complaint=complaint).remarks == []


@pytest.mark.parametrize(
    ("said", "code"), [([], 0), ([MET], 1), ([MET], 2), ([MET], -9), ([LOST], 0), ([LOST, MET], -11)]
)
def test_a_bench_that_broke_off_has_failed_whatever_it_had_measured(said, code):
    found = outcome(*said, code=code, complaint="Traceback\nKeyError: 'x'\n")
    assert found.failure == f"ended with {code}: KeyError: 'x'"
    assert exit_code([found]) == 1


def test_only_times_are_measured_again():
    assert outcome(SLOW, MET, code=1).may_be_noise
    assert not outcome(SLOW, LOST, code=1).may_be_noise
    assert not outcome(MET).may_be_noise
    assert not outcome(SLOW, code=-9).may_be_noise


def test_what_was_not_run_is_no_pass_and_no_miss():
    assert exit_code([outcome(MET)]) == 0
    assert exit_code([outcome(MET), outcome(MET, ABSENT)]) == 3
    assert exit_code([outcome(MET, ABSENT), outcome(LOST, code=1)]) == 1


def test_a_real_bench_is_run_and_told_in_one_object():
    root = Path(__file__).parents[3]
    line = [sys.executable, "-m", "bench", "all", "--json", "--only", "guidance"]
    done = subprocess.run(line, cwd=root, capture_output=True, text=True, timeout=250)
    assert '"bench": "guidance"' in done.stdout
    assert '"failed": 0' in done.stdout
    assert done.stderr.startswith("guidance ")
