"""What is measured: our matcher, and exact replacement as the baseline."""

from collections.abc import Callable
from dataclasses import dataclass

from bench.editbench.cases import Case
from handtools.text import encoding
from handtools.text.matching import Applied, Hint, render, replace


@dataclass(frozen=True, slots=True)
class Answer:
    """The new bytes, or the refusal as a model would read it."""

    text: bytes | None
    message: str = ""
    how: str = ""


Matcher = Callable[[Case], Answer]


def ours(case: Case) -> Answer:
    """The matcher of this project, over the file's bytes."""
    source = encoding.decode(case.content)
    hint = None if case.line is None else Hint(line=case.line, within=case.within)
    seen = None if case.seen is None else encoding.decode(case.seen).body
    outcome = replace(source.body, case.old, case.new, hint=hint, seen=seen)
    if not isinstance(outcome, Applied):
        return Answer(None, render(outcome), outcome.code)
    try:
        return Answer(source.encode(outcome.text), how=outcome.tier)
    except encoding.Unencodable as error:
        return Answer(None, str(error), "unencodable")


def exact(case: Case) -> Answer:
    """One occurrence, byte for byte, or nothing."""
    old, new = case.old.encode(), case.new.encode()
    if not old or old == new or case.content.count(old) != 1:
        return Answer(None, "not found or not unique", "not_found")
    return Answer(case.content.replace(old, new), how="exact")


MATCHERS: dict[str, Matcher] = {"ours": ours, "exact": exact}
