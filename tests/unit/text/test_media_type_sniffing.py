"""Sniffing: content decides, names only refine."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.text.media_type_sniffing import (
    UNKNOWN_MEDIA_TYPE,
    medium_kind_of_media_type,
    sniff_media_type,
)

PNG, JPEG = b"\x89PNG\r\n\x1a\n" + bytes(20), b"\xff\xd8\xff\xe0" + bytes(20)
WORD = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"


@pytest.mark.parametrize(
    ("path", "head", "type_", "kind"),
    [
        ("a.png", PNG, "image/png", "image"),
        ("a.txt", PNG, "image/png", "image"),
        ("a.jpg", JPEG, "image/jpeg", "image"),
        ("a", b"GIF89a" + bytes(9), "image/gif", "image"),
        ("a", b"RIFF\0\0\0\0WEBPVP8 ", "image/webp", "image"),
        ("a", b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0(\0\0\0", "image/bmp", "image"),
        ("a", b"\0\0\0\x1cftypavif\0\0\0\0", "image/avif", "image"),
        ("a.svg", b'<?xml version="1.0"?>\n<svg xmlns="x">', "image/svg+xml", "image"),
        ("a", b"\0\0\0\x18ftypmp42\0\0\0\0", "video/mp4", "video"),
        ("a", b"\0\0\0\x14ftypqt  \0\0\0\0", "video/quicktime", "video"),
        ("a", b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\x82\x84webm", "video/webm", "video"),
        ("a.mkv", b"\x1aE\xdf\xa3\x9fB\x86\x81\x01B\x82\x88matroska", "video/x-matroska", "video"),
        ("a", b"RIFF\0\0\0\0AVI LIST", "video/x-msvideo", "video"),
        ("a", b"OggS\0\2" + bytes(22) + b"\x80theora", "video/ogg", "video"),
        ("a", b"\0\0\0\x1cftypM4A \0\0\0\0", "audio/mp4", "audio"),
        ("a", b"ID3\4\0\0", "audio/mpeg", "audio"),
        ("a", b"\xff\xfb\x90\x64\0\0", "audio/mpeg", "audio"),
        ("a", b"OggS\0\2" + bytes(22) + b"\1vorbis", "audio/ogg", "audio"),
        ("a", b"RIFF\0\0\0\0WAVEfmt ", "audio/wav", "audio"),
        ("a", b"fLaC\0\0", "audio/flac", "audio"),
        ("a", b"%PDF-1.7", "application/pdf", "document"),
        ("a.md", b"# Title\n", "text/markdown", "document"),
        ("a.py", b"print()\n", "text/plain", "document"),
        ("a.jpg", b"<html><body>", "text/plain", "document"),
        ("a.docx", b"PK\3\4" + bytes(9), WORD, "document"),
        ("a.zip", b"PK\3\4" + bytes(9), "application/zip", "other"),
        ("a.png", b"PK\3\4" + bytes(9), "application/zip", "other"),
        ("a.docx", b"no archive", "text/plain", "document"),
        ("a.mp4", b"\x7fELF\2\1\1\0\0", "application/x-elf", "other"),
        ("a.mp4", bytes(range(1, 30)), UNKNOWN_MEDIA_TYPE, "other"),
        ("a.png", b"", UNKNOWN_MEDIA_TYPE, "other"),
        ("a", b"BM is how this note begins, and it is text", "text/plain", "document"),
    ],
)  # fmt: skip
def test_content_decides(path, head, type_, kind):
    assert sniff_media_type(path, head) == type_
    assert medium_kind_of_media_type(type_) == kind


@given(st.text(max_size=20), st.binary(max_size=200))
def test_any_bytes_are_something(path, head):
    found = sniff_media_type(path, head)
    assert found.count("/") == 1
    assert medium_kind_of_media_type(found) in {"image", "video", "audio", "document", "other"}


@given(
    st.sampled_from([PNG, JPEG, b"%PDF-1.7", b"ID3\4\0\0"]),
    st.text("abc./", max_size=9),
    st.binary(max_size=50),
)
def test_a_name_never_changes_what_the_bytes_say(start, path, rest):
    assert sniff_media_type(path, start + rest) == sniff_media_type("", start + rest)
