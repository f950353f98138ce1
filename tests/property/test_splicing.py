"""A spliced text can be cut like the string it stands for."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.diffs.unified_diff import KnownCommonEnds, first_changed_line, unified_diff
from handtools.text.lines import SplicedText

TEXT = st.text("ab\r\né", max_size=30)


@st.composite
def splices(draw):
    text, new = draw(TEXT), draw(TEXT)
    start = draw(st.integers(0, len(text)))
    return SplicedText(text, start, draw(st.integers(start, len(text))), new)


@given(splices(), st.integers(-40, 70) | st.none(), st.integers(-40, 70) | st.none())
def test_slices_are_those_of_the_whole(spliced, start, stop):
    assert spliced[start:stop] == spliced.full_text[start:stop]
    assert len(spliced) == len(spliced.full_text)
    assert spliced.is_unchanged == (spliced.full_text == spliced.text)


@given(splices())
def test_diffs_are_those_of_the_whole(spliced):
    tail = len(spliced.text) - spliced.end
    feeds = spliced.text.count("\n", 0, spliced.start)
    same = KnownCommonEnds(spliced.start, tail, feeds)
    if not spliced.is_unchanged:
        assert unified_diff("a", spliced.text, spliced, common_ends=same) == unified_diff(
            "a", spliced.text, spliced.full_text
        )
        line = first_changed_line(spliced.text, spliced.full_text)
        assert first_changed_line(spliced.text, spliced, common_ends=same) == line
