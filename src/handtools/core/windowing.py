"""Windowing: lines of a file that is too large to hold, read a window at a time."""

from dataclasses import dataclass

from handtools.core.ports import Files
from handtools.text.encoding import decode
from handtools.text.windows import Index, Reading, after, uncut

WINDOW_BYTES = 4 << 20
HEAD_BYTES = 64 << 10


async def index(files: Files, path: str) -> Index:
    """Count the lines of a file; the memory of one window is enough."""
    counts: list[int] = []
    size, ended, reading = 0, True, Reading()
    while window := await files.read(path, start=size, size=WINDOW_BYTES):
        if not size:
            reading = Reading.of(window[:HEAD_BYTES])
        size += len(window)
        known = reading.plain(window)
        counts.append(known.count(reading.end))
        ended = known.endswith(reading.end)
    return Index(counts, ended, reading, size)


@dataclass(frozen=True, slots=True)
class Stretch:
    """Lines that follow each other, and what their characters are."""

    lines: list[str]
    encoding: str
    cut: bool = False
    """Whether the one line that is here is only the beginning of one."""


async def lines_at(files: Files, path: str, found: Index, first: int, *, max_bytes: int) -> Stretch:
    """Lines from one on, as many as come whole in so many bytes, or the beginning of one."""
    window, ends = found.place(first)
    data, last = b"", False
    while len(data) <= max_bytes and not last:
        more = await files.read(path, start=window * WINDOW_BYTES, size=WINDOW_BYTES)
        data += after(found.reading.plain(more), ends, found.reading.end)
        window, ends, last = window + 1, 0, len(more) < WINDOW_BYTES
    source = decode(uncut(data, max_bytes))
    end = found.reading.end.decode()
    lines = [f"{line}{end}" for line in source.body.split(end)]
    part, encoding = len(data) > max_bytes, found.reading.wide or source.encoding
    if part and len(lines) == 1:
        return Stretch(lines, encoding, cut=True)
    if part or lines[-1] == end:
        lines.pop()
    return Stretch(lines, encoding)
