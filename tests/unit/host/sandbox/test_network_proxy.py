"""The proxy on a loopback port: what it lets through, what it refuses, and that it notes both."""

import asyncio
import base64
import contextlib
import socket
import struct
import threading
from collections.abc import Iterator
from typing import Self

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.core.web import Visit
from handtools.host.sandbox.network_proxy import (
    BadProxyRequest,
    EgressProxy,
    ProxyRequest,
    ProxyTimeouts,
    read_proxy_request,
)
from handtools.text.web.host_access import parse_host_list

SHORT = 0.2


def stop_listening(server: socket.socket) -> None:
    """Close a socket in whose `accept` a thread waits.

    Without the shutdown the thread goes on waiting. A later `seteuid` interrupts it, and the kernel restarts
    `accept` with the number of the descriptor, which may belong to another test's socket by then.
    """
    server.shutdown(socket.SHUT_RDWR)
    server.close()


class Server:
    """Answers every connection once, after its first bytes or those that a test waits for."""

    until = b""

    def __init__(self) -> None:
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.port = self.socket.getsockname()[1]
        self.heard: list[bytes] = []
        self.served = threading.Semaphore(0)
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                there, _ = self.socket.accept()
                with there:
                    heard = b""
                    with contextlib.suppress(ConnectionResetError):
                        while (piece := there.recv(65536)) and self.until not in (heard := heard + piece):
                            pass
                    self.heard.append(heard)
                    self.served.release()
                    there.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi")


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    stop_listening(made.socket)


class Through:
    """A proxy that listens, and what clients say to it."""

    def __init__(
        self, *hosts: str, patience: ProxyTimeouts | None = None, password: str = "", outgoing: str = ""
    ) -> None:
        self.told: list[Visit] = []
        self.proxy = EgressProxy(
            parse_host_list(hosts),
            password,
            self.told.append,
            patience or ProxyTimeouts(),
            outgoing=outgoing,
        )
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.address = self.listening.getsockname()
        self.proxy.start(self.listening)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self.listening.fileno() >= 0:
            self.proxy.stop()

    def says(self, *parts: bytes) -> bytes:
        """Send the parts, each after an answer to the one before; everything that came back."""
        with socket.create_connection(self.address, timeout=10) as client:
            heard = b""
            for number, part in enumerate(parts):
                client.sendall(part)
                if number < len(parts) - 1:
                    heard += client.recv(65536)
            while piece := client.recv(65536):
                heard += piece
            return heard

    @property
    def visits(self) -> list[Visit]:
        """The log, once everything has ended."""
        self.close()
        return self.proxy.visits


def test_a_tunnel_to_a_listed_address_carries_both_ways(server):
    with Through(f"127.0.0.1:{server.port}") as through:
        heard = through.says(
            f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n\r\n".encode(), b"GET / HTTP/1.1\r\n\r\n"
        )
    assert heard.startswith(b"HTTP/1.1 200 Connected\r\n\r\nHTTP/1.1 200 OK")
    assert server.heard == [b"GET / HTTP/1.1\r\n\r\n"]
    [visit] = through.proxy.visits
    assert (visit.host, visit.port, visit.addresses) == ("127.0.0.1", server.port, ("127.0.0.1",))
    assert (visit.refused, visit.sent_bytes, visit.received_bytes) == ("", 18, 59)


def test_a_plain_request_goes_to_the_host_that_was_judged_whatever_it_names(server):
    with Through(f"127.0.0.1:{server.port}") as through:
        request = (
            f"GET http://127.0.0.1:{server.port}/a?b=c HTTP/1.1\r\nHost: evil.example\r\n"
            "Proxy-Authorization: secret\r\nProxy-Connection: keep-alive\r\nAccept: */*\r\n\r\n"
        )
        assert through.says(request.encode()).endswith(b"hi")
    [heard] = server.heard
    assert heard.startswith(f"GET /a?b=c HTTP/1.1\r\nHost: 127.0.0.1:{server.port}\r\n".encode())
    assert b"Accept: */*" in heard
    assert b"evil" not in heard
    assert b"secret" not in heard


def test_a_second_request_on_the_same_connection_is_not_passed_on(server):
    with Through(f"127.0.0.1:{server.port}") as through:
        one = f"POST http://127.0.0.1:{server.port}/ HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc"
        two = "GET http://evil.example/ HTTP/1.1\r\n\r\n"
        through.says((one + two).encode())
    assert b"".join(server.heard).endswith((b"\r\n\r\nabc", b"\r\n\r\n"))
    assert b"evil" not in b"".join(server.heard)


