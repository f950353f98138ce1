"""Search engines, each replayed over loopback in the shape that its manual gives."""

# ruff: noqa: E501 — answers are as long as engines make them

import json
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import pytest

from handtools.core.errors import HostError
from handtools.host.web.local_web import LocalWeb
from handtools.host.web.search_engines import (
    SEARCH_ENGINE_URL_VARIABLE,
    SEARCH_ENGINE_VARIABLE,
    SEARCH_ENGINES,
    configured_engine,
)
from handtools.runtime.policy import Policy
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.tools.web_search import web_search

KEY = "sk-very-secret-4711"


def duck(*results: tuple[str, str, str], ad: bool = False) -> bytes:
    kind = "result results_links results_links_deep " + ("result--ad" if ad else "web-result")
    rows = "".join(
        f'<div class="{kind}"><div class="links_main"><h2 class="result__title"><a rel="nofollow" class="result__a" '
        f'href="//duckduckgo.com/l/?uddg={url}&amp;rut=abc">{title}</a></h2>'
        f'<a class="result__snippet" href="x">{excerpt}</a></div></div>'
        for title, url, excerpt in results
    )
    return f'<html><body><div id="links" class="results">{rows}</div></body></html>'.encode()


ONE = {
    "brave": {"type": "search", "web": {"type": "search", "results": [{
        "title": "A guide", "url": "https://docs.example/guide?a=1", "description": "How <strong>to</strong> do it &amp; more",
        "age": "2 days ago", "language": "en"}]}},
    "tavily": {"query": "how", "answer": None, "images": [], "response_time": 1.1, "results": [{
        "title": "A guide", "url": "https://docs.example/guide?a=1", "content": "How to do it & more", "score": 0.9,
        "raw_content": None}]},
    "exa": {"requestId": "1", "resolvedSearchType": "neural", "results": [{
        "id": "x", "title": "A guide", "url": "https://docs.example/guide?a=1", "publishedDate": "2026-01-02T00:00:00.000Z",
        "author": "", "highlights": ["How to do it & more"], "highlightScores": [0.4]}], "costDollars": {"total": 0.005}},
    "kagi": {"meta": {"id": "1", "node": "us", "ms": 5}, "data": [
        {"t": 0, "rank": 1, "title": "A guide", "url": "https://docs.example/guide?a=1", "snippet": "How to do it & more",
         "published": "2026-01-02T00:00:00Z"}, {"t": 1, "list": ["other words"]}]},
    "searxng": {"query": "how", "number_of_results": 0, "answers": [], "results": [{
        "title": "A guide", "url": "https://docs.example/guide?a=1", "content": "How to do it & more", "engine": "x",
        "publishedDate": None}], "unresponsive_engines": []},
    "duckduckgo": duck(("A <b>guide</b>", "https%3A%2F%2Fdocs.example%2Fguide%3Fa%3D1", "How <b>to</b> do it &amp; more")),
}  # fmt: skip
NONE = {
    "brave": {"type": "search", "query": {"original": "how"}},
    "tavily": {"results": []},
    "exa": {"results": []},
    "kagi": {"meta": {}, "data": []},
    "searxng": {"results": [], "unresponsive_engines": []},
    "duckduckgo": b'<html><div class="no-results">No results.</div></html>',
}
BUSY = {"brave": 429, "tavily": 432, "exa": 429, "kagi": 429, "searxng": 429, "duckduckgo": 202}
NAMES = [adapter.name for adapter in SEARCH_ENGINES]
VARIABLES = {adapter.name: adapter.variable for adapter in SEARCH_ENGINES}


@dataclass
class Stub:
    """What the engine answers, and what it was asked."""

    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    port: int = 0
    asked: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)


