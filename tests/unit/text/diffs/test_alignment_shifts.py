"""Shifting: a line is where the diff says it is."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.diffs.alignment import align_lines, line_after_edits

rows = st.lists(st.sampled_from("abcdef"), max_size=12)


@given(rows, rows)
def test_a_line_that_stays_has_the_same_text_at_its_new_number(before, after):
    edits = align_lines(before, after)
    for line, text in enumerate(before, 1):
        now = line_after_edits(edits, line)
        assert now is None or after[now - 1] == text


@given(rows, rows)
def test_every_line_that_the_diff_keeps_is_found(before, after):
    edits = align_lines(before, after)
    kept = len(before) - sum(edit.end_a - edit.start_a for edit in edits)
    found = [
        now for line in range(1, len(before) + 1) if (now := line_after_edits(edits, line)) is not None
    ]
    assert len(found) == kept
    assert found == sorted(set(found))
