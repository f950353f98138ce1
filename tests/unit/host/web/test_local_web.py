"""Pages from real servers: held to the address that was vetted, and to the name that was asked for."""

import datetime as dt
import ssl
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar

import pytest

from handtools.core.errors import Denied, TimedOut, TooLarge, Unreachable
from handtools.core.web import WebRequest, WebResponse
from handtools.host.confined_workers import WorkerLimits, Workers
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.host.web import page_text
from handtools.host.web.http_client import ACCEPT_HEADERS, OutboundHttpRequest, send_request
from handtools.host.web.local_web import LocalWeb, vetted_addresses
from handtools.host.web.page_cache import PageCache
from handtools.host.web.request_limits import ResponseLimits
from handtools.runtime.policy import Policy
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.text.web.url import parse_url
from handtools.tools.fetch import fetch


class Echo(BaseHTTPRequestHandler):
    """Says what it was asked."""

    def do_GET(self) -> None:
        body = "\n".join(f"{name}: {value}" for name, value in self.headers.items()).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/plain")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture
def serve():
    """Start servers; give back their ports."""
    servers = []

    def start(handler=Echo, context: ssl.SSLContext | None = None) -> int:
        server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
        if context is not None:
            server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        servers.append(server)
        return server.server_address[1]

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def anywhere(*_: object) -> bool:
    return True


def nowhere(*_: object) -> bool:
    return False


def asked(url: str, **options) -> WebRequest:
    return WebRequest(url=parse_url(url), **options)


async def test_a_name_is_looked_up_once_and_its_address_held_on_to(serve):
    looks = []

    def look_up(host: str, _: int) -> list[str]:
        looks.append(host)
        return ["127.0.0.1"] if len(looks) == 1 else ["203.0.113.1"]

    port = serve()
    answer = await LocalWeb(look_up=look_up).fetch_response(
        asked(f"http://docs.example:{port}/"), opens=anywhere
    )
    assert looks == ["docs.example"]
    assert answer.addresses == ("127.0.0.1",)
    assert f"Host: docs.example:{port}" in answer.data.decode()


async def test_an_address_that_does_not_answer_gives_way_to_the_next(serve):
    port = serve()
    web = LocalWeb(look_up=lambda *_: ["127.0.0.9", "127.0.0.1"], limits=ResponseLimits(connect=4))
    assert (await web.fetch_response(asked(f"http://docs.example:{port}/"), opens=anywhere)).status == 200


@pytest.mark.parametrize("form", ["markdown", "text", "html"])
async def test_the_headers_fit_the_form_and_carry_nothing_of_ours(serve, form, monkeypatch):
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
    monkeypatch.setenv("NETRC", "/nowhere")
    answer = await LocalWeb().fetch_response(
        asked(f"http://127.0.0.1:{serve()}/", form=form), opens=anywhere
    )
    headers = dict(line.split(": ", 1) for line in answer.data.decode().splitlines())
    assert headers["Accept"] == ACCEPT_HEADERS[form]
    assert set(headers) == {
        "Host", "Connection", "User-Agent", "Accept", "Accept-Encoding", "Accept-Language",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("addresses", "fit"),
    [
        (["127.0.0.1"], None),
        (["10.0.0.1", "fd00::1"], None),
        (["203.0.113.1"], ("203.0.113.1",)),
        (["10.0.0.1", "203.0.113.1"], ("203.0.113.1",)),
        ([], None),
    ],
)
async def test_only_fit_addresses_are_gone_to(addresses, fit):
    url = parse_url("https://docs.example/")
    if fit is not None:
        assert await vetted_addresses(url, lambda *_: addresses, nowhere) == fit
        return
    with pytest.raises(Denied, match="is not allowed"):
        await vetted_addresses(url, lambda *_: addresses, nowhere)


async def test_a_listed_name_does_not_open_the_addresses_that_it_leads_to():
    url = parse_url("https://docs.example/")
    with pytest.raises(Denied, match="a private network"):
        await vetted_addresses(url, lambda *_: ["10.0.0.1"], lambda host, _: host == "docs.example")
    assert await vetted_addresses(url, lambda *_: ["10.0.0.1"], lambda host, _: host == "10.0.0.1") == (
        "10.0.0.1",
    )


async def test_localhost_belongs_to_nobody_else():
    url = parse_url("http://app.localhost:3000/")

    def listed(host: str, port: int) -> bool:
        return (host, port) == ("app.localhost", 3000)

    assert await vetted_addresses(url, lambda *_: ["::1", "127.0.0.1"], listed) == ("::1", "127.0.0.1")
    with pytest.raises(Denied):
        await vetted_addresses(url, lambda *_: ["10.0.0.1"], listed)


async def test_nobody_there_is_said_in_a_sentence():
    web = LocalWeb(limits=ResponseLimits(connect=2))
    with pytest.raises(Unreachable, match=r"Can't reach 127\.0\.0\.1"):
        await web.fetch_response(asked("http://127.0.0.1:9/"), opens=anywhere)


async def test_a_look_up_that_hangs_is_given_up_in_time():
    gate = threading.Event()
    web = LocalWeb(look_up=lambda *_: ["203.0.113.1"][: gate.wait(30)], limits=ResponseLimits(connect=0.2))
    try:
        with pytest.raises(TimedOut, match=r"docs\.example"):
            await web.fetch_response(asked("http://docs.example/"), opens=anywhere)
    finally:
        gate.set()