@pytest.fixture
def stub():
    """An engine of our own, on this machine."""
    made = Stub()

    class Engine(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            made.asked.append((self.path, {k.lower(): v for k, v in self.headers.items()}, body))
            self.send_response(made.status)
            for name, value in {"Content-Length": str(len(made.body)), **made.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(made.body)

        def do_POST(self) -> None:
            self.do_GET()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Engine)
    threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
    made.port = server.server_address[1]
    yield made
    server.shutdown()
    server.server_close()


def environment(name: str, stub: Stub) -> dict[str, str]:
    home = f"http://127.0.0.1:{stub.port}"
    key = {VARIABLES[name]: home if name == "searxng" else KEY} if VARIABLES[name] else {}
    return {SEARCH_ENGINE_VARIABLE: name, SEARCH_ENGINE_URL_VARIABLE: home, **key}


async def searched(name: str, stub: Stub, body: dict | bytes, listeners=(), **args):
    stub.body = body if isinstance(body, bytes) else json.dumps(body).encode()
    box = memory_toolbox(
        tools=[web_search],
        web=LocalWeb(environment=environment(name, stub)),
        policy=Policy(hosts=(f"127.0.0.1:{stub.port}",)),
        listeners=listeners,
    )
    result = await box.call("web_search", {"query": "how & what", **args})
    await box.aclose()
    return result


@pytest.mark.parametrize("name", NAMES)
async def test_every_engine_gives_the_same_kind_of_result(name, stub):
    result = await searched(name, stub, ONE[name])
    assert result.ok, result.text
    assert result.details.engine == name
    [found] = result.details.results
    assert (found.title, found.url) == ("A guide", "https://docs.example/guide?a=1")
    assert found.excerpt == "How to do it & more"


@pytest.mark.parametrize("name", NAMES)
async def test_every_engine_is_asked_as_its_manual_says(name, stub):
    await searched(name, stub, ONE[name], limit=5)
    [(path, headers, body)] = stub.asked
    words = parse_qs(urlsplit(path).query)
    posted = json.loads(body) if body else {}
    assert (words.get("q") or [posted.get("query")])[0] == "how & what"
    shown = {
        "brave": (urlsplit(path).path, headers.get("x-subscription-token"), words.get("count")),
        "tavily": (path, headers.get("authorization"), posted.get("max_results")),
        "exa": (path, headers.get("x-api-key"), posted.get("numResults")),
        "kagi": (urlsplit(path).path, headers.get("authorization"), words.get("limit")),
        "searxng": (urlsplit(path).path, words.get("format"), None),
        "duckduckgo": (urlsplit(path).path, None, None),
    }[name]
    assert (
        shown
        == {
            "brave": ("/res/v1/web/search", KEY, ["5"]),
            "tavily": ("/search", f"Bearer {KEY}", 5),
            "exa": ("/search", KEY, 5),
            "kagi": ("/api/v0/search", f"Bot {KEY}", ["5"]),
            "searxng": ("/search", ["json"], None),
            "duckduckgo": ("/html/", None, None),
        }[name]
    )


@pytest.mark.parametrize("name", NAMES)
async def test_nothing_is_a_result(name, stub):
    result = await searched(name, stub, NONE[name])
    assert result.ok, result.text
    assert result.details.results == []
    assert "found nothing" in result.text


@pytest.mark.parametrize("name", NAMES)
async def test_not_now_is_not_nothing(name, stub):
    stub.status, stub.headers = BUSY[name], {"Retry-After": "9"}
    result = await searched(name, stub, b"")
    assert result.fault.code == "throttled"
    assert "Try again in 9 s." in result.text


async def test_a_puzzle_for_people_is_not_nothing(stub):
    page = b'<html><form id="challenge-form"><div class="anomaly-modal__mask">Select the ducks</div></form></html>'
    result = await searched("duckduckgo", stub, page)
    assert result.fault.code == "throttled"


async def test_advertisements_are_no_results(stub):
    page = duck(("Buy", "https%3A%2F%2Fads.example%2F", "now"), ad=True) + duck(
        ("A", "https%3A%2F%2Fa.example%2F", "")
    )
    result = await searched("duckduckgo", stub, page)
    assert [each.url for each in result.details.results] == ["https://a.example/"]


async def test_engines_behind_an_engine_that_do_not_answer_are_not_nothing(stub):
    body = {"results": [], "unresponsive_engines": [["x", "timeout"]]}
    assert (await searched("searxng", stub, body)).fault.code == "unreachable"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("body", [b"<html>Down for maintenance</html>", b"[]", b'{"data": 1}', b"\xff\xfe"])
async def test_an_answer_of_another_shape_is_said_to_be_one(name, body, stub):
    assert (await searched(name, stub, body)).fault.code == "unreachable"


@pytest.mark.parametrize("name", ["brave", "tavily", "exa", "kagi"])
@pytest.mark.parametrize("status", [200, 401, 403, 429, 500])
async def test_a_key_is_in_no_answer_no_event_and_no_log(name, status, stub, caplog):
    caplog.set_level("DEBUG")
    heard: list[object] = []
    stub.status = status
    result = await searched(name, stub, {"error": f"bad key {KEY}"}, listeners=[heard.append])
    assert not result.ok
    assert KEY in str(stub.asked)
    for shown in (result, heard, caplog.text, [record.__dict__ for record in caplog.records]):
        assert KEY not in repr(shown)
    assert KEY not in repr(configured_engine(environment(name, stub)))


async def test_an_engine_on_this_machine_must_be_listed(stub):
    box = memory_toolbox(
        tools=[web_search],
        web=LocalWeb(environment=environment("searxng", stub)),
        policy=Policy(unattended="allow"),
    )
    result = await box.call("web_search", {"query": "x"})
    assert result.status == "denied"
    assert not stub.asked


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ({}, None),
        ({"BRAVE_API_KEY": "x"}, "brave"),
        ({"EXA_API_KEY": "x", "TAVILY_API_KEY": "y"}, "tavily"),
        ({"EXA_API_KEY": "x", "TAVILY_API_KEY": "y", SEARCH_ENGINE_VARIABLE: "Exa"}, "exa"),
        ({"KAGI_API_KEY": " "}, None),
        ({"SEARXNG_URL": "https://search.example/sub"}, "searxng"),
        ({SEARCH_ENGINE_VARIABLE: "kagi"}, None),
        ({SEARCH_ENGINE_VARIABLE: "duckduckgo"}, "duckduckgo"),
    ],
)
def test_the_engine_is_what_a_person_has_set_up(given, name):
    found = configured_engine(given)
    assert (found and found.adapter.name) == name
    engine = LocalWeb(environment=given).engine
    assert (engine and engine.name) == name


