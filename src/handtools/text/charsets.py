"""Charsets: the text of a page, whatever its server and its author say about the bytes."""

import codecs

from handtools.text.encoding import Source, decode

# What a label means on the web, where it is not what it says: pages are written for browsers.
_MEANT = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso8859-11": "cp874",
    "tis-620": "cp874",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")
_NO_CHARSET = frozenset({"idna", "punycode", "raw-unicode-escape", "unicode-escape", "utf-7", "undefined"})


def read_page(data: bytes, label: str) -> Source:
    """Decode by mark, then as UTF-8 if that is what it is, then by the server's label, then by the page itself.

    Bytes beyond ASCII that happen to be good UTF-8 are UTF-8: servers with a wrong label are far more common.
    """
    if data.startswith(_MARKS) or not label:
        return decode(data)
    encoding = _encoding(label)
    if encoding is None:
        return decode(data)
    if encoding.startswith("utf-") or not _is_utf8(data):
        try:
            return Source(data.decode(encoding), encoding, confidence=0.95)
        except UnicodeDecodeError:
            pass
    return decode(data)


def _encoding(label: str) -> str | None:
    try:
        found = codecs.lookup(label.strip().strip("\"'"))
    except (LookupError, ValueError):
        return None
    name = found.name
    # Python's codecs from bytes to bytes are no charsets.
    is_text = getattr(found, "_is_text_encoding", True)
    return None if name in _NO_CHARSET or not is_text else _MEANT.get(name, name)


def _is_utf8(data: bytes) -> bool:
    if data.isascii():
        return False
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
