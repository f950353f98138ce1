"""Any amount of output in bounded memory and disk."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.core.commands import CommandOutput
from handtools.host.sandbox.processes import output_buffer
from handtools.host.sandbox.processes.output_buffer import OutputBuffer


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Small ends, so that small outputs have a middle."""
    monkeypatch.setattr(output_buffer, "BUFFER_HEAD_BYTES", 10)
    monkeypatch.setattr(output_buffer, "BUFFER_TAIL_BYTES", 10)
    monkeypatch.setattr(output_buffer, "SPILL_LINES", 1000)


def collected(tmp_path: Path, *pieces: bytes, limit: int = 1000) -> OutputBuffer:
    output = OutputBuffer(tmp_path / "out" / "kept.log", limit)
    for piece in pieces:
        output.feed(piece)
    return output


def test_a_small_output_needs_no_file(tmp_path):
    output = collected(tmp_path, b"abc\n", b"d")
    assert output.snapshot() == CommandOutput(head=b"abc\nd", tail=b"", bytes=5, lines=2)
    output.close()
    assert not (tmp_path / "out").exists()


def test_a_larger_one_is_whole_in_its_file(tmp_path):
    data = bytes(range(48, 98))
    output = collected(tmp_path, data[:7], data[7:30], data[30:])
    assert output.snapshot() == CommandOutput(
        head=data[:10], tail=data[-10:], bytes=50, lines=1, kept="kept.log"
    )
    output.close()
    assert (tmp_path / "out" / "kept.log").read_bytes() == data
    assert (tmp_path / "out" / "kept.log").stat().st_mode & 0o777 == 0o600


def test_many_short_lines_are_kept_too(tmp_path, monkeypatch):
    monkeypatch.setattr(output_buffer, "SPILL_LINES", 3)
    output = collected(tmp_path, b"a\n", b"b\nc\nd\n", b"e\n")
    assert output.snapshot().head == b"a\nb\nc\nd\ne\n"
    assert output.snapshot().kept == "kept.log"
    output.close()
    assert (tmp_path / "out" / "kept.log").read_bytes() == b"a\nb\nc\nd\ne\n"


def test_beyond_the_limit_the_middle_goes_and_that_is_said(tmp_path):
    data = os.urandom(1000)
    output = collected(tmp_path, *(data[at : at + 37] for at in range(0, 1000, 37)), limit=100)
    assert output.snapshot().dropped_bytes == 900
    output.close()
    kept = (tmp_path / "out" / "kept.log").read_bytes()
    assert kept.startswith(data[:50])
    assert kept.endswith(data[-50:])
    assert "900 bytes left out" in kept.decode("utf-8", "replace")


def test_a_full_disk_costs_the_file_and_not_the_command(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.pwrite", full)
    output = collected(tmp_path, b"x" * 50)
    assert output.fault == "No space left on device"
    assert output.bytes == 50
    output.close()


@pytest.mark.parametrize("last", [b"", b"\n", b"x"])
def test_lines_are_counted_over_all_of_it(tmp_path, last):
    output = collected(tmp_path, b"line\n" * 1000, last, limit=100)
    assert output.snapshot().lines == 1000 + (last != b"")


@given(
    st.lists(st.binary(min_size=1, max_size=40), max_size=30),
    st.integers(2, 200),
    st.integers(0, 900),
    st.integers(1, 300),
)
def test_a_part_is_what_was_printed_there(tmp_path_factory, pieces, limit, start, size):
    data = b"".join(pieces)
    output = collected(tmp_path_factory.mktemp("part"), *pieces, limit=limit)
    during, place = output.part(start, size)
    output.close()
    after, again = output.part(start, size)
    for part, begin in ((during, place), (after, again)):
        assert data[begin : begin + len(part)] == part
        assert begin >= min(start, len(data))
        if begin < len(data):
            assert part, "a page that is not at the end holds something"
    if len(data) <= limit:
        assert during == after == data[start : start + size]
