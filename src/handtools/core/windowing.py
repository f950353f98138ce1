"""Windowing: lines of a file that is too large to hold, read a window at a time."""

from handtools.core.ports import Files
from handtools.text.encoding import decode
from handtools.text.lines import split
from handtools.text.windows import Index, after, uncut

WINDOW_BYTES = 4 << 20


async def index(files: Files, path: str) -> Index:
    """Count the lines of a file; the memory of one window is enough."""
    counts: list[int] = []
    ended = True
    while window := await files.read(path, start=len(counts) * WINDOW_BYTES, size=WINDOW_BYTES):
        counts.append(window.count(b"\n"))
        ended = window.endswith(b"\n")
    return Index(counts, ended)


async def lines_at(files: Files, path: str, found: Index, first: int, *, max_bytes: int) -> list[str]:
    """Lines from one on, as many as come in about so many bytes, one at least."""
    window, ends = found.place(first)
    data = b""
    while len(data) < max_bytes:
        more = await files.read(path, start=window * WINDOW_BYTES, size=WINDOW_BYTES)
        data += after(more, ends)
        window, ends = window + 1, 0
        if len(more) < WINDOW_BYTES:
            break
    return split(decode(uncut(data, max_bytes)).body)
