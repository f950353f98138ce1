"""Files of any encoding: decoded, and encoded to the same bytes again; any bytes have a kind."""

from handtools.text.encoding import decode, is_binary, without_surrogates
from handtools.text.lines import split_lines
from handtools.text.media_type_sniffing import medium_kind_of_media_type, sniff_media_type

SEEDS = [
    "caf\u00e9 na\u00efve".encode(), "caf\u00e9".encode("latin-1"), "\ufeffa".encode("utf-16"), "a\u3042".encode("utf-16-le"),
    b"# -*- coding: cp1252 -*-\n\x80", b"\xef\xbb\xbfx\r\ny\r", "\u3042\u3044".encode("shift_jis"), b"%PDF-1.4",
    b"\x89PNG\r\n\x1a\n", b'<?xml version="1.0" encoding="utf-7"?>', b"RIFF____WEBPVP8 ",
]  # fmt: skip
WORDS = [
    "coding: ",
    "utf-7",
    "idna",
    "rot13",
    "hex",
    "utf-16",
    "punycode",
    "<meta charset=",
    "<?xml encoding=",
    "%PDF-",
]
PARSERS = ["handtools.text.encoding", "handtools.text.lines", "handtools.text.media_type_sniffing"]
FOUND: dict[str, bytes] = {}


def fuzz(data):
    found = decode(data)
    assert found.encode(found.body) == data
    assert "".join(split_lines(found.body)) == found.body
    without_surrogates(found.body).encode()
    is_binary(data)
    for path in ("a", "a.py", "a.svg", "a.docx"):
        medium_kind_of_media_type(sniff_media_type(path, data))
