"""What servers compress comes out whole, or is refused."""

import gzip
import tracemalloc
import zlib
from contextlib import suppress

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from handtools.core.errors import TooLarge, Unreachable
from handtools.host.web.unpacking import accepted, unpacked

PACKERS = {
    "gzip": gzip.compress,
    "x-gzip": lambda data: gzip.compress(data[:5]) + gzip.compress(data[5:]) + b"\0\0",
    "deflate": zlib.compress,
    "br": lambda data: brotli.compress(data, quality=1),
    "zstd": zstandard.compress,
    "identity": bytes,
    "": bytes,
}
ENCODINGS = st.sampled_from([*PACKERS])


@given(st.binary(max_size=5_000), ENCODINGS, ENCODINGS)
def test_what_was_packed_is_unpacked(data, inner, outer):
    packed = PACKERS[outer](PACKERS[inner](data))
    assert unpacked(packed, f"{inner}, {outer}", 10_000) == data


@given(st.binary(max_size=300), ENCODINGS)
def test_any_bytes_are_unpacked_or_refused(data, encoding):
    with suppress(TooLarge, Unreachable):
        assert len(unpacked(data, encoding, 1_000)) <= 1_000


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_a_bomb_is_left_packed_and_takes_no_memory(encoding):
    packed = bytes(80 << 20)
    for layer in encoding.split(", "):
        packed = PACKERS[layer](packed)
    tracemalloc.start()
    with pytest.raises(TooLarge, match="unpacks to more than"):
        unpacked(packed, encoding, 1 << 20)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_more_layers_than_anyone_needs_are_refused():
    with pytest.raises(Unreachable):
        unpacked(b"", "gzip, gzip, gzip", 10)


def test_the_server_is_told_what_can_be_unpacked():
    assert accepted() == "gzip, deflate, zstd, br"


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br"])
def test_what_breaks_off_is_no_page(encoding):
    whole = PACKERS[encoding](b"a page that has an end " * 40)
    with pytest.raises(Unreachable, match="breaks off"):
        unpacked(whole[:-6], encoding, 1 << 20)
