"""What servers compress comes out whole, or is refused."""

import gzip
import time
import tracemalloc
import zlib
from contextlib import suppress

import brotli
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from handtools.core.errors import TooLarge, Unreachable
from handtools.host.web.http_client import accept_encoding, decoded_body, zstd_end

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
    assert decoded_body(packed, f"{inner}, {outer}", 10_000) == data


@given(st.lists(st.binary(max_size=9_000), max_size=4), st.integers(0, 9_000))
def test_members_and_zeros_of_any_length_are_one_page(pages, zeros):
    packed = b"".join(gzip.compress(page, 0) for page in pages) + (bytes(zeros) if pages else b"")
    assert decoded_body(packed, "gzip", 100_000) == b"".join(pages)


def test_a_page_of_nothing_but_members_takes_time_as_it_is_long():
    member = gzip.compress(b"")
    seconds = []
    for count in (20_000, 80_000):
        start = time.process_time()
        assert decoded_body(member * count, "gzip", 10) == b""
        seconds.append(time.process_time() - start)
    assert seconds[1] < 10 * seconds[0]


@given(st.binary(max_size=300), ENCODINGS)
def test_any_bytes_are_unpacked_or_refused(data, encoding):
    with suppress(TooLarge, Unreachable):
        assert len(decoded_body(data, encoding, 1_000)) <= 1_000


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "br", "zstd", "gzip, gzip"])
def test_a_bomb_is_left_packed_and_takes_no_memory(encoding):
    packed = bytes(80 << 20)
    for layer in encoding.split(", "):
        packed = PACKERS[layer](packed)
    tracemalloc.start()
    with pytest.raises(TooLarge, match="decompresses to more than"):
        decoded_body(packed, encoding, 1 << 20)
    assert tracemalloc.get_traced_memory()[1] < 8 << 20
    tracemalloc.stop()


def test_more_layers_than_anyone_needs_are_refused():
    with pytest.raises(Unreachable):
        decoded_body(b"", "gzip, gzip, gzip", 10)


def test_the_server_is_told_what_can_be_unpacked():
    assert accept_encoding() == "gzip, deflate, zstd, br"


FRAMES = [
    zstandard.ZstdCompressor(write_checksum=checked, write_content_size=sized).compress
    for checked in (False, True)
    for sized in (False, True)
]
SKIPPED = 0x184D2A53.to_bytes(4, "little") + (3).to_bytes(4, "little") + b"abc"


@given(st.data(), st.sampled_from(["gzip", "deflate", "br", "zstd"]))
def test_what_breaks_off_anywhere_is_no_page_and_says_how_much_arrived(data, encoding):
    page = data.draw(st.binary(min_size=1, max_size=3_000))
    whole = PACKERS[encoding](page * data.draw(st.sampled_from([1, 100])))
    cut = data.draw(st.integers(1, len(whole) - 1))
    with pytest.raises(
        Unreachable, match=f"The response is incomplete: only {cut:,} bytes arrived"
    ) as told:
        decoded_body(whole[:cut], encoding, 1 << 20)
    assert told.value.hint


@given(st.data(), st.lists(st.sampled_from([*FRAMES, lambda _: SKIPPED]), min_size=1, max_size=4))
def test_the_end_of_frames_is_known_by_their_own_words(data, packers):
    page = data.draw(st.binary(max_size=1_000)) * data.draw(st.sampled_from([1, 300]))
    frames = [pack(page) for pack in packers]
    whole = b"".join(frames)
    assert zstd_end(whole) == len(whole)
    cut = data.draw(st.integers(1, len(frames[-1]) - 1))
    assert zstd_end(whole[:-cut]) > len(whole) - cut


@given(st.binary(max_size=200), st.sampled_from([b"", SKIPPED[:4], b"\x28\xb5\x2f\xfd"]))
def test_any_bytes_have_an_end_not_before_theirs(data, start):
    assert zstd_end(start + data) >= len(start + data)
