"""The session answers tool calls as the SDK would: the same lines go to both, and the same lines come back.

The SDK serves a client whose end of stdout is a terminal, because that is no pipe.
"""

import json
import os
import pty
import re
import subprocess
import sys
import tty
from contextlib import contextmanager

import pytest

from tests.e2e.mcp.conftest import CURRENT, HERE

KEYS = "io.modelcontextprotocol/"
CLIENT = {"name": "t", "version": "1"}
CALL_ID = re.compile(rb"[0-9a-f]{16,}")
OWN_REQUEST_ID = re.compile(rb'"id":(?:"handtools-)?\d+"?,"method"')


class Conversation:
    """One server, and all that it said."""

    def __init__(self, process, output):
        self.process, self.output, self.said = process, output, []

    def send(self, *messages):
        for message in messages:
            line = (
                message if isinstance(message, bytes) else json.dumps({"jsonrpc": "2.0"} | message).encode()
            )
            self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def hear(self):
        line = self.output.readline()
        if b'"tools":[' in line:  # the order of keys in definitions is not the SDK's
            line = json.dumps(json.loads(line), sort_keys=True).encode()
        self.said.append(OWN_REQUEST_ID.sub(b'"id":0,"method"', CALL_ID.sub(b"ID", line)))
        return json.loads(line)

    def ask(self, message, reply=None):
        """Send a request, hear until it is answered, and answer a question in between."""
        self.send(message)
        while (heard := self.hear()).get("id") != message["id"] or "method" in heard:
            if heard.get("method") == "elicitation/create":
                self.send({"id": heard["id"]} | reply)
        return heard


@contextmanager
def conversation(folder, *, sdk):
    command = [sys.executable, str(HERE / "workshop.py"), str(folder)]
    ours, theirs = pty.openpty() if sdk else os.pipe()
    if sdk:
        tty.setraw(theirs)
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=theirs, env=os.environ)
    os.close(theirs)
    with process, os.fdopen(ours, "rb") as output:
        yield Conversation(process, output)
        process.stdin.close()
        process.wait(60)


def initialized(talk, version, **capabilities):
    params = {"protocolVersion": version, "capabilities": capabilities, "clientInfo": CLIENT}
    talk.ask({"id": "a", "method": "initialize", "params": params})
    talk.send({"method": "notifications/initialized"})
    talk.said.clear()  # the greeting has tests of its own


def call(number, name, args=None, **params):
    return {
        "id": number,
        "method": "tools/call",
        "params": {"name": name, "arguments": args or {}, **params},
    }


ENVRC = {"path": ".envrc", "content": "export A=1\n"}
ACCEPTED = {"result": {"action": "accept", "content": {"decision": "once"}}}
REPLIES = [
    {"result": {"action": "cancel"}},
    {"error": {"code": -1, "message": "no forms here"}},
    {"result": {"action": "decline"}},
    ACCEPTED,
]
STAMPED = {"_meta": {f"{KEYS}protocolVersion": CURRENT, f"{KEYS}clientCapabilities": {}}}
ANSWERED = [
    call(1, "write", {"path": "a.txt", "content": "one\ntwo é \U0001f600\n"}),
    call("2", "read", {"path": "a.txt"}, _meta={"handtools/details": True}),
    call(3, "read", {"path": "none.txt"}),
    call(4, "read", {"pth": "a.txt"}),
    call(5, "raed"),
    call(6, "picture"),
    call(7, "large", {"bytes": 300_000}),
    call(8, "odd", _meta={"handtools/details": True}),
    call(9, "broken"),
    call(10, "steps", {"steps": 4}, _meta={"progressToken": "t"}),
    call(11, "steps", {"steps": 2}, _meta={"progressToken": 5}),
    call(12, "noop", _meta={"handtools/call_id": "my-own"}),
    call(13, "noop", _meta={"handtools/call_id": "my-own"}),
    call(1, "write", {"path": "a.txt", "content": "one\ntwo é \U0001f600\n"}),
    {"id": 14, "method": "tools/call", "params": {"name": "noop"}},
    {"id": 15, "method": "tools/call", "params": {"name": "noop", "arguments": None, "task": {"ttl": 5}}},
    {"id": 16, "method": "tools/call", "params": {"arguments": {}}},
    {"id": 17, "method": "tools/call", "params": {"name": 5}},
    {"id": 18, "method": "tools/call", "params": {"name": "noop", "arguments": [1]}},
    {"id": 19, "method": "tools/call", "params": {"name": "noop", "_meta": 5}},
    {"id": 20, "method": "tools/call", "params": {"name": "noop", "_meta": {"progressToken": [1]}}},
    {"id": 21, "method": "tools/call"},
    call(22, "noop", **STAMPED),
    {"id": 23, "method": "ping"},
    {"id": 24, "method": "tools/list", "params": {"cursor": "next"}},
    {"id": 25, "method": "tools/list", "params": {"cursor": 5}},
    {"id": 26, "method": "tools/list"},
    {"id": 27, "method": "prompts/list"},
    {"id": 28, "method": "resources/read", "params": {"uri": "handtools://file/a.txt"}},
    {"id": 29, "method": "resources/read", "params": {}},
    {"id": 30, "method": "nonsense", "params": {"a": 1}},
    {"id": 31, "method": "logging/setLevel", "params": {"level": "debug"}},
]
UNANSWERED = [
    b"nonsense",
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]',
    b'{"id":1,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":true,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":null,"method":"ping"}',
    b'{"jsonrpc":"2.0","id":[1],"method":"nonsense"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800"}}',
    b'{"jsonrpc":"2.0","method":"notifications/unknown"}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":99}}',
    b'{"jsonrpc":"2.0","id":"handtools-7","result":{}}',
    b"[" * 3000,
]


