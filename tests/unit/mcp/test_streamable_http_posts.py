"""HTTP of the current protocol: every message is answered as the SDK's own transport answers it."""

import base64
import json
from contextlib import asynccontextmanager

import anyio
import httpx2
import pytest
from mcp import Client, MCPError
from mcp.client.streamable_http import streamable_http_client
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp_types import CallToolRequestParams, ElicitResult

from handtools.mcp import asgi_responses, streamable_http
from handtools.mcp.asgi_responses import HttpRefusal
from handtools.mcp.server import MethodRegistry, ServerMethod, build_mcp_server
from handtools.mcp.streamable_http import StatelessHttp
from handtools.mcp.tool_calls import ConnectionTools
from tests.e2e.mcp.workshop import workshop
from tests.unit.mcp.web import Exchange, notice, request

pytestmark = pytest.mark.anyio

CURRENT = "2026-07-28"
KEYS = "io.modelcontextprotocol/"
ENVELOPE = {f"{KEYS}protocolVersion": CURRENT, f"{KEYS}clientCapabilities": {}}
TOLD = {**ENVELOPE, "progressToken": "t", f"{KEYS}logLevel": "debug"}


def asked(method, params=None, meta=ENVELOPE, name=7):
    return request(method, {**(params or {}), "_meta": meta}, name)


def heads(method, name=None, version=CURRENT):
    given = {"mcp-protocol-version": version, "mcp-method": method}
    return given | ({"mcp-name": name} if name is not None else {})


def called(tool="plain", meta=ENVELOPE):
    return asked("tools/call", {"name": tool, "arguments": {}}, meta), heads("tools/call", tool)


class Bench:
    """A server whose tools answer, tell something first, fail as bugs do, or never end."""

    def __init__(self):
        self.registry = MethodRegistry()
        self.registry.requests["tools/call"] = ServerMethod(CallToolRequestParams, self.respond)
        self.begun, self.stopped = anyio.Event(), anyio.Event()

    async def respond(self, ctx, params):
        match params.name:
            case "telling":
                await ctx.session.report_progress(0.5, 1.0, "half — way")
                await ctx.session.report_progress(1)
                await ctx.session.send_log_message("info", "done", related_request_id=ctx.request_id)
            case "asking":
                await ctx.session.elicit_form("?", {"type": "object", "properties": {}}, ctx.request_id)
            case "broken":
                raise RuntimeError("a bug in a method")
            case "nonsense":
                return {"content": "no list"}
            case "unfit":
                return 7
            case "endless":
                self.begun.set()
                try:
                    await anyio.sleep_forever()
                finally:
                    self.stopped.set()
        return {
            "content": [{"type": "text", "text": f"{params.name} — é"}],
            "structuredContent": {"a": None},
        }


@asynccontextmanager
async def serving(bench):
    async with StatelessHttp(bench.registry).run() as application:
        yield application


@asynccontextmanager
async def both(ours, theirs):
    """Our application over a registry, and the SDK's over another."""
    manager = StreamableHTTPSessionManager(theirs, stateless=True)
    async with StatelessHttp(ours).run() as application, manager.run():
        yield application, manager.handle_request


async def outcome(application, exchange):
    """Status, kind and messages of an answer; of what HTTP itself refuses, the status."""
    try:
        await exchange.made(application)
    except HttpRefusal as refusal:
        return refusal.status
    if b"content-type" not in exchange.headers or not exchange.said:
        return exchange.status
    if exchange.kind == "text/event-stream":
        lines = exchange.said.decode().splitlines()
        return 200, exchange.kind, [json.loads(line[6:]) for line in lines if line.startswith("data: ")]
    return exchange.status, exchange.kind, json.loads(exchange.said)


