"""Outlining: by heads, or with bodies folded."""

import re

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.numbered_page import ReadBudget
from handtools.tools.reading.file_outline import (
    MIN_FOLDED_LINES,
    OutlineSymbol,
    fold_bodies,
    render_outline,
)

LINES = [f"line {n}\n" for n in range(1, 41)]


def head(depth, start, end, body=None, foldable=True):
    return OutlineSymbol(depth, start, end, start, body, foldable)


HEADS = [head(0, 1, 20, 2, False), head(1, 3, 10, 4), head(1, 12, 13, 13), head(0, 30, 40, 31)]


def test_a_row_has_the_range_and_the_head():
    shown = render_outline(LINES, HEADS, ReadBudget(100, 10_000))
    assert shown.text.splitlines()[1] == "3-10\tline 3"
    assert shown.left_out == 0


def test_the_deepest_go_first_and_then_the_last():
    assert render_outline(LINES, HEADS, ReadBudget(2, 10_000)).text.count("\n") == 1
    assert render_outline(LINES, HEADS, ReadBudget(2, 10_000)).left_out == 2
    assert render_outline(LINES, HEADS, ReadBudget(1, 10_000)).left_out == 3


def test_a_fold_says_which_lines_it_holds():
    rows = fold_bodies(LINES, HEADS)
    assert "\t… 7 lines: 4-10" in rows
    assert "13\tline 13" in rows


def test_a_closing_bracket_stays_in_sight():
    lines = ["f() {\n", "  a\n", "  b\n", "  c\n", "  d\n", "}\n"]
    assert fold_bodies(lines, [head(0, 1, 6, 2)]) == [
        "1\tf() {",
        "\t  … 4 lines: 2-5",
        "6\t}",
    ]


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 30), st.booleans()), max_size=12))
def test_every_line_is_shown_or_folded_exactly_once(spans):
    heads = [head(0, a, min(a + n, 40), min(a + 1, 40) if n else None, f) for a, n, f in spans]
    seen = []
    for row in fold_bodies(LINES, heads):
        number, _, text = row.partition("\t")
        if number.strip():
            seen.append(int(number))
        else:
            first, last = map(int, re.search(r"(\d+)-(\d+)$", text).groups())
            assert last - first + 2 >= MIN_FOLDED_LINES
            seen += range(first, last + 1)
    assert seen == list(range(1, 41))
