"""HTTP and SOCKS proxy that lets a sandboxed command reach the allowed hosts and no others.

The command runs in a network namespace without external interfaces. Our process owns a socket that listens
in that namespace, so there is no bridge and no helper program inside that a command could bypass. The
session's commands share the namespace, but each may reach different hosts. So each command has its own
proxy, with a password that is only in the command's environment; the proxy stops when the command exits.
The proxy has its own thread and event loop because a background job outlives the loop that started it.

A plain HTTP request is parsed strictly and rebuilt from the parsed values, so that the server sees the host
that was checked and no smuggled second request. Bytes in a tunnel (`CONNECT`, SOCKS) are not inspected: the
proxy doesn't know which site on an allowed address a client asks for in TLS or in a `Host` header.
"""

import asyncio
import base64
import contextlib
import hmac
import re
import secrets
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from ipaddress import ip_address
from typing import Literal
from urllib.parse import unquote, urlsplit

from handtools.core.errors import InvalidInput
from handtools.core.web import Visit
from handtools.host.sandbox.launch import Launch
from handtools.host.sandbox.session_network_namespaces import SessionNetwork
from handtools.host.sandbox.socket_server_thread import ByteRelay, RelayServer, StreamPair
from handtools.text.web.host_access import (
    BadHostEntry,
    HostList,
    ip_address_refusal,
    ip_literal,
    normalized_host,
    parse_host_list,
)

REQUEST_HEAD_BYTES = 32 << 10
_SOCKS_VERSION, _CONNECT, _NO_PASSWORD, _PASSWORD, _NO_METHOD = 5, 1, 0, 2, 0xFF
_SOCKS_PASSWORD_VERSION = 1
PROXY_USER = "handtools"
_IPV4, _DOMAIN_NAME, _IPV6 = 1, 3, 4
_MAX_PORT = 65535
_HOST_NAME = re.compile(r"[\w.-]+", re.ASCII)
_AUTHORITY = re.compile(
    rf"(?P<host>{_HOST_NAME.pattern}|\[[\da-fA-F:.]+\])(?::(?P<port>\d{{1,5}}))?", re.ASCII
)
_FIELD_NAME = r"[!#$%&'*+.^_`|~\w-]+"
_REQUEST_LINE = re.compile(rf"({_FIELD_NAME}) ([\x21-\x7e]+) HTTP/1\.[01]", re.ASCII)
_HEADER_FIELD = re.compile(rf"({_FIELD_NAME}):([\t\x20-\x7e\x80-\xff]*)", re.ASCII)
"""One header field on one line: no space before the colon, no line folding, no control characters."""
_BODY_LENGTH = re.compile("[0-9]{1,18}")
_CHUNK_SIZE = re.compile(rb"([0-9A-Fa-f]{1,8})[ \t]*(?:;[\t\x20-\x7e]*)?\r\n")
_LENGTH_FIELDS = frozenset({"content-length", "transfer-encoding"})
_OWN_FIELDS = _LENGTH_FIELDS | {"host", "connection", "keep-alive", "upgrade", "te", "trailer"}
"""Header fields that are not forwarded, because the proxy writes them itself or they are hop-by-hop.

The `proxy-*` fields aren't forwarded either.
"""

ProxyRequestKind = Literal["tunnel", "request", "socks"]


class BadProxyRequest(Exception):
    """Raised when a client's request to the proxy is malformed."""


@dataclass(frozen=True, slots=True)
class ProxyRequest:
    """The host and port that a client wants to reach, and for a plain request the head to forward."""

    kind: ProxyRequestKind
    host: str
    port: int
    head: bytes = b""
    body_bytes: int | None = 0
    """The body length of a plain request; None if the body is chunked."""
    password: str = ""
    """The password that the client sent; empty if none."""


