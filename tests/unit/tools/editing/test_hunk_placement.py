"""Hunks are laid where they say, or refused with what is really there."""

import pytest

from handtools.tools.editing.hunk_placement import HunkMisfit, PatchedText, apply_hunks
from handtools.tools.editing.patch_parser import parse_patch


def applied(body: str, hunks: str) -> PatchedText | HunkMisfit:
    patch = f"*** Begin Patch\n*** Update File: f\n{hunks}\n*** End Patch"
    return apply_hunks(body, parse_patch(patch)[0].hunks)


def patched(body: str, hunks: str) -> PatchedText:
    outcome = applied(body, hunks)
    assert isinstance(outcome, PatchedText), outcome
    return outcome


def laid(body: str, hunks: str) -> str:
    return patched(body, hunks).text


def refused(body: str, hunks: str) -> HunkMisfit:
    outcome = applied(body, hunks)
    assert isinstance(outcome, HunkMisfit), outcome
    return outcome


TWICE = "class A:\n    def f():\n        x = 1\n\nclass B:\n    def f():\n        x = 1\n"


def test_a_hunk_that_only_adds_goes_after_its_scope_and_not_to_the_end():
    assert laid("a\nb\nc\n", "@@ b\n+new") == "a\nb\nnew\nc\n"


def test_a_hunk_that_only_adds_and_names_no_line_is_refused():
    misfit = refused("a\nb\n", "+new").refused
    assert misfit.code == "not_found"
    assert misfit.hint.endswith(
        "For the end of the file that is line 2; or put `*** End of File` below them."
    )
    assert laid("", "+new") == "new\n"


def test_a_hunk_that_only_adds_below_a_line_that_is_there_twice_is_refused():
    assert refused("b\nb\n", "@@ b\n+new").refused.code == "ambiguous"


CODE = "import os\n\n\ndef f():\n    return 1\n\n\ndef g():\n    return 2\n"


@pytest.mark.parametrize("named", ["@@ def g():", "@@\n def g():\n@@"])
def test_what_is_no_part_of_the_last_block_goes_behind_it(named):
    assert laid(CODE, f"{named}\n+\n+\n+def h():\n+    return 3") == CODE + "\n\ndef h():\n    return 3\n"


@pytest.mark.parametrize("named", ["@@ def f():", "@@\n def f():\n@@"])
def test_what_is_no_part_of_a_block_never_splits_it(named):
    misfit = refused(CODE, f"{named}\n+def h():\n+    return 3")
    assert "add line 5" in misfit.refused.hint
    assert refused(CODE + "g()\n", "@@ def g():\n+h = 3").refused.candidates[0].line == 9


def test_a_block_ends_with_what_closes_it():
    assert laid("fn a() {\n  x\n}\n", "@@ fn a() {\n+fn b() {}") == "fn a() {\n  x\n}\nfn b() {}\n"
    behind = refused("fn a() {\n  x\n} else {\n  y\n}\nz\n", "@@ fn a() {\n+fn b() {}").refused
    assert behind.candidates[0].line == 5


def test_what_is_a_part_of_the_block_goes_right_below_its_first_line():
    assert laid(CODE, "@@ def f():\n+    x = 1") == CODE.replace("def f():\n", "def f():\n    x = 1\n")


def test_lines_below_kept_ones_that_open_nothing_may_be_meant_anywhere():
    assert refused(CODE, "@@\n import os\n@@\n+import sys").refused.code == "not_found"


@pytest.mark.parametrize(
    "hunk",
    [
        "@@ b\n+new",
        "@@\n+a long sentence about something new",
        "+c = 'the very end of this small file'\n*** End of File",
    ],
)
def test_lines_that_a_hunk_only_adds_are_added_once(hunk):
    body = "a\nb\nnew\na long sentence about something new\nc = 'the very end of this small file'\n"
    outcome = applied(body, hunk)
    assert isinstance(outcome, PatchedText)
    assert (outcome.text, outcome.there) == (body, 1)


def test_a_short_line_is_added_at_the_end_once_more():
    assert laid("1\n", "+1\n*** End of File") == "1\n1\n"


