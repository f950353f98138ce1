import pytest

from handtools.tools.editing.edit_outcome import EditApplied, EditRefused, UnclearEdit
from handtools.tools.editing.indentation import IndentationMap
from handtools.tools.editing.replacement import replace_text


def depth(
    pairs: list[tuple[str, str]], wanted: str, *, steps: tuple[str, ...] = (), file: tuple[str, ...] = ()
) -> str:
    sent, filed = ([f"{indent}x" for indent in side] for side in (steps, file))
    return IndentationMap(pairs, sent, filed, reversed(filed)).file_indentation(wanted)


def test_a_known_depth_is_looked_up():
    assert depth([("", "    "), ("  ", "        ")], "  ") == "        "


def test_a_fixed_distance_holds_for_other_depths():
    assert depth([("", "    "), ("    ", "        ")], "        ") == "            "


TWO, FOUR, EIGHT = (("", " " * width, " " * 2 * width) for width in (2, 4, 8))


@pytest.mark.parametrize(
    ("pairs", "wanted", "steps", "file", "found"),
    [
        ([("  ", "    ")], "", (), (), "  "),
        ([("\t\t", "\t\t\t")], "\t", (), ("\t",), "\t\t"),
        ([("\t\t", "\t\t\t")], "", (), ("    ",), "\t"),
        ([("", "    ")], "    ", (), FOUR, "        "),
        ([("", "  ")], "   ", (), (), "     "),
        ([("\t", "")], "\t\t", (), FOUR, "\t"),
        ([("", "  "), ("  ", "    ")], "    ", TWO, FOUR, "      "),
        ([("", "    "), ("    ", "        ")], "            ", FOUR, TWO, "                "),
        ([("    ", "        ")], "        ", EIGHT, EIGHT, "            "),
    ],
)
def test_a_block_that_is_moved_keeps_its_own_steps(pairs, wanted, steps, file, found):
    assert depth(pairs, wanted, steps=steps, file=file) == found


@pytest.mark.parametrize(
    ("pairs", "wanted", "found"),
    [
        ([("            ", "\t\t\t")], "", ""),
        ([("", "\t\t\t")], "    ", "\t\t\t\t"),
        # Eight columns are a tab here, so four are none.
        ([("        ", "\t")], "    ", "    "),
    ],
)
def test_levels_of_four_blanks_are_counted_in_tabs(pairs, wanted, found):
    assert depth(pairs, wanted, steps=("    ",), file=("\t",)) == found


def test_blanks_for_tabs_of_eight_columns():
    assert depth([("\t", " " * 8)], "\t\t\t") == " " * 24


@pytest.mark.parametrize(
    "pairs",
    [
        [("  ", " " * 8), ("    ", "    ")],
        [("      ", "   "), ("\t", "   ")],
        # A tab and eight blanks are one depth.
        [("\t", "\t\t"), (" " * 8, "")],
        [("\t", ""), (" " * 8, "\t\t")],
    ],
)
def test_lines_that_are_deeper_in_one_text_only_are_refused(pairs):
    with pytest.raises(UnclearEdit, match="other relative depths"):
        depth(pairs, pairs[0][0])


def test_a_file_whose_tabs_and_blanks_are_mixed_tells_nothing_of_another_depth():
    with pytest.raises(UnclearEdit):
        depth([("\t    ", " " * 12), ("\t", "\t")], "\t\t", steps=("  ",), file=("\t",))


def test_half_of_a_depth_in_a_file_without_steps_is_refused():
    with pytest.raises(UnclearEdit):
        depth([("    ", "  ")], "        ", file=("",))


def test_tabs_for_steps_of_blanks():
    pairs = [("    ", "\t"), ("        ", "\t\t")]
    assert depth(pairs, "            ", steps=("    ", "        ", "            ")) == "\t\t\t"


def test_blanks_for_tabs():
    pairs = [("\t", "  "), ("\t\t", "    ")]
    assert depth(pairs, "\t\t\t", steps=("\t", "\t\t", "\t\t\t")) == "      "


