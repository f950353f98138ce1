"""Typos: the one misspelt word of an argument, put right only where it can be nothing else."""

import re
from collections.abc import Iterator
from itertools import islice

from rapidfuzz.distance import OSA

from handtools.text.matching.words import CONFUSABLE

_WORD = re.compile(r"\w+")
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[^\W\d_]+")
FEWEST_LETTERS = 5
LONG_BLOCK_LINES = 8
# The rest of the block must be recognisable without the misspelt word.
FEWEST_LETTERS_AROUND = 10
_MOST_LOOKED_FOR = 50


def corrections(body: str, old: str) -> Iterator[dict[str, str]]:
    """Ways to spell `old` so that every word of it occurs in the file; none when it is no typo."""
    words = set(_WORD.findall(old))
    lines = len([line for line in old.split("\n") if line.strip()])
    most = 2 if lines >= LONG_BLOCK_LINES else 1
    # Most text that is not there has many such words: a few are told without taking the file apart.
    absent = (word for word in islice(words, _MOST_LOOKED_FOR) if word not in body)
    if len(list(islice(absent, most + 1))) > most:
        return
    known = set(_WORD.findall(body))
    strange = sorted(words - known)
    around = sum(map(len, words & known))
    if not 0 < len(strange) <= most or around < FEWEST_LETTERS_AROUND:
        return
    choices = [[word for word in sorted(known) if is_slip(bad, word)] for bad in strange]
    if not all(choices):
        return
    for first in choices[0]:
        for second in choices[1] if len(choices) > 1 else [""]:
            yield dict(zip(strange, (first, second), strict=False))


def corrected(text: str, spelling: dict[str, str]) -> str:
    """`text` with those words put right."""
    return _WORD.sub(lambda word: spelling.get(word[0], word[0]), text)


def is_slip(bad: str, word: str) -> bool:
    """Whether `bad` is `word` with one slip of the pen inside a part of it, and not another name."""
    if abs(len(bad) - len(word)) > 1 or min(len(bad), len(word)) < FEWEST_LETTERS or bad[0] != word[0]:
        return False
    if OSA.distance(bad, word, score_cutoff=1) != 1:
        return False
    head = _shared(bad, word)
    tail = _shared(bad[::-1], word[::-1])
    changed = bad[head : len(bad) - tail] + word[head : len(word) - tail]
    if not changed.isalpha() and changed:
        return False
    if bad.lower() == word.lower() or _differ_at_edge(bad, word) or _differ_at_edge(word, bad):
        return False
    if all(_part_at(text, head) in CONFUSABLE for text in (bad, word)):
        return False
    return _is_clumsy(bad, word, head) or _inside(word, head, max(len(word) - tail, head))


def _part_at(text: str, at: int) -> str:
    """The part of a name that holds the letter there."""
    return next((part[0].lower() for part in _PART.finditer(text) if part.start() <= at < part.end()), "")


def _differ_at_edge(longer: str, shorter: str) -> bool:
    """Whether one is the other without the last letter of a part: `user` and `users`, `expres` and `express`."""
    return any(
        longer[: part.end() - 1] + longer[part.end() :] == shorter for part in _PART.finditer(longer)
    )


def _is_clumsy(bad: str, word: str, head: int) -> bool:
    """Two letters swapped or one doubled: no name is made from another like that, but for a short end."""
    if len(bad) == len(word):
        pair = bad[head : head + 2]
        return pair == word[head : head + 2][::-1] and (head + 2 < len(word) or _ends_long(word))
    longer = max(bad, word, key=len)
    return head < min(len(bad), len(word)) and longer[head] == longer[head - 1]


def _ends_long(word: str) -> bool:
    """Whether the last part of the word is a word itself, not an `xy` that may well be a `yx`."""
    return len([*_PART.finditer(word)][-1][0]) >= FEWEST_LETTERS


def _inside(word: str, start: int, end: int) -> bool:
    """Whether the slip lies between the first and the last letter of a part of the word.

    At the edge of a part it makes another word: `user` and `users`, `parse` and `parser`, `row_a` and `row_b`.
    """
    return any(
        part.start() < start and end < part.end()
        for part in _PART.finditer(word)
        if len(part[0]) >= FEWEST_LETTERS - 1
    )


def _shared(one: str, other: str) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count
