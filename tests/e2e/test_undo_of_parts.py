"""A folder that a command moved as one: a single file of it goes back alone, and the rest stays as it is."""

import sys
from pathlib import Path

import pytest

from handtools import Call, Policy, Toolbox
from handtools.core.changes import WHOLE_FOLDER_ITEMS
from handtools.host.files.backups import FolderBackups
from handtools.host.sandbox.overlay.overlay_capture import overlay_problem
from handtools.toolbox import CODING, local_workspace

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="machine: layers need Linux")

COUNT = WHOLE_FOLDER_ITEMS + 20
MAKE = f"mkdir -p big/sub && for n in $(seq {COUNT}); do echo $n > big/sub/$n; done"


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    if overlay_problem(folder, FolderBackups(tmp_path / "state" / "vault")):
        pytest.skip("machine: no layers can be mounted")
    return folder


@pytest.fixture
async def box(root, tmp_path):
    workspace = local_workspace(root, state=tmp_path / "state")
    async with Toolbox(CODING, workspace=workspace, policy=Policy(unattended="allow")) as toolbox:
        yield toolbox


async def ran(box, script):
    call = Call(tool="bash", args={"command": script})
    result = await box.call(call)
    assert result.ok, result.text
    return call


async def undo(box, path, action="undo"):
    return await box.call("undo", {"scope": "path", "name": path, "action": action})


def made(root):
    for folder in (root / "big", root / "big/sub"):
        folder.mkdir()
    for n in range(1, COUNT + 1):
        (root / f"big/sub/{n}").write_text(f"{n}\n")


def names(root):
    return {path.name for path in root.glob("big/sub/*")}


async def test_one_file_of_a_folder_that_was_deleted_comes_back_alone(box, root):
    made(root)
    call = await ran(box, "rm -rf big")
    assert [t.path for t in box.workspace.journal.entries.selected("call", call.id)] == ["big"]
    result = await undo(box, "big/sub/7")
    assert result.ok, result.text
    assert (root / "big/sub/7").read_text() == "7\n"
    assert names(root) == {"7"}
    assert "already undone" in (await undo(box, "big/sub/7")).text
    assert (await undo(box, "big/sub/7", "redo")).ok
    assert not (root / "big").exists()
    assert (await undo(box, "big/sub/7")).ok
    assert (await box.call("undo", {"scope": "call", "name": call.id})).ok
    assert len(names(root)) == COUNT


async def test_the_folders_of_a_file_that_comes_back_alone_have_the_modes_that_they_had(box, root):
    made(root)
    (root / "big/sub").chmod(0o700)
    await ran(box, "rm -rf big")
    assert (await undo(box, "big/sub/7")).ok
    assert (root / "big/sub").stat().st_mode & 0o777 == 0o700


async def test_a_folder_in_which_nothing_changed_comes_back_as_one(box, root):
    made(root)
    call = await ran(box, "rm -rf big")
    result = await box.call("undo", {"scope": "call", "name": call.id})
    assert result.details.restored == ["big"]
    assert len(names(root)) == COUNT


async def test_one_file_of_a_folder_that_was_made_goes_alone(box, root):
    call = await ran(box, MAKE)
    assert [t.path for t in box.workspace.journal.entries.selected("call", call.id)] == ["big"]
    result = await undo(box, "big/sub/7")
    assert result.details.restored == ["big/sub/7"]
    assert len(names(root)) == COUNT - 1
    assert (await undo(box, "big/sub/7", "redo")).ok
    assert (root / "big/sub/7").read_text() == "7\n"
    (root / "big/sub/8").write_text("mine\n")
    kept = await undo(box, "big/sub/8")
    assert [each.path for each in kept.details.conflicts] == ["big/sub/8"]
    assert (await box.call("undo", {"scope": "call", "name": call.id})).ok
    assert names(root) == {"8"}


async def test_the_last_change_of_a_path_is_the_folders_only_when_nothing_came_after(box, root):
    await ran(box, MAKE)
    await box.call("edit", {"path": "big/sub/7", "old_string": "7", "new_string": "seven"})
    assert (await undo(box, "big/sub/7")).ok
    assert (root / "big/sub/7").read_text() == "7\n"
    assert (await undo(box, "big/sub/7")).ok
    assert not (root / "big/sub/7").exists()


async def test_a_folder_inside_goes_back_with_all_that_is_in_it(box, root):
    made(root)
    (root / "big/other").write_text("x")
    await ran(box, "rm -rf big")
    assert (await undo(box, "big/sub")).ok
    assert len(names(root)) == COUNT
    assert not (root / "big/other").exists()


async def test_a_path_that_was_in_no_folder_is_not_recorded(box, root):
    await ran(box, MAKE)
    result = await undo(box, "big/sub/none")
    assert result.fault.code == "nothing_to_undo"
    assert result.fault.hint


async def test_a_folder_that_was_made_goes_with_what_was_edited_in_it_since(box, root):
    await ran(box, MAKE)
    await box.call("edit", {"path": "big/sub/7", "old_string": "7", "new_string": "seven"})
    undone = await box.call("undo", {"scope": "session", "name": "default"})
    assert undone.details.conflicts == []
    assert not (root / "big").exists()


async def test_links_folders_and_modes_that_a_command_changed_come_back(box, root):
    (root / "d").mkdir(mode=0o750)
    (root / "d/run").write_text("x")
    (root / "d/run").chmod(0o755)
    (root / "link").symlink_to("d/run")
    (root / "open").mkdir()
    (root / "open/kept").write_text("y")
    (root / "open").chmod(0o755)
    call = await ran(box, "rm -r d link; chmod 700 open")
    undone = await box.call("undo", {"scope": "call", "name": call.id})
    assert undone.details.conflicts == []
    assert (root / "link").readlink() == Path("d/run")
    modes = [(root / path).stat().st_mode & 0o777 for path in ("d", "d/run", "open")]
    assert modes == [0o750, 0o755, 0o755]
    assert (root / "open/kept").read_text() == "y"


async def test_a_version_of_a_folder_is_not_copied(box, root):
    made(root)
    await ran(box, "rm -rf big")
    result = await box.call("undo", {"scope": "path", "name": "big", "version": 0})
    assert result.fault.code == "not_found"
    assert "can't be copied" in result.text
    assert "Undo the call" in result.fault.hint
