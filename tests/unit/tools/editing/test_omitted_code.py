import pytest

from handtools.tools.editing.edit_outcome import EditApplied, EditRefused
from handtools.tools.editing.replacement import replace_text

BODY = "def start(job):\n    first(job)\n    second(job)\n    finish(job)\n\ndef stop():\n    go()\n"


@pytest.mark.parametrize(
    "mark", ["...", "# ...", "    # ... existing code ...", "…", "// ... rest of the code ..."]
)
def test_lines_left_out_of_both_stay_in_the_file(mark):
    old = f"def start(job):\n{mark}\n    finish(job)"
    new = f"def start(job):\n{mark}\n    finish(job, now=True)"
    outcome = replace_text(BODY, old, new)
    assert isinstance(outcome, EditApplied), outcome
    assert outcome.text == BODY.replace("finish(job)", "finish(job, now=True)")
    assert outcome.tier == "omitted lines"


def test_lines_left_out_of_old_only_are_refused():
    assert isinstance(
        replace_text(BODY, "def start(job):\n...\n    finish(job)", "def start(job):\n    finish(job)"),
        EditRefused,
    )


def test_an_edited_piece_that_is_not_unique_is_refused_with_every_place_in_full():
    body = "begin(1)\n    a()\n    common_end()\n    b()\n    common_end()\n"
    outcome = replace_text(body, "begin(1)\n...\n    common_end()", "begin(1)\n...\n    other_end()")
    assert isinstance(outcome, EditRefused)
    assert [place.old for place in outcome.candidates] == [
        "begin(1)\n    a()\n    common_end()",
        "begin(1)\n    a()\n    common_end()\n    b()\n    common_end()",
    ]


def test_of_many_places_those_with_least_left_out_are_offered_first():
    body = "".join("begin()\n" + "    work()\n" * n for n in range(9, 0, -1)) + "    the_end()\n"
    outcome = replace_text(body, "begin()\n...\n    the_end()", "begin(now)\n...\n    the_end()")
    assert isinstance(outcome, EditRefused)
    offered = [place.old.count("\n") for place in outcome.candidates if place.old]
    assert offered == sorted(offered)
    assert outcome.candidates[0].old == "begin()\n    work()\n    the_end()"


def test_pieces_in_the_wrong_order_are_refused():
    assert isinstance(
        replace_text(BODY, "def stop():\n...\n    finish(job)", "def stop():\n...\n    finish(None)"),
        EditRefused,
    )


def test_spread_syntax_is_not_an_elision():
    body = "call({\n  ...cursor,\n  method: 'GET',\n})\n"
    assert isinstance(
        replace_text(body, "  ...opts,\n  method: 'GET',", "  ...opts,\n  method: 'PUT',"), EditRefused
    )


SCOPES = (
    "def start(job):\n    first(job)\n    return None\n\n"
    "def stop(job):\n    second(job)\n    return result(job)\n"
)


@pytest.mark.parametrize("head", ["def start(job):", "def start(job):\n    first(job)"])
def test_lines_left_out_never_reach_into_another_block(head):
    old = f"{head}\n    ...\n    return result(job)"
    outcome = replace_text(SCOPES, old, old.replace("result", "outcome"))
    assert isinstance(outcome, EditRefused)
    assert [place.old for place in outcome.candidates] == [SCOPES.rstrip("\n")]


def test_lines_left_out_never_reach_into_another_item_of_a_list():
    body = "steps:\n  - name: first\n    run: one\n  - name: second\n    run: two\n    shell: bash\n"
    old = "  - name: first\n    run: one\n    ...\n    shell: bash"
    assert isinstance(replace_text(body, old, old.replace("bash", "zsh")), EditRefused)


def test_one_sign_for_dots_marks_lines_left_out_though_the_file_has_it_elsewhere():
    body = BODY.replace("first(job)", "first(job, '…')")
    old = "def start(job):\n…\n    finish(job)"
    outcome = replace_text(body, old, old.replace("(job)", "(work)"))
    assert isinstance(outcome, EditApplied), outcome
    assert outcome.text == body.replace("start(job)", "start(work)").replace("finish(job)", "finish(work)")


def test_a_piece_that_fits_again_further_down_is_refused_with_the_near_one_first():
    body = SCOPES.replace("return None", "return result(job)")
    old = "def start(job):\n    ...\n    return result(job)"
    outcome = replace_text(body, old, old.replace("result", "outcome"))
    assert isinstance(outcome, EditRefused)
    assert [place.old for place in outcome.candidates] == [body.split("\n\n")[0], body.rstrip("\n")]


def test_a_comment_without_dots_that_the_file_has_otherwise_stands_for_no_lines():
    body = "/// Gives 0 and leaves the tray unchanged.\nint pour(Cup cup);\n\nint rinse(Cup cup);\n"
    kept = "/// Gives 7 and leaves the tray unchanged.\n"
    outcome = replace_text(
        body, f"{kept}int pour(Cup cup);\n\nint rinse(Cup cup);\n", f"{kept}\nint rinse(Cup cup);\n"
    )
    assert isinstance(outcome, EditRefused)


