"""Print a command's output line by line while it runs, and the rest of its result when it ends."""

import threading
from collections.abc import Callable
from typing import Any

from handtools.core.backups_locks_and_store import Store
from handtools.core.errors import ToolError
from handtools.core.events import Event, Progressed, Settled
from handtools.core.result import Result
from handtools.runtime.guards.files import OUTPUT_SCHEME
from handtools.text.terminal_emulator import decode_output, plain_output

STREAMED_TOOLS = ("bash",)
OUTPUT_READ_CHUNK_BYTES = 1 << 20
MAX_STREAMED_BYTES = 64 << 20
"""Maximum bytes to stream; if there is more, the result shows the end and where the full output is stored."""
CONTINUATION_MATCH_BYTES = 200
"""How many bytes must match for new output to count as the continuation of the printed output."""
LAST_EVENT_SECONDS = 5.0


class CommandOutputPrinter:
    """Event listener that prints complete lines of a command's output, and tracks what it has printed.

    An event carries the last few kilobytes of the output; long output is also in the store. If new output
    can't be aligned reliably with what was printed, it is printed at the end, from the result.
    """

    def __init__(self, output_store: Store, write: Callable[[str], None]) -> None:
        self._output_store = output_store
        self._write = write
        self._printed = ""
        """Everything printed so far while the output is short; later, only its last part."""
        self._offset: int | None = None
        """How many bytes of the stored output were printed; None while the output is not stored."""
        self._settled = threading.Event()

    def __call__(self, event: Event) -> None:
        """Print the new lines of output in an event."""
        if isinstance(event, Settled):
            self._settled.set()
        elif isinstance(event, Progressed):
            if event.path:
                self._print_from_stored_output(event.path, event.bytes)
            else:
                self._print_from_event(event)

    def rest(self, result: Result[Any]) -> str:
        """Return the part of a result's text not printed yet: the last lines and how the command ended."""
        self._settled.wait(LAST_EVENT_SECONDS)
        if not self._printed:
            return result.text
        if self._offset is None:
            if result.text.startswith(self._printed):
                return result.text.removeprefix(self._printed)
            # A result omits empty lines at the end of the output.
            known = self._printed.rstrip("\n") + "\n"
            return result.text.removeprefix(known)
        path, size = getattr(result.details, "output_path", ""), getattr(result.details, "output_bytes", 0)
        if not path or size > MAX_STREAMED_BYTES:
            return result.text
        self._print_from_stored_output(path, size)
        left = plain_output(decode_output(self._read_stored_chunk(path, self._offset)))
        known = (self._printed + left).rstrip("\n")[-CONTINUATION_MATCH_BYTES:]
        _, found, ending = result.text.rpartition(known)
        if not known or not found:
            return result.text
        return "\n".join(part for part in (left.rstrip("\n"), ending.lstrip("\n")) if part)

    def _print_from_event(self, progress: Progressed) -> None:
        lines = _text_up_to_last_newline(progress.text)
        if not progress.clipped:
            if lines.startswith(self._printed):
                self._print_lines(lines.removeprefix(self._printed))
            return
        # The event has only the end of the output: find the new part by byte counts, and check the overlap.
        known, tail = self._printed.encode(), lines.encode()
        new = progress.bytes - len(progress.text[len(lines) :].encode()) - len(known)
        context = min(CONTINUATION_MATCH_BYTES, len(known))
        if 0 < new <= len(tail) - context and tail[: len(tail) - new].endswith(
            known[len(known) - context :]
        ):
            self._print_lines(tail[len(tail) - new :].decode(errors="replace"))

    def _print_from_stored_output(self, path: str, size: int) -> None:
        if self._offset is None and not self._switch_to_stored_output(path):
            return
        while self._offset is not None and self._offset < min(size, MAX_STREAMED_BYTES):
            data = self._read_stored_chunk(path, self._offset)
            whole = data[: data.rfind(b"\n") + 1]
            if not whole:
                return
            self._print_lines(plain_output(decode_output(whole)))
            self._printed = self._printed[-OUTPUT_READ_CHUNK_BYTES:]
            self._offset += len(whole)

    def _switch_to_stored_output(self, path: str) -> bool:
        """Switch to the stored output: print its new lines and set the offset.

        Returns False if it does not begin with the text printed so far.
        """
        data = self._read_stored_chunk(path, 0)
        whole = data[: data.rfind(b"\n") + 1]
        text = plain_output(decode_output(whole))
        if not whole or not text.startswith(self._printed):
            return False
        self._print_lines(text.removeprefix(self._printed))
        self._offset = len(whole)
        return True

    def _read_stored_chunk(self, path: str, start: int) -> bytes:
        try:
            return self._output_store.part(path.removeprefix(OUTPUT_SCHEME), start, OUTPUT_READ_CHUNK_BYTES)
        except (KeyError, ToolError):
            return b""

    def _print_lines(self, text: str) -> None:
        if text:
            self._printed += text
            self._write(text)


def _text_up_to_last_newline(text: str) -> str:
    return text[: text.rfind("\n") + 1]
