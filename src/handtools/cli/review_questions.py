"""The prompts of `handtools review`: one change of a file at a time, with the keys of `git add -p`."""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Literal

from handtools.cli.terminal import ask_key, coloured_diff, stdout_console
from handtools.text.plurals import number_with_noun
from handtools.text.visible_text import visible_line, with_visible_characters

if TYPE_CHECKING:
    from rich.console import Console

    from handtools.runtime.review import ReviewedFile, ReviewPart

Decision = Literal["accept", "reject"]

KEYS = {
    "y": "keep it",
    "n": "reject it",
    "q": "quit; apply the decisions so far",
    "a": "keep this change and all later ones in the file",
    "d": "reject this change and all later ones in the file",
    "A": "keep all changes by this call, in every file",
    "D": "reject all changes by this call, in every file",
    "j": "leave undecided, go to the next undecided change",
    "J": "leave undecided, go to the next change",
    "k": "leave undecided, go to the previous undecided change",
    "K": "leave undecided, go to the previous change",
    "g": "go to a change by number",
    "/": "search for a regular expression",
    "s": "split it into smaller changes",
    "e": "edit it by hand",
    "p": "show all of it",
    "?": "show this help",
}
MAX_ROW_CHARS = 400
"""Longest diff line to show in full; longer ones end with the number of omitted characters."""
PIPE_ROWS = 400
"""Maximum lines of a change to print into a pipe; on a terminal, the screen height is the limit."""
QUESTION_ROWS = 6
"""Screen lines reserved for the file's name, the authors and the prompt."""
SUMMARY_CHARS = 60
AFTER_LAST = -1
"""Index that means that no items are left to ask about."""
EDIT_HELP = """# + lines stay, - lines go. To restore a line, make its - a space. To drop one, delete it.
# Lines that start with # are ignored. If nothing is left, nothing changes.
"""


class ReviewStopped(Exception):
    """Raised when the user quits the review; the decisions made so far are still applied."""


@dataclass(slots=True)
class ReviewItem:
    """Parts of a file that the user keeps or rejects together: their number in the file and the decision."""

    file: "ReviewedFile"
    parts: "tuple[ReviewPart, ...]"
    number: int
    decision: Decision | None = None
    edited: str | None = None
    """Replacement text for the part; None if it was not edited."""

    @property
    def refusal(self) -> str:
        """Why it can't be rejected; empty if it can."""
        return next((part.refusal for part in self.parts if part.refusal), "")

    @property
    def authors(self) -> tuple[str, ...]:
        """Ids of the calls that made it."""
        return self.parts[0].authors

    @property
    def text(self) -> str:
        """The parts as diff lines, or as a description."""
        return self.file.shown(self.parts)


def review_items_of_file(file: "ReviewedFile") -> list[ReviewItem]:
    """Group the parts of a file into review items: neighbouring hunks by the same calls go together."""
    from handtools.text.diffs.authored_hunks import grouped_hunk_indexes

    hunks = [part for part in file.parts if part.kind == "hunk"]
    whole = [(part,) for part in file.parts if part.kind != "hunk"]
    groups = grouped_hunk_indexes(file.diff.hunks) if file.diff and hunks else []
    grouped = [tuple(hunks[at] for at in group) for group in groups]
    return [ReviewItem(file, parts, number) for number, parts in enumerate([*grouped, *whole], 1)]