@pytest.mark.parametrize(
    "given",
    [
        {SEARCH_ENGINE_VARIABLE: "altavista"},
        {"SEARXNG_URL": "file:///x"},
        {"EXA_API_KEY": "sk\nx"},
        {"EXA_API_KEY": "schlüssel"},
    ],
)
def test_what_is_set_up_wrongly_is_for_a_person_and_offers_nothing(given):
    with pytest.raises(HostError) as said:
        configured_engine(given)
    assert given.get("EXA_API_KEY", "no key") not in str(said.value)
    web = LocalWeb(environment=given)
    assert web.engine is None
    assert not memory_toolbox(tools=[web_search], web=web).definitions()


@pytest.mark.parametrize("key", [f"{KEY}\nsecond", f"{KEY}\0", f"{KEY}é"])
@pytest.mark.parametrize(
    "adapter", [each for each in SEARCH_ENGINES if each.variable and each.home], ids=lambda each: each.name
)
async def test_a_key_that_no_header_can_hold_is_refused_and_not_quoted(adapter, key):
    web = LocalWeb(environment={adapter.variable: key})
    assert web.engine is None
    with pytest.raises(HostError) as refused:
        configured_engine(web.environment)
    assert adapter.variable in str(refused.value)
    assert KEY not in str(refused.value)