def test_the_end_of_the_file_can_be_asked_for():
    assert laid("a\nb\n", "+new\n*** End of File") == "a\nb\nnew\n"
    assert laid("x\ny\nx\n", " x\n+z\n*** End of File") == "x\ny\nx\nz\n"
    assert laid("x\ny\nx\n\n\n", " x\n+z\n*** End of File") == "x\ny\nx\nz\n\n\n"


def test_a_scope_picks_one_of_two_equal_places():
    assert laid(TWICE, "@@ class B\n-        x = 1\n+        x = 2") == TWICE[:-2] + "2\n"
    first = laid(TWICE, "@@ class A\n-        x = 1\n+        x = 2")
    assert first == TWICE.replace("1", "2", 1)


def test_two_equal_places_without_a_scope_are_refused_with_their_lines():
    misfit = refused(TWICE, "-        x = 1\n+        x = 2")
    assert [place.line for place in misfit.refused.candidates] == [3, 7]


def test_a_scope_that_is_not_there_is_refused():
    assert "class C" in refused(TWICE, "@@ class C\n-        x = 1\n+        x = 2").refused.message


def test_a_later_hunk_is_looked_for_below_the_earlier_one():
    assert laid("a\nx\nb\nx\n", " a\n-x\n+y\n@@\n-x\n+z") == "a\ny\nb\nz\n"


def test_hunks_that_each_fit_one_place_come_in_any_order():
    assert laid("one\ntwo\n", "-two\n+2\n@@\n-one\n+1") == "1\n2\n"


def test_whole_lines_are_meant_and_not_parts_of_them():
    assert refused("x = total + 1\n", "-total + 1\n+sum + 1").refused.code in {"not_found", "inside_word"}


def test_kept_lines_keep_the_bytes_of_the_file():
    body = "if reader.is_open:   \n\ttotal = 1\n"
    after = laid(body, " if reader.is_open:\n-    total = 1\n+    total = 2")
    assert after == "if reader.is_open:   \n\ttotal = 2\n"


@pytest.mark.parametrize(
    ("body", "hunks", "after"),
    [
        ("a\nb", " b\n+c", "a\nb\nc"),
        ("a\nb", "-b\n+c", "a\nc"),
        ("a\nb", " a\n-b", "a\n"),
        ("a\nb", "+c\n*** End of File", "a\nb\nc"),
        ("a\nb\n", " b\n+c", "a\nb\nc\n"),
    ],
)
def test_a_file_without_a_final_line_end_stays_one_where_the_patch_does_not_say(body, hunks, after):
    assert laid(body, hunks) == after


def test_a_line_end_that_the_patch_takes_or_gives_is_taken_or_given():
    diff = "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n\\ No newline at end of file\n+x\n"
    hunks = parse_patch(diff)[0].hunks
    assert apply_hunks("x", hunks) == PatchedText("x\n")
    hunks = parse_patch("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n+x\n\\ No newline at end of file\n")[0].hunks
    assert apply_hunks("x\n", hunks) == PatchedText("x")


def test_lines_of_mixed_ends_keep_their_own():
    assert laid("a\r\nb\nc\r\n", " a\n-b\n+B\n c") == "a\r\nB\r\nc\r\n"


def test_a_drift_is_told():
    hunks = parse_patch("--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n-b\n+c\n")[0].hunks
    outcome = apply_hunks("0\n0\na\nb\n", hunks)
    assert isinstance(outcome, PatchedText)
    assert outcome.notes == ("hunk 1 matched at line 3, not 1",)


@pytest.mark.parametrize(
    ("body", "hunk"),
    [
        ("0\n" * 4 + "a\nb\n" * 2, " a\n-b\n+c"),
        ("0\n" * 4 + "}\n", "-}\n+};"),
        ("0\n" * 4 + "a\n", "-a"),
        ("a\nc\n" + "0\n" * 9 + "a\nb\n", " a\n-b\n+c"),
    ],
    ids=["twice", "without letters", "a deletion without context", "the new lines occur elsewhere"],
)
def test_a_hunk_far_from_its_number_is_refused_where_another_place_may_be_meant(body, hunk):
    outcome = numbered(body, f"@@ -17,2 +17,2 @@\n{hunk}")
    assert isinstance(outcome, HunkMisfit)
    assert "lines away" in outcome.refused.message


