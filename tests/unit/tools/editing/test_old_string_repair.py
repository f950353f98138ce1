import json

import pytest

from handtools.tools.editing.edit_outcome import EditApplied, EditRefused
from handtools.tools.editing.replacement import replace_text

BODY = 'def greet(name):\n    text = "hello, " + name\n    print(text)\n    return text\n'
OLD = '    text = "hello, " + name\n    print(text)'
NEW = '    text = "hello, " + name\n    log(name)\n    print(text)'
RESULT = BODY.replace(OLD, NEW)


def applied(old: str, new: str, body: str = BODY) -> EditApplied:
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, EditApplied), outcome
    return outcome


@pytest.mark.parametrize(
    "form", ["{:>6}\t", "{}\t", "{:>5}→", "{}: ", "{}:", "{}|", "{} | ", "L{}: ", "[{}] "]
)
@pytest.mark.parametrize("numbered", [True, False])
def test_copied_line_numbers_are_removed(form, numbered):
    old, new = (
        "\n".join(form.format(number) + line for number, line in enumerate(text.split("\n"), 2))
        for text in (OLD, NEW)
    )
    outcome = applied(old, new if numbered else NEW)
    assert outcome.text == RESULT
    assert outcome.notes == ("line numbers removed",)
    assert outcome.tier == "exact"


def test_the_blank_after_a_number_is_told_by_the_file_before_the_new_text():
    body = 'top = {\n  "settings": {\n   "format": 1,\n'
    new = ' wrap: [\n   "settings": {\n    "format": 1,'
    outcome = applied('2.   "settings": {\n3.    "format": 1,', new, body)
    assert outcome.text == f"top = {{\n{new}\n"


@pytest.mark.parametrize("blank", ["", " "])
def test_an_empty_line_may_have_lost_the_blank_after_its_number(blank):
    old, new = (f"1: alpha = 1\n2:{blank}\n3: {last}" for last in ("bravo = 2", "bravo = 3"))
    outcome = applied(old, new, "alpha = 1\n\nbravo = 2\n")
    assert (outcome.text, outcome.tier) == ("alpha = 1\n\nbravo = 3\n", "exact")


@pytest.mark.parametrize("form", ["{}\t", "{} "])
def test_an_empty_line_may_have_nothing_but_its_number(form):
    old, new = (
        numbered(f"{BODY}\n{last}", form, 1).replace("5" + form[-1] + "\n", "5\n")
        for last in ("a = 1", "a = 2")
    )
    assert applied(old, new, f"{BODY}\na = 1\n").text == f"{BODY}\na = 2\n"


def numbered(text: str, form: str, first: int) -> str:
    return "\n".join(form.format(number) + line for number, line in enumerate(text.split("\n"), first))


def test_lines_around_a_hit_of_grep_are_numbered_with_another_sign():
    old, new = (
        f"2-{text.replace(chr(10), chr(10) + '3:')}" for text in (OLD, OLD.replace("text)", "name)"))
    )
    assert applied(old, new).text == BODY.replace("(text)", "(name)")
    assert isinstance(replace_text(BODY, old.replace("-", "|", 1), new.replace("-", "|", 1)), EditRefused)


def test_numbers_of_lines_that_have_moved_are_removed_where_they_can_be_nothing_else():
    assert applied(numbered(OLD, "{}\t", 7), numbered(NEW, "{}\t", 7)).text == RESULT
    assert isinstance(replace_text(BODY, numbered(OLD, "{}: ", 7), numbered(NEW, "{}: ", 7)), EditRefused)
    assert isinstance(replace_text(BODY, "7\t    print(text)", "7\t    print(name)"), EditRefused)


def test_numbers_in_some_lines_of_the_old_text_only_are_refused():
    assert isinstance(replace_text(BODY, f"2: {OLD}", NEW), EditRefused)


def test_numbers_that_do_not_count_on_are_content():
    assert isinstance(
        replace_text("x = 1\ny = 2\n", "3: x = 1\n7: y = 2", "3: x = 1\n7: y = 3"), EditRefused
    )


def test_weakly_marked_numbers_must_be_the_real_ones():
    body = "alpha beta gamma\n" * 3 + "omega delta\n"
    assert isinstance(replace_text(body, "9 omega delta", "9 omega sigma"), EditRefused)
    assert applied("4 omega delta", "4 omega sigma", body).text.endswith("omega sigma\n")


