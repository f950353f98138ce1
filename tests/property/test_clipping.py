import re
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from handtools.text import lines
from handtools.text.truncation import clip_line, clip_text

texts = st.text(st.sampled_from("ab\n\réà語🎉")) | st.text(st.characters())
limits = st.integers(0, 40)


def size(text: str) -> int:
    return len(text.encode("utf-8", "surrogatepass"))


@given(texts, limits, limits, st.sampled_from(["head", "tail"]))
def test_one_end_is_kept_within_both_limits(
    text: str, max_lines: int, max_bytes: int, keep: Literal["head", "tail"]
):
    clipped = clip_text(text, max_lines=max_lines, max_bytes=max_bytes, keep=keep)
    matches = text.startswith if keep == "head" else text.endswith
    assert matches(clipped.text)
    assert size(clipped.text) == clipped.shown_bytes <= max_bytes
    assert lines.count_lines(clipped.text) == clipped.shown_lines <= max_lines
    assert (clipped.lines, clipped.bytes) == (lines.count_lines(text), size(text))
    assert clipped.clipped == (clipped.text != text)


@given(texts, limits, limits)
def test_only_a_single_line_is_ever_cut(text: str, max_lines: int, max_bytes: int):
    head = clip_text(text, max_lines=max_lines, max_bytes=max_bytes, keep="head").text
    tail = clip_text(text, max_lines=max_lines, max_bytes=max_bytes, keep="tail").text
    rows = lines.split_lines(text)
    if lines.count_lines(head) > 1:
        assert head == "".join(rows[: lines.count_lines(head)])
    if lines.count_lines(tail) > 1:
        assert tail == "".join(rows[-lines.count_lines(tail) :])


@given(texts, limits, limits)
def test_as_much_is_kept_as_fits(text: str, max_lines: int, max_bytes: int):
    clipped = clip_text(text, max_lines=max_lines, max_bytes=max_bytes, keep="head")
    rows = lines.split_lines(text)
    if clipped.clipped and clipped.shown_lines < max_lines:
        assert size("".join(rows[: clipped.shown_lines + 1])) > max_bytes


@given(texts, limits, limits)
def test_both_ends_are_kept_and_the_gap_is_told_exactly(text: str, max_lines: int, max_bytes: int):
    clipped = clip_text(text, max_lines=max_lines, max_bytes=max_bytes, keep="both")
    if not clipped.clipped:
        assert clipped.text == text
        return
    gap = re.search(r"\n?\[… (?:(\d+) lines, )?(\d+) bytes left out …\]\n", clipped.text)
    assert gap
    assert int(gap[1] or 0) == clipped.lines - clipped.shown_lines
    assert int(gap[2]) == clipped.bytes - clipped.shown_bytes
    assert clipped.shown_bytes <= max_bytes
    assert clipped.shown_lines <= max_lines
    head, tail = clipped.text[: gap.start()], clipped.text[gap.end() :]
    assert text.startswith(head)
    assert text.endswith(tail)


@given(st.text(), st.integers(1, 30), st.none() | st.integers(0, 60))
def test_a_clipped_line_shows_the_wanted_place(line: str, max_chars: int, around: int | None):
    shown = clip_line(line, max_chars, around=around)
    if len(line) <= max_chars:
        assert shown == line
        return
    cut = [int(number) for number in re.findall(r"\[(\d+) chars\]", shown)]
    assert sum(cut) >= len(line) - max_chars
    if around is not None and around < len(line):
        assert line[around] in shown
