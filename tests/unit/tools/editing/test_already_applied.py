import pytest

from handtools.tools.editing.edit_outcome import AlreadyApplied, EditApplied, EditRefused
from handtools.tools.editing.replacement import replace_text

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
    assert made(old, new).excerpt.line == line


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
    assert made(old, new, body).excerpt.line == 2


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
    assert made("second = call(2)", "first_call(1)\nsecond = call(2)", body).excerpt.line == 1


def test_a_change_is_told_by_its_line_in_a_file_that_begins_with_a_blank_one():
    assert made("    seat(guest)", "    seat(guest)\n    pour(guest)", f"\n{BODY}").excerpt.line == 5


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


@pytest.mark.parametrize("blanks", [1, 6])
def test_a_line_is_beside_another_across_blank_ones(blanks):
    body = "base = load()\n" + "\n" * blanks + WIDE.replace("if ", "if  ")
    outcome = replace_text(body, WIDE, f"base = load()\n{WIDER}")
    assert isinstance(outcome, EditApplied)
    assert outcome.text.count("load()") == 1


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
    assert made(old, LONG, body).excerpt.line == line


@pytest.mark.parametrize(
    ("new", "kind"), [("a" * 17, EditRefused), ("a" * 23, EditRefused), ("a" * 24, AlreadyApplied)]
)
def test_new_text_elsewhere_is_no_chance_from_twenty_four_letters_on(new, kind):
    body = f"{new}\nmiddle()\nvalue_of_any = compute(888)\n"
    assert isinstance(replace_text(body, "value_of_any = compute(999)", new), kind)


def test_new_text_in_the_place_of_the_old_is_told_from_sixteen_letters_on():
    body = "zero()\nvalue_of_all = compute(12)\n"
    assert made("value_of_any = compute(12)", "value_of_all = compute(12)", body).where == "line 2"


@pytest.mark.parametrize(
    ("body", "old", "new"),
    [
        ("a {\n  b {\n  }\n}\n", "  }", "  }\n}"),
        ("a\n\nb\n", "a\n", "a\n\n"),
        ("first_call()\n\nlast_call()\n", "first_call()\n", "first_call()\n\n"),
        ("  first_call(  );\n  }\n}\n", "  first_call();\n  }\n", "  first_call();\n  }\n}\n"),
        (
            "  open_all();\n  first_call(  );\n}\n",
            "  open_all();\n  first_call();\n",
            "  open_all();\n  first_call();\n}\n",
        ),
        ("    first_call()\n", "first_call()", "    first_call()"),
    ],
)
def test_one_more_blank_line_bracket_or_level_is_added_though_one_is_there(body, old, new):
    assert isinstance(replace_text(body, old, new), EditApplied)


RECIPE = ["boil(water)", "warm(the_pot)", "brew = tea(now)", "stir(slowly)", "pour(the_tea)", ""]


@pytest.mark.parametrize(
    ("old", "new", "word", "other"),
    [
        (RECIPE[2:4], RECIPE[1:4], "slowly", "twice"),
        (RECIPE[2:4], RECIPE[0:4], "slowly", "twice"),
        (RECIPE[1:3], RECIPE[1:4], "pot", "cup"),
        (RECIPE[1:3], RECIPE[1:5], "pot", "cup"),
        (RECIPE[1:4], RECIPE[0:5], "now", "later"),
    ],
)
@pytest.mark.parametrize("apart", ["\n", "\n\n", "\n\n\n\n\n\n\n\n"])
def test_lines_beside_the_old_ones_that_only_new_has_stay_once_and_as_far_apart(
    old, new, word, other, apart
):
    body = apart.join(RECIPE).replace("brew =", "brew  =")
    outcome = replace_text(body, apart.join(old), apart.join(new).replace(word, other))
    assert isinstance(outcome, EditApplied), outcome
    assert outcome.text == body.replace(word, other)


@pytest.mark.parametrize(
    ("body", "old", "new", "after"),
    [
        # Nothing stays of the old lines.
        (
            "warm(the_pot)\n\n\nbrew  = tea(now)\nstir(slowly)\n",
            "\nbrew = tea(now)\n",
            "warm(the_pot)\n\n",
            "warm(the_pot)\n\nstir(slowly)\n",
        ),
        (
            "warm(the_pot)\n\n\nbrew  = tea(now)\n\n\nstir(slowly)\n",
            "\nbrew = tea(now)\n\n",
            "warm(the_pot)\n\nstir(slowly)\n",
            "warm(the_pot)\n\n\nstir(slowly)\n",
        ),
        # The old text has such a line itself.
        (
            "warm(the_pot)\nbrew  = tea(now)\nwarm(the_pot)\npour()\n",
            "brew = tea(now)\nwarm(the_pot)\npour()",
            "warm(the_pot)\nbrew = tea(now)\nwarm(the_pot)\nserve()",
            "warm(the_pot)\nwarm(the_pot)\nbrew  = tea(now)\nwarm(the_pot)\nserve()\n",
        ),
        (
            "pour()\nwarm(the_pot)\nbrew  = tea(now)\nwarm(the_pot)\n",
            "pour()\nwarm(the_pot)\nbrew = tea(now)",
            "serve()\nwarm(the_pot)\nbrew = tea(now)\nwarm(the_pot)",
            "serve()\nwarm(the_pot)\nbrew  = tea(now)\nwarm(the_pot)\nwarm(the_pot)\n",
        ),
        # Above stands only the nearer of the two.
        (
            "warm(the_pot)\nbrew  = tea(now)\nstir(slowly)\n",
            "brew = tea(now)\nstir(slowly)",
            "boil(water)\nwarm(the_pot)\nbrew = tea(now)\nstir(twice)",
            "warm(the_pot)\nboil(water)\nwarm(the_pot)\nbrew  = tea(now)\nstir(twice)\n",
        ),
    ],
)
def test_a_line_beside_is_written_again_only_where_it_was_not_left_out(body, old, new, after):
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied), outcome
    assert outcome.text == after


