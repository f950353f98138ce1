"""Views of one file for the `read` tool: numbered lines, outline, fold, symbol, diff, preview, map.

Text files too large for memory are indexed and read in windows of lines.
"""

from dataclasses import dataclass
from typing import Literal

from pydantic import BaseModel

from handtools.core.changes import sha256_hex
from handtools.core.context import Context
from handtools.core.errors import InvalidInput, NotFound, TooLarge, WrongKind
from handtools.core.files import Files
from handtools.core.media import MAX_RESULT_IMAGES, MediaPreview, PreviewRequest
from handtools.core.result import Image
from handtools.core.syntax import Outline, Symbol, qualified_name, symbol_chains, symbols_named
from handtools.text.diffs.unified_diff import unified_diff
from handtools.text.encoding import DecodedText, decode, is_binary
from handtools.text.lines import dominant_ending, render_numbered_lines, split_lines, without_line_ending
from handtools.text.numbered_page import (
    SHOWN_LINES_NOTE_TOKENS,
    ReadBudget,
    RequestedLines,
    is_minified,
    lines_that_fit,
    render_numbered_page,
)
from handtools.text.paths import PathSpec, similar_names
from handtools.text.plurals import number_with_noun
from handtools.tools.reading.file_outline import (
    LargeFileIndex,
    LargeTextEncoding,
    OutlineSymbol,
    bytes_after_skipped_lines,
    cut_at_character,
    fold_bodies,
    render_outline,
)
from handtools.tools.reading.repository_map import (
    MAX_MAPPED_FILES,
    map_that_fits,
    rank_definitions_by_mentions,
    survey_repository,
)

LARGE_FILE_WINDOW_BYTES = 4 << 20
FORMAT_SAMPLE_BYTES = 64 << 10


async def index_large_file_lines(files: Files, path: str) -> LargeFileIndex:
    """Build an index of a large file's line positions, reading it in windows."""
    counts: list[int] = []
    size, ended, reading = 0, True, LargeTextEncoding()
    while window := await files.read(path, start=size, size=LARGE_FILE_WINDOW_BYTES):
        if not size:
            reading = LargeTextEncoding.detect(window[:FORMAT_SAMPLE_BYTES])
        size += len(window)
        known = reading.to_utf8(window)
        counts.append(known.count(reading.end))
        ended = known.endswith(reading.end)
    return LargeFileIndex(counts, ended, reading, size)


@dataclass(frozen=True, slots=True)
class LargeFileLines:
    """Consecutive lines of a large file, and the file's encoding."""

    lines: list[str]
    encoding: str
    cut: bool = False
    """Whether these lines are a single line that was cut because it is too long."""


async def read_large_file_lines(
    files: Files, path: str, index: LargeFileIndex, first: int, *, max_bytes: int
) -> LargeFileLines:
    """Read whole lines of a large file from line `first`, up to `max_bytes`; a longer line is cut."""
    window, ends = index.window_of_line(first)
    data, last = b"", False
    while len(data) <= max_bytes and not last:
        more = await files.read(path, start=window * LARGE_FILE_WINDOW_BYTES, size=LARGE_FILE_WINDOW_BYTES)
        data += bytes_after_skipped_lines(index.encoding.to_utf8(more), ends, index.encoding.end)
        window, ends, last = window + 1, 0, len(more) < LARGE_FILE_WINDOW_BYTES
    source = decode(cut_at_character(data, max_bytes))
    end = index.encoding.end.decode()
    lines = [f"{line}{end}" for line in source.body.split(end)]
    part, encoding = len(data) > max_bytes, index.encoding.wide or source.encoding
    if part and len(lines) == 1:
        return LargeFileLines(lines, encoding, cut=True)
    if part or lines[-1] == end:
        lines.pop()
    return LargeFileLines(lines, encoding)


ViewKind = Literal["auto", "text", "outline", "fold", "map", "changes", "image"]

MAX_VIEW_LINES = 2_000
MAX_VIEW_BYTES = 50_000
MAX_VIEW_LINE_CHARS = 2_000
WHOLE_TEXT_BYTES = 4 << 20
"""Text files larger than this are read in windows."""
LARGE_FILE_PAGE_BYTES = 2 * MAX_VIEW_BYTES
"""Maximum number of bytes of a large text file that are read to show one page."""
MEDIA_BYTES = 64 << 20
MAP_TOKENS = 4_000
_BINARY_HINT = "Use a tool that understands its format."
_ENDS = {"\n": "lf", "\r\n": "crlf", "\r": "cr"}
_UNFOLDED_KINDS = frozenset({"class", "impl", "interface", "namespace", "struct", "trait", "enum"})
"""Kinds of symbols whose bodies contain more symbols; a folded view keeps them open."""


