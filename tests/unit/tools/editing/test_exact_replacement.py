"""Text that is there letter for letter, with blanks around it that decide where lines end up."""

import pytest

from handtools.tools.editing.edit_outcome import (
    AlreadyApplied,
    CharSpan,
    EditApplied,
    EditRefused,
    MatchHint,
)
from handtools.tools.editing.replacement import replace_text


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_line_quoted_with_half_its_indentation_does_not_set_the_depth_of_added_lines(end):
    body = "class A:\n    def ask(self):\n        pass\n"
    outcome = replace_text(body, f"  def ask(self):{end}", f"  def ask(self):\n  if x:\n    y(){end}")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "indent_conflict"


def test_added_lines_follow_the_file_where_only_the_first_line_lost_half_its_indentation():
    body = "class A:\n        state = None\n\nout = A()\n"
    outcome = replace_text(
        body, "    state = None\n\nout = A()", "    state = None\n    more = 1\n\nout = A()"
    )
    assert not isinstance(outcome, EditApplied) or outcome.text == body.replace(
        "None\n", "None\n        more = 1\n"
    )


def test_a_line_that_goes_takes_its_indentation_with_it():
    body = "def f():\n    total = compute(everything)\n\n\ndef other_function(argument):\n"
    outcome = replace_text(
        body,
        "  total = compute(everything)\n\n\ndef other_function(argument):",
        "\n\ndef other_function(argument):",
    )
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "def f():\n\n\ndef other_function(argument):\n"


def test_trailing_blanks_stay_on_their_own_line_when_one_is_added_after_it():
    body = "a = 1\nspec = load(url)  \nreturn spec\n"
    outcome = replace_text(body, "a = 1\nspec = load(url)", "a = 1\nspec = load(url)\nlog(spec)")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "a = 1\nspec = load(url)  \nlog(spec)\nreturn spec\n"


def test_trailing_blanks_go_with_the_line_that_goes():
    body = "first = 1\nsecond = call(arguments)  \nthird = 3\n"
    outcome = replace_text(body, "first = 1\nsecond = call(arguments)", "first = 1")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "first = 1\nthird = 3\n"


def test_a_first_line_quoted_without_indentation_is_still_changed_in_place():
    body = "def f():\n        alpha = 1\n        beta = 2\n"
    outcome = replace_text(body, "alpha = 1\n        beta = 2", "alpha = 9\n        beta = 2")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "def f():\n        alpha = 9\n        beta = 2\n"


@pytest.mark.parametrize(
    ("body", "old"),
    [
        ("SECRET_MARKER = 1\n", "SECRET"),
        ("значение = 1\n", "знач"),
        ("größe = 1\n", "gr"),
        ("item1 = 1\n", "item"),
        ("ab\n", "b"),
        ("concat(x)\n", "cat"),
    ],
)
def test_an_exact_text_that_occurs_once_is_replaced_inside_a_longer_word_and_the_note_says_so(body, old):
    outcome = replace_text(body, old, "other()")
    assert isinstance(outcome, EditApplied)
    assert (outcome.text, outcome.tier) == (body.replace(old, "other()"), "exact")
    assert outcome.notes == ("inside a longer word",)


@pytest.mark.parametrize(
    ("body", "old"),
    [
        ("cafe\u0301 = 1\n", "cafe"),
        ("timeout = 1.5\n", "timeout = 1"),
        ("timeout = 1.5\n", "timeout = 1."),
        ("timeout = 10\n", "timeout = 1"),
        ("item10 = 1\n", "item1"),
        ("ratio = 0.25;\n", "25"),
        ("liked \U0001f44d\U0001f3fd\n", "\U0001f44d"),
        ("made by \U0001f469\u200d\U0001f4bb\n", "\U0001f4bb"),
        ("v = 11.22\n", ".22"),
        ("v = 1.2.3\n", "2.3"),
    ],
)
def test_part_of_a_number_or_of_a_combined_character_is_not_replaced(body, old):
    outcome = replace_text(body, old, "other")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "inside_word"
    assert outcome.suggestion is not None
    assert isinstance(replace_text(body, outcome.suggestion, "other"), EditApplied)


