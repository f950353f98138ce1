"""The text as the agent last read it, against the file as it is now."""

from handtools.tools.editing.edit_outcome import AlreadyApplied, EditApplied, EditRefused
from handtools.tools.editing.replacement import replace_text

SEEN = "one\ntwo\nthree\nfour\nfive\nsix\nseven\n"


def test_a_change_elsewhere_in_the_quoted_block_is_merged():
    now = SEEN.replace("two", "TWO")
    outcome = replace_text(now, "two\nthree\nfour\nfive", "two\nthree\nfour\nFIVE", seen=SEEN)
    assert isinstance(outcome, EditApplied)
    assert outcome.tier == "text as last read"
    assert outcome.text == "one\nTWO\nthree\nfour\nFIVE\nsix\nseven\n"
    assert now[: outcome.spans[0].start] + "FIVE" + now[outcome.spans[0].end :] == outcome.text


def test_a_change_of_the_same_line_is_stale_and_shows_the_new_text():
    now = SEEN.replace("five", "5")
    outcome = replace_text(now, "four\nfive\nsix", "four\nFIVE\nsix", seen=SEEN)
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "stale"
    assert outcome.nearest_excerpt is not None
    assert "5" in outcome.nearest_excerpt.lines


def test_a_block_deleted_since_it_was_read_is_stale():
    now = SEEN.replace("four\nfive\nsix\n", "")
    outcome = replace_text(now, "four\nfive\nsix", "four\nFIVE\nsix", seen=SEEN)
    assert isinstance(outcome, EditRefused)


def test_a_twin_that_differs_in_blank_lines_is_not_taken_for_a_block_that_is_gone():
    now = "end\nfirst_call(argument_one)\nsecond_call(argument_two)\n"
    seen = "first_call(argument_one)\n\nsecond_call(argument_two)\n" + now
    old = "first_call(argument_one)\n\nsecond_call(argument_two)"
    assert isinstance(replace_text(now, old, "gone()", seen=seen), EditRefused)


def test_the_same_change_made_by_someone_else_is_already_there():
    outcome = replace_text(SEEN.replace("five", "FIVE"), "four\nfive", "four\nFIVE", seen=SEEN)
    assert isinstance(outcome, AlreadyApplied)
    assert outcome.text == SEEN.replace("five", "FIVE")


def test_an_exact_match_needs_no_memory():
    outcome = replace_text("new\n" + SEEN, "two", "2", seen=SEEN)
    assert isinstance(outcome, EditApplied)
    assert outcome.tier == "exact"


def test_a_deletion_that_could_as_well_lie_at_the_edit_is_stale():
    block = "  weight: normal;\n  style: normal;\n}}\n\n.{} {{\n  color: red;\n"
    seen = ".one {\n  color: red;\n" + "".join(map(block.format, ("two", "three", "four"))) + "}\n"
    now = seen.replace(block.format("three"), "", 1)
    old = "  weight: normal;\n  style: normal;\n}\n\n.three {\n  color: red;"
    outcome = replace_text(now, old, old.replace("}", "} // end"), seen=seen)
    assert isinstance(outcome, EditRefused)


def test_what_was_there_twice_when_it_was_read_is_refused_though_one_is_left():
    seen = "begin(1)\nsend(user)\nbegin(2)\nsend(user)\n"
    now = seen.replace("send(user)", "post(user)", 1)
    outcome = replace_text(now, "send(user)", "send(admin)", seen=seen)
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "stale"
