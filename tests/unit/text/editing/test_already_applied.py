import pytest

from handtools.text.editing import AlreadyApplied, EditApplied, EditRefused, replace_text

BODY = "def enter(guest):\n    if guest.is_late():\n        return None\n    seat(guest)\n    pour(guest)\n"


def made(old: str, new: str, body: str = BODY) -> AlreadyApplied:
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, AlreadyApplied), outcome
    assert outcome.text == body
    return outcome


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("    seat(guest)\n", "    if guest.is_late():\n        return None\n    seat(guest)\n", 2),
        ("    seat(guest)", "    seat(guest)\n    pour(guest)", 4),
        ("seat(guest)\n", "seat(guest)\n    pour(guest)\n", 4),
        ("  seat(guest)\n", "  seat(guest)\n  pour(guest)\n", 4),
        ("is_late", "is_late()", 2),
    ],
)
def test_what_stands_around_the_old_text_is_not_put_there_again(old, new, line):
    assert made(old, new).window.line == line


def test_what_was_added_is_found_at_the_beginning_of_a_file_and_below_blank_lines_there():
    loose = "import  alpha_one\nimport  beta_two\nstart()\n"
    assert made("import beta_two", "import alpha_one\nimport beta_two", loose).where == "lines 1-2"
    assert made("    seat(guest)", "    seat(guest)\n    pour(guest)", "\n\n" + BODY).where == "lines 6-7"


def test_a_replacement_that_was_made_is_told_by_its_new_text():
    assert (
        made("    greet(guest)\n    pour(guest)\n", "    seat(guest)\n    pour(guest)\n").where
        == "lines 4-5"
    )


def test_one_more_blank_line_or_bracket_is_added_though_one_is_there():
    assert isinstance(replace_text("a {\n  b {\n  }\n}\n", "  }", "  }\n}"), EditApplied)
    assert isinstance(replace_text("a\n\nb\n", "a\n", "a\n\n"), EditApplied)


def test_the_same_line_elsewhere_is_no_sign_of_an_edit_made():
    outcome = replace_text(BODY, "    pour(guest)\n", "    pour(guest)\n    return None\n")
    assert isinstance(outcome, EditApplied)


def test_what_a_deletion_would_leave_does_not_make_it_done():
    body = "first_part(1)\nsecond_part(2)\nthird_part(3)\n"
    outcome = replace_text(body, "first_part(1)\nsecond_piece(2)\nthird_part(3)", "third_part(3)")
    assert isinstance(outcome, EditRefused)


def test_lines_that_new_has_and_old_leaves_out_are_meant_once():
    body = "base = load()\n\n# scale\nif  wide:\n    grow(base)\n"
    old = "# scale\nif wide:\n    grow(base)\n"
    outcome = replace_text(body, old, "base = load()\n\n# scale\nif wide:\n    grow(base, 2)\n")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "base = load()\n\n# scale\nif  wide:\n    grow(base, 2)\n"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        # It changes places with another one.
        (
            ["boil water", "brew the tea", "stir slowly", "add sugar", "wait a while"],
            ["boil water", "wait a while", "stir slowly", "add sugar", "brew the tea"],
        ),
        # It is new to the old text.
        (["stir slowly", "wait a while"], ["stir slowly", "brew the tea"]),
    ],
)
def test_a_line_in_the_place_of_another_is_written_though_its_like_stands_beside_it(old, new):
    body = "\n".join(["# how to", *(line.replace(" ", "  ") for line in old), "brew the tea", "drink", ""])
    outcome = replace_text(body, "\n".join(old), "\n".join(new))
    assert isinstance(outcome, EditApplied)
    assert [" ".join(line.split()) for line in outcome.text.splitlines()] == [
        "# how to",
        *new,
        "brew the tea",
        "drink",
    ]


