"""A proxy before an S3 server that is slow, fails, and loses answers: what passes is a real request."""

import asyncio
import contextlib
import random
import threading
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

_MAX_HEAD_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class FaultRates:
    """How often what goes wrong; the rest is passed on at once."""

    slow: float = 0.05
    failed: float = 0.02
    """Answered with 503; the request never arrives."""
    silent: float = 0.005
    """Never answered; the request never arrives."""
    lost: float = 0.02
    """Done by the server, and the connection is closed before its answer."""
    slow_seconds: float = 0.3


class FaultyStore:
    """Listens on loopback and passes requests on to a server there."""

    def __init__(self, port: int, rates: FaultRates, seed: int) -> None:
        self.rates = rates
        self.counts: Counter[str] = Counter()
        self._target, self._dice = port, random.Random(seed)
        self._server: asyncio.Server | None = None
        self._closed = asyncio.Event()
        self._serving: set[asyncio.Task[None]] = set()
        self.is_faulty = True

    async def listen(self) -> int:
        """Start to listen; returns the port."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_MAX_HEAD_BYTES)
        port: int = self._server.sockets[0].getsockname()[1]
        return port

    async def aclose(self) -> None:
        """Stop; who still waits for an answer gets none."""
        self._closed.set()
        if self._server is not None:
            self._server.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._serving.add(task)  # nobody else holds it
        try:
            with contextlib.suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                await self._pass_on(reader, writer)
        finally:
            self._serving.discard(task)
            writer.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, out = await asyncio.open_connection("127.0.0.1", self._target, limit=_MAX_HEAD_BYTES)
        try:
            while not self._closed.is_set():
                head = await reader.readuntil(b"\r\n\r\n")
                fields = _fields(head)
                if fields.get(b"expect"):
                    writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
                body = await _body(reader, fields)
                fault = self._fault()
                self.counts[fault or "passed"] += 1
                if fault == "silent":
                    await self._closed.wait()
                    return
                if fault == "failed":
                    writer.write(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 0\r\n\r\n")
                    await writer.drain()
                    continue
                if fault == "slow":
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(self._closed.wait(), self.rates.slow_seconds)
                out.write(_without_expect(head) + body)
                answer = await there.readuntil(b"\r\n\r\n")
                if not head.startswith(b"HEAD "):
                    answer += await _body(there, _fields(answer))
                if fault == "lost":
                    return
                writer.write(answer)
                await writer.drain()
                if _fields(answer).get(b"connection", b"").lower() == b"close":
                    return
        finally:
            out.close()

    def _fault(self) -> str:
        if not self.is_faulty:
            return ""
        thrown = self._dice.random()
        for name in ("slow", "failed", "silent", "lost"):
            rate: float = getattr(self.rates, name)
            if thrown < rate:
                return name
            thrown -= rate
        return ""


@contextlib.contextmanager
def faulty_store(port: int, rates: FaultRates, seed: int) -> Iterator[tuple[FaultyStore, int]]:
    """The proxy and its port, in a thread of its own."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="faulty-store", daemon=True)
    thread.start()
    store = FaultyStore(port, rates, seed)
    try:
        yield store, asyncio.run_coroutine_threadsafe(store.listen(), loop).result(30)
    finally:
        asyncio.run_coroutine_threadsafe(store.aclose(), loop).result(30)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(30)


def _fields(head: bytes) -> dict[bytes, bytes]:
    lines = head.split(b"\r\n")[1:]
    return {
        name.strip().lower(): value.strip() for name, _, value in (line.partition(b":") for line in lines)
    }


def _without_expect(head: bytes) -> bytes:
    return b"\r\n".join(line for line in head.split(b"\r\n") if not line.lower().startswith(b"expect:"))


async def _body(reader: asyncio.StreamReader, fields: dict[bytes, bytes]) -> bytes:
    if fields.get(b"transfer-encoding", b"").lower() == b"chunked":
        parts = []
        while True:
            line = await reader.readuntil(b"\r\n")
            size = int(line.split(b";")[0], 16)
            parts += [line, await reader.readexactly(size + 2)]
            if not size:
                return b"".join(parts)
    return await reader.readexactly(int(fields.get(b"content-length", b"0")))
