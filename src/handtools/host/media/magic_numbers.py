"""Recognize the kind of a file by its first bytes (magic numbers) and its name."""

from importlib.util import find_spec

from handtools.core.media import MediaKind

UNREADABLE_HINT = "Open it with another program, or get a new copy."
"""The hint of errors about a file that is not what its first bytes say."""
# Checked in this order; the first that fits decides.
_MAGIC_NUMBERS: tuple[tuple[bytes, MediaKind], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image"),
    (b"\xff\xd8\xff", "image"),
    (b"GIF87a", "image"),
    (b"GIF89a", "image"),
    (b"BM", "image"),
    (b"II*\0", "image"),
    (b"MM\0*", "image"),
    (b"\0\0\1\0", "image"),
    (b"%PDF-", "pdf"),
    (b"PK\3\4", "archive"),
    (b"PK\5\6", "archive"),
    (b"\x1f\x8b", "archive"),
    (b"BZh", "archive"),
    (b"\xfd7zXZ\0", "archive"),
    (b"SQLite format 3\0", "table"),
    (b"PAR1", "table"),
)
_SUFFIXES: dict[str, MediaKind] = {"ipynb": "notebook", "csv": "table", "tsv": "table", "tar": "archive"}


def media_kind(path: str, data: bytes) -> MediaKind | None:
    """The kind of media (image, PDF, …) of a file; None when there is no preview for it."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image"
    for start, kind in _MAGIC_NUMBERS:
        if data.startswith(start):
            return kind
    return _SUFFIXES.get(path.rpartition(".")[2].lower())


def describe_binary(data: bytes) -> str:
    """A few words about a binary file's format, by its first bytes; empty if unknown."""
    if find_spec("puremagic") is None:
        return ""
    import puremagic

    try:
        found = puremagic.magic_string(data[: 64 << 10])
    except (puremagic.PureError, ValueError):
        return ""
    return found[0].name if found and found[0].confidence >= 0.4 else ""