class ViewFacts(BaseModel):
    """Facts about one file, or part of one, for programs."""

    path: str
    view: str = "text"
    start_line: int = 0
    end_line: int = 0
    total_lines: int = 0
    clipped: bool = False
    """Whether requested lines, pages or pictures are left out."""
    left_out: str = ""
    encoding: str = ""
    line_end: str = ""
    bytes: int = 0
    sha256: str = ""
    fault: str = ""


@dataclass(frozen=True, slots=True)
class FileViewResult:
    """Text and pictures shown of one file, and facts about it."""

    text: str
    facts: ViewFacts
    images: tuple[Image, ...] = ()


@dataclass(frozen=True, slots=True)
class FileViewRequest:
    """One request to view a file: path, range, kind of view and token budget."""

    ctx: Context
    target_spec: PathSpec
    requested: RequestedLines
    view: ViewKind
    request: PreviewRequest
    budget: ReadBudget

    async def read_view(self) -> FileViewResult:
        """Read the file and return the requested view, or the kind of view that fits the file."""
        path = self.target_spec.path
        if self.view == "map":
            return await self._map_view()
        data = await self._read_bytes()
        result = await self._view_of(data)
        if len(data) <= WHOLE_TEXT_BYTES:
            await self.ctx.files.mark_shown(path, data, _shown_ranges(result.facts))
        return result

    async def _view_of(self, data: bytes) -> FileViewResult:
        path = self.target_spec.path
        binary = is_binary(data)
        kind = self.ctx.media.kind(path, data)
        shown_as_such = (kind == "notebook" and self.view == "auto") or (
            kind == "pdf" and self.view != "text"
        )
        if len(data) > WHOLE_TEXT_BYTES:
            return await (
                self._large_media_view(binary=binary)
                if binary or shown_as_such
                else self._large_text_view()
            )
        if binary or shown_as_such:
            return await self._media_view(data)
        source = decode(data)
        lines = split_lines(source.body)
        if (
            self.view in {"auto", "text", "outline", "fold"}
            and not self.target_spec.symbol
            and is_minified(lines)
        ):
            return self._lines_view(
                _text_file_facts(path, data, source, len(lines)), lines, _minified_note(lines)
            )
        long = (
            self.view == "auto"
            and self._is_whole_file_requested
            and (len(lines) > MAX_VIEW_LINES or len(data) > MAX_VIEW_BYTES)
        )
        if long and kind == "table":
            return await self._media_view(data)
        facts = _text_file_facts(path, data, source, len(lines))
        if self.view == "changes":
            return await self._changes_view(facts, lines, source)
        if self.target_spec.symbol or long or self.view in {"outline", "fold"}:
            outline = await self.ctx.syntax.outline(path, data)
            if self.target_spec.symbol:
                return self._symbol_view(facts, lines, _require_outline(outline, path))
            if self.view == "fold":
                return self._folded_view(facts, lines, _require_outline(outline, path))
            if self.view == "outline" or (outline and outline.symbols):
                return self._outline_view(facts, lines, _require_outline(outline, path))
        return self._lines_view(facts, lines)

    @property
    def _is_whole_file_requested(self) -> bool:
        return self.target_spec.is_whole_file and self.requested.is_whole_file

    def _lines_view(self, facts: ViewFacts, lines: list[str], note: str = "") -> FileViewResult:
        first, last = self._requested_range(len(lines))
        shown = render_numbered_page(
            lines[first - 1 :], (first, last), len(lines), self.budget, max_chars=MAX_VIEW_LINE_CHARS
        )
        left_out = _lines_not_shown(first, shown.end, len(lines))
        part = _with_facts(
            facts, start_line=first, end_line=shown.end, clipped=shown.clipped, left_out=left_out
        )
        return FileViewResult(note + shown.text, part)

    def _requested_range(self, total: int) -> tuple[int, int]:
        try:
            first, last = self.requested.first_and_last_line(total)
        except ValueError as problem:
            message = f"`{self.target_spec.path}`: {problem}."
            raise InvalidInput(message, hint="Use a smaller start_line.") from None
        return first, last

    def _symbol_view(self, facts: ViewFacts, lines: list[str], outline: Outline) -> FileViewResult:
        """Show the lines of a named symbol, or of all symbols with that name."""
        ways = symbols_named(outline.symbols, self.target_spec.symbol)
        if not ways:
            names = [qualified_name(way) for way in symbol_chains(outline.symbols)]
            close = similar_names(self.target_spec.symbol, names)
            hint = (
                f"Did you mean {', '.join(close)}?" if close else "Use view=outline to see what it defines."
            )
            raise NotFound(f"`{facts.path}` does not define `{self.target_spec.symbol}`.", hint=hint)
        shown, room, whole = [], self.budget.with_tokens_reserved(SHOWN_LINES_NOTE_TOKENS), True
        for way in ways:
            rows = lines[way[-1].start_line - 1 : way[-1].end_line]
            kept = lines_that_fit(rows, room, max_chars=MAX_VIEW_LINE_CHARS)
            whole = whole and len(kept) == len(rows)
            end = way[-1].start_line + len(kept) - 1
            cut = f", shown to {end}; use start_line={end + 1}" if len(kept) < len(rows) else ""
            note = f"({qualified_name(way)}: lines {way[-1].start_line}-{way[-1].end_line} of {len(lines)}{cut}.)"
            shown.append(f"{render_numbered_lines(kept, way[-1].start_line)}\n{note}")
            room = room.budget_after_text(shown[-1])
            if room.is_spent:
                break
        if len(shown) < len(ways):
            shown.append(
                f"({number_with_noun(len(ways) - len(shown), 'more symbol')} of this name left out.)"
            )
            whole = False
        first = ways[0][-1]
        part = _with_facts(facts, view="symbol", start_line=first.start_line, end_line=first.end_line)
        part = _with_facts(part, left_out="everything but the symbol", clipped=not whole)
        return FileViewResult("\n".join(shown), part)

    def _outline_view(self, facts: ViewFacts, lines: list[str], outline: Outline) -> FileViewResult:
        shown = render_outline(
            lines, flatten_outline(outline), self.budget.with_tokens_reserved(2 * SHOWN_LINES_NOTE_TOKENS)
        )
        left_out = shown.left_out + outline.left_out
        note = f"(Outline of {len(lines)} lines of {outline.language}, each with its line range"
        note += f"; {left_out} deeper or later symbols left out" if left_out else ""
        note += f'. Read a part with start_line and end_line, or a symbol as "{facts.path}::Name".'
        if outline.broken_lines:
            note += f" The syntax is broken near line {outline.broken_lines[0]}."
        clipped = bool(left_out) or self.view == "auto"  # auto: the lines themselves were requested
        part = _with_facts(facts, view="outline", left_out="the lines themselves", clipped=clipped)
        return FileViewResult(f"{shown.text}\n{note})", part)

    def _folded_view(self, facts: ViewFacts, lines: list[str], outline: Outline) -> FileViewResult:
        rows = fold_bodies(lines, flatten_outline(outline))
        room = self.budget.with_tokens_reserved(SHOWN_LINES_NOTE_TOKENS)
        kept = lines_that_fit([f"{row}\n" for row in rows], room, max_chars=MAX_VIEW_LINE_CHARS)
        clipped = len(kept) < len(rows)
        note = f"(Folded: {len(lines)} lines in {len(rows)} rows"
        note += f", of which the first {len(kept)} fit; view=outline is shorter.)" if clipped else ".)"
        part = _with_facts(facts, view="fold", left_out="folded bodies", clipped=clipped)
        return FileViewResult("\n".join([*map(without_line_ending, kept), note]), part)

    async def _changes_view(
        self, facts: ViewFacts, lines: list[str], source_text: DecodedText
    ) -> FileViewResult:
        """Show the diff from what this agent last read to the current content."""
        seen = await self.ctx.files.last_read_bytes(self.target_spec.path)
        if seen is None:
            return self._lines_view(
                facts, lines, "(You have not read this file before; showing all of it.)\n"
            )
        facts = _with_facts(facts, view="changes")
        before = decode(seen).body
        if before == source_text.body:
            part = _with_facts(facts, left_out="everything: it is unchanged")
            return FileViewResult(f"(Unchanged since you last saw it: {len(lines)} lines.)", part)
        rows = split_lines(unified_diff(self.target_spec.path, before, source_text.body))
        kept = lines_that_fit(
            rows, self.budget.with_tokens_reserved(SHOWN_LINES_NOTE_TOKENS), max_chars=MAX_VIEW_LINE_CHARS
        )
        clipped = len(kept) < len(rows)
        note = f"\n({len(rows) - len(kept)} more rows of the diff left out.)" if clipped else ""
        part = _with_facts(facts, left_out="lines that did not change", clipped=clipped)
        return FileViewResult("\n".join(map(without_line_ending, kept)) + note, part)

    async def _media_view(self, data: bytes) -> FileViewResult:
        path = self.target_spec.path
        found = await self.ctx.media.preview(path, data, self.request)
        if found is None:
            kind = self.ctx.media.describe(data)
            what = f"a binary file ({kind})" if kind else "a binary file"
            raise WrongKind(f"`{path}` is {what} of {len(data):,} bytes.", hint=_BINARY_HINT)
        lines = split_lines(found.text)
        facts = ViewFacts(path=path, view=found.kind, bytes=len(data), sha256=sha256_hex(data))
        rest = f" Left out: {found.left_out}." if found.left_out else ""
        title = f"({found.title}.{rest})"
        if not lines:
            part = _with_facts(facts, left_out=found.left_out, clipped=bool(found.left_out))
            return FileViewResult(title, part, found.images)
        shown = self._lines_view(_with_facts(facts, total_lines=len(lines)), lines, f"{title}\n")
        images = _pictures_of_shown_lines(found, shown.facts)
        more = (
            number_with_noun(len(images) - MAX_RESULT_IMAGES, "more picture")
            if len(images) > MAX_RESULT_IMAGES
            else ""
        )
        left_out = "; ".join(filter(None, (shown.facts.left_out, found.left_out, more)))
        note = f"\n(Left out: {more}; read the lines around them.)" if more else ""
        clipped = shown.facts.clipped or bool(found.left_out or more)
        part = _with_facts(shown.facts, left_out=left_out, clipped=clipped)
        return FileViewResult(shown.text + note, part, images[:MAX_RESULT_IMAGES])

    async def _large_media_view(self, *, binary: bool) -> FileViewResult:
        data = await self.ctx.files.read(self.target_spec.path, size=MEDIA_BYTES + 1)
        if len(data) > MEDIA_BYTES and not binary:
            return await self._large_text_view()
        if len(data) > MEDIA_BYTES:
            message = f"`{self.target_spec.path}` is a binary file over {MEDIA_BYTES >> 20} MB."
            raise TooLarge(message, hint=_BINARY_HINT)
        return await self._media_view(data)

    async def _large_text_view(self) -> FileViewResult:
        """Show lines of a text file that is too large for memory."""
        path = self.target_spec.path
        if self.target_spec.symbol or self.view in {"outline", "fold", "changes"}:
            raise TooLarge(f"`{path}` is over {WHOLE_TEXT_BYTES >> 20} MB.", hint="Read a range of lines.")
        found = await index_large_file_lines(self.ctx.files, path)
        first, last = self._requested_range(found.total)
        stretch = await read_large_file_lines(
            self.ctx.files, path, found, first, max_bytes=LARGE_FILE_PAGE_BYTES
        )
        lines = stretch.lines
        if stretch.cut:
            lines = [
                f"{lines[0][: MAX_VIEW_LINE_CHARS - 40]} … [of more than {LARGE_FILE_PAGE_BYTES:,} bytes]"
            ]
        shown = render_numbered_page(
            lines, (first, last), found.total, self.budget, max_chars=MAX_VIEW_LINE_CHARS
        )
        facts = ViewFacts(
            path=path,
            encoding=stretch.encoding,
            line_end=_ENDS[dominant_ending("".join(lines))],
            bytes=found.bytes,
            start_line=first,
            end_line=shown.end,
            total_lines=found.total,
            clipped=shown.clipped,
            left_out=_lines_not_shown(first, shown.end, found.total),
        )
        return FileViewResult(shown.text, facts)

    async def _map_view(self) -> FileViewResult:
        seen = await survey_repository(self.ctx.search, self.ctx.syntax, self.target_spec.path)
        tokens = MAP_TOKENS if self.budget.tokens is None else self.budget.tokens
        order = rank_definitions_by_mentions(seen.definitions, seen.mentions)
        text, count = map_that_fits(order, tokens - SHOWN_LINES_NOTE_TOKENS)
        left = f"{len(order) - count:,} less-referenced definitions" if count < len(order) else ""
        if seen.files > MAX_MAPPED_FILES:
            left += f"{', and ' if left else ''}files beyond the newest {MAX_MAPPED_FILES:,}"
        shown = f"{count:,} of {len(order):,} definitions"
        note = f"(Map of {len(seen.mentions):,} sources, most-referenced first: {shown}"
        facts = ViewFacts(path=self.target_spec.path, view="map", left_out=left, clipped=bool(left))
        return FileViewResult(f"{text}\n{note}{f'; left out {left}' if left else ''}.)", facts)

    async def _read_bytes(self) -> bytes:
        path = self.target_spec.path
        try:
            return await self.ctx.files.read(path, size=WHOLE_TEXT_BYTES + 1)
        except NotFound as missing:
            raise NotFound(
                missing.message, hint=await self.ctx.files.missing_path_hint(path) or missing.hint
            ) from None
        except WrongKind as other:
            facts = await self.ctx.files.facts(path)
            hint = "Only regular files can be read."
            if facts is not None and facts.kind == "folder":
                hint = "List it, or read it with view=map to see its definitions."
            raise WrongKind(other.message, hint=hint) from None


