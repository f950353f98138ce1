"""HTTP of the older protocols: plain answers, streams only where something comes before the answer."""

import json
import time
from contextlib import asynccontextmanager

import anyio
import pytest
from mcp_types import CallToolRequestParams

from handtools.mcp import asgi_responses
from handtools.mcp.asgi_responses import HttpRefusal
from handtools.mcp.server import MethodRegistry, ServerMethod
from handtools.mcp.streamable_http import SessionHttp
from tests.unit.mcp.web import Exchange, notice, request

pytestmark = pytest.mark.anyio

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}


def call(name="plain", number=7):
    return request("tools/call", {"name": name, "arguments": {}, "_meta": {"progressToken": 1}}, number)


@asynccontextmanager
async def serving(**options):
    """Sessions over a server whose tools answer at once, tell progress first, or never end."""
    begun = anyio.Event()

    async def respond(ctx, params):
        if params.name == "telling":
            await ctx.session.report_progress(1, None, "half way")
        if params.name == "endless":
            begun.set()
            await anyio.sleep_forever()
        return {"content": [{"type": "text", "text": params.name}]}

    registry = MethodRegistry()
    registry.requests["tools/call"] = ServerMethod(CallToolRequestParams, respond)
    async with SessionHttp(registry, **options).run() as application:
        opened = await Exchange("POST", request("initialize", HELLO)).made(application)
        session = opened.headers[b"mcp-session-id"].decode()
        await Exchange("POST", notice("notifications/initialized"), session).made(application)
        yield application, session, begun


async def test_a_plain_answer_is_plain_json():
    async with serving() as (application, session, _):
        answer = await Exchange("POST", call(), session).made(application)
    assert (answer.status, answer.kind) == (200, "application/json")
    assert json.loads(answer.said)["result"]["content"][0]["text"] == "plain"


async def test_what_is_told_before_the_answer_makes_it_a_stream():
    async with serving() as (application, session, _):
        answer = await Exchange("POST", call("telling"), session).made(application)
    assert answer.kind == "text/event-stream"
    told = [json.loads(line[6:]) for line in answer.said.decode().splitlines() if line.startswith("data: ")]
    assert [one.get("method", "answer") for one in told] == ["notifications/progress", "answer"]
    assert answer.ended


async def test_a_long_silence_becomes_a_stream_with_pings(monkeypatch):
    monkeypatch.setattr(asgi_responses, "PING_SECONDS", 0.01)
    async with serving() as (application, session, _), anyio.create_task_group() as group:
        answer = Exchange("POST", call("endless"), session)
        pinged, inner = anyio.Event(), answer.send

        async def send(message):
            await inner(message)
            if answer.said.count(b": ping") == 3:
                pinged.set()

        answer.send = send
        group.start_soon(answer.made, application)
        with anyio.fail_after(60):
            await pinged.wait()
        group.cancel_scope.cancel()
    assert answer.kind == "text/event-stream"


async def test_a_cancelled_request_is_answered_so():
    async with serving() as (application, session, begun), anyio.create_task_group() as group:
        answer = Exchange("POST", call("endless"), session)
        group.start_soon(answer.made, application)
        await begun.wait()
        stop = notice("notifications/cancelled", {"requestId": 7})
        assert (await Exchange("POST", stop, session).made(application)).status == 202
    assert json.loads(answer.said)["error"]["message"] == "Request cancelled"


async def test_a_request_sent_again_takes_the_answer_over():
    async with serving() as (application, session, begun):
        first, caught = Exchange("POST", call("endless"), session), []

        async def left():
            try:
                await first.made(application)
            except HttpRefusal as refusal:
                caught.append(refusal.status)

        async with anyio.create_task_group() as group:
            group.start_soon(left)
            await begun.wait()
            again = await Exchange("POST", call("plain"), session).made(application)
    assert caught == [404]
    assert json.loads(again.said)["result"]["content"][0]["text"] == "plain"


async def test_a_session_that_was_ended_is_gone_and_its_requests_are_answered():
    async with serving() as (application, session, begun):
        caught = []

        async def waiting():
            try:
                await Exchange("POST", call("endless"), session).made(application)
            except HttpRefusal as refusal:
                caught.append(refusal.status)

        async with anyio.create_task_group() as group:
            group.start_soon(waiting)
            await begun.wait()
            assert (await Exchange("DELETE", b"", session).made(application)).status == 200
        with pytest.raises(HttpRefusal, match="Unknown session"):
            await Exchange("POST", call(), session).made(application)
    assert caught == [404]


async def test_one_listener_per_session_and_the_next_after_it_left():
    async with serving() as (application, session, _), anyio.create_task_group() as group:
        for _ in range(2):
            listener, began = Exchange("GET", b"", session), anyio.Event()
            inner = listener.send

            async def send(message, inner=inner, began=began):
                await inner(message)
                began.set()

            listener.send, listener.body = send, []
            done = anyio.Event()

            async def listen(listener=listener, done=done):
                await listener.made(application)
                done.set()

            group.start_soon(listen)
            await began.wait()
            with pytest.raises(HttpRefusal, match="already has an open event stream"):
                await Exchange("GET", b"", session).made(application)
            listener.gone.set()
            with anyio.fail_after(60):
                await done.wait()


async def test_a_session_is_closed_when_nobody_has_used_it_for_long():
    async with serving(idle=60.0) as (application, session, _):
        application.sweep(time.monotonic() + 59)
        assert (await Exchange("POST", call(), session).made(application)).status == 200
        application.sweep(time.monotonic() + 61)
        with pytest.raises(HttpRefusal, match="Unknown session"):
            await Exchange("POST", call(), session).made(application)


async def test_a_session_with_a_running_request_is_in_use():
    async with serving(idle=60.0) as (application, session, begun), anyio.create_task_group() as group:
        group.start_soon(Exchange("POST", call("endless"), session).made, application)
        await begun.wait()
        application.sweep(time.monotonic() + 61)
        assert (await Exchange("POST", call(number=8), session).made(application)).status == 200
        group.cancel_scope.cancel()


async def test_more_sessions_than_allowed_are_refused():
    async with serving(most=1) as (application, _, _):
        with pytest.raises(HttpRefusal, match="Too many"):
            await Exchange("POST", request("initialize", HELLO)).made(application)


@pytest.mark.parametrize(
    ("headers", "status"),
    [({"accept": "application/json"}, 406), ({"content-type": "text/plain"}, 400)],
)
async def test_a_request_of_another_kind_is_refused(headers, status):
    async with serving() as (application, session, _):
        with pytest.raises(HttpRefusal) as caught:
            await Exchange("POST", call(), session, **headers).made(application)
    assert caught.value.status == status


async def test_a_body_that_is_no_message_is_refused_in_the_words_of_the_protocol():
    async with serving() as (application, session, _):
        answer = await Exchange("POST", b"{]", session).made(application)
    assert answer.status == 400
    assert json.loads(answer.said)["error"]["code"] == -32700


async def test_without_a_session_only_initialize_is_taken():
    async with serving() as (application, _, _):
        with pytest.raises(HttpRefusal, match="missing"):
            await Exchange("POST", call()).made(application)