def test_new_lines_end_as_the_line_above_them_where_a_file_mixes_line_ends():
    assert laid("a\nb\nc\r\nd\n", "@@ c\n+new") == "a\nb\nc\r\nnew\r\nd\n"
    assert laid("a\r\nb\r\nc\nd\r\n", "@@ c\n+new") == "a\r\nb\r\nc\nnew\nd\r\n"


def test_hunks_with_scopes_may_come_in_another_order_than_the_file():
    body = "def a():\n    one\ndef b():\n    two\n"
    hunks = "@@ def b():\n-    two\n+    2\n@@ def a():\n-    one\n+    1"
    assert laid(body, hunks) == "def a():\n    1\ndef b():\n    2\n"


def test_added_lines_take_the_depth_of_the_block_that_a_flat_hunk_is_for():
    body = "class A:\n    def f(self):\n        return 1\n"
    hunks = "@@\n def f(self):\n-    return 1\n+    return 2"
    assert laid(body, hunks) == body.replace("1", "2")


def test_a_section_ends_at_the_next_heading_of_its_level():
    body = "# One\ntext\nold\n\n# Two\ntext\nold\n"
    assert laid(body, "@@ # One\n-old\n+new") == "# One\ntext\nnew\n\n# Two\ntext\nold\n"


def test_the_lines_that_one_hunk_takes_away_are_counted_for_the_next():
    rows = [f"{number}\n" for number in range(1, 21)]
    [file] = parse_patch("--- a/x\n+++ b/x\n@@ -1,3 +1 @@\n-1\n-2\n-3\n+one\n@@ -15 +13 @@\n-15\n+x\n")
    outcome = apply_hunks("".join(rows), file.hunks)
    assert isinstance(outcome, PatchedText) and outcome.notes == ()
    assert outcome.text == "".join(["one\n", *rows[3:14], "x\n", *rows[15:]])


def test_equal_places_behind_a_scopes_block_are_refused():
    body = "def f():\n    pass\nz = 0\nx = 1\ny = 2\nx = 1\n"
    misfit = refused(body, "@@ def f():\n-x = 1\n+x = 2").refused
    assert [place.line for place in misfit.candidates] == [4, 6]
    assert misfit.message == "The hunk fits 2 places: lines 4, 6."


def test_what_closes_another_block_than_the_scopes_is_not_meant_by_it():
    body = "rows = [\n{\n  x: 1,\n  y: 2,\n}\n]\nmore(\n]\n"
    assert [place.line for place in refused(body, "@@ x: 1,\n-]\n+];").refused.candidates] == [6, 8]


def test_new_lines_of_a_longer_hunk_end_as_those_around_them_and_not_as_the_first_of_the_file():
    assert laid("a\nb\r\nc\r\nd\r\n", "@@\n c\n-d\n+e") == "a\nb\r\nc\r\ne\r\n"


def test_below_a_hunk_that_is_there_already_the_next_one_is_looked_for():
    body = "x = 1\nmark()\nadded_before()\nx = 1\n"
    outcome = patched(body, "@@\n mark()\n+added_before()\n@@\n-x = 1\n+x = 2")
    assert outcome.text == "x = 1\nmark()\nadded_before()\nx = 2\n"
    assert outcome.there == 1


def test_a_hunk_that_fits_but_for_its_indentation_is_told():
    outcome = patched("if a:\n    send(user, 1)\n", "@@\n-\tsend(user, 1)\n+\tsend(user, 2)")
    assert outcome.text == "if a:\n    send(user, 2)\n"
    assert outcome.notes == ("hunk 1 matched at line 2 except for indentation",)


def test_a_hunk_that_fits_but_for_its_indentation_stands_below_its_scope_or_is_refused():
    body = "if a:\n    send(user, 1)\nif b:\n    wait(user)\n"
    misfit = refused(body, "@@ if b:\n-\tsend(user, 1)\n+\tsend(user, 2)")
    assert "line 2, above the lines" in misfit.refused.message
    both = "@@\n-\twait(user)\n+\tstop(user)\n@@\n-\tsend(user, 1)\n+\tsend(user, 2)"
    assert laid(body, both) == "if a:\n    send(user, 2)\nif b:\n    stop(user)\n"


