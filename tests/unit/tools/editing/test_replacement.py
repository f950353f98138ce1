import pytest

from handtools.text.lines import SplicedText
from handtools.tools.editing import omitted_code
from handtools.tools.editing.edit_outcome import CharSpan, EditApplied, EditRefused, MatchHint
from handtools.tools.editing.replacement import replace_text

BLOCK = "def area(width, height):\n    result = width * height\n    return result\n"


def test_an_exact_match_is_replaced_and_says_where():
    outcome = replace_text("a\nb\nc\n", "b", "x")
    assert outcome == EditApplied(
        spliced=SplicedText("a\nb\nc\n", 2, 3, "x"), tier="exact", spans=(CharSpan(2, 3),)
    )
    assert outcome.count == 1


def test_overlapping_occurrences_are_two():
    outcome = replace_text("abcabcabc", "abcabc", "x")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "ambiguous"


def test_every_replaces_all_and_counts():
    outcome = replace_text("a b a\na\n", "a", "c", every=True)
    assert isinstance(outcome, EditApplied)
    assert (outcome.text, outcome.count) == ("c b c\nc\n", 3)
    outcome = replace_text("a\nb\nx\na\nb\n", "a\nb", "c", every=True)
    assert isinstance(outcome, EditApplied)
    assert (outcome.text, outcome.count) == ("c\nx\nc\n", 2)


def test_every_is_exact_only():
    assert isinstance(replace_text("    x = 1\n", "\tx = 1", "\tx = 2", every=True), EditRefused)


def test_every_tells_of_hits_inside_longer_words():
    outcome = replace_text("cat\ncatalog\n", "cat", "dog", every=True)
    assert isinstance(outcome, EditApplied)
    assert outcome.notes == ("1 of them inside a longer word",)


def test_each_tier_says_its_name():
    tiers = {
        "def area(width, height):\n    result = width * height \n    return result": "trailing white space",
        "  def area(width, height):\n      result = width * height\n      return result": "indentation",
        "def area(width,height):\n    result = width*height\n    return result": "inner white space",
        "def area(width, height):\n\n    result = width * height\n    return result": "blank lines",
        "def area(width, height):\n    resutl = width * height\n    return result": "spelling",
    }
    for old, tier in tiers.items():
        outcome = replace_text(BLOCK, old, old + "\n" + old.split("\n")[-1])
        assert isinstance(outcome, EditApplied), (tier, outcome)
        assert outcome.tier == tier


def test_a_closer_place_wins_over_a_looser_one():
    body = "x = call('a')  \n\nif y:\n    x = call(\"a\")\n"
    outcome = replace_text(body, "x = call('a')\n\nif y:", "x = call('b')\n\nif y:")
    assert isinstance(outcome, EditApplied)
    assert outcome.text.startswith("x = call('b')\n")


def test_two_places_of_the_same_tier_are_refused():
    body = "    value = compute(1)\n  value = compute(1)\n"
    outcome = replace_text(body, "value = compute(1)\n\n", "value = compute(2)\n\n")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "ambiguous"
    assert "lines 1, 2." in outcome.message


@pytest.mark.parametrize("above", ["", "start()\n"])
@pytest.mark.parametrize("below", ["", "stop()\n"])
@pytest.mark.parametrize("blanks", ["\n", "\n\n"])
def test_blank_lines_around_lines_that_match_but_for_blanks_go_where_the_new_text_has_none(
    above, below, blanks
):
    body = f"{above}{blanks}value = compute(1)  \n{blanks}{below}"
    outcome = replace_text(body, f"{blanks}value = compute(1)\n{blanks}", "value = compute(2)\n")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == f"{above}value = compute(2)\n{below}"


@pytest.mark.parametrize(("name", "kind"), [("r" * 16, EditApplied), ("r" * 15, EditRefused)])
def test_twenty_four_letters_are_recognised_across_other_blank_lines(name, kind):
    outcome = replace_text(
        f"first = 1\n{name} = 23\n", f"first = 1\n\n{name} = 23", f"first = 1\n\n{name} = 24"
    )
    assert isinstance(outcome, kind)


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ("value = 1", "old_string and new_string are the same text."),
        ("value = 1 ", "The edit would leave the file as it is."),
    ],
)
def test_an_edit_that_changes_nothing_is_refused(old, message):
    outcome = replace_text("value = 1\n", old, "value = 1")
    assert isinstance(outcome, EditRefused)
    assert (outcome.code, outcome.message) == ("no_change", message)


