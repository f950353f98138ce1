import re

from hypothesis import given
from hypothesis import strategies as st

from handtools.text import lines

texts = st.text(st.sampled_from("ab\n\r\f\u2028")) | st.text()
ends = st.sampled_from(["\n", "\r\n", "\r"])


@given(texts)
def test_joining_the_lines_gives_the_text(text: str):
    assert "".join(lines.split_lines(text)) == text


@given(texts)
def test_lines_are_cut_where_the_three_ends_are_and_nowhere_else(text: str):
    expected = re.findall(r"[^\r\n]*(?:\r\n|\n|\r)|[^\r\n]+", text)
    assert lines.split_lines(text) == expected
    assert lines.count_lines(text) == len(expected)


@given(texts)
def test_a_line_is_its_bare_text_and_its_end(text: str):
    for line in lines.split_lines(text):
        assert lines.without_line_ending(line) + lines.ending_of_line(line) == line
        assert not set(lines.without_line_ending(line)) & set("\r\n")


@given(texts, st.data())
def test_the_line_at_an_offset_is_the_one_that_holds_it(text: str, data: st.DataObject):
    offset = data.draw(st.integers(0, len(text)))
    line = lines.line_number_at(text, offset)
    start = lines.start_offset_of_line_number(text, line)
    assert start <= offset
    assert "".join(lines.split_lines(text)[: line - 1]) == text[:start]
    if line < lines.count_lines(text):
        assert offset < lines.start_offset_of_line_number(text, line + 1)


@given(texts, ends)
def test_adopted_text_has_one_kind_of_end_and_the_same_lines(text: str, end: str):
    adopted = lines.convert_line_ends(text, end)
    assert lines.convert_line_ends(adopted, end) == adopted
    assert {lines.ending_of_line(line) for line in lines.split_lines(adopted)} <= {end, ""}
    bare = [lines.without_line_ending(line) for line in lines.split_lines(text)]
    assert [lines.without_line_ending(line) for line in lines.split_lines(adopted)] == bare


@given(st.lists(st.text(st.sampled_from("ab\t é"))), st.integers(1, 10**7), ends)
def test_numbering_keeps_every_line(bare: list[str], start: int, end: str):
    rows = lines.render_numbered_lines([line + end for line in bare], start)
    expected = [f"{number}\t{line}" for number, line in enumerate(bare, start)]
    assert rows == "\n".join(expected)
    assert lines.render_numbered_lines(bare, start) == rows


@given(st.lists(st.tuples(st.text(st.sampled_from("ab")), ends | st.just(""))), st.integers(1, 99))
def test_numbering_removes_whatever_end_each_line_has(rows: list[tuple[str, str]], start: int):
    expected = [f"{number}\t{bare}" for number, (bare, _) in enumerate(rows, start)]
    assert lines.render_numbered_lines([bare + end for bare, end in rows], start) == "\n".join(expected)


@given(st.text("ab\r\n", max_size=20), st.data())
def test_a_line_starts_behind_the_last_line_end_before_it(text, data):
    offset = data.draw(st.integers(0, len(text)))
    start = lines.line_start_offset(text, offset)
    assert start == max(text.rfind("\n", 0, offset), text.rfind("\r", 0, offset)) + 1