def test_a_replacement_that_was_made_already_is_told():
    body = "def enter(guest):\n    seat(guest)\n    pour(guest)\n"
    outcome = patched(body, "@@\n-    greet(guest)\n+    seat(guest)\n     pour(guest)")
    assert outcome.text == body
    assert outcome.there == 1
    assert outcome.notes == ("hunk 1 was already applied, at line 2",)


def test_as_many_equal_hunks_as_places_are_laid_in_order():
    both = "@@\n-x = 1\n+x = 2\n@@\n-x = 1\n+x = 3"
    assert laid("x = 1\ny\nx = 1\n", both) == "x = 2\ny\nx = 3\n"
    assert refused("x = 1\ny\nx = 1\nx = 1\n", both).refused.code == "ambiguous"


def numbered(body: str, hunks: str) -> PatchedText | HunkMisfit:
    return apply_hunks(body, parse_patch(f"--- a/f\n+++ b/f\n{hunks}\n")[0].hunks)


def test_a_line_number_is_told_as_the_earlier_hunks_have_moved_it():
    body = "a\n" + "row\n" * 14 + "z\n" * 2
    outcome = numbered(body, "@@ -1,1 +1,2 @@\n a\n+b\n@@ -3,1 +4,1 @@\n-z\n+y")
    assert isinstance(outcome, HunkMisfit)
    assert "says line 4, but its lines are at line 17, 18" in outcome.refused.message


def test_lines_that_a_loosely_matched_hunk_adds_are_counted_for_the_next():
    body = "if a:\n    send(user, 1)\n" + "row\n" * 8 + "z\n"
    hunks = "@@ -2,1 +2,3 @@\n-\tsend(user, 1)\n+\tsend(user, 2)\n+\tsend(user, 3)\n+\tsend(user, 4)\n"
    outcome = numbered(body, f"{hunks}@@ -11,1 +13,1 @@\n-z\n+y")
    assert isinstance(outcome, PatchedText), outcome
    assert outcome.text.endswith("row\ny\n")
    assert outcome.notes == ("hunk 1 matched at line 2 except for indentation",)


def test_below_a_loosely_matched_hunk_the_next_one_is_looked_for():
    body = "if a:\nx = 1\n    send(user, 1)\nx = 1\n"
    both = "@@\n-\tsend(user, 1)\n+\tsend(user, 2)\n@@\n-x = 1\n+x = 2"
    assert laid(body, both) == "if a:\nx = 1\n    send(user, 2)\nx = 2\n"


OUTSIDE = "start();\nnext();\ncall(a,\n  1,\n);\nsend();\ncall(b,\n  1,\n);\nsend();\n"


@pytest.mark.parametrize("row", ["send();", ");"])
def test_two_places_outside_of_the_block_that_is_named_are_refused(row):
    misfit = refused(OUTSIDE, f"@@ start();\n-{row}\n+{row} // done")
    assert misfit.refused.code == "ambiguous"


def test_a_block_ends_before_the_first_row_of_the_next_one():
    body = "def a():\n    run()\ndef b():\n    run()\n"
    assert laid(body, "@@ def a():\n-    run()\n+    walk()") == body.replace("run", "walk", 1)


def test_new_lines_end_as_the_kept_ones_around_them_and_not_as_the_first_of_the_file():
    assert laid("top\na\r\nb\r\nc\r\n", " a\n b\n+new") == "top\na\r\nb\r\nnew\r\nc\r\n"


def test_a_later_hunk_is_looked_for_below_one_that_is_already_there():
    body = "x\na\nb\nadded\nc\nx\n"
    assert laid(body, " a\n b\n+added\n@@\n-x\n+y") == "x\na\nb\nadded\nc\ny\n"


def test_the_marker_for_the_end_of_a_file_is_offered_where_a_patch_can_have_one():
    assert "*** End of File" in refused("a\nb\n", "+new").refused.hint
    outcome = apply_hunks("a\nb\n", parse_patch("--- a/f\n+++ b/f\n@@ -1,0 +2 @@\n+new\n")[0].hunks)
    assert isinstance(outcome, HunkMisfit)
    assert "that is line 2" in outcome.refused.hint
    assert "*** End of File" not in outcome.refused.hint


