"""Ripgrep's records: JSON lines read one by one, whatever their size or encoding."""

import base64
import json
import os
import re
from collections.abc import Iterator
from typing import IO, Any

from pydantic_core import from_json

from handtools.core.searching import Hit
from handtools.text.encoding import decode

RECORD_BYTES = 1 << 20
"""Longer records are read past: what is before their end is enough to show the hit."""
TEXT_CHARS = 1 << 14
"""A longer text is cut down to what is around its first match."""
Spans = list[tuple[int, int]]
BEGIN, MATCH, END = (b'{"type":"%s"' % word for word in (b"begin", b"match", b"end"))
"""How records begin; they are told apart before they are read."""
_PIECE_BYTES = 1 << 16
_PATH = re.compile(rb'"path":(\{"(?:text|bytes)":"(?:[^"\\]|\\.)*"\})')
_LINE = re.compile(rb'"\},"line_number":(\d+)')
_OFFSET = re.compile(rb'"absolute_offset":(\d+)')
_TEXT = re.compile(rb'"lines":\{"text":"((?:[^"\\]|\\[^u]|\\u[0-9a-fA-F]{4}){0,16384})')


def records(stream: IO[bytes]) -> Iterator[bytes]:
    """Every record as it comes, unread; one that is too long comes as what can be told of it."""
    while line := stream.readline(RECORD_BYTES):
        if line.endswith(b"\n"):
            yield line
        elif record := _overlong(line, stream):
            yield record


def read(record: bytes) -> dict[str, Any]:
    """What a record says; what it speaks about is its first word."""
    data: dict[str, Any] = from_json(record)["data"]
    return data


def hits(path: str, data: dict[str, Any]) -> list[Hit]:
    """The hits of a match record in a file: one, but where a lone CR ends lines as editors count them."""
    given = data["lines"].get("text")
    if given is not None and given.isascii():
        text = _bare(given)
        most = len(text)
        spans = [(min(m["start"], most), min(m["end"], most)) for m in data["submatches"]]
    else:
        raw, text = _text(data["lines"])
        text = _bare(text)
        spans = [_span(raw, text, match["start"], match["end"]) for match in data["submatches"]]
    line, cut = data["line_number"] or 0, "cut" in data
    if "\r" in text and "\n" not in text:
        return [_shown(path, *each, cut=cut) for each in _apart(line, text, spans)]
    return [_shown(path, line, text, spans, cut=cut)]


def _apart(line: int, text: str, spans: Spans) -> Iterator[tuple[int, str, Spans]]:
    start = 0
    for number, piece in enumerate(text.split("\r"), line):
        end = start + len(piece)
        own = [(first - start, min(last, end) - start) for first, last in spans if start <= first <= end]
        if own:
            yield number, piece, own
        start = end + 1


def _shown(path: str, line: int, text: str, spans: Spans, *, cut: bool) -> Hit:
    if len(text) <= TEXT_CHARS:
        return Hit(path, line, text, tuple(spans), cut)
    start = max(spans[0][0] - TEXT_CHARS // 2, 0) if spans else 0
    near = [(a - start, min(b - start, TEXT_CHARS)) for a, b in spans if start <= a < start + TEXT_CHARS]
    return Hit(path, line, text[start : start + TEXT_CHARS], tuple(near), clipped=True)


def path_of(data: dict[str, Any]) -> str:
    """The path that a record speaks about, below the workspace."""
    path: dict[str, str] = data["path"]
    name = path["text"] if "text" in path else os.fsdecode(base64.b64decode(path["bytes"]))
    return name.removeprefix("./")


def raw_line(data: dict[str, Any]) -> bytes:
    """The bytes that a match record shows."""
    given: dict[str, str] = data["lines"]
    if "text" in given:
        return given["text"].encode("utf-8", "surrogatepass")
    return base64.b64decode(given["bytes"])


def _text(given: dict[str, str]) -> tuple[bytes, str]:
    """Bytes and text of a line; only one that is no UTF-8 is worth a guess at its encoding."""
    if "text" in given:
        return given["text"].encode("utf-8", "surrogatepass"), given["text"]
    raw = base64.b64decode(given["bytes"])
    return raw, decode(raw).body


def _bare(text: str) -> str:
    return text.removesuffix("\n").removesuffix("\r")


def _span(raw: bytes, text: str, start: int, end: int) -> tuple[int, int]:
    """Offsets in bytes as offsets in characters, none beyond the end of the line."""
    if len(raw) != len(text) and not raw.isascii():
        start, end = (len(decode(raw[:offset]).body) for offset in (start, end))
    return min(start, len(text)), min(end, len(text))


def _overlong(head: bytes, stream: IO[bytes]) -> bytes | None:
    """A match record of a gigantic line: its path, its number, its beginning; the rest is read past."""
    number, offset = _LINE.search(head), _OFFSET.search(head)
    tail = head[-64:]
    while piece := stream.readline(_PIECE_BYTES):
        number = number or _LINE.search(tail + piece)
        offset = offset or _OFFSET.search(tail + piece)
        tail = piece[-64:]
        if piece.endswith(b"\n"):
            break
    path, text = _PATH.search(head), _TEXT.search(head)
    if path is None or not head.startswith(MATCH):
        return None
    shown = text[1].decode("utf-8", "ignore") if text else "(a very long line)"
    told = {
        "path": json.loads(path[1]),
        "lines": {"text": json.loads(f'"{shown}"')},
        "line_number": int(number[1]) if number else 0,
        "absolute_offset": int(offset[1]) if offset else 0,
        "submatches": [],
        "cut": True,
    }
    return MATCH + b',"data":' + json.dumps(told).encode() + b"}"
