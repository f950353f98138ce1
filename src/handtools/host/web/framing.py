"""Framing: where packed bytes say that they end, without unpacking them. The format is that of RFC 8878."""

_SKIPPED = range(0x184D2A50, 0x184D2A60)
"""How frames begin that hold nothing of the page."""
_LABEL_BYTES = (0, 1, 2, 4)
_SIZE_BYTES = (0, 2, 4, 8)
_REPEATED = 1


def zstd_end(data: bytes) -> int:
    """Where the last of the frames ends: past the end of the bytes when some of it did not come."""
    at = 0
    while at < len(data):
        if _number(data, at, 4) in _SKIPPED and at + 8 <= len(data):
            at += 8 + _number(data, at + 4, 4)
        else:
            at = _frame_end(data, at)
    return at


def _frame_end(data: bytes, start: int) -> int:
    described = _number(data, start + 4, 1)
    single, checked = described >> 5 & 1, described >> 2 & 1
    size = _SIZE_BYTES[described >> 6] or single
    at = start + 5 + (1 - single) + _LABEL_BYTES[described & 3] + size
    last = 0
    while not last:
        if at + 3 > len(data):
            return len(data) + 1
        block = _number(data, at, 3)
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        at += 3 + (1 if kind == _REPEATED else size)
    return at + 4 * checked


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
