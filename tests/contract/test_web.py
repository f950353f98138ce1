"""The web of a machine, over every implementation."""

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from handtools.core.errors import Unreachable
from handtools.core.web import HostWeb, WebRequest
from handtools.host.web.local_web import LocalWeb
from handtools.testing.stubs import CannedPage, MemoryWeb
from handtools.text.web.url import parse_url

SITES = {
    "/page": CannedPage(data="<title>T</title><h1>Grüße</h1>".encode(), charset="utf-8"),
    "/plain": CannedPage(data=b"# as it is", media_type="text/plain"),
    "/onward": CannedPage(status=302, location="/page"),
    "/nothing": CannedPage(status=404, data=b"no"),
    "/busy": CannedPage(status=503, retry_after=7.0),
    "/picture": CannedPage(data=b"\x89PNG\r\n\x1a\n\0\0", media_type="image/png"),
}


class Serve(BaseHTTPRequestHandler):
    """Serves `SITES` for real."""

    def do_GET(self) -> None:
        site = SITES[self.path]
        kind = f"{site.media_type}; charset={site.charset}" if site.charset else site.media_type
        self.send_response(site.status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(site.data)))
        if site.location:
            self.send_header("Location", site.location)
        if site.retry_after is not None:
            self.send_header("Retry-After", str(int(site.retry_after)))
        self.end_headers()
        self.wfile.write(site.data)

    def log_message(self, *_: object) -> None:
        """Nothing."""


@pytest.fixture(params=["local", "memory"])
def web(request):
    """A web with the sites, and the address of the first of them."""
    if request.param == "memory":
        yield (
            MemoryWeb({f"http://site.example{path}": site for path, site in SITES.items()}),
            "http://site.example",
        )
        return
    server = ThreadingHTTPServer(("127.0.0.1", 0), Serve)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    port = server.server_address[1]
    yield (
        LocalWeb(look_up=_only({"site.example": ["127.0.0.1"]}), environment={}),
        f"http://site.example:{port}",
    )
    server.shutdown()
    server.server_close()


def _only(names):
    def look_up(host: str, _: int) -> list[str]:
        if host not in names:
            raise OSError(-2, "no such name")
        return names[host]

    return look_up


async def visited(web: tuple[HostWeb, str], path: str):
    port, home = web
    return await port.fetch_response(WebRequest(url=parse_url(f"{home}{path}")), opens=lambda *_: True)


async def test_a_page_comes_with_what_is_said_about_it(web):
    answer = await visited(web, "/page")
    assert (answer.status, answer.media_type, answer.charset) == (200, "text/html", "utf-8")
    rendered = await web[0].render(answer, "markdown")
    assert (rendered.text.strip(), rendered.title, rendered.encoding) == ("# Grüße", "T", "utf-8")
    assert (await web[0].render(answer, "html")).text.endswith("</h1>")


async def test_plain_text_stays_plain(web):
    answer = await visited(web, "/plain")
    assert (await web[0].render(answer, "text")).text == "# as it is"


async def test_nobody_is_followed(web):
    answer = await visited(web, "/onward")
    assert (answer.status, answer.location) == (302, "/page")


@pytest.mark.parametrize(("path", "status", "wait"), [("/nothing", 404, None), ("/busy", 503, 7.0)])
async def test_what_is_no_page_is_an_answer_too(web, path, status, wait):
    answer = await visited(web, path)
    assert (answer.status, answer.retry_after) == (status, wait)


async def test_a_picture_has_no_text(web):
    answer = await visited(web, "/picture")
    assert (await web[0].render(answer, "markdown")).text is None
    assert answer.data == SITES["/picture"].data


async def test_a_host_that_is_not_there_can_not_be_reached(web):
    with pytest.raises(Unreachable, match=r"Can't resolve nowhere\.example") as told:
        await web[0].fetch_response(
            WebRequest(url=parse_url("http://nowhere.example/")), opens=lambda *_: True
        )
    assert told.value.hint
