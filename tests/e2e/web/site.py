"""A site that does everything wrong that sites do."""

import gzip
import threading
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import brotli
import zstandard

LARGE = 6_000_000
BOMB = 120 << 20
"""What the bombs unpack to."""
PIECE = b"<p>" + b"x" * 4_000 + b"</p>\n"
GUIDE = "<title>Guide</title><h1>Guide – Übersicht</h1><p>Text.</p>".encode()


@dataclass
class Log:
    """What the site noticed of its visitors."""

    asked: list[str] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)
    accepts: list[str] = field(default_factory=list)
    conditions: list[str] = field(default_factory=list)
    sent: dict[str, int] = field(default_factory=dict)
    """Bytes of body that went out, by path."""


def page_of(handler: "Handler") -> None:
    handler.answer(GUIDE)


def large(handler: "Handler") -> None:
    """Sends nothing before the visitor has hung up: who waits for the body waits in vain."""
    handler.head({"Content-Length": str(LARGE)})
    handler.connection.settimeout(20)
    handler.connection.recv(1)


def large_unsaid(handler: "Handler") -> None:
    handler.head({})
    handler.pour(LARGE)


def endless(handler: "Handler") -> None:
    handler.head({})
    handler.pour(1 << 40)


def endless_chunks(handler: "Handler") -> None:
    handler.head({"Transfer-Encoding": "chunked"})
    with suppress(OSError):
        while not handler.server.closing.is_set():
            handler.put(b"%x\r\n%s\r\n" % (len(PIECE), PIECE))


def drip(handler: "Handler") -> None:
    handler.head({})
    with suppress(OSError):
        while not handler.server.closing.wait(0.05):
            handler.put(b"x")


def silent(handler: "Handler") -> None:
    handler.server.closing.wait(60)


def packed(encoding: str, pack: Callable[[], bytes]) -> Callable[["Handler"], None]:
    return lambda handler: handler.answer(pack(), {"Content-Encoding": encoding})


def cut_short(handler: "Handler") -> None:
    """Hangs up in the middle."""
    handler.head({"Content-Length": "5000"})
    handler.put(GUIDE)


def cut_chunks(handler: "Handler") -> None:
    handler.head({"Transfer-Encoding": "chunked"})
    handler.put(b"%x\r\n%s\r\n" % (len(GUIDE), GUIDE))


def onward(to: str) -> Callable[["Handler"], None]:
    return lambda handler: handler.answer(b"", {"Location": to}, status=302)


def deeper(handler: "Handler") -> None:
    handler.answer(b"", {"Location": f"{handler.path}x"}, status=302)


def charset(handler: "Handler") -> None:
    handler.answer(
        "<h1>Grüße</h1><p>Übermäßig</p>".encode("cp1252"), {"Content-Type": "text/html; charset=utf-8"}
    )


def charset_other(handler: "Handler") -> None:
    handler.answer("<h1>Grüße</h1>".encode(), {"Content-Type": "text/html; charset=iso-8859-1"})


def challenge(handler: "Handler") -> None:
    if handler.headers["User-Agent"] == "handtools":
        handler.answer(GUIDE)
    else:
        handler.answer(b"Checking your browser", {"cf-mitigated": "challenge"}, status=403)


def challenge_always(handler: "Handler") -> None:
    handler.answer(b"Checking your browser", {"cf-mitigated": "challenge"}, status=403)


def too_many(handler: "Handler") -> None:
    handler.answer(b"slow down", {"Retry-After": "17"}, status=429)


def tagged(handler: "Handler") -> None:
    handler.server.log.conditions.append(handler.headers.get("If-None-Match", ""))
    if handler.headers.get("If-None-Match") == '"one"':
        handler.answer(b"", {"ETag": '"one"'}, status=304)
    else:
        handler.answer(GUIDE, {"ETag": '"one"'})


def dated(handler: "Handler") -> None:
    when = "Sat, 14 Nov 2026 10:00:00 GMT"
    handler.server.log.conditions.append(handler.headers.get("If-Modified-Since", ""))
    if handler.headers.get("If-Modified-Since") == when:
        handler.answer(b"", status=304)
    else:
        handler.answer(GUIDE, {"Last-Modified": when})


def lasting(handler: "Handler") -> None:
    handler.answer(GUIDE, {"Cache-Control": "max-age=600"})


def secret(handler: "Handler") -> None:
    handler.answer(GUIDE, {"Cache-Control": "no-store"})


def many_headers(handler: "Handler") -> None:
    handler.head({f"X-{n}": "y" * 1_000 for n in range(500)})