LISTING = heads("tools/list")
CASES = {
    "a call": called(),
    "a call that tells first": called("telling", TOLD),
    "a call that tells nobody": called("telling"),
    "a call with a token that is none": called("telling", TOLD | {"progressToken": True}),
    "a call that asks the client": called("asking"),
    "a bug": called("broken"),
    "a bug after something was told": called("broken", TOLD),
    "a result that is none": called("nonsense"),
    "a result of another kind": called("unfit"),
    "arguments that are no object": (
        asked("tools/call", {"name": "plain", "arguments": 3}),
        heads("tools/call", "plain"),
    ),
    "a call without a name": (asked("tools/call"), heads("tools/call")),
    "a name in base64": (
        asked("tools/call", {"name": "é"}),
        heads("tools/call", f"=?base64?{base64.b64encode('é'.encode()).decode()}?="),
    ),
    "a name in bad base64": (asked("tools/call", {"name": "é"}), heads("tools/call", "=?base64?%?=")),
    "another name": (asked("tools/call", {"name": "plain"}), heads("tools/call", "other")),
    "another method": (asked("tools/call", {"name": "plain"}), heads("tools/list", "plain")),
    "no method in the headers": (called()[0], {"mcp-protocol-version": CURRENT}),
    "another version in the envelope": (
        asked("ping", meta=ENVELOPE | {f"{KEYS}protocolVersion": "x"}),
        heads("ping"),
    ),
    "a version that nobody speaks": (
        asked("ping", meta=ENVELOPE | {f"{KEYS}protocolVersion": "2999-01-01"}),
        heads("ping", version="2999-01-01"),
    ),
    "no envelope": (request("ping", {}), heads("ping")),
    "half an envelope": (asked("ping", meta={f"{KEYS}protocolVersion": CURRENT}), heads("ping")),
    "an envelope that is none": (request("ping", {"_meta": 3}), heads("ping")),
    "capabilities that are none": (
        asked("tools/call", {"name": "plain"}, ENVELOPE | {f"{KEYS}clientCapabilities": 3}),
        heads("tools/call", "plain"),
    ),
    "no parameters": (b'{"jsonrpc":"2.0","id":1,"method":"ping"}', heads("ping")),
    "a client that names itself": called(meta=ENVELOPE | {f"{KEYS}clientInfo": {"name": "t", "version": "1"}}),
    "discovery": (asked("server/discover"), heads("server/discover")),
    "a ping": (asked("ping"), heads("ping")),
    "a handshake": (asked("initialize"), heads("initialize")),
    "a subscription": (asked("subscriptions/listen"), heads("subscriptions/listen")),
    "a method that nobody has": (asked("no/such"), heads("no/such")),
    "a list that is not offered": (asked("tools/list"), LISTING),
    "a name that is text": (asked("ping", name="seven"), heads("ping")),
    "a name that is nothing": (asked("ping", name=None), heads("ping")),
    "a name that is true": (asked("ping", name=True), heads("ping")),
    "a name that is a fraction": (asked("ping", name=1.5), heads("ping")),
    "a notification": (notice("notifications/cancelled", {"requestId": 1}), heads("notifications/cancelled")),
    "a notification in no version": (notice("notifications/x"), heads("notifications/x", version="1")),
    "a notification that is none": (b'{"jsonrpc":"1.0","method":"x"}', heads("x")),
    "a batch": (b"[" + asked("ping") + b"]", heads("ping")),
    "an answer": (b'{"jsonrpc":"2.0","id":1,"result":{}}', heads("ping")),
    "a number": (b"3", heads("ping")),
    "no JSON": (b"{]", heads("ping")),
    "no body": (b"", heads("ping")),
    "no text": (b"\xff\xfe\x00", heads("ping")),
    "a body that is too deep": (b"[" * 100_000, heads("ping")),
    "a number that is too long": (b'{"jsonrpc":"2.0","id":' + b"1" * 5_000 + b"}", heads("ping")),
    "no accept": (called()[0], called()[1] | {"accept": ""}),
    "JSON only": (called()[0], called()[1] | {"accept": "application/json"}),
    "anything": (called()[0], called()[1] | {"accept": "*/*;q=0.1"}),
    "kinds of kinds": (called()[0], called()[1] | {"accept": "Text/*, application/*"}),
    "a form": (called()[0], called()[1] | {"content-type": "text/plain"}),
    "JSON in UTF-8": (called()[0], called()[1] | {"content-type": "Application/JSON; charset=utf-8"}),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
async def test_a_message_is_answered_as_the_sdk_does(case):
    body, headers = CASES[case]
    async with both(Bench().registry, Bench().registry) as applications:
        ours, theirs = [await outcome(one, Exchange("POST", body, **headers)) for one in applications]
    assert ours == theirs


@pytest.mark.parametrize("twice", ["mcp-protocol-version", "mcp-method", "mcp-name", "accept", "x-other"])
async def test_a_header_that_comes_twice_is_read_as_the_sdk_does(twice):
    body, headers = called()
    async with both(Bench().registry, Bench().registry) as applications:
        ours, theirs = [
            await outcome(one, Exchange("POST", body, lines=[(twice, "again")], **headers))
            for one in applications
        ]
    assert ours == theirs


@pytest.mark.parametrize("method", ["GET", "DELETE"])
async def test_there_is_nothing_but_post(method):
    async with both(Bench().registry, Bench().registry) as applications:
        ours, theirs = [await outcome(one, Exchange(method, **heads("ping"))) for one in applications]
    assert ours == theirs == 405


def over(folder):
    """The methods of a real desk, and the desk."""
    folder.mkdir()
    desk = ConnectionTools(workshop(folder), agent="t", session="s")
    return desk, build_mcp_server(desk)


async def test_all_that_the_official_client_sends_is_answered_as_the_sdk_does(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    (first, ours), (second, theirs) = over(tmp_path / "ours"), over(tmp_path / "theirs")
    compared = []
    async with first.open(), second.open(), both(ours, theirs) as applications:

        async def answer(scope, receive, send):
            body = (await receive())["body"]
            pair = [Exchange(scope["method"], body) for _ in applications]
            for exchange in pair:
                exchange.scope["headers"] = scope["headers"]
            compared.append([await outcome(*each) for each in zip(applications, pair, strict=True)])
            kind = [(b"content-type", pair[0].kind.encode())]
            await send({"type": "http.response.start", "status": pair[0].status, "headers": kind})
            await send({"type": "http.response.body", "body": pair[0].said})

        async with httpx2.AsyncClient(transport=httpx2.ASGITransport(app=answer)) as http:
            transport = streamable_http_client("http://here/mcp", http_client=http)
            async with Client(transport, mode=CURRENT, elicitation_callback=agree) as client:
                await use(client)
    assert len(compared) >= 15
    assert {kind for (_, kind, _), _ in compared} == {"application/json", "text/event-stream"}
    for mine, reference in compared:
        assert mine == reference


async def agree(_context, _params):
    return ElicitResult(action="accept", content={"decision": "once"})


async def use(client):
    """Everything that a client can do, in calls that are the same wherever they run."""

    def named(name):
        return {"handtools/call_id": name}

    async def hear(*_):
        pass

    await client.list_tools()
    for name, args in {
        "write": {"path": "a.txt", "content": "é — one\n"},
        "read": {"path": "a.txt"},
        "picture": {},
        "broken": {},
        "odd": {},
        "large": {"bytes": 1_000_000},
        "nobody": {},
    }.items():
        await client.call_tool(name, args, meta=named(name))
    await client.call_tool("read", {"pth": 3}, meta=named("wrong"))
    await client.call_tool("steps", {"steps": 3}, meta=named("steps"), progress_callback=hear)
    answered = await client.call_tool("write", {"path": ".envrc", "content": "x\n"}, meta=named("asked"))
    assert not answered.is_error, answered
    await client.list_resources()
    await client.list_resource_templates()
    with pytest.raises(MCPError):
        await client.read_resource("handtools://nothing")
    for listed in (await client.list_prompts()).prompts[:1]:
        await client.get_prompt(listed.name, {one.name: "x" for one in listed.arguments or ()})


async def test_a_client_that_leaves_cancels():
    bench = Bench()
    async with serving(bench) as application, anyio.create_task_group() as group:
        body, headers = called("endless")
        exchange = Exchange("POST", body, **headers)
        group.start_soon(exchange.made, application)
        await bench.begun.wait()
        exchange.gone.set()
        with anyio.fail_after(60):
            await bench.stopped.wait()
    assert (exchange.status, exchange.said) == (0, b"")


async def test_a_long_silence_becomes_a_stream_with_pings(monkeypatch):
    monkeypatch.setattr(asgi_responses, "PING_SECONDS", 0.01)
    monkeypatch.setattr(streamable_http, "UNWATCHED_REQUEST_SECONDS", 0.0)
    bench, pinged = Bench(), anyio.Event()
    async with serving(bench) as application, anyio.create_task_group() as group:
        body, headers = called("endless")
        exchange = Exchange("POST", body, **headers)
        inner = exchange.send

        async def send(message):
            await inner(message)
            if exchange.said.count(b": ping") == 3:
                pinged.set()

        exchange.send = send
        group.start_soon(exchange.made, application)
        with anyio.fail_after(60):
            await pinged.wait()
        group.cancel_scope.cancel()
    assert exchange.kind == "text/event-stream"


async def test_what_is_told_after_a_long_silence_and_the_answer_come_in_the_same_stream(monkeypatch):
    monkeypatch.setattr(asgi_responses, "PING_SECONDS", 0.01)
    monkeypatch.setattr(streamable_http, "UNWATCHED_REQUEST_SECONDS", 0.0)
    bench, go = Bench(), anyio.Event()

    async def respond(ctx, _params):
        await go.wait()
        await ctx.session.report_progress(1)
        return {"content": []}

    bench.registry.requests["tools/call"] = ServerMethod(CallToolRequestParams, respond)
    async with serving(bench) as application:
        body, headers = called(meta=TOLD)
        exchange = Exchange("POST", body, **headers)
        inner = exchange.send

        async def send(message):
            await inner(message)
            go.set()

        exchange.send = send
        with anyio.fail_after(60):
            _, kind, told = await outcome(application, exchange)
    assert kind == "text/event-stream"
    assert [one.get("method", "answer") for one in told] == ["notifications/progress", "answer"]
    assert exchange.ended


async def test_a_request_that_runs_when_the_server_ends_is_let_go():
    bench = Bench()
    async with anyio.create_task_group() as group:
        async with serving(bench) as application:
            body, headers = called("endless")
            group.start_soon(Exchange("POST", body, **headers).made, application)
            await bench.begun.wait()
        group.cancel_scope.cancel()
    assert bench.stopped.is_set()
