"""Cancelling: the caller's own cancellation passes; one that nobody asked for is a failure like any other."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager


class StrayCancellation(Exception):
    """Code that we called raised a cancellation, and nobody had cancelled the call."""


@contextmanager
def only_the_callers() -> Iterator[None]:
    """Let a cancellation out only if this task was cancelled meanwhile.

    Whoever waits for a task that was cancelled is sent the same exception as whoever was cancelled; what tells the
    two apart is the number of cancellations the task itself has had.
    """
    before = _cancellations()
    try:
        yield
    except asyncio.CancelledError as cancelled:
        if _cancellations() > before:
            raise
        raise StrayCancellation("it was cancelled, but not by the caller") from cancelled


def _cancellations() -> int:
    try:
        task = asyncio.current_task()
    except RuntimeError:
        # Another event loop than asyncio's: it raises its cancellations itself, and no one else can.
        return 0
    return task.cancelling() if task else 0
