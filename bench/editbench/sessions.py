"""Cases from real sessions: what is known of their intent, and what became of each."""

import re
from collections import Counter
from collections.abc import Iterator
from typing import Literal

from bench.editbench.cases import Case
from bench.editbench.judging import is_same
from bench.editbench.matchers import Answer
from bench.figures import Figure
from handtools.text.diffs.unified_diff import diff_line_edits

Intent = Literal["good", "resent", "invented", "empty", "retried", "retried otherwise", "unknown"]
_BY_FAMILY: tuple[tuple[str, Intent], ...] = (
    (r"doubled|already-applied", "resent"),
    (r"invented", "invented"),
    (r"old==new", "empty"),
    (r"unretried", "unknown"),
    (r"other-new-retried", "retried otherwise"),
    (r"retried", "retried"),
    (r"(^|-)ok(-|$)", "good"),
)
_LINES = re.compile(r"\blines? (\d+)(?:-(\d+))?((?:, \d+)*)")
# What the issue asks of good ones, and of failed ones that were retried, in per cent.
_GOALS = {"edits": (98.5, 50.0), "patches": (99.0, 100 / 3)}
_PLACES_GOAL = 94.0


def intent(case: Case) -> Intent | None:
    """What is known of a case by its family; None for one that a generator made."""
    if "-ok" not in case.family and "-fail-" not in case.family:
        return None
    return next((known for pattern, known in _BY_FAMILY if re.search(pattern, case.family)), None)


class Sessions:
    """Counts as they come in."""

    def __init__(self, *, goals: bool) -> None:
        self.goals = goals
        self.counts: Counter[tuple[str, Intent, str]] = Counter()
        self.places: Counter[bool] = Counter()

    def take(self, case: Case, answer: Answer, known: Intent) -> str:
        """Count one case; what became of it."""
        form, ending = "patches" if case.patch else "edits", _ending(case, answer)
        self.counts[form, known, "all"] += 1
        self.counts[form, known, ending] += 1
        if answer.text is None and case.accept and known.startswith("retried") and not case.patch:
            self.places[_names_the_place(case, answer.message)] += 1
        return ending

    def figures(self) -> Iterator[Figure]:
        for form in ("edits", "patches"):
            yield from self._form(form, *_GOALS[form])
        if named := self.places.total():
            share = round(100 * self.places[True] / named, 1)
            goal = _PLACES_GOAL if self.goals else None
            name = f"right place named, of {named} refused edits with a retry"
            yield Figure(name=name, value=share, unit="%", goal=goal, better="higher")

    def _form(self, form: str, good: float, rescued: float) -> Iterator[Figure]:
        def count(known: Intent, *endings: str) -> int:
            return sum(self.counts[form, known, ending] for ending in endings)

        def share(name: str, known: Intent, *endings: str, goal: float | None = None) -> Figure:
            part = round(100 * count(known, *endings) / total, 1)
            wanted = goal if self.goals else None
            return Figure(name=name, value=part, unit="%", goal=wanted, better="higher")

        if total := count("good", "all"):
            name = f"good {form}, of {total}"
            yield share(f"{name}: the same", "good", "same", "blanks", goal=good)
            yield share(f"{name}: the same to the byte", "good", "same")
            yield Figure(
                name=f"{name}: there already, not made twice", value=count("good", "done"), unit=""
            )
            yield Figure(name=f"{name}: refused", value=count("good", "refused"), unit="")
            yield Figure(name=f"{name}: wrong", value=count("good", "other"), unit="", goal=0)
        if total := count("resent", "all"):
            twice = count("resent", "other", "blanks")
            yield Figure(name=f"resent {form}, of {total}: applied twice", value=twice, unit="", goal=0)
            yield share(f"resent {form}, of {total}: answered as done", "resent", "done")
        if total := count("invented", "all"):
            made = count("invented", "other", "blanks")
            yield Figure(name=f"invented {form}, of {total}: applied", value=made, unit="", goal=0)
        if total := count("retried", "all"):
            yield share(f"retried {form}, of {total}: rescued", "retried", "same", "blanks", goal=rescued)
            yield Figure(
                name=f"retried {form}: applied otherwise", value=count("retried", "other"), unit=""
            )
        if total := count("retried otherwise", "all"):
            same = count("retried otherwise", "same", "blanks")
            name = f"{form} retried with another text, of {total}"
            yield Figure(name=f"{name}: as the retry", value=same, unit="", better="higher")
            yield Figure(name=f"{name}: applied", value=count("retried otherwise", "other"), unit="")
        if total := count("unknown", "all"):
            made = count("unknown", "other", "blanks")
            yield Figure(name=f"{form} of unknown intent, of {total}: applied", value=made, unit="")


def _ending(case: Case, answer: Answer) -> str:
    if answer.text is None:
        return "refused"
    if answer.text in case.accept:
        return "same"
    if answer.text == case.content:
        return "done"
    return "blanks" if any(is_same(answer.text, text) for text in case.accept) else "other"


def _names_the_place(case: Case, message: str) -> bool:
    """Whether a line that the message names lies where the successful retry was."""
    rows = case.content.decode("utf-8", "replace").split("\n")
    meant = _retried_lines(case, rows)
    for match in _LINES.finditer(message.split("```", maxsplit=1)[0]):
        first, last = int(match[1]), int(match[2] or match[1])
        starts = [int(number) for number in re.findall(r"\d+", match[3])]
        if any(line in meant for line in (*range(first, last + 1), *starts)):
            return True
    return False


def _retried_lines(case: Case, rows: list[str]) -> set[int]:
    """The lines that the retry's old text covers, else those that its success changed."""
    told = [row.strip() for row in (case.retry or "").strip("\n").split("\n")]
    bare = [row.strip() for row in rows]
    for at in range(len(bare) - len(told) + 1):
        if any(told) and bare[at : at + len(told)] == told:
            return set(range(at + 1, at + len(told) + 1))
    after = case.accept[0].decode("utf-8", "replace").split("\n")
    return {line for edit in diff_line_edits(rows, after) for line in range(edit.start_a, edit.end_a + 2)}