def test_a_change_that_is_there_is_not_made_in_a_twin_with_other_blank_lines():
    made_one = "  }\n\n  .title_large-strong {\n    weight: bold;\n  }\n"
    twin = "  }\n  .title-strong {\n    weight: bold;\n  }\n"
    body = f"a {{\n{made_one}}}\nb {{\n{twin}}}\n"
    made("  }\n\n  .title-strong {\n    weight: bold;\n  }\n", made_one, body)


def test_a_change_that_is_there_is_not_made_in_a_twin_at_another_depth():
    old = "    close_all_the_doors()\n    return greeting\n"
    new = "    close_all_the_doors(slowly)\n    return greeting\n"
    deeper = old.replace("    ", " " * 8)
    body = f"def leave():\n{new}\ndef flee():\n    if late:\n{deeper}"
    assert made(old, new, body).window.line == 2


def test_a_twin_that_differs_by_blanks_at_its_ends_is_changed_though_another_was_before():
    old = "    close_all_the_doors()\n    return greeting\n"
    new = "    close_all_the_doors(slowly)\n    return greeting\n"
    outcome = replace_text(f"{new}\nx\n" + old.replace("\n", "  \n"), old, new)
    assert isinstance(outcome, EditApplied)
    assert outcome.text.count("slowly") == 2


def test_a_line_alone_is_changed_at_another_depth_though_another_was_changed_before():
    body = "def leave():\n    if on:\n        close_doors(slowly)\n\ndef flee():\n    close_doors()\n"
    outcome = replace_text(body, "        close_doors()\n", "        close_doors(slowly)\n")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == body.replace("close_doors()", "close_doors(slowly)")


def test_what_stands_around_lines_in_another_layout_is_told_at_the_very_top_too():
    body = "first_call(1)\nsecond  =  call(2)\nlast_call(3)\n"
    assert made("second = call(2)", "first_call(1)\nsecond = call(2)", body).window.line == 1


def test_a_change_is_told_by_its_line_in_a_file_that_begins_with_a_blank_one():
    assert made("    seat(guest)", "    seat(guest)\n    pour(guest)", f"\n{BODY}").window.line == 5


def test_a_short_line_that_stands_below_is_written_once_more():
    body = "open_all( base )\nload_all( base )\npass\n"
    outcome = replace_text(
        body, "open_all(base)\nload_all(base)", "open_all(base, 2)\nload_all(base)\npass"
    )
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "open_all(base, 2)\nload_all( base )\npass\npass\n"


WIDE = "if wide:\n    grow(base)\n    stop()\n"
WIDER = WIDE.replace("grow(base)", "grow(base, 2)")


@pytest.mark.parametrize(
    ("above", "below"),
    [
        ("base = load()\n", ""),
        ("", "finish = close(base)\n"),
        ("", "\nfinish = close(base)\nreturn base\n"),
        ("first = base\nbase = load()\n", ""),
        ("base = load()\n", "finish = close(base)\n"),
    ],
)
def test_lines_that_the_file_has_beside_those_to_be_changed_are_not_written_again(above, below):
    body = above + WIDE.replace("if ", "if  ") + below
    outcome = replace_text(body, WIDE, above + WIDER + below)
    assert isinstance(outcome, EditApplied)
    assert outcome.text == above + WIDER.replace("if ", "if  ") + below


@pytest.mark.parametrize(
    ("above", "below", "result"),
    [
        ("base = load()\n", "other()\n", "base = load()\n{}finish = close(base)\nother()\n"),
        ("other()\n", "finish = close(base)\n", "other()\nbase = load()\n{}finish = close(base)\n"),
    ],
)
def test_of_lines_beside_those_to_be_changed_the_ones_that_are_missing_are_written(above, below, result):
    body = above + WIDE.replace("if ", "if  ") + below
    outcome = replace_text(body, WIDE, f"base = load()\n{WIDER}finish = close(base)\n")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == result.format(WIDER.replace("if ", "if  "))