@pytest.mark.parametrize(("first", "last", "where"), [(2, 16, "lines 3-17"), (3, 17, "lines 4-18")])
def test_a_line_that_only_new_has_counts_to_the_place_of_old_lines_that_are_nearly_there(
    first, last, where
):
    rows = [f"step_{number}(now)\n" for number in range(20)]
    body = "".join(rows)
    old = "".join(rows[3:17]).replace("step_8(", "step_x(")
    new = "".join(rows[first : last + 1]).replace("step_8(", "step_x(").replace("step_12(", "stop(")
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied), outcome
    assert outcome.text == body.replace("step_12(", "stop(")
    assert outcome.notes[0].startswith(where)


@pytest.mark.parametrize(
    ("body", "new", "after"),
    [
        (
            "  warm(the_pot)\npour(the_tea)\n",
            " warm(the_pot)\nstir(it)\npour(the_tea)\n",
            "  warm(the_pot)\nstir(it)\npour(the_tea)\n",
        ),
        (
            "boil(water)\n  warm(the_pot)\n",
            "boil(water)\nstir(it)\n warm(the_pot)\n",
            "boil(water)\nstir(it)\n  warm(the_pot)\n",
        ),
    ],
)
def test_a_line_that_only_new_has_shows_how_deep_the_lines_beside_it_are(body, new, after):
    outcome = replace_text(body, " warm(the_pot)\n", new)
    assert isinstance(outcome, EditApplied), outcome
    assert outcome.text == after


def test_a_line_becomes_like_the_one_above_it_though_that_stands_there():
    body = "pour(the_tea)\nstir( slowly )\n"
    outcome = replace_text(body, "stir(slowly)", "pour(the_tea)")
    assert isinstance(outcome, EditApplied), outcome
    assert outcome.text == "pour(the_tea)\npour(the_tea)\n"


@pytest.mark.parametrize(
    ("body", "new", "where"),
    [
        ("pour the hot tea now\n", "pour the hot tea now", "line 1"),
        ("\npour the hot tea now\nend\n", "pour the hot tea now", "line 2"),
        ("end\n  pour the hot tea now  ", "pour the hot tea now", "line 2"),
        # 15 letters are in many a file.
        ("pour the hot tea in\n", "pour the hot tea in", None),
        # They must fill their lines.
        ("x pour the hot tea now\n", "pour the hot tea now", None),
        ("pour the hot tea now x\n", "pour the hot tea now", None),
        ("end\n", "pour the hot tea now", None),
    ],
)
def test_where_nothing_like_the_old_text_is_left_16_letters_of_new_text_tell_that_it_was_made(
    body, new, where
):
    outcome = replace_text(body, "}}", new)
    assert getattr(outcome, "where", None) == where, outcome


NOTES = (
    "fetch_all_of_the_water()\nboil_all_of_the_water()\nbrew_all_of_that_tea()\npour_all_of_that_tea()\n"
)

FETCH, BOIL, BREW, POUR = NOTES.splitlines()


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        # Of these three lines one is to stay: two are yet to go.
        (["fetch_none()", BOIL, "brew_none()"], [FETCH], None),
        ([FETCH, "boil_none()", BREW], [BOIL], None),
        (["boil_none()", BREW, "pour_none()"], [POUR], None),
        # The new text goes beyond what is like the old one.
        (["boil_none()", BREW, POUR], [FETCH, BOIL], "lines 1-2"),
        ([FETCH, BOIL, "brew_none()"], [BREW, POUR], "lines 3-4"),
        # It is all that is like the old one.
        (["pour_all_of_our_tea()", "close()"], [POUR], "line 4"),
        # It has as many lines as the old one.
        ([FETCH, "boil_none()", POUR], [BOIL, BREW, POUR], "lines 2-4"),
    ],
)
def test_new_text_is_no_change_made_while_lines_around_it_are_those_to_go(old, new, where):
    outcome = replace_text(NOTES, "\n".join(old), "\n".join(new))
    assert getattr(outcome, "where", None) == where, outcome


@pytest.mark.parametrize(("last", "where"), [("up", "line 4"), ("x", None)])
def test_where_the_old_text_may_still_be_elsewhere_24_letters_of_new_text_tell_that_it_was_made(
    last, where
):
    new = f"pour all the hot tea slowly {last}"
    outcome = replace_text(f"greet(guest)\nleave()\n\n{new}\n", "greet(guest)\nseat(guest)\n", f"{new}\n")
    assert getattr(outcome, "where", None) == where, outcome