HOSTILE_LINES = [
    "Host: evil.example",
    "host:evil.example",
    "Host : evil.example",
    " Host: evil.example",
    "X: y\nHost: evil.example",
    "X: y\rHost: evil.example",
    "Connection: keep-alive",
    "Connection: host",
    "Content-Length: 3",
    "Content-Length: +3",
    "Content-Length: 70",
    "content-length:\t5",
    "Transfer-Encoding: chunked",
    "Transfer-Encoding: identity",
    "Transfer-Encoding:\x0bchunked",
    "Proxy-Authorization: Basic aDpzZWNyZXQ=",
    "Upgrade: h2c",
    "Expect: 100-continue",
    "X: caf\xe9",
    "",
]


@given(
    st.sampled_from(["GET", "POST", "OPTIONS", "Q\tX", "GET\n"]),
    st.sampled_from(["", "/", "/a?b#c", "/a\rb", "/ HTTP/1.1\r\nHost: evil.example\r\nX:", "?q"]),
    st.lists(st.sampled_from(HOSTILE_LINES), max_size=4),
)
def test_a_request_that_is_passed_on_is_one_request_to_the_judged_host_for_every_reader(
    method, path, lines
):
    head = "\r\n".join([f"{method} http://u@Example.COM.:8080{path} HTTP/1.1", *lines, "", ""])

    async def read() -> ProxyRequest:
        reader = asyncio.StreamReader()
        reader.feed_data(head.encode("latin-1"))
        reader.feed_eof()
        return await read_proxy_request(reader, None)  # type: ignore[arg-type]

    try:
        request = asyncio.run(read())
    except BadProxyRequest:
        return
    assert (request.host, request.port) == ("example.com", 8080)
    server = h11.Connection(h11.SERVER)
    server.receive_data(request.head)
    event = server.next_event()
    assert isinstance(event, h11.Request)
    assert [value for name, value in event.headers if name == b"host"] == [b"example.com:8080"]
    assert (b"connection", b"close") in event.headers
    framing = [
        (name, value) for name, value in event.headers if name in {b"content-length", b"transfer-encoding"}
    ]
    size = request.body_bytes
    assert framing in (
        [],
        [(b"content-length", str(size).encode())]
        if size is not None
        else [(b"transfer-encoding", b"chunked")],
    )
    assert b"\n" not in request.head.replace(b"\r\n", b"")
    assert b"secret" not in request.head
    assert b"evil" not in request.head.split(b"HTTP/1.1", 1)[1]


CHUNKED = "POST http://127.0.0.1:{port}/ HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"


def test_chunks_are_carried_and_nothing_behind_the_last(server):
    server.until = b"0\r\n\r\n"
    body = (
        "3;x=y\r\nabc\r\nA \r\n0123456789\r\n0\r\nX: evil\r\n\r\nGET http://evil.example/ HTTP/1.1\r\n\r\n"
    )
    with Through(f"127.0.0.1:{server.port}") as through:
        heard = through.says((CHUNKED.format(port=server.port) + body).encode())
    assert heard.endswith(b"hi")
    [request] = server.heard
    assert request.partition(b"\r\n\r\n")[2] == b"3\r\nabc\r\na\r\n0123456789\r\n0\r\n\r\n"


@pytest.mark.parametrize(
    "body",
    [
        "3\r\nabcGET /",
        "-3\r\nabc\r\n",
        "0x3\r\nabc\r\n",
        "3\nabc\n0\n\nGET / HTTP/1.1\r\n",
        "\r\n0\r\n\r\n",
    ],
)
def test_a_malformed_chunk_ends_the_connection_before_the_body_is_whole(server, body):
    server.until = b"never"
    with Through(f"127.0.0.1:{server.port}") as through:
        through.says((CHUNKED.format(port=server.port) + body).encode())
        assert server.served.acquire(timeout=10)
    assert b"0\r\n\r\n" not in server.heard[0]
    assert b"GET" not in server.heard[0]


def test_socks_carries_both_ways(server):
    with Through(f"127.0.0.1:{server.port}") as through:
        port = struct.pack("!H", server.port)
        heard = through.says(b"\x05\x01\x00", b"\x05\x01\x00\x01\x7f\x00\x00\x01" + port, b"hello")
    assert heard.startswith(b"\x05\x00\x05\x00\x00\x01")
    assert server.heard == [b"hello"]


