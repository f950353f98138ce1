"""`install` and `uninstall`: what is written is shown first, names no machine in a team's file, and goes again."""

import json
import os
import subprocess
import sys

import pytest

from handtools.cli.install import _launch_command
from handtools.mcp.clients.client_setup import KNOWN_CLIENTS
from tests.e2e.cli.conftest import HANDTOOLS
from tests.e2e.cli.test_asking import at_terminal

PROJECT = ("claude", "cursor", "vscode", "codex", "gemini", "qwen", "opencode", "kilo", "crush", "copilot")
USER = ("claude-desktop", "zed", "goose", "windsurf", "continue", "cline")
SWITCHED = ("claude", "codex", "gemini", "qwen", "opencode", "kilo", "crush", "continue", "cline")
WRITE, SWITCH = "Write ", "Disable them? [y/N]"


@pytest.fixture
def person(shell, tmp_path, monkeypatch):
    """A shell of somebody with a home of their own, and `handtools` on the PATH."""
    home = tmp_path / "home"
    (home / ".continue").mkdir(parents=True)
    (home / ".continue" / "config.yaml").write_text("name: mine # keep\n")
    for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("PATH", f"{HANDTOOLS.parent}{os.pathsep}{os.environ['PATH']}")
    return shell


def files(*folders):
    return {
        str(file): file.read_bytes()
        for folder in folders
        for file in folder.rglob("*")
        if not file.is_dir()
    }


def everything(person):
    return files(person.folder, person.folder.parent / "home")


def test_what_is_installed_starts_the_server_in_the_folder(person):
    person.run("install", "gemini", "--yes")
    entry = json.loads(person.text(".gemini/settings.json"))["mcpServers"]["handtools"]
    hello = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "t", "version": "1"},
    }
    line = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello})
    with subprocess.Popen(
        [entry["command"], *entry["args"]], stdin=-1, stdout=-1, cwd=person.folder, env=person.environment
    ) as server:
        server.stdin.write(line.encode() + b"\n")
        server.stdin.flush()
        assert json.loads(server.stdout.readline())["result"]["serverInfo"]["name"] == "handtools"
        server.stdin.close()
        assert server.wait(60) == 0


@pytest.mark.parametrize("client", [*PROJECT, *USER])
def test_a_team_s_file_names_no_machine_and_every_file_comes_back(person, client):
    before = everything(person)
    ran = person.run("install", client, "--yes", *(["--only-ours"] if client in SWITCHED else []))
    assert ran.code == 0, ran.err
    assert ("a team can commit" in ran.err) is (client in PROJECT)
    written = b"".join(files(person.folder).values()).decode()
    assert bool(written) is (client in PROJECT)
    for path in (HANDTOOLS.parent, person.folder.parent):
        assert str(path) not in written
    assert everything(person) != before
    assert person.run("uninstall", client, "--yes").code == 0
    assert everything(person) == before


def test_run_by_uvx_the_entry_starts_uvx_wherever_its_cache_is(monkeypatch, tmp_path):
    program = tmp_path / "cache" / "archive-v0" / "x" / "bin" / "handtools"
    program.parent.mkdir(parents=True)
    program.touch()
    monkeypatch.setattr(sys, "executable", str(program.with_name("python")))
    assert _launch_command(KNOWN_CLIENTS["claude"], tmp_path) == ("uvx", ["handtools", "mcp", "."])


def test_uninstalling_what_is_not_there_says_so(person):
    ran = person.run("uninstall", "codex", "--yes")
    assert ran.code == 1
    assert "handtools install codex" in ran.err


def test_uninstalling_asks_for_files_by_what_becomes_of_them(person):
    settings = person.folder / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{"theme": "dark"}\n')
    person.run("install", "claude", "--yes", "--only-ours")
    code, seen = at_terminal(person, "uninstall", "claude", answers=[("[y/N]", "n\n")], COLUMNS="500")
    assert code == 0, seen
    assert f"Write {settings}, and delete {person.folder / '.mcp.json'}? [y/N]" in seen
    person.run("install", "claude", "--yes", "--keep-theirs")
    _, seen = at_terminal(person, "uninstall", "claude", answers=[("[y/N]", "y\n")], COLUMNS="500")
    assert f"Delete {person.folder / '.mcp.json'}? [y/N]" in seen
    assert files(person.folder) == {str(settings): b'{"theme": "dark"}\n'}


def test_uninstalling_keeps_what_a_person_changed_since(person):
    settings = person.folder / ".claude" / "settings.json"
    settings.parent.mkdir()
    settings.write_text('{\n  "permissions": {\n    "deny": ["Bash", "WebFetch"] // mine\n  }\n}\n')
    person.run("install", "claude", "--yes", "--only-ours")
    settings.write_text(settings.read_text().replace('"WebFetch"', '"WebFetch", "WebSearch"'))
    person.run("uninstall", "claude", "--yes")
    assert settings.read_text() == (
        '{\n  "permissions": {\n    "deny": ["Bash", "WebFetch", "WebSearch"] // mine\n  }\n}\n'
    )


