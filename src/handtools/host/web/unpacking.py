"""Unpacking: what servers compress, and never more of it than we take."""

import zlib
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from io import BytesIO

from handtools.core.errors import TooLarge, Unreachable
from handtools.host.web.framing import zstd_end

MOST_LAYERS = 2
PIECE_BYTES = 64 << 10
FED_BYTES = 4 << 10
"""Given to a decompressor at once: it copies what it leaves over, and a member may end every 20 bytes."""
WINDOW_BYTES = 8 << 20
"""What a decompressor may hold; the limit that the format's own standard sets for the web."""


class Broken(ValueError):
    """Bytes that are not what they are said to be."""


class BrokenOff(Broken):
    """Bytes that have no end: the rest did not come."""


def accepted() -> str:
    """What we can unpack, as servers are told."""
    return ", ".join(name for name in ("gzip", "deflate", "zstd", "br") if _installed(name))


def unpacked(data: bytes, encoding: str, max_bytes: int) -> bytes:
    """The bytes under all layers; raises `TooLarge` as soon as there are too many."""
    layers = [name for part in encoding.lower().split(",") if (name := part.strip()) and name != "identity"]
    if len(layers) > MOST_LAYERS or not all(name in _UNPACKERS and _installed(name) for name in layers):
        raise Unreachable(
            f"The answer is packed in a way that nobody here can unpack: {encoding[:80]}.",
            hint="Try another page.",
        )
    arrived = len(data)
    try:
        for name in reversed(layers):
            data = _collected(_UNPACKERS[name], data, max_bytes)
    except BrokenOff:
        message = f"The answer broke off: {arrived:,} bytes arrived, and the end is not among them."
        raise Unreachable(message, hint="Try again, or another page.") from None
    except Broken as problem:
        message = f"The answer can't be unpacked: {problem}."
        raise Unreachable(message, hint="Try again, or another page.") from problem
    return data


def _collected(unpack: "Unpack", data: bytes, max_bytes: int) -> bytes:
    whole = bytearray()
    for piece in unpack(data):
        whole += piece
        if len(whole) > max_bytes:
            raise TooLarge(
                f"The answer unpacks to more than {max_bytes:,} bytes; the rest was left packed.",
                hint="Ask for a part of it, or for another page.",
            )
    return bytes(whole)


def _inflated(data: bytes, window: int) -> Iterator[bytes]:
    rest, at = data[:FED_BYTES], FED_BYTES
    while rest:
        machine = zlib.decompressobj(window)
        try:
            while not machine.eof:
                piece = machine.decompress(rest, PIECE_BYTES)
                rest = machine.unconsumed_tail
                if not rest and not machine.eof:
                    rest, at = data[at : at + FED_BYTES], at + FED_BYTES
                if not piece and not rest:
                    break
                yield piece
        except zlib.error as error:
            raise Broken(str(error)) from error
        if not machine.eof:
            raise BrokenOff
        if window <= zlib.MAX_WBITS:
            return
        # After the end of one member another may follow, and then zeros or nothing.
        rest = machine.unused_data.lstrip(b"\0")
        while not rest and at < len(data):
            rest, at = data[at : at + FED_BYTES].lstrip(b"\0"), at + FED_BYTES


def _gunzipped(data: bytes) -> Iterator[bytes]:
    return _inflated(data, zlib.MAX_WBITS | 16)


def _deflated(data: bytes) -> Iterator[bytes]:
    # Half of the servers leave out the frame that the standard asks for.
    framed = len(data) > 1 and data[0] & 0x0F == 8 and int.from_bytes(data[:2]) % 31 == 0
    return _inflated(data, zlib.MAX_WBITS if framed else -zlib.MAX_WBITS)


def _unbrotlied(data: bytes) -> Iterator[bytes]:
    import brotli

    machine = brotli.Decompressor()
    try:
        piece = machine.process(data, output_buffer_limit=PIECE_BYTES)
        yield piece
        while not machine.is_finished() and not (machine.can_accept_more_data() and not piece):
            piece = machine.process(b"", output_buffer_limit=PIECE_BYTES)
            yield piece
        if not machine.is_finished():
            raise BrokenOff
    except brotli.error as error:
        raise Broken(str(error)) from error


def _unzstandarded(data: bytes) -> Iterator[bytes]:
    import zstandard

    machine = zstandard.ZstdDecompressor(max_window_size=WINDOW_BYTES)
    try:
        with machine.stream_reader(BytesIO(data), read_across_frames=True) as reader:
            while piece := reader.read(PIECE_BYTES):
                yield piece
    except zstandard.ZstdError as error:
        raise Broken(str(error)) from error
    # The library takes the end of the bytes for the end of the page.
    if zstd_end(data) != len(data):
        raise BrokenOff


def _installed(name: str) -> bool:
    return name != "br" or find_spec("brotli") is not None


Unpack = Callable[[bytes], Iterator[bytes]]
_UNPACKERS: dict[str, Unpack] = {
    "gzip": _gunzipped,
    "x-gzip": _gunzipped,
    "deflate": _deflated,
    "br": _unbrotlied,
    "zstd": _unzstandarded,
}