def test_lines_that_match_loosely_above_their_scope_are_refused():
    body = "def a():\n    total_width =  1\ndef b():\n    pass\n"
    misfit = refused(body, "@@ def b():\n-    total_width = 1\n+    total_width = 2")
    assert "are at line 2" in misfit.refused.message


def test_hunks_that_match_loosely_come_in_any_order():
    body = "first_step( 1 )\nsecond_step( 2 )\n"
    hunks = "-second_step(2)\n+second_step(3)\n@@\n-first_step(1)\n+first_step(4)"
    assert laid(body, hunks) == "first_step( 4 )\nsecond_step( 3 )\n"


def test_a_change_that_was_made_already_is_told_and_counted():
    body = "def area(width):\n    return width * width\n"
    hunk = "-    return width + width\n+    return width * width"
    outcome = applied(body, hunk)
    told = "hunk 1 was already applied, at line 2"
    assert outcome == PatchedText(body, (told,), there=1)


@pytest.mark.parametrize(
    "hunks",
    [
        "@@ -1,1 +1,2 @@\n a\n+n\n@@ -3,1 +4,2 @@\n x\n+y",
        "@@ -1,2 +1,3 @@\n a\n+n\n b\n@@ -3,1 +4,2 @@\n x\n+y",
    ],
)
def test_a_numbered_hunk_that_fits_where_it_says_is_laid_though_the_row_below_is_like_the_new_one(hunks):
    assert numbered("a\nb\nx\ny\n", hunks) == PatchedText("a\nn\nb\nx\ny\ny\n")


GROWS = "@@ -1,1 +1,5 @@\n a\n+1\n+2\n+3\n+4\n"


def test_a_drift_is_told_by_the_lines_that_earlier_hunks_have_moved():
    outcome = numbered("a\n" + "row\n" * 4 + "z\n", GROWS + "@@ -5,1 +9,1 @@\n-z\n+y")
    assert isinstance(outcome, PatchedText)
    assert outcome.notes == ("hunk 2 matched at line 10, not 9",)


def test_a_hunk_that_differs_in_line_ends_alone_has_no_drift():
    outcome = numbered("a\r\nb\r\nz\r\n", GROWS + "@@ -3,1 +7,1 @@\n-z\n+y")
    assert isinstance(outcome, PatchedText)
    assert (outcome.text[-6:], outcome.notes) == ("b\r\ny\r\n", ())


def test_of_near_places_the_one_with_the_number_is_meant():
    assert numbered("x\r\nb\r\nx\r\n", "@@ -3,1 +3,1 @@\n-x\n+z") == PatchedText("x\r\nb\r\nz\r\n")


def test_a_number_chooses_among_places_that_differ_in_blanks():
    body = "if a:\n    send(user, 1)\n" + "row\n" * 5 + "if b:\n    send(user, 1)\n"
    hunks = "@@ -1,1 +1,2 @@\n if a:\n+    first()\n@@ -9,1 +10,1 @@\n-\tsend(user, 1)\n+\tsend(user, 2)"
    outcome = numbered(body, hunks)
    assert isinstance(outcome, PatchedText), outcome
    assert outcome.text == body.replace("a:\n", "a:\n    first()\n")[:-3] + "2)\n"


def test_numbered_hunks_that_match_loosely_may_follow_each_other_closely():
    hunks = (
        "@@ -2,1 +2,1 @@\n-\tsend(user, 1)\n+\tsend(user, 2)\n",
        "@@ -3,1 +3,1 @@\n-\tcall(user, 1)\n+\tcall(user, 2)",
    )
    outcome = numbered("if a:\n    send(user, 1)\n    call(user, 1)\n", "".join(hunks))
    assert isinstance(outcome, PatchedText), outcome
    assert outcome.text == "if a:\n    send(user, 2)\n    call(user, 2)\n"


def test_what_a_loosely_matched_hunk_wrote_is_not_meant_by_the_next():
    body = "if a:\n    send(user, 1)\nelse:\n    send(user, 2)\n"
    both = "@@\n-\tsend(user, 1)\n+\tsend(user, 2)\n@@\n-    send(user, 2)\n+    send(user, 3)"
    assert laid(body, both) == "if a:\n    send(user, 2)\nelse:\n    send(user, 3)\n"


