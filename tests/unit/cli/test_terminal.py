"""What reaches a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.cli.terminal import coloured_diff, one_line


@given(st.text(), st.integers(2, 80))
def test_a_cell_is_one_line_and_no_longer_than_it_may_be(text, most):
    cell = one_line(text, most)
    assert "\n" not in cell
    assert len(cell) <= most


@given(st.text(alphabet="+-@ ab\n"))
def test_painting_a_diff_changes_no_character_of_it(diff):
    assert coloured_diff(diff).plain == diff


def test_lines_are_painted_by_what_they_mean():
    text = coloured_diff("--- a/x\n+++ b/x\n@@ -1 +1 @@\n-old\n+new\n same\n")
    styles = {text.plain[span.start : span.end].rstrip("\n"): str(span.style) for span in text.spans}
    assert styles["-old"] == "red"
    assert styles["+new"] == "green"
    assert styles["--- a/x"] == "bold"
    assert " same" not in styles
