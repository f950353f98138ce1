"""After `handtools install CLIENT --only-ours` the model is offered our tools, and not the client's own."""

import contextlib
import json
import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.e2e.clients.agents.claude_code import ClaudeCode
from tests.e2e.clients.agents.codex import Codex
from tests.e2e.clients.agents.continue_cli import ContinueCli
from tests.e2e.clients.agents.gemini_cli import GeminiCli
from tests.e2e.clients.agents.opencode import Opencode
from tests.e2e.clients.agents.qwen_code import QwenCode
from tests.e2e.clients.client import HANDTOOLS, Client, Place
from tests.e2e.clients.scripted_model import ScriptedModel, Step
from tests.e2e.clients.session import STARTS_SECONDS, TEA, lay

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

OURS = {"read", "edit", "multi_edit", "write", "patch", "grep", "find", "list", "bash", "undo", "jobs"}
READ = Step("read", {"path": "src/tea.py"})


@dataclass(frozen=True)
class Installed:
    """A client that is set up by our own command."""

    client: Client
    name: str
    theirs: frozenset[str]
    """Its own file and shell tools, as a model is offered them."""
    alone: Callable[[Place, list[str]], list[str]]
    """Takes the server out that the agent's own configuration names, so that ours is the installed one."""
    env: Mapping[str, str] = field(default_factory=dict)


def _without(file: str, *keys: str) -> Callable[[Place, list[str]], list[str]]:
    def alone(place: Place, words: list[str]) -> list[str]:
        settings = json.loads((place.home / file).read_text())
        for key in keys:
            settings.pop(key)
        place.write(file, settings)
        return words

    return alone


def _claude(_place: Place, words: list[str]) -> list[str]:
    at = words.index("--mcp-config")
    return words[:at] + words[at + 3 :]


def _codex(place: Place, words: list[str]) -> list[str]:
    config = (place.home / ".codex/config.toml").read_text()
    head, _, rest = config.partition("[mcp_servers.handtools]")
    place.write(".codex/config.toml", head + rest[rest.index("[projects") :])
    return words


def _gemini(place: Place, words: list[str]) -> list[str]:
    """It reads a folder's settings only where the folder is trusted, which is more than going on without."""
    kept = _without(".gemini/settings.json", "mcpServers")(place, words)
    return [word for word in kept if word != "--skip-trust"]


def _continue(place: Place, words: list[str]) -> list[str]:
    """Its usual place, in YAML as people write it; `--auto` would allow everything again."""
    config = json.loads((place.home / "config.yaml").read_text())
    config.pop("mcpServers")
    lines = (f"{key}: {json.dumps(value)}" for key, value in config.items())
    place.write(".continue/config.yaml", "\n".join(lines) + "\n")
    return words[:2]


CLIENTS = [
    Installed(ClaudeCode(), "claude", frozenset({"Bash", "Read", "Edit", "Write"}), _claude,
              # How long its first turn waits for the server: this machine may be busy.
              {"MCP_CONNECT_TIMEOUT_MS": "120000"}),
    Installed(Codex(), "codex", frozenset({"exec_command", "write_stdin"}), _codex),
    Installed(Opencode(), "opencode", frozenset({"bash", "read", "edit", "write", "glob", "grep"}),
              _without(Opencode.config, "mcp")),
    Installed(GeminiCli(), "gemini",
              frozenset({"run_shell_command", "read_file", "write_file", "replace", "glob", "grep_search",
                         "list_directory"}),
              _gemini, {"GEMINI_CLI_TRUST_WORKSPACE": "true"}),
    Installed(QwenCode(), "qwen",
              frozenset({"run_shell_command", "read_file", "write_file", "edit", "glob", "grep_search"}),
              _without(".qwen/settings.json", "mcpServers")),
    Installed(ContinueCli(), "continue", frozenset({"Bash", "Read", "List"}), _continue),
]  # fmt: skip


@pytest.fixture(params=CLIENTS, ids=lambda installed: installed.name)
def installed(request):
    if not request.param.client.folder.exists():
        pytest.skip("machine: the client is not installed, see .ci/coding-clients")
    return request.param


@pytest.mark.parametrize("choice", ["--keep-theirs", "--only-ours"])
def test_the_model_is_offered_ours_and_theirs_only_where_they_were_kept(installed, choice, tmp_path):
    place, client = Place(tmp_path), installed.client
    lay(place)
    model = ScriptedModel([READ], client.prefix)
    with model.serve():
        words, env = client.launch(place, model.url)
        words = installed.alone(place, words)
        path = os.pathsep.join([str(Path(HANDTOOLS).parent), place.env["PATH"]])
        whole = place.env | place.own_env | env | installed.env | {"PATH": path}
        setup = [HANDTOOLS, "install", installed.name, choice, "--yes", "-C", str(place.work)]
        subprocess.run(setup, env=whole, check=True, capture_output=True, timeout=60)
        printed = run_until_it_ends([*client.command, *words], whole, place)
    assert model.offered, f"{model.report()}\n{printed[-4000:]}"
    offered = set(model.offered[0])
    ours = {name.removeprefix(client.prefix) for name in offered if name.startswith(client.prefix)}
    assert ours >= OURS
    theirs = installed.theirs - ({*OURS} if not client.prefix else set())
    assert (theirs & offered) == (theirs if choice == "--keep-theirs" else set())
    assert TEA.splitlines()[-1] in client.unframed(model.returned[0])


def run_until_it_ends(command: list[str], env: dict[str, str], place: Place) -> str:
    """The client until it has said what it has to say, and nothing of it afterwards."""
    with (place.root / "printed").open("wb") as printed:
        process = subprocess.Popen(
            command, env=env, cwd=place.work, stdin=subprocess.DEVNULL, stdout=printed, stderr=printed,
            start_new_session=True,
        )  # fmt: skip
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(STARTS_SECONDS)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
    return (place.root / "printed").read_text(errors="replace")
