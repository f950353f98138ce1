"""Pages of search results: ranking of files, rendering of hits with context lines, and cursors between pages.

Files that define what was looked for come before those that use it, source before tests and documents, and those
before what somebody else wrote or a program made; the rest is the order of paths. A ranked answer is ranked in
blocks of a fixed number of hits, in the order of paths. A cursor names the hit before its block, how much of the
block was shown, and what the block was: changes before the block then move nothing, and a change inside it is
noticed. In a newest-first list a cursor is told by time.
"""

import hashlib
import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from handtools.text.truncation import clip_line

FileCategory = Literal[0, 1, 2, 3]
"""Rank of a file in search results: 0 source, 1 tests, 2 documents, 3 vendored or generated."""
MatchOffsets = Sequence[tuple[int, int]]
MatchedLine = tuple[str, MatchOffsets]
"""The text of a line with hits, and the start and end of each match in it."""

_TEST_FOLDERS = {"test", "tests", "spec", "specs", "__tests__", "__mocks__", "testdata", "fixtures", "e2e"}
_TEST_NAMES = re.compile(r"test_.*|conftest\.py|.*[._-](?:test|tests|spec)\.\w+|.*Tests?\.\w+")
_FOREIGN_FOLDERS = {
    "vendor", "vendored", "_vendor", "third_party", "third-party", "node_modules", "bower_components",
    "site-packages", "external", "dist", "build", "out", "target", "generated", "__generated__",
}  # fmt: skip
_FOREIGN_NAMES = re.compile(
    r".*\.min\.(?:js|css)|.*\.(?:lock|map|svg|snap|ipynb)|.*_pb2(?:_grpc)?\.pyi?|.*\.pb\.\w+|.*\.g\.\w+|.*-lock\.\w+"
)
_DOCUMENTS = re.compile(r".*\.(?:md|mdx|rst|txt|adoc|log|csv|tsv|json|jsonl|ya?ml|toml|ini|cfg)")
_WORDS = (
    "def|class|fn|func|function|fun|struct|enum|union|interface|type|typedef|trait|impl|mod|module|package|namespace"
    "|const|let|var|val|static|object|record|protocol|extension|actor|macro_rules!|macro|sub|proc|template|define"
)
# What may stand between the word and the name: a receiver in Go, generics in Rust, a type in C.
_INTRODUCES = re.compile(
    rf"(?:^|[\s(#@;{{}}])(?:{_WORDS})(?:<[^>]*>)?\s+(?:\([^)]*\)\s*|<[^>]*>\s*|mut\s+|\w+[\s*&]+)?\Z"
)
_WORD_LIST = tuple(_WORDS.split("|"))
_CLOSING = frozenset("*&)>")
"""Besides white space, the characters that can stand right before a defined name."""
_BEGINS_WITH_WORD = re.compile(rf"\s*(?:\w+\s+)*(?:{_WORDS})\s")
_ASSIGNS = re.compile(r"\s*(?::[^=]*)?(?::=|=(?!=))")


@lru_cache(maxsize=4096)
def file_category(path: str) -> FileCategory:
    """Classify a file by its path, relative to the folder searched: source, test, document, or vendored."""
    *folders, name = path.split("/")
    if not _FOREIGN_FOLDERS.isdisjoint(folders) or _FOREIGN_NAMES.fullmatch(name):
        return 3
    if not _TEST_FOLDERS.isdisjoint(folders) or _TEST_NAMES.fullmatch(name):
        return 1
    return 2 if _DOCUMENTS.fullmatch(name) else 0


def has_definition(lines: Sequence[MatchedLine]) -> bool:
    """Whether one of a file's matched lines seems to define what matched, as `def name` does.

    A heuristic for ranking, not a parser. Most matches are plain names with a sign before them, most files hold
    few of the words, and most lines none of those: it takes no regex to see that.
    """
    open_ones = [
        (text, start, end)
        for text, spans in lines
        for start, end in spans
        if not start or _ends_introduction(text[start - 1]) or not text[start:end].isidentifier()
    ]
    if not open_ones:
        return False
    whole = "\n".join([text for text, _, _ in open_ones])
    words = [word for word in _WORD_LIST if word in whole]
    return any(_defines(text, start, end, words) for text, start, end in open_ones)


def _ends_introduction(sign: str) -> bool:
    return sign in _CLOSING or sign.isspace()


