"""What commands may leave: folders nested without end, files that nobody may read, very many private ones."""

import os
import stat
import sys
import threading
from collections import Counter
from contextlib import contextmanager

import pytest

import handtools
from handtools import Policy, Toolbox
from handtools.host.files.backups import FolderBackups
from handtools.host.files.folder_handle import FolderHandle
from handtools.host.files.folder_trees import copy_tree, remove_tree, walk_tree
from handtools.host.sandbox.overlay.overlay_capture import overlay_problem
from handtools.host.sandbox.scan_capture import ScanCapture
from handtools.toolbox import CODING, local_workspace

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="system: layers need Linux")

DEPTH = 1_100
"""Deeper than Python recurses, and than a process may hold folders open."""
NEST = f"""python3 -c "
import os
for _ in range({DEPTH}):
    os.mkdir('d'); os.chdir('d')
open('f', 'w').write('x')"
"""


@pytest.fixture
def base(tmp_path):
    (tmp_path / "work").mkdir()
    if overlay_problem(tmp_path / "work", FolderBackups(tmp_path / "state" / "vault")):
        pytest.skip("machine: no layers can be mounted")
    yield tmp_path
    with FolderHandle.at(os.fspath(tmp_path)) as folder:  # pytest's own way recurses
        remove_tree(folder, "work")
        remove_tree(folder, "state")


def box(base):
    workspace = local_workspace(base / "work", state=base / "state")
    return Toolbox(CODING, workspace=workspace, policy=Policy(unattended="allow"))


