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


def test_what_stood_below_a_gap_is_the_end_of_the_offer():
    offer = "    return err\n  }\n  if more {\n    return err\n  }"
    sent = retry(
        "    return err\n  ...\n    return err\n  }",
        "    return err\n  ...\n    return err\n  }\n  last()",
        offering(offer),
    )
    assert sent == (offer, f"{offer}\n  last()")


def test_a_gap_that_moves_takes_its_lines_along():
    sent = retry("open\n  ...\nclose", "close\n  ...\nopen", offering("open\n  one\n  two\nclose"))
    assert sent == ("open\n  one\n  two\nclose", "close\n  one\n  two\nopen")


def test_a_line_that_moves_keeps_the_blanks_that_the_file_has():
    sent = retry("one\ntwo\nthree\nfour", "four\ntwo\nthree\none", offering("one \ntwo\nthree\t\nfour  "))
    assert sent == ("one \ntwo\nthree\t\nfour  ", "four  \ntwo\nthree\t\none ")


def test_among_tabs_and_blanks_only_what_stands_before_all_lines_goes():
    sent = retry("        a\n    \tb", "        a\n    \tb\n    \t\tc", offering("    a\n\tb"))
    assert sent == ("    a\n\tb", "    a\n\tb\n\t\tc")
