"""Frames: output is told from the wrapper's word, however the bytes come in pieces."""

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from handtools.host.sandbox.containers.container_exec import DockerStreamDecoder


def framed(kind: int, data: bytes) -> bytes:
    return bytes([kind, 0, 0, 0]) + len(data).to_bytes(4, "big") + data


def fed(frames: DockerStreamDecoder, data: bytes, cuts: list[int]) -> bytes:
    places = [0, *sorted(cut % (len(data) + 1) for cut in cuts), len(data)]
    pieces = [data[start:end] for start, end in pairwise(places)]
    return b"".join(bytes(part) for piece in pieces for part in frames.decode_chunk(piece))


@given(
    st.lists(st.tuples(st.sampled_from([1, 2]), st.binary(max_size=40)), max_size=8),
    st.lists(st.integers(0, 999)),
)
def test_the_output_comes_out_whole_however_it_is_cut(parts, cuts):
    data = b"".join(framed(kind, part) for kind, part in parts)
    assert fed(DockerStreamDecoder(), data, cuts) == b"".join(part for kind, part in parts if kind == 1)


@given(st.integers(0, 10**6), st.binary(max_size=5000), st.lists(st.integers(0, 9999), max_size=6))
def test_the_last_word_says_how_many_were_left(count, noise, cuts):
    frames = DockerStreamDecoder()
    fed(frames, framed(2, noise) + framed(2, b"\nleft %d\n" % count), cuts)
    assert frames.left_process_count == count


def test_without_a_last_word_nothing_is_known():
    frames = DockerStreamDecoder()
    fed(frames, framed(1, b"left 3\n") + framed(2, b"Killed\n"), [])
    assert frames.left_process_count is None


def test_a_terminal_has_no_frames():
    assert (
        fed(DockerStreamDecoder(whole=True), b"\x01\x00\x00\x00anything", [3])
        == b"\x01\x00\x00\x00anything"
    )


def test_a_command_that_did_not_begin_is_noticed_with_and_without_frames():
    framing, terminal = DockerStreamDecoder(word=b"secret"), DockerStreamDecoder(whole=True, word=b"secret")
    assert fed(framing, framed(2, b"secret"), [2, 9]) == b""
    assert fed(terminal, b"secret", []) == b""
    assert framing.refused
    assert terminal.refused
    later = DockerStreamDecoder(whole=True, word=b"secret")
    assert fed(later, b"not asecret", [5]) == b"not asecret"
    printing = DockerStreamDecoder(word=b"secret")
    fed(printing, framed(1, b"secret"), [])
    assert not printing.refused