@pytest.mark.parametrize("new", ["get_all", "get_each"])
def test_a_replacement_inside_a_word_is_not_made_twice(new):
    again = replace_text(f"{new}()\n", "get", new)
    assert isinstance(again, AlreadyApplied)


@pytest.mark.parametrize(
    ("body", "old", "new"),
    [
        ("concat_all(x)\n", "cat_all(x)", "cat_all(y)"),
        ("\U0001f469\u200d\U0001f4bb b\n", " b", ""),
    ],
)
def test_an_edit_that_begins_inside_a_word_and_keeps_it_has_no_note(body, old, new):
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied)
    assert (outcome.text, outcome.notes) == (body.replace(old, new), ())


def test_part_of_a_text_without_blanks_between_words_is_replaced():
    outcome = replace_text("设置超时时间\n", "超时", "重试")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "设置重试时间\n"


def test_a_first_line_without_its_indentation_does_not_draw_itself_to_the_margin():
    body = "def run():\n    if ready:\n        start()\n"
    outcome = replace_text(body, "if ready:\n        start()", "check()\nif ready:\n        start()")
    assert not isinstance(outcome, EditApplied) or outcome.text == body.replace(
        "    if", "    check()\n    if", 1
    )


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("check(a)\nreturn total", "check(a)\nreturn total\nlog()"),
        ("return total", "return total\nlog()"),
    ],
)
def test_a_line_that_goes_on_in_the_file_is_not_cut_in_two(end, old, new):
    body = f"check(a){end}return total + rest{end}"
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditRefused)
    assert outcome.suggestion == f"{old} + rest"
    assert outcome.code == "unclear"
    assert "would split it" in outcome.message


def test_the_part_of_a_line_that_old_names_is_changed_and_the_rest_stays():
    body = "check(a)\nreturn total + rest\n"
    outcome = replace_text(body, "check(a)\nreturn total", "check(b)\nreturn amount")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "check(b)\nreturn amount + rest\n"


def test_the_last_line_end_of_a_file_of_mixed_ends_can_go():
    outcome = replace_text("alpha \n\n  alpha\r\n", "alpha\n", "beta")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "alpha \n\n  beta"


@pytest.mark.parametrize(
    ("body", "old", "new", "result"),
    [
        ("one\ntwo\r\nthree\n", "two", "2", "one\n2\r\nthree\n"),
        ("\none\r\ntwo\nthree\n", "two", "2", "\none\r\n2\nthree\n"),
        ("one\ntwo\r\nthree\n", "two\n", "", "one\nthree\n"),
        ("one\r\ntwo\nthree\n", "one\n", "", "two\nthree\n"),
        ("one\r\ntwo\nthree\n", "one\n", "1 ", "1 two\nthree\n"),
        ("one\r\ntwo\nthree\n", "one\ntwo", "1\n2\n", "1\r\n2\n\nthree\n"),
        ("one\r\ntwo\nthree", "three", "3\nfour", "one\r\ntwo\n3\nfour"),
        ("one x\r\ntwo\nthree\n", "x\ntwo", "y\n2", "one y\r\n2\nthree\n"),
        ("one\r\ntwo \nthree\n", "two ", "two", "one\r\ntwo\nthree\n"),
        ("one\r\ntwo\nthree\n", "two", "  two ", "one\r\n  two \nthree\n"),
        ("one \r\ntwo\nthree\n", "one \ntwo", "one\ntwo", "one\r\ntwo\nthree\n"),
        ("a\rb\r", "a\nb", "a\nc", "a\rc\r"),
        ("a\nb\n", "a\nb", "a\r\nc", "a\nc\n"),
        ("a\nb\n", "a\nb", "a\r\nb", "a\r\nb\n"),
    ],
)
def test_line_ends_stay_the_files_unless_nothing_else_is_changed(body, old, new, result):
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied)
    assert (outcome.text, outcome.tier) == (result, "exact")


