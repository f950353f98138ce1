"""The keyboard: what a person answers, or Ctrl-C, whichever comes first."""

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console


def interactive() -> bool:
    """Whether there is a person who sees a question and can answer it."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def answered(console: "Console", question: str) -> str:
    """One line; empty when the input ends or the person presses Ctrl-C."""
    try:
        console.print(question, end="", soft_wrap=True)
        return _typed_line().strip()
    except (EOFError, KeyboardInterrupt):
        console.print()
        return ""


def confirmed(console: "Console", question: str) -> bool:
    """Whether a person says yes; anything else is a no."""
    return answered(console, f"{question} [y/N] ").lower() in {"y", "yes"}


def _typed_line() -> str:
    """One line, without its end; `EOFError` when the input ends, `KeyboardInterrupt` on Ctrl-C.

    A Ctrl-C in the instant before `input` begins to read would be noticed only after the next key. So both are
    waited for, and only a line that is there is read.
    """
    if sys.platform == "win32":
        return input()
    with _noticed() as signals:
        while sys.stdin not in (ready := select.select([sys.stdin, signals], [], [])[0]):
            # Python runs the handler between these two lines; Ctrl-C does not come any further.
            if signals in ready:
                os.read(signals, 64)
    line = sys.stdin.readline()
    if not line:
        raise EOFError
    return line.rstrip("\n")


@contextmanager
def _noticed() -> Iterator[int]:
    """A file that can be read from as soon as a signal has come, wherever Python was at that moment."""
    reading, writing = os.pipe()
    os.set_blocking(writing, False)
    before = signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
    try:
        yield reading
    finally:
        signal.set_wakeup_fd(before)
        os.close(reading)
        os.close(writing)