def _defines(text: str, start: int, end: int, words: Sequence[str]) -> bool:
    if not start and _ASSIGNS.match(text, end):
        return True
    if not text[start:end].isidentifier() and _BEGINS_WITH_WORD.match(text[start : min(end, start + 200)]):
        return True
    fits = start and _ends_introduction(text[start - 1]) and any(word in text for word in words)
    return bool(fits and _INTRODUCES.search(text[max(start - 200, 0) : start]))


def path_sort_key(path: str) -> tuple[str, ...]:
    """Give a sort key that orders paths component by component, as a folder walk visits them."""
    return tuple(path.split("/"))


LINE_CHARS = 300
"""Matched lines with more characters than this are clipped around the match."""
_BREAKING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class RenderedHit:
    """One search hit with what is shown of it: its line, enclosing symbols and context lines."""

    line: int
    text: str
    at: int = 0
    """The offset in the hit's text at which the match begins."""
    crumbs: str = ""
    """The names of the enclosing symbols, outermost first."""
    around: Mapping[int, str] | None = None
    """The context lines before and after the hit, by line number."""
    part: bool = False
    """Whether the hit's text is only a part of its line."""

    @property
    def rows(self) -> dict[int, tuple[str, str]]:
        """Every line shown for this hit, by line number: its sign (`:` hit, `-` context) and its clipped text."""
        beside = {
            number: ("-", clip_line(text, LINE_CHARS)) for number, text in (self.around or {}).items()
        }
        lines = self.text.split("\n")
        own = {self.line + n: (":", self.clip_hit_line(line, n)) for n, line in enumerate(lines)}
        return beside | own

    def clip_hit_line(self, line: str, number: int = 0) -> str:
        """Clip one line of a search hit, around the match if that is on it."""
        return clip_line(line, LINE_CHARS, around=None if number else self.at, part=self.part)


def path_on_one_line(path: str) -> str:
    """Escape line breaks and control characters in a path, so that it is shown on one line."""
    return _BREAKING.sub(lambda sign: sign[0].encode("unicode_escape").decode(), path)


def each_path_on_one_line(names: Sequence[str]) -> Sequence[str]:
    """Escape line breaks and control characters in many paths; the same sequence if there are none."""
    # Whatever breaks a line can't be printed, and that is told faster than by a regex.
    return names if "".join(names).isprintable() else [path_on_one_line(name) for name in names]


def render_hits(path: str, citations: Sequence[RenderedHit]) -> str:
    """Render the hits of one file: `12:` before a hit, `12-` before a context line, `--` between groups."""
    shown = [path_on_one_line(path)]
    crumbs = ""
    if _plain(citations):
        for citation in citations:
            if citation.crumbs and citation.crumbs != crumbs:
                shown.append(f"[{citation.crumbs}]")
            crumbs = citation.crumbs
            shown.append(f"{citation.line}:{citation.clip_hit_line(citation.text)}")
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


def _plain(citations: Sequence[RenderedHit]) -> bool:
    """Whether all hits are single lines in ascending order without context, so that nothing overlaps."""
    last = 0
    for citation in citations:
        if citation.around or citation.line <= last or "\n" in citation.text:
            return False
        last = citation.line
    return True


def _chunks(citations: Sequence[RenderedHit]) -> list[tuple[dict[int, tuple[str, str]], str]]:
    """Group hits whose lines overlap or touch, so that each line is shown once."""
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


_SHAPE = re.compile(r"(\d{1,6})\.(\d{1,6})\.([0-9a-f]{8})\.([0-9a-f]{8})")
_NONE = "0" * 8


class BadCursor(ValueError):
    """Raised for text that is not a cursor of ranked search results."""


@dataclass(frozen=True, slots=True)
class SearchCursor:
    """Cursor after a page of ranked search results: from which entry the next page continues."""

    block: int
    shown: int
    """How many entries of the cursor's block were shown so far."""
    before: str
    """Digest of the entry before the cursor's block, by which the block is found again."""
    content: str
    """Digest of the entries of the block; zeros before it was looked at."""

    def __str__(self) -> str:
        return f"{self.block}.{self.shown}.{self.before}.{self.content}"


@dataclass(frozen=True, slots=True)
class ResultPageStart:
    """Where the page after a cursor starts in the search results found now."""

    start: int
    """The index of the first entry of the block that the page is in."""
    shown: int
    moved: bool
    """Whether the entries of the block changed since the last page."""


