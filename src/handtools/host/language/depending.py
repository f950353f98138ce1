"""Depending: which other files a change may break: those that name what its heads define."""

import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from handtools.core.errors import HostError
from handtools.core.syntax import Symbol, flattened
from handtools.host import programs
from handtools.host.language.texts import Texts
from handtools.host.ripgrep_argv import program
from handtools.host.syntax.tree_syntax import TreeSyntax
from handtools.text.aligning import align
from handtools.text.diffing import changed_rows

NAMES = 3
"""Changed definitions whose users are looked for."""
FILES = 20
"""Other files that are looked at, the newest."""
SEARCH_SECONDS = 1.0
_CALLED = re.compile(r"([^\W\d]\w{2,})\s*\(")
_DEFINING = re.compile(
    r"\b(?:def|class|func|fn|function|struct|interface|trait|impl|enum|type|typedef|using)\b|#"
)
_REMEMBERED = 64


class Span(NamedTuple):
    """A definition: its head from the first line to the last, and where its body ends."""

    name: str
    start: int
    last: int
    end: int


class Region(NamedTuple):
    """Changed lines, from the first to the last."""

    start: int
    end: int
    rows: Sequence[str]


class Heads:
    """The definitions of files that were changed lately, so that a change inside a body costs no parsing."""

    def __init__(self) -> None:
        self._syntax = TreeSyntax(kept_bytes=0)
        self._known: OrderedDict[str, tuple[str, tuple[Span, ...]]] = OrderedDict()

    async def touched(self, path: str, before: str, after: str) -> set[str]:
        """The definitions whose heads a change touches: what is inside a body concerns nobody else."""
        was, now = _regions(before, after)
        spans = await self._spans(path, before)
        found = _heads(spans, was)
        still = [region[:2] for region in was] == [region[:2] for region in now]
        if not found and still and not any(map(_defines, now)):
            self._keep(path, after, spans)
            return set()
        found += _heads(await self._spans(path, after), now)
        return set(list(dict.fromkeys(found))[:NAMES])

    async def _spans(self, path: str, text: str) -> tuple[Span, ...]:
        known = self._known.get(path)
        if known is not None and known[0] == text:
            return known[1]
        outline = await self._syntax.outline(path, text.encode("utf-8", "replace"))
        spans = tuple(_span(way[-1]) for way in flattened(outline.symbols)) if outline else ()
        self._keep(path, text, spans)
        return spans

    def _keep(self, path: str, text: str, spans: tuple[Span, ...]) -> None:
        self._known[path] = text, spans
        self._known.move_to_end(path)
        if len(self._known) > _REMEMBERED:
            self._known.popitem(last=False)


def _span(symbol: Symbol) -> Span:
    body = symbol.end_line + 1 if symbol.body_line is None else symbol.body_line
    name = symbol.name.rpartition(".")[2].rpartition("::")[2]
    return Span(name, symbol.start_line, max(body - 1, symbol.line), symbol.end_line)


def _regions(before: str, after: str) -> tuple[list[Region], list[Region]]:
    """The lines that are gone, and those that came."""
    window = changed_rows(before, after)
    was, now = [], []
    for edit in align(window.old, window.new):
        old, new = window.old[edit.start_a : edit.end_a], window.new[edit.start_b : edit.end_b]
        was += [Region(window.above + edit.start_a + 1, window.above + edit.end_a, old)] if old else []
        now += [Region(window.above + edit.start_b + 1, window.above + edit.end_b, new)] if new else []
    return was, now


def _heads(spans: Sequence[Span], changed: Sequence[Region]) -> list[str]:
    found = [
        span.name
        for span in spans
        if any(region.start <= span.last and span.start <= region.end for region in changed)
    ]
    for region in changed:
        if not any(span.start <= region.start <= span.end for span in spans):
            for row in region.rows:
                found += _CALLED.findall(row)
    return found


def _defines(region: Region) -> bool:
    return any(map(_DEFINING.search, region.rows))


def dependents(
    root: str, texts: Texts, names: Iterable[str], suffixes: Sequence[str], most: int = FILES
) -> list[str]:
    """Files of a project that name one of these, newest first."""
    patterns = [part for name in names for part in ("-e", name)]
    globs = [part for suffix in suffixes for part in ("-g", f"*{suffix}")]
    options = ("--files-with-matches", "--word-regexp", "--fixed-strings", "--null", "--no-messages")
    try:
        done = programs.run(
            program(Path(texts.workspace)),
            [*options, "--no-config", *patterns, *globs, "--", root],
            programs.Bounds(seconds=SEARCH_SECONDS),
        )
    except (OSError, programs.TookTooLong, HostError):
        return []
    found = [os.fsdecode(name) for name in done.output.split(b"\0") if name]
    newest = sorted(found, key=_modified, reverse=True)
    return [os.path.relpath(name, texts.workspace) for name in newest[:most]]


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
