import re

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.diffs import unified_diff

texts = st.text(st.sampled_from("ab \t\n\r"), max_size=60) | st.text(max_size=60)


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
    diff = unified_diff.unified_diff("f", before, after, context=context)
    assert patched(before, diff) == after


@given(texts, texts, texts, texts, st.integers(0, 4))
def test_changes_inside_a_long_text_apply(head: str, before: str, after: str, tail: str, context: int):
    head, tail = head * 40, tail * 40
    diff = unified_diff.unified_diff("f", head + before + tail, head + after + tail, context=context)
    assert patched(head + before + tail, diff) == head + after + tail


@given(texts, texts, st.integers(0, 4))
def test_a_diff_shows_the_lines_that_an_alignment_of_the_whole_texts_names(
    before: str, after: str, context: int
):
    old, new = (re.findall(r"[^\n]*\n|[^\n]+", text) for text in (before, after))
    named = []
    for edit in unified_diff.diff_line_edits(old, new):
        named += [f"-{row}".removesuffix("\n") for row in old[edit.start_a : edit.end_a]]
        named += [f"+{row}".removesuffix("\n") for row in new[edit.start_b : edit.end_b]]
    body = unified_diff.unified_diff("f", before, after, context=context).split("\n")[2:]
    assert [row for row in body if row.startswith(("-", "+"))] == named


@given(texts, texts)
def test_the_counts_are_those_of_the_diff(before: str, after: str):
    body = unified_diff.unified_diff("f", before, after).split("\n")[2:]
    added = sum(row.startswith("+") for row in body)
    removed = sum(row.startswith("-") for row in body)
    assert unified_diff.count_changed_lines(before, after) == (added, removed)


@given(texts, texts)
def test_the_first_changed_line_is_the_first_that_differs(before: str, after: str):
    line = unified_diff.first_changed_line(before, after)
    assert (line is None) == (before == after)
    if line is not None:
        assert line >= 1


words = st.lists(st.sampled_from(["a\n", "  b\n", "\tc\n", "{\n", "}\n"]), max_size=20)


@given(words, words, st.text(st.sampled_from(" \t"), max_size=5))
def test_trimming_undoes_indenting(before: list[str], after: list[str], indent: str):
    plain = unified_diff.unified_diff("f", "".join(before), "".join(after))
    deeper = re.sub(r"^([-+ ])(?!-- a/f|\+\+ b/f)", rf"\1{indent}", plain, flags=re.MULTILINE)
    assert unified_diff.dedent_diff_content(deeper) == unified_diff.dedent_diff_content(plain)


@given(texts, texts)
def test_trimming_keeps_every_row_and_its_sign(before: str, after: str):
    diff = unified_diff.unified_diff("f", before, after)
    trimmed = unified_diff.dedent_diff_content(diff)
    assert [row[:1] for row in trimmed.split("\n")] == [row[:1] for row in diff.split("\n")]
    assert unified_diff.dedent_diff_content(trimmed) == trimmed
