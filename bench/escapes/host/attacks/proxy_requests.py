"""Requests to the proxy of a session: one host is allowed, and words in the request lead to another."""

import asyncio
import contextlib

from bench.escapes.host.place import Place
from handtools import Policy

_CLIENT = """
import base64, os, socket, sys, urllib.parse
proxy = urllib.parse.urlsplit(os.environ["http_proxy"])
word = base64.b64encode(f"{proxy.username}:{proxy.password}".encode()).decode()
line = socket.create_connection((proxy.hostname, proxy.port)); line.settimeout(1)
line.sendall(sys.stdin.read().replace("\\n", "\\r\\n").replace("<LF>", "\\n").replace("<CR>", "\\r").replace("<AUTH>", f"Proxy-Authorization: Basic {word}").encode())
try:
    while line.recv(65536): pass
except OSError: pass
"""
OTHER = "internal.example"


async def _sent(place: Place, *requests: str, seen: str = OTHER) -> str | None:
    """Send requests to an allowed address; says what its server was sent that must not come through."""
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        data = b""
        with contextlib.suppress(TimeoutError, OSError):
            while part := await asyncio.wait_for(reader.read(65536), 0.4):
                data += part
        heard.append(data)
        with contextlib.suppress(OSError):
            writer.write(b"HTTP/1.1 200 OK\\r\\nContent-Length: 2\\r\\n\\r\\nok")
            await writer.drain()
            writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        place.put("client.py", _CLIENT)
        place.open(policy=Policy(hosts=(f"127.0.0.1:{port}",)))
        for request in requests:
            place.put("request", request.replace("<HERE>", f"http://127.0.0.1:{port}/x"))
            await place.bash("/usr/bin/python3 client.py < request")
    if not heard:
        return "it proves nothing: the allowed address was not reached"
    got = [data for data in heard if seen.encode() in data]
    return f"the proxy passed on {got[0][:160]!r}" if got else None


HONEST = "GET <HERE> HTTP/1.1\n<AUTH>\n\n"


async def another_virtual_host(place: Place) -> str | None:
    """The header that names the host is written so that the proxy does not know it and the server does."""
    return await _sent(
        place,
        HONEST,
        f"GET <HERE> HTTP/1.1\n<AUTH>\nX: a<LF>Host: {OTHER}\n\n",
        f"GET <HERE> HTTP/1.1\n<AUTH>\nHost : {OTHER}\n\n",
        f"GET <HERE> HTTP/1.1\n<AUTH>\nX: y\n Host: {OTHER}\n\n",
        f"GET <HERE> HTTP/1.1\n<AUTH>\n Host: {OTHER}\n\n",
        f"GET <HERE> HTTP/1.1\n<AUTH>\nX: a<CR>Host: {OTHER}\n\n",
        f"GET <HERE> HTTP/1.1\n<AUTH>\nHost: {OTHER}\n\n",
    )


async def second_request_behind_the_first(place: Place) -> str | None:
    """The length of a body is said twice, or in chunks, so that the end of one request is the beginning of another."""
    behind = f"GET /second HTTP/1.1\nHost: {OTHER}\n\n"
    return await _sent(
        place,
        HONEST,
        f"POST <HERE> HTTP/1.1\n<AUTH>\nTransfer-Encoding: chunked\n\n0\n\n{behind}",
        f"POST <HERE> HTTP/1.1\n<AUTH>\nContent-Length: 0\nContent-Length: 90\n\n{behind}",
        f"GET <HERE> HTTP/1.1\n<AUTH>\nContent-Length: 0\n\n{behind}",
    )


async def password_of_the_proxy(place: Place) -> str | None:
    """The header with the password of the proxy is folded or doubled, so that it is passed on to the server."""
    return await _sent(
        place,
        HONEST,
        "GET <HERE> HTTP/1.1\nX: y\n proxy-authorization: z\n<AUTH>\n\n",
        "GET <HERE> HTTP/1.1\n<AUTH>\n<AUTH>\n\n",
        "GET <HERE> HTTP/1.1\n<AUTH>\nX: a<LF><AUTH>\n\n",
        seen="Basic",
    )