def nest(folder, depth=DEPTH):
    """Nested folders with a file in the last, made without a long path."""
    here = os.open(folder, os.O_RDONLY)
    for _ in range(depth):
        os.mkdir("d", dir_fd=here)
        inner = os.open("d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    fd = os.open("f", os.O_CREAT | os.O_WRONLY, 0o600, dir_fd=here)
    os.write(fd, b"x")
    os.close(fd)
    os.close(here)


def depth_of(folder):
    with FolderHandle.at(os.fspath(folder)) as top:
        return max((found.path.count("/") for found in walk_tree(top)), default=0)


async def test_folders_nested_without_end_land_are_undone_and_redone(base):
    async with box(base) as toolbox:
        made = await toolbox.call("bash", {"command": NEST})
        assert made.ok, made.text
        assert depth_of(base / "work") == DEPTH
        undone = await toolbox.call("undo", {"path": "d"})
        assert undone.ok, undone.text
        assert os.listdir(base / "work") == []
        assert (await toolbox.call("undo", {"path": "d", "action": "redo"})).ok
        assert depth_of(base / "work") == DEPTH
        assert (await toolbox.call("bash", {"command": "rm -r d; echo more > more"})).ok
    assert os.listdir(base / "work") == ["more"]


@contextmanager
def counted_lines():
    """Counts how often each line of ours runs, in all threads that start inside.

    Not in lines that wait for time, and not in threads that look ahead or sync beside the calls.
    """
    counts = Counter()
    here = os.path.dirname(handtools.__file__)
    waiting = {"running_calls.py", "running_process.py"}

    def trace(frame, event, _argument):
        path = frame.f_code.co_filename
        beside = threading.current_thread().name in {"handtools-look-ahead", "handtools-file-syncs"}
        if not path.startswith(here) or os.path.basename(path) in waiting or beside:
            return None
        if event == "line":
            counts[f"{path.removeprefix(here)}:{frame.f_lineno}"] += 1
        return trace

    before = sys.gettrace()
    threading.settrace(trace)
    sys.settrace(trace)
    try:
        yield counts
    finally:
        sys.settrace(before)
        threading.settrace(None)


async def lines_run_for(base, depth, counts):
    """How often each line runs while nested folders land, go, come back and are deleted by a command."""
    names = [f"d{depth}-{number}" for number in range(depth)]
    script = f"import os\nfor name in {names}:\n os.mkdir(name); os.chdir(name)"
    async with box(base) as toolbox:
        await toolbox.call("bash", {"command": "true"})
        counts.clear()
        for tool, args in (
            ("bash", {"command": f'python3 -c "{script}"'}),
            ("undo", {"name": "/".join(names)}),
            ("undo", {"name": "/".join(names), "action": "redo"}),
            ("bash", {"command": f"rm -r {names[0]}"}),
        ):
            result = await toolbox.call(tool, args)
            assert result.ok, result.text
    assert os.listdir(base / "work") == []
    return counts.copy()


async def test_the_work_for_nested_folders_grows_with_their_number_and_not_with_its_square(base):
    with counted_lines() as counts:
        few, some, many = [await lines_run_for(base, depth, counts) for depth in (80, 160, 240)]
    growing = {
        line: (few[line], some[line], count)
        for line, count in many.items()
        if count > 5_000 and count - some[line] > 1.3 * (some[line] - few[line])
    }
    assert growing == {}


async def test_folders_nested_without_end_that_a_crash_left_stop_no_later_start(base):
    backups = FolderBackups(base / "state" / "vault")
    item = backups.create_item()
    (item.path / "upper").mkdir()
    nest(item.path / "upper")
    item.release()
    async with box(base) as toolbox:
        result = await toolbox.call("bash", {"command": "echo on > on"})
    assert result.ok, result.text
    assert not item.path.exists()


async def test_what_can_not_be_removed_is_set_aside_named_and_not_tried_again(base, monkeypatch, caplog):
    backups = FolderBackups(base / "state" / "vault")
    item = backups.create_item()
    item.release()

    def fail(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("handtools.host.files.backups.remove_tree", fail)
    (told,) = backups.delete_unwanted_items(())
    assert f"aside-{item.name}" in told
    assert backups.delete_unwanted_items(()) == []
    assert (backups.folder / f"aside-{item.name}").is_dir()


def test_nested_folders_are_copied_and_removed_whatever_their_depth(tmp_path):
    (tmp_path / "a").mkdir()
    nest(tmp_path / "a", 1_200)
    with FolderHandle.at(os.fspath(tmp_path)) as folder:
        copy_tree(folder, "a", folder, "b")
        assert depth_of(tmp_path / "b") == 1_200
        for name in ("a", "b"):
            remove_tree(folder, name)
    assert os.listdir(tmp_path) == []


def test_a_look_before_and_after_goes_as_deep(base):
    capture = ScanCapture(base / "work", FolderBackups(base / "vault"))
    (base / "work" / "a").write_text("old")
    capturing = capture.begin(None, in_place=True)
    nest(base / "work")
    delta = capturing.finish()
    capturing.discard()
    assert len(delta.changes) == DEPTH + 1


async def test_what_its_owner_may_not_read_takes_nothing_else_with_it(base):
    script = (
        "mkdir z; echo x > z/f; echo y > z/g; chmod 000 z/f z; echo keep > keep; echo x > f; chmod 000 f"
    )
    async with box(base) as toolbox:
        result = await toolbox.call("bash", {"command": script})
        assert result.ok, result.text
    found = {path.name: stat.S_IMODE(path.lstat().st_mode) for path in (base / "work").iterdir()}
    assert found == {"z": 0, "keep": 0o644, "f": 0}
    (base / "work" / "z").chmod(0o700)
    assert sorted(os.listdir(base / "work" / "z")) == ["f", "g"]


@pytest.mark.parametrize("count", [60, 400])
async def test_many_private_files_are_hidden_and_stop_no_command(base, count):
    keys = base / "work" / "keys"
    keys.mkdir()
    for number in range(count):
        (keys / f"{number}.pem").write_text("SECRET\n")
    (base / "work" / ".env").write_text("SECRET\n")
    async with box(base) as toolbox:
        if not toolbox.workspace.commands.confined:
            pytest.skip("machine: nothing here confines commands")
        script = "cat keys/* .env; head -c 9 .env; cp .env copy; mv keys/1.pem moved; echo ran > ran"
        result = await toolbox.call("bash", {"command": script})
    assert "SECRET" not in result.text
    assert (base / "work" / "ran").exists()
    assert not (base / "work" / "moved").exists()
    assert (base / "work" / ".env").read_text() == "SECRET\n"
    assert ("401 private paths are hidden from it" in result.text) == (count > 256)


async def test_a_private_file_made_after_the_look_ahead_is_hidden_from_the_first_command(base):
    (base / "work" / "deep" / "er").mkdir(parents=True)
    async with box(base) as toolbox:
        if not toolbox.workspace.commands.confined:
            pytest.skip("machine: nothing here confines commands")
        toolbox.look_ahead()
        for thread in threading.enumerate():
            if thread.name == "handtools-look-ahead":
                thread.join()
        (base / "work" / "deep" / "er" / ".env").write_text("SECRET\n")
        result = await toolbox.call("bash", {"command": "cat deep/er/.env; ls -a deep/er"})
    assert "SECRET" not in result.text
    assert ".env" in result.text


async def test_private_files_in_very_many_folders_are_hidden_and_nothing_else_changes(base):
    work = base / "work"
    for number in range(300):
        folder = work / f"p{number}"
        folder.mkdir()
        folder.chmod(0o750)
        (folder / ".env").write_text("SECRET-WORD\n")
        (folder / "plain").write_text("plain\n")
        (folder / ".ssh").mkdir()
        (folder / ".ssh/key").write_text("SECRET-WORD\n")
    tools = box(base)
    if not tools.workspace.commands.confined:
        pytest.skip("machine: nothing here confines commands")
    shown = await tools.call(
        "bash", {"command": "grep -rs SECRET .; cat p7/.env; ls p7/.ssh; cat p*/plain | wc -l"}
    )
    assert "SECRET" not in shown.text
    assert "300" in shown.text
    again = await tools.call(
        "bash",
        {
            "command": "chmod 644 p1/.env; cat p1/.env; echo x > p1/new; echo y > p2/.env; rm -rf p3 p4/plain"
        },
    )
    assert "SECRET" not in again.text
    assert (work / "p1/new").read_text() == "x\n"
    assert not (work / "p4/plain").exists()
    for number in range(300):
        assert (work / f"p{number}/.env").read_text() == "SECRET-WORD\n"
        assert (work / f"p{number}/.ssh/key").read_text() == "SECRET-WORD\n"
        assert stat.S_IMODE((work / f"p{number}").stat().st_mode) == 0o750
    assert not list((base / "state").rglob("masked"))
