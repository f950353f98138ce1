"""Truncation of long text or lines to a limit, with a note on what was left out."""

import re
from dataclasses import dataclass
from typing import Literal

from handtools.text import lines

_UNSEEN = re.compile("[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]+")


@dataclass(frozen=True, slots=True)
class ClippedText:
    """A truncated text, with its original and its shown numbers of lines and bytes.

    A partly shown line counts as shown; the note in the gap is not counted.
    """

    text: str
    lines: int
    shown_lines: int
    bytes: int
    shown_bytes: int
    clipped: bool


def clip_text(
    text: str,
    *,
    max_lines: int,
    max_bytes: int,
    keep: Literal["head", "tail", "both"],
    whole: tuple[int, int] | None = None,
) -> ClippedText:
    """Truncate text to a number of lines and bytes, keeping whole lines of its head, its tail or both.

    Part of a line is kept if not even one whole line fits. If the middle of the text was already cut out,
    `whole` has the original numbers of lines and bytes.
    """
    height, size = lines.count_lines(text), _utf8_size(text)
    if height <= max_lines and size <= max_bytes:
        return ClippedText(text, height, height, size, size, clipped=False)
    head = tail = mark = ""
    if keep == "head":
        head = _head_within_limits(text, max_lines, max_bytes)
    elif keep == "tail":
        tail = _tail_within_limits(text, max_lines, max_bytes)
    else:
        head = _head_within_limits(text, (max_lines + 1) // 2, (max_bytes + 1) // 2)
        rest = text[len(head) :]
        tail = _tail_within_limits(rest, max_lines - lines.count_lines(head), max_bytes - _utf8_size(head))
    # The head and tail of one long line count as one line.
    shown_lines = min(lines.count_lines(head) + lines.count_lines(tail), height)
    shown_bytes = _utf8_size(head) + _utf8_size(tail)
    if keep == "both":
        all_lines, all_bytes = whole or (height, size)
        mark = _omission_note(head, all_lines - shown_lines, all_bytes - shown_bytes)
    return ClippedText(head + mark + tail, height, shown_lines, size, shown_bytes, clipped=True)


def clip_line(line: str, max_chars: int, *, around: int | None = None, part: bool = False) -> str:
    """Truncate a line to `max_chars` characters, from its start or around an offset; note how many are cut.

    If `line` is only `part` of a line, that number is unknown and left out of the note.
    """
    if len(line) <= max_chars:
        return line
    start = 0
    if around is not None:
        start = min(max(around - max_chars // 2, 0), len(line) - max_chars)
    end = start + max_chars
    if part:
        return f"{'… ' * (start > 0)}{line[start:end]} …"
    before = f"[{start} chars] … " if start else ""
    after = f" … [{len(line) - end} chars]" if end < len(line) else ""
    return f"{before}{line[start:end]}{after}"


def collapse_to_one_line(text: str, max_chars: int | None = None) -> str:
    """Collapse all white space in a text to single spaces; cut it at `max_chars` with an ellipsis."""
    flat = " ".join(text.split())
    return flat if max_chars is None or len(flat) <= max_chars else f"{flat[: max_chars - 1]}…"


def sanitized_line(text: str, max_chars: int) -> str:
    """Return untrusted text as one line, without characters that move the cursor or change text direction."""
    return collapse_to_one_line(_UNSEEN.sub(" ", text))[:max_chars]


def _omission_note(head: str, left_lines: int, left_bytes: int) -> str:
    """Return the line that says how many lines and bytes were left out."""
    facts = f"{left_lines} lines, {left_bytes} bytes" if left_lines else f"{left_bytes} bytes"
    start = "\n" if head and not lines.ending_of_line(head) else ""
    return f"{start}[… {facts} left out …]\n"


def _head_within_limits(text: str, max_lines: int, max_bytes: int) -> str:
    kept = _prefix_within_bytes(text, max_bytes)
    rows = lines.split_lines(kept)
    if len(kept) < len(text) and len(rows) > 1 and not _ends_line(text, len(kept)):
        rows.pop()
    return "".join(rows[: max(max_lines, 0)])


def _tail_within_limits(text: str, max_lines: int, max_bytes: int) -> str:
    kept = _suffix_within_bytes(text, max_bytes)
    rows = lines.split_lines(kept)
    if len(kept) < len(text) and len(rows) > 1 and not _ends_line(text, len(text) - len(kept)):
        del rows[0]
    return "".join(rows[-max_lines:]) if max_lines > 0 else ""


def _ends_line(text: str, offset: int) -> bool:
    """Whether a line ends right before an offset; False between the two characters of a CRLF."""
    return text[offset - 1] in "\r\n" and text[offset - 1 : offset + 1] != "\r\n"


def _utf8_size(text: str) -> int:
    return len(text) if text.isascii() else len(_encode_utf8(text))


def _encode_utf8(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def _prefix_within_bytes(text: str, max_bytes: int) -> str:
    """Return the longest prefix of a text that fits a number of bytes in UTF-8."""
    data = _encode_utf8(text[: max(max_bytes, 0)])
    end = max_bytes
    if len(data) <= end:
        return text[: max(max_bytes, 0)]
    while data[end] & 0xC0 == 0x80:
        end -= 1
    return data[:end].decode("utf-8", "surrogatepass")


def _suffix_within_bytes(text: str, max_bytes: int) -> str:
    """Return the longest suffix of a text that fits a number of bytes in UTF-8."""
    near = text[max(len(text) - max_bytes, 0) :]
    data = _encode_utf8(near)
    start = len(data) - max_bytes
    if start <= 0:
        return near
    while start < len(data) and data[start] & 0xC0 == 0x80:
        start += 1
    return data[start:].decode("utf-8", "surrogatepass")