def test_the_line_of_which_a_hunk_has_a_part_is_shown():
    misfit = refused("first\nwait(); x = total + 1\n", "-x = total + 1\n+x = 2").refused
    assert [(place.line, place.text) for place in misfit.candidates] == [(2, "wait(); x = total + 1")]


def test_another_hunk_is_not_counted_for_equal_places():
    misfit = refused("x = 1\ny\nx = 1\n", "@@\n-x = 1\n+x = 2\n@@\n-y\n+z")
    assert (misfit.hunk, misfit.refused.code) == (1, "ambiguous")


def test_of_many_places_five_are_shown():
    misfit = refused("x = 1\n" * 6, "-x = 1\n+x = 2").refused
    assert misfit.message == "The hunk fits 6 places: lines 1, 2, 3, 4, 5."
    assert len(misfit.candidates) == 5


def test_a_bracket_below_is_no_sign_that_a_hunk_was_laid_already():
    assert laid("call {\n}\n", " call {\n+}") == "call {\n}\n}\n"


def test_lines_that_stand_above_the_kept_ones_already_are_added_once():
    outcome = patched("top\nnew\nkept\n", "+new\n kept")
    assert (outcome.text, outcome.there) == ("top\nnew\nkept\n", 1)


def test_blank_lines_say_where_the_next_hunk_may_be():
    body = "x\na\n\n\nx\nx\n"
    misfit = refused(body, "@@\n \n \n@@\n-x\n+y").refused
    assert [place.line for place in misfit.candidates] == [5, 6]
    assert laid("x\na\n\nx\n", "@@\n \n@@\n-x\n+y") == "x\na\n\ny\n"


def test_a_bracket_behind_the_block_that_is_named_is_not_taken_for_its_own():
    body = "a {\n  x\n} // end\nb {\n}\nc {\n}\n"
    assert refused(body, "@@ a {\n-}\n+};").refused.code == "ambiguous"


def test_the_bracket_that_closes_the_block_around_the_scope_is_meant():
    body = "rows = {\n  x: 1,\n  y: 2,\n}\nmore = {\n  z: 3,\n}\n"
    assert laid(body, "@@ x: 1,\n-}\n+};") == body.replace("}", "};", 1)


def test_a_row_with_a_sign_but_no_blank_is_no_heading():
    body = "# One\n#tag\nold\n\n# Two\nold\n"
    assert laid(body, "@@ # One\n-old\n+new") == body.replace("old", "new", 1)


def test_a_section_goes_behind_the_last_one():
    assert laid("# One\ntext\n", "@@ # One\n+# Two\n+more") == "# One\ntext\n# Two\nmore\n"


def test_lines_that_are_only_added_below_a_line_that_is_not_there_are_refused():
    assert "`none` after `@@`" in refused("a\n", "@@ none\n+new").refused.message


def test_where_all_lines_are_blank_the_first_is_named():
    assert "that is line 1" in refused("\n", "+new").refused.hint


def test_lines_that_locate_the_next_hunk_are_known_without_their_blanks():
    assert laid(TWICE, "@@\n   class B:\n@@\n-        x = 1\n+        x = 2") == TWICE[:-2] + "2\n"


@pytest.mark.parametrize(("letters", "there"), [(24, 1), (23, None)])
def test_so_many_letters_are_no_coincidence_wherever_they_stand(letters, there):
    body = "a\n" + "x" * letters + "\nb\n"
    outcome = applied(body, f"@@\n+{'x' * letters}")
    assert getattr(outcome, "there", None) == there


def test_a_line_below_the_only_one_begins_a_new_line():
    assert laid("a", " a\n+b") == "a\nb"


def test_a_line_below_the_first_ends_as_that_one():
    assert laid("a\r\nb\n", "@@ a\n+new") == "a\r\nnew\r\nb\n"


def diffed(body: str, hunks: str) -> PatchedText | HunkMisfit:
    return apply_hunks(body, parse_patch(f"--- a/f\n+++ b/f\n{hunks}")[0].hunks)


@pytest.mark.parametrize(
    ("body", "after"),
    [
        ("\n}\ns\n}\ns\n}\ns", "\n}\ns\n}\ns\n}\nnew"),
        ("\n}\ns\n}\ns\n}\r\ns\r\n", "\n}\ns\n}\ns\n}\r\nnew\n"),
    ],
)
def test_a_line_number_goes_before_line_ends_that_are_the_same_nearby(body, after):
    outcome = diffed(body, "@@ -4,4 +4,4 @@\n }\n s\n }\n-s\n+new\n")
    assert isinstance(outcome, PatchedText)
    assert outcome.text == after


