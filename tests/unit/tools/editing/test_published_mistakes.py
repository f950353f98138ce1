"""Each test is a mistake that a public agent makes or made; here the edit is right or refused."""

import pytest

from handtools.text import encoding
from handtools.tools.editing.edit_outcome import EditApplied, EditRefused
from handtools.tools.editing.replacement import replace_text


def applied(body: str, old: str, new: str) -> str:
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied), outcome
    return outcome.text


def refused(body: str, old: str, new: str) -> EditRefused:
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditRefused), outcome
    return outcome


def test_another_number_inside_a_matching_block_is_not_overwritten():
    body = "func f() {\n\tx := 1\n\ty := 99\n\tz := 3\n}\n"
    refused(
        body, "func f() {\n\tx := 1\n\ty := 2\n\tz := 3\n}", "func f() {\n\tx := 1\n\ty := 4\n\tz := 3\n}"
    )


def test_a_sibling_with_the_same_first_and_last_line_is_not_overwritten():
    body = "if ready:\n    send_mail(user, template)\n    log(user)\ndone()\n"
    refused(body, "if ready:\n    send_text(user)\n    count(user)\ndone()", "if ready:\n    pass\ndone()")


def test_an_ambiguous_exact_match_never_falls_through_to_a_looser_tier():
    block = 'run(\n    cmd="a",\n)\n'
    sibling = 'run(\n    cmd="b",\n)\n'
    outcome = refused(block + sibling + block, block, 'run(\n    cmd="c",\n)\n')
    assert outcome.code == "ambiguous"
    assert [place.line for place in outcome.candidates] == [1, 7]


@pytest.mark.parametrize(
    ("body", "old", "new"),
    [
        ("do_reset()\n", "reset() ", "init() "),
        ("timeout=10\n", "timeout=1", "timeout=2"),
        ("values = 1\n", " value", " result"),
    ],
)
def test_part_of_a_number_and_what_is_inexact_inside_a_longer_word_are_not_replaced(body, old, new):
    refused(body, old, new)


def test_timeout_with_other_blanks_is_not_found_inside_a_longer_number():
    refused("connect(timeout = 10)\n", "connect(timeout=1", "connect(timeout=2")


@pytest.mark.parametrize("special", ["$&", "$1", "$$", "$`", "$'", r"\1", r"\g<0>", "%s", "{0}"])
def test_signs_of_replacement_languages_are_written_as_they_are(special):
    assert applied("a\nold\nb\n", "old", special) == f"a\n{special}\nb\n"
    outcome = replace_text("old old\n", "old", special, every=True)
    assert isinstance(outcome, EditApplied)
    assert outcome.text == f"{special} {special}\n"


def test_tabs_elsewhere_in_the_file_stay_tabs():
    body = "all:\n\tcc -o a a.c\n\nclean:\n\trm  a\n"
    assert (
        applied(body, "clean:\n    rm  a", "clean:\n    rm -f a")
        == "all:\n\tcc -o a a.c\n\nclean:\n\trm -f a\n"
    )


def test_typographic_characters_elsewhere_in_the_file_stay():
    body = "area = “10 m²” — half ½\nname = 'x'   \n"
    assert applied(body, "name = 'x'", "name = 'y'").startswith("area = “10 m²” — half ½\n")
    spoilt = applied(body + "size = 1\n", "name = 'x'\nsize = 1", "name = 'x'\nsize = 2")
    assert spoilt == body + "size = 2\n"


def test_quotes_elsewhere_and_on_kept_lines_stay():
    body = 'a = "1"\nbegin(\'x\')\nfinish("y")\n'
    old, new = "begin(\"x\")\nfinish('y')", "begin(\"x\")\nd()\nfinish('y')"
    assert applied(body, old, new) == 'a = "1"\nbegin(\'x\')\nd()\nfinish("y")\n'


@pytest.mark.parametrize("end", ["\r\n", "\r"])
def test_line_ends_of_the_file_stay_and_are_not_doubled(end):
    body = f"one{end}two{end}three{end}"
    for old, new in (("two\nthree", "two\nand\nthree"), ("two\r\nthree", "two\r\nand\r\nthree")):
        assert applied(body, old, new) == f"one{end}two{end}and{end}three{end}"


def test_mixed_line_ends_stay_mixed():
    body = "one\r\ntwo\nthree\r\nfour\n"
    assert applied(body, "two\nthree", "two\nand\nthree") == "one\r\ntwo\nand\nthree\r\nfour\n"


@pytest.mark.parametrize(
    "foreign",
    ["caf\xe9".encode("latin-1"), "你好世界".encode("gbk"), "“x” …".encode("cp1252"), "€".encode()[:2]],
)
def test_bytes_that_are_no_utf8_elsewhere_in_the_file_survive(foreign):
    data = b"# " + foreign + b"\nvalue = 1\nother = 2\n"
    source = encoding.decode(data)
    outcome = replace_text(source.body, "value = 1  \nother = 2", "value = 1\nother = 3")
    assert isinstance(outcome, EditApplied)
    assert source.encode(outcome.text) == b"# " + foreign + b"\nvalue = 1\nother = 3\n"


def test_the_byte_order_mark_survives_an_edit_of_line_one():
    source = encoding.decode(b"\xef\xbb\xbffirst\nsecond\n")
    outcome = replace_text(source.body, "first", "1st")
    assert isinstance(outcome, EditApplied)
    assert source.encode(outcome.text) == b"\xef\xbb\xbf1st\nsecond\n"


def test_equal_old_and_new_are_refused():
    assert refused("a\n", "a", "a").code == "no_change"


def test_a_dedented_method_does_not_drop_to_the_margin():
    body = "class A:\n    def f(self):\n        return 1\n"
    changed = applied(body, "def f(self):\n    return 1", "def f(self):\n    log()\n    return 2")
    assert changed == "class A:\n    def f(self):\n        log()\n        return 2\n"


def test_spaces_for_tabs_become_tabs():
    body = "func f() {\n\tif ready {\n\t\tproceed()\n\t}\n}\n"
    old = "    if ready {\n        proceed()\n    }"
    new = "    if ready {\n        proceed()\n        if z {\n            w()\n        }\n    }"
    assert applied(body, old, new) == (
        "func f() {\n\tif ready {\n\t\tproceed()\n\t\tif z {\n\t\t\tw()\n\t\t}\n\t}\n}\n"
    )


def test_lines_less_indented_than_the_first_are_not_pushed_right():
    body = "        x = 1   \n    y = 2\nz = 3\n"
    assert applied(body, "        x = 1\n    y = 2\nz = 3", "        x = 1\n    y = 5\nz = 3") == (
        "        x = 1   \n    y = 5\nz = 3\n"
    )


def test_escaped_text_is_not_written():
    body = 'print("a")\nprint("b")\n'
    changed = applied(body, 'print(\\"a\\")\nprint(\\"b\\")', 'print(\\"a\\")\nprint(\\"c\\")')
    assert changed == 'print("a")\nprint("c")\n'


def test_a_final_line_end_that_was_not_there_is_not_added():
    assert applied("one\ntwo", "two\n", "three\n") == "one\nthree"
