"""The real command in a real folder, with a record of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.cli.warm_command import WarmCommand, fork

HANDTOOLS = Path(sys.executable).with_name("handtools")


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def json(self):
        return json.loads(self.out)

    @property
    def rows(self):
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass(frozen=True)
class Shell:
    folder: Path
    state: Path
    warm: WarmCommand | None = None
    """Where it is there, a run is its fork, but for one that sets what the interpreter reads when it starts."""

    @property
    def environment(self):
        colourless = {k: v for k, v in os.environ.items() if k not in {"FORCE_COLOR", "COLUMNS"}}
        return colourless | {"HANDTOOLS_STATE": str(self.state)}

    def run(self, *words, stdin="", cwd=None, **environment):
        folder, variables = cwd or self.folder, self.environment | environment
        if self.warm and not any(name.startswith("PYTHON") for name in environment):
            code, out, err = self.warm.run(words, folder, variables, stdin.encode(), timeout=60)
        else:
            done = subprocess.run(
                [HANDTOOLS, *words],
                cwd=folder,
                env=variables,
                input=stdin.encode(),
                capture_output=True,
                timeout=60,
                check=False,
            )
            code, out, err = done.returncode, done.stdout, done.stderr
        return Ran(code, out.decode("utf-8", "surrogateescape"), err.decode())

    def call(self, tool, *options, **args):
        """A call that works; gives back its id."""
        ran = self.run("call", tool, json.dumps(args), "--json", *options)
        assert ran.code == 0, ran
        return ran.json["call_id"]

    def write(self, path, content, *options):
        return self.call("write", *options, path=path, content=content)

    def edit(self, path, old, new, *options):
        return self.call("edit", *options, path=path, old_string=old, new_string=new)

    def text(self, path):
        file = self.folder / path
        return file.read_text() if file.exists() else None


@pytest.fixture(scope="session")
def warm_command():
    """None where processes can't be forked: each run starts the command itself then."""
    command = WarmCommand() if fork else None
    yield command
    if command is not None:
        command.close()


@pytest.fixture
def shell(tmp_path, warm_command):
    folder = tmp_path / "work"
    folder.mkdir()
    return Shell(folder, tmp_path / "state", warm_command)


@pytest.fixture
def commands_allowed(tmp_path, monkeypatch):
    """A policy under which commands run without a question, also where nothing confines them."""
    policy = tmp_path / "commands.toml"
    policy.write_text('[defaults]\nrun = "allow"\n')
    monkeypatch.setenv("HANDTOOLS_POLICY", str(policy))
    return policy
