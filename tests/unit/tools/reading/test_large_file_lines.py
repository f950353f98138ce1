"""Windows: lines of a file that is too large to hold."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.tools.reading.file_outline import (
    LargeFileIndex,
    LargeTextEncoding,
    bytes_after_skipped_lines,
    cut_at_character,
)

BYTES = st.lists(st.sampled_from([b"a", b"bb", b"\n", b"\n\n", "é".encode()]), max_size=60).map(b"".join)


@given(BYTES, st.integers(1, 9))
def test_every_line_is_found_where_it_begins(data, size):
    windows = [data[start : start + size] for start in range(0, len(data), size)]
    found = LargeFileIndex([window.count(b"\n") for window in windows], data.endswith(b"\n") or not data)
    lines = data.split(b"\n")[: -1 if data.endswith(b"\n") or not data else None]
    assert found.total == len(lines)
    for number, line in enumerate(lines, 1):
        window, ends = found.window_of_line(number)
        rest = bytes_after_skipped_lines(windows[window], ends) + b"".join(windows[window + 1 :])
        assert rest.split(b"\n")[0] == line


@given(st.text(max_size=40), st.integers(0, 60))
def test_a_cut_is_never_in_the_middle_of_a_character(text, size):
    kept = cut_at_character(text.encode(), size)
    assert text.startswith(kept.decode())
    assert len(kept) <= size
    assert len(kept) > size - 4 or len(kept) == len(text.encode())


@given(
    st.text(st.sampled_from("ab\n\u0a0a\u010a"), max_size=40),
    st.sampled_from(["utf-16", "utf-16-be", "utf-32"]),
)
def test_line_ends_of_wide_characters_are_counted_as_characters(text, encoding):
    head = ("plain text to begin with\n" * 20 + text).encode(encoding)
    reading = LargeTextEncoding.detect(head)
    assert reading.to_utf8(head).count(reading.end) == text.count("\n") + 20


def test_a_carriage_return_ends_lines_only_where_nothing_else_does():
    assert LargeTextEncoding.detect(b"a\rb\r").end == b"\r"
    assert LargeTextEncoding.detect(b"10%\r20%\ndone\r\n").end == b"\n"
