"""Citing: hits as a reader sees them, with the lines around and the symbols above."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from handtools.text.clipping import clip_line

LINE_CHARS = 300
"""Longer lines are clipped around the match."""
_BREAKING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class Citation:
    """One hit of a file."""

    line: int
    text: str
    at: int = 0
    """Where in the text the match begins."""
    crumbs: str = ""
    """The symbols around it, outermost first."""
    around: Mapping[int, str] | None = None
    """Lines before and after it, by number."""
    part: bool = False
    """Whether the text is only a part of its line."""

    @property
    def rows(self) -> dict[int, tuple[str, str]]:
        """Every line that is shown for it: its sign and its text."""
        beside = {
            number: ("-", clip_line(text, LINE_CHARS)) for number, text in (self.around or {}).items()
        }
        lines = self.text.split("\n")
        own = {self.line + n: (":", self.clipped(line, n)) for n, line in enumerate(lines)}
        return beside | own

    def clipped(self, line: str, number: int = 0) -> str:
        """One of its lines, around the match where that is in it."""
        return clip_line(line, LINE_CHARS, around=None if number else self.at, part=self.part)


def named(path: str) -> str:
    """A path on one line: a name that holds a line end must not look like another answer."""
    return _BREAKING.sub(lambda sign: sign[0].encode("unicode_escape").decode(), path)


def one_line(names: Sequence[str]) -> Sequence[str]:
    """The same for very many: one look tells that there is nothing to do."""
    # Whatever breaks a line can't be printed, and that is told faster than by a regex.
    return names if "".join(names).isprintable() else [named(name) for name in names]


def cite(path: str, citations: Sequence[Citation]) -> str:
    """Render the hits of one file: `12:` before a hit, `12-` before a line beside it, `--` in between."""
    shown = [named(path)]
    crumbs = ""
    if _plain(citations):
        for citation in citations:
            if citation.crumbs and citation.crumbs != crumbs:
                shown.append(f"[{citation.crumbs}]")
            crumbs = citation.crumbs
            shown.append(f"{citation.line}:{citation.clipped(citation.text)}")
        return "\n".join(shown)
    wide = any(citation.around for citation in citations)
    for rows, above in _chunks(citations):
        if above and above != crumbs:
            shown.append(f"[{above}]")
        elif wide and len(shown) > 1:
            shown.append("--")
        crumbs = above
        shown += [f"{number}{sign}{text}" for number, (sign, text) in sorted(rows.items())]
    return "\n".join(shown)


def _plain(citations: Sequence[Citation]) -> bool:
    """Tell whether each is one line, further down than the last: then nothing is shown twice."""
    last = 0
    for citation in citations:
        if citation.around or citation.line <= last or "\n" in citation.text:
            return False
        last = citation.line
    return True


def _chunks(citations: Sequence[Citation]) -> list[tuple[dict[int, tuple[str, str]], str]]:
    """Lines that belong together: overlapping surroundings are shown once, and a hit stays a hit in them."""
    chunks: list[tuple[dict[int, tuple[str, str]], str]] = []
    for citation in citations:
        rows = citation.rows
        if chunks:
            known, crumbs = chunks[-1]
            touching = min(rows) <= max(known) + 1
            if touching and (crumbs == citation.crumbs or min(rows) <= max(known)):
                hits = {number: row for number, row in known.items() if row[0] == ":"}
                known.update(rows | hits)
                continue
        chunks.append((rows, citation.crumbs))
    return chunks
