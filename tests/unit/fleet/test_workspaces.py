import errno
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import pytest

from handtools.core.errors import Busy, HostError, NotFound, StorageFault, TooLarge, UsageError
from handtools.fleet.fork_merge import merge_fork, promote_fork
from handtools.fleet.templates import digest_of_folder
from handtools.fleet.workspaces import MAX_LAYERS, WorkspaceQuota, WorkspaceStore
from handtools.host.sandbox.overlay.overlay_mount import (
    make_mount_point,
    mount_overlay,
    overlay_mount_problem,
    remove_mount_point,
    unmount,
)
from handtools.toolbox import CODING, Toolbox, local_workspace

TEXT = "".join(f"line {number}\n" for number in range(20))


@pytest.fixture(params=["overlay", "copy"])
def store(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[WorkspaceStore]:
    kind: Literal["overlay", "copy"] = request.param
    if kind == "overlay" and (problem := overlay_mount_problem(tmp_path)):
        pytest.skip(f"machine: {problem}")
    made = WorkspaceStore(tmp_path / "fleet", kind=kind, quota=WorkspaceQuota(bytes=1 << 20, files=50))
    yield made
    made.close_all()


@pytest.fixture
def template(tmp_path: Path, store: WorkspaceStore) -> str:
    folder = tmp_path / "source"
    (folder / "pkg" / "deep").mkdir(parents=True)
    (folder / "pkg" / "deep" / "b.txt").write_text("b\n")
    (folder / "a.txt").write_text(TEXT)
    (folder / "gone.txt").write_text("gone\n")
    return store.templates.add_folder(folder).digest


def toolbox(store: WorkspaceStore, name: str) -> Toolbox:
    return Toolbox(CODING, workspace=local_workspace(store.open(name), state=store.state_folder(name)))


def test_a_workspace_has_the_template_s_files_and_leaves_the_template_alone(
    store: WorkspaceStore, template: str
) -> None:
    made = store.create(template)
    root = store.files_folder(made.id)
    (root / "a.txt").write_text("mine\n")
    shutil.rmtree(root / "pkg")
    tree = store.templates.get_template(template).tree
    assert digest_of_folder(tree) == template
    assert (store.files_folder(store.create(template).id) / "a.txt").read_text() == TEXT


def test_a_closed_workspace_opens_again_as_it_was(store: WorkspaceStore, template: str) -> None:
    name = store.create(template).id
    (store.files_folder(name) / "new.txt").write_text("new\n")
    before = digest_of_folder(store.files_folder(name))
    store.close(name)
    assert digest_of_folder(store.open(name)) == before


def test_a_workspace_that_is_open_is_not_opened_by_another_store(
    store: WorkspaceStore, template: str
) -> None:
    name = store.create(template).id
    with pytest.raises(Busy):
        WorkspaceStore(store.folder).open(name)
    store.close(name)
    other = WorkspaceStore(store.folder)
    other.open(name)
    other.close_all()


def test_forks_begin_as_their_parent_is_and_go_on_apart(store: WorkspaceStore, template: str) -> None:
    name = store.create(template).id
    (store.files_folder(name) / "gone.txt").unlink()
    (store.files_folder(name) / "new.txt").write_text("before the fork\n")
    one, two = (record.id for record in store.fork(name, 2))
    (store.files_folder(one) / "new.txt").write_text("one\n")
    (store.files_folder(name) / "new.txt").write_text("parent\n")
    texts = [(store.files_folder(each) / "new.txt").read_text() for each in (name, one, two)]
    assert texts == ["parent\n", "one\n", "before the fork\n"]
    assert not any((store.files_folder(each) / "gone.txt").exists() for each in (name, one, two))


@pytest.mark.parametrize("store", ["overlay"], indirect=True)
def test_a_workspace_whose_fork_the_disk_refused_midway_can_be_forked_later(
    store: WorkspaceStore, template: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = store.create(template).id
    (store.files_folder(name) / "new.txt").write_text("mine\n")
    look, looks = os.lstat, []

    def refused(path: str | Path) -> os.stat_result:
        if os.fspath(path).endswith("root/.."):
            looks.append(path)
            if len(looks) > 1:  # it was there when the fork began
                raise OSError(errno.EIO, "Input/output error")
        return look(path)

    with monkeypatch.context() as disk:
        disk.setattr(os, "lstat", refused)
        with pytest.raises(StorageFault):
            store.fork(name)
    assert (store.files_folder(name) / "new.txt").read_text() == "mine\n"
    [fork] = store.fork(name)
    assert [(store.files_folder(each) / "new.txt").read_text() for each in (name, fork.id)] == [
        "mine\n",
        "mine\n",
    ]


@pytest.mark.linux("overlay", "folder handles")
def test_a_chain_of_forks_longer_than_the_kernel_s_limit_keeps_every_file(
    store: WorkspaceStore, template: str
) -> None:
    name = store.create(template).id
    for number in range(2 * MAX_LAYERS):
        root = store.files_folder(name)
        (root / f"{number}.txt").write_text(str(number))
        if number % 5 == 4:
            shutil.rmtree(root / "pkg", ignore_errors=True)
            (root / "pkg").mkdir()
            (root / "pkg" / "again.txt").write_text(str(number))
        name = store.fork(name)[0].id
    assert len(store.get_record(name).layers) < MAX_LAYERS
    assert sorted(os.listdir(store.files_folder(name) / "pkg")) == ["again.txt"]
    assert all((store.files_folder(name) / f"{n}.txt").read_text() == str(n) for n in range(2 * MAX_LAYERS))


@pytest.mark.linux("overlay", "folder handles")
def test_diff_lists_what_is_different_from_the_beginning(store: WorkspaceStore, template: str) -> None:
    name = store.create(template).id
    root = store.files_folder(name)
    (root / "a.txt").write_text("changed\n")
    (root / "gone.txt").unlink()
    (root / "made").mkdir()
    (root / "made" / "c.txt").write_text("c\n")
    (root / "pkg" / "deep" / "b.txt").write_text("b\n")  # written again as it was
    found = {(each.path, each.action) for each in store.diff(name)}
    assert found == {
        ("a.txt", "changed"), ("gone.txt", "removed"), ("made", "added"), ("made/c.txt", "added")
    }  # fmt: skip
    fork = store.fork(name)[0].id
    assert store.diff(fork) == []
    shutil.rmtree(store.files_folder(fork) / "pkg")
    (store.files_folder(fork) / "pkg").write_text("a file now\n")
    assert {(each.path, each.action) for each in store.diff(fork)} == {
        ("pkg", "changed"), ("pkg/deep", "removed"), ("pkg/deep/b.txt", "removed")
    }  # fmt: skip


async def test_merging_forks_puts_changes_of_different_lines_together_and_names_conflicts(
    store: WorkspaceStore, template: str
) -> None:
    name = store.create(template).id
    one, two = (record.id for record in store.fork(name, 2))
    (store.files_folder(one) / "a.txt").write_text(TEXT.replace("line 1\n", "line one\n"))
    (store.files_folder(one) / "gone.txt").unlink()
    (store.files_folder(two) / "a.txt").write_text(TEXT.replace("line 18\n", "line eighteen\n"))
    (store.files_folder(two) / "gone.txt").write_text("still here\n")
    async with toolbox(store, name) as parent:
        first, second = await merge_fork(store, one, parent), await merge_fork(store, two, parent)
        assert (first.conflicts, second.conflicts) == ((), ("gone.txt",))
        merged = (store.files_folder(name) / "a.txt").read_text()
        assert ("line one\n" in merged, "line eighteen\n" in merged) == (True, True)
        assert not (store.files_folder(name) / "gone.txt").exists()
        # It is in the record as any other change, and is taken back like one.
        await parent.call("undo", {"scope": "call", "name": second.call_id})
        assert "line eighteen\n" not in (store.files_folder(name) / "a.txt").read_text()


async def test_a_promoted_fork_is_what_the_parent_becomes(store: WorkspaceStore, template: str) -> None:
    name = store.create(template).id
    one, two = (record.id for record in store.fork(name, 2))
    root = store.files_folder(one)
    shutil.rmtree(root / "pkg")
    (root / "made" / "inner").mkdir(parents=True)
    (root / "made" / "inner" / "x.bin").write_bytes(bytes(range(256)))
    (root / "made" / "link").symlink_to("inner")
    (root / "a.txt").chmod(0o755)
    (store.files_folder(two) / "a.txt").write_text("two\n")
    async with toolbox(store, name) as parent:
        await promote_fork(store, one, parent)
        assert digest_of_folder(store.files_folder(name)) == digest_of_folder(root)
        with pytest.raises(Exception, match="has changed since the fork"):
            await promote_fork(store, two, parent)


def test_a_workspace_over_its_quota_is_named(store: WorkspaceStore, template: str) -> None:
    name = store.create(template).id
    store.check_quota(name)
    (store.files_folder(name) / "large.bin").write_bytes(os.urandom(2 << 20))
    with pytest.raises(TooLarge, match="2 MiB"):
        store.check_quota(name)


def test_garbage_is_what_no_workspace_needs(store: WorkspaceStore, template: str) -> None:
    name = store.create(template).id
    (store.files_folder(name) / "new.txt").write_text("new\n")
    fork = store.fork(name)[0].id
    store.remove(name)
    assert store.collect_garbage(templates_unused_seconds=0).layers == 0
    assert (store.files_folder(fork) / "new.txt").read_text() == "new\n"
    store.remove(fork)
    found = store.collect_garbage(templates_unused_seconds=0)
    assert (found.layers, found.templates) == (1, 1)
    with pytest.raises(NotFound):
        store.create(template)


def test_an_interrupted_beginning_is_garbage_and_an_interrupted_fork_is_finished(
    store: WorkspaceStore, template: str
) -> None:
    (store.folder / "workspaces" / "half" / "root").mkdir(parents=True)
    assert store.collect_garbage().workspaces == 1
    if store.new_workspace_kind == "copy":
        return
    name = store.create(template).id
    (store.files_folder(name) / "new.txt").write_text("new\n")
    fork = store.fork(name)[0].id
    (store.files_folder(name) / "newer.txt").write_text("newer\n")
    layers = store.get_record(name).layers
    store.close(name)
    # As if the process had ended between the record and the move of the layer.
    os.rename(store.folder / "layers" / layers[-1] / "tree", store.folder / "kept")
    shutil.rmtree(store.folder / "workspaces" / name / "upper")
    os.rename(store.folder / "kept", store.folder / "workspaces" / name / "upper")
    assert (store.open(name) / "new.txt").read_text() == "new\n"
    assert (store.files_folder(fork) / "new.txt").read_text() == "new\n"


def test_two_stores_below_one_mount_point_do_not_cover_each_others_workspaces(tmp_path: Path) -> None:
    if problem := overlay_mount_problem(tmp_path):
        pytest.skip(f"machine: {problem}")
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.txt").write_text(TEXT)
    stores = [WorkspaceStore(tmp_path / "top" / name, mount_point=tmp_path / "top") for name in ("a", "b")]
    made = [each.create(each.templates.add_folder(tmp_path / "source").digest).id for each in stores]
    roots = [each.files_folder(name) for each, name in zip(stores, made, strict=True)]
    try:
        assert [(root / "a.txt").read_text() for root in roots] == [TEXT, TEXT]
        stores[0].close_all()
        assert [(root / "a.txt").exists() for root in roots] == [False, True]
    finally:
        for each in stores:
            each.close_all()
    shutil.rmtree(tmp_path / "top")


def test_a_disk_that_is_mounted_at_the_store_s_folder_stays_where_it_is(tmp_path: Path) -> None:
    if problem := overlay_mount_problem(tmp_path):
        pytest.skip(f"machine: {problem}")
    disk = tmp_path / "disk"
    for folder in (disk, tmp_path / "one", tmp_path / "two"):
        folder.mkdir()
    mount_overlay(disk, [os.fspath(tmp_path / "one"), os.fspath(tmp_path / "two")])  # any mount will do
    try:
        assert make_mount_point(disk)
        assert Path("/proc/self/mountinfo").read_text().count(f" {disk} ") == 2
        assert make_mount_point(disk)
        remove_mount_point(disk)
        remove_mount_point(disk)
        assert Path("/proc/self/mountinfo").read_text().count(f" {disk} ") == 1
    finally:
        unmount(disk)


def test_a_layer_that_is_missing_is_named(tmp_path: Path) -> None:
    if problem := overlay_mount_problem(tmp_path):
        pytest.skip(f"machine: {problem}")
    store = WorkspaceStore(tmp_path / "fleet", kind="overlay")
    (tmp_path / "source").mkdir()
    name = store.create(store.templates.add_folder(tmp_path / "source").digest).id
    for each in ("a.txt", "b.txt"):
        (store.files_folder(name) / each).write_text(TEXT)
        store.fork(name)
    store.close_all()
    gone, _ = store.get_record(name).layers
    shutil.rmtree(store.folder / "layers" / gone / "tree")
    with pytest.raises(HostError, match=f"layers/{gone}/tree"):
        store.open(name)
    assert f" {store.folder} " not in Path("/proc/self/mountinfo").read_text()


def test_a_name_that_is_a_path_is_refused(store: WorkspaceStore, template: str) -> None:
    for name in ("../x", "a/b", ".", "..", " "):
        with pytest.raises(UsageError):
            store.create(template, name=name)


@pytest.mark.linux("bubblewrap", "supervisors")
async def test_tools_work_in_a_layered_workspace_and_undo_takes_it_back(
    store: WorkspaceStore, template: str
) -> None:
    name = store.create(template).id
    async with toolbox(store, name) as box:
        before = digest_of_folder(store.files_folder(name))
        edited = await box.call(
            "edit", {"path": "a.txt", "old_string": "line 7\n", "new_string": "seven\n"}
        )
        assert edited.status == "ok"
        ran = await box.call(
            "bash", {"command": "mkdir -p out && echo hi > out/x && rm gone.txt && mv pkg moved"}
        )
        assert ran.status == "ok", ran.text
        assert (store.files_folder(name) / "moved" / "deep" / "b.txt").read_text() == "b\n"
        assert (store.files_folder(name) / "out" / "x").read_text() == "hi\n"
        await box.call("undo", {})
        await box.call("undo", {})
        assert digest_of_folder(store.files_folder(name)) == before
