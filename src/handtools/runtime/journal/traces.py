"""Traces: what of a file stands elsewhere in the record, found by its lines."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from handtools.core.ports import Store
from handtools.text.encoding import decode, is_binary

LINE_CHARS = 8
"""Shorter lines stand in every other file."""
WORD_CHARS = 16
"""A word of this length is looked for by itself: a key that was printed without its name."""
MOST = 500
"""Lines and words that are looked for; of a file with more, some of every part."""
CHUNK = 4 << 20


@dataclass(frozen=True, slots=True)
class Traces:
    """Pieces of a file, as texts and as they stand in JSON."""

    texts: tuple[bytes, ...]
    quoted: tuple[bytes, ...]
    sampled: bool
    """Whether there were more than are looked for."""

    @classmethod
    def of(cls, versions: Iterable[bytes]) -> "Traces":
        """The lines and long words of all versions of a file; bytes that are no text leave none."""
        pieces = dict.fromkeys(
            piece for data in versions if not is_binary(data) for piece in _pieces(decode(data).body)
        )
        every = sorted(pieces, key=len, reverse=True)
        step = -(-len(every) // MOST) or 1
        chosen = every[::step]
        quoted = (form for piece in chosen for form in _as_json(piece))
        texts = tuple(piece.encode("utf-8", "surrogateescape") for piece in chosen)
        return cls(texts, tuple(dict.fromkeys(quoted)), sampled=step > 1)

    def in_json(self, data: bytes) -> bool:
        """Whether JSON holds one of them."""
        return any(piece in data for piece in self.quoted)

    def in_output(self, outputs: Store, name: str) -> bool:
        """Whether a kept output holds one of them."""
        longest = max(map(len, self.texts), default=0)
        before = b""
        for start in range(0, outputs.size(name), CHUNK):
            chunk = before + outputs.part(name, start, CHUNK)
            if any(piece in chunk for piece in self.texts):
                return True
            before = chunk[-longest:] if longest else b""
        return False


def _pieces(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if len(line.strip()) >= LINE_CHARS:
            yield line.strip()
        for word in line.replace("=", " ").replace(":", " ").split():
            bare = word.strip("\"',;()")
            if len(bare) >= WORD_CHARS:
                yield bare


def _as_json(piece: str) -> Iterator[bytes]:
    yield json.dumps(piece)[1:-1].encode()
    yield json.dumps(piece, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")
