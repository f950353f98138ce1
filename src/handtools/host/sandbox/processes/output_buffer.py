"""A command's output within bounds: head and tail in memory, more in a file, and exact totals."""

import contextlib
import os
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from handtools.core.commands import CommandOutput

BUFFER_HEAD_BYTES = 24 << 10
BUFFER_TAIL_BYTES = 48 << 10
"""How many bytes of the end of the output are kept in memory."""
SPILL_LINES = 800
"""From this number of lines on, output is also written to a file, even if the lines are short."""
_COPY_BYTES = 1 << 20


class OutputEnds:
    """The head and tail of an output, in memory, and its totals."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._head = bytearray()
        self._tail = bytearray()
        self.bytes = 0
        self.newlines = 0

    def feed(self, data: bytes) -> None:
        """Add the next bytes of output."""
        with self._lock:
            self._add(data)

    def _add(self, data: bytes) -> None:
        self.bytes += len(data)
        self.newlines += data.count(b"\n")
        room = BUFFER_HEAD_BYTES - len(self._head)
        if room > 0:
            self._head += data[:room]
        if rest := data[max(room, 0) :]:
            self._tail += rest[-BUFFER_TAIL_BYTES:]
            del self._tail[:-BUFFER_TAIL_BYTES]

    def withhold(self) -> None:
        """Discard all output so far."""
        with self._lock:
            self._head.clear()
            self._tail.clear()
            self.bytes = self.newlines = 0

    def snapshot(self) -> CommandOutput:
        """Return the output so far: its head, its tail if there is more, and totals.

        An unfinished line is counted.
        """
        with self._lock:
            head, tail = bytes(self._head), bytes(self._tail)
            lines = self.newlines + ((tail or head)[-1:] not in {b"", b"\n"})
            return CommandOutput(head=head, tail=tail, bytes=self.bytes, lines=lines)


class OutputBuffer(OutputEnds):
    """Collects output in memory and in a file of limited size.

    Half of the file is for the first bytes, the other half is a ring buffer of the newest.
    """

    def __init__(self, path: Path, limit: int) -> None:
        super().__init__()
        self._path = path
        self._front = limit // 2
        self._ring = max(limit - self._front, 1)
        self._file: int | None = None
        self.fault = ""
        """Why the file could not be written; empty if it could."""

    def feed(self, data: bytes) -> None:
        with self._lock:
            start = self.bytes
            self._add(data)
            if self.bytes > BUFFER_HEAD_BYTES or self.newlines >= SPILL_LINES:
                self._write_to_file(start, data)

    def withhold(self) -> None:
        """Discard all output so far and delete its file."""
        self.discard()
        self._file = None
        super().withhold()

    def snapshot(self) -> CommandOutput:
        """Return the output so far, with the name of its file if it is long enough to need one."""
        kept = "" if self._file is None else self._path.name
        return replace(super().snapshot(), kept=kept, dropped_bytes=self.dropped)

    @property
    def dropped(self) -> int:
        """How many bytes of output were lost: neither in memory nor in the file."""
        return max(self.bytes - self._front - self._ring, 0)

    def part(self, start: int, size: int) -> tuple[bytes, int]:
        """Read output from an offset; returns the bytes and their offset, later if bytes there were lost."""
        with self._lock:
            if self._file is None or self._file < 0:
                return self._ended_part(start, size)
            oldest = max(self.bytes - self._ring, self._front)
            begin = oldest if self._front <= start < oldest else min(start, self.bytes)
            end = self._front if begin < self._front < oldest else self.bytes
            return b"".join(self._stored_chunks(self._file, begin, min(begin + size, end))), begin

    def _stored_chunks(self, file: int, start: int, end: int) -> Iterator[bytes]:
        while start < end:
            at, room = self._file_position_and_room(start)
            piece = os.pread(file, min(end - start, room), at)
            if not piece:
                return
            yield piece
            start += len(piece)

    def _ended_part(self, start: int, size: int) -> tuple[bytes, int]:
        """Read output from an offset after `close`, from memory or from the file in reading order."""
        if self._file is None:
            begin = min(start, len(self._head))
            return bytes(self._head[begin : begin + size]), begin
        begin, gap = min(start, self.bytes), self.dropped
        if gap and begin >= self._front:
            begin = max(begin, self._front + gap)
            size = min(size, self.bytes - begin)
        elif gap:
            size = min(size, self._front - begin)
        at = begin if begin < self._front or not gap else begin - gap + len(_gap_line(gap))
        try:
            with open(self._path, "rb") as file:
                file.seek(at)
                return file.read(size), begin
        except OSError:  # the file was cleaned up
            return b"", begin

    def close(self) -> None:
        """Rewrite the file in reading order; no bytes can be added after this."""
        with self._lock:
            if self._file is None:
                return
            try:
                if self.bytes > self._front + self._ring:
                    self._rewrite_in_order(self._file)
            except OSError as error:
                self.fault = error.strerror or str(error)
            os.close(self._file)
            self._file = -1

    def discard(self) -> None:
        """Close the output file and delete it."""
        self.close()
        self._path.unlink(missing_ok=True)

    def _write_to_file(self, start: int, data: bytes) -> None:
        if self.fault:
            return
        try:
            if self._file is None:
                self._path.parent.mkdir(0o700, parents=True, exist_ok=True)
                flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
                self._file = os.open(self._path, flags, 0o600)
                # All output before this chunk is in the head.
                data, start = bytes(self._head[:start]) + data, 0
            view = memoryview(data)
            while view:
                at, room = self._file_position_and_room(start)
                written = os.pwrite(self._file, view[:room], at)
                start += written
                view = view[written:]
        except OSError as error:
            self.fault = error.strerror or str(error)

    def _file_position_and_room(self, offset: int) -> tuple[int, int]:
        """Return an output offset's position in the ring file, and how many contiguous bytes follow it."""
        if offset < self._front:
            return offset, self._front - offset
        turn = (offset - self._front) % self._ring
        return self._front + turn, self._ring - turn

    def _rewrite_in_order(self, file: int) -> None:
        """Rewrite the ring file in order: the first bytes, a line about the gap, then the newest bytes."""
        beside = self._path.with_name(f".{self._path.name}")
        target = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        try:
            turn = (self.bytes - self._front) % self._ring
            _copy_range(file, target, 0, self._front)
            os.write(target, _gap_line(self.dropped))
            _copy_range(file, target, self._front + turn, self._ring - turn)
            _copy_range(file, target, self._front, turn)
            os.replace(beside, self._path)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(beside)
            raise
        finally:
            os.close(target)


def _gap_line(dropped: int) -> bytes:
    return f"\n[… {dropped:,} bytes left out …]\n".encode()


def _copy_range(source: int, target: int, start: int, size: int) -> None:
    while size > 0:
        piece = os.pread(source, min(size, _COPY_BYTES), start)
        if not piece:
            return
        written = os.write(target, piece)
        start += written
        size -= written
