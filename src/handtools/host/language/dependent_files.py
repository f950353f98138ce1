"""Find files that a change may break: those that mention a definition whose signature changed."""

import os
import re
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from handtools.core.errors import HostError
from handtools.core.syntax import Symbol, symbol_chains
from handtools.host import programs
from handtools.host.language.file_uris import DocumentFiles
from handtools.host.search.ripgrep_process import find_ripgrep
from handtools.host.syntax.ast_grep_syntax import TreeSyntax
from handtools.text.diffs.alignment import align_lines
from handtools.text.diffs.unified_diff import changed_rows

MAX_CHANGED_NAMES = 3
"""Most changed definitions for which dependent files are searched."""
MAX_DEPENDENT_FILES = 20
"""Most dependent files that are checked, most recently modified first."""
DEPENDENTS_SEARCH_SECONDS = 1.0
_CALLED = re.compile(r"([^\W\d]\w{2,})\s*\(")
_DEFINING = re.compile(
    r"\b(?:def|class|func|fn|function|struct|interface|trait|impl|enum|type|typedef|using)\b|#"
)
_REMEMBERED_OUTLINES = 64


class DefinitionLines(NamedTuple):
    """The lines of a definition: first and last line of its signature, and the last line of its body."""

    name: str
    start: int
    last: int
    end: int


class ChangedLines(NamedTuple):
    """A range of changed lines, first and last line number."""

    start: int
    end: int
    rows: Sequence[str]


class ChangedDefinitions:
    """Finds the definitions that a change touches; caches outlines, so most changes need no parsing."""

    def __init__(self, workspace: str | os.PathLike[str] = "") -> None:
        self._syntax = TreeSyntax(workspace, kept_bytes=0)
        self._known: OrderedDict[str, tuple[str, tuple[DefinitionLines, ...]]] = OrderedDict()

    async def touched(self, path: str, before: str, after: str) -> set[str]:
        """The names of definitions whose signature a change touches; changes inside a body don't count."""
        was, now = _changed_lines(before, after)
        spans = await self._spans(path, before)
        found = _changed_names(spans, was)
        still = [region[:2] for region in was] == [region[:2] for region in now]
        if not found and still and not any(map(_holds_definition, now)):
            self._keep(path, after, spans)
            return set()
        found += _changed_names(await self._spans(path, after), now)
        return set(list(dict.fromkeys(found))[:MAX_CHANGED_NAMES])

    async def _spans(self, path: str, text: str) -> tuple[DefinitionLines, ...]:
        known = self._known.get(path)
        if known is not None and known[0] == text:
            return known[1]
        outline = await self._syntax.outline(path, text.encode("utf-8", "replace"))
        spans = (
            tuple(_definition_lines(way[-1]) for way in symbol_chains(outline.symbols)) if outline else ()
        )
        self._keep(path, text, spans)
        return spans

    def _keep(self, path: str, text: str, definition_lines: tuple[DefinitionLines, ...]) -> None:
        self._known[path] = text, definition_lines
        self._known.move_to_end(path)
        if len(self._known) > _REMEMBERED_OUTLINES:
            self._known.popitem(last=False)


def _definition_lines(symbol: Symbol) -> DefinitionLines:
    body = symbol.end_line + 1 if symbol.body_line is None else symbol.body_line
    name = symbol.name.rpartition(".")[2].rpartition("::")[2]
    return DefinitionLines(name, symbol.start_line, max(body - 1, symbol.line), symbol.end_line)


def _changed_lines(before: str, after: str) -> tuple[list[ChangedLines], list[ChangedLines]]:
    """The line ranges that a change removed, and those that it added."""
    window = changed_rows(before, after)
    was, now = [], []
    for edit in align_lines(window.old, window.new):
        old, new = window.old[edit.start_a : edit.end_a], window.new[edit.start_b : edit.end_b]
        was += (
            [ChangedLines(window.above + edit.start_a + 1, window.above + edit.end_a, old)] if old else []
        )
        now += (
            [ChangedLines(window.above + edit.start_b + 1, window.above + edit.end_b, new)] if new else []
        )
    return was, now


def _changed_names(
    definition_lines: Sequence[DefinitionLines], changed: Sequence[ChangedLines]
) -> list[str]:
    found = [
        span.name
        for span in definition_lines
        if any(region.start <= span.last and span.start <= region.end for region in changed)
    ]
    for region in changed:
        if not any(span.start <= region.start <= span.end for span in definition_lines):
            for row in region.rows:
                found += _CALLED.findall(row)
    return found


def _holds_definition(changed_lines: ChangedLines) -> bool:
    return any(map(_DEFINING.search, changed_lines.rows))


def dependent_files(
    root: str,
    document_files: DocumentFiles,
    names: Iterable[str],
    suffixes: Sequence[str],
    most: int = MAX_DEPENDENT_FILES,
) -> list[str]:
    """Paths of files in a project that contain one of the names, the most recently modified first."""
    patterns = [part for name in names for part in ("-e", name)]
    globs = [part for suffix in suffixes for part in ("-g", f"*{suffix}")]
    options = ("--files-with-matches", "--word-regexp", "--fixed-strings", "--null", "--no-messages")
    try:
        done = programs.run_program(
            find_ripgrep(Path(document_files.workspace)),
            [*options, "--no-config", *patterns, *globs, "--", root],
            programs.ProgramLimits(seconds=DEPENDENTS_SEARCH_SECONDS),
        )
    except (OSError, programs.ProgramTimeout, HostError):
        return []
    found = [os.fsdecode(name) for name in done.output.split(b"\0") if name]
    newest = sorted(found, key=_modified, reverse=True)
    return [os.path.relpath(name, document_files.workspace) for name in newest[:most]]


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
