"""Detection of a file's media type (MIME type) by its first bytes.

The file name is only used to distinguish kinds of text, zip and OLE documents.
"""

import re
from typing import Literal

from handtools.text.encoding import is_binary

MediumKind = Literal["image", "video", "audio", "document", "other"]

UNKNOWN_MEDIA_TYPE = "application/octet-stream"
MEDIA_HEAD_BYTES = 4_096
"""How many bytes at the start of a file are examined for its media type."""

_STARTS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
    (b"II*\0", "image/tiff"),
    (b"MM\0*", "image/tiff"),
    (b"\0\0\1\0", "image/x-icon"),
    (b"\x1aE\xdf\xa3", "video/x-matroska"),
    (b"FLV\1", "video/x-flv"),
    (b"\0\0\1\xba", "video/mpeg"),
    (b"\0\0\1\xb3", "video/mpeg"),
    (b"ID3", "audio/mpeg"),
    (b"fLaC", "audio/flac"),
    (b"MThd", "audio/midi"),
    (b"#!AMR", "audio/amr"),
    (b"OggS", "audio/ogg"),
    (b"%PDF-", "application/pdf"),
    (b"{\\rtf", "application/rtf"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "application/x-ole-storage"),
    (b"PK\3\4", "application/zip"),
    (b"PK\5\6", "application/zip"),
    (b"\x1f\x8b", "application/gzip"),
    (b"BZh", "application/x-bzip2"),
    (b"\xfd7zXZ\0", "application/x-xz"),
    (b"7z\xbc\xaf\x27\x1c", "application/x-7z-compressed"),
    (b"SQLite format 3\0", "application/vnd.sqlite3"),
    (b"PAR1", "application/vnd.apache.parquet"),
    (b"\x7fELF", "application/x-elf"),
    (b"MZ\x90\0", "application/vnd.microsoft.portable-executable"),
    (b"\xcf\xfa\xed\xfe", "application/x-mach-binary"),
    (b"\xca\xfe\xba\xbe", "application/java-vm"),
    (b"\0asm", "application/wasm"),
    (b"!<arch>\n", "application/x-archive"),
    (b"\x28\xb5\x2f\xfd", "application/zstd"),
    (b"\0\1\0\0\0", "font/ttf"),
    (b"OTTO\0", "font/otf"),
    (b"wOFF", "font/woff"),
    (b"wOF2", "font/woff2"),
)
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BRANDS = {
    b"M4A ": "audio/mp4", b"M4B ": "audio/mp4", b"M4P ": "audio/mp4", b"qt  ": "video/quicktime",
    b"avif": "image/avif", b"avis": "image/avif", b"heic": "image/heic", b"heix": "image/heic",
    b"mif1": "image/heif", b"3gp4": "video/3gpp", b"3gp5": "video/3gpp",
}  # fmt: skip
_OFFICE = "application/vnd.openxmlformats-officedocument."
_PACKED = {
    "docx": f"{_OFFICE}wordprocessingml.document",
    "xlsx": f"{_OFFICE}spreadsheetml.sheet",
    "pptx": f"{_OFFICE}presentationml.presentation",
    "odt": "application/vnd.oasis.opendocument.text",
    "ods": "application/vnd.oasis.opendocument.spreadsheet",
    "odp": "application/vnd.oasis.opendocument.presentation",
    "epub": "application/epub+zip",
}
_OLD_OFFICE = {
    "doc": "application/msword",
    "xls": "application/vnd.ms-excel",
    "ppt": "application/vnd.ms-powerpoint",
}
_TEXTS = {
    "css": "text/css", "csv": "text/csv", "html": "text/html", "htm": "text/html", "ics": "text/calendar",
    "json": "application/json", "js": "text/javascript", "md": "text/markdown", "tsv": "text/tab-separated-values",
    "xml": "application/xml",
}  # fmt: skip
_DOCUMENTS = {"application/pdf", "application/rtf", "application/json", "application/xml"}
_SVG = re.compile(
    rb"\s*(?:<\?xml[^>]*>\s*)?(?:<!--.*?-->\s*)*(?:<!DOCTYPE svg[^>]*>\s*)?<svg[\s>]", re.DOTALL
)


def sniff_media_type(path: str, head: bytes) -> str:
    """Return the media type of a file by its first bytes, and its extension for text, zip and OLE files."""
    head = head[:MEDIA_HEAD_BYTES]
    if found := media_type_by_signature(head):
        return _media_type_in_container(found, path, head)
    if not head or is_binary(head):
        return UNKNOWN_MEDIA_TYPE
    if _SVG.match(head):
        return "image/svg+xml"
    return _TEXTS.get(_file_suffix(path), "text/plain")


def medium_kind_of_media_type(media_type: str) -> MediumKind:
    """Classify a media type as image, video, audio, document or other."""
    first = media_type.partition("/")[0]
    if first == "image":
        return "image"
    if first == "video":
        return "video"
    if first == "audio":
        return "audio"
    packed = media_type in _PACKED.values() or media_type in _OLD_OFFICE.values()
    return "document" if first == "text" or packed or media_type in _DOCUMENTS else "other"


def media_type_by_signature(head: bytes) -> str:
    """Return the media type by the first bytes alone; empty if the format is unknown."""
    if head[:4] == b"RIFF":
        return _RIFF.get(head[8:12], "")
    if head[:4] == b"FORM" and head[8:12] in {b"AIFF", b"AIFC"}:
        return "audio/aiff"
    if head[4:8] == b"ftyp":
        return _BRANDS.get(head[8:12], "video/mp4")
    # Two letters are too weak a signature, so the reserved bytes must be zero and the header complete.
    if head[:2] == b"BM" and head[6:10] == bytes(4) and len(head) > 14:
        return "image/bmp"
    # An MPEG audio frame: eleven set bits, then a version, layer, bit rate and sampling rate that are not
    # reserved values.
    if len(head) > 3 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0 and head[1] & 0x18 != 0x08:
        plain = head[1] & 0x06 and head[2] & 0xF0 not in {0x00, 0xF0} and head[2] & 0x0C != 0x0C
        if plain:
            return "audio/mpeg"
    return next((kind for start, kind in _STARTS if head.startswith(start)), "")


def _media_type_in_container(found: str, path: str, head: bytes) -> str:
    """Refine the media type of a container format by its first bytes or its extension."""
    match found:
        case "video/x-matroska":
            return "video/webm" if b"webm" in head[:64] else found
        case "audio/ogg":
            return "video/ogg" if b"theora" in head[:128] else found
        case "application/zip":
            return _PACKED.get(_file_suffix(path), found)
        case "application/x-ole-storage":
            return _OLD_OFFICE.get(_file_suffix(path), found)
        case _:
            return found


def _file_suffix(path: str) -> str:
    return path.rpartition("/")[2].rpartition(".")[2].lower()
