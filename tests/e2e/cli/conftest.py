"""The real command in a real folder, with a record of its own."""

import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

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

    @property
    def environment(self):
        colourless = {k: v for k, v in os.environ.items() if k not in {"FORCE_COLOR", "COLUMNS"}}
        return colourless | {"HANDTOOLS_STATE": str(self.state)}

    def run(self, *words, stdin="", cwd=None, **environment):
        done = subprocess.run(
            [HANDTOOLS, *words],
            cwd=cwd or self.folder,
            env=self.environment | environment,
            input=stdin.encode(),
            capture_output=True,
            timeout=60,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode("utf-8", "surrogateescape"), done.stderr.decode())

    def call(self, tool, *options, **args):
        """A call that works; gives back its id."""
        ran = self.run("call", tool, "--json", json.dumps(args), "--output", "json", *options)
        assert ran.code == 0, ran
        return ran.json["call_id"]

    def write(self, path, content, *options):
        return self.call("write", *options, path=path, content=content)

    def edit(self, path, old, new, *options):
        return self.call("edit", *options, path=path, old_string=old, new_string=new)

    def text(self, path):
        file = self.folder / path
        return file.read_text() if file.exists() else None


@pytest.fixture
def shell(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    return Shell(folder, tmp_path / "state")
