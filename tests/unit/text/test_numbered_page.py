"""Paging: which lines are shown, and how many fit."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.text.lines import split_lines
from handtools.text.numbered_page import ReadBudget, RequestedLines, lines_that_fit, render_numbered_page
from handtools.text.token_estimate import estimate_tokens

ROOMY = ReadBudget(1000, 100_000)


@pytest.mark.parametrize(
    ("span", "wanted"),
    [
        (RequestedLines(), (1, 9)),
        (RequestedLines(0), (1, 9)),
        (RequestedLines(3, 4), (3, 4)),
        (RequestedLines(3, None, 2), (3, 4)),
        (RequestedLines(None, 99), (1, 9)),
        (RequestedLines(-3), (7, 9)),
        (RequestedLines(-3, None, 2), (7, 8)),
        (RequestedLines(-99), (1, 9)),
    ],
)
def test_a_span_is_inclusive_and_may_count_from_the_end(span, wanted):
    assert span.first_and_last_line(9) == wanted


@pytest.mark.parametrize(
    ("span", "word"), [(RequestedLines(10), "past its end"), (RequestedLines(5, 4), "before start_line")]
)
def test_a_span_that_means_no_line_says_why(span, word):
    with pytest.raises(ValueError, match=word):
        span.first_and_last_line(9)


def test_an_empty_text_has_a_page_that_says_so():
    shown = render_numbered_page([], (1, 0), 0, ROOMY, max_chars=100)
    assert (shown.text, shown.clipped) == ("(The file is empty.)", False)


@given(
    st.lists(
        st.text(alphabet="ab é🙂", max_size=30).map(lambda line: line + "\n"), min_size=1, max_size=60
    ),
    st.integers(1, 60),
    st.integers(1, 400),
    st.one_of(st.none(), st.integers(1, 300)),
)
def test_what_fits_is_a_start_that_keeps_every_limit_or_is_one_line(lines, most, size, tokens):
    budget = ReadBudget(most, size, tokens)
    kept = lines_that_fit(lines, budget, max_chars=99)
    assert kept
    assert kept == lines[: len(kept)] or kept[0][:tokens] == lines[0][:tokens]
    if len(kept) > 1:
        assert len(kept) <= most
        assert len("".join(kept).encode()) <= size
        assert tokens is None or estimate_tokens("".join(kept)) <= tokens
    if len(kept) < len(lines) and tokens is None:
        more = lines[: len(kept) + 1]
        assert len(more) > most or len("".join(more).encode()) > size


@given(st.integers(1, 300), st.integers(1, 40), st.integers(1, 60))
def test_following_the_footer_shows_every_line_once(total, most, limit):
    lines = split_lines("".join(f"line {n}\n" for n in range(1, total + 1)))
    seen, first = [], 1
    while first <= total:
        start, last = RequestedLines(first, None, limit).first_and_last_line(total)
        shown = render_numbered_page(
            lines[start - 1 :], (start, last), total, ReadBudget(most, 10_000), max_chars=100
        )
        seen += range(shown.first, shown.end + 1)
        assert (f"Use start_line={shown.end + 1} " in shown.text) == (shown.end < total)
        first = shown.end + 1
    assert seen == list(range(1, total + 1))


@given(st.text(max_size=200), st.text(max_size=200))
def test_a_budget_only_shrinks(first, second):
    left = ReadBudget(5, 200, 50).budget_after_text(first)
    assert left.budget_after_text(second).bytes <= left.bytes
    assert not left.is_spent or not ReadBudget(5, 200, 50).budget_after_text(first).has_room_for("x" * 500)
