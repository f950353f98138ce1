"""Remembering: an edit of the text as it was last read, brought to the text as it is now."""

from handtools.text import lines, merging
from handtools.text.comparing import common_ends
from handtools.text.matching import refusing
from handtools.text.matching.outcomes import AlreadyApplied, Applied, Refused, Span
from handtools.text.matching.pages import Page, offsets
from handtools.text.splicing import Spliced


def checked(
    page: Page, old: str, outcome: Applied | AlreadyApplied | Refused, seen: str
) -> Applied | AlreadyApplied | Refused:
    """What fits one place now is refused if it fitted more when it was read: another may have been meant."""
    if not isinstance(outcome, Applied):
        return outcome
    if len(offsets(lines.adopt(seen, "\n"), lines.adopt(old, "\n"), most=2)) < 2:
        return outcome
    first = lines.line_at(page.text, outcome.spans[0].start) - 1
    return refusing.stale(page, first, first + lines.count(old))


def merged(page: Page, seen: str, edited: Applied) -> Applied | AlreadyApplied | Refused:
    """Merge what the agent changed with what others did, unless both may have touched the same lines."""
    merge = merging.merge(seen, page.text, edited.text)
    if merge.conflicts:
        first = merge.conflicts[0]
        height = max(1, lines.count(first.ours))
        return refusing.stale(page, first.line - 1, first.line - 1 + height)
    if merge.text == page.text:
        line = lines.line_at(edited.text, edited.spans[0].start)
        return AlreadyApplied(text=page.text, window=page.window(line - 1, line))
    sides = map(lines.split, (seen, page.text, edited.text))
    if (touched := merging.touch(*sides)) is not None:
        return refusing.stale(page, touched.start_b, max(touched.end_b, touched.start_b + 1))
    span = _changed(page.text, merge.text)
    written = merge.text[span.start : len(merge.text) - len(page.text) + span.end]
    return Applied(
        result=Spliced(page.text, span.start, span.end, written),
        tier="text as last read",
        spans=(span,),
        notes=edited.notes,
    )


def _changed(before: str, after: str) -> Span:
    """The least part of `before` outside which both are the same."""
    head, tail = common_ends(before, after)
    return Span(head, len(before) - tail)