def test_numbers_in_some_lines_of_the_new_text_only_are_refused():
    old = "2: " + OLD.replace("\n", "\n3: ")
    assert isinstance(replace_text(BODY, old, "2: x\nplain"), EditRefused)


def test_a_fence_round_both_or_round_old_alone_is_removed():
    fenced = [f"```python\n{text}\n```" for text in (OLD, NEW)]
    assert applied(fenced[0], fenced[1]).text == RESULT
    assert applied(fenced[0], NEW).text == RESULT


def test_an_empty_fence_for_the_new_text_deletes():
    assert applied("```\n    print(text)\n```", "```\n```").text == BODY.replace("    print(text)", "")


def test_a_fence_round_text_that_has_fences_of_its_own_is_removed():
    body = "# Title\n```\nmake\n```\nend of it\n"
    old, new = (f"```\n{text}```" for text in (body, body.replace("make", "make all")))
    assert applied(old, new, body).text == body.replace("make", "make all")


def test_half_a_fence_in_the_new_text_is_refused():
    assert isinstance(replace_text(BODY, f"```\n{OLD}\n```", f"```\n{NEW}"), EditRefused)


def test_text_escaped_once_too_often_is_unescaped_in_both():
    old, new = (text.replace('"', '\\"').replace("\n", "\\n") for text in (OLD, NEW))
    assert applied(old, new).text == RESULT


def test_whole_strings_in_new_lines_are_no_reason_to_leave_line_ends_escaped():
    added = '    log("named")\n    log("done")\n    print(text)'
    old, new = (text.replace("\n", "\\n") for text in (OLD, OLD.replace("    print(text)", added)))
    assert applied(old, new).text == BODY.replace("    print(text)", added)


def test_letters_escaped_by_their_number_are_unescaped_in_both():
    old, new = 'say(\\"\\u00fcber\\")\\nstop()', 'say(\\"\\u00fcber uns\\")\\nstop()'
    assert applied(old, new, 'say("über")\nstop()\n').text == 'say("über uns")\nstop()\n'


def test_where_escaped_text_is_not_found_the_lines_nearest_to_it_are_shown():
    outcome = replace_text(BODY, 'text = \\"hello, \\" + name\\n    print(text, twice)', "a = 1\nb = 2")
    assert isinstance(outcome, EditRefused)
    assert outcome.nearest_excerpt is not None
    assert outcome.nearest_excerpt.lines == tuple(OLD.split("\n"))


def test_where_numbered_text_is_not_found_the_lines_nearest_to_it_are_compared_without_numbers():
    outcome = replace_text(BODY, '2| text = "hello, " + name\n3: print(text)', "a = 1")
    assert isinstance(outcome, EditRefused)
    assert not any("2|" in row for row in outcome.differences)


def test_numbers_inside_of_numbered_lines_are_compared_with_the_file():
    body = "start()\nalpha = f(10) + a[3]\nbeta = two(2)\n"
    outcome = replace_text(body, "2: alpha = f(10) + a[3]\n9: beta = two(8)", "x")
    assert isinstance(outcome, EditRefused)
    assert outcome.differences[1:] == ("- beta = two(8)", "+ beta = two(2)")


def test_escapes_that_belong_to_the_program_stay():
    body = 'print("a\\n")\nprint("b")\n'
    old, new = 'print(\\"a\\\\n\\")\\nprint(\\"b\\")', 'print(\\"a\\\\n\\")\\nprint(\\"c\\\\n\\")'
    assert applied(old, new, body).text == 'print("a\\n")\nprint("c\\n")\n'


def test_a_line_end_that_might_belong_to_a_string_is_refused():
    assert isinstance(replace_text("a = 1\nb = 2\n", "a = 1\\nb = 2", 'a = 1\\nb = "x\\ny"'), EditRefused)


def test_entities_are_undone_unless_the_raw_sign_stands_beside_them():
    body = "if (a < b && c > d) {\n  go();\n}\n"
    changed = applied("if (a &lt; b &amp;&amp; c &gt; d) {", "if (a &lt; b) {", body)
    assert changed.text == "if (a < b) {\n  go();\n}\n"
    assert isinstance(replace_text(body, "if (a &lt; b &amp;&amp; c > d) {&gt;", "x"), EditRefused)


