"""The contract of HostFiles: changing."""

import pytest

from handtools.core.changes import Change, Node
from handtools.core.errors import InvalidInput, NotFound, OutsideWorkspace, Stale, SymlinkInPath, UsageError
from handtools.core.files import PlannedWrite

FILE = Node("file", b"old")
TREE = {
    "a.txt": b"old",
    "b.txt": b"old",
    "src/c.txt": b"old",
    "tool": Node("file", b"old", 0o755),
    "link": Node("link", b"a.txt"),
    "to_src": Node("link", b"src"),
    "out": Node("link", b".."),
    "empty": Node("folder"),
    "full/x": b"x",
    "full/sub/y": b"y",
}


@pytest.fixture
def files(make_files):
    return make_files(TREE)


def snapshot(files, path="."):
    """Everything below a path, links not followed."""
    found = {}
    for facts in files.names(path):
        found[facts.path] = files.node(facts.path)
        if facts.kind == "folder":
            found |= snapshot(files, facts.path)
    return found


def perform(files, *changes):
    files.perform(files.plan(changes))


CHANGES = {
    "write": Change.of("a.txt", before=b"old", after=b"new"),
    "write a large file": Change.of("a.txt", before=b"old", after=b"line\n" * 600_000),
    "empty a file": Change.of("a.txt", before=b"old", after=b""),
    "create": Change.of("src/new.txt", before=None, after=b"new"),
    "create with a mode": Change.of("new.sh", before=None, after=b"new", mode=0o755),
    "delete": Change.of("a.txt", before=b"old", after=None),
    "change the mode alone": Change("a.txt", FILE, Node("file", b"old", 0o600)),
    "make a link": Change("new", None, Node("link", b"src/c.txt")),
    "retarget a link": Change("link", Node("link", b"a.txt"), Node("link", b"b.txt")),
    "delete a link": Change("link", Node("link", b"a.txt"), None),
    "make a folder": Change("new", None, Node("folder")),
    "make a folder with a mode": Change("new", None, Node("folder", mode=0o700)),
    "change a folder's mode": Change("empty", Node("folder"), Node("folder", mode=0o700)),
    "remove a folder": Change("empty", Node("folder"), None),
    "file to link": Change("a.txt", FILE, Node("link", b"b.txt")),
    "link to file": Change("link", Node("link", b"a.txt"), Node("file", b"new")),
    "file to folder": Change("a.txt", FILE, Node("folder")),
    "folder to file": Change("empty", Node("folder"), Node("file", b"new")),
    "folder to link": Change("empty", Node("folder"), Node("link", b"src")),
    "a link to outside is a thing of its own": Change("out", Node("link", b".."), None),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES.keys())
def test_a_change_lands_touches_nothing_else_and_its_inverse_restores(files, change):
    before = snapshot(files)
    perform(files, change)
    landed = files.node(change.path)
    assert (landed is None) if change.after is None else change.after.same(landed)
    before_elsewhere = {path: node for path, node in before.items() if path != change.path}
    assert {path: node for path, node in snapshot(files).items() if path != change.path} == before_elsewhere
    perform(files, change.inverse)
    now = files.node(change.path)
    assert (now is None) if change.before is None else change.before.same(now)
    assert {path: node.data for path, node in snapshot(files).items()} == {
        path: node.data for path, node in before.items()
    }


def test_changes_land_together(files):
    perform(
        files,
        Change("new", None, Node("folder")),
        Change("new/deep", None, Node("folder")),
        Change.of("new/deep/x", before=None, after=b"x"),
        Change.of("a.txt", before=b"old", after=b"new"),
        Change.of("b.txt", before=b"old", after=None),
        Change("c", None, Node("link", b"new/deep/x")),
    )
    assert files.locate("c") == "new/deep/x"
    assert files.read("new/deep/x") == b"x"
    assert files.read("a.txt") == b"new"
    assert files.node("b.txt") is None


def test_a_tree_is_removed_leaves_first(files):
    perform(
        files,
        Change.of("full/x", before=b"x", after=None),
        Change.of("full/sub/y", before=b"y", after=None),
        Change("full/sub", Node("folder"), None),
        Change("full", Node("folder"), None),
    )
    assert files.node("full") is None


def test_a_file_makes_room_for_a_folder_with_files(files):
    perform(
        files,
        Change("a.txt", FILE, Node("folder")),
        Change.of("a.txt/inside", before=None, after=b"x"),
    )
    assert files.read("a.txt/inside") == b"x"


def test_a_tree_makes_room_for_a_file(files):
    perform(
        files,
        Change.of("full/x", before=b"x", after=None),
        Change.of("full/sub/y", before=b"y", after=None),
        Change("full/sub", Node("folder"), None),
        Change("full", Node("folder"), Node("file", b"flat")),
    )
    assert files.read("full") == b"flat"


STALE = {
    "other bytes": Change.of("a.txt", before=b"odd", after=b"new"),
    "other length": Change.of("a.txt", before=b"older", after=b"new"),
    "nothing there": Change.of("missing", before=b"old", after=b"new"),
    "nothing there to delete": Change.of("missing", before=b"old", after=None),
    "something there": Change.of("a.txt", before=None, after=b"new"),
    "a folder there": Change.of("empty", before=None, after=b"new"),
    "a folder instead": Change.of("empty", before=b"old", after=b"new"),
    "a link instead": Change.of("link", before=b"old", after=b"new"),
    "a dangling link there": Change.of("out", before=None, after=b"new"),
    "another target": Change("link", Node("link", b"b.txt"), None),
    "a file instead of a link": Change("a.txt", Node("link", b"old"), None),
    "another mode": Change("tool", Node("file", b"old", 0o644), Node("file", b"new")),
    "another mode to delete": Change("tool", Node("file", b"old", 0o644), None),
    "a folder exists": Change("empty", None, Node("folder")),
    "a file instead of a folder": Change("a.txt", Node("folder"), None),
    "a folder that is not empty": Change("full", Node("folder"), None),
    "a full folder in a file's place": Change("full", Node("folder"), Node("file", b"x")),
    "a folder of another mode": Change("empty", Node("folder", mode=0o711), None),
}


