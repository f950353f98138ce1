"""Ranking: which files a reader wants to see first, told from paths and lines alone.

Files that define what was looked for come before those that use it, source before tests and
documents, and those before what somebody else wrote or a program made. The rest is the order of paths.
"""

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

Tier = Literal[0, 1, 2, 3]
"""Source, tests, documents, and what is vendored or generated."""

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
_WORD_SET = frozenset(_WORDS.split("|"))
_APART = str.maketrans(dict.fromkeys("(#@;{}<", " "))
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


def defines(text: str, spans: Iterable[tuple[int, int]]) -> bool:
    """Tell whether a line looks as if it defines what matched; a parser would know, this is for the order."""
    # Most lines hold none of the words and begin with a space or another name: no regex needed to see that.
    worded = not _WORD_SET.isdisjoint(text.translate(_APART).split())
    for start, end in spans:
        if start and not worded and text[start:end].isidentifier():
            continue
        before, matched = text[max(start - 200, 0) : start], text[start : min(end, start + 200)]
        if _INTRODUCES.search(before) or _BEGINS_WITH_WORD.match(matched):
            return True
        if not before.strip() and before == "" and _ASSIGNS.match(text, end):
            return True
    return False


def components(path: str) -> tuple[str, ...]:
    """Give what sorts paths as a walk meets them: name by name, whatever signs are in the names."""
    return tuple(path.split("/"))