def test_a_file_that_is_as_it_was_read_is_edited_as_if_nobody_had_said_so():
    body = "def f():\n  value = compute(1)\n"
    outcome = replace_text(body, "    value = compute(1)\n", "    value = compute(2)\n", seen=body)
    assert isinstance(outcome, EditApplied)
    assert outcome.tier == "indentation"


@pytest.mark.parametrize(
    ("seen", "kind"),
    [("total = compute(1)\nx()\ntotal = compute(1)\n", EditRefused), ("something else\n", EditApplied)],
)
def test_what_was_read_twice_is_not_looked_for_loosely(seen, kind):
    body = "total = compute( 1 )\nrest()\n"
    assert isinstance(replace_text(body, "total = compute(1)", "total = compute(2)", seen=seen), kind)


def test_a_little_text_is_no_proof_once_anything_is_forgotten():
    assert isinstance(replace_text("if x {\n        }\n", "   }\n\n", "   };\n\n"), EditRefused)


def test_a_line_hint_tells_two_equal_places_apart():
    body = "a()\nb()\n" * 4
    outcome = replace_text(body, "b()", "c()", hint=MatchHint(line=6, within=0))
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "a()\nb()\na()\nb()\na()\nc()\na()\nb()\n"


def test_the_very_line_that_a_hint_names_goes_before_its_neighbours():
    outcome = replace_text("step()\n" * 3, "step()", "stop()", hint=MatchHint(line=2, within=1))
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "step()\nstop()\nstep()\n"


def test_a_line_hint_tells_two_places_apart_that_match_but_for_their_blanks():
    body = "start()\ntotal_width  =  first(1)\nstop()\ntotal_width  =  first(1)\n"
    edit = "total_width = first(1)", "total_width = first(2)"
    assert isinstance(replace_text(body, *edit), EditRefused)
    outcome = replace_text(body, *edit, hint=MatchHint(line=4, within=0))
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "start()\ntotal_width  =  first(1)\nstop()\ntotal_width  =  first(2)\n"


def test_a_hint_that_fits_no_place_is_a_refusal_that_names_the_place():
    outcome = replace_text("x\n" * 10 + "target\n", "target", "y", hint=MatchHint(line=2, within=3))
    assert isinstance(outcome, EditRefused)
    assert outcome.candidates[0].line == 11


@pytest.mark.parametrize(
    ("count", "said"), [(19, "19 places"), (20, "20 or more places"), (30, "20 or more places")]
)
def test_places_are_counted_up_to_twenty(count, said):
    outcome = replace_text("step()\n" * count, "step()", "stop()")
    assert isinstance(outcome, EditRefused)
    assert outcome.message.startswith(f"old_string fits {said}: lines 1, 2, 3, 4, 5 ...")


@pytest.mark.parametrize(
    ("count", "said"), [(999, "999 places"), (1000, "1000 or more places"), (1001, "1000 or more places")]
)
def test_places_that_match_but_for_blanks_are_counted_up_to_a_thousand(count, said):
    outcome = replace_text("total_width  =  1\n" * count, "total_width = 1", "total_width = 2")
    assert isinstance(outcome, EditRefused)
    assert outcome.message.startswith(f"old_string fits {said}: ")


@pytest.mark.parametrize("there", ["total( one )", "total(one)"])
@pytest.mark.parametrize("line", [1000, 1001, 2500])
def test_the_line_that_a_hint_names_is_found_among_thousands_alike(line, there):
    rows = [there] * 2500
    outcome = replace_text("\n".join(rows), "total(one)", "total(two)", hint=MatchHint(line=line, within=0))
    rows[line - 1] = there.replace("one", "two")
    assert isinstance(outcome, EditApplied)
    assert outcome.text.split("\n") == rows


def test_the_line_that_a_hint_names_goes_before_one_near_it_with_many_alike():
    body = "step() " * 30 + "\nstep()\n"
    outcome = replace_text(body, "step()", "stop()", hint=MatchHint(line=2))
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "step() " * 30 + "\nstop()\n"


