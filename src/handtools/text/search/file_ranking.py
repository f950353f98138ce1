"""Ranking of found files: definitions first, source before tests and documents, then by path.

Files that define the searched name come before files that use it; source files come before tests,
documents, and vendored or generated files. Ties are in path order.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

FileCategory = Literal[0, 1, 2, 3]
"""Rank of a file in search results: 0 source, 1 tests, 2 documents, 3 vendored or generated."""
MatchOffsets = Sequence[tuple[int, int]]
MatchedLine = tuple[str, MatchOffsets]
"""The text of a matched line, and the start and end of each match in it."""
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


# Allows a receiver (Go), generics (Rust) or a type (C) between the keyword and the name.
_INTRODUCES = re.compile(
    rf"(?:^|[\s(#@;{{}}])(?:{_WORDS})(?:<[^>]*>)?\s+(?:\([^)]*\)\s*|<[^>]*>\s*|mut\s+|\w+[\s*&]+)?\Z"
)


_WORD_LIST = tuple(_WORDS.split("|"))
_CLOSING = frozenset("*&)>")
"""Characters other than white space that can come right before a defined name."""
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

    A heuristic for ranking, not a parser. Most matches are names after some other character, most files
    contain few of the keywords, and most lines none of them, so cheap checks avoid most of the regex
    matching.
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
    """Return a sort key that orders paths component by component, as a folder walk visits them."""
    return tuple(path.split("/"))