class Long(Echo):
    """A long page, counted."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = "".join(f"<h2>Part {n}</h2>{'<p>Some words.</p>' * 50}" for n in range(20)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.send_header("ETag", '"caf\u00e9"')
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.mark.claim("fetch.cursor")
async def test_going_on_with_a_page_does_not_load_it_again(serve, tmp_path):
    Long.asked.clear()
    port = serve(Long)
    box = memory_toolbox(
        tools=[fetch],
        web=LocalWeb(pages=PageCache(FolderBlobStore(tmp_path))),
        policy=Policy(hosts=(f"127.0.0.1:{port}",)),
    )
    url = f"http://127.0.0.1:{port}/"
    first = await box.call("fetch", {"url": url, "max_tokens": 500})
    for more in ({"cursor": first.details.cursor}, {"section": "Part 7"}, {"find": "part 9"}):
        result = await box.call("fetch", {"url": url, **more})
        assert result.ok
        assert result.details.kept
    assert Long.asked == ["/"]
    assert (await box.call("fetch", {"url": url, "max_tokens": 500})).ok
    assert Long.asked == ["/", "/"]


def certificate(folder, name: str) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's context for a name, and one that believes it."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    now = dt.datetime.now(dt.UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(now - dt.timedelta(days=1))
        .not_valid_after(now + dt.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .sign(key, hashes.SHA256())
    )
    pem = folder / "both.pem"
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    pem.write_bytes(made.public_bytes(serialization.Encoding.PEM) + private)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    return server, ssl.create_default_context(cafile=str(pem))


async def test_tls_is_for_the_name_though_the_connection_is_to_the_address(serve, tmp_path):
    server, trust = certificate(tmp_path, "docs.example")
    names = []
    server.sni_callback = lambda _, name, __: names.append(name)
    port = serve(context=server)
    web = LocalWeb(look_up=lambda *_: ["127.0.0.1"], trust=trust)
    assert (await web.fetch_response(asked(f"https://docs.example:{port}/"), opens=anywhere)).status == 200
    assert names == ["docs.example"]
    with pytest.raises(Unreachable, match="Can't reach"):
        await web.fetch_response(asked(f"https://other.example:{port}/"), opens=anywhere)
    with pytest.raises(Unreachable, match="Can't reach"):
        await LocalWeb(look_up=lambda *_: ["127.0.0.1"]).fetch_response(
            asked(f"https://docs.example:{port}/"), opens=anywhere
        )


async def test_a_long_page_is_converted_apart_and_comes_out_the_same():
    html = "<h1>Grüße</h1>" + "<p>Some words.</p>\n" * 20_000
    assert len(html) > page_text.MAX_CHARS_WITHOUT_WORKER
    answer = WebResponse(
        url=parse_url("https://docs.example/"), status=200, media_type="text/html", data=html.encode()
    )
    text = (await LocalWeb().render(answer, "markdown")).text
    assert text.startswith("# Grüße")
    assert text.count("Some words.") == 20_000


async def test_a_page_that_keeps_the_converter_busy_is_given_up(monkeypatch):
    impatient = Workers(sys.path, WorkerLimits(seconds=0.05))
    monkeypatch.setattr(page_text, "workers_of_workspace", lambda root: impatient)
    data = b"<blockquote>" * 200_000
    answer = WebResponse(
        url=parse_url("https://docs.example/"), status=200, media_type="text/html", data=data
    )
    with pytest.raises(TooLarge, match=r"more than 0\.05 s"):
        await LocalWeb().render(answer, "markdown")


async def test_a_server_that_trickles_is_given_up_in_time(serve):
    class Trickle(Echo):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            pause = threading.Event()
            for _ in range(200):
                self.wfile.write(b"x")
                pause.wait(0.05)

    web = LocalWeb(limits=ResponseLimits(total=0.5))
    with pytest.raises(TimedOut, match=r"no complete response within 0\.5 s"):
        await web.fetch_response(asked(f"http://127.0.0.1:{serve(Trickle)}/"), opens=anywhere)


def test_without_its_libraries_there_is_no_web(monkeypatch):
    assert LocalWeb().missing == ""
    monkeypatch.setattr("handtools.host.web.local_web.REQUIRED_WEB_LIBRARIES", ("no_such_library",))
    assert "handtools-slim[web]" in LocalWeb().missing


async def test_a_request_that_can_not_be_sent_is_not_quoted(serve):
    url = parse_url(f"http://127.0.0.1:{serve()}/")
    sent = OutboundHttpRequest(url=url, headers={"X-Key": "secret\nsecond"})
    with pytest.raises(Unreachable) as refused:
        await send_request(sent, ("127.0.0.1",), ResponseLimits(), None)
    assert "secret" not in str(refused.value)


class ParentProxy(Echo):
    """A proxy that answers plain requests itself, with what it was asked for."""

    asked: ClassVar[list[tuple[str, str]]] = []

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Proxy-Authorization", "")))
        super().do_GET()


def unknown_name(host: str, port: int) -> list[str]:
    raise OSError(f"{host}:{port} is not known here")


async def visited(port: int, url: str, look_up) -> WebResponse:
    ParentProxy.asked.clear()
    web = LocalWeb(proxy=f"http://me:pw@127.0.0.1:{port}", look_up=look_up)
    return await web.fetch_response(WebRequest(url=parse_url(url), form="text"), opens=lambda *_: False)


async def test_a_page_is_fetched_through_the_proxy_also_if_only_that_knows_the_name(serve):
    port = serve(ParentProxy)
    answer = await visited(port, "http://only-there.example/a?b=c", unknown_name)
    assert answer.status == 200
    assert ParentProxy.asked == [("http://only-there.example:80/a?b=c", "Basic bWU6cHc=")]


async def test_the_proxy_is_not_asked_for_what_leads_to_this_machine(serve):
    port = serve(ParentProxy)
    for url in ("http://169.254.169.254/latest", "http://127.0.0.1/", "http://lying.example/"):
        with pytest.raises(Denied):
            await visited(port, url, lambda *_: ["127.0.0.1"])
    assert ParentProxy.asked == []