@pytest.mark.parametrize(
    ("old", "new", "span"),
    [
        ("one\n", "", CharSpan(0, 5)),
        ("one\n", "1\t", CharSpan(0, 5)),
        ("two", "2", CharSpan(5, 9)),
        ("two\n", "", CharSpan(5, 9)),
        ("three", "3", CharSpan(9, 15)),
    ],
)
def test_only_lines_that_change_are_written_in_a_file_of_mixed_line_ends(old, new, span):
    outcome = replace_text("one\r\ntwo\nthree\n", old, new)
    assert isinstance(outcome, EditApplied)
    assert outcome.spans == (span,)


@pytest.mark.parametrize(
    ("row", "old", "added", "kind"),
    [
        ("if a:", "if a:", "    log()", EditRefused),
        ("if a:", "if a:", "        log()", EditApplied),
        ("x = 1", "x = 1", "    log()", EditApplied),
        ("x = 1", "x = 1", "        log()", EditApplied),
        ("x = 1", "x = 1", "  log()", EditRefused),
    ],
)
def test_lines_below_one_without_its_indentation_are_written_where_they_are_deep_enough(
    row, old, added, kind
):
    body = f"def f():\n    {row}\n        go()\n"
    outcome = replace_text(body, old, f"{old}\n{added}")
    assert isinstance(outcome, kind)
    assert not isinstance(outcome, EditApplied) or outcome.text == body.replace(row, f"{row}\n{added}")


@pytest.mark.parametrize(
    ("new", "kind"),
    [
        ("    x = 1\n            z = 0\n        y = 2", EditApplied),
        ("    x = 1\n\n        y = 2", EditApplied),
        ("    y = 2\n        x = 1", EditApplied),
        ("x = 1\n        y = 2", EditRefused),
        ("    x = 1\n    z = 0\n        y = 2", EditRefused),
    ],
)
def test_half_an_indentation_is_no_trouble_where_the_other_lines_show_the_depth(new, kind):
    body = "def f():\n        x = 1\n        y = 2\n"
    outcome = replace_text(body, "    x = 1\n        y = 2", new)
    assert isinstance(outcome, kind)
    assert not isinstance(outcome, EditApplied) or outcome.text == f"def f():\n    {new}\n"


def test_a_depth_that_another_old_line_has_is_sure():
    body = "def f():\n        x = 1\n    y = 2\n"
    outcome = replace_text(body, "    x = 1\n    y = 2", "    x = 1\n    y = 2\n    z = 3")
    assert isinstance(outcome, EditApplied)
    assert (outcome.text, outcome.tier) == (f"{body}    z = 3\n", "exact")


@pytest.mark.parametrize(
    ("new", "result"),
    [("", "\nc\n"), ("b = 2", "b = 2  \nc\n"), ("b = 3\nc = 2", "b = 3\nc = 2  \nc\n")],
)
def test_trailing_blanks_stay_on_a_line_that_stays_or_is_changed_in_its_place(new, result):
    outcome = replace_text("a = 1\nb = 2  \nc\n", "a = 1\nb = 2", new)
    assert isinstance(outcome, EditApplied)
    assert outcome.text == result


def test_a_sign_left_out_at_the_end_stays():
    outcome = replace_text("check(a);\nsend(total);\n", "check(a);\nsend(total)", "check(a);\nsend(amount)")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "check(a);\nsend(amount);\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_trailing_blanks_do_not_move_to_an_added_line(end):
    outcome = replace_text(f"link one two  {end}rest{end}", "link one two", "link one two\nlink three four")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == f"link one two  {end}link three four{end}rest{end}"


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_lines_that_stand_twice_are_replaced_in_both_places_when_all_are_meant(end):
    body = f"open(){end}close(){end}wait(){end}open(){end}close(){end}"
    outcome = replace_text(body, "open()\nclose()", "open()\nshut()", every=True)
    assert isinstance(outcome, EditApplied)
    assert (outcome.text, outcome.count) == (body.replace("close", "shut"), 2)


def test_a_deletion_that_would_join_two_lines_is_refused():
    outcome = replace_text("total = 1  # a note\nrest = 2\n", "  # a note\n", "")
    assert isinstance(outcome, EditRefused)