@pytest.mark.parametrize("blank", [" ", ""])
def test_no_line_of_a_hunk_that_counts_too_few_is_left_out(blank):
    outcome = diffed("a\n\nb\nc\n", f"@@ -1,1 +1,1 @@\n a\n{blank}\n-b\n+x\n c\n")
    assert isinstance(outcome, PatchedText)
    assert outcome.text == "a\n\nx\nc\n"


NO_END = "\\ No newline at end of file\n"


@pytest.mark.parametrize("last", ["", "\n", "\n\n"])
def test_the_final_line_end_goes_as_a_patch_says_though_its_lines_match_loosely(last):
    outcome = diffed(
        f"value = one(  )  \nlast = 2{last}", f"@@\n value = one()\n-last = 2\n+last = 3\n{NO_END}"
    )
    assert isinstance(outcome, HunkMisfit if last == "\n\n" else PatchedText), outcome
    assert isinstance(outcome, HunkMisfit) or outcome.text == "value = one(  )  \nlast = 3"


@pytest.mark.parametrize(("top", "more", "below"), [("", "", ""), ("", "+\n", "\r\n"), ("top\n", "", "")])
def test_the_final_line_end_comes_as_a_patch_says_though_its_lines_match_loosely(top, more, below):
    body = f"{top}value = one(  )\r\nlast = 2"
    outcome = diffed(body, f"@@\n value = one()\n-last = 2\n{NO_END}+last = 3\n{more}")
    assert isinstance(outcome, PatchedText)
    assert outcome.text == body.replace("2", "3\r\n") + below


@pytest.mark.parametrize("old", ["a", "a "])
def test_lines_with_which_the_file_is_said_to_end_stand_nowhere_else(old):
    outcome = diffed("alpha\nb\nalpha\nc\n", f"@@ -1,2 +1,2 @@\n {old}lpha\n-b\n+x\n{NO_END}")
    assert isinstance(outcome, HunkMisfit)
    assert "No newline" in outcome.refused.hint or old == "a "


def test_the_place_at_the_end_is_taken_for_lines_with_which_the_file_is_said_to_end():
    outcome = diffed("a\nb\na\nb\n", f"@@ -1,2 +1,2 @@\n a\n-b\n+x\n{NO_END}")
    assert isinstance(outcome, PatchedText)
    assert outcome.text == "a\nb\na\nx"


def test_a_carriage_return_within_a_line_is_not_read_as_a_line_end():
    outcome = diffed("total = 1  \nother\n", "@@ -1,2 +1,2 @@\n total = 1\n-other\n+x\ry\n")
    assert isinstance(outcome, HunkMisfit)
    assert "carriage return" in outcome.refused.message


def test_lines_to_be_added_at_a_line_are_not_there_already_where_they_stand_far_from_it():
    block = "".join(f"row number {number}\n" for number in range(9))
    hunk = "@@ -1,0 +2,9 @@\n" + "".join(f"+{row}\n" for row in block.splitlines())
    assert isinstance(diffed("one\n" + "x\n" * 9 + f"{block}two\n", hunk), HunkMisfit)
    outcome = diffed(f"one\n{block}two\n", hunk)
    assert isinstance(outcome, PatchedText)
    assert outcome.there == 1


def test_hunks_that_fit_everywhere_are_placed_by_their_numbers_without_a_look_at_the_whole_file():
    outcome = diffed("a\n" * 60_000, "@@ -1,3 +1,3 @@\n a\n-a\n+b\n a\n" * 3_000)
    assert isinstance(outcome, PatchedText)
    assert outcome.text.startswith("a\nb\na\n" * 3_000)


def test_a_patch_that_needs_too_many_comparisons_is_refused():
    number_of_equal_lines = 4_000
    hunks = "".join("@@\n-a\n+b\n" for _ in range(number_of_equal_lines))
    outcome = applied("a\n" * number_of_equal_lines, hunks)
    assert isinstance(outcome, HunkMisfit)
    assert "too many places" in outcome.refused.message