@pytest.mark.parametrize(
    "target",
    [
        "evil.example:443",
        "127.0.0.1:1",
        "[::1]:443",
        "2130706433:443",
        "169.254.169.254:80",
        "localhost:443",
    ],
)
def test_what_is_not_listed_is_refused_with_words_and_noted(server, target):
    with Through("example.com", f"127.0.0.1:{server.port}") as through:
        heard = through.says(f"CONNECT {target} HTTP/1.1\r\n\r\n".encode())
        assert heard.startswith(b"HTTP/1.1 403 Forbidden\r\n")
        assert b"is not in this command's list of hosts" in heard
        [visit] = through.visits
    assert "is not in this command's list of hosts" in visit.refused
    assert through.told == [visit]
    assert server.heard == []


def test_socks_is_refused_by_the_same_list(server):
    with Through("example.com") as through:
        name = b"evil.example"
        wish = b"\x05\x01\x00\x03" + bytes([len(name)]) + name + b"\x01\xbb"
        assert through.says(b"\x05\x01\x00", wish)[2:4] == b"\x05\x02"
        port = struct.pack("!H", server.port)
        assert through.says(b"\x05\x01\x00", b"\x05\x01\x00\x01\x7f\x00\x00\x01" + port)[2:4] == b"\x05\x02"
        assert through.says(b"\x05\x01\x00", b"\x05\x02\x00\x01\x7f\x00\x00\x01" + port)[2:4] == b"\x05\x07"
    assert server.heard == []


def test_a_listed_name_that_leads_to_this_machine_is_refused(server):
    with Through(f"localhost:{server.port}") as through:
        heard = through.says(f"CONNECT localhost:{server.port} HTTP/1.1\r\n\r\n".encode())
        assert b"Commands may not connect to" in heard
    assert server.heard == []


def test_a_listed_name_may_lead_to_an_address_that_is_listed_too(server):
    with Through(f"localhost:{server.port}", "127.0.0.1") as through:
        heard = through.says(f"CONNECT localhost:{server.port} HTTP/1.1\r\n\r\n".encode(), b"x")
    assert heard.startswith(b"HTTP/1.1 200")


def test_a_host_that_does_not_answer_is_told_from_one_that_is_refused():
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    with Through(f"127.0.0.1:{port}") as through:
        heard = through.says(f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\n\r\n".encode())
        assert heard.startswith(b"HTTP/1.1 502 ")
        assert "Can't reach" in through.visits[0].refused


@pytest.mark.parametrize(
    "said",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET https://example.com/ HTTP/1.1\r\n\r\n",
        b"CONNECT example.com HTTP/1.1\r\n\r\n",
        b"CONNECT example.com:99999 HTTP/1.1\r\n\r\n",
        b"CONNECT :443 HTTP/1.1\r\n\r\n",
        b"nonsense\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\n",
        b"POST http://example.com/ HTTP/1.1\r\nContent-Length: many\r\n\r\n",
        b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 0\r\nContent-Length: 0\r\n\r\n",
        b"POST http://example.com/ HTTP/1.1\r\nContent-Length: 0\r\nTransfer-Encoding: chunked\r\n\r\n",
        b"POST http://example.com/ HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\nX: a\nHost: evil.example\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\nHost: evil.example\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\nX: a\rHost: evil.example\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\nHost : evil.example\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\nX: a\r\n Host: evil.example\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\nX: a\0b\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\nno field\r\n\r\n",
        b"GET http://example.com/\tx HTTP/1.1\r\n\r\n",
        b"GET  http://example.com/ HTTP/1.1\r\n\r\n",
        b"GET http://exam,ple.com/ HTTP/1.1\r\n\r\n",
        b"CONNECT a@example.com:443 HTTP/1.1\r\n\r\n",
        b"GET http://example.com/ HTTP/1.1\r\nX: " + b"x" * 70_000 + b"\r\n\r\n",
    ],
)
def test_what_is_no_wish_is_answered_and_goes_nowhere(said):
    with Through("example.com") as through:
        assert through.says(said).startswith(b"HTTP/1.1 400 ")
        assert through.visits == []


def test_a_client_that_says_nothing_is_not_waited_for():
    with Through("example.com", patience=ProxyTimeouts(wish=SHORT)) as through:
        assert through.says(b"CONN") == b""


