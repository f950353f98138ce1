"""Ranking: which files a reader wants to see first, told from paths and lines alone.

Files that define what was looked for come before those that use it, source before tests and
documents, and those before what somebody else wrote or a program made. The rest is the order of paths.
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Literal

Tier = Literal[0, 1, 2, 3]
"""Source, tests, documents, and what is vendored or generated."""
Spans = Sequence[tuple[int, int]]
Line = tuple[str, Spans]
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
def tier(path: str) -> Tier:
    """Give the rank of a file by the names on its path, taken from the folder that is searched."""
    *folders, name = path.split("/")
    if not _FOREIGN_FOLDERS.isdisjoint(folders) or _FOREIGN_NAMES.fullmatch(name):
        return 3
    if not _TEST_FOLDERS.isdisjoint(folders) or _TEST_NAMES.fullmatch(name):
        return 1
    return 2 if _DOCUMENTS.fullmatch(name) else 0


def defines(lines: Sequence[Line]) -> bool:
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


def components(path: str) -> tuple[str, ...]:
    """Give what sorts paths as a walk meets them: name by name, whatever signs are in the names."""
    return tuple(path.split("/"))
