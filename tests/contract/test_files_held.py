"""The contract of HostFiles: things that are moved in and out, and never read."""

import os

import pytest

from handtools.core.changes import BackupRef, Change, Node, change_apply_order, sha256_hex
from handtools.core.errors import Stale
from handtools.host.files.backups import FolderBackups
from handtools.host.files.editor_files import EditorFiles
from handtools.host.files.local_files import LocalFiles
from handtools.testing.memory_files_and_search import MemoryFiles
from tests.contract.conftest import OneOfSeveral, SavingEditor

TREE = {
    "a": b"old",
    "d/x": b"x",
    "d/sub/y": Node("file", b"y", 0o755),
    "d/l": Node("link", b"x"),
    "d/none": Node("folder", mode=0o755),
    "beside": b"beside",
}


@pytest.fixture
def files(make_files, tmp_path):
    made = make_files(TREE)
    if isinstance(made, MemoryFiles):
        return made
    if isinstance(made, EditorFiles):
        root = tmp_path / "workspace"
        return EditorFiles(LocalFiles(root, backups=FolderBackups(tmp_path / "vault")), SavingEditor(root))
    if isinstance(made, OneOfSeveral):
        return made.with_backups(FolderBackups(tmp_path / "vault"))
    return LocalFiles(made.root, backups=FolderBackups(tmp_path / "vault"), kernel=made._root._kernel)


def at(files, path, ref):
    """What is at a path, to be moved to a place in the vault."""
    return files.node(path, like_node=Node("folder", held=BackupRef(ref, "", 0)))


def everything(files, path="."):
    found = {}
    for facts in files.names(path):
        found[facts.path] = files.node(facts.path)
        if facts.kind == "folder":
            found |= everything(files, facts.path)
    return found


def perform(files, *changes):
    files.perform(files.plan(sorted(changes, key=change_apply_order)))


@pytest.mark.parametrize("path", ["a", "d", "d/l", "d/sub", "d/sub/y"])
def test_a_thing_goes_to_the_vault_and_comes_back_as_it_was(files, path):
    before = everything(files)
    change = Change(path, at(files, path, "0123456789abcdef/before/thing"), None)
    perform(files, change)
    assert files.node(path) is None
    assert files.backups.has("0123456789abcdef/before/thing")
    perform(files, change.inverse)
    assert everything(files) == before
    assert not files.backups.has("0123456789abcdef/before/thing")


@pytest.mark.parametrize("path", ["a", "d"])
def test_two_things_change_places_and_change_back(files, path):
    before = everything(files)
    perform(files, Change("beside", at(files, "beside", "i/upper/b"), None))
    new = Node("file", b"", None, BackupRef("i/upper/b", sha256_hex(b"beside"), 6))
    change = Change(path, at(files, path, "i/before/p"), new)
    perform(files, change)
    assert files.read(path) == b"beside"
    perform(files, change.inverse)
    perform(files, Change("beside", None, new))
    assert everything(files) == before


def test_a_held_thing_and_plain_bytes_can_replace_each_other(files):
    change = Change("a", at(files, "a", "i/before/a"), Node("file", b"new"))
    perform(files, change)
    assert files.read("a") == b"new"
    perform(files, change.inverse)
    assert files.read("a") == b"old"


@pytest.mark.parametrize("path", ["d", "a"])
def test_what_someone_else_changed_is_not_moved(files, path):
    expected = at(files, path, "i/before/p")
    inner = "d/sub/y" if path == "d" else "a"
    perform(files, Change.of(inner, before=files.read(inner), after=b"theirs"))
    now = everything(files)
    with pytest.raises(Stale):
        perform(files, Change(path, expected, None))
    assert everything(files) == now


def test_what_someone_put_into_a_folder_keeps_it_from_being_moved(files):
    expected = at(files, "d", "i/before/d")
    perform(files, Change.of("d/theirs", before=None, after=b"theirs"))
    with pytest.raises(Stale):
        perform(files, Change("d", expected, None))
    assert files.read("d/theirs") == b"theirs"


def test_a_failure_leaves_all_as_it_was_in_the_workspace_and_in_the_vault(files):
    before = everything(files)
    perform(files, Change("beside", at(files, "beside", "i/upper/b"), None))
    come = Node("file", b"", None, BackupRef("i/upper/b", sha256_hex(b"beside"), 6))
    wrong = Node("file", b"not what is there")
    with pytest.raises(Stale):
        perform(
            files,
            Change("d", at(files, "d", "i/before/d"), None),
            Change("beside", None, come),
            Change("a", wrong, Node("file", b"new")),
        )
    assert files.backups.has("i/upper/b")
    assert not files.backups.has("i/before/d")
    perform(files, Change("beside", None, come))
    assert everything(files) == before


def test_names_of_the_same_file_stay_so(tmp_path):
    root = tmp_path / "w"
    root.mkdir()
    (root / "a").write_text("x")
    os.link(root / "a", root / "b")
    files = LocalFiles(root, backups=FolderBackups(tmp_path / "vault"))
    changes = [Change(name, at(files, name, f"i/before/{name}"), None) for name in "ab"]
    perform(files, *changes)
    perform(files, *(change.inverse for change in changes))
    assert (root / "a").stat().st_ino == (root / "b").stat().st_ino


def test_a_vault_on_another_file_system_copies_all_there_is_to_a_thing(tmp_path):
    elsewhere = "/dev/shm"
    if not os.path.isdir(elsewhere) or os.stat(elsewhere).st_dev == tmp_path.stat().st_dev:
        pytest.skip("machine: no second file system")
    root, far = tmp_path / "w", f"{elsewhere}/handtools-test-{os.getpid()}"
    (root / "d").mkdir(parents=True)
    with (root / "d" / "holes").open("wb") as file:
        file.seek(1 << 20)
        file.write(b"end")
    os.link(root / "d" / "holes", root / "d" / "same")
    (root / "d" / "l").symlink_to("holes")
    os.utime(root / "d" / "holes", ns=(1, 2))
    (root / "d" / "holes").chmod(0o640)
    files = LocalFiles(root, backups=FolderBackups(far))
    try:
        before = os.stat(root / "d" / "holes")
        change = Change("d", at(files, "d", "i/before/d"), None)
        perform(files, change)
        assert not (root / "d").exists()
        perform(files, change.inverse)
        now = os.stat(root / "d" / "holes")
        assert (now.st_mode, now.st_mtime_ns, now.st_size) == (before.st_mode, 2, before.st_size)
        assert now.st_blocks * 512 < now.st_size
        assert now.st_ino == (root / "d" / "same").stat().st_ino
        assert os.readlink(root / "d" / "l") == "holes"
        assert not os.path.exists(f"{far}/i/before/d")
    finally:
        FolderBackups(far).drop("i")
        os.rmdir(far)