def test_without_a_record_uninstalling_takes_out_what_is_ours(person, tmp_path):
    # Somebody else installed it, and committed the files.
    (person.folder / "opencode.json").write_text('{"theme": "x"}\n')
    person.run("install", "opencode", "--yes", "--only-ours", HANDTOOLS_STATE=str(tmp_path / "another"))
    assert person.run("uninstall", "opencode", "--yes").code == 0
    assert json.loads(person.text("opencode.json")) == {"theme": "x"}


def test_keeping_theirs_switches_their_tools_on_again(person):
    person.run("install", "codex", "--yes")
    ours = everything(person)
    person.run("install", "codex", "--yes", "--only-ours")
    assert "shell_tool = false" in person.text(".codex/config.toml")
    assert person.run("install", "codex", "--yes").code == 0
    assert "shell_tool = false" in person.text(".codex/config.toml")
    person.run("install", "codex", "--yes", "--keep-theirs")
    assert everything(person) == ours


@pytest.mark.parametrize("client", ["claude-desktop", "cline"])
def test_another_folder_is_not_replaced_unless_that_is_said(person, client, tmp_path):
    (tmp_path / "other").mkdir()
    person.run("install", client, "--yes", cwd=tmp_path / "other")
    before = everything(person)
    ran = person.run("install", client, "--yes")
    assert ran.code == 1
    assert f"starts handtools for {tmp_path / 'other'}" in ran.err
    assert "--replace" in ran.err
    assert person.run("uninstall", client, "--yes").code == 1
    assert everything(person) == before
    assert person.run("install", client, "--yes", "--replace").code == 0
    assert str(person.folder) in b"".join(everything(person).values()).decode()
    assert person.run("uninstall", client, "--yes").code == 0
    assert everything(person) == before


def test_where_nobody_can_be_asked_nothing_is_written(person):
    ran = person.run("install", "claude")
    assert ran.code == 1
    assert '+    "handtools": {' in ran.out
    assert "--yes" in ran.err
    assert "--print" in ran.err
    assert not files(person.folder)


@pytest.mark.parametrize(("first", "second"), [("", None), ("y", "n"), ("y", "y")])
def test_the_change_is_shown_and_each_part_is_asked_for(person, first, second):
    answers = [(WRITE, f"{first}\n"), *([(SWITCH, f"{second}\n")] if second else [])]
    code, seen = at_terminal(person, "install", "opencode", answers=answers)
    assert code == 0
    shown, _, rest = seen.partition(WRITE)
    assert '"handtools"' in shown
    assert "permission" not in shown
    assert ('"bash": "deny"' in rest) is (second is not None)
    written = json.loads(person.text("opencode.json") or "{}")
    assert ("mcp" in written, "permission" in written) == (first == "y", second == "y")


def test_print_shows_what_to_paste_and_writes_nothing(person):
    (person.folder / "opencode.json").write_text('{"theme": "x"}\n')
    ran = person.run("install", "opencode", "--print")
    assert json.loads(ran.out) == {
        "mcp": {"handtools": {"type": "local", "command": ["handtools", "mcp", "."], "enabled": True}}
    }
    assert person.text("opencode.json") == '{"theme": "x"}\n'


@pytest.mark.parametrize("client", ["vscode", "copilot"])
def test_a_client_without_such_a_setting_says_what_to_do(person, client):
    ran = person.run("install", client, "--yes", "--only-ours")
    assert ran.code == 1
    assert "--keep-theirs" in ran.err
    assert not files(person.folder)
    assert "no config file setting" in person.run("install", client, "--yes").err


@pytest.mark.parametrize(
    ("client", "file", "text"),
    [
        ("claude", ".mcp.json", "{oops"),
        ("codex", ".codex/config.toml", "a = ["),
        ("opencode", "opencode.json", "[]"),
    ],
)
def test_a_file_that_is_not_understood_stays_as_it_is(person, client, file, text):
    (person.folder / file).parent.mkdir(exist_ok=True)
    (person.folder / file).write_text(text)
    ran = person.run("install", client, "--yes")
    assert ran.code == 1
    assert file in ran.err
    assert "--print" in ran.err
    assert person.text(file) == text


def test_the_doctor_says_whether_the_program_is_on_the_path_and_their_tools_are_off(person):
    person.run("install", "claude", "--yes", "--only-ours")

    def claude(**environment):
        found = person.run("doctor", "--mcp", "--json", **environment).json["findings"]
        return next(f for f in found if f["name"] == "Claude Code")

    assert claude()["state"] == "ok"
    assert "its own file and shell tools are off" in claude()["told"]
    assert claude(PATH="/usr/bin:/bin")["state"] == "missing"