@pytest.mark.parametrize("change", STALE.values(), ids=STALE.keys())
def test_a_change_of_something_else_is_refused_and_takes_the_others_back(files, change):
    before = snapshot(files)
    with pytest.raises(Stale):
        perform(files, change)
    assert snapshot(files) == before
    with pytest.raises(Stale):
        perform(
            files,
            Change("made", None, Node("folder")),
            Change.of("made/inside", before=None, after=b"new"),
            Change.of("b.txt", before=b"old", after=b"new"),
            Change.of("src/c.txt", before=b"old", after=None),
            Change("to_src", Node("link", b"src"), Node("link", b"full")),
            change,
        )
    assert snapshot(files) == before


def test_an_edit_keeps_the_mode(files):
    perform(files, Change.of("tool", before=b"old", after=b"new"))
    assert files.node("tool") == Node("file", b"new", 0o755)


def test_an_edit_never_adds_a_privilege_bit(files):
    perform(files, Change.of("tool", before=b"old", after=b"new", mode=0o4755))
    perform(files, Change.of("new", before=None, after=b"new", mode=0o2755))
    assert files.node("tool").mode == 0o755
    assert files.node("new").mode == 0o755


@pytest.mark.parametrize("mode", [0o600, 0o755, 0o400])
def test_a_given_mode_is_set(files, mode):
    perform(files, Change.of("a.txt", before=b"old", after=b"new", mode=mode))
    assert files.node("a.txt").mode == mode


def test_a_file_in_a_folder_that_is_not_there_is_not_found(files):
    before = snapshot(files)
    with pytest.raises(NotFound):
        perform(
            files,
            Change.of("b.txt", before=b"old", after=b"new"),
            Change.of("nowhere/new", before=None, after=b"x"),
        )
    assert snapshot(files) == before


@pytest.mark.parametrize(
    "change",
    [
        Change.of("to_src/c.txt", before=b"old", after=b"new"),
        Change.of("to_src/new", before=None, after=b"new"),
        Change.of("to_src/c.txt", before=b"old", after=None),
        Change("to_src/new", None, Node("folder")),
        Change.of("out/new", before=None, after=b"new"),
    ],
    ids=["write", "create", "delete", "make a folder", "outside"],
)
def test_nothing_is_written_through_a_link(files, change):
    """The folder that was judged is the folder that is written to."""
    before = snapshot(files)
    with pytest.raises(SymlinkInPath):
        perform(files, change)
    assert snapshot(files) == before


@pytest.mark.parametrize("path", ["../new", "/etc/new", "out/../../new", "src/../../new"])
def test_a_change_outside_is_refused(files, path):
    with pytest.raises(OutsideWorkspace):
        perform(files, Change.of(path, before=None, after=b"new"))


@pytest.mark.parametrize(
    "temporary", ["", "x", "../x", ".handtools-", ".handtools-/../../x", ".handtools-zz"]
)
def test_a_temporary_that_was_not_planned_is_refused(files, temporary):
    step = PlannedWrite(Change.of("a.txt", before=b"old", after=b"new"), temporary)
    for use in (lambda: files.perform([step]), lambda: files.sweep(step)):
        with pytest.raises(UsageError):
            use()
    assert files.read("a.txt") == b"old"


def test_the_workspace_itself_is_not_changed(files):
    with pytest.raises((UsageError, InvalidInput)):
        perform(files, Change(".", Node("folder"), None))


def test_no_steps_are_no_change(files):
    files.perform([])


def test_planning_touches_nothing_and_names_are_never_the_same(files):
    before = snapshot(files)
    change = Change.of("a.txt", before=b"old", after=b"new")
    steps = [step for _ in range(50) for step in files.plan([change])]
    assert len({step.temporary for step in steps}) == 50
    assert snapshot(files) == before


def test_sweeping_a_step_that_never_began_or_is_done_changes_nothing(files):
    (step,) = files.plan([Change.of("a.txt", before=b"old", after=b"new")])
    before = snapshot(files)
    files.sweep(step)
    assert snapshot(files) == before
    files.perform([step])
    after = snapshot(files)
    files.sweep(step)
    assert snapshot(files) == after


def test_a_change_of_many_files_lands_or_does_not(files):
    """More files and folders than are held open at once."""
    made = [Change(f"d{n}", None, Node("folder")) for n in range(100)]
    filled = [Change.of(f"d{n}/x", before=None, after=b"1") for n in range(100)]
    perform(files, *made, *filled)
    edits = [Change.of(f"d{n}/x", before=b"1", after=b"2") for n in range(100)]
    with pytest.raises(Stale):
        perform(files, *edits, Change.of("a.txt", before=b"odd", after=b""))
    assert {files.read(f"d{n}/x") for n in range(100)} == {b"1"}
    perform(files, *edits)
    assert {files.read(f"d{n}/x") for n in range(100)} == {b"2"}
    gone = [Change.of(f"d{n}/x", before=b"2", after=None) for n in range(100)]
    perform(files, *gone, *[change.inverse for change in made])
    assert files.node("d7") is None
