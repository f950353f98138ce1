"""The generator of the edit benchmark: its cases are what an author of the file could mean."""

import pytest

from bench.editbench.edits import unit_of
from bench.editbench.generating import generate


@pytest.mark.parametrize(
    ("lines", "indent", "unit"),
    [
        (["a:", "  b:", "    c"], "    ", "  "),
        (["a:", "\tb:", "\t\tc"], "", "\t"),
        (["a:", "    b", "\tc", "a:", "\tb"], "    ", "    "),
        (["a", "b"], "", "    "),
        (["a", "\tb"], "\t", "\t"),
    ],
)
def test_a_new_level_is_as_wide_as_those_of_the_file(lines, indent, unit):
    assert unit_of(tuple(lines), tuple(lines[:1]), indent) == unit


def test_a_new_level_is_as_wide_as_those_around_it_and_not_as_others_far_away():
    lines = (*["a:", "  b"] * 50, *["plain"] * 200, "c:", "    d")
    assert unit_of(lines, ("    d",), "    ") == "    "


@pytest.fixture(scope="module")
def cases():
    return list(generate(5, reduced=True))


def _pieces(case):
    mine, marks = case.old.split("\n"), set(case.old.split("\n")) & set(case.new.split("\n"))
    mark = next(line for line in mine if line in marks and line not in case.content.decode().split("\n"))
    at = mine.index(mark)
    return mine[:at], mine[at + 1 :]


def test_what_has_a_gap_and_must_be_refused_fits_two_places(cases):
    twins = [case for case in cases if case.family == "elision_twin"]
    assert twins
    for case in twins:
        above, below = ("\n".join(piece) for piece in _pieces(case))
        content = case.content.decode()
        assert content.count(above) > 1 or content.count(below) > 1, case.id


def test_every_case_to_apply_has_a_right_result_other_than_the_file(cases):
    assert all(case.accept and case.content not in case.accept for case in cases if case.kind == "apply")
