"""Remembering: an edit of the text as it was last read, brought to the text as it is now."""

from handtools.text import lines, merging
from handtools.text.comparing import common_ends
from handtools.text.diffing import Edit, opcodes
from handtools.text.matching import refusing
from handtools.text.matching.outcomes import Applied, Refused, Span
from handtools.text.matching.pages import Page, offsets
from handtools.text.matching.scripting import slides
from handtools.text.splicing import Spliced


def checked(page: Page, old: str, outcome: Applied | Refused, seen: str) -> Applied | Refused:
    """What fits one place now is refused if it fitted more when it was read: another may have been meant."""
    if isinstance(outcome, Refused):
        return outcome
    if len(offsets(lines.adopt(seen, "\n"), lines.adopt(old, "\n"), most=2)) < 2:
        return outcome
    first = lines.line_at(page.text, outcome.spans[0].start) - 1
    return refusing.stale(page, first, first + lines.count(old))


def merged(page: Page, seen: str, edited: Applied) -> Applied | Refused:
    """Merge what the agent changed with what others did, unless both may have touched the same lines."""
    merge = merging.merge(seen, page.text, edited.text)
    if merge.conflicts:
        first = merge.conflicts[0]
        height = max(1, lines.count(first.ours))
        return refusing.stale(page, first.line - 1, first.line - 1 + height)
    if merge.text == page.text:
        return Refused(code="already_applied", message="The file already has this change.")
    if (touched := _touched(seen, page.text, edited.text)) is not None:
        return refusing.stale(page, touched.start_b, max(touched.end_b, touched.start_b + 1))
    span = _changed(page.text, merge.text)
    written = merge.text[span.start : len(merge.text) - len(page.text) + span.end]
    return Applied(
        result=Spliced(page.text, span.start, span.end, written),
        tier="text as last read",
        spans=(span,),
        notes=edited.notes,
    )


def _touched(seen: str, now: str, edited: str) -> Edit | None:
    """A change of others that, among equal lines, could as well lie where the agent's change does."""
    base, ours, theirs = map(lines.split, (seen, now, edited))
    zones = [_zone(base, theirs, edit) for edit in opcodes(base, theirs)]
    for edit in opcodes(base, ours):
        start, end = _zone(base, ours, edit)
        if any(start <= stop and begin <= end for begin, stop in zones):
            return edit
    return None


def _zone(base: list[str], other: list[str], edit: Edit) -> tuple[int, int]:
    """All lines of the origin that an insertion or a deletion could be said to lie at."""
    if edit.start_b == edit.end_b:
        found = [outside < edit.start_a for outside, _ in slides(base, edit.start_a, edit.end_a)]
    elif edit.start_a == edit.end_a:
        found = [outside < edit.start_b for outside, _ in slides(other, edit.start_b, edit.end_b)]
    else:
        found = []
    return edit.start_a - sum(found), edit.end_a + len(found) - sum(found)


def _changed(before: str, after: str) -> Span:
    """The least part of `before` outside which both are the same."""
    head, tail = common_ends(before, after)
    return Span(head, len(before) - tail)
