"""The keys of a review, typed at items that are real diffs."""

import io

import pytest
from rich.console import Console

from handtools.cli.review_questions import KEYS, ReviewQuestions, ReviewStopped, review_items_of_file
from handtools.runtime.review import ReviewedFile, ReviewPart
from handtools.text.diffs.authored_hunks import TextVersion, authored_diff

LINES = "".join(f"line {number}\n" for number in range(1, 61))


def file_with(*changed, path="a.txt", refusals=()):
    """A file in which calls changed some lines: pairs of a line's number and the call's id."""
    text, steps = LINES, []
    for line, call in changed:
        text = text.replace(f"line {line}\n", f"by {call} {line}\n")
        steps.append(TextVersion(call, text))
    diff = authored_diff(LINES, steps)
    parts = tuple(
        ReviewPart("hunk", hunk.authors, "Edited since." if at in refusals else "", at, f"id{at}")
        for at, hunk in enumerate(diff.hunks)
    )
    return ReviewedFile(path, diff=diff, parts=parts)


def typed(monkeypatch, keys, *files, edit=lambda text: None, size=(80, 24), terminal=False):
    """Answer with lines of keys; gives back the decisions by first line of each item, and what was shown."""
    monkeypatch.setattr("sys.stdin", io.StringIO(keys))
    shown = io.StringIO()
    console = Console(
        file=shown, width=size[0], height=size[1], force_terminal=terminal, markup=False, highlight=False
    )
    questions = ReviewQuestions(lambda call: f"edit {call}", edit, console=console)
    decided = []
    for file in files:
        try:
            questions.ask(review_items_of_file(file), file.path)
        except ReviewStopped:
            decided += questions.items
            break
        decided += questions.items
    return [item.decision for item in decided], shown.getvalue(), decided


FOUR = ((5, "1"), (20, "2"), (35, "1"), (50, "2"))


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("y n y n", "anan"),
        ("y q", "a..."),
        ("y", "a..."),
        ("n a", "naaa"),
        ("y d", "annn"),
        ("A n n", "anan"),
        ("D y n", "nann"),
        ("j n y y y", "anaa"),
        ("J J n q", "..n."),
        ("J K y q", "a..."),
        ("y y k y q", "aaa."),
        ("g3 n q", "..n."),
        ("g 3 n q", "..n."),
        ("/50 n q", "...n"),
        ("/by.2 n q", ".n.."),
        ("? y q", "a..."),
        ("x y q", "a..."),
        ("s y q", "a..."),
        ("y y y k q", "aaa."),
    ],
)
def test_each_key_decides_what_it_says(monkeypatch, keys, said):
    lines = keys.replace(" ", "\n") + "\n"
    letters = {"a": "accept", "n": "reject", ".": None}
    decisions, shown, _ = typed(monkeypatch, lines, file_with(*FOUR))
    assert decisions == [letters[letter] for letter in said], shown


def test_j_goes_to_the_next_undecided_and_j_in_capitals_to_the_next(monkeypatch):
    _, shown, _ = typed(monkeypatch, "J\ny\nK\nj\nq\n", file_with(*FOUR))
    assert [row[:5] for row in shown.splitlines() if row.startswith("(")] == [
        "(1/4)", "(2/4)", "(3/4)", "(2/4)", "(3/4)",
    ]  # fmt: skip


def test_what_is_said_of_a_call_holds_for_later_files(monkeypatch):
    files = [file_with(*FOUR, path="a"), file_with((5, "1"), path="b"), file_with((5, "2"), path="c")]
    decisions, shown, _ = typed(monkeypatch, "D\nA\n", *files)
    assert decisions == ["reject", "accept", "reject", "accept", "reject", "accept"]
    assert "\nb\n" not in shown


def test_a_hunk_is_split_and_each_piece_decided_on(monkeypatch):
    decisions, shown, items = typed(monkeypatch, "s\ny\nn\n", file_with((5, "1"), (8, "1")))
    assert decisions == ["accept", "reject"], shown
    assert [len(item.parts) for item in items] == [1, 1]


def test_hunks_of_different_calls_are_decided_on_apart(monkeypatch):
    decisions, shown, _ = typed(monkeypatch, "y\nn\n", file_with((5, "1"), (8, "2")))
    assert decisions == ["accept", "reject"]
    assert "by edit 1\n" in shown
    assert "by edit 2\n" in shown


def test_what_can_not_be_taken_back_is_said_and_asked_again(monkeypatch):
    decisions, shown, _ = typed(monkeypatch, "n\ny\n", file_with((5, "1"), refusals={0}))
    assert decisions == ["accept"]
    assert "can't be rejected" in shown
    decisions, _, _ = typed(monkeypatch, "d\n", file_with(*FOUR, refusals={1}))
    assert decisions == ["reject", None, "reject", "reject"]


@pytest.mark.parametrize(
    ("edit", "decision", "edited"),
    [
        (lambda text: text.replace("+by 1 5", "+mine"), "reject", "mine\n"),
        (lambda text: text.replace("-line 5", " line 5"), "reject", "line 5\nby 1 5\n"),
        (lambda text: text, "accept", None),
    ],
    ids=["other text", "both", "same"],
)
def test_a_hunk_is_edited_by_hand(monkeypatch, edit, decision, edited):
    decisions, shown, items = typed(monkeypatch, "e\n", file_with((5, "1")), edit=edit)
    assert (decisions, items[0].edited) == ([decision], edited), shown


@pytest.mark.parametrize(
    "edit", [lambda _: None, lambda _: "", lambda _: "# only this\n", lambda _: "*what\n"]
)
def test_an_edit_that_says_nothing_decides_nothing(monkeypatch, edit):
    decisions, shown, _ = typed(monkeypatch, "e\nq\n", file_with((5, "1")), edit=edit)
    assert decisions == [None], shown


def test_the_help_names_the_keys_that_mean_something(monkeypatch):
    _, shown, _ = typed(monkeypatch, "?\nq\n", file_with((5, "1")))
    assert "y - keep it" in shown
    assert "j - " not in shown
    _, shown, _ = typed(monkeypatch, "J\n?\nq\n", file_with(*FOUR))
    assert all(f"{key} - " in shown for key in set(KEYS) - {"s"})


def test_a_part_fits_the_screen_and_p_shows_all_of_it(monkeypatch):
    whole = ReviewedFile(
        "new.txt", diff=authored_diff("", [TextVersion("1", LINES)]), parts=(ReviewPart("created", ("1",)),)
    )
    _, shown, _ = typed(monkeypatch, "q\n", whole, terminal=True)
    assert shown.count("\n") <= 24
    assert "more lines; p shows all" in shown
    _, shown, _ = typed(monkeypatch, "p\nq\n", whole, terminal=True)
    assert "line 60" in shown


def test_long_lines_and_hostile_characters_are_shown_harmless(monkeypatch):
    hostile = "\x1b[2Jgone\x07 \u202ereversed\n" + "x" * 10_000_000 + "\n"
    file = ReviewedFile(
        "\x1b]0;title\x07.txt",
        diff=authored_diff("", [TextVersion("1", hostile)]),
        parts=(ReviewPart("created", ("\x1b[31m",)),),
    )
    _, shown, _ = typed(monkeypatch, "p\ng1\n/gone\nq\n", file)
    assert len(shown) < 10_000
    assert not {"\x1b", "\x07", "\u202e"} & set(shown)
    assert "␛[2Jgone" in shown
    assert "more characters" in shown