def test_a_sentence_that_goes_on_after_dots_is_a_line_of_the_file():
    body = "a = 1\n# ...minus the width of the frame2\nb = 2\n"
    old = "a = 1\n# ...minus the width of the frame\nb = 2"
    refused = replace_text(body, old, old.replace("b = 2", "b = 3"))
    assert isinstance(refused, EditRefused)


def test_one_sign_for_dots_stands_for_lines_where_the_file_has_that_sign_too():
    body = f"# wait…\n{BODY}"
    outcome = replace_text(body, "def start(job):\n…\n    finish(job)", "def start(job):\n…\n    finish()")
    assert isinstance(outcome, EditApplied), outcome
    assert outcome.text == body.replace("finish(job)", "finish()")


def test_lines_left_out_stay_as_deep_as_the_last_line_above_them():
    body = "  def brew\n    heat(water)\n    return pot\n  end\n\n  def serve\n    return cup\n  end\n"
    old = "  def brew\n    heat(water)\n    ...\n    return cup"
    assert isinstance(replace_text(body, old, old.replace("cup", "tray")), EditRefused)


def test_lines_left_out_between_lines_of_one_depth_stay():
    old = "    first(job)\n    ...\n    finish(job)"
    outcome = replace_text(BODY, old, old.replace("finish(job)", "finish(now)"))
    assert isinstance(outcome, EditApplied)
    assert outcome.text == BODY.replace("finish(job)", "finish(now)")


def test_dots_stand_for_one_line_at_least():
    body = "begin(1)\n    common_end()\n"
    edit = "begin(1)\n...\n    common_end()", "begin(1)\n...\n    other_end()"
    assert isinstance(replace_text(body, *edit), EditRefused)
    outcome = replace_text(f"{body}    a()\n    common_end()\n", *edit)
    assert isinstance(outcome, EditRefused)
    assert [place.old for place in outcome.candidates] == [f"{body}    a()\n    common_end()"]


def test_of_several_beginnings_each_is_offered_with_the_nearest_end():
    body = "".join(f"begin()\n    {n}()\n    stop_all()\n    next()\n    stop_all()\n" for n in "ab")
    outcome = replace_text(body, "begin()\n...\n    stop_all()", "begin()\n...\n    halt()")
    assert isinstance(outcome, EditRefused)
    assert "fits 2 places" in outcome.message
    assert [place.line for place in outcome.candidates] == [1, 6]


def test_one_beginning_is_offered_with_the_five_nearest_ends():
    body = "begin()\n" + "    go()\n    stop_all()\n" * 7
    outcome = replace_text(body, "begin()\n...\n    stop_all()", "begin()\n...\n    halt()")
    assert isinstance(outcome, EditRefused)
    assert "fits 7 places" in outcome.message
    assert [place.old.count("\n") for place in outcome.candidates if place.old] == [2, 4, 6, 8, 10]


@pytest.mark.parametrize(("pieces", "kind"), [(12, EditApplied), (13, EditRefused)])
def test_up_to_twelve_pieces_are_put_together(pieces, kind):
    rows = [f"step_number_{n}()" for n in range(2 * pieces)]
    old = "\n...\n".join(rows[::2])
    outcome = replace_text("\n".join([*rows, ""]), old, old.replace("number_0", "zero"))
    assert isinstance(outcome, kind)


@pytest.mark.parametrize(("count", "kind"), [(2000, EditApplied), (2001, EditRefused)])
def test_up_to_two_thousand_lines_of_a_block_are_left_out(count, kind):
    body = "def start(job):\n    first(job)\n" + "    go()\n" * count + "    finish(job)\n"
    old = "    first(job)\n    ...\n    finish(job)"
    assert isinstance(replace_text(body, old, old.replace("finish", "end")), kind)


def test_lines_left_out_may_be_as_deep_as_those_around_them():
    old = "    first(job)\n    ...\n    finish(job)"
    outcome = replace_text(BODY, old, old.replace("finish", "end"))
    assert isinstance(outcome, EditApplied), outcome
    assert outcome.text == BODY.replace("finish", "end")


def test_dots_where_no_line_was_left_out_are_refused():
    old = "def start(job):\n    ...\n    first(job)"
    assert isinstance(replace_text(BODY, old, old.replace("first", "last")), EditRefused)


@pytest.mark.parametrize(("count", "kind"), [(2000, EditApplied), (2001, EditRefused)])
def test_up_to_2000_lines_of_a_block_are_left_out(count, kind):
    body = "def start(job):\n" + "    step(job)\n" * count + "    finish(job)\n"
    old = "def start(job):\n    ...\n    finish(job)"
    assert isinstance(replace_text(body, old, old.replace("finish", "end")), kind)


@pytest.mark.parametrize(("count", "kind"), [(12, EditApplied), (13, EditRefused)])
def test_an_edit_with_lines_left_out_has_up_to_12_pieces(count, kind):
    names = [f"    step_{number}(job)" for number in range(count)]
    old = "\n    ...\n".join(names)
    outcome = replace_text("\n    pause()\n".join(names), old, old.replace("step_0", "begin"))
    assert isinstance(outcome, kind)
