import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.text import aligning, diffing
from handtools.text.diffing import Edit

few = st.lists(st.sampled_from("ab"), max_size=40)
some = st.lists(st.sampled_from("abcdefgh"), max_size=40)
sequences = few | some
texts = st.text(st.sampled_from("ab \t\n\r"), max_size=60) | st.text(max_size=60)


def kept(a: list[str], b: list[str]) -> int:
    """Give the length of a longest common subsequence, by the book."""
    previous = [0] * (len(b) + 1)
    for line in a:
        row = [0]
        for j, other in enumerate(b):
            row.append(previous[j] + 1 if line == other else max(row[-1], previous[j + 1]))
        previous = row
    return previous[-1]


def applied(a: list[str], b: list[str], edits: list[Edit]) -> list[str]:
    """Rebuild `b` from `a` and only the changed regions of `b`."""
    result, place = [], 0
    for edit in edits:
        result += a[place : edit.start_a] + b[edit.start_b : edit.end_b]
        place = edit.end_a
    return result + a[place:]


def assert_minimal(a: list[str], b: list[str], edits: list[Edit]) -> None:
    assert applied(a, b, edits) == b
    removed = sum(edit.end_a - edit.start_a for edit in edits)
    added = sum(edit.end_b - edit.start_b for edit in edits)
    assert removed == len(a) - kept(a, b)
    assert added == len(b) - kept(a, b)


def assert_ordered(edits: list[Edit]) -> None:
    for one, other in pairwise(edits):
        assert one.end_a < other.start_a
        assert one.end_b < other.start_b
    assert all(edit.start_a < edit.end_a or edit.start_b < edit.end_b for edit in edits)


@given(sequences, sequences)
def test_edits_are_minimal_and_in_order_with_something_kept_between(a: list[str], b: list[str]):
    edits = diffing.opcodes(a, b)
    assert_minimal(a, b, edits)
    assert_ordered(edits)


@pytest.mark.parametrize(
    "limits",
    [
        {"_SMALL_CELLS": 0},
        {"_SMALL_CELLS": 0, "_NEAR_DISTANCE": 2},
        {"_TABLE_CELLS": 8},
        {"_TABLE_CELLS": 8, "_RARE": 0},
    ],
)
def test_every_way_to_search_is_minimal(limits: dict[str, int], monkeypatch: pytest.MonkeyPatch):
    for name, value in limits.items():
        monkeypatch.setattr(aligning, name, value)

    @given(sequences, sequences)
    def check(a: list[str], b: list[str]) -> None:
        assert_minimal(a, b, diffing.opcodes(a, b))

    check()


def test_beyond_the_limit_the_diff_is_still_correct(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(aligning, "_MINIMAL_CELLS", 4)
    monkeypatch.setattr(aligning, "_SMALL_CELLS", 0)
    monkeypatch.setattr(aligning, "_NEAR_DISTANCE", 0)

    @given(sequences, sequences)
    def check(a: list[str], b: list[str]) -> None:
        edits = diffing.opcodes(a, b)
        assert applied(a, b, edits) == b
        assert_ordered(edits)

    check()


def patched(before: str, diff: str) -> str:
    """Apply a unified diff strictly: every context and removed row must be where it says."""
    old = re.findall(r"[^\n]*\n|[^\n]+", before)
    new: list[str] = []
    place = 0
    body = diff.split("\n", 2)[2] if diff else ""
    hunks = re.split(r"^@@ -(\d+)(?:,(\d+))? \+\d+(?:,\d+)? @@\n", body, flags=re.MULTILINE)[1:]
    for start, size, content in zip(hunks[0::3], hunks[1::3], hunks[2::3], strict=True):
        begin = int(start) - (size != "0")
        new += old[place:begin]
        place = begin
        for row in re.findall(r"[^\n]*\n(?:\\ No newline[^\n]*\n)?", content):
            line = row[1:].partition("\n\\ No")[0] if "\n\\ No" in row else row[1:]
            if row[0] in " -":
                assert old[place] == line
                place += 1
            if row[0] in " +":
                new.append(line)
    return "".join(new + old[place:])


@given(texts, texts, st.integers(0, 4))
def test_applying_a_diff_to_the_old_text_gives_the_new(before: str, after: str, context: int):
    diff = diffing.unified("f", before, after, context=context)
    assert patched(before, diff) == after


@given(texts, texts, texts, texts, st.integers(0, 4))
def test_changes_inside_a_long_text_apply(head: str, before: str, after: str, tail: str, context: int):
    head, tail = head * 40, tail * 40
    diff = diffing.unified("f", head + before + tail, head + after + tail, context=context)
    assert patched(head + before + tail, diff) == head + after + tail


@given(texts, texts)
def test_the_counts_are_those_of_the_diff(before: str, after: str):
    body = diffing.unified("f", before, after).split("\n")[2:]
    added = sum(row.startswith("+") for row in body)
    removed = sum(row.startswith("-") for row in body)
    assert diffing.count(before, after) == (added, removed)


@given(texts, texts)
def test_the_first_changed_line_is_the_first_that_differs(before: str, after: str):
    line = diffing.first_changed_line(before, after)
    assert (line is None) == (before == after)
    if line is not None:
        assert line >= 1


words = st.lists(st.sampled_from(["a\n", "  b\n", "\tc\n", "{\n", "}\n"]), max_size=20)


@given(words, words, st.text(st.sampled_from(" \t"), max_size=5))
def test_trimming_undoes_indenting(before: list[str], after: list[str], indent: str):
    plain = diffing.unified("f", "".join(before), "".join(after))
    deeper = re.sub(r"^([-+ ])(?!-- a/f|\+\+ b/f)", rf"\1{indent}", plain, flags=re.MULTILINE)
    assert diffing.trim_indent(deeper) == diffing.trim_indent(plain)


@given(texts, texts)
def test_trimming_keeps_every_row_and_its_sign(before: str, after: str):
    diff = diffing.unified("f", before, after)
    trimmed = diffing.trim_indent(diff)
    assert [row[:1] for row in trimmed.split("\n")] == [row[:1] for row in diff.split("\n")]
    assert diffing.trim_indent(trimmed) == trimmed
