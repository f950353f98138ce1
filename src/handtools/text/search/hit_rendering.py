"""Rendering of search hits as text: a path, its matched lines, and the context around them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from handtools.text.truncation import clip_line

LINE_CHARS = 300
"""Matched lines with more characters than this are clipped around the match."""
_BREAKING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class RenderedHit:
    """One search hit as shown: its line, enclosing symbols and context lines."""

    line: int
    text: str
    at: int = 0
    """The offset in the hit's text at which the match begins."""
    crumbs: str = ""
    """The names of the enclosing symbols, outermost first."""
    around: Mapping[int, str] | None = None
    """The context lines before and after the hit, by line number."""
    part: bool = False
    """Whether the hit's text is only part of its line."""

    @property
    def shown_rows(self) -> dict[int, tuple[str, str]]:
        """Every line shown for this hit, by number: its marker (`:` hit, `-` context) and clipped text."""
        beside = {
            number: ("-", clip_line(text, LINE_CHARS)) for number, text in (self.around or {}).items()
        }
        lines = self.text.split("\n")
        own = {self.line + n: (":", self.clip_hit_line(line, n)) for n, line in enumerate(lines)}
        return beside | own

    def clip_hit_line(self, line: str, number: int = 0) -> str:
        """Clip one line of a search hit, around the match if it is on this line."""
        return clip_line(line, LINE_CHARS, around=None if number else self.at, part=self.part)


def path_on_one_line(path: str) -> str:
    """Escape line breaks and control characters in a path, so that it is shown on one line."""
    return _BREAKING.sub(lambda sign: sign[0].encode("unicode_escape").decode(), path)


def each_path_on_one_line(names: Sequence[str]) -> Sequence[str]:
    """Escape line breaks and control characters in many paths.

    Returns the same sequence if there are none.
    """
    # Line breaks and control characters are not printable, and `isprintable` is faster than a regex.
    return names if "".join(names).isprintable() else [path_on_one_line(name) for name in names]


def render_hits(path: str, rendered_hits: Sequence[RenderedHit]) -> str:
    """Render the hits of one file: `12:` before a hit, `12-` before a context line, `--` between groups."""
    shown = [path_on_one_line(path)]
    crumbs = ""
    if _has_only_separate_lines(rendered_hits):
        for citation in rendered_hits:
            if citation.crumbs and citation.crumbs != crumbs:
                shown.append(f"[{citation.crumbs}]")
            crumbs = citation.crumbs
            shown.append(f"{citation.line}:{citation.clip_hit_line(citation.text)}")
        return "\n".join(shown)
    wide = any(citation.around for citation in rendered_hits)
    for rows, above in _grouped_hits(rendered_hits):
        if above and above != crumbs:
            shown.append(f"[{above}]")
        elif wide and len(shown) > 1:
            shown.append("--")
        crumbs = above
        shown += [f"{number}{sign}{text}" for number, (sign, text) in sorted(rows.items())]
    return "\n".join(shown)


def _has_only_separate_lines(rendered_hits: Sequence[RenderedHit]) -> bool:
    """Whether all hits are single lines in ascending order without context, so that nothing overlaps."""
    last = 0
    for citation in rendered_hits:
        if citation.around or citation.line <= last or "\n" in citation.text:
            return False
        last = citation.line
    return True


def _grouped_hits(rendered_hits: Sequence[RenderedHit]) -> list[tuple[dict[int, tuple[str, str]], str]]:
    """Group hits whose lines overlap or touch, so that each line is shown once."""
    chunks: list[tuple[dict[int, tuple[str, str]], str]] = []
    for citation in rendered_hits:
        rows = citation.shown_rows
        if chunks:
            known, crumbs = chunks[-1]
            touching = min(rows) <= max(known) + 1
            if touching and (crumbs == citation.crumbs or min(rows) <= max(known)):
                hits = {number: row for number, row in known.items() if row[0] == ":"}
                known.update(rows | hits)
                continue
        chunks.append((rows, citation.crumbs))
    return chunks
