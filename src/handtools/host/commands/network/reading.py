"""Reading: what a client asks of a proxy, over HTTP or SOCKS, as a value."""

import asyncio
import struct
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Literal
from urllib.parse import urlsplit

HEAD_BYTES = 32 << 10
_SOCKS, _CONNECT, _NO_PASSWORD, _NO_WAY = 5, 1, 0, 0xFF
_IPV4, _NAME, _IPV6 = 1, 3, 4
_MOST_PORT = 65535
_OF_THE_PROXY = (b"proxy-", b"connection:", b"keep-alive:", b"host:", b"upgrade:")

Kind = Literal["tunnel", "request", "socks"]


class Unreadable(Exception):
    """Not what a proxy is asked."""


@dataclass(frozen=True, slots=True)
class Wish:
    """Where a client wants to go, and what it has already said for the other side."""

    kind: Kind
    host: str
    port: int
    first: bytes = b""
    body_bytes: int | None = None
    """How much of a request is still to come; None: everything that comes."""


async def read_wish(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Wish:
    """The first thing that a client says; which protocol it speaks shows in its first byte."""
    first = await reader.readexactly(1)
    if first[0] == _SOCKS:
        return await _read_socks(reader, writer)
    try:
        head = first + await reader.readuntil(b"\r\n\r\n")
    except asyncio.LimitOverrunError as error:
        raise Unreadable("the head of the request is too long") from error
    return _read_http(head)


def _read_http(head: bytes) -> Wish:
    line, *fields = head[:-4].split(b"\r\n")
    try:
        method, target, version = line.decode("ascii").split(" ")
    except ValueError as error:
        raise Unreadable("that is no request") from error
    if not version.startswith("HTTP/1."):
        raise Unreadable("only HTTP/1 is spoken here")
    if method == "CONNECT":
        return Wish("tunnel", *_authority(target, None))
    where = urlsplit(target)
    if where.scheme != "http" or not where.netloc:
        raise Unreadable("a proxy is asked for a whole http:// address")
    host, port = _authority(where.netloc.rpartition("@")[2], 80)
    path = (where.path or "/") + (f"?{where.query}" if where.query else "")
    # The host that was judged is the host that is named: a client can't ask for one and name another.
    kept = [field for field in fields if not field.lower().startswith(_OF_THE_PROXY)]
    named = where.netloc.rpartition("@")[2]
    lines = [f"{method} {path} HTTP/1.1".encode(), f"Host: {named}".encode(), b"Connection: close", *kept]
    return Wish("request", host, port, b"\r\n".join(lines) + b"\r\n\r\n", _body(kept))


def _body(fields: list[bytes]) -> int | None:
    """How long a request's body is; more would be a second request, to a host that nobody judged."""
    said = {
        name.strip().lower(): value.strip() for name, _, value in (each.partition(b":") for each in fields)
    }
    if b"transfer-encoding" in said:
        return None
    length = said.get(b"content-length", b"0")
    if not length.isdigit():
        raise Unreadable("its length is not a number")
    return int(length)


def _authority(text: str, usual: int | None) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon or "]" in port:
        host, port = text, str(usual or "")
    if not host or not port.isdigit() or not 0 < int(port) <= _MOST_PORT:
        raise Unreadable(f"`{text}` is no host and port")
    return host.removeprefix("[").removesuffix("]"), int(port)


async def _read_socks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> Wish:
    count = (await reader.readexactly(1))[0]
    methods = await reader.readexactly(count)
    if _NO_PASSWORD not in methods:
        writer.write(bytes((_SOCKS, _NO_WAY)))
        raise Unreadable("it asks for a password")
    writer.write(bytes((_SOCKS, _NO_PASSWORD)))
    await writer.drain()
    version, command, _, kind = await reader.readexactly(4)
    if version != _SOCKS or command != _CONNECT:
        writer.write(socks_answer("unsupported"))
        raise Unreadable("only connections are made here")
    if kind == _NAME:
        size = (await reader.readexactly(1))[0]
        try:
            host = (await reader.readexactly(size)).decode("ascii")
        except UnicodeDecodeError as error:
            raise Unreadable("its name is not ASCII") from error
    elif kind in {_IPV4, _IPV6}:
        host = str(ip_address(await reader.readexactly(4 if kind == _IPV4 else 16)))
    else:
        raise Unreadable("it has no kind of address")
    (port,) = struct.unpack("!H", await reader.readexactly(2))
    return Wish("socks", host, port)


Outcome = Literal["open", "refused", "unreachable", "unsupported"]
_SOCKS_CODES: dict[Outcome, int] = {"open": 0, "refused": 2, "unreachable": 4, "unsupported": 7}
_HTTP_LINES: dict[Outcome, str] = {
    "open": "200 Connected",
    "refused": "403 Forbidden",
    "unreachable": "502 Bad Gateway",
    "unsupported": "400 Bad Request",
}


def socks_answer(outcome: Outcome) -> bytes:
    """How it went, as SOCKS says it."""
    return bytes((_SOCKS, _SOCKS_CODES[outcome], 0, _IPV4, 0, 0, 0, 0, 0, 0))


def http_answer(outcome: Outcome, words: str = "") -> bytes:
    """How it went, as HTTP says it; the words are for the person or the model who reads the client's output."""
    if outcome == "open":
        return b"HTTP/1.1 200 Connected\r\n\r\n"
    body = f"handtools: {words}\n".encode()
    head = (
        f"HTTP/1.1 {_HTTP_LINES[outcome]}\r\nContent-Type: text/plain; charset=utf-8\r\n"
        f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    return head.encode() + body
