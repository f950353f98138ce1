"""After a crash: what is removed, what goes back, what is kept in sight."""

import os
import subprocess
import sys
import textwrap
from dataclasses import replace

import pytest

from handtools.core.changes import Change, Node
from handtools.core.files import PlannedWrite
from handtools.host.files.backups import FolderBackups
from handtools.host.files.local_files import LocalFiles
from handtools.host.files.temporary_file import unfinished_name

TEMPORARY = ".handtools-" + "0" * 24
EDIT = Change.of("a", before=b"old", after=b"brand new")
CREATE = Change.of("a", before=None, after=b"brand new")
DELETE = Change.of("a", before=b"old", after=None)
RETARGET = Change("a", Node("link", b"old"), Node("link", b"new"))


def lay(path, content):
    if isinstance(content, bytes):
        path.write_bytes(content)
    elif content:
        path.symlink_to(content)


def swept(tmp_path, change, *, target, temporary):
    lay(tmp_path / "a", target)
    lay(tmp_path / TEMPORARY, temporary)
    LocalFiles(tmp_path).sweep(PlannedWrite(change, TEMPORARY))
    return {
        path.name: os.readlink(path) if path.is_symlink() else path.read_bytes()
        for path in tmp_path.iterdir()
    }


@pytest.mark.parametrize(
    ("change", "target", "temporary"),
    [
        (EDIT, b"old", b""),
        (EDIT, b"old", b"brand"),
        (EDIT, b"old", b"brand new"),
        (EDIT, b"brand new", b"old"),
        (EDIT, b"theirs", b"old"),
        (EDIT, None, b"old"),
        (CREATE, None, b"brand"),
        (CREATE, b"theirs", b"brand new"),
        (DELETE, None, b"old"),
        (DELETE, b"theirs", b"old"),
        (RETARGET, "old", "new"),
        (RETARGET, "new", "old"),
    ],
)
def test_what_is_on_record_is_removed(tmp_path, change, target, temporary):
    expected = {} if target is None else {"a": target}
    assert swept(tmp_path, change, target=target, temporary=temporary) == expected


@pytest.mark.parametrize(
    ("change", "target", "temporary"),
    [
        (EDIT, b"brand new", b"theirs"),
        (EDIT, b"brand new", b"old and more"),
        (EDIT, b"brand new", "a link of theirs"),
        (DELETE, None, b"theirs"),
        (RETARGET, "new", "theirs"),
        (RETARGET, "new", b"a file of theirs"),
    ],
)
def test_what_another_writer_lost_to_the_swap_gets_its_name_back(tmp_path, change, target, temporary):
    assert swept(tmp_path, change, target=target, temporary=temporary) == {"a": temporary}


@pytest.mark.parametrize(
    ("change", "target", "temporary"),
    [
        (EDIT, b"theirs too", b"theirs"),
        (EDIT, b"old", b"theirs"),
        (EDIT, b"brand new and more", b"theirs"),
        (DELETE, b"theirs too", b"theirs"),
        (CREATE, None, b"theirs"),
        (RETARGET, "theirs too", "theirs"),
    ],
)
def test_what_has_no_name_to_go_back_to_is_kept_in_sight(tmp_path, change, target, temporary):
    found = swept(tmp_path, change, target=target, temporary=temporary)
    assert found.pop("a", None) == target
    ((name, content),) = found.items()
    assert name.startswith("a.handtools-recovered-")
    assert content == temporary


def test_the_kept_name_fits_the_file_system(tmp_path):
    name = "ä" * 127
    (tmp_path / name).write_bytes(b"theirs too")
    (tmp_path / TEMPORARY).write_bytes(b"theirs")
    step = PlannedWrite(Change.of(name, before=b"old", after=b"new"), TEMPORARY)
    LocalFiles(tmp_path).sweep(step)
    assert sorted(path.read_bytes() for path in tmp_path.iterdir()) == [b"theirs", b"theirs too"]


def test_an_empty_folder_of_ours_is_removed_and_a_filled_one_kept(tmp_path):
    step = PlannedWrite(Change("a", Node("file", b"old"), Node("folder")), TEMPORARY)
    (tmp_path / TEMPORARY).mkdir()
    LocalFiles(tmp_path).sweep(step)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / TEMPORARY).mkdir()
    (tmp_path / TEMPORARY / "x").write_bytes(b"theirs")
    LocalFiles(tmp_path).sweep(step)
    (kept,) = tmp_path.iterdir()
    assert kept.name.startswith("a.handtools-recovered-")


def test_a_step_whose_folder_is_gone_has_nothing_to_sweep(tmp_path):
    LocalFiles(tmp_path).sweep(PlannedWrite(Change.of("gone/a", before=None, after=b"x"), TEMPORARY))
    assert list(tmp_path.iterdir()) == []


