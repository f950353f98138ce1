"""Patching: a patch and its inverse give the text back, whatever the text and wherever the hunks."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.text.diffs.unified_diff import unified_diff
from handtools.text.patch_model import MalformedPatch, invert_patch
from handtools.tools.editing.hunk_placement import HunkMisfit, PatchedText, apply_hunks
from handtools.tools.editing.patch_parser import parse_hunk_range, parse_patch

LINE = st.sampled_from(
    ["a", "b", "", " ", "\tx", "-- c", "++ d", "@@ -1 +1 @@", "diff --git a/x b/x", "e\r", "é\u2028"]
)
TEXT = st.tuples(st.lists(LINE, max_size=30), st.booleans()).map(
    lambda drawn: "\n".join(drawn[0]) + ("\n" if drawn[1] else "")
)


def applied(text, hunks):
    outcome = apply_hunks(text, hunks)
    assert isinstance(outcome, PatchedText), outcome
    return outcome.text


@given(before=TEXT, after=TEXT, context=st.integers(1, 4))
def test_a_unified_diff_applies_and_its_inverse_takes_it_back(before, after, context):
    diff = unified_diff("f", before, after, context=context)
    if not diff:
        return
    [patch] = parse_patch(diff)
    assert applied(before, patch.hunks) == after
    assert applied(after, invert_patch(patch).hunks) == before
    assert invert_patch(invert_patch(patch)) == patch


MARKS_OF_CHANGE = st.lists(
    st.sampled_from(["keep"] * 8 + ["drop", "add", "change"]), min_size=30, max_size=60
)
CHANGE = st.tuples(MARKS_OF_CHANGE, st.booleans(), st.booleans()).map(
    lambda drawn: (
        _side(drawn[0], {"keep": "line {}", "drop": "old {}", "change": ""}, ended=drawn[1]),
        _side(drawn[0], {"keep": "line {}", "add": "new {}", "change": "other {}"}, ended=drawn[2]),
    )
)


def _side(marks, rows, *, ended):
    text = "".join(rows[mark].format(at) + "\n" for at, mark in enumerate(marks) if mark in rows)
    return text if ended else text.removesuffix("\n")


@given(change=CHANGE, context=st.integers(0, 3))
def test_the_inverse_of_a_diff_has_the_numbers_of_its_new_side(change, context):
    diff = unified_diff("f", *change, context=context)
    if diff:
        [patch] = parse_patch(diff)
        ranges = [parse_hunk_range(row) for row in diff.split("\n") if row.startswith("@@")]
        assert [hunk.line for hunk in patch.hunks] == [span.old_start for span in ranges]
        assert [hunk.line for hunk in invert_patch(patch).hunks] == [span.new_start for span in ranges]


@given(change=CHANGE, wrong=st.integers(1, 9))
def test_a_diff_that_counts_its_lines_wrongly_says_the_same(change, wrong):
    if diff := unified_diff("f", *change):
        miscounted = re.sub(r"(?m)^@@ -(\d+)\S* \+(\d+)\S*", rf"@@ -\1,{wrong} +\2,{wrong}", diff)
        assert parse_patch(miscounted) == parse_patch(diff)


@given(changes=st.lists(CHANGE, max_size=4))
def test_a_diff_of_several_files_says_the_same_as_one_for_each(changes):
    diffs = [unified_diff(f"f{at}", *change) for at, change in enumerate(changes) if change[0] != change[1]]
    if diffs:
        for parted in ("".join(diffs), "\n".join(diffs)):
            assert parse_patch(parted) == [file for diff in diffs for file in parse_patch(diff)]


@given(text=TEXT)
def test_a_file_is_added_and_deleted_whole(text):
    [patch] = parse_patch(unified_diff("f", None, text))
    assert patch.action == "add"
    assert applied("", patch.hunks) == text
    gone = invert_patch(patch)
    assert gone.action == "delete"
    assert applied(text, gone.hunks) == ""


@given(
    rows=st.lists(st.integers().map("line {}".format), min_size=12, max_size=40, unique=True),
    drift=st.integers(-8, 8),
    number=st.integers(9, 11),
)
def test_a_hunk_of_unique_lines_applies_at_any_distance(rows, drift, number):
    before = "".join(f"{row}\n" for row in rows)
    after = before.replace(f"{rows[number - 1]}\n", "changed\n")
    [patch] = parse_patch(unified_diff("f", before, after))
    extra = "".join(f"more {n}\n" for n in range(drift))
    moved = extra + before if drift >= 0 else "".join(f"{row}\n" for row in rows[-drift:])
    outcome = apply_hunks(moved, patch.hunks)
    kept = (
        rows[: number - 1][-3:]
        if drift >= 0
        else [row for row in rows[-drift:] if row in rows[number - 4 : number - 1]]
    )
    if len(kept) < 3:
        return
    assert isinstance(outcome, PatchedText)
    assert outcome.text == moved.replace(f"{rows[number - 1]}\n", "changed\n")


@given(
    rows=st.lists(st.sampled_from(["a", "  b", "# c", "d {", "}", ""]), min_size=1, max_size=8),
    added=st.lists(st.sampled_from(["e = 1", "  f = 2", "## g", ""]), min_size=1, max_size=4),
)
def test_a_hunk_that_only_adds_keeps_every_line_in_order_and_is_made_once(rows, added):
    body = "".join(f"{row}\n" for row in [*rows, "name"])
    hunks = "".join(f"+{row}\n" for row in added)
    [patch] = parse_patch(f"*** Begin Patch\n*** Update File: f\n@@ name\n{hunks}*** End Patch\n")
    after = applied(body, patch.hunks)
    assert after == body + "".join(f"{row}\n" for row in added)
    if any(row.strip() for row in added):
        assert applied(after, patch.hunks) == after


@given(text=st.text(max_size=300))
def test_any_text_is_a_patch_or_is_refused_with_its_line(text):
    try:
        files = parse_patch(text)
    except MalformedPatch as refused:
        line = refused.line
    else:
        line = len(files)
    assert line >= 1


MARKS = """*** Begin Patch
*** Update File: a
*** Add File: b
*** Delete File: c
*** Move to: d
*** End of File
*** End Patch
@@ def f
@@
 x
-x
+y

diff --git a/x b/x
--- a/x
+++ b/x
@@ -1,2 +1,2 @@
\\ No newline at end of file
new file mode 100644"""
PIECES = st.lists(st.sampled_from(MARKS.split("\n")), max_size=15).map("\n".join)


@given(text=PIECES, body=TEXT)
def test_pieces_of_patches_in_any_order_end_in_a_patch_or_a_refusal(text, body):
    try:
        files = parse_patch(text)
    except MalformedPatch:
        return
    for file in files:
        assert isinstance(apply_hunks(body, file.hunks), PatchedText | HunkMisfit)


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@given(rows=st.lists(st.integers().map(str), min_size=3, max_size=10, unique=True))
def test_added_lines_take_the_line_end_of_the_file(rows, end):
    before = "".join(row + end for row in rows)
    [patch] = parse_patch(f"*** Begin Patch\n*** Update File: f\n {rows[1]}\n+added\n*** End Patch\n")
    after = applied(before, patch.hunks)
    assert after == "".join(row + end + (f"added{end}" if row == rows[1] else "") for row in rows)
