"""Visiting: a request made, paced and unpacked. Loaded with the first visit: it brings the HTTP library."""

import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from anyio import to_thread

from handtools.core.web import Answer, Findings, Query, Request
from handtools.host.web.answers import asked, is_challenge, location, media_type, retry_after
from handtools.host.web.connecting import Received, Sent, exchange
from handtools.host.web.engines.adapting import SetUp
from handtools.host.web.limits import Limits
from handtools.host.web.pacing import Pace
from handtools.host.web.unpacking import accepted, unpacked
from handtools.text.urls import Url

HOLD = 30.0
"""Seconds for which a server is left alone that wants us to wait and does not say how long."""


@dataclass(frozen=True, slots=True)
class Visiting:
    """Asks servers whose addresses have been vetted."""

    limits: Limits
    trusted: Callable[[], ssl.SSLContext]
    pace: Pace

    async def page(
        self, request: Request, addresses: tuple[str, ...], conditions: Mapping[str, str]
    ) -> Received:
        """The answer to a request; a guard that stops it is asked once more under our plain name."""
        received = await self._exchanged(request.url, {**asked(request.form), **conditions}, addresses)
        if is_challenge(received):
            plain = asked(request.form, plain=True)
            received = await self._exchanged(request.url, {**plain, **conditions}, addresses)
        return received

    def answer(self, request: Request, received: Received, addresses: tuple[str, ...]) -> Answer:
        """The answer unpacked, with what its headers mean."""
        kind, charset = media_type(received)
        return Answer(
            url=request.url,
            status=received.status,
            media_type=kind,
            charset=charset,
            location=location(received),
            retry_after=retry_after(received),
            received_bytes=len(received.body),
            data=self._unpacked(received),
            addresses=addresses,
        )

    async def search(self, engine: SetUp, query: Query, addresses: tuple[str, ...]) -> Findings:
        """What an engine finds. Nothing of what was sent is in an error: there are keys in it."""
        wish = engine.adapter.ask(query, engine.url, engine.key)
        headers = {"User-Agent": asked("html")["User-Agent"], "Accept-Encoding": accepted(), **wish.headers}
        received = await self._exchanged(wish.url, headers, addresses, wish.body)
        data = await to_thread.run_sync(self._unpacked, received)
        return engine.findings(received.status, retry_after(received), data, query)

    async def _exchanged(
        self, url: Url, headers: Mapping[str, str], addresses: tuple[str, ...], body: bytes = b""
    ) -> Received:
        await self.pace.turn(url.host)
        trust = await to_thread.run_sync(self.trusted) if url.scheme == "https" else None
        sent = Sent(url=url, headers=headers, body=body)
        received = await exchange(sent, addresses, self.limits, trust)
        if received.status == 429:
            wait = retry_after(received)
            self.pace.hold(url.host, HOLD if wait is None else wait)
        return received

    def _unpacked(self, received: Received) -> bytes:
        packed = received.headers.get("content-encoding", "")
        body = bytes(received.body)
        received.body.clear()
        return unpacked(body, packed, self.limits.page_bytes)