@dataclass(slots=True)
class ReviewQuestions:
    """Asks about the items of files one by one; a decision on a whole call also applies to later files."""

    name_author: Callable[[str], str]
    edit_text: Callable[[str], str | None]
    question: str = "Keep this change"
    decisions: dict[str, Decision] = field(default_factory=dict)
    """Decisions on whole calls, by call id."""
    console: "Console" = field(default_factory=stdout_console)
    items: list[ReviewItem] = field(default_factory=list)
    """The items of the current file; splitting an item replaces it by its pieces."""
    at: int = AFTER_LAST
    """Index of the current item."""

    def ask(self, items: Sequence[ReviewItem], title: str) -> None:
        """Ask about a file's items until each is decided or left undecided.

        The decisions are in `self.items`. Raises `ReviewStopped` and `KeyboardInterrupt`.
        """
        self.items, self.at = list(items), AFTER_LAST
        for item in self.items:
            self._apply_decision_on_call(item)
        self.at = self._index_of_next_undecided()
        if self.at != AFTER_LAST:
            self.console.print()
            self.console.print(with_visible_characters(title), style="bold", soft_wrap=True)
        while self.at != AFTER_LAST:
            self._print_item(self.items[self.at])
            self.at = self._next_index_from_answers()

    def _next_index_from_answers(self) -> int:
        """Prompt for the current item until an answer leads to another one; return that item's index."""
        while True:
            typed = self._prompt_for_key()
            answers: dict[str, Callable[[], int | None]] = {
                "y": lambda: self._decide_item(keep=True),
                "n": lambda: self._decide_item(keep=False),
                "q": self._stop_review,
                "a": lambda: self._decide_remaining_items(keep=True),
                "d": lambda: self._decide_remaining_items(keep=False),
                "A": lambda: self._decide_items_of_call(keep=True),
                "D": lambda: self._decide_items_of_call(keep=False),
                "g": partial(self._index_of_number, typed[1:].strip()),
                "/": partial(self._index_of_match, typed[1:]),
                "s": self._split_item,
                "e": self._edit_item,
                "p": self._print_all,
                **{key: partial(self._index_of_neighbour, key) for key in "jJkK"},
            }
            following = answers.get(typed[:1], self._print_help)()
            if following is not None:
                return following

    def _prompt_for_key(self) -> str:
        from rich.text import Text

        question = (
            f"({self.at + 1}/{len(self.items)}) {self.question} [{','.join(self._available_keys())}]?"
        )
        self.console.print(Text(question, "bold blue"), end="")
        answer = ask_key(self.console, " ")
        if answer is None:
            raise ReviewStopped
        return answer

    def _print_item(self, item: ReviewItem) -> None:
        for author in item.authors:
            self.console.print(f"by {with_visible_characters(self.name_author(author))}", style="dim")
        most = max(self.console.height - QUESTION_ROWS, 4) if self.console.is_terminal else PIPE_ROWS
        _print_rows(self.console, item.text, most)
        if item.decision:
            self.console.print(f"So far: {KEYS['y' if item.decision == 'accept' else 'n']}.", style="dim")
        if item.refusal:
            self.console.print(f"! {item.refusal}", style="yellow")

    def _available_keys(self) -> Iterator[str]:
        """The keys that apply to the current item."""
        item, at = self.items[self.at], self.at
        left_out = {
            **dict.fromkeys("jJ", at == len(self.items) - 1),
            **dict.fromkeys("kK", at == 0),
            **dict.fromkeys("g/", len(self.items) == 1),
            **dict.fromkeys("AD", len(item.authors) != 1),
            "n": bool(item.refusal),
            "s": len(item.parts) < 2,
            "e": item.parts[0].kind != "hunk" or len(item.parts) > 1,
        }
        return (key for key in KEYS if not left_out.get(key))

    def _index_of_next_undecided(self) -> int:
        """The index of the next undecided item, wrapping around at the end; `AFTER_LAST` if there is none."""
        order = [*range(self.at + 1, len(self.items)), *range(self.at + 1)]
        return next((index for index in order if self.items[index].decision is None), AFTER_LAST)

    def _decide_item(self, *, keep: bool) -> int | None:
        return (
            self._index_of_next_undecided() if self._set_decision(self.items[self.at], keep=keep) else None
        )

    def _decide_remaining_items(self, *, keep: bool) -> int | None:
        this, *later = self.items[self.at :]
        for item in (this, *(item for item in later if item.decision is None)):
            self._set_decision(item, keep=keep)
        # Skip later items that can't be rejected (a message was printed); asking again would never end.
        before = (at for at, item in enumerate(self.items[: self.at]) if item.decision is None)
        return next(before, AFTER_LAST)

    def _decide_items_of_call(self, *, keep: bool) -> int | None:
        authors = self.items[self.at].authors
        if len(authors) != 1:
            self.console.print("Several calls made this change; decide on it separately.")
            return None
        self.decisions[authors[0]] = "accept" if keep else "reject"
        if not self._set_decision(self.items[self.at], keep=keep):
            return None
        for item in self.items:
            self._apply_decision_on_call(item)
        return self._index_of_next_undecided()

    def _apply_decision_on_call(self, item: ReviewItem) -> None:
        """If one call made the item and the user decided on that whole call, apply that decision."""
        said = self.decisions.get(item.authors[0]) if len(item.authors) == 1 else None
        if item.decision is None and said is not None and not (said == "reject" and item.refusal):
            item.decision = said

    def _set_decision(self, item: ReviewItem, *, keep: bool) -> bool:
        """Store a decision on an item. If it can't be rejected, print the reason and return False."""
        if not keep and item.refusal:
            more = "e edits it by hand." if item.parts[0].kind == "hunk" else "Change the file yourself."
            self.console.print(f"{item.refusal} It can't be rejected on its own. {more}", style="yellow")
            return False
        item.decision, item.edited = "accept" if keep else "reject", None
        return True

    def _stop_review(self) -> int | None:
        raise ReviewStopped

    def _index_of_neighbour(self, key: str) -> int | None:
        way = range(self.at + 1, len(self.items)) if key in "jJ" else range(self.at - 1, -1, -1)
        found = next((index for index in way if key in "JK" or self.items[index].decision is None), None)
        if found is None:
            self.console.print("No more changes in that direction.")
        return found

    def _index_of_number(self, number: str) -> int | None:
        if not number:
            for index, item in enumerate(self.items, 1):
                sign = {"accept": "+", "reject": "-", None: " "}[item.decision]
                self.console.print(f"{sign}{index:>3}: {_item_summary(item)}", soft_wrap=True)
            number = ask_key(self.console, "go to which? ") or ""
        if number.isascii() and number.isdigit() and 1 <= int(number) <= len(self.items):
            return int(number) - 1
        self.console.print(f"Enter a number from 1 to {len(self.items)}.")
        return None

    def _index_of_match(self, wanted: str) -> int | None:
        wanted = wanted or ask_key(self.console, "search for regex? ") or ""
        try:
            pattern = re.compile(wanted)
        except re.error as problem:
            self.console.print(f"Not a valid regular expression: {problem}.")
            return None
        order = [*range(self.at + 1, len(self.items)), *range(self.at)]
        found = next((at for at in order if wanted and pattern.search(self.items[at].text)), None)
        if found is None:
            self.console.print("No other change matches.")
        return found

    def _split_item(self) -> int | None:
        whole = self.items[self.at]
        if len(whole.parts) < 2:
            self.console.print("It can't be split.")
            return None
        pieces = [ReviewItem(whole.file, (part,), whole.number) for part in whole.parts]
        self.items[self.at : self.at + 1] = pieces
        self.console.print(f"Split into {len(pieces)}.")
        return self.at

    def _edit_item(self) -> int | None:
        item = self.items[self.at]
        if item.parts[0].kind != "hunk" or len(item.parts) > 1:
            self.console.print("Split it first: s." if len(item.parts) > 1 else "It has no lines to edit.")
            return None
        try:
            item.edited = edited_hunk(item, self.edit_text)
        except ValueError as problem:
            self.console.print(str(problem))
            return None
        item.decision = "accept" if item.edited is None else "reject"
        return self._index_of_next_undecided()

    def _print_all(self) -> int | None:
        _print_rows(self.console, self.items[self.at].text, None)
        return None

    def _print_help(self) -> int | None:
        for name in self._available_keys():
            self.console.print(f"{name} - {KEYS[name]}", style="dim")
        return None


