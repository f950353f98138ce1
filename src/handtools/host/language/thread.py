"""A thread with an event loop for all language servers of this process.

Servers outlive the loop of whoever asks: a program may run one for each call, or two at once.
"""

import asyncio
import atexit
import concurrent.futures
import contextlib
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

import anyio
import anyio.lowlevel

from handtools.host.language.pool import Pool

T = TypeVar("T")
CLOSE_SECONDS = 15.0


class LanguageThread:
    """Started when first used, ended with the process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._owner = 0
        self._pool: Pool | None = None

    @property
    def pool(self) -> Pool:
        """The servers."""
        self._begin()
        assert self._pool is not None
        return self._pool

    def submit(self, work: Coroutine[Any, Any, T]) -> "concurrent.futures.Future[T]":
        """Have something done on the thread."""
        return asyncio.run_coroutine_threadsafe(work, self._begin())

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Have something done on the thread, and wait for it on any event loop; cancelled with us."""
        done, token = anyio.Event(), anyio.lowlevel.current_token()
        # Not `from_thread`: that would keep the servers waiting until we have taken note.
        native: Any = getattr(token, "native_token", token)
        soon = getattr(native, "call_soon_threadsafe", None) or native.run_sync_soon
        future = self.submit(work)

        def wake(_: object) -> None:
            # Whoever waited may have gone, loop and all.
            with contextlib.suppress(RuntimeError):
                soon(done.set)

        future.add_done_callback(wake)
        try:
            await done.wait()
        finally:
            if not future.done():
                future.cancel()
        return future.result()

    def close(self) -> None:
        """End all servers."""
        if self._owner == os.getpid() and self._loop is not None and self._pool is not None:
            try:
                asyncio.run_coroutine_threadsafe(self._pool.close(), self._loop).result(CLOSE_SECONDS)
            except concurrent.futures.TimeoutError:
                return  # their supervisors end them

    def _begin(self) -> asyncio.AbstractEventLoop:
        with self._lock:
            if self._loop is None or self._owner != os.getpid():
                # After a fork the thread is our parent's.
                self._owner = os.getpid()
                self._loop = asyncio.new_event_loop()
                self._pool = Pool()
                threading.Thread(
                    target=self._loop.run_forever, name="handtools-language", daemon=True
                ).start()
                atexit.register(self.close)
            return self._loop


THREAD = LanguageThread()