def test_a_hint_does_not_bring_back_what_the_tiers_rule_out():
    assert isinstance(replace_text("y := 99\n", "y := 2", "y := 3", hint=MatchHint(line=1)), EditRefused)


def test_an_indented_line_quoted_without_indentation_takes_a_change_in_place():
    outcome = replace_text("def f():\n    x = 1\n", "x = 1", "x = 2")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "def f():\n    x = 2\n"


def test_lines_added_to_one_quoted_without_indentation_are_refused_when_their_depth_is_unclear():
    outcome = replace_text("def f():\n    x = 1\n", "x = 1", "x = 1\ny = 2")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "indent_conflict"
    assert outcome.suggestion == "    x = 1"


def test_line_ends_themselves_can_be_edited():
    outcome = replace_text("a\r\nb\n", "a\r\n", "a\n")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "a\nb\n"


def test_a_blank_line_that_only_old_string_has_leaves_open_which_blank_line_stays():
    body = "  using AsmSymbol = pair<string, int>;\n\nprivate:\n  Module *First = nullptr;\n"
    old = "  using AsmSymbol = pair<string, int>;\n\nprivate:\n\n"
    outcome = replace_text(body, old, "  using AsmSymbol = pair<string, int>;\n\n")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "unclear"


def test_every_refuses_where_line_ends_hide_some_of_the_places():
    outcome = replace_text("a\r\nb\r\nx\na\nb\n", "a\nb", "c\nb", every=True)
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "unclear"


def test_a_line_put_for_another_keeps_its_line_end():
    outcome = replace_text("one\ntwo\r\nthree\n", "one\ntwo\nthree", "one\nsomething else\nthree")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "one\nsomething else\r\nthree\n"


def test_a_new_string_with_the_files_quote_in_it_keeps_the_models_quotes():
    body = "first_call(argument)\nname = 'old value'\n"
    old = 'first_call(argument)\nname = "old value"'
    outcome = replace_text(body, old, old.replace("old value", "it's new"))
    assert isinstance(outcome, EditApplied)
    assert outcome.text == 'first_call(argument)\nname = "it\'s new"\n'


def test_one_of_two_blank_lines_dropped_where_the_file_has_fewer_is_refused():
    body = "first_definition = compute(1)\n\n\nsecond_definition = compute(2)\nrest()\n"
    old = "first_definition = compute(1)\n\n\n\nsecond_definition = compute(2)"
    outcome = replace_text(body, old, "first_definition = compute(1)\n\n")
    assert isinstance(outcome, EditRefused)


def test_equal_lines_around_lines_that_change_places_are_told_apart_by_nothing():
    body = "class A:\n    @cached \n    def one(): ...\n    @cached\t\n    def two(): ...\n"
    old = "    @cached\n    def one(): ...\n    @cached\n    def two(): ..."
    new = "    @cached\n    @cached\n    def two(): ...\n    def one(): ..."
    assert replace_text(body, old, new).code == "unclear"
    plain = (
        body.replace("@cached \n", "@cached\n")
        .replace("@cached\t\n", "@cached\n")
        .replace("...\n", "... \n")
    )
    assert replace_text(plain, old, new).tier == "trailing white space"


def test_a_line_that_went_past_equal_ones_may_be_any_of_them():
    body = "import alpha\nimport alpha \nimport bravo \nimport alpha \n"
    old = "import alpha\nimport alpha\nimport bravo\nimport alpha"
    new = "import alpha\nimport alpha\nimport alpha\nimport bravo"
    assert replace_text(body, old, new).code == "unclear"


def test_a_blank_line_too_many_at_the_edge_does_not_hide_another_depth():
    outcome = replace_text(BLOCK, "\n  result = width * height\n", "\n  result = width + height\n")
    assert isinstance(outcome, EditApplied)
    assert outcome.tier == "indentation"


def test_the_line_that_a_hint_names_is_found_among_many_alike():
    outcome = replace_text("step()\n" * 30, "step()", "stop()", hint=MatchHint(line=25, within=0))
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "step()\n" * 24 + "stop()\n" + "step()\n" * 5


def test_a_place_near_the_line_that_a_hint_names_is_found():
    body = "step()\n" + "wait()\n" * 5 + "step()\n"
    outcome = replace_text(body, "step()", "stop()", hint=MatchHint(line=6, within=1))
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "step()\n" + "wait()\n" * 5 + "stop()\n"


