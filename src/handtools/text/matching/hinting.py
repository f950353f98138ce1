"""Hinting: a line number, a scope or a count may leave fewer candidates, never more."""

from handtools.text.matching.folding import indent, is_blank
from handtools.text.matching.outcomes import Hint
from handtools.text.matching.pages import Page


def narrowed(page: Page, found: list[int], hint: Hint) -> list[int]:
    """Indexes of the candidates, given by their first line, that the hint allows."""
    left = list(range(len(found)))
    if hint.scope is not None:
        left = [index for index in left if _within(page, found[index] - 1, hint.scope)]
    if hint.occurrence is not None:
        left = left[hint.occurrence - 1 : hint.occurrence] if hint.occurrence > 0 else []
    if hint.line is not None:
        left = [index for index in left if abs(found[index] - hint.line) <= hint.within]
        exact = [index for index in left if found[index] == hint.line]
        left = exact or left
    return left


def _within(page: Page, row: int, scope: str) -> bool:
    """Whether the nearest line above that is no deeper than all between is the scope's."""
    wanted = scope.strip()
    depth: int | None = None
    for index in range(min(row, len(page.bare) - 1), -1, -1):
        line = page.bare[index]
        if is_blank(line):
            continue
        if depth is None or len(indent(line)) <= depth:
            depth = len(indent(line))
            if line.strip() == wanted or line.strip().startswith(wanted):
                return True
    return False
