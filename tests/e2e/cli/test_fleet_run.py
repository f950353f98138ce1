"""`handtools fleet run` as people run it: agents that are programs, a terminal, Ctrl-C, the example."""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.cli.conftest import HANDTOOLS, Ran
from tests.e2e.cli.test_asking import at_terminal

EXAMPLE = Path(__file__).parents[3] / "examples" / "fleet_repair"
PATIENCE = 240
FILES = ("--template", "template", "--policy", "../policy.toml")
MCP_AGENT = """
import json, os, sys
import anyio
from mcp import Client, StdioServerParameters

async def main():
    server = json.load(open(sys.argv[1]))["mcpServers"]["handtools"]
    assert os.listdir(".") == []
    async with Client(StdioServerParameters(**server)) as client:
        assert "edit" in [tool.name for tool in (await client.list_tools()).tools]
        done = await client.call_tool("write", {"path": "out.txt", "content": sys.argv[2]})
        print(done.content[0].text)
        denied = await client.call_tool("write", {"path": ".envrc", "content": "x"})
        assert denied.is_error, denied
    sys.exit(3 if "broken" in sys.argv[2] else 0)

anyio.run(main)
"""


@pytest.fixture(autouse=True)
def policy(shell):
    """Tasks are scored by commands, also where nothing confines these."""
    (shell.folder.parent / "policy.toml").write_text('[defaults]\nrun = "allow"\n')


@pytest.fixture
def filled(shell):
    """A folder with a template and tasks; runs the batch with what is given."""
    (shell.folder / "template").mkdir()
    (shell.folder / "template" / "a.txt").write_text("a\n")

    def run(*words, tasks=("one", "two")):
        lines = [json.dumps({"id": name, "prompt": f"{name}; $(touch /injected)"}) for name in tasks]
        (shell.folder / "tasks.jsonl").write_text("\n".join(lines))
        ran = run_batch(shell, *words)
        return ran, results(shell.folder / "out")

    return run


def run_batch(shell, *words, **environment):
    done = subprocess.run(
        [HANDTOOLS, "fleet", "run", "tasks.jsonl", *FILES, *words],
        cwd=shell.folder,
        env=shell.environment | environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def results(out):
    lines = (out / "results.jsonl").read_text().splitlines() if (out / "results.jsonl").exists() else []
    return {each["id"]: each for each in map(json.loads, lines)}


def test_an_agent_that_is_a_program_works_over_mcp(filled, shell):
    (shell.folder / "agent.py").write_text(MCP_AGENT)
    agent = f"{sys.executable} {{here}}/agent.py {{mcp_config}} {{prompt}}"
    ran, found = filled(
        *("--agent", agent, "--score", "grep touch out.txt", "--out", "out", "--retries", "0", "--json"),
        tasks=("one", "broken"),
    )
    assert ran.code == 0, ran
    assert (ran.json["passed"], ran.json["errors"], ran.json["score"]) == (1, 1, 0.5)
    one = found["one"]
    assert (one["score"], one["calls"], one["changed"]) == (1.0, 2, ["out.txt"])
    assert "exit code 3: Created out.txt" in found["broken"]["error"]
    assert not Path("/injected").exists()
    # The token was good for the task alone, and is not left behind.
    assert not list((shell.folder / "out").rglob("mcp.json"))
    page = (shell.folder / "out" / "report.html").read_text()
    assert "2 tasks" in page and "one; $(touch /injected)" in page and "handtools undo" not in page


def living(group):
    """The processes of a group that have not ended; one that has may wait for its parent to take note."""
    listed = subprocess.run(
        ["ps", "-eo", "pgid=,stat=,args="], capture_output=True, text=True, check=True
    ).stdout
    rows = [line.split(maxsplit=2) for line in listed.splitlines()]
    return [row for row in rows if int(row[0]) == group and row[1][0] not in "ZX"]


def test_ctrl_c_ends_agents_and_the_same_command_goes_on(filled, shell):
    # The second task hangs until it is allowed to go on; its agent's child must end with it.
    script = "case {id} in two) test -e {here}/go || { echo $$ > {here}/pid; sleep 600 & wait; };; esac"
    words = ["--agent", f"sh -c '{script}'", "--score", "true", "--out", "out", "-n", "1"]
    lines = [json.dumps({"id": name}) for name in ("one", "two", "three")]
    (shell.folder / "tasks.jsonl").write_text("\n".join(lines))
    command = [HANDTOOLS, "fleet", "run", "tasks.jsonl", *FILES, *words]
    os.mkfifo(shell.folder / "pid")
    began = subprocess.Popen(
        command, cwd=shell.folder, env=shell.environment, stderr=subprocess.PIPE, text=True
    )
    with open(os.open(shell.folder / "pid", os.O_RDONLY | os.O_NONBLOCK)) as fifo:
        assert select.select([fifo], [], [], PATIENCE)[0]
        pid = int(fifo.read())
    began.send_signal(signal.SIGINT)
    _, said = began.communicate(timeout=PATIENCE)
    assert began.returncode == 130
    assert "1 of 3 tasks: 1 passed" in said and "run the same command again to resume" in said
    assert living(pid) == []
    out = shell.folder / "out"
    assert list(results(out)) == ["one"]
    assert not (out / "workspaces").exists()
    (shell.folder / "go").touch()
    again, found = filled(*words, tasks=("one", "two", "three"))
    assert again.code == 0, again
    assert "1 task already done; not run again." in again.err
    assert "1 task interrupted; restarted in a new workspace." in again.err
    assert {name: each["restarted"] for name, each in found.items()} == {
        "one": False, "two": True, "three": False,
    }  # fmt: skip


def test_a_terminal_shows_counts_and_a_pipe_only_the_end(filled, shell):
    words = ["--agent", "true", "--score", "true", "--out", "out"]
    ran, found = filled(*words)
    assert (ran.code, len(found)) == (0, 2), ran
    assert ran.out == ""
    assert ran.err.splitlines()[0] == "2 of 2 tasks: 2 passed; mean score 1.000."
    code, shown = at_terminal(
        shell, *("fleet", "run", "tasks.jsonl", *FILES, *words[:-1], "other"), answers=[]
    )
    assert code == 0
    assert "2/2" in shown and "2 passed" in shown


def test_what_can_not_work_is_said_before_anything_runs(filled):
    for words, said in (
        (["--agent", "no-such-program"], "not found"),
        (["--agent", "no_such_module:run"], "Can't import"),
        (["--agent", "true", "--local", "--address", "auto"], "can't be combined"),
    ):
        ran, found = filled(*words, "--out", "out")
        assert (ran.code, found) == (1, {}), ran
        assert said in ran.err


def test_the_example_repairs_what_a_changed_operator_or_number_repairs(shell):
    subprocess.run([sys.executable, EXAMPLE / "make_tasks.py", shell.folder, "10"], check=True, timeout=60)
    words = ["--agent", "repair_agent:repair", "--out", "out", "-n", "2"]
    path = os.pathsep.join(filter(None, (os.environ.get("PYTHONPATH"), str(EXAMPLE))))
    ran = run_batch(shell, *words, PYTHONPATH=path)
    assert ran.code == 0, ran
    for name, each in results(shell.folder / "out").items():
        mended = not name.endswith("-missing")
        assert (each["error"], each["score"], each["agent"]["mended"]) == ("", float(mended), mended), name
        assert bool(each["changed"]) is mended