def test_a_raw_sign_shows_nothing_of_the_other_signs_entity():
    body = "if (a < b) { x->go(); }\n"
    assert (
        applied("if (a &lt; b) { x->go(); }", "if (a &lt; c) { x->go(); }", body).text
        == "if (a < c) { x->go(); }\n"
    )
    assert isinstance(
        replace_text("show(a < b, b < c)\n", "show(a < b, b &lt; c)", "show(a < b)"), EditRefused
    )


def test_diff_signs_are_removed():
    body = "alpha\nbeta\ngamma\n"
    assert applied(" alpha\n-beta\n gamma", " alpha\n+BETA\n gamma", body).text == "alpha\nBETA\ngamma\n"


def test_the_signs_of_a_diff_that_only_adds_are_not_written():
    old, new = (text.replace("\n", "\n ") for text in (f" {OLD}", f" {NEW}"))
    outcome = applied(old, new.replace("     log", "+    log"))
    assert (outcome.text, outcome.tier, outcome.notes) == (RESULT, "exact", ("diff signs removed",))


@pytest.mark.parametrize("new", ["     print(name)", "", "     print(text)\nlog()"])
def test_one_blank_too_many_is_no_diff_where_nothing_is_added(new):
    outcome = replace_text(BODY, "     print(text)", new)
    assert not isinstance(outcome, EditApplied) or outcome.notes == ()
    assert isinstance(replace_text(BODY, "-    print(text)", new), EditRefused)


def test_hyphens_before_every_line_of_both_texts_are_no_diff():
    body = "one thing here\ntwo things here\n"
    old = "-one thing here\n-two things here"
    assert isinstance(replace_text(body, old, old.replace("two", "three")), EditRefused)


def test_typographic_characters_that_the_file_nowhere_has_are_the_models_own():
    old, new = (text.replace('"', "”").replace(" ", "\u00a0") for text in (OLD, NEW))
    assert applied(old, new).text == RESULT


def test_typographic_characters_of_the_file_stay_on_kept_lines():
    body = "say(“hello”)  # it’s — fine\nnext_step()\n"
    changed = applied(
        'say("hello")  # it\'s - fine\nnext_step()', 'say("hello")  # it\'s - fine\nlast_step()', body
    )
    assert changed.text == "say(“hello”)  # it’s — fine\nlast_step()\n"


@pytest.mark.parametrize(
    ("elsewhere", "filed", "old", "new", "result"),
    [
        ("# a “note”", 'log("a text")', "log(“a text”)", "log(“a text”, “b”)", 'log("a text", "b")'),
        (
            "1.\u00a0x",
            "at some words, here",
            "at\u00a0some\u00a0words,\u00a0here",
            "at\u00a0some(a,\u00a0b)\u00a0words,\u00a0here",
            "at some(a, b) words, here",
        ),
        # Nothing of the change would remain: the characters are what it is about.
        (
            "1.\u00a0x",
            "some words are here",
            "some\u00a0words are here",
            "some\u00a0words\u00a0are here",
            "some words\u00a0are here",
        ),
    ],
)
def test_typographic_characters_that_the_matched_lines_have_plain_are_plain_in_new_words(
    elsewhere, filed, old, new, result
):
    assert applied(old, new, f"{elsewhere}\n{filed}\n").text == f"{elsewhere}\n{result}\n"


def test_two_kinds_of_damage_at_once_are_undone():
    old, new = (
        "```\n" + "\n".join(f"{n:>6}\t{line}" for n, line in enumerate(t.split("\n"), 2)) + "\n```"
        for t in (OLD, NEW)
    )
    assert applied(old, new).text == RESULT


@pytest.mark.parametrize(
    ("body", "inside"),
    [
        ("Run:\n\n```\nmake all\nmake check\nmake install\n```\n", "make all\nmake check"),
        ("```\nmake all\nmake check\n```\n", "make all"),
        ("make all\nmake install\n\n```\nmake check\nmake install\n```\n", "make all\nmake install"),
        ("Text of it\n```\nmore\n", "Text of it\n```"),
    ],
)
def test_a_fence_that_the_file_has_there_is_text_and_not_a_wrapping(body, inside):
    outcome = replace_text(body, f"```\n{inside}\n```", f"```\n{inside} --fast\n```")
    assert isinstance(outcome, EditRefused)


def test_the_last_fence_of_text_with_a_fence_of_its_own_is_not_a_wrapping():
    body = "```\n\n## Build artifacts\n\n```{note} since 21.3\nThe project is no longer copied.\n```\n"
    old = "```\n\n## Build artifacts\n\n```{note} since 21.3\n```"
    assert isinstance(replace_text(body, old, old.replace("Build", "Built")), EditRefused)


