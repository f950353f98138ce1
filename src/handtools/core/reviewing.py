"""Reviewing: the errors of a change told apart and put into words."""

from collections.abc import Sequence

from handtools.core.language import Delta, Diagnostic, Review, Verdict
from handtools.text.aligning import align
from handtools.text.clipping import clip_line
from handtools.text.lines import split
from handtools.text.shifting import shifted

PER_FILE = 20
"""Errors that are shown of one file."""
ELSEWHERE = 5
"""Other files that are shown."""
MESSAGE_CHARS = 300


def delta(
    path: str, before: str, after: str, old: Sequence[Diagnostic], now: Sequence[Diagnostic]
) -> Delta:
    """Tell errors apart by where the old ones stand now: a line that moved does not make an error new."""
    if not old or not now:
        return Delta(path, tuple(now), tuple(old))
    edits = [] if before == after else align(split(before), split(after))
    left: dict[tuple[str, str, str, int | None], list[Diagnostic]] = {}
    for each in old:
        left.setdefault((*_kind(each), shifted(edits, each.line)), []).append(each)
    new: list[Diagnostic] = []
    still: list[Diagnostic] = []
    for each in now:
        at = left.get((*_kind(each), each.line))
        if at:
            at.pop()
            still.append(each)
        else:
            new.append(each)
    gone = [each for group in left.values() for each in group]
    # On a line that was itself changed an error keeps its identity by its words.
    for each in list(new):
        match = next(
            (one for one in gone if _kind(one) == _kind(each) and _rewritten(edits, one, each)), None
        )
        if match is not None:
            gone.remove(match)
            new.remove(each)
            still.append(each)
    return Delta(path, tuple(new), tuple(gone), tuple(still))


def _kind(each: Diagnostic) -> tuple[str, str, str]:
    return each.source, each.code, each.message


def _rewritten(edits: Sequence[tuple[int, int, int, int]], old: Diagnostic, now: Diagnostic) -> bool:
    """Whether both stand in the same changed region."""
    return any(
        start_a < old.line <= end_a and start_b < now.line <= end_b
        for start_a, end_a, start_b, end_b in edits
    )


def told(review: Review) -> str:
    """A review as the model reads it; empty when nobody looked."""
    if not review.verdicts:
        return ""
    proved = [each for each in review.verdicts if each.standing != "unknown"]
    what = f" {_counted(review)} ({_servers(proved)})." if proved else ""
    said = [f"The change was applied.{what}"]
    for each in review.deltas:
        said += listed(each.new)
    if review.elsewhere:
        said.append("It broke other files:")
        for each in review.elsewhere[:ELSEWHERE]:
            said += listed(each.new)
        if len(review.elsewhere) > ELSEWHERE:
            said.append(f"… and {len(review.elsewhere) - ELSEWHERE} more files.")
    said += [unproved(verdict) for verdict in review.unknown]
    return "\n".join(said)


def _counted(review: Review) -> str:
    new = sum(len(each.new) for each in review.deltas)
    fixed = sum(len(each.fixed) for each in review.deltas)
    still = sum(len(each.still) for each in review.deltas)
    counts = [
        f"{count} {name}"
        for count, name in ((new, "new"), (fixed, "fixed"), (still, "still there"))
        if count
    ]
    return f"Errors: {', '.join(counts)}" if new or still else ", ".join(["No errors", *counts])


def unproved(verdict: Verdict) -> str:
    """What is said in place of a verdict."""
    why = verdict.why or "server still checking"
    return f"{verdict.path}: errors unknown ({verdict.server}: {why}); not known to be clean."


def listed(errors: Sequence[Diagnostic]) -> list[str]:
    """Errors as lines, the first of them if they are many."""
    shown = [
        f"{each.path}:{each.line}:{each.column + 1} {clip_line(_flat(each.message), MESSAGE_CHARS)}"
        f"{f' [{each.code}]' if each.code else ''}"
        for each in errors[:PER_FILE]
    ]
    more = len(errors) - PER_FILE
    return [*shown, f"… and {more} more in {errors[0].path}."] if more > 0 else shown


def _flat(message: str) -> str:
    return " ".join(message.split())


def _servers(verdicts: Sequence[Verdict]) -> str:
    names = dict.fromkeys(
        each.server if each.standing == "fresh" else f"{each.server}, likely" for each in verdicts
    )
    return "; ".join(names)
