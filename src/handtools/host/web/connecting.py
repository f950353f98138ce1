"""Connecting: one request over one connection, to an address that was vetted and to no other."""

import ssl
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import cast

import anyio
import httpcore2

from handtools.core.errors import TimedOut, TooLarge, Unreachable
from handtools.host.web.limits import Limits
from handtools.text.urls import Url

Headers = Mapping[str, str]
_AGAIN = "Try again, or another page."


class PinnedBackend(httpcore2.AsyncNetworkBackend):
    """Opens connections to given addresses, whatever name it is told."""

    def __init__(self, addresses: tuple[str, ...]) -> None:
        self._addresses = addresses
        # Without anyio, which we always have, this name would be another class.
        self._network = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,  # noqa: ARG002 — the name has been looked up, and might lead elsewhere by now
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """The first of the addresses that answers."""
        share = None if timeout is None else timeout / len(self._addresses)
        failure: Exception = httpcore2.ConnectError("there is no address")
        for address in self._addresses:
            try:
                return await self._network.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A request as it goes over the wire."""

    url: Url
    headers: Headers
    body: bytes = b""

    @property
    def method(self) -> str:
        """Something is posted where there is something to post."""
        return "POST" if self.body else "GET"


@dataclass(slots=True)
class Received:
    """An answer as it came over the wire: still packed."""

    status: int
    headers: dict[str, str]
    body: bytearray = field(default_factory=bytearray)


async def exchange(
    sent: Sent, addresses: tuple[str, ...], limits: Limits, trust: ssl.SSLContext | None
) -> Received:
    """Send, and take the answer as far as it is within the limits."""
    url = sent.url
    origin = httpcore2.Origin(url.scheme.encode(), url.host.encode(), url.port)
    target = httpcore2.URL(
        scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.rest.encode()
    )
    headers = [(b"Host", url.authority.encode()), (b"Connection", b"close")]
    # As bytes came in, so they go out: an `ETag` may hold any.
    headers += [(name.encode(), value.encode("latin-1")) for name, value in sent.headers.items()]
    patience = {"connect": limits.connect, "read": limits.silence, "write": limits.silence}
    line = httpcore2.AsyncHTTPConnection(origin, trust, network_backend=PinnedBackend(addresses))
    try:
        with anyio.fail_after(limits.total):
            async with (
                line,
                line.stream(
                    sent.method,
                    target,
                    headers=headers,
                    content=sent.body or None,
                    extensions={"timeout": patience},
                ) as response,
            ):
                return await _taken(response, url, limits)
    except TimeoutError as error:
        message = f"{url.host} is too slow: it was given {limits.total:g} s in all."
        raise TimedOut(message, hint=_AGAIN) from error
    except httpcore2.ConnectTimeout as error:
        raise TimedOut(f"{url.host} did not answer within {limits.connect:g} s.", hint=_AGAIN) from error
    except httpcore2.TimeoutException as error:
        raise TimedOut(f"{url.host} said nothing for {limits.silence:g} s.", hint=_AGAIN) from error
    except httpcore2.LocalProtocolError:
        # Its words quote what was to be sent, and there may be a key in it.
        message = f"{url.host} can't be asked: the request can't be sent as it is."
        raise Unreachable(message, hint="Write the address in another way, or tell the person.") from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
        reason = str(error).strip().rstrip(".") or "the connection broke"
        hint = "Check the address, or try another source."
        raise Unreachable(f"{url.host} can't be reached: {reason}.", hint=hint) from error


async def _taken(response: httpcore2.Response, url: Url, limits: Limits) -> Received:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
    received = Received(response.status, headers)
    announced = headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limits.page_bytes:
        raise TooLarge(
            f"{url.host} announces {int(announced):,} bytes; at most {limits.page_bytes:,} are taken.",
            hint="Ask for a part of it, or for another page.",
        )
    if 300 <= received.status < 400:
        return received
    try:
        async for piece in response.aiter_stream():
            received.body += piece
            if len(received.body) > limits.page_bytes:
                raise TooLarge(
                    f"{url.host} sends more than {limits.page_bytes:,} bytes; the rest was not taken.",
                    hint="Ask for a part of it, or for another page.",
                )
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
        of = f" of {int(announced):,}" if announced.isdecimal() else ""
        raise Unreachable(
            f"{url.host} broke off in the middle of its answer: {len(received.body):,}{of} bytes arrived.",
            hint=_AGAIN,
        ) from error
    return received