CRASHES = textwrap.dedent("""
    import os, shutil, sys
    from handtools.core.changes import Change, Node
    from handtools.host.files import syscalls
    from handtools.host.files.folder_handle import FolderHandle
    from handtools.host.files.local_files import LocalFiles

    root = sys.argv[1]
    if "no exchange" in sys.argv:
        syscalls._load_renameat2 = lambda: None
    CHANGES = [
        Change("d", None, Node("folder")),
        Change.of("d/new", before=None, after=b"created"),
        Change.of("edited", before=b"old", after=b"new bytes"),
        Change.of("deleted", before=b"old", after=None),
        Change("link", Node("link", b"edited"), Node("link", b"deleted")),
        Change.of("gone/x", before=b"old", after=None),
        Change("gone", Node("folder"), None),
    ]
    CALLS = [(FolderHandle, name) for name in vars(FolderHandle) if name in {
        "create_file", "create_link", "create_folder", "unlink", "remove_folder", "exchange", "move_new", "sync"
    }] + [(os, "write"), (os, "fsync"), (os, "fchmod"), (os, "close")]
    CALLS += [(os, "link"), (os, "replace"), (os, "rename")]

    def lay_out():
        shutil.rmtree(root, ignore_errors=True)
        os.makedirs(root + "/gone")
        for name in ("edited", "deleted", "gone/x"):
            with open(f"{root}/{name}", "wb") as file:
                file.write(b"old")
        os.symlink("edited", root + "/link")

    def die_at(point, *, after):
        count = 0
        def dying(real):
            def call(*args, **named):
                nonlocal count
                count += 1
                mine = count == point
                if mine and not after:
                    os._exit(9)
                result = real(*args, **named)
                if mine and after:
                    os._exit(9)
                return result
            return call
        for owner, name in CALLS:
            setattr(owner, name, dying(getattr(owner, name)))

    def is_one_of_two(files, change):
        now = files.node(change.path)
        return any(now is None if node is None else node.same(now) for node in (change.before, change.after))

    point, outcomes = 0, set()
    while True:
        point += 1
        for after in (False, True):
            lay_out()
            files = LocalFiles(root)
            steps = files.plan(CHANGES)
            child = os.fork()
            if child == 0:
                die_at(point, after=after)
                files.perform(steps)
                os._exit(0)
            code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            assert code in (0, 9), code
            torn = [s.change.path for s in steps if not is_one_of_two(files, s.change)]
            assert not torn, (point, after, torn)
            for step in steps:
                files.sweep(step)
            names = [name for _, _, names in os.walk(root) for name in names]
            assert not [name for name in names if "handtools" in name], (point, after, names)
            landed = [s for s in steps if s.change.after and s.change.after.same(files.node(s.change.path))
                      or s.change.after is None and files.node(s.change.path) is None]
            files.perform(files.plan([s.change.inverse for s in reversed(landed)]))
            assert all(s.change.before.same(files.node(s.change.path)) if s.change.before
                       else files.node(s.change.path) is None for s in steps), (point, after)
            outcomes.add(len(landed))
        if code == 0:
            break
    print(point, sorted(outcomes))
""")


@pytest.mark.linux("fork")
@pytest.mark.parametrize("kernel", ["exchange", "no exchange"])
def test_a_crash_at_any_call_leaves_old_or_new_and_can_be_taken_back(tmp_path, kernel):
    command = [sys.executable, "-c", CRASHES, str(tmp_path / "root"), kernel]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    points, outcomes = done.stdout.split(maxsplit=1)
    assert int(points) > 30
    assert "0" in outcomes
    assert "7" in outcomes


def large(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    (root / "a").write_bytes(b"old")
    return root, LocalFiles(root, backups=FolderBackups(tmp_path / "vault"), large_bytes=2)


def recorded(step):
    """The step as the record has it: by marks, without the bytes."""
    sides = [
        node and Node(node.kind, b"", node.mode, node.held and replace(node.held, fresh=False))
        for node in (step.change.before, step.change.after)
    ]
    return PlannedWrite(Change(step.change.path, *sides), step.temporary)


def written(path, step):
    path.write_bytes(step.change.after.data)
    time = int(step.change.after.held.mark.rpartition("-")[2])
    os.utime(path, ns=(time, time))


@pytest.mark.parametrize("share", [0, 5, 9])
def test_a_large_file_that_was_being_written_is_removed(tmp_path, share):
    root, files = large(tmp_path)
    (step,) = files.plan([EDIT])
    (root / unfinished_name(step.temporary)).write_bytes(b"brand new"[:share])
    assert files.sweep(recorded(step)) is None
    assert {path.name: path.read_bytes() for path in root.iterdir()} == {"a": b"old"}


@pytest.mark.parametrize("theirs", [b"their", b"their own"])
def test_what_another_program_wrote_in_place_of_a_large_file_is_kept_beside_it(tmp_path, theirs):
    root, files = large(tmp_path)
    (step,) = files.plan([EDIT])
    (root / step.temporary).write_bytes(theirs)
    note = files.sweep(recorded(step))
    kept = next(path for path in root.iterdir() if path.name != "a")
    assert (kept.read_bytes(), (root / "a").read_bytes()) == (theirs, b"old")
    assert kept.name in note


def test_a_large_file_that_had_yet_to_land_is_out_of_the_way(tmp_path):
    root, files = large(tmp_path)
    (step,) = files.plan([EDIT])
    written(root / step.temporary, step)
    assert files.sweep(recorded(step)) is None
    assert {path.name: path.read_bytes() for path in root.iterdir()} == {"a": b"old"}


def test_a_large_file_that_was_displaced_is_kept(tmp_path):
    root, files = large(tmp_path)
    (step,) = files.plan([EDIT])
    (root / "a").rename(root / step.temporary)
    written(root / "a", step)
    assert files.sweep(recorded(step)) is None
    assert {path.name: path.read_bytes() for path in root.iterdir()} == {"a": b"brand new"}
    assert files.backups.read(step.change.before.held.ref, 10) == b"old"


def test_what_another_program_put_in_the_place_of_a_large_file_gets_its_name_back(tmp_path):
    root, files = large(tmp_path)
    (step,) = files.plan([EDIT])
    (root / step.temporary).write_bytes(b"their")
    written(root / "a", step)
    files.sweep(recorded(step))
    assert (root / "a").read_bytes() == b"their"
