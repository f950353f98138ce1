"""Search results as they are shown: which files come first, hits with the lines around them.

And cursors from page to page.

Files that define what was looked for come before those that use it, source before tests and documents, and
those before what somebody else wrote or a program made; the rest is the order of paths. A ranked answer is
ranked in blocks of a fixed number of hits, in the order of paths. A cursor names the hit before its block, how
much of the block was shown, and what the block was: changes before the block then move nothing, and a change
inside it is noticed. In a newest-first list a cursor is told by time.
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
"""Source, tests, documents, and what is vendored or generated."""
MatchOffsets = Sequence[tuple[int, int]]
MatchedLine = tuple[str, MatchOffsets]
"""A line's text, and where in it the matches are."""

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
"""With a space, all that it can end in."""
_BEGINS_WITH_WORD = re.compile(rf"\s*(?:\w+\s+)*(?:{_WORDS})\s")
_ASSIGNS = re.compile(r"\s*(?::[^=]*)?(?::=|=(?!=))")


@lru_cache(maxsize=4096)
def file_category(path: str) -> FileCategory:
    """Give the rank of a file by the names on its path, taken from the folder that is searched."""
    *folders, name = path.split("/")
    if not _FOREIGN_FOLDERS.isdisjoint(folders) or _FOREIGN_NAMES.fullmatch(name):
        return 3
    if not _TEST_FOLDERS.isdisjoint(folders) or _TEST_NAMES.fullmatch(name):
        return 1
    return 2 if _DOCUMENTS.fullmatch(name) else 0


def has_definition(lines: Sequence[MatchedLine]) -> bool:
    """Tell whether one of a file's lines looks as if it defines what matched.

    A parser would know; this is for the order. Most matches are plain names with a sign before them, most files
    hold few of the words, and most lines none of those: it takes no regex to see that.
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
    """Give what sorts paths as a walk meets them: name by name, whatever signs are in the names."""
    return tuple(path.split("/"))


LINE_CHARS = 300
"""Longer lines are clipped around the match."""
_BREAKING = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


@dataclass(frozen=True, slots=True)
class RenderedHit:
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


def path_on_one_line(path: str) -> str:
    """A path on one line: a name that holds a line end must not look like another answer."""
    return _BREAKING.sub(lambda sign: sign[0].encode("unicode_escape").decode(), path)


def paths_on_one_line(names: Sequence[str]) -> Sequence[str]:
    """The same for very many: one look tells that there is nothing to do."""
    # Whatever breaks a line can't be printed, and that is told faster than by a regex.
    return names if "".join(names).isprintable() else [path_on_one_line(name) for name in names]


def render_hits(path: str, citations: Sequence[RenderedHit]) -> str:
    """Render the hits of one file: `12:` before a hit, `12-` before a line beside it, `--` in between."""
    shown = [path_on_one_line(path)]
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


def _plain(citations: Sequence[RenderedHit]) -> bool:
    """Tell whether each is one line, further down than the last: then nothing is shown twice."""
    last = 0
    for citation in citations:
        if citation.around or citation.line <= last or "\n" in citation.text:
            return False
        last = citation.line
    return True


def _chunks(citations: Sequence[RenderedHit]) -> list[tuple[dict[int, tuple[str, str]], str]]:
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


_SHAPE = re.compile(r"(\d{1,6})\.(\d{1,6})\.([0-9a-f]{8})\.([0-9a-f]{8})")
_NONE = "0" * 8


class BadCursor(ValueError):
    """Text that is no cursor of ours."""


@dataclass(frozen=True, slots=True)
class SearchCursor:
    """The end of a page."""

    block: int
    shown: int
    """How many of the block's entries were shown."""
    before: str
    """Names the entry before the block."""
    content: str
    """Names the entries of the block; zeros before it was looked at."""

    def __str__(self) -> str:
        return f"{self.block}.{self.shown}.{self.before}.{self.content}"


@dataclass(frozen=True, slots=True)
class PageStart:
    """Where a page starts in what was found now."""

    start: int
    """The first entry of the block."""
    shown: int
    moved: bool
    """Whether what is here is no longer what the last page was taken from."""


def parse_cursor(text: str) -> SearchCursor:
    """Read a cursor."""
    match = _SHAPE.fullmatch(text.strip())
    if match is None:
        raise BadCursor("this is no cursor that a page ended with")
    return SearchCursor(int(match[1]), int(match[2]), match[3], match[4])


def cursor_after(keys: Sequence[str], start: int, size: int, shown: int) -> SearchCursor:
    """Give the cursor after `shown` entries from the block on that starts at `start`."""
    passed, shown = divmod(shown, size)
    start += passed * size
    before = _name(keys[start - 1 : start]) if start else _NONE
    content = _name(keys[start : start + size]) if shown else _NONE
    return SearchCursor(start // size, shown, before, content)


def find_page_start(given: SearchCursor, keys: Sequence[str], size: int) -> PageStart:
    """Find where a page goes on in the entries that are there now."""
    start = _after(given, keys, size)
    if start is None:
        return PageStart(min(given.block * size, len(keys)), given.shown, moved=True)
    same = given.content in {_NONE, _name(keys[start : start + size])}
    return PageStart(start, given.shown, moved=not same)


def _after(given: SearchCursor, keys: Sequence[str], size: int) -> int | None:
    """The entry after the named one, looked for from where it was outwards."""
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
"""A path, and when it was changed if that is known."""
_RECENCY_SLACK = 200
"""How many entries may have become newer than a page before its successor has to say that it can't go on."""


class BadRecencyCursor(ValueError):
    """Text that is no cursor of ours."""


@dataclass(frozen=True, slots=True)
class RecencyCursor:
    """After how many entries a page ended, how many had the time of the last, that time, and what names it."""

    shown: int
    alike: int
    nanoseconds: int | None
    last: str

    def __str__(self) -> str:
        time = "none" if self.nanoseconds is None else self.nanoseconds
        return f"{self.shown}.{self.alike}@{time}.{self.last}"

    @classmethod
    def parse(cls, text: str) -> "RecencyCursor":
        """Read a cursor."""
        match = _RECENCY_SHAPE.fullmatch(text.strip())
        if match is None:
            raise BadRecencyCursor("this is no cursor that a page ended with")
        return cls(int(match[1]), int(match[2]), None if match[3] == "none" else int(match[3]), match[4])

    @classmethod
    def after(cls, entries: Sequence[DatedPath], shown: int) -> "RecencyCursor":
        """Give the cursor after the first `shown` entries."""
        keys = [_nanoseconds(time) for _, time in entries[:shown]]
        return cls(shown, keys.count(keys[-1]), keys[-1], _path_digest(entries[shown - 1][0]))

    @property
    def reach(self) -> int:
        """How many entries to look at to find the place again."""
        return self.shown + _RECENCY_SLACK

    def place(self, entries: Sequence[DatedPath]) -> tuple[int, bool]:
        """Give where the next page starts, and whether the last entry of the page before is still there."""
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
    """What sorts: newest first, the unknown last."""
    return float("inf") if nanoseconds is None else -nanoseconds
