import re

from handtools.tools.editing.edit_outcome import EditRefused
from handtools.tools.editing.refusals import render_refusal, with_visible_blanks
from handtools.tools.editing.replacement import replace_text

BODY = "".join(f"def step_{n}(job):\n    run(job, {n})\n    return job\n\n" for n in range(10, 20))


def refused(old: str, new: str, body: str = BODY) -> EditRefused:
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditRefused), outcome
    return outcome


def test_the_nearest_lines_come_with_numbers_and_an_old_string_to_send():
    outcome = refused("def step_14(job):\n    run(job, 99)\n    return job", "x")
    assert outcome.code == "not_found"
    assert outcome.nearest_excerpt is not None
    assert (outcome.nearest_excerpt.line, outcome.nearest_excerpt.end_line) == (17, 19)
    assert outcome.suggestion == "def step_14(job):\n    run(job, 14)\n    return job"


def test_the_suggested_old_string_can_be_sent_as_it_stands():
    outcome = refused("def step_14(job):\n    run(job, 99)\n    return job", "x")
    text = re.search(r"old_string:\n```\n(.*?)\n```", render_refusal(outcome), re.DOTALL)
    assert text is not None
    assert BODY.count(text[1]) == 1


def test_only_the_lines_that_differ_are_shown_with_their_blanks_visible():
    outcome = refused("def step_14(job):\n\trun(job, 99)\n    return job", "x")
    assert outcome.differences[1:] == ("- →run(job, 99)", "+ ····run(job, 14)")


def test_every_place_of_an_ambiguous_text_gets_an_old_string_of_its_own():
    outcome = refused("    return job", "    return None")
    assert outcome.code == "ambiguous"
    assert [place.line for place in outcome.candidates] == [3, 7, 11, 15, 19]
    assert all(place.old is not None and BODY.count(place.old) == 1 for place in outcome.candidates)


def test_new_text_that_is_already_there_is_named():
    outcome = refused(
        "    walk(job, 12)\n    run(job, 13)\n    stop(job)", "step_15(job):\n    run(job, 15)"
    )
    assert "new_string is already there, at line 21" in outcome.message


def test_a_line_that_stands_once_tells_the_place_though_the_block_has_grown():
    body = "def start(engine):\n" + "    check(engine)\n" * 20 + f"    engine.warm_up()\n\n{BODY}"
    outcome = refused("def start(engine):\n    check(engine, fuel)\n    return job", "x", body)
    assert outcome.nearest_excerpt is not None
    assert outcome.nearest_excerpt.line == 1


def test_an_unrelated_import_is_no_advice():
    body = "from shop.cart import Cart\nfrom shop.user import User\nfrom shop.price import Price\n"
    outcome = refused("from shop.mail import Letter\n", "from shop.mail import Parcel\n", body)
    assert outcome.nearest_excerpt is None
    assert "nor does anything like it" in outcome.message


def test_a_fence_in_the_file_does_not_end_the_one_round_the_suggestion():
    body = "# Title\n\n```sh\nmake all tests\n```\n"
    message = render_refusal(refused("```sh\nmake all checks\n```", "x", body))
    assert "````\n```sh\nmake all tests\n```\n````" in message


def test_text_unlike_anything_has_no_nearest():
    outcome = refused("%%%%\n@@@@", "x")
    assert outcome.nearest_excerpt is None
    assert outcome.suggestion is None


def test_tabs_edge_blanks_and_odd_characters_are_visible():
    assert with_visible_blanks("\t a\tb \u200b") == "→·a→b \\u200b"


def test_a_deletion_that_was_misspelt_is_not_taken_for_done():
    body = "first = alpha(1)\nsecond = beta(2)\nthird = gamma_ray(3)\n"
    left = "first = alpha(1)\nsecond = beta(2)"
    outcome = refused(f"{left}\nthird = gama_rai(3)", left, body)
    assert outcome.code == "not_found"
    assert outcome.suggestion == body.rstrip("\n")


def test_an_unclear_depth_comes_with_the_width_of_a_level():
    body = "list = [\n  alpha,\n  beta,\n]\n"
    old = "    alpha,\n    beta,"
    outcome = refused(old, "    alpha,\n    if x(\n        y\n    )\n    beta,", body)
    assert outcome.code == "indent_conflict"
    assert "One level here is 2 spaces." in render_refusal(outcome)


def test_an_unclear_depth_among_tabs_says_so():
    body = "top\n    other(1)\n    other(2)\n\tconfigure_all(1)\n\tconfigure_none(2)\n"
    old = "    configure_all(1)\n    configure_none(2)"
    outcome = refused(old, "    configure_all(1)\n    if x(\n        y\n    )\n    configure_none(2)", body)
    assert outcome.code == "indent_conflict"
    assert "One level here is a tab." in render_refusal(outcome)


def test_two_hits_on_one_line_are_one_place_to_name():
    outcome = refused("word", "x", "a word and a word\nplain\nand another word\n")
    assert [place.line for place in outcome.candidates] == [1, 3]
    assert "3 places: lines 1 (2 times), 3." in outcome.message


def test_of_many_blocks_alike_the_nearest_has_the_word_that_was_misspelt():
    names = ["OracleSettings", "IbmLuwSettings", "MongoDbSettings", "SybaseSettings"]
    body = "".join(f'  {{\n   "required": [\n    "{name}"\n   ]\n  }},\n' for name in names)
    old = '   ]\n  },\n  {\n   "required": [\n    "MongoDbStings"'
    assert refused(old, "x", body).suggestion == old.replace("Stings", "Settings")


def test_a_fence_that_came_along_is_no_part_of_the_nearest_lines():
    old = "def step_14(job):\n    run(job, 99)\n    return job"
    assert refused(f"```\n{old}\n```", "```\nx\n```").suggestion == old.replace("99", "14")


def test_a_level_is_told_by_the_whole_file_and_not_by_a_hanging_line():
    steps = "".join(f"if a{n}:\n  call(b{n})\n" for n in range(4))
    body = f"{steps}execute(one,\n        alpha,\n        beta)\n"
    deep = " " * 16
    old = f"{deep}alpha,\n{deep}beta)"
    new = f"{deep}alpha,\n{deep}if x(\n{deep}    y\n{deep})\n{deep}beta)"
    assert "One level here is 2 spaces." in render_refusal(refused(old, new, body))


def test_where_tabs_and_blanks_are_mixed_no_width_is_told():
    body = "start\n    let a = 1\n\tlet b = 2\n    let c = 3\n"
    old = "        let a = 1\n    \tlet b = 2\n        let c = 3"
    new = f"{old}\n    \t\tdeep()"
    assert "One level" not in render_refusal(refused(old, new, body))


def test_written_out_line_ends_do_not_hide_the_nearest_lines():
    old = "def step_14(job):\\n    run(job, 99)\\n    return job"
    outcome = refused(old, f'{old}\\n    print("done\\n")')
    assert outcome.suggestion == "def step_14(job):\n    run(job, 14)\n    return job"
