"""Find every trace of a path's content in the journal, so that it can be deleted."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from handtools.core.backups_locks_and_store import Store
from handtools.text.encoding import decode, is_binary

MIN_TRACE_LINE_CHARS = 8
"""Shortest line in characters to search for; shorter lines occur in any file."""
MIN_TRACE_WORD_CHARS = 16
"""Shortest word in characters to search for by itself, for example a key printed without its name."""
MAX_TRACE_PIECES = 500
"""Most lines and words to search for; longer files are sampled."""
TRACE_SEARCH_CHUNK_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class FileTraces:
    """Lines and words of a file to search for in recorded calls and outputs, plain and JSON-escaped."""

    texts: tuple[bytes, ...]
    quoted: tuple[bytes, ...]
    sampled: bool
    """Whether the file had too many lines and words, so that only a sample is searched for."""

    @classmethod
    def of(cls, versions: Iterable[bytes]) -> "FileTraces":
        """Collect the lines and long words of all versions of a file; binary versions give none."""
        pieces = dict.fromkeys(
            piece
            for data in versions
            if not is_binary(data)
            for piece in _long_lines_and_words(decode(data).body)
        )
        every = sorted(pieces, key=len, reverse=True)
        step = -(-len(every) // MAX_TRACE_PIECES) or 1
        chosen = every[::step]
        quoted = (form for piece in chosen for form in _as_json(piece))
        texts = tuple(piece.encode("utf-8", "surrogateescape") for piece in chosen)
        return cls(texts, tuple(dict.fromkeys(quoted)), sampled=step > 1)

    def in_json(self, data: bytes) -> bool:
        """Whether JSON bytes contain one of the lines or words."""
        return any(piece in data for piece in self.quoted)

    def in_output(self, output_store: Store, name: str) -> bool:
        """Whether a stored output contains one of the lines or words."""
        longest = max(map(len, self.texts), default=0)
        before = b""
        for start in range(0, output_store.size(name), TRACE_SEARCH_CHUNK_BYTES):
            chunk = before + output_store.part(name, start, TRACE_SEARCH_CHUNK_BYTES)
            if any(piece in chunk for piece in self.texts):
                return True
            before = chunk[-longest:] if longest else b""
        return False


def _long_lines_and_words(text: str) -> Iterator[str]:
    for line in text.splitlines():
        if len(line.strip()) >= MIN_TRACE_LINE_CHARS:
            yield line.strip()
        for word in line.replace("=", " ").replace(":", " ").split():
            bare = word.strip("\"',;()")
            if len(bare) >= MIN_TRACE_WORD_CHARS:
                yield bare


def _as_json(piece: str) -> Iterator[bytes]:
    yield json.dumps(piece)[1:-1].encode()
    yield json.dumps(piece, ensure_ascii=False)[1:-1].encode("utf-8", "surrogatepass")


@dataclass(frozen=True, slots=True)
class ForgottenPath:
    """Result of deleting all traces of a path: what was deleted, and what remains."""

    versions: int
    calls: tuple[str, ...]
    """Ids of the calls that named, changed or printed the file."""
    copies: tuple[str, ...]
    """Other paths with a stored version of the same bytes."""
    sampled: bool
    """Whether calls and outputs were searched for only a sample of the file's lines and words."""