@cache
def gzip_bomb() -> bytes:
    return gzip.compress(bytes(BOMB), 1)


@cache
def brotli_bomb() -> bytes:
    return bytes(brotli.compress(bytes(BOMB), quality=1))


@cache
def deflate_bomb() -> bytes:
    return zlib.compress(bytes(BOMB), 1)


@cache
def zstd_bomb() -> bytes:
    return zstandard.ZstdCompressor().compress(bytes(BOMB))


PATHS: dict[str, Callable[["Handler"], None]] = {
    "/": page_of,
    "/large": large,
    "/large-unsaid": large_unsaid,
    "/endless": endless,
    "/endless-chunks": endless_chunks,
    "/drip": drip,
    "/silent": silent,
    "/gzip": packed("gzip", lambda: gzip.compress(GUIDE)),
    "/gzip-bomb": packed("gzip", gzip_bomb),
    "/gzip-twice-bomb": packed("gzip, gzip", lambda: gzip.compress(gzip_bomb())),
    "/deflate": packed("deflate", lambda: zlib.compress(GUIDE)),
    "/deflate-raw": packed("deflate", lambda: zlib.compress(GUIDE, wbits=-15)),
    "/deflate-bomb": packed("deflate", deflate_bomb),
    "/brotli": packed("br", lambda: bytes(brotli.compress(GUIDE))),
    "/brotli-bomb": packed("br", brotli_bomb),
    "/zstd": packed("zstd", lambda: zstandard.compress(GUIDE)),
    "/zstd-bomb": packed("zstd", zstd_bomb),
    "/gzip-cut": packed("gzip", lambda: gzip.compress(GUIDE)[:-9]),
    "/brotli-cut": packed("br", lambda: bytes(brotli.compress(GUIDE))[:-2]),
    "/zstd-cut": packed("zstd", lambda: zstandard.compress(GUIDE * 9_000)[:-9]),
    "/cut-short": cut_short,
    "/cut-chunks": cut_chunks,
    "/broken-gzip": packed("gzip", lambda: b"this is no gzip"),
    "/unknown-packing": packed("lzma", lambda: GUIDE),
    "/circle": onward("/circle-back"),
    "/circle-back": onward("/circle"),
    "/itself": onward("/itself"),
    "/charset": charset,
    "/charset-other": charset_other,
    "/challenge": challenge,
    "/challenge-always": challenge_always,
    "/429": too_many,
    "/etag": tagged,
    "/modified": dated,
    "/lasting": lasting,
    "/no-store": secret,
    "/many-headers": many_headers,
    "/largest": lambda handler: handler.answer(GUIDE + PIECE * 1_200),
}


class Handler(BaseHTTPRequestHandler):
    """Serves `PATHS`; what begins with /deeper/ leads on without end."""

    server: "Site"
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        log = self.server.log
        log.asked.append(self.path)
        log.agents.append(self.headers.get("User-Agent", ""))
        log.accepts.append(self.headers.get("Accept", ""))
        self.close_connection = True
        serve = deeper if self.path.startswith("/deeper/") else PATHS.get(self.path)
        with suppress(OSError):
            if serve is None:
                self.answer(b"nothing", status=404)
            else:
                serve(self)

    def head(self, headers: dict[str, str], status: int = 200) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "text/html; charset=utf-8", **headers}.items():
            self.send_header(name, value)
        self.send_header("Connection", "close")
        self.end_headers()

    def answer(self, body: bytes, headers: dict[str, str] | None = None, status: int = 200) -> None:
        self.head({"Content-Length": str(len(body)), **(headers or {})}, status)
        self.put(body)

    def pour(self, size: int) -> None:
        sent = 0
        with suppress(OSError):
            while sent < size and not self.server.closing.is_set():
                self.put(PIECE[: size - sent])
                sent += len(PIECE)

    def put(self, data: bytes) -> None:
        self.wfile.write(data)
        sent = self.server.log.sent
        sent[self.path] = sent.get(self.path, 0) + len(data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


class Site(ThreadingHTTPServer):
    """The server, with what it noticed."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.log = Log()
        self.closing = threading.Event()

    @property
    def port(self) -> int:
        return int(self.server_address[1])


@contextmanager
def serving() -> Iterator[Site]:
    """The site on this machine, while the block runs."""
    for bomb in (gzip_bomb, deflate_bomb, brotli_bomb, zstd_bomb):
        bomb()
    site = Site()
    thread = threading.Thread(target=site.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield site
    finally:
        site.closing.set()
        site.shutdown()
        site.server_close()
        thread.join()
