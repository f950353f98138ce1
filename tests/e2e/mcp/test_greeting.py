"""What is answered before the SDK is loaded is what the SDK would answer."""

import ast
import json
import os
import subprocess
import sys

import pytest

from tests.e2e.mcp.conftest import CURRENT, HERE

KEYS = "io.modelcontextprotocol/"
ENVELOPE = {f"{KEYS}protocolVersion": CURRENT, f"{KEYS}clientCapabilities": {}}


def handshake(version):
    hello = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}}
    return [
        {"id": "a", "method": "initialize", "params": hello},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list", "params": {}},
    ]


CURRENT_FIRST = [
    {"id": 1, "method": "server/discover", "params": {"_meta": ENVELOPE}},
    {"id": 2, "method": "tools/list", "params": {"_meta": ENVELOPE}},
]


def conversation(folder, messages, *, slowly):
    """The answers to messages, sent at once; or with a line before them that ends the greeting."""
    command = [sys.executable, str(HERE / "workshop.py"), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as child:
        if slowly:
            child.stdin.write(b'{"jsonrpc":"2.0","method":"notifications/unknown"}\n')
        for message in messages:
            child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        child.stdin.flush()
        wanted = sum("id" in message for message in messages)
        answers = [json.loads(child.stdout.readline()) for _ in range(wanted)]
        child.stdin.close()
        rest = child.stdout.read()
    assert rest == b""
    return {answer["id"]: answer for answer in answers}


@pytest.mark.parametrize(
    "messages",
    [*(handshake(v) for v in ("2024-11-05", "2025-06-18", "2025-11-25", "1999-01-01")), CURRENT_FIRST],
    ids=["oldest", "older", "latest handshake", "unknown", "current"],
)
def test_the_greeting_says_what_the_sdk_says(folder, messages):
    assert conversation(folder, messages, slowly=False) == conversation(folder, messages, slowly=True)


def test_the_tools_that_are_written_down_are_those_that_answer_later(folder):
    command = [sys.executable, "-m", "handtools", "mcp", str(folder)]
    messages = [*handshake("2025-11-25"), {"id": 3, "method": "tools/list", "params": {}}]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as child:
        for message in messages:
            child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        child.stdin.flush()
        _, early, late = (json.loads(child.stdout.readline())["result"] for _ in range(3))
        child.stdin.close()
    assert early == late
    assert "bash" in {tool["name"] for tool in early["tools"]}


@pytest.mark.parametrize("messages", [handshake("2025-11-25"), CURRENT_FIRST], ids=["handshake", "current"])
def test_the_tools_are_told_before_anything_that_was_asked_with_them(folder, messages):
    params = messages[-1]["params"]
    beside = [
        {"id": number, "method": method, "params": params}
        for number, method in enumerate(("prompts/list", "resources/list", "resources/templates/list"), 3)
    ]
    answers = conversation(folder, [*messages[:-1], *beside, messages[-1]], slowly=False)
    assert list(answers)[1] == 2
    assert set(answers) == {messages[0]["id"], 2, 3, 4, 5}
    assert all("result" in answer for answer in answers.values())


def test_nothing_heavy_is_loaded_before_the_tools_are_told():
    script = (
        "import sys, handtools.mcp.stdio; print(sorted({name.partition('.')[0] for name in sys.modules}))"
    )
    loaded = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    ).stdout
    assert not {"pydantic", "anyio", "mcp", "sqlite3"} & set(ast.literal_eval(loaded))


@pytest.mark.parametrize(
    "message",
    [
        {"id": 1, "method": "tools/list", "params": {}},
        {"id": 1, "method": "initialize", "params": {}},
        {"id": 1, "method": "tools/list", "params": {"_meta": {f"{KEYS}protocolVersion": "1999-01-01"}}},
        {"id": 1, "method": "nonsense", "params": {}},
    ],
)
def test_what_is_no_greeting_is_left_to_the_sdk(folder, message):
    answers = conversation(folder, [message], slowly=False)
    assert answers == conversation(folder, [message], slowly=True)
    assert "error" in answers[1]


@pytest.mark.parametrize(
    "nonsense",
    [b"\xff\xfe nonsense\n\n[1, 2]\n", b'{"jsonrpc":"2.0","id":9,"method":"prompts/list","params":[1]}\n'],
    ids=["no message", "no parameters"],
)
def test_a_line_that_is_no_message_does_not_end_the_server(folder, nonsense):
    command = [sys.executable, str(HERE / "workshop.py"), str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=os.environ) as child:
        child.stdin.write(nonsense)
        for message in handshake("2025-11-25"):
            child.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        child.stdin.flush()
        answers = {}
        while not {"a", 2} <= answers.keys():
            line = json.loads(child.stdout.readline())
            answers[line.get("id")] = line
        child.stdin.close()
    assert answers[2]["result"]["tools"]


def test_streams_that_are_files_are_served_too(folder, tmp_path):
    lines = [json.dumps({"jsonrpc": "2.0", **message}) for message in handshake("2025-11-25")]
    (tmp_path / "in").write_text("\n".join(lines) + "\n")
    command = [sys.executable, str(HERE / "workshop.py"), str(folder)]
    with (tmp_path / "in").open() as given, (tmp_path / "out").open("w") as taken:
        subprocess.run(command, stdin=given, stdout=taken, timeout=60, check=True, env=os.environ)
    answers = [json.loads(line) for line in (tmp_path / "out").read_text().splitlines()]
    assert answers[0]["result"]["serverInfo"]["name"] == "handtools"
