"""Programs: what is opened to a server or a formatter so that it can run."""

import os
import sys
from pathlib import Path

import pytest

from handtools.host.sandbox.program_dependencies import (
    folders_needed_by_program,
    interpreter_folders,
    node_modules_folder,
)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    return home


def script(path: Path, first: str = "#!/bin/sh") -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{first}\n")
    path.chmod(0o755)
    return str(path)


def test_a_program_of_the_machine_gets_its_environment_and_its_interpreter(tmp_path, home):
    python = script(tmp_path / "base/bin/python3")
    (tmp_path / "env/bin").mkdir(parents=True)
    (tmp_path / "env/bin/python").symlink_to(python)
    program = script(tmp_path / "env/bin/tool", f"#!{tmp_path}/env/bin/python")
    found = folders_needed_by_program(program, str(tmp_path / "work"))
    assert found == (str(tmp_path / "env"), str(tmp_path / "base"))


def test_a_program_of_npm_gets_the_packages_around_it(tmp_path, home):
    real = script(tmp_path / "node_modules/tool/bin/tool.js", "#!/bin/sh")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin/tool").symlink_to(real)
    found = folders_needed_by_program(str(tmp_path / "bin/tool"), str(tmp_path / "work"))
    assert str(tmp_path / "node_modules") in found
    assert node_modules_folder(str(tmp_path / "bin/tool")) == str(tmp_path / "node_modules")


@pytest.mark.parametrize(
    "first", ["#!{home}/.ssh/bin/bash", "#!{home}/.ssh/../bin/sh", "#!{home}/.local/bin/python3"]
)
def test_the_first_line_of_a_project_opens_nothing(first, tmp_path, home):
    program = script(home / "work/.venv/bin/tool", first.format(home=home))
    assert folders_needed_by_program(program, str(home / "work")) == ()


def test_a_link_of_a_project_opens_nothing(tmp_path, home):
    script(home / ".ssh/bin/tool")
    (home / "work/bin").mkdir(parents=True)
    (home / "work/bin/tool").symlink_to(home / ".ssh/bin/tool")
    assert folders_needed_by_program(str(home / "work/bin/tool"), str(home / "work")) == ()


def test_a_projects_script_gets_the_interpreter_that_our_path_names(tmp_path, home, monkeypatch):
    script(tmp_path / "node/bin/node")
    monkeypatch.setenv("PATH", f"{home}/work/bin:{tmp_path}/node/bin")
    program = script(home / "work/node_modules/.bin/tool", "#!/usr/bin/env node")
    assert folders_needed_by_program(program, str(home / "work")) == (str(tmp_path / "node"),)
    script(home / "work/bin/node", "#!/bin/sh")
    assert folders_needed_by_program(program, str(home / "work")) == ()


def test_a_home_is_never_opened_for_a_program_in_it(tmp_path, home):
    assert folders_needed_by_program(script(home / "bin/tool"), str(tmp_path / "work"))[0] == str(
        home / "bin"
    )
    found = folders_needed_by_program(script(home / ".local/bin/tool"), str(tmp_path / "work"))
    assert found[:2] == (str(home / ".local/bin"), str(home / ".local/lib"))


def test_an_environment_may_name_only_interpreters_that_our_path_leads_to(tmp_path, home, monkeypatch):
    (home / "work/.venv/bin").mkdir(parents=True)
    python = home / "work/.venv/bin/python"
    python.symlink_to(script(home / ".ssh/bin/python"))
    assert interpreter_folders(str(python)) == ()
    monkeypatch.setenv("PATH", os.path.dirname(os.path.realpath(sys.executable)))
    python.unlink()
    python.symlink_to(sys.executable)
    assert interpreter_folders(str(python)) == (str(Path(os.path.realpath(sys.executable)).parents[1]),)


def test_a_pipe_in_place_of_a_program_holds_nobody_up(tmp_path, home):
    (tmp_path / "bin").mkdir()
    os.mkfifo(tmp_path / "bin/tool")
    assert folders_needed_by_program(str(tmp_path / "bin/tool"), str(tmp_path / "work"))


def test_an_interpreter_beside_a_program_is_the_one_that_will_run_it(tmp_path):
    from handtools.host.sandbox.program_dependencies import folders_needed_by_program

    real = tmp_path / "lib" / "node_modules" / "server"
    (real / "bin").mkdir(parents=True)
    (real / "bin" / "server").write_text("#!/usr/bin/env example-node\n")
    (tmp_path / "other" / "bin").mkdir(parents=True)
    node = tmp_path / "other" / "bin" / "example-node"
    node.write_text("")
    node.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "server").symlink_to(real / "bin" / "server")
    (tmp_path / "bin" / "example-node").symlink_to(node)
    found = folders_needed_by_program(str(tmp_path / "bin" / "server"), str(tmp_path / "work"))
    assert str(tmp_path / "lib" / "node_modules") in found
    assert str(tmp_path / "other") in found
    assert str(tmp_path / "other") not in folders_needed_by_program(
        str(tmp_path / "bin" / "server"), str(tmp_path)
    )
