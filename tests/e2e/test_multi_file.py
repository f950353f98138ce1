"""A patch over forty files lands whole or not at all: killed in the middle, or with a file changed under it."""

import json
import subprocess
import sys

import pytest

from handtools import Policy, Reply, Rule, Toolbox, local_workspace
from handtools.host.files.local_files import LocalFiles
from handtools.toolbox import CODING
from tests.e2e.killing import FILES, tree, trees
from tests.e2e.patch_making import lay

POINTS = 40
ASK = Policy(rules=(Rule("ask", "ask", "A person decides.", effects=frozenset({"change"})),))


@pytest.mark.skipif(sys.platform != "linux", reason="machine: counts the system calls of Linux")
def test_a_patch_killed_at_any_system_call_is_whole_or_not_there_after_the_next_start(tmp_path):
    command = [sys.executable, "-m", "tests.e2e.killing", str(tmp_path), str(POINTS)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=240)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(outcomes) == POINTS, done.stderr[-2000:]
    assert {outcome["verdict"] for outcome in outcomes} == {"before", "after"}, outcomes
    assert sum(outcome["killed"] for outcome in outcomes) >= POINTS - 2
    # Both ends were reached, and the middle: a patch that was cut short was taken back or finished.
    assert outcomes[0]["of"] > FILES * 5


class Meddled(LocalFiles):
    """Someone else writes one file at the last moment before ours are written."""

    meddle = None

    def perform(self, steps, *, synced=True):
        if self.meddle is not None:
            self.meddle()
        super().perform(steps, synced=synced)


@pytest.mark.parametrize("target", [0, 13, 25, 32])
async def test_a_file_changed_under_the_patch_leaves_all_the_others_as_they_were(tmp_path, target):
    before, _, patch = trees()
    root = lay(before, tmp_path / "work")
    files = Meddled(root)
    box = Toolbox(CODING, workspace=local_workspace(root, files=files, state=tmp_path / "state"))
    name = list(before)[target]
    files.meddle = lambda: (root / name).write_bytes(b"theirs\n")
    result = await box.call("patch", {"patch": patch})
    assert result.fault.code == "stale", result.text
    assert tree(tmp_path) == before | {name: b"theirs\n"}
    assert not list(root.glob("new")), "folders that were made are gone again"


async def test_a_file_changed_while_a_person_thinks_is_noticed(tmp_path):
    before, _, patch = trees()
    root = lay(before, tmp_path / "work")
    name = list(before)[7]

    async def approve(approval):
        (root / name).write_bytes(b"theirs\n")
        return Reply(allow=True)

    workspace = local_workspace(root, state=tmp_path / "state")
    box = Toolbox(CODING, workspace=workspace, policy=ASK, approver=approve)
    result = await box.call("patch", {"patch": patch})
    assert result.fault.code == "stale", result.text
    assert tree(tmp_path) == before | {name: b"theirs\n"}


async def test_forty_files_land_together_and_are_undone_together(tmp_path):
    before, after, patch = trees()
    root = lay(before, tmp_path / "work")
    box = Toolbox(CODING, workspace=local_workspace(root, state=tmp_path / "state"))
    result = await box.call("patch", {"patch": patch})
    assert result.ok, result.text
    assert len(result.details.files) == FILES
    assert tree(tmp_path) == after
    call_id = box.workspace.journal.calls.page()[0].id
    assert (await box.call("undo", {"scope": "call", "name": call_id})).ok
    assert tree(tmp_path) == before


async def test_a_refused_hunk_in_the_last_file_leaves_forty_files_alone(tmp_path):
    before, _, patch = trees()
    root = lay(before | {"last.txt": b"one\n"}, tmp_path / "work")
    box = Toolbox(CODING, workspace=local_workspace(root, state=tmp_path / "state"))
    wrong = patch.replace("*** End Patch", "*** Update File: last.txt\n-two\n+2\n*** End Patch")
    result = await box.call("patch", {"patch": wrong})
    assert result.fault.code == "no_match"
    assert "last.txt, hunk 1 of 1" in result.text
    assert tree(tmp_path) == before | {"last.txt": b"one\n"}
