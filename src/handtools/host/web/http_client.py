"""The HTTP client: one request to checked addresses, rate-limited, with body and headers decoded.

It is imported on the first request, because it imports the HTTP library.
"""

import ssl
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.message import Message
from email.utils import parsedate_to_datetime
from importlib.util import find_spec
from io import BytesIO
from typing import cast
from urllib.parse import unquote, urlsplit

import anyio
import httpcore2
from anyio import to_thread

from handtools.core.errors import TimedOut, TooLarge, Unreachable
from handtools.core.web import PageForm, WebQuery, WebRequest, WebResponse, WebSearchHits
from handtools.host.web.request_limits import RateLimiter, ResponseLimits
from handtools.host.web.search_engines import ConfiguredEngine
from handtools.text.web.url import Url

HttpHeaders = Mapping[str, str]
_RETRY_HINT = "Try again, or another page."


class PinnedBackend(httpcore2.AsyncNetworkBackend):
    """A network backend that connects to given addresses, regardless of the host name."""

    def __init__(self, addresses: tuple[str, ...]) -> None:
        self._addresses = addresses
        # The cast is safe: httpcore2 exports another class under this name only if anyio is missing.
        self._network = cast("httpcore2.AsyncNetworkBackend", httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,  # noqa: ARG002 — we looked it up before; it could resolve differently now
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        """Connect to the first of the given addresses that accepts a connection."""
        share = None if timeout is None else timeout / len(self._addresses)
        failure: Exception = httpcore2.ConnectError("no address")
        for address in self._addresses:
            try:
                return await self._network.connect_tcp(address, port, share, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as error:
                failure = error
        raise failure


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundHttpRequest:
    """An HTTP request as it is sent: URL, headers, body."""

    url: Url
    headers: HttpHeaders
    body: bytes = b""

    @property
    def method(self) -> str:
        """The HTTP method: POST with a body, otherwise GET."""
        return "POST" if self.body else "GET"


@dataclass(slots=True)
class RawHttpResponse:
    """An HTTP response as it was received, with the body still encoded."""

    status: int
    headers: dict[str, str]
    body: bytearray = field(default_factory=bytearray)


def proxy_connection(proxy: str, trust: ssl.SSLContext | None) -> httpcore2.AsyncHTTPProxy:
    """Return a connection through an HTTP proxy, given as `http://[USER:PASSWORD@]HOST:PORT`."""
    parts = urlsplit(proxy)
    auth = (unquote(parts.username), unquote(parts.password or "")) if parts.username else None
    return httpcore2.AsyncHTTPProxy(
        httpcore2.URL(scheme=b"http", host=(parts.hostname or "").encode(), port=parts.port, target=b"/"),
        proxy_auth=auth,
        ssl_context=trust,
    )


async def send_request(
    request: OutboundHttpRequest,
    addresses: tuple[str, ...],
    limits: ResponseLimits,
    trust: ssl.SSLContext | None,
    proxy: str = "",
) -> RawHttpResponse:
    """Send a request to one of the addresses or through a proxy, and read the response within limits."""
    url = request.url
    origin = httpcore2.Origin(url.scheme.encode(), url.host.encode(), url.port)
    target = httpcore2.URL(
        scheme=url.scheme.encode(), host=url.host.encode(), port=url.port, target=url.rest.encode()
    )
    headers = [(b"Host", url.authority.encode()), (b"Connection", b"close")]
    # latin-1 sends received bytes back unchanged: an `ETag` may contain any byte.
    headers += [(name.encode(), value.encode("latin-1")) for name, value in request.headers.items()]
    patience = {"connect": limits.connect, "read": limits.silence, "write": limits.silence}
    line: httpcore2.AsyncHTTPConnection | httpcore2.AsyncHTTPProxy
    if proxy:
        line = proxy_connection(proxy, trust)
    else:
        line = httpcore2.AsyncHTTPConnection(origin, trust, network_backend=PinnedBackend(addresses))
    try:
        with anyio.fail_after(limits.total):
            async with (
                line,
                line.stream(
                    request.method,
                    target,
                    headers=headers,
                    content=request.body or None,
                    extensions={"timeout": patience},
                ) as response,
            ):
                return await _read_response(response, url, limits)
    except TimeoutError as error:
        message = f"{url.host} is too slow: no complete response within {limits.total:g} s."
        raise TimedOut(message, hint=_RETRY_HINT) from error
    except httpcore2.ConnectTimeout as error:
        raise TimedOut(
            f"Connecting to {url.host} timed out after {limits.connect:g} s.", hint=_RETRY_HINT
        ) from error
    except httpcore2.TimeoutException as error:
        raise TimedOut(f"{url.host} sent no data for {limits.silence:g} s.", hint=_RETRY_HINT) from error
    except httpcore2.ProxyError as error:
        message = f"Can't reach {url.host}: the proxy reports {error}."
        raise Unreachable(message, hint="Tell the user: the proxy in their settings refuses it.") from error
    except httpcore2.LocalProtocolError:
        # Its message quotes the request, which may contain a key.
        message = f"Can't send the request to {url.host}: it is not valid HTTP."
        raise Unreachable(message, hint="Write the URL differently, or tell the user.") from None
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
        reason = str(error).strip().rstrip(".") or "the connection was lost"
        hint = "Check the URL, or try another source."
        raise Unreachable(f"Can't reach {url.host}: {reason}.", hint=hint) from error


async def _read_response(response: httpcore2.Response, url: Url, limits: ResponseLimits) -> RawHttpResponse:
    headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
    http_response = RawHttpResponse(response.status, headers)
    announced = headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > limits.page_bytes:
        raise TooLarge(
            f"The response of {url.host} has {int(announced):,} bytes; the limit is {limits.page_bytes:,}.",
            hint="Request a part of it, or another page.",
        )
    if 300 <= http_response.status < 400:
        return http_response
    try:
        async for piece in response.aiter_stream():
            http_response.body += piece
            if len(http_response.body) > limits.page_bytes:
                raise TooLarge(
                    f"{url.host} sent more than {limits.page_bytes:,} bytes; it was not read further.",
                    hint="Request a part of it, or another page.",
                )
    except (httpcore2.NetworkError, httpcore2.ProtocolError, OSError) as error:
        of = f" of {int(announced):,}" if announced.isdecimal() else ""
        raise Unreachable(
            f"{url.host} closed the connection early: {len(http_response.body):,}{of} bytes arrived.",
            hint=_RETRY_HINT,
        ) from error
    return http_response


ACCEPT_HEADERS: dict[PageForm, str] = {
    "markdown": "text/markdown, text/html;q=0.9, application/xhtml+xml;q=0.9, text/plain;q=0.8, */*;q=0.1",
    "text": "text/plain, text/markdown;q=0.9, text/html;q=0.8, application/xhtml+xml;q=0.8, */*;q=0.1",
    "html": "text/html, application/xhtml+xml;q=0.9, text/plain;q=0.8, text/markdown;q=0.7, */*;q=0.1",
}
USER_AGENT = "Mozilla/5.0 (compatible; handtools/0.1)"
PLAIN_USER_AGENT = "handtools"
"""The user agent for a second try: some bot filters block clients that claim to be browsers."""
_REDIRECT_STATUSES = frozenset({301, 302, 303, 307, 308})


def page_headers(form: PageForm, *, plain: bool = False) -> dict[str, str]:
    """Return the request headers for a page in the requested form; with `plain`, our plain user agent."""
    return {
        "User-Agent": PLAIN_USER_AGENT if plain else USER_AGENT,
        "Accept": ACCEPT_HEADERS[form],
        "Accept-Encoding": accept_encoding(),
        "Accept-Language": "en;q=0.9, *;q=0.5",
    }


def content_type_of(response: RawHttpResponse) -> tuple[str, str]:
    """Return the media type and charset from a response's Content-Type."""
    message = Message()
    message["Content-Type"] = response.headers.get("content-type", "").replace("\n", " ") or "x-unsaid/x"
    kind = message.get_content_type()
    try:
        charset = message.get_param("charset", "")
    except TypeError:  # the library can't sort RFC 2231 parts if only some are numbered
        charset = ""
    return ("" if kind == "x-unsaid/x" else kind), charset if isinstance(charset, str) else ""


def redirect_location(response: RawHttpResponse) -> str:
    """Return the target of a redirect from the Location header, which may be UTF-8; empty if there is none."""
    if response.status not in _REDIRECT_STATUSES:
        return ""
    written = response.headers.get("location", "")
    try:
        return written.encode("latin-1").decode()
    except UnicodeDecodeError:
        return written


def retry_after_seconds(response: RawHttpResponse) -> float | None:
    """Return the seconds until the time in a response's Retry-After header; None if there is none."""
    written = response.headers.get("retry-after", "").strip()
    if written.isdecimal():
        return float(written)
    try:
        when = parsedate_to_datetime(written)
    except (OverflowError, ValueError):
        return None
    when = when if when.tzinfo else when.replace(tzinfo=UTC)
    return max((when - datetime.now(UTC)).total_seconds(), 0.0)


def is_bot_challenge(response: RawHttpResponse) -> bool:
    """Whether the response is a bot filter's challenge instead of the page."""
    return response.status == 403 and response.headers.get("cf-mitigated", "").lower() == "challenge"


DEFAULT_RETRY_SECONDS = 30.0
"""Seconds to pause requests to a server that sends 429 without Retry-After."""


@dataclass(frozen=True, slots=True)
class HttpClient:
    """Sends requests to servers whose addresses have been checked, with a rate limit per host."""

    limits: ResponseLimits
    trusted: Callable[[], ssl.SSLContext]
    limiter: RateLimiter
    proxy: str = ""
    """The HTTP proxy for all requests; empty for none."""

    async def page(
        self, request: WebRequest, addresses: tuple[str, ...], conditions: Mapping[str, str]
    ) -> RawHttpResponse:
        """Request a page; retries with our plain user agent if a bot filter blocks it."""
        received = await self._send_rate_limited(
            request.url, {**page_headers(request.form), **conditions}, addresses
        )
        if is_bot_challenge(received):
            plain = page_headers(request.form, plain=True)
            received = await self._send_rate_limited(request.url, {**plain, **conditions}, addresses)
        return received

    def decode_response(
        self, request: WebRequest, response: RawHttpResponse, addresses: tuple[str, ...]
    ) -> WebResponse:
        """Decode a response and its headers into a `WebResponse`."""
        kind, charset = content_type_of(response)
        return WebResponse(
            url=request.url,
            status=response.status,
            media_type=kind,
            charset=charset,
            location=redirect_location(response),
            retry_after=retry_after_seconds(response),
            received_bytes=len(response.body),
            data=self._decompressed_body(response),
            addresses=addresses,
        )

    async def search(
        self, engine: ConfiguredEngine, query: WebQuery, addresses: tuple[str, ...]
    ) -> WebSearchHits:
        """Send a query to a search engine and parse the results.

        Errors never contain the request, because it contains the API key.
        """
        wish = engine.adapter.ask(query, engine.url, engine.key)
        headers = {
            "User-Agent": page_headers("html")["User-Agent"],
            "Accept-Encoding": accept_encoding(),
            **wish.headers,
        }
        received = await self._send_rate_limited(wish.url, headers, addresses, wish.body)
        data = await to_thread.run_sync(self._decompressed_body, received)
        return engine.parse_response(received.status, retry_after_seconds(received), data, query)

    async def _send_rate_limited(
        self, url: Url, headers: Mapping[str, str], addresses: tuple[str, ...], body: bytes = b""
    ) -> RawHttpResponse:
        await self.limiter.turn(url.host)
        trust = await to_thread.run_sync(self.trusted) if url.scheme == "https" else None
        request = OutboundHttpRequest(url=url, headers=headers, body=body)
        received = await send_request(request, addresses, self.limits, trust, self.proxy)
        if received.status == 429:
            wait = retry_after_seconds(received)
            self.limiter.hold(url.host, DEFAULT_RETRY_SECONDS if wait is None else wait)
        return received

    def _decompressed_body(self, response: RawHttpResponse) -> bytes:
        packed = response.headers.get("content-encoding", "")
        body = bytes(response.body)
        response.body.clear()
        return decoded_body(body, packed, self.limits.page_bytes)


MAX_CONTENT_ENCODINGS = 2
DECODED_PIECE_BYTES = 64 << 10
DECODER_INPUT_BYTES = 4 << 10
"""Maximum number of bytes passed to a decompressor at once; it copies the bytes that it does not consume."""
ZSTD_WINDOW_BYTES = 8 << 20
"""The largest zstd window in bytes; RFC 9659 sets this limit for HTTP."""


class BadContentEncoding(ValueError):
    """Raised if a body is not validly encoded."""


class TruncatedContentEncoding(BadContentEncoding):
    """Raised if an encoded body is truncated."""


def accept_encoding() -> str:
    """Return the value of the Accept-Encoding header: the encodings that can be decoded here."""
    return ", ".join(name for name in ("gzip", "deflate", "zstd", "br") if _is_decoder_installed(name))


def decoded_body(data: bytes, encoding: str, max_bytes: int) -> bytes:
    """Undo all content encodings of a body; raises `TooLarge` as soon as the result exceeds `max_bytes`."""
    layers = [name for part in encoding.lower().split(",") if (name := part.strip()) and name != "identity"]
    if len(layers) > MAX_CONTENT_ENCODINGS or not all(
        name in _DECODERS and _is_decoder_installed(name) for name in layers
    ):
        raise Unreachable(
            f"The response has an unsupported content encoding: {encoding[:80]}.",
            hint="Try another page.",
        )
    arrived = len(data)
    try:
        for name in reversed(layers):
            data = _decode_within_limit(_DECODERS[name], data, max_bytes)
    except TruncatedContentEncoding:
        message = f"The response is incomplete: only {arrived:,} bytes arrived."
        raise Unreachable(message, hint="Try again, or another page.") from None
    except BadContentEncoding as problem:
        message = f"Can't decompress the response: {problem}."
        raise Unreachable(message, hint="Try again, or another page.") from problem
    return data


def _decode_within_limit(unpack: "Decoder", data: bytes, max_bytes: int) -> bytes:
    whole = bytearray()
    for piece in unpack(data):
        whole += piece
        if len(whole) > max_bytes:
            raise TooLarge(
                f"The response decompresses to more than {max_bytes:,} bytes; it was not read further.",
                hint="Request a part of it, or another page.",
            )
    return bytes(whole)


def _inflate_pieces(data: bytes, window: int) -> Iterator[bytes]:
    rest, at = data[:DECODER_INPUT_BYTES], DECODER_INPUT_BYTES
    while rest:
        machine = zlib.decompressobj(window)
        try:
            while not machine.eof:
                piece = machine.decompress(rest, DECODED_PIECE_BYTES)
                rest = machine.unconsumed_tail
                if not rest and not machine.eof:
                    rest, at = data[at : at + DECODER_INPUT_BYTES], at + DECODER_INPUT_BYTES
                if not piece and not rest:
                    break
                yield piece
        except zlib.error as error:
            raise BadContentEncoding(str(error)) from error
        if not machine.eof:
            raise TruncatedContentEncoding
        if window <= zlib.MAX_WBITS:
            return
        # Another gzip member may follow, or zero padding, or nothing.
        rest = machine.unused_data.lstrip(b"\0")
        while not rest and at < len(data):
            rest, at = data[at : at + DECODER_INPUT_BYTES].lstrip(b"\0"), at + DECODER_INPUT_BYTES


def _decode_gzip(data: bytes) -> Iterator[bytes]:
    return _inflate_pieces(data, zlib.MAX_WBITS | 16)


def _decode_deflate(data: bytes) -> Iterator[bytes]:
    # Many servers leave out the zlib header that the standard requires.
    framed = len(data) > 1 and data[0] & 0x0F == 8 and int.from_bytes(data[:2]) % 31 == 0
    return _inflate_pieces(data, zlib.MAX_WBITS if framed else -zlib.MAX_WBITS)


def _decode_brotli(data: bytes) -> Iterator[bytes]:
    import brotli

    machine = brotli.Decompressor()
    try:
        piece = machine.process(data, output_buffer_limit=DECODED_PIECE_BYTES)
        yield piece
        while not machine.is_finished() and not (machine.can_accept_more_data() and not piece):
            piece = machine.process(b"", output_buffer_limit=DECODED_PIECE_BYTES)
            yield piece
        if not machine.is_finished():
            raise TruncatedContentEncoding
    except brotli.error as error:
        raise BadContentEncoding(str(error)) from error


def _decode_zstd(data: bytes) -> Iterator[bytes]:
    import zstandard

    machine = zstandard.ZstdDecompressor(max_window_size=ZSTD_WINDOW_BYTES)
    try:
        with machine.stream_reader(BytesIO(data), read_across_frames=True) as reader:
            while piece := reader.read(DECODED_PIECE_BYTES):
                yield piece
    except zstandard.ZstdError as error:
        raise BadContentEncoding(str(error)) from error
    # The library does not report truncated input.
    if zstd_end(data) != len(data):
        raise TruncatedContentEncoding


def _is_decoder_installed(name: str) -> bool:
    return name != "br" or find_spec("brotli") is not None


Decoder = Callable[[bytes], Iterator[bytes]]
_DECODERS: dict[str, Decoder] = {
    "gzip": _decode_gzip,
    "x-gzip": _decode_gzip,
    "deflate": _decode_deflate,
    "br": _decode_brotli,
    "zstd": _decode_zstd,
}


_ZSTD_SKIPPABLE_FRAMES = range(0x184D2A50, 0x184D2A60)
"""The magic numbers of zstd frames without content."""
_ZSTD_DICTIONARY_ID_BYTES = (0, 1, 2, 4)
_ZSTD_CONTENT_SIZE_BYTES = (0, 2, 4, 8)
_ZSTD_RLE_BLOCK = 1


def zstd_end(data: bytes) -> int:
    """Return the offset at which the last zstd frame ends; past the end of the data if it is truncated."""
    at = 0
    while at < len(data):
        if _little_endian_number(data, at, 4) in _ZSTD_SKIPPABLE_FRAMES and at + 8 <= len(data):
            at += 8 + _little_endian_number(data, at + 4, 4)
        else:
            at = _end_of_zstd_frame(data, at)
    return at


def _end_of_zstd_frame(data: bytes, start: int) -> int:
    described = _little_endian_number(data, start + 4, 1)
    single, checked = described >> 5 & 1, described >> 2 & 1
    size = _ZSTD_CONTENT_SIZE_BYTES[described >> 6] or single
    at = start + 5 + (1 - single) + _ZSTD_DICTIONARY_ID_BYTES[described & 3] + size
    last = 0
    while not last:
        if at + 3 > len(data):
            return len(data) + 1
        block = _little_endian_number(data, at, 3)
        last, kind, size = block & 1, block >> 1 & 3, block >> 3
        at += 3 + (1 if kind == _ZSTD_RLE_BLOCK else size)
    return at + 4 * checked


def _little_endian_number(data: bytes, at: int, size: int) -> int:
    return int.from_bytes(data[at : at + size], "little")