def test_an_edit_that_leaves_the_file_as_it_is_is_refused():
    outcome = replace_text("first()\nlast()", "last()\n", "last()")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "no_change"


@pytest.mark.parametrize(("length", "kind"), [(200, EditApplied), (201, EditRefused)])
def test_a_file_above_the_limit_may_grow_to_twice_its_size(monkeypatch, length, kind):
    monkeypatch.setattr(omitted_code, "LARGEST_EDITED_TEXT_CHARS", 50)
    body = "mark\n" + "-" * 95
    assert isinstance(replace_text(body, "mark\n", "m" * (length - 96) + "\n"), kind)


def test_a_file_that_is_as_it_was_read_needs_no_merge():
    outcome = replace_text(BLOCK, "\tresult = width * height", "\tresult = 2", seen=BLOCK)
    assert isinstance(outcome, EditApplied)
    assert outcome.tier == "indentation"


def test_text_that_fitted_two_places_as_read_is_not_found_where_one_of_them_is_left():
    edit = "\tlog_total(1)", "\tlog_total(2)"
    now, seen = "  log_total(1)\nmore()\n", "  log_total(1)\n    log_total(1)\n"
    outcome = replace_text(now, *edit, seen=seen)
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "not_found"


def test_text_that_was_not_there_when_the_file_was_read_is_matched_with_the_file():
    outcome = replace_text("  log_total(1)\n", "\tlog_total(1)", "\tlog_total(2)", seen="more()\n")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "  log_total(2)\n"


@pytest.mark.parametrize(
    "old", ["1\tdef area(width, height):", "1\tdef area(width, height):\n2\t    result = width * height"]
)
def test_a_note_for_code_left_out_is_seen_behind_line_numbers(old):
    outcome = replace_text(BLOCK, old, "1\tdef area(width, height):\n2\t    # ... rest unchanged")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "omission"


def test_new_text_that_stands_elsewhere_is_made_again_where_only_trailing_blanks_differ():
    body = "prepare(values)  \nrun_the_first(1)\nend()\nprepare(values)\nrun_another_thing(2)\n"
    outcome = replace_text(
        body, "prepare(values)\nrun_the_first(1)", "prepare(values)\nrun_another_thing(2)"
    )
    assert isinstance(outcome, EditApplied)
    assert outcome.text == body.replace("run_the_first(1)", "run_another_thing(2)")


ELIDED = "begin_here()\n...\nfinish_here()", "begin_there()\n...\nfinish_there()"

WORK = "    work(1)\nfinish_here()\n"


@pytest.mark.parametrize(
    ("body", "fits", "starts"),
    [
        (f"begin_here()\n{WORK}" * 2, 2, [1, 4]),
        (f"begin_here()\n{WORK}" * 3, 3, [1, 4, 7]),
        (f"begin_here()\n{WORK * 2}", 2, [1, 1]),
        (f"begin_here()\n{WORK * 7}", 7, [1] * 5),
        (f"begin_here()\nfinish_here()\n{WORK * 2}", 2, [1, 1]),
    ],
)
def test_lines_left_out_that_fit_several_places_are_counted_from_each_start(body, fits, starts):
    outcome = replace_text(body, *ELIDED)
    assert isinstance(outcome, EditRefused)
    assert f"fits {fits} places" in outcome.message
    assert [place.line for place in outcome.candidates] == starts


@pytest.mark.parametrize(("more", "kind"), [(0, EditApplied), (1, EditRefused)])
def test_so_many_pieces_between_lines_left_out_are_placed(more, kind):
    rows = [f"row_number_{n}(1)" for n in range(2 * (omitted_code.MAX_ELIDED_PIECES + more))]
    old = "\n...\n".join(rows[::2])
    assert isinstance(replace_text("\n".join(rows), old, old.replace("_0(1)", "_0(2)")), kind)


def test_a_block_that_is_almost_there_is_not_merged_where_a_hint_names_a_place():
    body = "".join(f"step_number_{n}(value_{n})\n" for n in range(16))
    old = body.replace("value_7", "other_thing, more")
    edit = old, old.replace("value_2", "changed")
    assert isinstance(replace_text(body, *edit), EditApplied)
    assert isinstance(replace_text(body, *edit, hint=MatchHint(line=1)), EditRefused)
