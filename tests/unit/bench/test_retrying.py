"""The retry of the edit benchmark: what a model can do with the two arguments it sent and the refusal it read."""

from bench.editbench.retrying import retry


def offering(text: str, hint: str = "") -> str:
    return f"old_string does not occur in the file.\nold_string:\n```\n{text}\n```\n{hint}"


def test_a_message_without_an_offer_leaves_nothing_to_try():
    assert retry("a", "b", "old_string does not occur in the file.") is None


def test_kept_lines_become_those_of_the_file_and_added_ones_stay():
    sent = retry("one()\ntwo()", "one()\nmore()\ntwo()", offering("one( )\ntwo()  "))
    assert sent == ("one( )\ntwo()  ", "one( )\nmore()\ntwo()  ")


def test_a_misspelt_word_is_spelt_as_in_the_file():
    sent = retry("call(valeu)", "call(valeu, 2)", offering("call(value)"))
    assert sent == ("call(value)", "call(value, 2)")


def test_added_lines_get_the_depth_that_the_message_tells():
    message = offering("  a,\n  b,", "One level here is 2 spaces.")
    assert retry("    a,\n    b,", "    a,\n    if x:\n        b,", message) == (
        "  a,\n  b,",
        "  a,\n  if x:\n    b,",
    )


def test_lines_that_were_left_out_come_back():
    sent = retry("start\n  ...\nend", "start\n  ...\nlast", offering("start\n  one\n  two\nend"))
    assert sent == ("start\n  one\n  two\nend", "start\n  one\n  two\nlast")


def test_numbers_of_lines_are_not_sent_again():
    sent = retry("     7\ta = 1\n     8\tb = 2", "     7\ta = 1\n     8\tb = 3", offering("a = 1\nb  = 2"))
    assert sent == ("a = 1\nb  = 2", "a = 1\nb = 3")