def test_half_the_width():
    pairs = [("", ""), ("    ", "  ")]
    assert depth(pairs, "        ", steps=("", "    ", "        ")) == "    "


def test_tabs_filled_up_with_blanks():
    assert depth([("    ", "    "), ("        ", "\t")], "            ") == "\t    "


def test_unchanged_depths_stay_as_they_are():
    assert depth([("  ", "  ")], "       ") == "       "


@pytest.mark.parametrize(
    "pairs",
    [
        [("", "    "), ("x"[:0] + "  ", "    ")],
        [("    ", "    "), ("    ", "        ")],
        [("  ", "        "), ("    ", "    ")],
    ],
)
def test_lines_nested_otherwise_are_refused(pairs):
    with pytest.raises(UnclearEdit):
        depth([("  ", "  "), *pairs], "      ")


def test_a_first_line_without_its_indentation_is_left_out_of_account():
    pairs = [("", "    "), ("        ", "        "), ("", "")]
    assert depth(pairs, "        ") == "        "


def test_one_depth_that_may_be_shifted_or_scaled_is_refused():
    with pytest.raises(UnclearEdit):
        depth([("    ", "  ")], "        ", steps=("    ", "        "), file=("", "  ", "    "))


def test_one_depth_that_may_be_moved_or_counted_in_wider_steps_tells_nothing_of_a_deeper_line():
    body = "".join(f"      \\ WORD{n}\n" for n in range(6))
    old = "            \\ WORD2\n            \\ WORD3"
    new = "            \\ WORD2\n                    deeper\n            \\ WORD3"
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "indent_conflict"


@pytest.mark.parametrize(
    ("mine", "filed", "unit", "deeper"),
    [(3, 4, 4, 6), (3, 2, 2, 6), (6, 4, 2, 12), (12, 8, 4, 18), (4, 16, 4, 8)],
)
def test_steps_of_the_models_own_width_are_not_written(mine, filed, unit, deeper):
    body = "class A:\n" + " " * unit + "pass\n" + " " * filed + "value = compute(1)\n"
    old = " " * mine + "value = compute(1)"
    outcome = replace_text(body, old, f"{old}\n{' ' * mine}if value:\n{' ' * deeper}store(value)")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "indent_conflict"


def test_lines_at_the_margin_like_a_first_line_that_lost_its_depth_are_refused():
    body = "class A:\n    def run(self):\n        start()\n"
    outcome = replace_text(
        body,
        "def run(self):\n        start()",
        "def stop(self):\n        end()\ndef run(self):\n        start()",
    )
    assert isinstance(outcome, EditRefused)


def test_a_width_that_two_depths_suggest_must_be_the_files():
    file = ("", "    ", "        ", "    ")
    assert (
        depth([("", ""), ("        ", "    ")], "    ", steps=("", "    ", "        "), file=file[:0])
        == "  "
    )
    with pytest.raises(UnclearEdit):
        depth([("", ""), ("        ", "    ")], "    ", steps=("", "    ", "        "), file=file)


def test_one_blank_is_no_step():
    with pytest.raises(UnclearEdit):
        depth([("", ""), (" ", "    ")], "    ", steps=("", " ", "", "    "), file=("", "    "))


def nested(width: int) -> str:
    """A block of flat lines, nested by this width, in a file that nests by two elsewhere."""
    block = [f"{' ' * width}{name} text," for name in ("title", "author", "year")]
    return "\n".join(
        ["create shelf (", *block, ")", "", "view as", "  select all;", "grant", "  read;", ""]
    )


NESTED_EDIT = ("title text,\nauthor text,", "title text,\nwhen (\n  old = 1\n)\nauthor text,")


def test_the_width_of_other_blocks_tells_nothing_of_one_that_nests_otherwise():
    old, new = ("\n".join("  " + line for line in text.split("\n")) for text in NESTED_EDIT)
    assert isinstance(replace_text(nested(4), old, new), EditRefused)


