"""The commands that people type around the server."""

import json
import os
import secrets
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.clients.processes import running, wait

HANDTOOLS = str(Path(sys.executable).with_name("handtools"))
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "t", "version": "1"},
}


def say(server, **message):
    server.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
    server.stdin.flush()


@pytest.fixture
def run(folder, tmp_path):
    def run(*words, **environment):
        home = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / "config")}
        return subprocess.run(
            [HANDTOOLS, *words, "-C", str(folder)],
            capture_output=True, text=True, timeout=90, check=False, env=os.environ | home | environment,
        )  # fmt: skip

    return run


@pytest.mark.linux("bubblewrap", "supervisors")
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, None], ids=["ctrl-c", "sigterm", "closed"])
def test_a_client_that_goes_takes_its_command_along_and_the_record_says_so(run, folder, how):
    mark = f"86398.{secrets.randbelow(10**9):09}"
    with subprocess.Popen([HANDTOOLS, "mcp", str(folder)], stdin=-1, stdout=-1) as server:
        say(server, id=1, method="initialize", params=HELLO)
        say(server, method="notifications/initialized")
        call = {"name": "bash", "arguments": {"command": f"sleep {mark}"}}
        say(server, id=2, method="tools/call", params=call)
        assert wait(lambda: running(mark), 60, server)
        if how is None:
            server.stdin.close()
        else:
            server.send_signal(how)
        assert server.wait(60) == (0 if how is None else 128 + how)
    assert not running(mark)
    assert json.loads(run("log", "--json").stdout.splitlines()[0])["status"] == "cancelled"


def test_the_doctor_starts_the_server_and_finds_a_program_that_is_gone(run, folder):
    found = json.loads(run("doctor", "--mcp", "--json").stdout)
    assert found["ok"]
    states = {f["name"]: f["state"] for f in found["findings"]}
    assert (states["server"], states["text"]) == ("ok", "ok")
    lost = {"mcpServers": {"handtools": {"command": "/gone/handtools", "args": ["mcp", "."]}}}
    (folder / ".mcp.json").write_text(json.dumps(lost))
    found = json.loads(run("doctor", "--mcp", "--json").stdout)
    (claude,) = [f for f in found["findings"] if f["name"] == "Claude Code"]
    assert claude["state"] == "broken"
    assert claude["step"] == "handtools install claude"


def test_the_doctor_sees_a_field_that_holds_no_text(run, tmp_path):
    # An installation that puts something else beside the text, as ours once did.
    (tmp_path / "sitecustomize.py").write_text(
        "import handtools.mcp.tool_calls as calls\n"
        "plain = calls.call_result\n"
        "calls.call_result = lambda *a, **k: plain(*a, **k) | {'structuredContent': {'path': 'line.txt'}}\n"
    )
    found = json.loads(run("doctor", "--mcp", "--json", PYTHONPATH=str(tmp_path)).stdout)
    (text,) = [f for f in found["findings"] if f["name"] == "text"]
    assert (text["state"], text["told"]) == ("broken", "a file's text is missing in structuredContent")


def test_the_tokens_of_all_definitions_are_told(run):
    told = json.loads(run("tokens", "--json").stdout)
    assert told["total"] == sum(told["tokens"].values()) <= 3_500


@pytest.mark.parametrize(
    "words", [["/no/such/folder"], [".", "--preset", "reading", "--unattended", "allow", "x"]]
)
def test_a_server_that_can_t_start_says_why_on_stderr(words, tmp_path):
    ran = subprocess.run(
        [HANDTOOLS, "mcp", *words], capture_output=True, timeout=60, check=False, stdin=subprocess.DEVNULL
    )
    assert ran.returncode != 0
    assert ran.stdout == b""
    assert ran.stderr


@pytest.mark.parametrize(
    ("words", "said"),
    [(["--http", "nonsense"], "not a valid address"), (["--http", "0.0.0.0:0"], "--allow-host")],
)
def test_a_site_that_can_t_start_says_why(run, words, said):
    ran = run("serve", *words)
    assert ran.returncode == 1
    assert said in ran.stderr