@pytest.mark.parametrize(
    "line",
    [
        "out.write('done\\n')",
        'out.write("done\\n")',
        "x = 'a\\tb'",
        'x = "a\\tb"',
        "x = '\\\\d'",
        "x.split(/\\n/)",
        "x = '\\u00e9'",
    ],
)
def test_an_escape_that_may_be_the_programs_own_is_refused(line):
    old = "alpha = 1\\nbeta = 2"
    assert isinstance(replace_text("alpha = 1\nbeta = 2\n", old, f"{old}\\n{line}"), EditRefused)


def test_an_escaped_backslash_in_old_shows_that_the_programs_escapes_were_escaped():
    body = "split(text, '\\t')\ndone()\n"
    outcome = applied("split(text, '\\\\t')\\ndone()", "split(text, '\\\\n')\\ndone()", body)
    assert outcome.text == "split(text, '\\n')\ndone()\n"


@pytest.mark.parametrize(
    ("body", "old", "new", "result"),
    [
        ("a = 1\nb = 2\n", "a = 1\\nb = 2", "a = 1\\nb = x\\d", "a = 1\nb = x\\d\n"),
        ("a = 1\nb = 2\n", "a = 1\\nb = 2", 'a = 1\\nb = re("\\d")', 'a = 1\nb = re("\\d")\n'),
        ('say("a")\nstop()\n', 'say("a")\\nstop()', "stop()\\nsay(b)", "stop()\nsay(b)\n"),
    ],
)
def test_line_ends_are_unescaped_where_nothing_else_was_escaped(body, old, new, result):
    outcome = applied(old, new, body)
    assert (outcome.text, outcome.notes) == (result, ("escaped newlines undone",))


def test_a_line_end_that_only_the_new_text_has_is_no_reason_to_unescape_the_old_one():
    assert isinstance(replace_text("a = 1\nb = 2\n", "a = 1\\nb = 2", "a = 1\nb = 3"), EditRefused)


def test_beside_an_escaped_backslash_line_ends_alone_are_not_unescaped():
    old = "a = '\\\\'\\nb = 2"
    assert isinstance(replace_text("a = '\\\\'\nb = 2\n", old, old.replace("2", "3")), EditRefused)


def test_between_real_line_ends_quotes_and_letters_are_unescaped_and_line_ends_are_not():
    old = 'say(\\"a\\", \\u00fc)\nstop()'
    body = 'say("a", \u00fc)\nstop()\n'
    assert applied(old, old.replace("stop", "halt"), body).text == body.replace("stop", "halt")
    old = old.replace("a", "a\\n")
    assert isinstance(
        replace_text(body.replace("a", "a\\n"), old, old.replace("stop", "halt")), EditRefused
    )


def test_escaped_letters_between_tabs_are_unescaped():
    body = "\tsay(\u00fcber)\n\tstop()\n"
    outcome = applied("\tsay(\\u00fcber)\\n\tstop()", "\tsay(\\u00fcber, 2)\\n\tstop()", body)
    assert outcome.text == body.replace(")", ", 2)", 1)


def test_a_new_text_that_is_no_json_is_not_unescaped_with_an_old_one_that_is():
    body = "split(text, '\\t')\ndone()\n"
    outcome = replace_text(body, "split(text, '\\\\t')\\ndone()", "split(text, '\\d')\\ndone()")
    assert isinstance(outcome, EditRefused)


def test_quotes_that_are_escaped_in_the_old_text_only_are_refused():
    body = 'say("hello there")\nstop()\n'
    assert isinstance(replace_text(body, 'say(\\"hello there\\")', 'say("good bye")'), EditRefused)


def test_a_line_end_in_a_string_stays_where_only_quotes_were_escaped():
    body = 'say("hello there\\n")\nstop()\n'
    outcome = applied('say(\\"hello there\\n\\")', 'say(\\"good bye\\n\\")', body)
    assert outcome.text == 'say("good bye\\n")\nstop()\n'


