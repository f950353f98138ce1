"""Scripts and what they are made of, as told in `scripts.txt`."""

import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from handtools.text.shell import read_script

CASES = Path(__file__).with_name("scripts.txt")
FEWEST = 150


@dataclass
class Case:
    """One story of the file."""

    name: str
    script: list[str] = field(default_factory=list)
    parts: list[tuple[str, ...]] = field(default_factory=list)
    reason: str | None = None
    found: list[tuple[str, ...]] = field(default_factory=list)
    dangers: list[str] = field(default_factory=list)


def read_cases() -> list[Case]:
    cases: list[Case] = []
    for line in CASES.read_text("utf-8").splitlines():
        mark, _, rest = line.partition(" ")
        rest = re.sub(r"\\x([0-9a-f]{2})", lambda m: chr(int(m[1], 16)), rest)
        if mark == "##":
            cases.append(Case(rest))
        elif mark in {"$", ">"}:
            cases[-1].script.append(rest)
        elif mark == "=":
            cases[-1].parts.append(tuple(shlex.split(rest)))
        elif mark == "!":
            cases[-1].reason = rest
        elif mark == "?":
            cases[-1].found.append(tuple(shlex.split(rest)))
        elif mark == "~":
            cases[-1].dangers.append(rest)
        else:
            assert not line or line.startswith("#"), f"no such line: {line!r}"
    return cases


ALL = read_cases()


def test_there_are_enough_of_them_and_each_has_its_own_name():
    assert len(ALL) >= FEWEST
    assert len({case.name for case in ALL}) == len(ALL)
    assert all(case.script and bool(case.parts) != (case.reason is not None) for case in ALL)


@pytest.mark.parametrize("case", ALL, ids=lambda case: case.name)
def test_a_script_is_what_its_case_says(case):
    script = read_script("\n".join(case.script))
    if case.reason is None:
        assert (list(script.parts), script.opaque) == (case.parts, "")
    else:
        assert script.parts == ()
        assert script.opaque
        assert case.reason in script.opaque
    assert set(case.found) <= set(script.found)
    assert set(case.dangers) <= set(script.dangers)
