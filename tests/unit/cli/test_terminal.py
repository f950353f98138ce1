"""What reaches a terminal."""

from hypothesis import given
from hypothesis import strategies as st

from handtools.cli.terminal import collapse_to_one_line, coloured_diff, make_plain_table, stdout_console


@given(st.text(), st.integers(2, 80))
def test_a_cell_is_one_line_and_no_longer_than_it_may_be(text, most):
    cell = collapse_to_one_line(text, most)
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


def test_a_console_shows_hidden_characters_that_nobody_made_visible_before(capsys):
    from rich.panel import Panel
    from rich.text import Text

    table = make_plain_table("\x9b31m")
    table.add_row("\x1b[2K", Text("\u202etxt.exe", "red"))
    console = stdout_console()
    for thing in ("a\x1b[8mb", Text("c\u2066", "bold"), table, Panel("d\x9be")):
        console.print(thing)
    out = capsys.readouterr().out
    assert not {*"\x1b\x9b\u202e\u2066"} & {*out}
    assert "a␛[8mb\nc⟨U+2066⟩\n" in out