@pytest.mark.parametrize("above", ["", "        wash(cup)\n"])
def test_a_block_that_nests_as_the_arguments_do_tells_how_deep_a_line_is(above):
    body = f"on start:\n    each cup:\n{above}        rinse(cup)\n        fill(cup)\n"
    outcome = replace_text(
        body,
        "    rinse(cup)\n    fill(cup)",
        "    rinse(cup)\n    if cold:\n        warm(cup)\n    fill(cup)",
    )
    assert isinstance(outcome, EditApplied)
    assert "        if cold:\n            warm(cup)\n        fill(cup)\n" in outcome.text


def test_a_file_of_one_depth_shows_with_what_it_is_indented():
    old = "    one_call(job)\n    other_call(job)"
    new = "    one_call(job)\n    if job:\n        other_call(job)"
    outcome = replace_text("\tone_call(job)\n\tother_call(job)\n", old, new)
    assert isinstance(outcome, EditApplied), outcome
    assert outcome.text == "\tone_call(job)\n\tif job:\n\t\tother_call(job)\n"


def test_lines_of_one_depth_tell_the_width_of_a_level():
    body = "    first_step(1)\n\n    second_step(2)\n"
    old = "\tfirst_step(1)\n\n\tsecond_step(2)"
    outcome = replace_text(body, old, "\tfirst_step(1)\n\tif late:\n\t\tstop()\n\n\tsecond_step(2)")
    assert isinstance(outcome, EditApplied)
    assert outcome.text == body.replace("\n\n", "\n    if late:\n        stop()\n\n")


def test_a_block_that_was_sent_whole_levels_too_deep_or_too_flat_keeps_its_steps():
    two, four = ("", "  ", "    "), ("", "    ", "        ")
    assert depth([("  ", " " * 6)], "    ", steps=("  ", "    "), file=two) == " " * 8
    deep = " " * 8, " " * 12
    assert depth([(deep[0], "    ")], deep[1], steps=deep, file=four) == " " * 8


@pytest.mark.parametrize(("level", "step"), [("    ", "\t"), ("\t", "    ")])
def test_steps_in_other_signs_than_the_files_become_steps_of_the_file(level, step):
    body = f"start\n{level}first_step(1)\n{level}second_step(2)\n"
    old = "first_step(1)\nsecond_step(2)"
    outcome = replace_text(body, old, f"first_step(1)\nif late:\n{step}stop()\nsecond_step(2)")
    assert isinstance(outcome, EditApplied)
    added = f"{level}if late:\n{level}{level}stop()\n"
    assert outcome.text == f"start\n{level}first_step(1)\n{added}{level}second_step(2)\n"


@pytest.mark.parametrize(
    "pairs",
    [
        [("", ""), ("  ", "")],
        [("    ", "  "), ("   ", "        ")],
        [("\t", "    "), ("        ", "  ")],
        [("    ", "    "), ("    ", "        ")],
    ],
)
def test_lines_nested_otherwise_are_refused_also_where_no_line_is_added(pairs):
    body = "\n".join(f"{theirs}call_number_{n}()" for n, (_, theirs) in enumerate(pairs))
    old = "\n".join(f"{mine}call_number_{n}()" for n, (mine, _) in enumerate(pairs))
    outcome = replace_text(body, old, "")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "indent_conflict"


