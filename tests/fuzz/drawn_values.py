"""Bytes of a fuzzer as values: texts, choices, JSON. A small change of the bytes is one of the values."""

from collections.abc import Sequence
from typing import Any, TypeVar

T = TypeVar("T")
BETWEEN = b"\xff"
"""Ends one text of several in an input; no byte of UTF-8."""


def text_of(data: bytes) -> str:
    """Any bytes as text; what is no UTF-8 is half a character, as a careless client sends it."""
    return data.decode("utf-8", "surrogateescape")


def texts_of(data: bytes, count: int) -> list[str]:
    """So many texts; those that the input does not have are empty."""
    parts = data.split(BETWEEN, count - 1)
    return [text_of(part.replace(BETWEEN, b"")) for part in parts] + [""] * (count - len(parts))


class DrawnValues:
    """Values drawn from the bytes one after another; after the last byte all are the first or the smallest."""

    def __init__(self, data: bytes) -> None:
        self._data, self._at = data, 0

    @property
    def ended(self) -> bool:
        return self._at >= len(self._data)

    def below(self, limit: int) -> int:
        """A number from 0 to limit - 1."""
        byte = self._data[self._at] if not self.ended else 0
        self._at += 1
        return byte % limit

    def pick(self, choices: Sequence[T]) -> T:
        return choices[self.below(len(choices))]

    def text(self) -> str:
        """The text up to the next separator."""
        end = self._data.find(BETWEEN, self._at)
        end = len(self._data) if end < 0 else end
        start, self._at = self._at, end + 1
        return text_of(self._data[start:end])

    def rest(self) -> bytes:
        start, self._at = self._at, len(self._data)
        return self._data[start:]

    def json(self, words: Sequence[str], depth: int = 4) -> Any:
        """A JSON value; keys and texts are often of the given words."""
        kind = self.below(12)
        if kind <= 3 and depth and not self.ended:
            size = self.below(6)
            if kind <= 2:
                return {self._word(words): self.json(words, depth - 1) for _ in range(size)}
            return [self.json(words, depth - 1) for _ in range(size)]
        scalars: list[Any] = [None, True, False, 0, 1, -1, 1 << 70, 0.5]
        return self._word(words) if kind <= 9 else self.pick(scalars)

    def _word(self, words: Sequence[str]) -> str:
        number = self.below(len(words) + 2)
        return words[number] if number < len(words) else self.text()
