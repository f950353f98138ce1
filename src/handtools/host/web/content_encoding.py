"""Decode HTTP content encodings (gzip, deflate, zstd, brotli) with a limit on the decoded size."""

import zlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from io import BytesIO

from handtools.core.errors import TooLarge, Unreachable

_SKIPPABLE_FRAMES = range(0x184D2A50, 0x184D2A60)
"""The magic numbers of zstd frames without content."""
_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_RLE_BLOCK = 1


def zstd_end(data: bytes) -> int:
    """Return the offset at which the last zstd frame ends; beyond the data if it is truncated."""
    at = 0
    while at < len(data):
        if _number(data, at, 4) in _SKIPPABLE_FRAMES and at + 8 <= len(data):
            at += 8 + _number(data, at + 4, 4)
        else:
            at = _frame_end(data, at)
    return at


def _frame_end(data: bytes, start: int) -> int:
    described = _number(data, start + 4, 1)
    single, checked = described >> 5 & 1, described >> 2 & 1
    size = _CONTENT_SIZE_BYTES[described >> 6] or single
    at = start + 5 + (1 - single) + _DICTIONARY_ID_BYTES[described & 3] + size
    last = 0
    while not last:
        if at + 3 > len(data):
            return len(data) + 1
        block = _number(data, at, 3)
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        at += 3 + (1 if kind == _RLE_BLOCK else size)
    return at + 4 * checked


def _number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")


MAX_CONTENT_ENCODINGS = 2
DECODED_PIECE_BYTES = 64 << 10
DECODER_INPUT_BYTES = 4 << 10
"""How many bytes a decompressor gets at once; it copies the bytes that it does not consume."""
ZSTD_WINDOW_BYTES = 8 << 20
"""The largest zstd window in bytes, as the standard requires for HTTP."""


class BadContentEncoding(ValueError):
    """Raised if a body is not validly encoded."""


class TruncatedContentEncoding(BadContentEncoding):
    """Raised if an encoded body is truncated."""


def accept_encoding() -> str:
    """Return the value of the Accept-Encoding header: the encodings that can be decoded here."""
    return ", ".join(name for name in ("gzip", "deflate", "zstd", "br") if _installed(name))


def decoded_body(data: bytes, encoding: str, max_bytes: int) -> bytes:
    """Decode a body through all its encodings; raises `TooLarge` as soon as it exceeds `max_bytes`."""
    layers = [name for part in encoding.lower().split(",") if (name := part.strip()) and name != "identity"]
    if len(layers) > MAX_CONTENT_ENCODINGS or not all(
        name in _DECODERS and _installed(name) for name in layers
    ):
        raise Unreachable(
            f"The response has an unsupported content encoding: {encoding[:80]}.",
            hint="Try another page.",
        )
    arrived = len(data)
    try:
        for name in reversed(layers):
            data = _decode_within(_DECODERS[name], data, max_bytes)
    except TruncatedContentEncoding:
        message = f"The response is incomplete: only {arrived:,} bytes arrived."
        raise Unreachable(message, hint="Try again, or another page.") from None
    except BadContentEncoding as problem:
        message = f"Can't decompress the response: {problem}."
        raise Unreachable(message, hint="Try again, or another page.") from problem
    return data


def _decode_within(unpack: "Decoder", data: bytes, max_bytes: int) -> bytes:
    whole = bytearray()
    for piece in unpack(data):
        whole += piece
        if len(whole) > max_bytes:
            raise TooLarge(
                f"The response decompresses to more than {max_bytes:,} bytes; it was not read further.",
                hint="Request a part of it, or another page.",
            )
    return bytes(whole)


def _inflate(data: bytes, window: int) -> Iterator[bytes]:
    rest, at = data[:DECODER_INPUT_BYTES], DECODER_INPUT_BYTES
    while rest:
        machine = zlib.decompressobj(window)
        try:
            while not machine.eof:
                piece = machine.decompress(rest, DECODED_PIECE_BYTES)
                rest = machine.unconsumed_tail
                if not rest and not machine.eof:
                    rest, at = data[at : at + DECODER_INPUT_BYTES], at + DECODER_INPUT_BYTES
                if not piece and not rest:
                    break
                yield piece
        except zlib.error as error:
            raise BadContentEncoding(str(error)) from error
        if not machine.eof:
            raise TruncatedContentEncoding
        if window <= zlib.MAX_WBITS:
            return
        # Another gzip member may follow, or zero padding, or nothing.
        rest = machine.unused_data.lstrip(b"\0")
        while not rest and at < len(data):
            rest, at = data[at : at + DECODER_INPUT_BYTES].lstrip(b"\0"), at + DECODER_INPUT_BYTES


def _decode_gzip(data: bytes) -> Iterator[bytes]:
    return _inflate(data, zlib.MAX_WBITS | 16)


def _decode_deflate(data: bytes) -> Iterator[bytes]:
    # Many servers leave out the zlib header that the standard requires.
    framed = len(data) > 1 and data[0] & 0x0F == 8 and int.from_bytes(data[:2]) % 31 == 0
    return _inflate(data, zlib.MAX_WBITS if framed else -zlib.MAX_WBITS)


def _decode_brotli(data: bytes) -> Iterator[bytes]:
    import brotli

    machine = brotli.Decompressor()
    try:
        piece = machine.process(data, output_buffer_limit=DECODED_PIECE_BYTES)
        yield piece
        while not machine.is_finished() and not (machine.can_accept_more_data() and not piece):
            piece = machine.process(b"", output_buffer_limit=DECODED_PIECE_BYTES)
            yield piece
        if not machine.is_finished():
            raise TruncatedContentEncoding
    except brotli.error as error:
        raise BadContentEncoding(str(error)) from error


def _decode_zstd(data: bytes) -> Iterator[bytes]:
    import zstandard

    machine = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    try:
        with machine.stream_reader(BytesIO(data), read_across_frames=True) as reader:
            while piece := reader.read(DECODED_PIECE_BYTES):
                yield piece
    except zstandard.ZstdError as error:
        raise BadContentEncoding(str(error)) from error
    # The library does not report truncated input.
    if zstd_end(data) != len(data):
        raise TruncatedContentEncoding


def _installed(name: str) -> bool:
    return name != "br" or find_spec("brotli") is not None


Decoder = Callable[[bytes], Iterator[bytes]]
_DECODERS: dict[str, Decoder] = {
    "gzip": _decode_gzip,
    "x-gzip": _decode_gzip,
    "deflate": _decode_deflate,
    "br": _decode_brotli,
    "zstd": _decode_zstd,
}
