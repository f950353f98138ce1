"""Pages: a body seen as lines, computed only when looser matching needs it."""

from functools import cached_property

from handtools.text import lines
from handtools.text.matching.folding import squashed_lines
from handtools.text.matching.outcomes import Span, Window


class Page:
    """One text with its lines and what is derived from them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.nearest: dict[str, Window | None] = {}
        """What came nearest to a text that was looked for: each is looked for more than once."""

    @cached_property
    def view(self) -> str:
        """The text with every line end `\\n`."""
        return lines.adopt(self.text, "\n")

    @cached_property
    def rows(self) -> list[str]:
        """Lines with their ends."""
        return lines.split(self.text)

    @cached_property
    def bare(self) -> list[str]:
        """Lines without their ends."""
        rows = self.view.split("\n")
        return rows[:-1] if rows[-1] == "" else rows

    @cached_property
    def _squashed_rows(self) -> list[str]:
        return squashed_lines(self.view)

    @cached_property
    def filled(self) -> list[int]:
        """Indexes of the lines that hold anything."""
        return [index for index, row in enumerate(self._squashed_rows) if row]

    @cached_property
    def squash(self) -> str:
        """All filled lines squashed, each between line ends."""
        return "\n" + "\n".join(filter(None, self._squashed_rows)) + "\n"

    @cached_property
    def ending(self) -> str:
        """The line end that most lines have."""
        return lines.dominant_ending(self.text)

    def span(self, first: int, last: int) -> Span:
        """Where lines `first` up to, not including, `last` lie."""
        start = sum(map(len, self.rows[:first]))
        return Span(start, start + sum(map(len, self.rows[first:last])))

    def window(self, first: int, last: int) -> Window:
        """Those lines to show."""
        first, last = max(first, 0), min(last, len(self.bare))
        return Window(first + 1, tuple(self.bare[first:last]))


def offsets(text: str, needle: str, *, most: int) -> list[int]:
    """Where the needle lies, overlapping hits included, up to `most` of them."""
    found: list[int] = []
    at = text.find(needle)
    while at >= 0 and len(found) < most:
        found.append(at)
        at = text.find(needle, at + 1)
    return found