def test_closing_ends_connections_that_are_open(server):
    with Through(f"127.0.0.1:{server.port}") as through:
        client = socket.create_connection(through.address, timeout=10)
        client.sendall(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n\r\n".encode())
        assert client.recv(100).startswith(b"HTTP/1.1 200")
        assert len(through.told) == 1
        assert len(through.visits) == 1
        assert client.recv(100) == b""
        client.close()


def basic(password: str) -> str:
    return base64.b64encode(f"handtools:{password}".encode()).decode()


@pytest.mark.parametrize(
    "field", ["", f"Proxy-Authorization: Basic {basic('other')}", "Proxy-Authorization: Basic ?", "X: y"]
)
def test_without_its_password_a_listed_host_is_not_reached(server, field):
    with Through(f"127.0.0.1:{server.port}", password="right") as through:
        fields = f"{field}\r\n" if field else ""
        heard = through.says(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n{fields}\r\n".encode())
    assert heard.startswith(b"HTTP/1.1 407 ")
    assert b"Proxy-Authenticate: Basic" in heard
    assert server.heard == []


def test_with_its_password_a_listed_host_is_reached_and_not_told_it(server):
    with Through(f"127.0.0.1:{server.port}", password="right") as through:
        field = f"Proxy-Authorization: basic {basic('right')}"
        heard = through.says(f"GET http://127.0.0.1:{server.port}/ HTTP/1.1\r\n{field}\r\n\r\n".encode())
    assert heard.endswith(b"hi")
    assert b"uthorization" not in server.heard[0]


@pytest.mark.parametrize(("word", "code"), [(b"right", 0), (b"wrong", 2)])
def test_socks_takes_the_password_too(server, word, code):
    with Through(f"127.0.0.1:{server.port}", password="right") as through:
        greeting, given = b"\x05\x02\x00\x02", b"\x01\x01x" + bytes([len(word)]) + word
        wish = b"\x05\x01\x00\x01\x7f\x00\x00\x01" + struct.pack("!H", server.port)
        heard = through.says(greeting, given, wish, *([b"hello"] if code == 0 else []))
    assert heard.startswith(b"\x05\x02\x01\x00\x05" + bytes([code]))
    assert server.heard == ([b"hello"] if code == 0 else [])


def test_socks_without_a_password_is_refused(server):
    with Through(f"127.0.0.1:{server.port}", password="right") as through:
        wish = b"\x05\x01\x00\x01\x7f\x00\x00\x01" + struct.pack("!H", server.port)
        assert through.says(b"\x05\x01\x00", wish).startswith(b"\x05\x00\x05\x02")
    assert server.heard == []


TUNNEL = b"CONNECT only-there.invalid:443 HTTP/1.1\r\n\r\n"


class Parent:
    """A proxy above ours: remembers what it is asked, and then answers itself, or refuses."""

    def __init__(self, answer: bytes = b"HTTP/1.1 200 OK\r\n\r\n") -> None:
        self.asked: list[bytes] = []
        self.answer = answer
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.socket.getsockname()[1]}"
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.socket.accept()
                with client:
                    self.asked.append(client.recv(65536))
                    client.sendall(self.answer)
                    if b" 200 " in self.answer:
                        client.recv(65536)
                        client.sendall(b"from above")


@pytest.fixture
def parent() -> Iterator[Parent]:
    made = Parent()
    yield made
    stop_listening(made.socket)


def test_a_listed_host_is_reached_through_the_proxy_above_also_if_only_that_knows_its_name(parent):
    with Through("only-there.invalid:443", outgoing=f"http://me:p%40ss@{parent.address}") as through:
        assert through.says(TUNNEL, b"hello").endswith(b"from above")
    [asked] = parent.asked
    assert asked.startswith(b"CONNECT only-there.invalid:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic bWU6cEBzcw==\r\n" in asked


@pytest.mark.parametrize("host", ["other.invalid:443", "localhost:443", "169.254.169.254:443"])
def test_the_proxy_above_is_not_asked_for_what_no_command_may_reach(parent, host):
    with Through("only-there.invalid:443", "localhost:443", outgoing=f"http://{parent.address}") as through:
        assert b"403 Forbidden" in through.says(f"CONNECT {host} HTTP/1.1\r\n\r\n".encode())
    assert parent.asked == []


def test_what_the_proxy_above_says_is_told_and_its_password_is_not():
    above = Parent(b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n")
    with Through("only-there.invalid:443", outgoing=f"http://me:secret@{above.address}") as through:
        heard = through.says(TUNNEL)
    stop_listening(above.socket)
    assert b"502 Bad Gateway" in heard
    assert b"407 Proxy Authentication Required" in heard
    assert b"secret" not in heard
