"""Large files change without a copy of the old one: it is moved aside, and all else is as with small ones."""

import os
import tracemalloc

import pytest

from handtools import Call, Change, Toolbox, local_workspace
from handtools.core.errors import Stale
from handtools.host.files.backups import FolderBackups
from handtools.host.files.local_files import LocalFiles
from handtools.runtime.journal.retention import RetentionLimits
from handtools.toolbox import CODING

LINES = 60_000
OLD = "".join(f"value_{n:06d} = {n}\n" for n in range(LINES))


@pytest.fixture
def root(tmp_path):
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text(OLD)
    return folder


@pytest.fixture
def box(root, tmp_path):
    return Toolbox(CODING, workspace=local_workspace(root, state=tmp_path / "state"))


def kept(tmp_path):
    """What the vault has of large files."""
    folder = tmp_path / "state" / "vault" / "large"
    return sorted(path.read_text() for path in folder.iterdir()) if folder.exists() else []


def changed(number, text=OLD):
    return text.replace("value_000500 ", f"value_000500_{number} ")


async def edit(box, old, new, path="a.txt", **facts):
    call = Call(tool="edit", args={"path": path, "old_string": old, "new_string": new}, **facts)
    result = await box.call(call)
    assert result.ok, result.text
    return call


async def undo(box, call, action="undo"):
    return await box.call("undo", {"scope": "call", "name": call.id, "action": action})


async def test_an_edit_is_undone_and_redone_and_its_bytes_are_not_packed(box, root, tmp_path):
    call = await edit(box, "value_000500 ", "value_000500_1 ")
    assert (root / "a.txt").read_text() == changed(1)
    assert kept(tmp_path) == [OLD]
    assert box.workspace.journal.retention.kept_bytes() == len(OLD)
    for _ in range(2):
        assert (await undo(box, call)).ok
        assert (root / "a.txt").read_text() == OLD
        assert (await undo(box, call, "redo")).ok
        assert (root / "a.txt").read_text() == changed(1)


async def test_every_version_can_be_brought_back(box, root):
    calls = [await edit(box, f"value_0005{n}0 ", f"value_0005{n}0_x ") for n in range(3)]
    seen = {}
    text = OLD
    for number, call in enumerate(calls):
        text = text.replace(f"value_0005{number}0 ", f"value_0005{number}0_x ")
        (touch,) = box.workspace.journal.entries.selected("call", call.id)
        seen[touch.id] = text
    for number, expected in {**seen, 0: OLD}.items():
        result = await box.call("undo", {"scope": "path", "name": "a.txt", "version": number})
        assert result.ok, result.text
        assert (root / "a.txt").read_text() == expected


async def test_a_version_can_be_brought_back_again_after_a_person_wrote_over_it(box, root):
    await edit(box, "value_000500 ", "value_000500_1 ")
    for _ in range(2):
        restored = await box.call("undo", {"scope": "path", "name": "a.txt", "version": 0})
        assert restored.ok, restored.text
        assert (root / "a.txt").read_text() == OLD
        (root / "a.txt").write_text("mine\n")


async def test_several_edits_are_undone_at_once_and_one_by_one(box, root):
    calls = [await edit(box, f"value_0005{n}0 ", f"value_0005{n}0_x ", session="s") for n in range(3)]
    newest = (root / "a.txt").read_text()
    assert (await box.call("undo", {"scope": "session", "name": "s"})).ok
    assert (root / "a.txt").read_text() == OLD
    assert (await box.call("undo", {"scope": "session", "name": "s", "action": "redo"})).ok
    assert (root / "a.txt").read_text() == newest
    for call in reversed(calls):
        assert (await undo(box, call)).ok
    assert (root / "a.txt").read_text() == OLD


def save_again(path, how):
    """The same bytes, written by someone else."""
    data = path.read_bytes()
    if how == "replaced":
        path.with_suffix(".new").write_bytes(data)
        path.with_suffix(".new").replace(path)
    else:
        path.write_bytes(data)


@pytest.mark.parametrize("how", ["replaced", "written in place"])
async def test_a_file_that_was_saved_again_with_the_same_bytes_is_undone_and_redone(box, root, how):
    call = await edit(box, "value_000500 ", "value_000500_1 ")
    for _ in range(2):
        save_again(root / "a.txt", how)
        assert (await undo(box, call)).details.restored == ["a.txt"]
        assert (root / "a.txt").read_text() == OLD
        save_again(root / "a.txt", how)
        assert (await undo(box, call, "redo")).details.restored == ["a.txt"]
        assert (root / "a.txt").read_text() == changed(1)


