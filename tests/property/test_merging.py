from hypothesis import given
from hypothesis import strategies as st

from handtools.text import lines
from handtools.text.diffs.three_way_merge import changed_line_ranges, take_shown_changes, three_way_merge

rows = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "\n"]), max_size=12)
texts = rows.map("".join) | st.text(st.sampled_from("ab\r\n"), max_size=20)


@given(texts, texts)
def test_a_side_that_changed_nothing_leaves_the_other_as_it_is(base: str, changed: str):
    assert three_way_merge(base, base, changed).text == changed
    assert three_way_merge(base, changed, base).text == changed
    assert three_way_merge(base, changed, changed).text == changed
    assert not three_way_merge(base, base, changed).conflicts
    assert not three_way_merge(base, changed, base).conflicts
    assert not three_way_merge(base, changed, changed).conflicts


@given(rows, rows, rows, rows, rows)
def test_changes_with_unchanged_text_between_them_are_both_there(
    first: list[str], second: list[str], new_first: list[str], new_second: list[str], more: list[str]
):
    # Unique lines keep the two places apart, whatever the changes look like.
    wall = ["wall 1\n", *more, "wall 2\n"]

    def joined(*parts: list[str]) -> str:
        return "".join(row for part in parts for row in part)

    merged = three_way_merge(
        joined(first, wall, second), joined(new_first, wall, second), joined(first, wall, new_second)
    )
    assert merged.conflicts == []
    assert merged.text == joined(new_first, wall, new_second)


@given(texts, texts, texts)
def test_swapping_the_sides_swaps_the_conflicts_and_nothing_else(base: str, ours: str, theirs: str):
    one, other = three_way_merge(base, ours, theirs), three_way_merge(base, theirs, ours)
    swapped = [(each.base, each.theirs, each.ours) for each in other.conflicts]
    assert [(each.base, each.ours, each.theirs) for each in one.conflicts] == swapped
    if not one.conflicts:
        assert one.text == other.text


@given(rows, rows, rows)
def test_taking_one_side_of_every_conflict_leaves_no_marker(
    base: list[str], ours: list[str], theirs: list[str]
):
    merged = three_way_merge("".join(base), "".join(ours), "".join(theirs))
    text = lines.split_lines(merged.text)
    for conflict in reversed(merged.conflicts):
        block = "".join(text[conflict.line - 1 : conflict.end_line])
        assert block == (f"<<<<<<< ours\n{conflict.ours}=======\n{conflict.theirs}>>>>>>> theirs\n")
        text[conflict.line - 1 : conflict.end_line] = lines.split_lines(conflict.ours)
    assert not any(row.startswith(("<<<<<<<", "=======", ">>>>>>>")) for row in text)


odd_rows = st.lists(st.sampled_from(["a\n", "b\n", "c\r\n", "d\r", "é\n", "}\n"]), max_size=10).map("".join)


@given(odd_rows, odd_rows, st.lists(st.tuples(st.integers(1, 6), st.integers(1, 11)), max_size=3))
def test_of_a_change_only_shown_lines_become_known(known, current, shown):
    before, after = known.encode(), current.encode()
    learned = take_shown_changes(before, after, shown)
    assert take_shown_changes(before, after, [(1, len(after) + 1)]) == after
    assert take_shown_changes(before, after, []) == before
    # What is known afterwards and differs from the file is what was known before.
    assert set(learned.splitlines()) <= set(before.splitlines()) | set(after.splitlines())
    assert take_shown_changes(learned, after, [(1, len(after) + 1)]) == after


@given(odd_rows, odd_rows)
def test_ones_own_change_of_a_known_text_becomes_known(before, after):
    learned = take_shown_changes(
        before.encode(), after.encode(), changed_line_ranges(before.encode(), after.encode())
    )
    assert learned == after.encode()