def told(folder, say, *, sdk):
    work = folder / ("sdk" if sdk else "plain")
    work.mkdir()
    with conversation(work, sdk=sdk) as talk:
        say(talk)
    return talk.said


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_calls_are_answered_as_by_the_sdk_byte_by_byte(folder, version):
    def say(talk):
        initialized(talk, version, elicitation={})
        for message in ANSWERED:
            talk.ask(message)
        for number, reply in enumerate(REPLIES, 50):
            talk.ask(call(number, "write", ENVRC), reply)
        for number, line in enumerate(UNANSWERED, 70):
            talk.send(line)
            talk.ask({"id": number, "method": "ping"})

    plain = told(folder, say, sdk=False)
    assert plain == told(folder, say, sdk=True)
    assert sum(b"elicitation/create" in line for line in plain) == len(REPLIES)


def test_calls_of_the_current_protocol_are_answered_as_by_the_sdk(folder):
    able = {"elicitation": {}, "roots": {}}

    def stamped(message, **more):
        meta = {
            f"{KEYS}protocolVersion": CURRENT,
            f"{KEYS}clientCapabilities": able,
            f"{KEYS}clientInfo": CLIENT,
        }
        params = message.get("params", {})
        return message | {"params": params | {"_meta": params.get("_meta", {}) | meta} | more}

    def say(talk):
        talk.ask(stamped({"id": 0, "method": "server/discover"}))
        roots = {"inputResponses": {"roots": {"roots": []}}, "requestState": "roots"}
        assert talk.ask(stamped(ANSWERED[0]))["result"]["resultType"] == "input_required"
        talk.ask(stamped(ANSWERED[0], **roots))
        for message in ANSWERED[1:14]:
            talk.ask(stamped(message))
        asked = talk.ask(stamped(call(50, "write", ENVRC)))["result"]
        answers = {
            "inputResponses": {"approval": ACCEPTED["result"]},
            "requestState": asked["requestState"],
        }
        talk.ask(stamped(call(51, "write", ENVRC), **answers))
        talk.ask(stamped({"id": 60, "method": "tools/list"}))
        talk.ask(stamped({"id": 61, "method": "ping"}))
        talk.ask(stamped({"id": 62, "method": "resources/templates/list"}))
        talk.ask(call(63, "noop"))

    plain, sdk = ([json.loads(line) for line in told(folder, say, sdk=sdk)] for sdk in (False, True))
    assert _without_states(plain) == _without_states(sdk)


def _without_states(messages):
    """What a question is about is named by a digest of its call's id, which no two servers share."""
    for message in messages:
        message.get("result", {}).pop("requestState", None)
    return messages


def test_a_cancelled_call_has_no_response_and_a_call_that_runs_when_the_client_goes_has_an_error(folder):
    def say(talk):
        initialized(talk, "2025-11-25")
        mark = {"path": str(folder / "marks"), "seconds": 600}
        talk.send(
            call(5, "mark", mark), {"method": "notifications/cancelled", "params": {"requestId": "5"}}
        )
        talk.ask({"id": 6, "method": "ping"})
        talk.send(call(7, "mark", mark))
        talk.ask(call(8, "noop"))
        talk.process.stdin.close()
        talk.hear()

    plain = told(folder, say, sdk=False)
    assert plain == told(folder, say, sdk=True)
    assert b"Connection closed" in plain[-1]


def test_nothing_is_called_before_the_handshake(folder):
    def say(talk):
        for message in (call(1, "noop"), {"id": 2, "method": "ping"}, {"id": 3, "method": "tools/list"}):
            talk.ask(message)
        initialized(talk, "2025-06-18")
        talk.ask(call(4, "noop"))

    assert told(folder, say, sdk=False) == told(folder, say, sdk=True)


def test_a_session_of_tool_calls_and_approvals_never_loads_the_sdk(folder, tmp_path):
    script = (
        "import atexit, sys; sys.path.insert(0, sys.argv[1]); from pathlib import Path\n"
        "from handtools.mcp.stdio import serve_folders_over_stdio\n"
        "atexit.register(lambda: Path(sys.argv[3]).write_text(' '.join(sys.modules)))\n"
        "serve_folders_over_stdio([sys.argv[2]])"
    )
    loaded = tmp_path / "loaded"
    command = [sys.executable, "-c", script, str(HERE), str(folder), str(loaded)]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ
    ) as process:
        talk = Conversation(process, process.stdout)
        initialized(talk, "2025-06-18", elicitation={}, roots={"listChanged": True})
        talk.send({"id": 1, "method": "tools/list"}, call(2, "write", ENVRC))
        assert talk.hear()["result"]["tools"]
        roots = talk.hear()
        assert roots["method"] == "roots/list"
        talk.send({"id": roots["id"], "result": {"roots": [{"uri": folder.as_uri()}]}})
        question = talk.hear()
        assert question["method"] == "elicitation/create"
        talk.send({"id": question["id"], **ACCEPTED})
        assert not talk.hear()["result"]["isError"]
        talk.send({"method": "notifications/roots/list_changed"})
        talk.send(call(3, "list"))
        assert talk.hear()["method"] == "roots/list"
        process.stdin.close()
        process.wait(60)
    assert not {"mcp", "mcp_types"} & set(loaded.read_text().split())