@pytest.mark.parametrize(
    ("depth", "old", "new"),
    [
        ("\t", "value = 1", "value = 1\n    other = 2"),
        ("\t", "value = 1", "if late:\n    value = 1"),
        ("    ", "value = 1", "value = 1\n\t\t\t\t\tother = 2"),
        ("    ", "value = 1", "value = 1\n  other = 2"),
        ("    ", "if ready:", "if ready:\n    start()"),
    ],
)
def test_lines_added_to_one_without_its_indentation_must_show_their_depth_as_the_file_does(depth, old, new):
    outcome = replace_text(f"def run():\n{depth}{old}\n", old, new)
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "indent_conflict"
    assert outcome.suggestion == depth + old


@pytest.mark.parametrize("depth", ["\t", "    "])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("value = 1", "value = 1\n{}other = 2"),
        ("if ready:", "if ready:\n{}{}start()"),
        ("value = 1\nrest = 2", "value = 1\nother = 3\nrest = 2"),
    ],
)
def test_lines_added_to_one_without_its_indentation_at_a_depth_that_the_file_shows_are_written(
    depth, old, new
):
    body = f"def run():\n{depth}{old}\n"
    outcome = replace_text(body, old, new.replace("{}", depth))
    assert isinstance(outcome, EditApplied)
    assert outcome.text == body.replace(old, new.replace("{}", depth))


@pytest.mark.parametrize(
    ("times", "told"),
    [
        (2, "fits 2 places: lines 1, 2."),
        (19, "fits 19 places: lines 1, 2, 3, 4, 5 ..."),
        (50, "fits 20 or more places: lines 1, 2, 3, 4, 5 ..."),
    ],
)
def test_the_number_of_places_that_fit_is_true_also_where_not_all_are_looked_for(times, told):
    outcome = replace_text("step()\n" * times, "step()", "stop()")
    assert isinstance(outcome, EditRefused)
    assert told in outcome.message


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("eady:\n    start()", "eady:\n    stop()"),
        ("if ready:\n    sta", "if late:\n    sta"),
        ("eady:\n    sta", "eady:\n    check()\n    sta"),
    ],
)
def test_part_of_a_word_at_an_edge_that_stays_as_it_is_may_be_quoted(old, new):
    body = "if ready:\n    start()\n"
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied)
    assert outcome.text == body.replace(old, new)


def test_lines_are_not_added_after_part_of_a_word():
    outcome = replace_text("x = 1\nvalue\n", "val", "val\nif late:")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "unclear"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def g(self):", "def h(self):\n        return 0\n\n    def g(self):"),
        ("def g(self):", "@property\n    def g(self):"),
        ("def g(self):", "def g(self):\n        log()\n        if x:\n            y()"),
        ("state = 1", "if late:\n        state = 2\n    else:\n        state = 1"),
        ("state = 1", "state = (\n        1\n    )"),
    ],
)
def test_a_line_without_its_indentation_is_replaced_where_the_literal_result_keeps_the_blocks(old, new):
    body = "class A:\n    state = 1\n\n    def g(self):\n        return 1\n"
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied)
    assert (outcome.text, outcome.tier) == (body.replace(old, new), "exact")
    compile(outcome.text, "a.py", "exec")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def g(self):", "def h(self):\n    return 0\n\ndef g(self):"),
        ("def g(self):", "def g(self):\n    log()"),
        ("def g(self):", "state = 2\n    more = 3"),
        ("state = 1", "if late:\n    state = 1"),
        ("state = 1", "while late:\n        if x:\n        state = 1"),
    ],
)
def test_a_line_without_its_indentation_is_refused_where_the_literal_result_would_break_a_block(old, new):
    body = "class A:\n    state = 1\n\n    def g(self):\n        return 1\n"
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "indent_conflict"


@pytest.mark.parametrize(
    ("body", "old", "new", "wanted"),
    [
        ("one\ntwo\n", "one\ntwo", "one\r\ntwo", "one\r\ntwo\n"),
        ("one\r\ntwo\r\n", "one\r\ntwo", "one\ntwo", "one\ntwo\r\n"),
        ("one\ntwo\n", "one\r\ntwo", "one\r\n2", "one\n2\n"),
        ("one\ntwo\n", "two", "2\r\n3", "one\n2\n3\n"),
        ("one\r\ntwo\r\n", "one\ntwo", "1\ntwo", "1\r\ntwo\r\n"),
        ("one\rtwo\r", "one\ntwo", "1\ntwo\nthree", "1\rtwo\rthree\r"),
    ],
)
def test_line_ends_of_the_arguments_count_only_where_nothing_else_changes(body, old, new, wanted):
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied)
    assert outcome.text == wanted


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_only_the_text_that_was_quoted_is_said_to_be_replaced(end):
    outcome = replace_text(f"one{end}two three{end}", "three", "3")
    assert isinstance(outcome, EditApplied)
    at = len(f"one{end}two ")
    assert [(span.start, span.end) for span in outcome.spans] == [(at, at + len("three"))]


