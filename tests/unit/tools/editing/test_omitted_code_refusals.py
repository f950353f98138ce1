import pytest

from handtools.tools.editing.edit_outcome import EditApplied, EditRefused
from handtools.tools.editing.replacement import replace_text

BODY = "def f():\n    one()\n    two()\n    three()\n"


@pytest.mark.parametrize(
    "note",
    [
        "# ... existing code ...",
        "// ... rest of code unchanged ...",
        "# rest of the function remains the same",
        "/* ... rest of file ... */",
        "// (unchanged)",
        "... rest of the method unchanged ...",
        "<!-- ... existing markup ... -->",
    ],
)
def test_a_note_for_code_left_out_is_never_written(note):
    outcome = replace_text(BODY, BODY, f"def f():\n    zero()\n    {note}\n")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "omission"


@pytest.mark.parametrize(
    "line", ["...", "x = [...]", "print('...')", "# see the rest below", "return {...rest}"]
)
def test_dots_that_are_code_are_written(line):
    assert isinstance(replace_text(BODY, "    two()", f"    {line}"), EditApplied)


def test_a_comment_on_what_stays_unchanged_is_written_where_no_code_was_left_out():
    comment = "    # the order of the other steps remains unchanged"
    outcome = replace_text(BODY, "    two()", f"{comment}\n    two()")
    assert isinstance(outcome, EditApplied)
    assert comment in outcome.text


@pytest.mark.parametrize(
    ("note", "kind"),
    [
        ("# helper remains unchanged", EditRefused),
        ("# the helper remains unchanged", EditApplied),
        ("# ... existing code".replace(" ", " " * 182, 1), EditRefused),
        ("# ... existing code".replace(" ", " " * 183, 1), EditApplied),
    ],
)
def test_a_note_has_up_to_four_words_without_dots_and_up_to_200_letters(note, kind):
    outcome = replace_text(BODY, "    two()", f"    two()\n    {note}")
    assert isinstance(outcome, kind)


def test_a_note_behind_a_line_number_is_not_written():
    outcome = replace_text(
        BODY, "2\t    one()\n3\t    two()", "2\t    one()\n3\t    # ... existing code ..."
    )
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "omission"


def test_a_note_is_none_where_lines_are_gone_elsewhere_in_the_edit():
    note = "    # rest of the function remains the same"
    outcome = replace_text(BODY, "    one()\n    two()\n    three()", f"    three()\n{note}")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "omission"


def test_a_note_that_the_file_has_may_be_repeated():
    body = "# ... existing code ...\nx = 1\n"
    assert isinstance(replace_text(body, body, "# ... existing code ...\nx = 2\n"), EditApplied)


def test_an_empty_old_text_is_refused():
    outcome = replace_text("a", "", "b")
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "empty"


def test_growth_beyond_64_mebi_characters_is_refused():
    outcome = replace_text("a", "a", "b" * (64 * 2**20 + 1))
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "too_large"


def test_a_file_grows_to_64_mi_characters_and_no_further():
    new = "b" * ((1 << 20) - 1)
    assert isinstance(replace_text("a\n" * 64, "a", new, every=True), EditApplied)
    outcome = replace_text("a\n" * 64 + "\n", "a", new, every=True)
    assert isinstance(outcome, EditRefused)
    assert outcome.code == "too_large"


@pytest.mark.parametrize(
    ("comment", "kind"),
    [
        ("# the rest remains unchanged", EditApplied),
        ("# rest remains unchanged", EditRefused),
        ("# ... existing code".rjust(201, "#"), EditApplied),
        ("# ... existing code".rjust(200, "#"), EditRefused),
    ],
)
def test_a_comment_of_more_than_four_words_or_200_letters_is_no_note(comment, kind):
    assert isinstance(replace_text(BODY, "    two()", f"    {comment}\n    two()"), kind)


@pytest.mark.parametrize("old", ["    two()\n", "    four()\n"])
def test_a_new_text_like_the_old_one_is_refused_wherever_that_is(old):
    outcome = replace_text(BODY, old, old)
    assert isinstance(outcome, EditRefused)
    assert (outcome.code, outcome.message) == ("no_change", "old_string and new_string are the same text.")