async def read_proxy_request(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ProxyRequest:
    """Read a client's proxy request; the first byte shows whether it is HTTP or SOCKS."""
    first = await reader.readexactly(1)
    if first[0] == _SOCKS_VERSION:
        return await _read_socks(reader, writer)
    try:
        head = first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise BadProxyRequest("the request head is too long") from error
    return _read_http(head)


def _read_http(head: bytes) -> ProxyRequest:
    """Parse a request head and build the head to forward."""
    line, *lines = head[:-4].decode("latin-1").split("\r\n")
    request = _REQUEST_LINE.fullmatch(line)
    if request is None:
        raise BadProxyRequest("not a valid HTTP/1 request")
    method, target = request.groups()
    fields = [_header_field(each) for each in lines]
    password = _basic_password(fields)
    if method == "CONNECT":
        return ProxyRequest("tunnel", *_host_and_port(target, None), password=password)
    try:
        where = urlsplit(target)
    except ValueError as error:
        raise BadProxyRequest(f"`{target}` is not a valid URL") from error
    if where.scheme != "http" or not where.netloc:
        raise BadProxyRequest("a proxy request needs an absolute http:// URL")
    host, port = _host_and_port(where.netloc.rpartition("@")[2], 80)
    # Write Host from the checked host: a client can't request one host and name another in the header.
    named = f"[{host}]" if ":" in host else host
    path = (where.path or "/") + (f"?{where.query}" if where.query else "")
    written = [
        f"{method} {path} HTTP/1.1",
        f"Host: {named}" if port == 80 else f"Host: {named}:{port}",
        "Connection: close",
        *(f"{name}: {value}" for name, value in fields if not _is_own_field(name)),
    ]
    size, framing = _body_length(fields)
    sent = "\r\n".join([*written, *framing, "", ""]).encode("latin-1")
    return ProxyRequest("request", host, port, sent, size, password)


def _header_field(line: str) -> tuple[str, str]:
    field = _HEADER_FIELD.fullmatch(line)
    if field is None:
        raise BadProxyRequest("a line of the request head is not a valid header field")
    return field[1], field[2].strip(" \t")


def _is_own_field(name: str) -> bool:
    return name.lower() in _OWN_FIELDS or name.lower().startswith("proxy-")


def _basic_password(fields: list[tuple[str, str]]) -> str:
    """Return the password from `Proxy-Authorization`; empty if there is none or it uses another scheme."""
    for name, value in fields:
        scheme, _, coded = value.partition(" ")
        if name.lower() == "proxy-authorization" and scheme.lower() == "basic":
            with contextlib.suppress(ValueError):
                return base64.b64decode(coded.strip(), validate=True).decode("ascii").partition(":")[2]
    return ""


def _body_length(fields: list[tuple[str, str]]) -> tuple[int | None, list[str]]:
    """Return the length of a request's body (None if chunked) and the header field that states it."""
    lengths = [(name.lower(), value) for name, value in fields if name.lower() in _LENGTH_FIELDS]
    match lengths:
        case []:
            return 0, []
        case [("content-length", length)] if _BODY_LENGTH.fullmatch(length):
            return int(length), [f"Content-Length: {int(length)}"]
        case [("transfer-encoding", coding)] if coding.lower() == "chunked":
            return None, ["Transfer-Encoding: chunked"]
        case _:
            raise BadProxyRequest("the body length is invalid or ambiguous")


def _host_and_port(text: str, usual: int | None) -> tuple[str, int]:
    """Return the host, normalized for the check, and the port."""
    found = _AUTHORITY.fullmatch(text)
    port = int((found and found["port"]) or usual or 0)
    if found is None or not 0 < port <= _MAX_PORT:
        raise BadProxyRequest(f"`{text}` is not a valid host and port")
    return normalized_host(found["host"].strip("[]")), port


@dataclass(slots=True)
class ChunkRelay(ByteRelay):
    """Copies the chunked body of a request and stops after the last chunk.

    Each chunk is rewritten without extensions, and trailer fields are dropped. A malformed chunk closes the
    connection to the target before the body is complete.
    """

    async def run(self, silence: float) -> None:
        """Copy chunks until the last one, or until no data was transferred for `silence` seconds."""
        try:
            while size := await self._next_size(silence):
                self.target.write(b"%x\r\n" % size)
                self.size = self.bytes + size
                await ByteRelay.run(self, silence)
                async with asyncio.timeout(silence):
                    if self.bytes < self.size or await self.source.readexactly(2) != b"\r\n":
                        raise BadProxyRequest("a chunk's length doesn't match its size line")
                self.target.write(b"\r\n")
            self.target.write(b"0\r\n\r\n")
        except (BadProxyRequest, asyncio.IncompleteReadError, asyncio.LimitOverrunError, TimeoutError):
            self.target.transport.abort()

    async def _next_size(self, silence: float) -> int:
        async with asyncio.timeout(silence):
            line = _CHUNK_SIZE.fullmatch(await self.source.readuntil(b"\r\n"))
        if line is None:
            raise BadProxyRequest("a chunk has no valid size line")
        return int(line[1], 16)


async def _read_socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ProxyRequest:
    count = (await reader.readexactly(1))[0]
    methods = await reader.readexactly(count)
    password = ""
    if _PASSWORD in methods:
        writer.write(bytes((_SOCKS_VERSION, _PASSWORD)))
        password = await _read_socks_password(reader)
        writer.write(bytes((_SOCKS_PASSWORD_VERSION, 0)))  # the password is checked with the request
    elif _NO_PASSWORD in methods:
        writer.write(bytes((_SOCKS_VERSION, _NO_PASSWORD)))
    else:
        writer.write(bytes((_SOCKS_VERSION, _NO_METHOD)))
        raise BadProxyRequest("the client offers no supported authentication method")
    await writer.drain()
    version, command, _, kind = await reader.readexactly(4)
    if version != _SOCKS_VERSION or command != _CONNECT:
        writer.write(socks_reply("unsupported"))
        raise BadProxyRequest("only the SOCKS CONNECT command is supported")
    if kind == _DOMAIN_NAME:
        size = (await reader.readexactly(1))[0]
        host = (await reader.readexactly(size)).decode("latin-1")
        if not _HOST_NAME.fullmatch(host):
            raise BadProxyRequest(f"`{host}` is not a valid host name")
    elif kind in {_IPV4, _IPV6}:
        host = str(ip_address(await reader.readexactly(4 if kind == _IPV4 else 16)))
    else:
        raise BadProxyRequest("unknown SOCKS address type")
    (port,) = struct.unpack("!H", await reader.readexactly(2))
    return ProxyRequest("socks", normalized_host(host), port, password=password)


async def _read_socks_password(reader: asyncio.StreamReader) -> str:
    """Read a user name and password (RFC 1929) and return the password; the name is ignored."""
    _, size = await reader.readexactly(2)
    await reader.readexactly(size)
    (size,) = await reader.readexactly(1)
    return (await reader.readexactly(size)).decode("ascii", "replace")


ProxyOutcome = Literal["open", "refused", "unreachable", "unsupported", "unknown"]
_SOCKS_CODES: dict[ProxyOutcome, int] = {
    "open": 0,
    "refused": 2,
    "unreachable": 4,
    "unsupported": 7,
    "unknown": 2,
}
_HTTP_LINES: dict[ProxyOutcome, str] = {
    "open": "200 Connected",
    "refused": "403 Forbidden",
    "unreachable": "502 Bad Gateway",
    "unsupported": "400 Bad Request",
    "unknown": "407 Proxy Authentication Required",
}
_UNKNOWN_CLIENT = "this proxy serves one command only; use the URL with the password in its http_proxy."


def socks_reply(outcome: ProxyOutcome) -> bytes:
    """Return the SOCKS reply for an outcome."""
    return bytes((_SOCKS_VERSION, _SOCKS_CODES[outcome], 0, _IPV4, 0, 0, 0, 0, 0, 0))


def http_reply(outcome: ProxyOutcome, words: str = "") -> bytes:
    """Return the HTTP reply for an outcome; `words` is an explanation that clients may print."""
    if outcome == "open":
        return b"HTTP/1.1 200 Connected\r\n\r\n"
    body = f"handtools: {words}\n".encode()
    asks = 'Proxy-Authenticate: Basic realm="handtools"\r\n' if outcome == "unknown" else ""
    head = (
        f"HTTP/1.1 {_HTTP_LINES[outcome]}\r\n{asks}Content-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body


OnNetworkVisit = Callable[[Visit], None]

MAX_PROXY_CONNECTIONS = 128
"""How many proxy connections are served concurrently; more wait in the kernel's queue."""
MAX_RECORDED_VISITS = 1_000
"""How many connection attempts are recorded one by one; the rest are only counted."""


@dataclass(frozen=True, slots=True)
class ProxyTimeouts:
    """Timeouts of the proxy, in seconds."""

    wish: float = 15.0
    connect: float = 20.0
    silence: float = 600.0


async def connect_through_proxy(proxy: str, host: str, port: int) -> StreamPair:
    """Connect to a host through an HTTP proxy (`CONNECT`); raises `OSError` with its status if it refuses."""
    parts = urlsplit(proxy)
    reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=REQUEST_HEAD_BYTES)
    try:
        named = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        lines = [f"CONNECT {named} HTTP/1.1", f"Host: {named}"]
        if parts.username:
            secret = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
            lines.append(f"Proxy-Authorization: Basic {base64.b64encode(secret.encode()).decode()}")
        writer.write("\r\n".join([*lines, "", ""]).encode())
        head = await reader.readuntil(b"\r\n\r\n")
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        writer.close()
        raise OSError("this machine's proxy sent an invalid response") from error
    except BaseException:
        writer.close()
        raise
    status = head.partition(b"\r\n")[0].decode("latin-1").split(" ", 1)[-1]
    if not status.startswith("200"):
        writer.close()
        raise OSError(f"this machine's proxy responded {status}")
    return reader, writer


class HostNotAllowed(Exception):
    """Raised for a host that is not on the list or whose name resolves to a forbidden address."""


@dataclass(slots=True)
class EgressProxy:
    """The proxy of one command: accepts connections and forwards those to allowed hosts."""

    hosts: HostList
    password: str
    """Clients must send it, so that other commands on the same network can't use the proxy."""
    tell: OnNetworkVisit = lambda _: None
    timeouts: ProxyTimeouts = ProxyTimeouts()
    visits: list[Visit] = field(default_factory=list)
    """The first `MAX_RECORDED_VISITS` connection attempts, in the order in which they ended."""
    unnoted: int = 0
    outgoing: str = ""
    """The HTTP proxy through which hosts are reached; empty for direct connections."""
    _server: RelayServer = field(init=False)

    def __post_init__(self) -> None:
        self._server = RelayServer(self._serve_client, MAX_PROXY_CONNECTIONS, REQUEST_HEAD_BYTES)

    def start(self, listening: socket.socket) -> None:
        """Start serving a listening socket, which `stop` closes; returns immediately."""
        self._server.start(listening)

    def stop(self) -> None:
        """Close all connections and stop the proxy's thread."""
        self._server.stop()

    async def _serve_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(self.timeouts.wish):
                wish = await read_proxy_request(reader, writer)
        except BadProxyRequest as refusal:
            writer.write(http_reply("unsupported", f"{refusal}."))
            await writer.drain()
            return
        visit = Visit(host=wish.host, port=wish.port)
        if not hmac.compare_digest(wish.password.encode(), self.password.encode()):
            unknown = socks_reply("unknown") if wish.kind == "socks" else None
            writer.write(unknown or http_reply("unknown", _UNKNOWN_CLIENT))
            await writer.drain()
            return
        try:
            visit = await self._visit_with_allowed_addresses(visit)
            there = await self._connect_to_host(visit)
        except HostNotAllowed as no:
            await self._turn_away(writer, wish, "refused", replace(visit, refused=str(no)))
        except (OSError, TimeoutError) as error:
            why = f"Can't reach {visit.host}:{visit.port}: {error or 'no answer'}."
            await self._turn_away(writer, wish, "unreachable", replace(visit, refused=why))
        else:
            await self._relay_both_ways(wish, visit, (reader, writer), there)

    async def _visit_with_allowed_addresses(self, visit: Visit) -> Visit:
        """Return the visit with the host's allowed addresses.

        Raises `HostNotAllowed` if the host is not on the list or none of its addresses is allowed.
        """
        if not self.hosts.lists(visit.host, visit.port):
            raise HostNotAllowed(
                f"{visit.host}:{visit.port} is not in this command's list of hosts. Add it to `hosts`."
            )
        try:
            found = await asyncio.get_running_loop().getaddrinfo(
                visit.host, visit.port, type=socket.SOCK_STREAM, flags=_lookup_flags(visit.host)
            )
        except OSError:
            if self.outgoing:  # the outgoing proxy may resolve names that this machine can't
                return visit
            raise
        addresses = dict.fromkeys(str(place[4][0]) for place in found)
        reasons = {each: ip_address_refusal(each, but=self.hosts.networks) for each in addresses}
        fit = [each for each, reason in reasons.items() if not reason]
        if not fit:
            raise HostNotAllowed(f"Commands may not connect to {visit.host}: {' '.join(reasons.values())}")
        return replace(visit, addresses=tuple(fit))

    async def _connect_to_host(self, visit: Visit) -> StreamPair:
        """Connect to the checked address instead of the name, which might resolve differently by now."""
        if self.outgoing:
            async with asyncio.timeout(self.timeouts.connect):
                return await connect_through_proxy(self.outgoing, visit.host, visit.port)
        failure: OSError | TimeoutError = OSError("no address")
        for address in visit.addresses:
            try:
                async with asyncio.timeout(self.timeouts.connect):
                    return await asyncio.open_connection(address, visit.port)
            except (OSError, TimeoutError) as error:
                failure = error
        raise failure

    async def _turn_away(
        self, writer: asyncio.StreamWriter, request: ProxyRequest, how: ProxyOutcome, visit: Visit
    ) -> None:
        self._record_visit(visit)
        answer = socks_reply(how) if request.kind == "socks" else http_reply(how, visit.refused)
        writer.write(answer)
        await writer.drain()

    async def _relay_both_ways(
        self, request: ProxyRequest, visit: Visit, here: StreamPair, there: StreamPair
    ) -> None:
        """Relay bytes in both directions until the connection ends, then record the visit."""
        self.tell(visit)
        down_relay = ByteRelay(there[0], here[1])
        if request.kind == "request":
            there[1].write(request.head)
            chunked = request.body_bytes is None
            up_relay = (ChunkRelay if chunked else ByteRelay)(here[0], there[1], request.body_bytes)
        else:
            up_relay = ByteRelay(here[0], there[1])
            here[1].write(socks_reply("open") if request.kind == "socks" else http_reply("open"))
        going = asyncio.create_task(up_relay.run(self.timeouts.silence))
        try:
            await down_relay.run(self.timeouts.silence)
            if request.kind != "request":
                await going
        finally:
            going.cancel()
            there[1].close()
            sent = up_relay.bytes + len(request.head)
            self._record_visit(replace(visit, sent_bytes=sent, received_bytes=down_relay.bytes), told=True)

    def _record_visit(self, visit: Visit, *, told: bool = False) -> None:
        if len(self.visits) < MAX_RECORDED_VISITS:
            self.visits.append(visit)
        else:
            self.unnoted += 1
        if not told:
            self.tell(visit)


def _lookup_flags(host: str) -> int:
    """Return the getaddrinfo flags for a host: no lookup for a numeric address."""
    return socket.AI_NUMERICHOST if ip_literal(host) is not None else 0


MAX_REFUSAL_NOTES = 5


@dataclass(frozen=True, slots=True)
class ProxiedLaunch:
    """A launch that uses the proxy, and its connection attempts."""

    launch: Launch
    visits: list[Visit] = field(default_factory=list)
    """The connection attempts so far."""

    def notes(self) -> tuple[str, ...]:
        """Return notes for the model about refused connections, since clients often hide the reason."""
        refused = list(dict.fromkeys(visit.refused for visit in self.visits if visit.refused))
        if len(refused) > MAX_REFUSAL_NOTES:
            refused[MAX_REFUSAL_NOTES:] = [f"{len(refused) - MAX_REFUSAL_NOTES} more refused."]
        return tuple(f"Network: {each}" for each in refused)


@contextmanager
def with_network_proxy(
    launch: Launch, network: SessionNetwork | None, tell: OnNetworkVisit = lambda _: None
) -> Iterator[ProxiedLaunch]:
    """Context manager: yields the launch with its own proxy if it may reach listed hosts.

    Otherwise, or if there is no network namespace to listen in, the launch is unchanged.
    """
    if launch.network != "listed" or network is None:
        yield ProxiedLaunch(launch)
        return
    try:
        hosts = parse_host_list(launch.hosts)
    except BadHostEntry as error:
        raise InvalidInput(str(error), hint="List hosts as `name`, `*.name` or `name:port`.") from error
    proxy = EgressProxy(hosts, secrets.token_hex(16), tell, outgoing=launch.outgoing_proxy)
    listening = network.listening_socket()
    env = {**launch.env, **proxy_environment(listening.getsockname()[1], proxy.password)}
    proxy.start(listening)
    try:
        yield ProxiedLaunch(replace(launch, env=env), proxy.visits)
    finally:
        proxy.stop()


def proxy_environment(port: int, password: str) -> dict[str, str]:
    """Return variables that point programs to the proxy; programs that ignore them have no network."""
    address = f"http://{PROXY_USER}:{password}@127.0.0.1:{port}"
    near = "localhost,127.0.0.1,::1"
    both = {"http_proxy": address, "https_proxy": address, "all_proxy": address, "no_proxy": near}
    return {
        **both,
        **{name.upper(): value for name, value in both.items()},
        "PIP_PROXY": address,
        "npm_config_proxy": address,
        "npm_config_https_proxy": address,
        "npm_config_noproxy": near,
        "YARN_HTTP_PROXY": address,
        "YARN_HTTPS_PROXY": address,
        "CARGO_HTTP_PROXY": address,
        "NODE_USE_ENV_PROXY": "1",
    }
