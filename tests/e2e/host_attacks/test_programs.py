"""No program of the workspace runs outside a boundary, however it would be found."""

import os
import subprocess
import sys

import pytest

from handtools import Toolbox, local_workspace
from handtools.cli.doctor_checks import language_checks
from handtools.core.approval import Reply
from handtools.core.errors import HostError
from handtools.host import programs
from handtools.host.sandbox import default_limits
from handtools.host.sandbox.processes import supervisor_client
from handtools.host.sandbox.runners.bubblewrap import BubblewrapRunner
from handtools.host.sandbox.runners.runner_selection import choose_runner
from handtools.toolbox import EVERYTHING

sandboxed = pytest.mark.skipif(
    bool(BubblewrapRunner().unavailable_reason()), reason="bubblewrap does not work here"
)


@pytest.fixture
def work(tmp_path):
    (tmp_path / "work").mkdir()
    return tmp_path / "work"


def plant(folder, mark, *names):
    """Programs that leave a mark instead of what they are called after."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {mark}\nexit 3\n")
        (folder / name).chmod(0o755)
    return folder


def toolbox(work, **options):
    state = work.parent / "state"
    return Toolbox(EVERYTHING, workspace=local_workspace(work, state=state, **options), approver=refuse)


async def refuse(_):
    return Reply(False)


@pytest.mark.parametrize("way", ["absolute", "relative", "empty", "link_in", "link_out"])
async def test_what_lies_in_the_workspace_is_not_found_on_the_path(work, tmp_path, monkeypatch, way):
    mark = tmp_path / "mark"
    names = ("git", "rg", "bwrap", "setpriv", "bash", "python3")
    inside = plant(work / ".venv" / "bin", mark, *names)
    entry = str(inside)
    if way in {"relative", "empty"}:
        monkeypatch.chdir(inside)
        entry = "." if way == "relative" else ""
    elif way == "link_in":
        (tmp_path / "bin").symlink_to(inside)
        entry = str(tmp_path / "bin")
    elif way == "link_out":
        (tmp_path / "bin").mkdir()
        for name in names:
            (tmp_path / "bin" / name).symlink_to(inside / name)
        entry = str(tmp_path / "bin")
    monkeypatch.setenv("PATH", os.pathsep.join([entry, os.environ["PATH"]]))
    found = {name: programs.find_program(name, work) for name in names}
    assert all(each is None or programs.is_outside_workspace(each.file, work) for each in found.values())
    (work / "a.txt").write_text("needle\n")
    async with toolbox(work) as made:
        assert "needle" in (await made.call("grep", {"pattern": "needle"})).text
        await made.call("read", {"path": "gone.txt"})
        await made.call("bash", {"command": "echo said"})
        await made.call("write", {"path": "b.py", "content": "x=1\n"})
    assert not mark.exists()


def test_a_program_gets_nothing_of_our_environment_that_changes_it(monkeypatch):
    for name in (
        "LD_PRELOAD",
        "PYTHONPATH",
        "GIT_DIR",
        "RIPGREP_CONFIG_PATH",
        "NODE_OPTIONS",
        "BASH_ENV",
        "X_KEY",
    ):
        monkeypatch.setenv(name, "x")
    done = programs.run_program(programs.find_program("env", ""), [], programs.ProgramLimits(seconds=20.0))
    names = {line.partition("=")[0] for line in done.output.decode().splitlines()}
    assert names <= {"PATH", "LC_ALL", "TEMP", "TMP", "SYSTEMROOT"}


def test_a_program_that_does_not_end_is_ended_with_what_it_started():
    ours, theirs = os.pipe()
    with open(ours, "rb") as held:
        with open(theirs, "wb"), pytest.raises(programs.ProgramTimeout, match="longer than"):
            script = ["-c", "sleep 600 & wait"]
            programs.run_program(
                programs.find_program("sh", ""),
                script,
                programs.ProgramLimits(seconds=1.0),
                pass_fds=(theirs,),
            )
        assert held.read() == b"", "which ends when nobody holds the other end any more"


def test_a_program_says_no_more_than_it_may(tmp_path):
    script = "yes | head -c 5000000; echo $?"
    done = programs.run_program(
        programs.find_program("sh", ""),
        ["-c", script],
        programs.ProgramLimits(seconds=20.0, output_bytes=1000),
    )
    assert len(done.output) <= 1000


async def test_without_a_boundary_no_server_of_the_project_starts(work, tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_LANGUAGE", "on")
    monkeypatch.setenv("PATH", "/usr/bin:/bin")  # no ruff from outside, which may run
    mark = tmp_path / "mark"
    plant(work / ".venv" / "bin", mark, "pyright-langserver", "pyright", "ruff")
    plant(work / "node_modules" / ".bin", mark, "gopls", "typescript-language-server")
    (work / "pyproject.toml").write_text("[tool.pyright]\n[tool.ruff]\n")
    (work / "go.mod").write_text("module a\n")
    async with toolbox(work, runner="plain") as made:
        assert (await made.call("write", {"path": "a.py", "content": "x=1\n"})).status == "ok"
        assert (await made.call("write", {"path": "a.go", "content": "package a\n"})).status == "ok"
        asked = await made.call("lsp", {"operation": "diagnostics", "path": "a.py"})
        await made.call("lsp", {"operation": "diagnostics", "path": "a.go"})
        assert not made.workspace.language.speaks("a.go")
        assert "need a sandbox" in made.workspace.language.missing_server_sentence("a.go")
    assert asked.status == "error"
    assert not mark.exists()


@pytest.mark.parametrize("runner", ["", "plain"])
def test_looking_for_versions_runs_nothing_of_the_project_unconfined(work, tmp_path, monkeypatch, runner):
    mark = tmp_path / "mark"
    plant(work / "node_modules" / ".bin", mark, "gopls", "tsc")
    plant(work / ".venv" / "bin", mark, "pyright", "pyright-langserver", "ruff", "ty")
    chosen = choose_runner(root=work, wanted=runner)
    monkeypatch.setattr("handtools.host.sandbox.runners.runner_selection.choose_runner", lambda **_: chosen)
    found = {each.name: each for each in language_checks(work)}
    assert "gopls" in found
    assert chosen.runner.confined != ("sandbox" in found), "it says why there is none"
    assert not mark.exists()


def test_the_folders_that_we_run_from_are_known(work, monkeypatch):
    assert programs.installation_folders_in_workspace(work) == ()
    (work / ".venv" / "lib").mkdir(parents=True)
    monkeypatch.setattr(sys, "prefix", str(work / ".venv"))
    assert programs.installation_folders_in_workspace(work) == (".venv",)
    assert programs.is_own_installation(work / ".venv" / "bin" / "rg", work)
    assert not programs.is_own_installation(work / "src", work)


def test_no_module_comes_from_the_workspace(work, monkeypatch):
    monkeypatch.setattr(sys, "path", ["", ".", str(work), str(work / "src"), *sys.path])
    found = programs.trusted_import_path(work)
    assert found
    assert not [
        each for each in found if not os.path.isabs(each) or not programs.is_outside_workspace(each, work)
    ]


@sandboxed
async def test_our_own_program_is_kept_where_it_runs_from_the_workspace(work, monkeypatch):
    (work / ".venv" / "bin").mkdir(parents=True)
    (work / ".venv" / "bin" / "rg").write_text("as it was\n")
    monkeypatch.setattr(sys, "prefix", str(work / ".venv"))
    async with toolbox(work) as made:
        await made.call(
            "bash", {"command": "echo x > .venv/bin/rg; rm -r .venv; mv .venv other; touch .venv/new"}
        )
        written = await made.call("write", {"path": ".venv/bin/rg", "content": "x\n", "mode": "overwrite"})
        assert written.fault.code == "denied"
        assert (await made.why("write", {"path": ".venv/x", "content": ""})).rule == "installation"
    assert (work / ".venv" / "bin" / "rg").read_text() == "as it was\n"
    assert sorted(each.name for each in work.iterdir()) == [".venv"]


def test_a_module_in_the_folder_that_we_are_started_in_is_not_loaded(work, tmp_path):
    mark = tmp_path / "mark"
    for name in ("click", "typer", "anyio", "pydantic", "PIL", "readline"):
        (work / f"{name}.py").write_text(f"open({str(mark)!r}, 'w').close()\nraise SystemExit(9)\n")
    line = [sys.executable, "-m", "handtools", "doctor"]
    done = subprocess.run(line, cwd=work, capture_output=True, text=True, timeout=120, check=False)
    assert "workspace" in done.stdout, done.stderr
    assert not mark.exists()


@sandboxed
async def test_a_command_that_takes_most_of_the_memory_is_ended(work, monkeypatch):
    monkeypatch.setattr(supervisor_client, "default_memory_bytes", lambda: 300 << 20)
    script = 'python3 -c \'x = bytearray(1 << 30); x[::4096] = bytes(len(x[::4096])); print("wh" + "ole")\''
    async with toolbox(work) as made:
        ended = await made.call("bash", {"command": script})
    assert "whole" not in ended.text
    assert "memory" in ended.text


def test_the_usual_memory_is_most_of_the_machine_and_not_all_of_it():
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < default_limits.default_memory_bytes() <= machine * default_limits.MEMORY_SHARE


@sandboxed
async def test_open_files_are_limited_as_far_as_nothing_honest_notices(work):
    async with toolbox(work) as made:
        said = (await made.call("bash", {"command": "ulimit -Hn; ulimit -Sn"})).text.split()
    assert int(said[0]) <= default_limits.DEFAULT_OPEN_FILES
    assert int(said[1]) >= 1024


def test_bubblewrap_from_the_workspace_alone_is_none(work, tmp_path, monkeypatch):
    mark = tmp_path / "mark"
    inside = plant(work / "bin", mark, "bwrap")
    monkeypatch.setenv("PATH", str(inside))
    assert "not installed" in BubblewrapRunner(work).unavailable_reason()
    assert choose_runner(root=work).runner.name != "bubblewrap"
    with pytest.raises(HostError):
        choose_runner(wanted="bubblewrap", root=work)
    assert not mark.exists()