@pytest.mark.parametrize(
    ("body", "old", "new", "wanted"),
    [
        # A line at the margin stays there.
        ("\tgo_on_now(2)\n", "    go_on_now(2)", "wait()\n    go_on_now(2)", "wait()\n\tgo_on_now(2)\n"),
        # A block at the margin, sent with an indentation; and the reverse.
        ("go_on_now(2)\n", "  go_on_now(2)", "  go_on_now(2)\n      wait()", "go_on_now(2)\n    wait()\n"),
        ("go_on_now(2)\n", "\tgo_on_now(2)", "\t\t\twait()\n\tgo_on_now(2)", "\t\twait()\ngo_on_now(2)\n"),
        (
            "  one()\n  go_on(2)\n",
            "one()\ngo_on(2)",
            "one()\n  wait()\ngo_on(2)",
            "  one()\n    wait()\n  go_on(2)\n",
        ),
        # A block that was sent without the depth of its first line.
        (
            "if a:\n    for x in y:\n        run(x)\n",
            "for x in y:\n    run(x)",
            "for x in y:\n    run(x)\ndone()",
            "if a:\n    for x in y:\n        run(x)\n    done()\n",
        ),
        # A line less deep than all that are known.
        (
            "class A:\n        if ready:\n            start()\n",
            "    if ready:\n        start()",
            "def f():\n    if ready:\n        start()",
            "class A:\n    def f():\n        if ready:\n            start()\n",
        ),
        # Steps of blanks in a file of tabs, two levels deep.
        (
            "a:\n\tb:\n\t\tone(1)\n\t\ttwo(2)\n",
            "one(1)\ntwo(2)",
            "one(1)\nif late:\n    stop()\ntwo(2)",
            "a:\n\tb:\n\t\tone(1)\n\t\tif late:\n\t\t\tstop()\n\t\ttwo(2)\n",
        ),
        # Tabs of eight columns in the arguments alone.
        (
            "a:\n    one(1)\n        two(2)\n",
            "    one(1)\n\ttwo(2)",
            "    one(1)\n\ttwo(2)\n\t    three(3)",
            "a:\n    one(1)\n        two(2)\n            three(3)\n",
        ),
    ],
)
def test_added_lines_get_the_depth_that_the_matched_ones_show(body, old, new, wanted):
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied), outcome
    assert outcome.text == wanted


@pytest.mark.parametrize(
    ("body", "old", "new"),
    [
        ("\tgo_on_now(2)\n", "      go_on_now(2)", "      go_on_now(2)\n         wait()"),
        (
            "a:\n    one(1)\n    \ttwo(2)\n",
            "    one(1)\n        two(2)",
            "    one(1)\n        two(2)\n            wait()",
        ),
    ],
)
def test_added_lines_whose_depth_the_matched_ones_leave_open_are_refused(body, old, new):
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditRefused), outcome
    assert outcome.code == "indent_conflict"


@pytest.mark.parametrize(("below", "kind"), [("", EditApplied), ("if x:\n  y()\n", EditRefused)])
def test_a_second_width_in_the_file_leaves_open_how_deep_a_line_is(below, kind):
    body = f"if a:\n    b()\n    c()\nelse:\n        value = compute(1)\n{below}"
    old = " " * 16 + "value = compute(1)"
    assert isinstance(replace_text(body, old, f"{old}\n{' ' * 20}store(value)"), kind)


@pytest.mark.parametrize(
    "new",
    [
        "if x:\n        total_foo()",
        "if x:\n    total_foo()",
        "total_foo()\n    total_bar()",
        "\n    total_bar()",
        "    total_bar()",
    ],
)
def test_a_lone_line_without_its_indentation_does_not_tell_whether_added_lines_have_theirs(new):
    outcome = replace_text("def f():\n    total_foo( )\n", "total_foo()", new)
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "indent_conflict"


@pytest.mark.parametrize("added", ["total_bar()", "if x:\n        total_bar()"])
def test_added_lines_at_the_margin_show_that_a_lone_line_and_they_were_sent_less_deep(added):
    outcome = replace_text("def f():\n    total_foo( )\n", "total_foo()", f"total_foo()\n{added}")
    assert isinstance(outcome, EditApplied)
    assert outcome.text.startswith("def f():\n    total_foo( )\n    ")


@pytest.mark.parametrize("new", ["pass\n    bar(1)\nend = 2", "pass\nend = 2"])
def test_a_new_first_line_without_its_indentation_does_not_go_to_the_margin(new):
    body = "def f():\n    foo(save, compute)\n    bar(1)  \nend = 2\n"
    outcome = replace_text(body, "foo(save, compute)\n    bar(1)\nend = 2", new)
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "indent_conflict"