def parse_cursor(text: str) -> SearchCursor:
    """Parse a cursor of ranked search results; raises `BadCursor`."""
    match = _SHAPE.fullmatch(text.strip())
    if match is None:
        raise BadCursor("this is no cursor that a page ended with")
    return SearchCursor(int(match[1]), int(match[2]), match[3], match[4])


def cursor_after(keys: Sequence[str], start: int, size: int, shown: int) -> SearchCursor:
    """Make the cursor after `shown` entries, counted from the block that starts at `start`.

    Blocks have `size` entries.
    """
    passed, shown = divmod(shown, size)
    start += passed * size
    before = _name(keys[start - 1 : start]) if start else _NONE
    content = _name(keys[start : start + size]) if shown else _NONE
    return SearchCursor(start // size, shown, before, content)


def find_result_page_start(given: SearchCursor, keys: Sequence[str], size: int) -> ResultPageStart:
    """Find where the page after a cursor starts in the present entries, and whether those have changed."""
    start = _after(given, keys, size)
    if start is None:
        return ResultPageStart(min(given.block * size, len(keys)), given.shown, moved=True)
    same = given.content in {_NONE, _name(keys[start : start + size])}
    return ResultPageStart(start, given.shown, moved=not same)


def _after(given: SearchCursor, keys: Sequence[str], size: int) -> int | None:
    """Find the index after the entry that a cursor names, searching outwards from its old place.

    Gives None if it is gone.
    """
    if given.before == _NONE:
        return 0
    here = given.block * size
    nearest = sorted(range(len(keys)), key=lambda index: abs(index + 1 - here))
    return next((index + 1 for index in nearest if _name(keys[index : index + 1]) == given.before), None)


def _name(keys: Sequence[str]) -> str:
    joined = "\0".join(keys).encode("utf-8", "surrogatepass")
    return hashlib.sha256(joined).hexdigest()[:8]


_RECENCY_SHAPE = re.compile(r"(\d{1,7})\.(\d{1,7})@(none|-?\d{1,25})\.([0-9a-f]{8})")
DatedPath = tuple[str, float | None]
"""A path with its modification time in seconds; None when that is unknown."""
_RECENCY_SLACK = 200
"""How many entries may have become newer since the last page before the place can no longer be found."""


class BadRecencyCursor(ValueError):
    """Raised for text that is not a cursor of a newest-first list."""


@dataclass(frozen=True, slots=True)
class RecencyCursor:
    """Cursor after a page of a newest-first list: how many were shown, and the last one's time and digest."""

    shown: int
    alike: int
    nanoseconds: int | None
    last: str

    def __str__(self) -> str:
        time = "none" if self.nanoseconds is None else self.nanoseconds
        return f"{self.shown}.{self.alike}@{time}.{self.last}"

    @classmethod
    def parse(cls, text: str) -> "RecencyCursor":
        """Parse a cursor of a newest-first list; raises `BadRecencyCursor`."""
        match = _RECENCY_SHAPE.fullmatch(text.strip())
        if match is None:
            raise BadRecencyCursor("this is no cursor that a page ended with")
        return cls(int(match[1]), int(match[2]), None if match[3] == "none" else int(match[3]), match[4])

    @classmethod
    def after(cls, entries: Sequence[DatedPath], shown: int) -> "RecencyCursor":
        """Make the cursor after the first `shown` entries of a newest-first list."""
        keys = [_nanoseconds(time) for _, time in entries[:shown]]
        return cls(shown, keys.count(keys[-1]), keys[-1], _path_digest(entries[shown - 1][0]))

    @property
    def entries_needed(self) -> int:
        """How many entries of the present list are needed to find the place again."""
        return self.shown + _RECENCY_SLACK

    def place(self, entries: Sequence[DatedPath]) -> tuple[int, bool]:
        """Give the index where the next page starts, and whether the last entry of the old page is still there."""
        ages = [_age(_nanoseconds(time)) for _, time in entries]
        last = bisect_right(ages, _age(self.nanoseconds))
        first = last - ages[:last].count(_age(self.nanoseconds))
        for index in range(first, last):
            if _path_digest(entries[index][0]) == self.last:
                return index + 1, True
        return min(first + self.alike, last), False


def _path_digest(path: str) -> str:
    return hashlib.sha256(path.encode("utf-8", "surrogatepass")).hexdigest()[:8]


def _nanoseconds(time: float | None) -> int | None:
    return None if time is None else round(time * 1e9)


def _age(nanoseconds: int | None) -> float:
    """Sort key of a modification time: newest first, unknown last."""
    return float("inf") if nanoseconds is None else -nanoseconds
