"""Whatever is sent to the server: an answer below 500, or none where the client left, and never an exception."""

import hashlib
import json
import logging
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from handtools.mcp.http_server import HttpConfig, McpHttpApp, TokenGrant, TokenGrants
from handtools.mcp.remote_toolbox import REMOTE_MCP_VERSION, REMOTE_META_PREFIX
from handtools.testing.memory_toolbox import memory_toolbox
from tests.unit.mcp.web import Exchange

TOKEN = "a-token-of-24-characters-or-more"
GOOD = {"host": "127.0.0.1:8765", "authorization": f"Bearer {TOKEN}"}
VERSIONS = [*HANDSHAKE_PROTOCOL_VERSIONS, *MODERN_PROTOCOL_VERSIONS]

odd_text = st.text(st.characters(max_codepoint=255, exclude_characters="\r\n\0"), max_size=12)
odd_values = odd_text | st.sampled_from(
    ["http://[", "http://[::1", "null", "²", "-1", "9" * 5_000, "0", "[", "a:b:c", "Bearer", "*/*", ",,;;"]
)
names = st.sampled_from([
    "host", "origin", "authorization", "content-length", "content-type", "accept", "mcp-session-id",
    "mcp-protocol-version", "mcp-method", "mcp-name", "idempotency-key", "last-event-id", "x",
])  # fmt: skip
versions = st.sampled_from(VERSIONS) | odd_text
methods = st.sampled_from(["POST", "POST", "POST", "GET", "DELETE", "PUT", "OPTIONS", "BREW"])
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["\ud800"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)
calls = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | values, "method": st.sampled_from(
        ["ping", "initialize", "tools/call", "tools/list", "resources/read", "handtools/call", "handtools/resume",
         "handtools/cancel", "handtools/why", "handtools/waiting", "prompts/get", "x"]
    ) | st.text(max_size=5)},
    optional={
        "id": values,
        "params": st.dictionaries(
            st.sampled_from([
                "name", "arguments", "_meta", "uri", "id", "session", "tool", "args", "policy", "requestState",
                "inputResponses", "protocolVersion",
            ]),
            values,
            max_size=5,
        ) | values,
    },
)  # fmt: skip
bodies = calls.map(json.dumps).map(str.encode) | st.binary(max_size=40) | st.just(b"[" * 50_000)
requests = st.tuples(
    methods,
    bodies,
    versions,
    st.dictionaries(names, odd_values, max_size=3),
    st.lists(st.tuples(names, odd_text), max_size=2),
)


def complete(method, params):
    """A request of the current protocol that is right up to its parameters."""
    envelope = {
        f"{REMOTE_META_PREFIX}protocolVersion": REMOTE_MCP_VERSION,
        f"{REMOTE_META_PREFIX}clientCapabilities": {},
    }
    named = {"mcp-name": params["name"]} if isinstance(params.get("name"), str) else {}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": envelope}}
    told = {name: text for name, text in named.items() if text.isprintable() and text.isascii()}
    return ("POST", json.dumps(body).encode(), REMOTE_MCP_VERSION, {"mcp-method": method, **told}, [])


well_formed = st.builds(
    complete,
    st.sampled_from([
        "tools/call", "tools/list", "resources/read", "resources/list", "prompts/get", "handtools/call",
        "handtools/resume", "handtools/cancel", "handtools/why", "handtools/waiting", "server/discover",
    ]),
    st.fixed_dictionaries(
        {},
        optional={
            "name": st.sampled_from(["read", "grep", "pending"]) | values,
            "tool": st.sampled_from(["read", "undo"]) | values,
            "arguments": st.dictionaries(st.sampled_from(["path", "pattern", "name"]), values),
            "args": st.dictionaries(st.sampled_from(["path", "pattern", "name"]), values),
            "uri": st.sampled_from(["handtools://output/..%2fx", "handtools://file/%00", "file:///"]) | values,
            "id": values,
            "session": values,
            "policy": values,
            "deadline": values,
            "requestState": values,
            "inputResponses": values,
        },
    ),
)  # fmt: skip


@pytest.fixture(autouse=True)
def no_tracebacks(caplog):
    """A failure that was logged with a traceback is a failure here, too."""
    caplog.set_level(logging.ERROR)
    yield
    assert [record for record in caplog.records if record.exc_info] == []


async def answers(sent):
    """The statuses that a real server, without the web server around it, answers with."""
    grant = TokenGrant(
        name="t", sha256=hashlib.sha256(TOKEN.encode()).hexdigest(), workspace=Path("/nowhere")
    )
    site = McpHttpApp(TokenGrants([grant]), HttpConfig(), {"t": memory_toolbox({"a.txt": b"a\n"})})
    found = []
    with anyio.fail_after(60):
        async with site.open() as door:
            for method, body, version, headers, lines in sent:
                exchange = Exchange(method, body)
                given = dict(exchange.scope["headers"]) | {
                    name.encode(): value.encode("latin-1")
                    for name, value in (GOOD | {"mcp-protocol-version": version} | headers).items()
                }
                more = [(name.encode(), value.encode("latin-1")) for name, value in lines]
                exchange.scope["headers"] = [*given.items(), *more]
                if method != "POST":
                    exchange.gone.set()
                await exchange.made(door)
                found.append((exchange.status, exchange.said))
    return found


@settings(max_examples=60)
@given(st.lists(requests, min_size=1, max_size=12))
def test_nothing_that_is_sent_makes_the_server_fail(sent):
    for status, said in anyio.run(answers, sent):
        assert status < 500, said


@settings(max_examples=60)
@given(st.lists(well_formed, min_size=1, max_size=12))
def test_no_parameters_of_a_method_make_it_fail(sent):
    for status, said in anyio.run(answers, sent):
        assert status < 500, said


@pytest.mark.parametrize("version", [HANDSHAKE_PROTOCOL_VERSIONS[-1], MODERN_PROTOCOL_VERSIONS[-1]])
@pytest.mark.parametrize(
    ("headers", "body", "answer"),
    [
        ({"origin": "http://["}, b"{}", 403),
        ({"content-length": "²"}, b"{}", 413),
        ({"content-length": "9" * 5_000}, b"{}", 413),
        ({}, rb'{"jsonrpc":"2.0","id":"\ud800","method":"ping"}', 400),
        ({}, rb'{"jsonrpc":"2.0","id":NaN,"method":"ping"}', 400),
        ({}, rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\udfff"}}', 400),
    ],
)
def test_what_once_made_it_fail_is_refused_with_a_reason(version, headers, body, answer):
    [(status, said)] = anyio.run(answers, [("POST", body, version, headers, [])])
    assert status == answer
    assert json.loads(said)["error"]
