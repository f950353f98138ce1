"""Depending: which other files a change may break: those that name what its heads define."""

import os
import re
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from handtools.core.errors import HostError
from handtools.core.syntax import Symbol, flattened
from handtools.host.language.texts import Texts
from handtools.host.ripgrep_argv import program
from handtools.host.syntax.tree_syntax import TreeSyntax
from handtools.text.aligning import align
from handtools.text.lines import split

NAMES = 3
"""Changed definitions whose users are looked for."""
FILES = 20
"""Other files that are looked at, the newest."""
SEARCH_SECONDS = 1.0
_CALLED = re.compile(r"([^\W\d]\w{2,})\s*\(")
_SYNTAX = TreeSyntax()


async def touched_names(path: str, before: str, after: str) -> set[str]:
    """The definitions whose heads a change touches: what is inside a body concerns nobody else."""
    edits = align(split(before), split(after))
    found: list[str] = []
    for text, spans in (
        (before, [(edit.start_a + 1, edit.end_a) for edit in edits]),
        (after, [(edit.start_b + 1, edit.end_b) for edit in edits]),
    ):
        outline = await _SYNTAX.outline(path, text.encode("utf-8", "replace"))
        if outline is not None:
            found += _heads(outline.symbols, [span for span in spans if span[0] <= span[1]], split(text))
    return set(list(dict.fromkeys(found))[:NAMES])


def _heads(
    symbols: Iterable[Symbol], spans: Sequence[tuple[int, int]], rows: Sequence[str]
) -> Iterator[str]:
    ways = list(flattened(symbols))
    for way in ways:
        symbol = way[-1]
        last = symbol.end_line if symbol.body_line is None else max(symbol.body_line - 1, symbol.line)
        if any(start <= last and symbol.start_line <= end for start, end in spans):
            yield symbol.name.rpartition(".")[2].rpartition("::")[2]
    for start, end in spans:
        if not any(way[-1].start_line <= start <= way[-1].end_line for way in ways):
            for row in rows[start - 1 : end]:
                yield from _CALLED.findall(row)


def dependents(
    root: str, texts: Texts, names: Iterable[str], suffixes: Sequence[str], most: int = FILES
) -> list[str]:
    """Files of a project that name one of these, newest first."""
    patterns = [part for name in names for part in ("-e", name)]
    globs = [part for suffix in suffixes for part in ("-g", f"*{suffix}")]
    try:
        done = subprocess.run(
            [str(program(Path(root))), "--files-with-matches", "--word-regexp", "--fixed-strings", "--null",
             "--no-messages", "--no-config", *patterns, *globs, "--", root],
            stdin=subprocess.DEVNULL, capture_output=True, timeout=SEARCH_SECONDS, check=False,
        )  # fmt: skip
    except (OSError, subprocess.TimeoutExpired, HostError):
        return []
    found = [os.fsdecode(name) for name in done.stdout.split(b"\0") if name]
    newest = sorted(found, key=_modified, reverse=True)
    return [os.path.relpath(name, texts.workspace) for name in newest[:most]]


def _modified(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return 0.0
