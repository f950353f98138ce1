"""Print a command's output while it runs, line by line, and at its end only what is left to say."""

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
MOST_STREAMED_BYTES = 64 << 20
"""Most bytes that are streamed; of more the result shows the end, and where the whole is."""
CONTINUATION_MATCH_BYTES = 200
"""How many bytes must agree for new output to be taken for the continuation of what was printed."""
LAST_EVENT_SECONDS = 5.0


class CommandOutputPrinter:
    """Event listener that prints whole lines of a command's output, and knows what it has printed.

    An event has the last few kilobytes of the output, and the store all of it once it is long. What can't be told
    for sure is left to the end, when the result has it.
    """

    def __init__(self, outputs: Store, write: Callable[[str], None]) -> None:
        self._outputs = outputs
        self._write = write
        self._printed = ""
        """All that was printed, while the output is short; then its last lines."""
        self._offset: int | None = None
        """How many bytes of the stored output were printed; None while the output is short."""
        self._settled = threading.Event()

    def __call__(self, event: Event) -> None:
        """Print the new lines of the output that an event tells of."""
        if isinstance(event, Settled):
            self._settled.set()
        elif isinstance(event, Progressed):
            if event.path:
                self._print_stored(event.path, event.bytes)
            else:
                self._print_short(event)

    def rest(self, result: Result[Any]) -> str:
        """Return what of a result's text was not printed yet: the last lines, and how the command ended."""
        self._settled.wait(LAST_EVENT_SECONDS)
        if not self._printed:
            return result.text
        if self._offset is None:
            if result.text.startswith(self._printed):
                return result.text.removeprefix(self._printed)
            # A result leaves out empty lines at the end of the output.
            known = self._printed.rstrip("\n") + "\n"
            return result.text.removeprefix(known)
        path, size = getattr(result.details, "output_path", ""), getattr(result.details, "output_bytes", 0)
        if not path or size > MOST_STREAMED_BYTES:
            return result.text
        self._print_stored(path, size)
        left = plain_output(decode_output(self._stored(path, self._offset)))
        known = (self._printed + left).rstrip("\n")[-CONTINUATION_MATCH_BYTES:]
        _, found, ending = result.text.rpartition(known)
        if not known or not found:
            return result.text
        return "\n".join(part for part in (left.rstrip("\n"), ending.lstrip("\n")) if part)

    def _print_short(self, event: Progressed) -> None:
        lines = _whole_lines(event.text)
        if not event.clipped:
            if lines.startswith(self._printed):
                self._print(lines.removeprefix(self._printed))
            return
        # Only the end of the output is here: by the numbers of bytes, if they fit what was printed.
        known, tail = self._printed.encode(), lines.encode()
        new = event.bytes - len(event.text[len(lines) :].encode()) - len(known)
        context = min(CONTINUATION_MATCH_BYTES, len(known))
        if 0 < new <= len(tail) - context and tail[: len(tail) - new].endswith(
            known[len(known) - context :]
        ):
            self._print(tail[len(tail) - new :].decode(errors="replace"))

    def _print_stored(self, path: str, size: int) -> None:
        if self._offset is None and not self._begin_stored(path):
            return
        while self._offset is not None and self._offset < min(size, MOST_STREAMED_BYTES):
            data = self._stored(path, self._offset)
            whole = data[: data.rfind(b"\n") + 1]
            if not whole:
                return
            self._print(plain_output(decode_output(whole)))
            self._printed = self._printed[-OUTPUT_READ_CHUNK_BYTES:]
            self._offset += len(whole)

    def _begin_stored(self, path: str) -> bool:
        """Find in the stored output the place up to which it was printed."""
        data = self._stored(path, 0)
        whole = data[: data.rfind(b"\n") + 1]
        text = plain_output(decode_output(whole))
        if not whole or not text.startswith(self._printed):
            return False
        self._print(text.removeprefix(self._printed))
        self._offset = len(whole)
        return True

    def _stored(self, path: str, start: int) -> bytes:
        try:
            return self._outputs.part(path.removeprefix(OUTPUT_SCHEME), start, OUTPUT_READ_CHUNK_BYTES)
        except (KeyError, ToolError):
            return b""

    def _print(self, text: str) -> None:
        if text:
            self._printed += text
            self._write(text)


def _whole_lines(text: str) -> str:
    return text[: text.rfind("\n") + 1]
