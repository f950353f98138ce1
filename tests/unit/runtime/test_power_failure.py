"""What the first call after a power failure makes of files that were written before it."""

import os
import time
from dataclasses import replace
from pathlib import Path

import pytest

from handtools.host.files.boot import boot_if_lasting
from handtools.runtime.journaled_transactions import recover_transactions
from handtools.toolbox import CODING, Toolbox, local_workspace

OLD, NEW = "one\ntwo\n", "one\nthree\n" + "more\n" * 300
EDIT = {"path": "a", "old_string": "two\n", "new_string": NEW.removeprefix("one\n")}


def box_in_boot(folder, boot):
    workspace = local_workspace(folder / "work", state=folder / "state")
    return Toolbox(CODING, workspace=replace(workspace, boot=boot))


async def edited(folder, monkeypatch, *, ahead=3600):
    """Edit a file in one boot; the clock is ahead, so that a file which is written later counts as older."""
    (folder / "work").mkdir()
    (folder / "work" / "a").write_text(OLD)
    now = time.time
    monkeypatch.setattr(time, "time", lambda: now() + ahead)
    async with box_in_boot(folder, "first") as box:
        await box.call("think", {"thought": "the first call records the boot"})
        result = await box.call("edit", EDIT)
    monkeypatch.undo()
    assert result.ok
    return folder / "work" / "a"


async def sentences_in_boot(folder, boot):
    async with box_in_boot(folder, boot) as box:
        return await recover_transactions(box.workspace)


@pytest.mark.parametrize(
    "left",
    [
        pytest.param(OLD, id="the file before the change"),
        pytest.param("", id="an empty file"),
        pytest.param("\0" * len(NEW), id="zeros"),
        pytest.param(NEW[:512] + "\0" * 512 + NEW[1024:], id="a missing block"),
        pytest.param(NEW[:700], id="the beginning"),
        pytest.param(None, id="no file"),
    ],
)
async def test_a_file_that_a_power_failure_lost_is_restored_and_can_be_undone(tmp_path, monkeypatch, left):
    file = await edited(tmp_path, monkeypatch)
    file.unlink()
    if left is not None:
        file.write_text(left)
    assert "restored" in " ".join(await sentences_in_boot(tmp_path, "second"))
    assert file.read_text() == NEW
    async with box_in_boot(tmp_path, "second") as box:
        assert (await box.call("undo", {"scope": "last"})).ok
    assert file.read_text() == OLD


async def test_a_file_that_the_user_changed_before_the_power_failure_stays(tmp_path, monkeypatch):
    file = await edited(tmp_path, monkeypatch)
    file.write_text("the user's\n")
    assert "not changed" in " ".join(await sentences_in_boot(tmp_path, "second"))
    assert file.read_text() == "the user's\n"


async def test_old_content_that_the_user_has_put_back_stays(tmp_path, monkeypatch):
    file = await edited(tmp_path, monkeypatch, ahead=0)
    file.write_text(OLD)
    assert "not changed" in " ".join(await sentences_in_boot(tmp_path, "second"))
    assert file.read_text() == OLD


async def test_a_file_that_was_shortened_long_after_its_change_is_the_users(tmp_path, monkeypatch):
    file = await edited(tmp_path, monkeypatch, ahead=-120)
    file.write_text(NEW[:700])
    await sentences_in_boot(tmp_path, "second")
    assert file.read_text() == NEW[:700]


async def test_nothing_is_checked_within_a_boot(tmp_path, monkeypatch):
    file = await edited(tmp_path, monkeypatch)
    file.unlink()
    assert await sentences_in_boot(tmp_path, "first") == []
    assert not file.exists()


async def test_files_are_checked_once_in_a_boot(tmp_path, monkeypatch):
    file = await edited(tmp_path, monkeypatch)
    assert await sentences_in_boot(tmp_path, "second") == []
    file.unlink()
    assert await sentences_in_boot(tmp_path, "second") == []
    assert await sentences_in_boot(tmp_path, "third") == []
    assert not file.exists()


async def test_a_file_that_was_synced_since_is_not_checked(tmp_path, monkeypatch):
    file = await edited(tmp_path, monkeypatch)
    async with box_in_boot(tmp_path, "first") as box:
        box.workspace.journal.file_syncs.sync_now(box.workspace.files.sync)
    file.unlink()
    assert await sentences_in_boot(tmp_path, "second") == []
    assert not file.exists()


async def test_files_that_can_not_be_synced_are_checked_after_the_power_failure(tmp_path, monkeypatch):
    file = await edited(tmp_path, monkeypatch)

    def refuse(_):
        raise OSError("the disk is broken")

    async with box_in_boot(tmp_path, "first") as box:
        box.workspace.journal.file_syncs.sync_now(refuse)
    file.unlink()
    assert "restored" in " ".join(await sentences_in_boot(tmp_path, "second"))


async def test_a_change_syncs_no_file_if_the_journal_can_restore_it(tmp_path, monkeypatch):
    synced, real = [], os.fsync
    monkeypatch.setattr(
        os, "fsync", lambda fd: (synced.append(os.readlink(f"/proc/self/fd/{fd}")), real(fd))
    )
    folder = tmp_path / "work" / "d"
    folder.mkdir(parents=True)
    async with box_in_boot(tmp_path, "first") as box:
        assert (await box.call("write", {"path": "d/a", "content": NEW})).ok
    assert os.fspath(folder) not in synced
    async with box_in_boot(tmp_path, "") as box:
        assert (await box.call("write", {"path": "d/b", "content": NEW})).ok
    assert os.fspath(folder) in synced


def test_a_journal_in_memory_does_not_replace_syncs(tmp_path):
    if not Path("/dev/shm").is_dir():
        pytest.skip("machine: no /dev/shm")
    assert boot_if_lasting(Path("/dev/shm"), [os.fspath(tmp_path)]) == ""