@pytest.mark.parametrize(
    ("body", "old", "new", "wanted"),
    [
        ("one\r\ntwo\n", "two\n", "2\n", "one\r\n2\n"),
        ("one\r\ntwo\n", "two\n", "", "one\r\n"),
        ("one\r\ntwo\n", "two", "", "one\r\n\n"),
        ("one\ntwo\r\nthree\n", "one\ntwo\n", "1\n", "1\r\nthree\n"),
        ("\nalpha one\r\ntwo\n", "\nalpha one\n", "alpha two\n", "alpha two\r\ntwo\n"),
        ("\none\r\ntwo\n", "one", "1", "\n1\r\ntwo\n"),
        ("one\r\ntwo three\nfour", "two", "2", "one\r\n2 three\nfour"),
        ("one\ntwo three\nfour\r\n", "two ", "2\n", "one\n2\nthree\nfour\r\n"),
        ("one\r\ntwo\nthree four", "three ", "", "one\r\ntwo\nfour"),
        ("one\ntwo\r\nthree\n", "one\n", "1 and ", "1 and two\r\nthree\n"),
    ],
)
def test_every_line_of_a_file_of_mixed_ends_keeps_its_own(body, old, new, wanted):
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied)
    assert outcome.text == wanted


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("head\nitem one", "head\nitem two", "head\nitem two  \nfoot\n"),
        ("head\nitem one", "title\nhead\nitem one", "title\nhead\nitem one  \nfoot\n"),
        ("head\nitem one ", "head\nitem two ", "head\nitem two  \nfoot\n"),
    ],
)
def test_trailing_blanks_that_old_leaves_out_stay_on_their_line(old, new, wanted):
    outcome = replace_text("head\nitem one  \nfoot\n", old, new)
    assert isinstance(outcome, EditApplied)
    assert (outcome.text, outcome.tier) == (wanted, "exact")


def test_lines_that_go_leave_no_trailing_blanks_behind():
    outcome = replace_text("head\nitem one  \nfoot\n", "head\nitem one", "")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "\nfoot\n"


@pytest.mark.parametrize(
    ("old", "new", "wanted"),
    [
        ("first()\nlast()", "first()\nnext()\nlast()", "    first()\nnext()\nlast()\n"),
        ("first()\nlast()", "first()\n        next()\nlast()", "    first()\n        next()\nlast()\n"),
        ("first()\nlast()", "start()\n\nlast()", "    start()\n\nlast()\n"),
        ("  first()\nlast()", "  first()\nend()", "    first()\nend()\n"),
    ],
)
def test_a_first_line_without_all_of_its_indentation_keeps_it_beside_lines_whose_depth_is_sure(
    old, new, wanted
):
    outcome = replace_text("    first()\nlast()\n", old, new)
    assert isinstance(outcome, EditApplied)
    assert (outcome.text, outcome.tier) == (wanted, "exact")


def test_a_line_at_half_the_depth_above_one_without_its_indentation_is_refused():
    outcome = replace_text("    first()\nlast()\n", "first()", "  start()\n    first()")
    assert isinstance(outcome, EditRefused)


def test_a_first_line_that_is_moved_to_the_margin_leaves_no_indentation_behind():
    outcome = replace_text("    first()\nlast()\n", "  first()\nlast()", "start()\nlast()")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "start()\nlast()\n"


def test_a_line_hint_finds_its_place_among_hundreds_alike():
    outcome = replace_text("step()\n" * 900, "step()", "stop()", hint=MatchHint(line=900, within=0))
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "step()\n" * 899 + "stop()\n"


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_line_in_the_place_of_one_that_ended_in_a_carriage_return_stays_apart_from_an_empty_one(end):
    outcome = replace_text("a\rb\n\nc\n", f"a\nb{end}", f"x{end}")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "x\n\nc\n"