async def test_edits_between_which_it_was_saved_again_are_undone_together(box, root):
    await edit(box, "value_000500 ", "value_000500_1 ", session="s")
    save_again(root / "a.txt", "replaced")
    await edit(box, "value_000501 ", "value_000501_1 ", session="s")
    assert (await box.call("undo", {"scope": "session", "name": "s"})).details.restored == ["a.txt"]
    assert (root / "a.txt").read_text() == OLD


async def test_another_process_knows_what_was_only_saved_again(box, root, tmp_path):
    call = await edit(box, "value_000500 ", "value_000500_1 ")
    box.workspace.journal.close()
    save_again(root / "a.txt", "replaced")
    later = Toolbox(CODING, workspace=local_workspace(root, state=tmp_path / "state"))
    assert (await undo(later, call)).details.restored == ["a.txt"]
    assert (root / "a.txt").read_text() == OLD


async def test_a_new_file_that_was_saved_again_is_removed_and_one_that_was_changed_is_kept(box, root):
    calls = {}
    for name in ("b.txt", "c.txt"):
        calls[name] = Call(tool="write", args={"path": name, "content": OLD, "mode": "create"})
        assert (await box.call(calls[name])).ok
        save_again(root / name, "written in place")
    (root / "c.txt").write_text(changed(1)[: len(OLD)])
    assert (await undo(box, calls["b.txt"])).details.restored == ["b.txt"]
    assert not (root / "b.txt").exists()
    assert (await undo(box, calls["c.txt"])).details.restored == []
    assert (root / "c.txt").exists()


async def test_what_can_not_be_merged_is_brought_back_as_the_refusal_says(box, root):
    call = await edit(box, "value_000500 ", "value_000500_1 ")
    theirs = changed(1) + "more\n"
    (root / "a.txt").write_text(theirs)
    refused = await undo(box, call)
    assert "action=versions" in refused.text
    listed = await box.call("undo", {"scope": "path", "name": "a.txt", "action": "versions"})
    assert "0: before the first recorded change" in listed.text
    restored = Call(tool="undo", args={"scope": "path", "name": "a.txt", "version": 0})
    assert (await box.call(restored)).ok
    assert (root / "a.txt").read_text() == OLD
    assert (await undo(box, restored)).ok
    assert (root / "a.txt").read_text() == theirs


@pytest.mark.parametrize("same_size", [True, False])
async def test_what_a_person_changed_since_is_kept(box, root, same_size):
    call = await edit(box, "value_000500 ", "value_000500_1 ")
    theirs = changed(2) if same_size else changed(1) + "more\n"
    with (root / "a.txt").open("r+") as file:
        file.write(theirs)
    result = await undo(box, call)
    assert [conflict.path for conflict in result.details.conflicts] == ["a.txt"]
    assert "too large to merge" in result.text
    assert (root / "a.txt").read_text() == theirs


async def test_a_file_that_is_replaced_deleted_or_made_is_undone_too(box, root):
    new = OLD.replace("value", "worth")
    steps = [
        ("write", {"path": "a.txt", "content": new, "mode": "overwrite"}),
        ("write", {"path": "b.txt", "content": new, "mode": "create"}),
        ("patch", {"patch": "*** Begin Patch\n*** Delete File: a.txt\n*** End Patch"}),
    ]
    await box.call("read", {"path": "a.txt"})
    for tool, args in steps:
        before = {path.name: path.read_text() for path in root.iterdir()}
        call = Call(tool=tool, args=args)
        result = await box.call(call)
        assert result.ok, result.text
        after = {path.name: path.read_text() for path in root.iterdir()}
        assert after != before
        assert (await undo(box, call)).ok
        assert {path.name: path.read_text() for path in root.iterdir()} == before
        assert (await undo(box, call, "redo")).ok
        assert {path.name: path.read_text() for path in root.iterdir()} == after


async def test_a_file_with_another_name_is_copied_so_that_writing_there_changes_nothing_here(
    box, root, tmp_path
):
    os.link(root / "a.txt", root / "b.txt")
    call = await edit(box, "value_000500 ", "value_000500_1 ")
    assert kept(tmp_path) == []
    assert (root / "b.txt").read_text() == OLD
    (root / "b.txt").write_text("theirs")
    assert (await undo(box, call)).ok
    assert (root / "a.txt").read_text() == OLD


async def test_a_mode_that_was_changed_since_outlives_the_undo(box, root):
    (root / "a.txt").chmod(0o640)
    call = await edit(box, "value_000500 ", "value_000500_1 ")
    assert (root / "a.txt").stat().st_mode & 0o777 == 0o640
    (root / "a.txt").chmod(0o755)
    assert (await undo(box, call)).ok
    assert (root / "a.txt").stat().st_mode & 0o777 == 0o755
    assert (root / "a.txt").read_text() == OLD


