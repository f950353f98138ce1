"""What strangers and web pages send to an HTTP server: refused, within limits, and the server still answers."""

import contextlib
import socket
import threading
import time

import pytest

from tests.e2e.mcp.conftest import ask, sites

BODY = b'{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}'
LARGE = 100 << 20


@pytest.fixture(scope="module")
def standing(tmp_path_factory):
    with sites(tmp_path_factory.mktemp("sites")) as start:
        yield start("first", "second")


@pytest.fixture
def site(standing):
    yield standing
    assert standing.healthy()


def request(site, *, path="/mcp", body=BODY, method="POST", token="", **headers):
    host = headers.pop("host", f"127.0.0.1:{site.port}")
    lines = [f"{method} {path} HTTP/1.1", f"host: {host}", f"content-length: {len(body)}"]
    lines += ["content-type: application/json", "accept: application/json, text/event-stream"]
    lines += [f"authorization: Bearer {token}"] if token else []
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def status(answer):
    return int(answer.split(b" ")[1]) if answer else 0


def good(site):
    return next(iter(site.folders))


def resident(site):
    with open(f"/proc/{site.process.pid}/status") as facts:
        return next(int(line.split()[1]) for line in facts if line.startswith("VmRSS")) // 1024


@pytest.mark.parametrize(
    "token",
    [
        "",
        "wrong-token-0123456789abcdef",
        "token-of-first-0123456789abcde",
        "token-of-first-0123456789abcdef\0",
    ],
)
def test_without_a_right_token_nothing_is_answered(site, token):
    answer = site.send(request(site, token=token))
    assert status(answer) in {400, 401}
    assert b"tools" not in answer


def test_other_ways_to_show_a_token_do_not_count(site):
    token = good(site)
    assert status(site.send(request(site, path=f"/mcp?token={token}"))) == 401
    assert status(site.send(request(site, authorization=f"Basic {token}"))) == 401
    assert status(site.send(request(site, cookie=f"authorization=Bearer {token}"))) == 401
    twice = request(site, token=token).replace(b"\r\n\r\n", b"\r\nauthorization: Bearer x\r\n\r\n", 1)
    assert status(site.send(twice)) == 400


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "null", "http://127.0.0.1:1", "https://localhost.evil.example", ""]
)
def test_web_pages_of_other_origins_are_refused(site, origin):
    assert status(site.send(request(site, token=good(site), origin=origin))) == 403


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.org", "", "x@evil"])
def test_a_name_that_was_rebound_to_us_is_refused(site, host):
    assert status(site.send(request(site, token=good(site), host=host))) in {400, 421}


@pytest.mark.parametrize(
    "path",
    [
        "/mcp/../../etc/passwd", "/mcp/%2e%2e/second", "/second/mcp", "//mcp", "/mcp/", "/mcp%00", "/",
        "/file:///etc/passwd", "http://evil.example/mcp/x", "/mcp;workspace=second",
    ],
)  # fmt: skip
def test_a_path_in_the_url_opens_nothing(site, path):
    assert status(site.send(request(site, path=path, token=good(site)))) in {400, 404}


def test_a_body_of_a_hundred_megabytes_is_refused_before_it_is_read(site):
    before = resident(site)
    head = request(site, token=good(site)).partition(b"\r\n\r\n")[0]
    declared = head.replace(f"content-length: {len(BODY)}".encode(), f"content-length: {LARGE}".encode())
    began = time.monotonic()
    assert status(site.send(declared + b"\r\n\r\n" + b"x" * 4096)) == 413
    assert time.monotonic() - began < 20
    chunked = head.replace(f"content-length: {len(BODY)}".encode(), b"transfer-encoding: chunked")
    chunk = b"100000\r\n" + b"x" * (1 << 20) + b"\r\n"
    got = site.send(chunked + b"\r\n\r\n" + chunk * 100)
    assert status(got) in {0, 413}  # the answer may be lost with the connection that it closes
    assert resident(site) - before < 60


def test_a_client_that_says_its_headers_slowly_is_cut_off(site):
    began = time.monotonic()
    with socket.create_connection(("127.0.0.1", site.port), timeout=10) as slow:
        slow.sendall(b"POST /mcp HTTP/1.1\r\nhost: 127.0.0.1\r\n")
        stop = threading.Event()

        def drip():
            while not stop.wait(0.2):
                try:
                    slow.sendall(b"x-slow: 1\r\n")
                except OSError:
                    return

        dripping = threading.Thread(target=drip)
        dripping.start()
        try:
            assert slow.recv(100) == b""
        except ConnectionResetError:
            pass
        finally:
            stop.set()
            dripping.join()
    assert time.monotonic() - began < 20


def test_a_client_that_says_its_body_slowly_is_cut_off(site):
    raw = request(site, token=good(site)).replace(
        f"content-length: {len(BODY)}".encode(), b"content-length: 900"
    )
    began = time.monotonic()
    assert status(site.send(raw)) == 408
    assert time.monotonic() - began < 20


def test_many_slow_clients_do_not_keep_others_out(site):
    slow = [socket.create_connection(("127.0.0.1", site.port), timeout=10) for _ in range(100)]
    try:
        for connection in slow:
            connection.sendall(b"POST /mcp HTTP/1.1\r\n")
        assert site.healthy()
        for connection in slow:
            connection.settimeout(10)
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(100) == b""
    finally:
        for connection in slow:
            connection.close()


def test_a_flood_of_headers_is_refused(site):
    many = {f"x_{number}": "y" * 100 for number in range(1_000)}
    assert status(site.send(request(site, token=good(site), **many))) in {0, 400, 431}
    assert status(site.send(request(site, token=good(site), x_long="y" * (1 << 20)))) in {0, 400, 431}


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b'{"jsonrpc":"2.0"}', b"\xff\xfe", b"[" * 100_000]
)
def test_a_body_that_is_no_request_is_refused(site, body):
    assert status(site.send(request(site, token=good(site), body=body))) in {400, 406}


@pytest.mark.parametrize("method", ["PUT", "OPTIONS", "TRACE", "PATCH", "CONNECT"])
def test_other_methods_are_refused(site, method):
    assert status(site.send(request(site, token=good(site), method=method))) in {400, 404, 405}


def test_connections_without_a_right_token_take_no_place_of_those_with_one(site):
    """More than the server keeps at all: some were answered and go on to send, some say nothing."""
    asked = request(site, path="/metrics", method="GET", body=b"", token=good(site))
    half = request(site, body=b"").replace(b"content-length: 0", b"content-length: 1000000") + b"{"
    with contextlib.ExitStack() as stack:
        known = stack.enter_context(socket.create_connection(("127.0.0.1", site.port), 20))
        assert status(ask(known, asked)) == 200
        for number in range(600):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", site.port), 20))
            line.sendall(b"" if number % 3 else half)
        assert status(site.send(asked)) == 200
        assert status(ask(known, asked)) == 200
