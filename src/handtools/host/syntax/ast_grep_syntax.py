"""The Syntax port with ast-grep: outlines, roles and pattern matches, parsed in a worker process."""

import hashlib
import os
import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar, get_args

from anyio import to_thread
from anyio.lowlevel import checkpoint

from handtools.core.syntax import Outline, StructuralMatch, Symbol, SymbolKind, SyntaxRole, TextPosition
from handtools.host.confined_workers import TaskFailed, WorkerChild, WorkerLimits, workers_of_workspace
from handtools.host.syntax.languages import language_of
from handtools.host.syntax.syntax_tree_queries import (
    MAX_OUTLINE_DEPTH,
    PARSE_TASK,
    ParsedPart,
    parse_in_worker,
)

MAX_PARSED_BYTES = 4 << 20
"""Larger files are not parsed: a syntax tree takes many times the memory of its text."""
PARSE_LIMITS = WorkerLimits(seconds=5.0, memory_bytes=1 << 30, output_bytes=16 << 20)
PARSED_GROUP_BYTES = 1 << 20
"""Maximum number of bytes of files sent to a worker in one batch."""
OUTLINE_CACHE_BYTES = 16 << 20
OUTLINE_SYMBOL_BYTES = 250
"""The approximate memory of one symbol in bytes, to limit the cache size."""
_KINDS = frozenset(get_args(SymbolKind))
_ROLES: tuple[SyntaxRole, ...] = get_args(SyntaxRole)
_T = TypeVar("_T")


class SourceFile(NamedTuple):
    """A file in a language that can be parsed."""

    path: str
    language: str
    data: bytes


class TreeSyntax:
    """Parses files in a worker process and caches their outlines, not their trees. Thread-safe.

    A worker is reused for other files in the workspace for some seconds. If a file crashes the parser or
    exceeds the limits, its worker is discarded and the file is remembered as unparsable.
    """

    def __init__(self, root: str | os.PathLike[str] = "", *, kept_bytes: int = OUTLINE_CACHE_BYTES) -> None:
        """`root` is the workspace; no library is imported from it."""
        self._root = root
        self._kept: OrderedDict[bytes, Outline | None] = OrderedDict()
        self._lock = threading.Lock()
        self._room = kept_bytes
        self._idle: list[WorkerChild] = []
        weakref.finalize(self, _close_workers, self._idle)

    async def outline(self, path: str, data: bytes) -> Outline | None:
        """Return a file's outline; None if its language is unknown or it can't be parsed."""
        return (await self.outlines({path: data}))[path]

    async def outlines(self, files: Mapping[str, bytes]) -> dict[str, Outline | None]:
        """Return the outlines of several files by path."""
        found_outlines: dict[str, Outline | None] = dict.fromkeys(files)
        keys: dict[str, bytes] = {}
        unknown_files: list[SourceFile] = []
        for path, data in files.items():
            language = _parsed_language(path, data)
            if language is None:
                continue
            key = keys[path] = language.encode() + hashlib.sha256(data).digest()
            with self._lock:
                if key in self._kept:
                    self._kept.move_to_end(key)
                    found_outlines[path] = self._kept[key]
                    continue
            unknown_files.append(SourceFile(path, language, data))
        for group in _size_limited_groups(unknown_files):
            outlines = await self._parse_in_worker(group, "outline", _outline_from_part)
            for file, outline in zip(group, outlines, strict=True):
                found_outlines[file.path] = outline
                self._cache_outline(keys[file.path], outline)
        return found_outlines

    async def classify(
        self, path: str, data: bytes, positions: Sequence[TextPosition]
    ) -> dict[TextPosition, frozenset[SyntaxRole]] | None:
        """Return the syntax roles at each position in a file; None if the file can't be parsed."""
        language = _parsed_language(path, data)
        if language is None:
            return None
        asked = [(spot.line, spot.column) for spot in positions]
        file, read = SourceFile(path, language, data), partial(_roles_from_part, positions)
        return (await self._parse_in_worker([file], "roles", read, spots=asked))[0]

    async def structural(self, path: str, data: bytes, pattern: str) -> list[StructuralMatch] | None:
        """Return the matches of an ast-grep pattern in a file; None if the file can't be parsed."""
        language = _parsed_language(path, data)
        if language is None:
            return None
        file = SourceFile(path, language, data)
        return (await self._parse_in_worker([file], "matches", _matches_from_part, pattern=pattern))[0]

    async def _parse_in_worker(
        self, files: Sequence[SourceFile], wanted: ParsedPart, read: Callable[[Any], _T], **more: object
    ) -> list[_T | None]:
        """Parse files and return what `read` makes of each wanted part; None for a file that can't be parsed."""
        sizes = [(file.language, len(file.data)) for file in files]
        arguments = {"files": sizes, "wanted": wanted, **more}
        data = b"".join(file.data for file in files)
        if not hasattr(os, "fork"):
            # Without fork, starting a process per file would take longer than parsing the file here, even
            # though that blocks other threads (GIL).
            await checkpoint()
            return _decode_worker_parts(parse_in_worker(arguments, data).value, read, len(files))
        parsed = await to_thread.run_sync(
            self._parse_batch_in_worker, arguments, data, read, len(files), abandon_on_cancel=True
        )
        if parsed is not None:
            return parsed
        if len(files) == 1:
            return [None]
        return [
            part for file in files for part in await self._parse_in_worker([file], wanted, read, **more)
        ]

    def _parse_batch_in_worker(
        self, arguments: Mapping[str, Any], data: bytes, read: Callable[[Any], _T], count: int
    ) -> list[_T | None] | None:
        """Parse `count` files in a worker; returns what `read` makes of each part, None if the worker failed."""
        workers = workers_of_workspace(self._root, PARSE_LIMITS)
        with workers.turns:
            child = self._take_idle_worker() or workers.open_child(PARSE_TASK)
            try:
                return _decode_worker_parts(child.call(arguments, data).value, read, count)
            except (TaskFailed, ValueError, LookupError, TypeError):
                child.close()
                return None
            finally:
                self._idle.append(child)

    def _take_idle_worker(self) -> WorkerChild | None:
        """Return an idle worker that is still usable, closing others; None if there is none."""
        while self._idle:
            child = self._idle.pop()
            if child.is_usable:
                return child
            child.close()
        return None

    def _cache_outline(self, key: bytes, outline: Outline | None) -> None:
        with self._lock:
            if key not in self._kept:
                self._room -= _estimated_outline_bytes(outline)
            self._kept[key] = outline
            while self._room < 0 and self._kept:
                _, dropped = self._kept.popitem(last=False)
                self._room += _estimated_outline_bytes(dropped)


