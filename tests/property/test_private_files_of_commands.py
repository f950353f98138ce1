"""No private file is passed on by real commands and jobs, whatever a person does to the workspace beside them.

The gate draws a few histories; `just nightly` draws hundreds.
"""

import os
import re
import shutil
import sys
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from handtools import Call, Policy, Toolbox
from handtools.host.files.backups import FolderBackups
from handtools.host.sandbox.overlay.overlay_capture import overlay_problem
from handtools.toolbox import CODING, BlockingToolbox, local_workspace

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: layers need Linux")

FOLDERS = ("", "a", "conf", "a/conf")
FILES = (".env", "key.pem", "plain", "id_rsa")
folders = st.sampled_from(FOLDERS)
paths = st.builds(lambda folder, name: f"{folder}/{name}".lstrip("/"), folders, st.sampled_from(FILES))
# Each line of input is an order: all that can be read is printed, and then the end of the order.
READER = 'while read -r number; do cat $(find . -type f) 2>/dev/null; echo "end $number"; done'
NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"


class Commands(RuleBasedStateMachine):
    """A person who makes, writes, moves and removes files, beside a job and commands that read all of them."""

    def __init__(self) -> None:
        super().__init__()
        self.base = Path(tempfile.mkdtemp())
        self.root = self.base / "work"
        self.root.mkdir()
        workspace = local_workspace(self.root, state=self.base / "state")
        self.box = BlockingToolbox(Toolbox(CODING, workspace=workspace, policy=Policy(unattended="deny")))
        self.job = ""
        self.count = 0
        self.secrets: set[str] = set()

    def teardown(self) -> None:
        self.box.close()
        shutil.rmtree(self.base, ignore_errors=True)

    def _call(self, tool: str, **args: object):
        result = self.box.call(Call(tool=tool, args=args, session="s"))
        told = set(re.findall(r"secret-\d+", result.text))
        assert not told & self.secrets, f"{tool} {args} told {result.text}"
        return result

    def _write(self, path: str) -> None:
        place = self.root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        self.count += 1
        content = f"secret-{self.count}" if place.name != "plain" else f"public-{self.count}"
        if place.name != "plain":
            self.secrets.add(content)
        beside = place.with_name("4913")
        beside.write_text(content)
        beside.replace(place)

    @initialize(some=st.lists(paths, max_size=3))
    def begin(self, some: list[str]) -> None:
        for path in some:
            self._write(path)

    @rule(path=paths)
    def write(self, path: str) -> None:
        self._write(path)

    @rule(path=paths)
    def remove(self, path: str) -> None:
        (self.root / path).unlink(missing_ok=True)

    @rule(source=folders, goal=folders)
    def move(self, source: str, goal: str) -> None:
        start, end = self.root / source, self.root / goal
        is_free = start.is_dir() and not end.exists() and end.parent.is_dir()
        if source and goal and is_free and not end.is_relative_to(start):
            start.rename(end)

    @rule()
    def run_command(self) -> None:
        self._call("bash", command="cat $(find . -type f) 2>/dev/null; true")

    @rule()
    def start_job(self) -> None:
        if not self.job:
            self.job = self._call("bash", command=READER, background=True).details.job

    @rule()
    def read_in_job(self) -> None:
        if not self.job:
            return
        self.count += 1
        self._call("jobs", action="send", job=self.job, text=f"{self.count}\n")
        output = self._call("jobs", action="output", job=self.job)
        while output.details.running and f"end {self.count}" not in output.text:
            output = self._call("jobs", action="output", job=self.job)
        self.job = self.job if output.details.running else ""


@pytest.mark.timeout(600)
def test_no_secret_is_in_any_answer():
    place = tempfile.mkdtemp()
    if overlay_problem(place, FolderBackups(Path(place, "vault"))):
        pytest.skip("machine: no layers can be mounted")
    from hypothesis.stateful import run_state_machine_as_test

    chosen = settings(
        max_examples=300 if NIGHTLY else 6,
        stateful_step_count=25,
        deadline=None,
        phases=[Phase.explicit, Phase.generate],
    )
    run_state_machine_as_test(Commands, settings=chosen)