@pytest.mark.parametrize(
    ("old", "new"), [("b\n", ""), ("b", ""), ("b\n", "\n"), ("b\n\nc", "\n\nc"), ("a\nb", "a\n")]
)
def test_a_line_that_ends_in_a_carriage_return_is_not_joined_with_an_empty_one(old, new):
    outcome = replace_text("a\rb\n\nc\n", old, new)
    assert isinstance(outcome, EditRefused)
    assert "one kind of line end" in outcome.hint


def test_blanks_alone_at_the_end_of_a_line_are_changed_among_mixed_line_ends():
    outcome = replace_text("a\r\nb  \nc\n", "a\nb  \nc", "a\nb\nd")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "a\r\nb\nd\n"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "  "])
def test_whole_lines_whose_new_text_lacks_the_line_end_are_not_joined_with_the_next(start, end):
    outcome = replace_text("  foo()\n  next()\n".replace("\n", end), f"{start}foo()\n", "  bar()")
    assert isinstance(outcome, EditRefused)
    assert "line 2 would be joined" in outcome.message


@pytest.mark.parametrize(
    ("body", "old", "new", "after"),
    [
        ("foo()\n\nnext()\n", "foo()\n", "bar()", "bar()\nnext()\n"),
        ("x\nfoo()\n", "foo()\n", "bar()", "x\nbar()"),
        ("a +\nb\n", "a +\n", "a + ", "a + b\n"),
        ("a = [\nb]\n", " [\n", " [", "a = [b]\n"),
    ],
)
def test_a_line_end_goes_where_no_line_is_joined_or_the_arguments_show_that_one_is(body, old, new, after):
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied)
    assert outcome.text == after


@pytest.mark.parametrize("new", ["if x:\n    foo()", "\n    foo()", "\n    foo()\n    bar()"])
def test_lines_below_one_without_indentation_are_refused_where_they_may_be_sent_as_deep_or_deeper(new):
    outcome = replace_text("def f():\n    foo()\n", "foo()", new)
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "indent_conflict"


@pytest.mark.parametrize(
    ("body", "old", "new", "after"),
    [
        ("\n\naax\r\n\n \n", "\n\naax", "\nQ", "\nQ\r\n\n \n"),
        ("\r\n\r\nb\r", "\n\nb", "Q", "Q\r"),
        ("a\rxa\r\n  bx\n\r", "xa\n  b", "q  b", "a\rq  bx\n\r"),
    ],
)
def test_the_line_end_behind_the_old_text_stays_in_a_file_of_mixed_ends(body, old, new, after):
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied)
    assert outcome.text == after


@pytest.mark.parametrize(
    ("body", "old", "new"),
    [
        ("\r\n\n", "\n", "Q\n"),
        ("a\r\nb\ra\rc\r", "a\n", ""),
        ("ba\raa bb\nx\n", "a", "\nQ"),
        ("a\rx\ny\n", "x", ""),
    ],
)
def test_every_place_is_not_replaced_where_a_line_end_would_be_cut_in_two_or_joined(body, old, new):
    outcome = replace_text(body, old, new, every=True)
    assert isinstance(outcome, EditRefused)
    assert "one by one" in outcome.hint


def test_every_place_is_replaced_in_a_file_of_mixed_ends_where_lines_stay_lines():
    outcome = replace_text("a\r\nb\na\nb\r", "b", "c", every=True)
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "a\r\nc\na\nc\r"


def test_a_line_that_comes_first_does_not_take_the_depth_of_the_line_before_it():
    block = "finally:\n        if healed(one):\n            tell()\n        close()"
    outcome = replace_text(f"try:\n    {block}\n", block, block.removeprefix("finally:\n        "))
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "indent_conflict"


def test_a_first_line_that_stays_is_in_place_though_one_below_is_the_same():
    outcome = replace_text("if a:\n    end\nend\nx\n", "end\nend\nx", "end\nend\ny")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "if a:\n    end\nend\ny\n"