def _shown_ranges(facts: ViewFacts) -> list[tuple[int, int]] | None:
    """Return the lines of the file that a view shows; None for all of it."""
    if facts.view == "changes" or not facts.total_lines:
        return [] if facts.clipped else None
    if facts.start_line <= 1 and facts.end_line >= facts.total_lines:
        return None
    as_lines = facts.view == "text" or (facts.view == "symbol" and not facts.clipped)
    return [(facts.start_line, facts.end_line)] if as_lines else []


def _minified_note(lines: list[str]) -> str:
    size = f"{number_with_noun(len(lines), 'line')}, the longest of {max(map(len, lines)):,} characters"
    return f"(Minified: {size}; `grep` shows the text around a match.)\n"


def _pictures_of_shown_lines(preview: MediaPreview, facts: ViewFacts) -> tuple[Image, ...]:
    """Return the preview's pictures that belong to the shown lines."""
    if not preview.image_lines:
        return preview.images
    lines = range(facts.start_line or 1, (facts.end_line or 0) + 1)
    placed = zip(preview.images, preview.image_lines, strict=True)
    return tuple(image for image, line in placed if line in lines)


def _text_file_facts(path: str, data: bytes, source_text: DecodedText, total: int) -> ViewFacts:
    return ViewFacts(
        path=path,
        total_lines=total,
        encoding=source_text.encoding,
        line_end=_ENDS[dominant_ending(source_text.body)],
        bytes=len(data),
        sha256=sha256_hex(data),
    )


