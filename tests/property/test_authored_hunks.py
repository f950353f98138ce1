"""Hunks with authors, held against plain merges: what an agent did is shown, what a person did is kept."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.diffs.authored_hunks import (
    OTHERS,
    TextVersion,
    authored_diff,
    grouped_hunk_indexes,
    render_hunks,
    replace_hunks,
    split_rows,
    text_with_hunks_rejected,
)
from handtools.text.diffs.three_way_merge import three_way_merge

rows = st.lists(st.sampled_from(["a\n", "b\n", "c\n", "d\n", "\n"]), max_size=10)
texts = rows.map("".join) | st.text(st.sampled_from("ab\r\n"), max_size=16)
versions = st.lists(st.builds(TextVersion, st.sampled_from(["1", "2", OTHERS]), texts), max_size=5)
agents = st.lists(st.builds(TextVersion, st.sampled_from(["1", "2"]), texts), min_size=1, max_size=4)


@given(texts, versions)
def test_the_text_is_the_last_version_and_accepting_all_changes_nothing(base, steps):
    diff = authored_diff(base, steps)
    last = steps[-1].text if steps else base
    assert "".join(diff.rows) == last == text_with_hunks_rejected(diff, ())
    assert replace_hunks(diff, {at: diff.text(hunk) for at, hunk in enumerate(diff.hunks)}) == last
    assert text_with_hunks_rejected(diff, range(len(diff.hunks))) == "".join(diff.base)


@given(texts, versions)
def test_hunks_are_in_order_apart_and_say_something(base, steps):
    diff = authored_diff(base, steps)
    for one, other in pairwise(diff.hunks):
        assert one.edit.end_a < other.edit.start_a
        assert one.edit.end_b < other.edit.start_b
    for hunk in diff.hunks:
        assert diff.base_text(hunk) != diff.text(hunk)
        assert set(hunk.authors) <= {step.author for step in steps} - {OTHERS}
        assert hunk.authors


@given(texts, agents)
def test_without_others_rejecting_all_is_the_text_before(base, steps):
    diff = authored_diff(base, steps)
    assert "".join(diff.base) == base
    assert not any(hunk.mixed for hunk in diff.hunks)
    assert text_with_hunks_rejected(diff, range(len(diff.hunks))) == base


@given(texts, st.lists(texts, max_size=4))
def test_what_others_do_alone_is_nobodys_hunk(base, others):
    diff = authored_diff(base, [TextVersion(OTHERS, text) for text in others])
    assert not diff.hunks


@given(texts, versions, st.sets(st.integers(0, 9)))
def test_rejecting_some_hunks_leaves_exactly_the_others(base, steps, chosen):
    diff = authored_diff(base, steps)
    rejected = {at for at in chosen if at < len(diff.hunks)}
    kept = [hunk for at, hunk in enumerate(diff.hunks) if at not in rejected]
    text = split_rows(text_with_hunks_rejected(diff, rejected))
    place = shift = 0
    for hunk in kept:
        edit = hunk.edit
        # Between the hunks that are left the text is the base, and in their place it is as it was.
        assert text[place : edit.start_a + shift] == diff.base[place - shift : edit.start_a]
        place = edit.start_a + shift + (edit.end_b - edit.start_b)
        assert "".join(text[edit.start_a + shift : place]) == diff.text(hunk)
        shift += (edit.end_b - edit.start_b) - (edit.end_a - edit.start_a)
    assert text[place:] == diff.base[place - shift :]


@given(texts, texts, texts)
def test_rejecting_keeps_a_later_edit_of_a_person_as_a_merge_would_or_refuses(base, agents_text, now):
    diff = authored_diff(base, [TextVersion("1", agents_text), TextVersion(OTHERS, now)])
    merged = three_way_merge(agents_text, now, base)
    clean = not any(hunk.mixed for hunk in diff.hunks)
    if not merged.conflicts:
        assert clean
        assert text_with_hunks_rejected(diff, range(len(diff.hunks))) == merged.text


@given(rows, rows, rows, rows)
def test_an_edit_of_a_person_elsewhere_is_kept_whatever_is_rejected(first, second, by_agent, by_person):
    wall = ["wall 1\n", "wall 2\n"]
    base, agent = "".join([*first, *wall, *second]), "".join([*by_agent, *wall, *second])
    now = "".join([*by_agent, *wall, *by_person])
    for steps in (
        [TextVersion("1", agent), TextVersion(OTHERS, now)],
        [TextVersion(OTHERS, "".join([*first, *wall, *by_person])), TextVersion("1", now)],
    ):
        diff = authored_diff(base, steps)
        assert not any(hunk.mixed for hunk in diff.hunks)
        assert text_with_hunks_rejected(diff, range(len(diff.hunks))) == "".join(
            [*first, *wall, *by_person]
        )


@given(st.lists(st.sampled_from(["x\n", "y\n"]), min_size=1, max_size=4), rows)
def test_a_person_who_edits_what_the_agent_wrote_makes_the_hunk_mixed(written, around):
    base = "".join([*around, "old\n", "wall\n"])
    agent = "".join([*around, "new 1\n", "new 2\n", "wall\n"])
    now = "".join([*around, "new 1\n", *written, "wall\n"])
    diff = authored_diff(base, [TextVersion("1", agent), TextVersion(OTHERS, now)])
    assert [hunk.mixed for hunk in diff.hunks] == [True]


@given(texts, texts)
def test_what_a_person_took_back_is_gone(base, agents_text):
    diff = authored_diff(base, [TextVersion("1", agents_text), TextVersion(OTHERS, base)])
    assert not diff.hunks


@given(texts, texts, texts)
def test_changes_of_another_agent_that_is_not_looked_at_are_folded(base, first, second):
    """Looking at one author after another, each hunk is found by exactly those who had a part in it."""
    both = authored_diff(base, [TextVersion("1", first), TextVersion("2", second)])
    alone = authored_diff(base, [TextVersion(OTHERS, first), TextVersion("2", second)])
    assert "".join(alone.base) == first
    assert {name for hunk in both.hunks for name in hunk.authors} <= {"1", "2"}


@given(texts, versions)
def test_a_rendered_hunk_is_a_patch_from_the_text_without_it(base, steps):
    diff = authored_diff(base, steps)
    groups = grouped_hunk_indexes(diff.hunks)
    assert [at for group in groups for at in group] == list(range(len(diff.hunks)))
    for group in groups:
        shown = render_hunks(diff, group)
        before = text_with_hunks_rejected(diff, group)
        removed, added = unrendered(shown)
        assert removed in before
        assert added in "".join(diff.rows)
        assert before.replace(removed, added, 1) == "".join(diff.rows) or removed == ""


def unrendered(shown):
    """The two sides of a hunk."""
    sides, last = ["", ""], ""
    for row in shown.split("\n")[1:-1]:
        for at, signs in enumerate((" -", " +")):
            if row[0] in signs:
                sides[at] += f"{row[1:]}\n"
            elif row[0] == "\\" and last in signs:
                sides[at] = sides[at][:-1]
        last = row[0] if row[0] != "\\" else last
    return sides