@pytest.mark.parametrize(
    ("body", "result", "kind"),
    [
        (
            '" Gr\u00fc\u00dfe\n" an alle\nset hidden\n',
            '" Gr\u00fc\u00dfe\n" an alle\nset shown\n',
            EditApplied,
        ),
        ('" Gr\u00fc\u00dfe\nset hidden\n', '" Gru\u00df\nset hidden\n', EditApplied),
        ('" Gr\u00fc\u00dfe\n" an alle\nset hidden\n', '" Gru\u00df\n" an alle\nset hidden\n', EditRefused),
    ],
)
def test_open_quotes_of_kept_lines_or_one_alone_are_no_cut_strings(body, result, kind):
    old, new = (json.dumps(text.rstrip("\n"))[1:-1] for text in (body, result))
    outcome = replace_text(body, old, new)
    assert isinstance(outcome, kind)
    assert not isinstance(outcome, EditApplied) or outcome.text == result


def test_only_entities_that_a_tool_call_needs_are_undone():
    body = "<p>hello there</p>\n"
    old = "&lt;p&gt;hello there&lt;/p&gt;"
    outcome = applied(old, "&lt;p&gt;hello&nbsp;&copy; <b".replace("<b", "&lt;b?x&lt=1&gt;"), body)
    assert outcome.text == "<p>hello&nbsp;&copy; <b?x&lt=1>\n"


def test_raw_and_escaped_signs_for_and_together_are_refused():
    old = "if (a &lt; b) {"
    assert isinstance(replace_text("if (a < b) {\n", old, "if (a &lt; b &amp;&amp; c & d) {"), EditRefused)


def test_strings_that_are_whole_on_their_lines_are_not_cut():
    outcome = applied("a = 1\\nb = 2", 'a = "x"\\nb = "y"', "a = 1\nb = 2\n")
    assert outcome.text == 'a = "x"\nb = "y"\n'


def test_letters_that_json_writes_as_numbers_are_undone():
    body = 'show("caf\u00e9")\nnext_step()\n'
    outcome = applied('show(\\"caf\\u00e9\\")', 'show(\\"caf\\u00e9\\", 2)', body)
    assert outcome.text == 'show("caf\u00e9", 2)\nnext_step()\n'


def test_an_empty_fence_in_the_new_text_deletes_what_the_old_one_holds():
    assert applied("```\n    print(text)\n```", "```\n```").text == BODY.replace("    print(text)", "")


def test_an_entity_is_undone_beside_other_signs_that_stand_raw():
    body = "if (a < b && c > d) {\n  go();\n}\n"
    changed = applied("if (a &lt; b &amp;&amp; c > d) {", "if (a &lt; b &amp;&amp; c > e) {", body)
    assert changed.text == body.replace("c > d", "c > e")


def test_an_entity_beside_its_raw_sign_in_the_new_text_is_refused():
    outcome = replace_text("show(a < b)\n", "show(a &lt; b)", "show(a &lt; b < c)")
    assert isinstance(outcome, EditRefused)


def test_backslashes_before_single_quotes_are_removed():
    outcome = applied("say(\\'hello there\\')", "say(\\'good bye\\')", "say('hello there')\nstop()\n")
    assert outcome.text == "say('good bye')\nstop()\n"


def test_three_kinds_of_damage_at_once_are_too_much_to_guess():
    body = "if (a < b) {\n  go(on);\n  stop();\n}\n"
    fenced = "```\n" + "\n".join(f"{n}\t{line}" for n, line in enumerate(body.split("\n")[:3], 1)) + "\n```"
    assert applied(fenced, fenced.replace("stop", "halt"), body).text == body.replace("stop", "halt")
    worse = fenced.replace("<", "&lt;")
    assert isinstance(replace_text(body, worse, worse.replace("stop", "halt")), EditRefused)


def test_the_blank_after_a_number_is_told_by_the_new_text_where_the_file_has_other_blanks():
    body = BODY.replace(" + name", " +  name")
    old = "\n".join(f"{number}: {line}" for number, line in enumerate(OLD.split("\n"), 2))
    assert applied(old, NEW, body).text == RESULT.replace(" + name", " +  name")


def test_a_part_of_a_line_is_replaced_after_a_repair():
    outcome = replace_text(
        "x = f(compute(alpha)) + 1\n", "```\ncompute(alpha)\n```", "```\ncompute(beta)\n```"
    )
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "x = f(compute(beta)) + 1\n"


def test_lines_that_match_loosely_are_replaced_after_a_repair():
    body = "total_width = compute( alpha )\nother\n"
    outcome = replace_text(
        body, "```\ntotal_width = compute(alpha)\n```", "```\ntotal_width = compute(beta)\n```"
    )
    assert isinstance(outcome, EditApplied)
    assert outcome.text == "total_width = compute( beta )\nother\n"