def _with_facts(view_facts: ViewFacts, **facts: str | int) -> ViewFacts:
    """Return a copy of the facts with some fields replaced."""
    return view_facts.model_copy(update=facts)


def _lines_not_shown(first: int, end: int, total: int) -> str:
    """Return the ranges of lines that are not shown."""
    gaps = [(1, first - 1), (end + 1, total)]
    return ", ".join(f"lines {start}-{last}" for start, last in gaps if start <= last)


def _require_outline(outline: Outline | None, path: str) -> Outline:
    if outline is None:
        hint = "Read it as text, with start_line and end_line."
        message = f"`{path}` can't be parsed: its language is not supported, or the parser failed."
        raise InvalidInput(message, hint=hint)
    return outline


def flatten_outline(outline: Outline) -> list[OutlineSymbol]:
    """Convert an outline to a flat list of symbols for the views."""
    return [_outline_symbol(len(way) - 1, way[-1]) for way in symbol_chains(outline.symbols)]


def _outline_symbol(depth: int, symbol: Symbol) -> OutlineSymbol:
    foldable = symbol.kind not in _UNFOLDED_KINDS and not (
        symbol.kind in {"key", "element", "heading"} and symbol.children
    )
    return OutlineSymbol(depth, symbol.start_line, symbol.end_line, symbol.line, symbol.body_line, foldable)