def edited_hunk(item: ReviewItem, edit_text: Callable[[str], str | None]) -> str | None:
    """Let the user edit a hunk as a diff; return the replacement text, or None if it is unchanged.

    Raises `ValueError` with a message for the user.
    """
    from handtools.text.diffs.authored_hunks import split_rows

    diff = item.file.diff
    assert diff is not None
    hunk = diff.hunks[item.parts[0].hunk]
    old, new = diff.base_text(hunk), diff.text(hunk)
    shown = [f"{sign}{row}" for sign, text in (("-", old), ("+", new)) for row in split_rows(text)]
    typed = edit_text(EDIT_HELP + "".join(row if row.endswith("\n") else f"{row}\n" for row in shown))
    rows = [row for row in split_rows(typed or "") if not row.startswith("#")]
    if not rows:
        raise ValueError("Nothing was edited.")
    if bad := [row for row in rows if row[0] not in " +-\n"]:
        raise ValueError(f"Lines must start with a space, + or -: {visible_line(bad[0], SUMMARY_CHARS)}")
    wanted = "".join(row[1:] or "\n" for row in rows if row[0] != "-")
    if not (new or old).endswith("\n"):
        wanted = wanted.removesuffix("\n")
    return None if wanted == new else wanted


def _item_summary(item: ReviewItem) -> str:
    rows = item.text.split("\n")
    first = next((row for row in rows[1:] if row[:1] in ("+", "-")), rows[0])
    return visible_line(f"{rows[0] if first is not rows[0] else ''} {first}".strip(), SUMMARY_CHARS)


def _print_rows(console: "Console", text: str, most: int | None) -> None:
    """Print a diff with long lines clipped and control characters visible; at most `most` lines."""
    rows = [_clip_row(row) for row in text.removesuffix("\n").split("\n")]
    shown = rows if most is None else rows[:most]
    console.print(coloured_diff("\n".join(shown)), soft_wrap=True)
    if len(rows) > len(shown):
        left = number_with_noun(len(rows) - len(shown), "more line")
        console.print(f"… {left}; p shows all of it", style="dim")


def _clip_row(row: str) -> str:
    if len(row) <= MAX_ROW_CHARS:
        return row
    return f"{row[:MAX_ROW_CHARS]} … {len(row) - MAX_ROW_CHARS:,} more characters"