def _close_workers(children: list[WorkerChild]) -> None:
    while children:
        children.pop().close()


def _parsed_language(path: str, data: bytes) -> str | None:
    return language_of(path, data) if len(data) <= MAX_PARSED_BYTES else None


def _size_limited_groups(files: Sequence[SourceFile]) -> Iterator[list[SourceFile]]:
    """Split files into groups of limited total size, in order; a larger file gets its own group."""
    source_files: list[SourceFile] = []
    room = PARSED_GROUP_BYTES
    for file in files:
        if source_files and len(file.data) > room:
            yield source_files
            source_files, room = [], PARSED_GROUP_BYTES
        source_files.append(file)
        room -= len(file.data)
    if source_files:
        yield source_files


def _decode_worker_parts(
    value: Mapping[str, Any], read: Callable[[Any], _T], count: int
) -> list[_T | None]:
    """Read the parts of a worker's result; raises Value-, Lookup- or TypeError if one is malformed."""
    if len(value["parts"]) != count:
        raise ValueError("the number of parts and files differs")
    return [None if part is None else read(part) for part in value["parts"]]


def _outline_from_part(part: Any) -> Outline:
    lower_symbols: list[list[Symbol]] = [[] for _ in range(MAX_OUTLINE_DEPTH + 2)]
    """For each depth, the symbols whose parent has not been reached yet, last one first."""
    for depth, name, kind, start, end, line, body in reversed(part["symbols"]):
        if kind not in _KINDS:
            raise ValueError(f"unknown symbol kind {kind}")
        children = tuple(reversed(lower_symbols[depth + 1]))
        lower_symbols[depth + 1].clear()
        first_of_body = None if body is None else int(body)
        lower_symbols[depth].append(
            Symbol(str(name), kind, int(start), int(end), int(line), first_of_body, children)
        )
    broken, left_out = tuple(map(int, part["broken"])), int(part["left_out"])
    return Outline(str(part["language"]), tuple(reversed(lower_symbols[0])), broken, left_out)


def _roles_from_part(
    positions: Sequence[TextPosition], part: Any
) -> dict[TextPosition, frozenset[SyntaxRole]]:
    return {
        spot: frozenset(role for role in _ROLES if role in roles)
        for spot, roles in zip(positions, part, strict=True)
    }


def _matches_from_part(part: Any) -> list[StructuralMatch]:
    return [
        StructuralMatch(TextPosition(int(line), int(column)), TextPosition(int(last_line), int(end)))
        for line, column, last_line, end in part
    ]


def _estimated_outline_bytes(outline: Outline | None) -> int:
    return OUTLINE_SYMBOL_BYTES * (1 + _count_symbols(outline.symbols if outline else ()))


def _count_symbols(symbols: Sequence[Symbol]) -> int:
    return len(symbols) + sum(_count_symbols(one.children) for one in symbols if one.children)
