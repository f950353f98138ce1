"""Character encodings: lossless decoding of file bytes to text and back; detection of binary files."""

import codecs
import re
from collections.abc import Iterator
from dataclasses import dataclass
from io import BytesIO

from handtools.text import lines

# UTF-32 first: its little-endian mark begins with UTF-16's.
_MARKS = (
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_DECLARATION = re.compile(
    rb"""\A(?:[ \t\f]*(?:\#[^\r\n]*)?(?:\r\n?|\n))?      # the first or the second line (PEP 263)
         [ \t\f]*\#[^\r\n]*?coding[:=][ \t]*(?P<cookie>[-\w.]+)
    | \A\s*<\?xml\s[^>]*?\bencoding\s*=\s*["'](?P<xml>[-\w.:]+)["']
    | <meta\s[^>]*?\bcharset\s*=\s*["']?\s*(?P<html>[-\w.:]+)
    | \A@charset\s"(?P<css>[-\w.:]+)";""",
    re.VERBOSE | re.IGNORECASE,
)
_DECLARATION_BYTES = 1024
# Codecs that change characters they can't represent instead of raising, or that are not charsets.
_UNFIT = frozenset({"idna", "mbcs", "oem", "punycode", "raw-unicode-escape", "unicode-escape", "utf-7"})
# Encodings used for source code; rarer code pages would only be detected by accident.
_NARROW = (
    *("cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257"),
    *("iso8859_2", "iso8859_15", "koi8_r", "koi8_u", "mac_roman", "cp437", "cp850", "cp866"),
)
_EAST_ASIAN = ("cp932", "euc_jp", "gb18030", "big5", "cp949")
_UP_TO_A_SIGN = re.compile(rb".*[\x00-\x2f]", re.DOTALL)
_KANA = re.compile("[\u3041-\u30ff]")
_ADJACENT = re.compile(rb"[\x80-\xff]{2}")
_EVIDENCE_BYTES = 16 * 1024
_SNIFFED_BYTES = 8 * 1024
_SAMPLE_BYTES = 4 * 1024
_UNPRINTABLE_SHARE = 0.3
_PRINTABLE = bytes({*b"\b\t\n\f\r\x1b", *range(32, 127), *range(128, 256)})
_ESCAPED = re.compile("[\udc80-\udcff]+")
_UNPAIRED = re.compile("[\ud800-\udfff]")
_BEYOND_ASCII = re.compile("[^\x00-\x7f\udc80-\udcff]+")


class Unencodable(ValueError):
    """Raised if the file's encoding can't represent a character of the text to write."""

    def __init__(self, character: str, offset: int, encoding: str) -> None:
        super().__init__(f"{character!r} at offset {offset} can't be encoded as {encoding}")
        self.character = character
        self.offset = offset
        self.encoding = encoding


@dataclass(frozen=True, slots=True)
class DecodedText:
    """The decoded text of a file, with the encoding, byte order mark and error mode for writing it back."""

    body: str
    encoding: str
    bom: bytes = b""
    confidence: float = 1.0
    errors: str = "strict"

    def encode(self, text: str) -> bytes:
        """Encode `text` in this file's encoding, with its byte order mark; raises `Unencodable`."""
        try:
            return self.bom + text.encode(self.encoding, self.errors)
        except UnicodeEncodeError as error:
            character = text[error.start]
            raise Unencodable(character, error.start, self.encoding) from error

    def with_own_line_ends(self, text: str) -> str:
        """Convert the line endings of `text` to this file's most frequent one, if the file has any."""
        if "\n" not in self.body and "\r" not in self.body:
            return text
        return lines.convert_line_ends(text, lines.dominant_ending(self.body))


def decode(data: bytes) -> DecodedText:
    """Decode bytes by byte order mark, UTF-8, declaration or detection, without losing any bytes."""
    return (
        _decode_by_bom(data)
        or _decode_wide_without_bom(data)
        or _decode_utf8(data)
        or _decode_as_declared(data)
        or _decode_damaged_utf8(data)
        or _decode_by_detection(data)
        or _decode_with_surrogates(data, 0.0)
    )


def is_binary(data: bytes) -> bool:
    """Whether bytes are binary: many control characters, or NULs without being UTF-16 or UTF-32."""
    if 0 in data[:_SNIFFED_BYTES]:
        return not _is_wide_text(data[:_SNIFFED_BYTES])
    # High bytes count as printable: they are letters in UTF-8 and in every legacy encoding.
    sample = data[:_SAMPLE_BYTES]
    return len(sample.translate(None, _PRINTABLE)) > len(sample) * _UNPRINTABLE_SHARE


def is_utf8(data: bytes) -> bool:
    """Whether bytes are valid UTF-8."""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _decode_strictly(data: bytes, encoding: str, confidence: float, bom: bytes = b"") -> DecodedText | None:
    """Decode strictly; None unless encoding the text restores the same bytes."""
    try:
        body = data.decode(encoding)
        if body.encode(encoding) != data:
            return None
    except (UnicodeError, LookupError):
        return None
    return DecodedText(body, encoding, bom, confidence)


def _decode_with_surrogates(data: bytes, confidence: float, bom: bytes = b"") -> DecodedText:
    """Decode as UTF-8 with each undecodable byte kept as a lone surrogate."""
    body = data.decode("utf-8", "surrogateescape")
    return DecodedText(body, "utf-8", bom, confidence, "surrogateescape")


def _decode_utf8(data: bytes) -> DecodedText | None:
    try:
        body = data.decode()
    except UnicodeDecodeError:
        return None
    # ASCII text with a declaration: characters added later must use the declared encoding.
    declared = _decode_as_declared(data) if len(body) == len(data) else None
    return declared or DecodedText(body, "utf-8")


def _decode_by_bom(data: bytes) -> DecodedText | None:
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            rest = data[len(mark) :]
            if source := _decode_strictly(rest, encoding, 1.0, mark):
                return source
            if encoding == "utf-8":
                return _decode_with_surrogates(rest, 0.9, mark)
    return None


def _decode_wide_without_bom(data: bytes) -> DecodedText | None:
    """Decode UTF-16 or UTF-32 without a byte order mark, recognized by the positions of NULs.

    Returns None for any other encoding.
    """
    if 0 not in data[:_SNIFFED_BYTES]:
        return None
    encoding = _guess_wide_encoding(data[:_SNIFFED_BYTES])
    return _decode_strictly(data, encoding, 0.9) if encoding else None


def _guess_wide_encoding(sample: bytes) -> str | None:
    """Guess whether mostly Latin text is UTF-16 or UTF-32, and its byte order; None if it is neither."""
    for width, encodings in ((4, ("utf-32-le", "utf-32-be")), (2, ("utf-16-le", "utf-16-be"))):
        units = len(sample) // width
        if not units:
            continue
        for encoding, low in zip(encodings, (0, width - 1), strict=True):
            zeros = [sample[lane : units * width : width].count(0) for lane in range(width)]
            high = [count for lane, count in enumerate(zeros) if lane != low]
            if zeros[low] * 20 <= units and min(high) * 2 >= units:
                return encoding if _decodes_to_readable_text(sample, encoding) else None
    return None


def _decodes_to_readable_text(sample: bytes, encoding: str) -> bool:
    """Whether a sample of bytes decodes in this encoding to text without control characters."""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(sample)
    except UnicodeDecodeError:
        return False
    return not text.encode("utf-8").translate(None, _PRINTABLE)


def _is_wide_text(sample: bytes) -> bool:
    for mark, encoding in _MARKS:
        if sample.startswith(mark) and _decodes_to_readable_text(sample[len(mark) :], encoding):
            return True
    return _guess_wide_encoding(sample) is not None


def _decode_as_declared(data: bytes) -> DecodedText | None:
    """Decode by the encoding that the text itself declares, such as `# coding: latin-1`.

    Returns None if there is no declaration or decoding fails.
    """
    head = data[:_DECLARATION_BYTES]
    if b"coding" not in head and b"charset" not in head:
        return None
    match = _DECLARATION.search(head)
    if match is None or match.lastgroup is None:
        return None
    try:
        encoding = codecs.lookup(match[match.lastgroup].decode()).name
        # The declaration must be readable in the encoding it declares, which rules out UTF-16 and EBCDIC.
        readable = match[0].decode(encoding) == match[0].decode("ascii")
    except (UnicodeError, LookupError):
        return None
    if encoding in _UNFIT or encoding == "utf-8" or not readable:
        return None
    # Browsers decode Latin-1 as its superset cp1252, and pages are written for browsers.
    western = match.lastgroup in ("html", "css") and encoding in ("ascii", "iso8859-1")
    return (western and _decode_strictly(data, "cp1252", 0.95)) or _decode_strictly(data, encoding, 0.95)


def _decode_damaged_utf8(data: bytes) -> DecodedText | None:
    """Decode UTF-8 with a few bad bytes.

    Returns None unless intact characters beyond ASCII outnumber the broken bytes.
    """
    source = _decode_with_surrogates(data, 0.8)
    broken = sum(map(len, _ESCAPED.findall(source.body)))
    intact = sum(map(len, _BEYOND_ASCII.findall(source.body)))
    return source if intact > broken else None


def _decode_by_detection(data: bytes) -> DecodedText | None:
    """Decode by statistical charset detection on a limited sample; None if nothing fits."""
    from charset_normalizer import from_bytes

    sample = b"".join(_non_ascii_lines(data))
    # East Asian characters take two bytes, so some of the high bytes must be adjacent.
    candidates = _NARROW + _EAST_ASIAN if _ADJACENT.search(sample) else _NARROW
    matches = from_bytes(
        sample, cp_isolation=[*candidates], preemptive_behaviour=False, enable_fallback=False
    )
    best = matches.best()
    if best is None:
        return None
    confidence = round(0.9 * (1 - best.chaos) * (0.5 + 0.5 * best.coherence), 2)
    # Short texts often tie between charsets, and then Western text is by far the most likely.
    western = any(
        "cp1252" in each.could_be_from_charset
        and (each.chaos, each.coherence) == (best.chaos, best.coherence)
        for each in matches
    )
    # GB 18030 encodes kana with the same bytes as EUC-JP, but Chinese text does not use kana.
    japanese = best.encoding == "gb18030" and _KANA.search(str(best))
    encoding = "cp1252" if western else "euc_jp" if japanese else best.encoding
    return _decode_strictly(data, encoding, confidence)


def _non_ascii_lines(data: bytes) -> Iterator[bytes]:
    """Yield the lines with non-ASCII bytes, up to a size limit, as the sample for charset detection."""
    room = _EVIDENCE_BYTES
    for line in BytesIO(data):
        if line.isascii():
            continue
        if len(line) > room:
            # Bytes below 0x30 are never the second byte of a character, so it is safe to cut after one.
            cut = _UP_TO_A_SIGN.match(line, 0, room)
            yield cut[0] if cut else line[:room]
            return
        yield line
        room -= len(line)


def without_surrogates(text: str) -> str:
    """Replace lone surrogates with U+FFFD, so that the text can be encoded as JSON."""
    return text if text.isascii() else _UNPAIRED.sub("\ufffd", text)
