"""Frames: two streams over one connection. One is the output, the other the wrapper's own word."""

from collections.abc import Iterator
from dataclasses import dataclass, field

_HEAD = 8
_OUTPUT = 1
_KEPT_BYTES = 4096


@dataclass(slots=True)
class Frames:
    """Takes bytes as they come."""

    whole: bool = False
    """Whether there are no frames: a terminal has one stream."""
    word: bytes = b""
    """What the wrapper says when it does not begin."""
    refused: bool = False
    """Whether it has said that."""
    _begun: bool = False
    _kind: int = 0
    _missing: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _said: bytearray = field(default_factory=bytearray)

    def of(self, data: bytes) -> Iterator[memoryview | bytes]:
        """The output in it."""
        if self.whole:
            if not self._begun:
                self.refused = self._is_word(data)
            self._begun = self._begun or bool(data)
            yield b"" if self.refused else data
            return
        rest = memoryview(data)
        while rest:
            if not self._missing:
                need = _HEAD - len(self._head)
                self._head += rest[:need]
                rest = rest[need:]
                if len(self._head) == _HEAD:
                    self._kind, self._missing = self._head[0], int.from_bytes(self._head[4:], "big")
                    self._head.clear()
                continue
            part, rest = rest[: self._missing], rest[self._missing :]
            self._missing -= len(part)
            if self._kind == _OUTPUT:
                yield part
            else:
                self._said += part
                self.refused = self.refused or self._is_word(self._said)
                del self._said[:-_KEPT_BYTES]

    def _is_word(self, said: bytes | bytearray) -> bool:
        return bool(self.word) and said.startswith(self.word)

    @property
    def left(self) -> int | None:
        """How many processes the command left running; None when the wrapper has not come to say so."""
        words = bytes(self._said).split()
        last = words[-2:]
        return int(last[1]) if len(last) == 2 and last[0] == b"left" and last[1].isdigit() else None