async def test_what_is_kept_is_not_brought_back_when_it_was_written_to(box, root, tmp_path):
    call = await edit(box, "value_000500 ", "value_000500_1 ")
    (thing,) = (tmp_path / "state" / "vault" / "large").iterdir()
    thing.write_text(OLD + "tampered")
    result = await undo(box, call)
    assert result.fault.code == "storage"
    assert (root / "a.txt").read_text() == changed(1)
    assert thing.read_text() == OLD + "tampered"


async def test_a_write_between_read_and_landing_is_noticed(box, root):
    files = box.workspace.files
    before = files.read("a.txt")
    steps = files.plan([Change.of("a.txt", before=before, after=changed(1).encode())])
    facts = (root / "a.txt").stat()
    theirs = changed(7)[: len(OLD)]
    (root / "a.txt").write_text(theirs)
    # Size and time are as they were: only the bytes tell.
    os.utime(root / "a.txt", ns=(facts.st_atime_ns, facts.st_mtime_ns))
    with pytest.raises(Stale):
        files.perform(steps)
    assert (root / "a.txt").read_text() == theirs


async def test_forgetting_a_path_removes_what_the_vault_has_of_it(box, tmp_path):
    await edit(box, "value_000500 ", "value_000500_1 ")
    box.workspace.journal.retention.forget("a.txt")
    assert kept(tmp_path) == []


async def test_the_limits_reach_into_the_vault(box, tmp_path):
    for number in range(4):
        await edit(box, f"value_0005{number}0 ", f"value_0005{number}0_x ")
    assert len(kept(tmp_path)) == 4
    box.workspace.journal.retention.prune(RetentionLimits(max_bytes=2 * len(OLD) + 100))
    assert len(kept(tmp_path)) == 2
    box.workspace.journal.retention.prune(RetentionLimits(max_age=-1))
    assert kept(tmp_path) == []


async def test_a_vault_on_another_file_system_keeps_bytes_as_with_small_files(root, tmp_path):
    if not os.path.isdir("/dev/shm") or os.stat("/dev/shm").st_dev == root.stat().st_dev:
        pytest.skip("machine: no second file system")
    far = f"/dev/shm/handtools-large-{os.getpid()}"
    files = LocalFiles(root, backups=FolderBackups(far))
    box = Toolbox(CODING, workspace=local_workspace(root, files=files, state=tmp_path / "state"))
    call = await edit(box, "value_000500 ", "value_000500_1 ")
    assert os.listdir(far) == []
    assert (await undo(box, call)).ok
    assert (root / "a.txt").read_text() == OLD
    os.rmdir(far)


async def test_text_that_an_earlier_edit_replaced_is_traced_to_it(box):
    await edit(box, "value_000500 ", "value_000500_1 ")
    result = await box.call(
        "edit", {"path": "a.txt", "old_string": "value_000500 = 500\nvalue_000501 = 501", "new_string": "x"}
    )
    assert "until edit replaced it" in result.text


async def test_a_small_file_that_an_agent_saw_is_not_merged_with_when_it_has_grown_large(box, root):
    (root / "grown.txt").write_text("alpha\nbeta\n")
    await box.call(Call(tool="read", args={"path": "grown.txt"}, session="s", agent="a"))
    (root / "grown.txt").write_text("alpha\ngamma\n" + OLD)
    facts = {"session": "s", "agent": "a"}
    await edit(box, "value_000500 ", "v ", path="grown.txt", **facts)
    args = {"path": "grown.txt", "old_string": "beta", "new_string": "delta"}
    result = await box.call(Call(tool="edit", args=args, **facts))
    assert not result.ok
    assert "gamma" in (root / "grown.txt").read_text()


async def test_a_hard_link_that_is_broken_is_told(box, root):
    (root / "small.txt").write_text("one\n")
    os.link(root / "small.txt", root / "same.txt")
    result = await box.call("edit", {"path": "small.txt", "old_string": "one", "new_string": "two"})
    assert "small.txt: 1 other hard link to it still has the old content." in result.text
    result = await box.call("edit", {"path": "small.txt", "old_string": "two", "new_string": "three"})
    assert "hard link" not in result.text


async def test_a_file_beyond_what_can_be_edited_is_not_brought_into_memory(box, root):
    (root / "grown.log").write_text("first\n" * 100_000)
    os.truncate(root / "grown.log", 400_000_000)
    tracemalloc.start()
    try:
        result = await box.call("edit", {"path": "grown.log", "old_string": "first", "new_string": "x"})
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "400,000,000 bytes; the limit is 50,000,000" in result.text
    assert peak < 150_000_000