@pytest.mark.parametrize(("blanks", "times"), [(5, 1), (6, 2)])
def test_a_line_is_beside_another_across_up_to_five_blank_ones(blanks, times):
    body = "base = load()\n" + "\n" * blanks + WIDE.replace("if ", "if  ")
    outcome = replace_text(body, WIDE, f"base = load()\n{WIDER}")
    assert isinstance(outcome, EditApplied)
    assert outcome.text.count("load()") == times


def test_blank_lines_below_a_line_that_the_file_has_are_written():
    outcome = replace_text(
        "base = load()\n" + WIDE.replace("if ", "if  "), WIDE, f"base = load()\n\n\n{WIDER}"
    )
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "base = load()\n\n\n" + WIDER.replace("if ", "if  ")


def test_a_line_that_the_old_text_has_elsewhere_is_written_beside_its_like():
    body = "log_state(1)\nbegin  (2)\nlog_state(1)\nfinish(3)\n"
    old = "begin (2)\nlog_state(1)\nfinish(3)"
    outcome = replace_text(body, old, "log_state(1)\n" + old.replace("3", "4"))
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "log_state(1)\n" + body.replace("3", "4")


@pytest.mark.parametrize("blank", ["", " "])
def test_one_more_bracket_is_added_below_lines_though_one_is_there(blank):
    body = f"alpha_first(go{blank})\nbeta_second(go)\n}}\n"
    old = "alpha_first(go)\nbeta_second(go)"
    outcome = replace_text(body, old, f"{old}\n}}")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == f"{body}}}\n"


LONG = "the_last_part_of_all_things(3)"


@pytest.mark.parametrize(
    ("body", "old"),
    [
        (f"{LONG}\nmiddle()\nfirst_part(1)\nsecond_part(2)\n", f"first_part(1)\nsecond_piece(2)\n{LONG}"),
        (
            f"first_part(1)\nsecond_part(2)\n{LONG}\n",
            f"first_part(1)\nsecond_piece(2)\n{LONG.replace('all', 'any')}",
        ),
        (
            f"{LONG}\nfirst_part(1)\nsecond_part(2)\n",
            f"{LONG.replace('all', 'any')}\nfirst_part(1)\nsecond_piece(2)",
        ),
        (f"-{LONG}\n", "something quite different"),
        (f"x = {LONG}\n", "something quite different"),
        (f"{LONG} + 1\n", "something quite different"),
    ],
)
def test_new_text_within_a_line_or_among_lines_that_are_to_go_does_not_make_it_done(body, old):
    assert isinstance(replace_text(body, old, LONG), EditRefused)


@pytest.mark.parametrize(
    ("body", "old", "line"),
    [
        (f"{LONG}\nrest()\n", "something quite different", 1),
        (f"  {LONG}  \nrest()\n", "something quite different", 1),
        (f"\n{LONG}", "something quite different", 2),
        (f"\n\n{LONG}\n", "something quite different", 3),
        (f"{LONG}\n", f"{LONG.replace('all', 'any')}\nsecond()", 1),
    ],
)
def test_new_text_that_fills_its_line_where_nothing_like_the_old_is_left_is_told(body, old, line):
    assert made(old, LONG, body).window.line == line


@pytest.mark.parametrize(
    ("new", "kind"), [("a" * 17, EditRefused), ("a" * 23, EditRefused), ("a" * 24, AlreadyApplied)]
)
def test_new_text_elsewhere_is_no_chance_from_twenty_four_letters_on(new, kind):
    body = f"{new}\nmiddle()\nvalue_of_any = compute(888)\n"
    assert isinstance(replace_text(body, "value_of_any = compute(999)", new), kind)


def test_new_text_in_the_place_of_the_old_is_told_from_sixteen_letters_on():
    body = "zero()\nvalue_of_all = compute(12)\n"
    assert made("value_of_any = compute(12)", "value_of_all = compute(12)", body).where == "line 2"
