"""Which lines of a long file a model is shown, and how."""

from handtools.text.lines import LineRange
from handtools.tools.editing.edit_agent_messages import (
    AnswerTags,
    FileShownInPrompt,
    edit_prompt,
    lines_for_edit_prompt,
)

LONG = [f"value_{number} = {number}\n" for number in range(1, 20_001)]


def test_the_lines_that_instructions_name_are_shown():
    windows = lines_for_edit_prompt(LONG, "Make value_12345 negative.", most=1_200)
    assert windows == (LineRange(12_320, 12_370),)


def test_words_that_are_everywhere_point_nowhere():
    lines = [*LONG, *(["return None\n"] * 100)]
    assert lines_for_edit_prompt(lines, "value_7 shall return None", most=1_200) == (LineRange(1, 32),)


def test_without_a_known_word_the_start_is_shown():
    assert lines_for_edit_prompt(LONG, "tidy up", most=1_200) == (LineRange(1, 1_200),)
    assert lines_for_edit_prompt([], "tidy up", most=1_200) == (LineRange(1, 1),)


def test_a_long_file_is_shown_in_parts_that_can_be_copied():
    sight = FileShownInPrompt(path="a.py", lines=LONG, outline="1 value_1", ranges=(LineRange(5, 6),))
    asked = edit_prompt(sight, "Do it.", AnswerTags("_1"), before=["Refused: no."])
    assert '<file_1 path="a.py" lines="5-6">\nvalue_5 = 5\nvalue_6 = 6\n</file_1>' in asked
    assert "1 value_1" in asked
    assert "20,000 lines" in asked
    assert "<show_1 " in asked
    assert asked.endswith("So far:\nRefused: no.")


def test_a_short_file_is_shown_whole():
    asked = edit_prompt(FileShownInPrompt(path="a.py", lines=["x\r\n", "y"]), "Do it.", AnswerTags("_1"))
    assert '<file_1 path="a.py">\nx\ny\n</file_1>' in asked
    assert "<show_1 " not in asked
