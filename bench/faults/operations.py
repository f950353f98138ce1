"""The operations during which system calls fail."""

import importlib.util
import shutil
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from anyio import to_thread

from bench.faults.scene import KEPT, Answer, Operation, Scene
from handtools import Call, Change, ChangeSet
from handtools.core.errors import HandtoolsError
from handtools.fleet.fork_merge import merge_fork
from handtools.fleet.workspace_recovery import ShippedPosition, recover_workspace, store_new_changes
from handtools.fleet.workspaces import WorkspaceStore
from handtools.runtime.journal import RetentionLimits
from handtools.runtime.journal.change_entries import Transaction

TEXT = "".join(f"line {n}\n" for n in range(40))
LARGE = "".join(f"line {n} of a file that is moved aside and not copied\n" for n in range(30_000))
FILES = {"a.txt": TEXT, "b.txt": TEXT, "c/d.txt": TEXT, "c/e.txt": TEXT}
PATCH = """*** Begin Patch
*** Update File: a.txt
@@
 line 7
-line 8
+line eight
*** Add File: n/new.txt
+new
*** Delete File: b.txt
*** Update File: c/d.txt
*** Move to: c/moved.txt
@@
 line 3
-line 4
+line four
*** End Patch"""
DELETE = "*** Begin Patch\n*** Delete File: b.txt\n*** End Patch"
MOVE = """*** Begin Patch
*** Update File: b.txt
*** Move to: c/b.txt
@@
 line 3
-line 4
+line four
*** End Patch"""
SCRIPT = (
    "echo more >> a.txt; rm b.txt; mkdir n; echo new > n/new.txt; mv c/d.txt c/moved.txt; chmod 700 c/e.txt"
)
Act = Callable[[Scene, str], Awaitable[Answer]]


async def _plain(scene: Scene) -> None:
    scene.write_files(FILES)
    scene.open()
    await scene.call("think", {"thought": "the first call settles what was left"})


def _tool(tool: str, args: Mapping[str, Any]) -> Act:
    async def act(scene: Scene, call_id: str) -> Answer:
        return await scene.call(tool, args, call_id)

    return act


async def _undo(scene: Scene, call_id: str) -> Answer:
    return await scene.call("undo", {"scope": "call", "name": call_id})


async def _redo(scene: Scene, call_id: str) -> Answer:
    return await scene.call("undo", {"scope": "call", "name": call_id, "action": "redo"})


def _changing(name: str, tool: str, args: Mapping[str, Any]) -> Operation:
    return Operation(name, _plain, _tool(tool, args), _undo, _redo)


async def _large(scene: Scene) -> None:
    scene.write_files(FILES | {"large.txt": LARGE})
    scene.open()
    await scene.call("think", {"thought": "the first call settles what was left"})


async def _patched(scene: Scene) -> None:
    await _plain(scene)
    assert (await scene.call("patch", {"patch": PATCH}, "patched")).ok


async def _taken_back(scene: Scene) -> None:
    await _patched(scene)
    assert (await _undo(scene, "patched")).ok


async def _undo_patch(scene: Scene, _: str) -> Answer:
    return await _undo(scene, "patched")


async def _redo_patch(scene: Scene, _: str) -> Answer:
    return await _redo(scene, "patched")


async def _unopened(scene: Scene) -> None:
    scene.write_files(FILES)


async def _open_and_edit(scene: Scene, call_id: str) -> Answer:
    if not hasattr(scene, "box"):
        try:
            scene.open()
        except (
            OSError
        ) as failure:  # who makes a toolbox over a folder is told by Python what is wrong with it
            return Answer(False, str(failure))
    return await scene.call("edit", EDIT, call_id)


async def _interrupted(scene: Scene) -> None:
    """What a process leaves that was killed between a change's intent and its end."""
    await _plain(scene)
    workspace = scene.box.workspace
    changes = ChangeSet.of(Change.of("b.txt", before=TEXT.encode(), after=b"interrupted\n"))
    steps = workspace.files.plan(changes)
    call = Call(tool="write", args={}, id="killed")
    workspace.journal.entries.intend(call, Transaction(changes), steps, ordinal=0)
    (scene.root / steps[0].temporary).write_bytes(b"interr")
    await scene.box.aclose()
    del scene.box


async def _look(scene: Scene, call_id: str) -> Answer:
    answer = await scene.call("read", {"path": "a.txt"}, call_id)
    whole = all(f"line {n}\n" in answer.text + "\n" for n in range(40))
    if answer.ok and not whole:
        return Answer(False, f"a part is shown as the whole: {answer.text}", is_bug=True)
    return answer


async def _search(scene: Scene, call_id: str) -> Answer:
    answer = await scene.call("grep", {"pattern": "line 3$", "mode": "files"}, call_id)
    if answer.ok and not all(name in answer.text for name in FILES) and "could not" not in answer.text:
        return Answer(False, f"files are missing, and nothing is said: {answer.text}", is_bug=True)
    return answer


async def _list(scene: Scene, call_id: str) -> Answer:
    answer = await scene.call("list", {}, call_id)
    if answer.ok and not all(name in answer.text for name in ("a.txt", "b.txt", "c", KEPT)):
        return Answer(False, f"names are missing, and nothing is said: {answer.text}", is_bug=True)
    return answer


async def _append(scene: Scene, call_id: str) -> Answer:
    answer = await _look(scene, call_id)
    try:
        await to_thread.run_sync(scene.box.workspace.journal.close)
    except HandtoolsError as failure:
        return Answer(False, str(failure))
    return answer


async def _edited(scene: Scene) -> None:
    await _plain(scene)
    for number in range(6):
        args = {"path": "a.txt", "content": f"{TEXT}{number}\n" * (number + 1), "mode": "overwrite"}
        assert (await scene.call("write", args, f"w{number}")).ok
    scene.memory["limit"] = scene.box.workspace.journal.retention.kept_bytes() // 2


async def _prune(scene: Scene, _: str) -> Answer:
    limits = RetentionLimits(max_bytes=scene.memory["limit"])
    try:
        await to_thread.run_sync(scene.box.workspace.journal.retention.prune, limits)
    except HandtoolsError as failure:
        return Answer(False, str(failure))
    return Answer(True, "pruned")


async def _pruned(scene: Scene, _: Answer) -> list[str]:
    """The newest change is still there to be taken back, and pruning works now."""
    before = scene.tree()
    answers = [await _prune(scene, ""), await _undo(scene, "w5"), await _redo(scene, "w5")]
    wrong = [answer.text for answer in answers if not answer.ok]
    return wrong + (["the newest change is not whole"] if scene.tree() != before else [])


def _store(scene: Scene, kind: Any) -> str:
    source = scene.folder / "source"
    (source / "c").mkdir(parents=True)
    for name, text in {KEPT: "kept\n", **FILES}.items():
        (source / name).write_text(text)
    scene.store = WorkspaceStore(scene.folder / "fleet", kind=kind)
    parent = scene.store.create(scene.store.templates.add_folder(source).digest, name="parent")
    scene.memory |= {
        "root": scene.store.files_folder("parent"),
        "state": scene.store.state_folder("parent"),
    }
    shutil.rmtree(source)
    return parent.id


async def _parent(scene: Scene, kind: Any) -> None:
    _store(scene, kind)
    (scene.root / "a.txt").write_text("changed\n")
    (scene.root / "b.txt").unlink()


async def _fork(scene: Scene, _: str) -> Answer:
    try:
        await to_thread.run_sync(lambda: scene.store.fork("parent", names=["fork"]))
    except HandtoolsError as failure:
        return Answer(False, str(failure))
    return Answer(True, "forked")


def _reopen(scene: Scene) -> None:
    scene.store.open("parent")


async def _forked(scene: Scene, answer: Answer) -> list[str]:
    """A fork is there and whole, or can be made; the parent can be written to and is not changed."""
    wrong = []
    if not answer.ok:
        if "fork" in scene.store.workspace_names():
            await to_thread.run_sync(scene.store.remove, "fork")
        second = await _fork(scene, "")
        if not second.ok:
            return [f"can't be forked now: {second.text} (before: {answer.text})"]
    parent = scene.tree()
    fork = Scene(scene.folder, memory={"root": scene.store.files_folder("fork")})
    if fork.tree() != parent:
        wrong.append("the fork is not as its parent")
    (fork.root / "a.txt").write_text("of the fork\n")
    if scene.tree() != parent:
        wrong.append("the parent changes with its fork")
    scene.open()
    (scene.root / "probe").write_text("x")
    (scene.root / "probe").unlink()
    return wrong


async def _two(scene: Scene, kind: Any) -> None:
    await _parent(scene, kind)
    scene.store.fork("parent", names=["fork"])
    fork = scene.store.files_folder("fork")
    (fork / "c" / "d.txt").write_text("of the fork\n")
    (fork / "n").mkdir()
    (fork / "n" / "new.txt").write_text("new\n")
    (fork / "c" / "e.txt").unlink()
    scene.open()
    await scene.call("think", {"thought": "the first call settles what was left"})


async def _merge(scene: Scene, _: str) -> Answer:
    try:
        merged = await merge_fork(scene.store, "fork", scene.box)
    except HandtoolsError as failure:
        return Answer(False, str(failure))
    scene.memory["merged"] = merged.call_id
    return Answer(True, "merged")


async def _unmerge(scene: Scene, _: str) -> Answer:
    # A merge that was finished only by the next call has told nobody its id: it is the last change.
    if "merged" not in scene.memory:
        return await scene.call("undo", {"scope": "last"})
    return await _undo(scene, scene.memory["merged"])


async def _remerge(scene: Scene, _: str) -> Answer:
    if "merged" not in scene.memory:
        return await scene.call("undo", {"scope": "last", "action": "redo"})
    return await _redo(scene, scene.memory["merged"])


async def _logged(scene: Scene) -> None:
    from handtools.fleet.workspace_log import LogHead, LogStore

    parent = _store(scene, "copy")
    scene.open()
    await scene.call("edit", EDIT)
    log = scene.memory["log"] = LogStore(f"file://{scene.folder}/log")
    log.put_template(scene.store.templates.get_template(scene.store.get_record(parent).template))
    log.create_log(parent, LogHead(scene.store.get_record(parent).template))
    scene.memory["shipped"] = ShippedPosition()


async def _ship(scene: Scene, _: str) -> Answer:
    journal, shipped = scene.box.workspace.journal, scene.memory["shipped"]
    ship = partial(store_new_changes, scene.memory["log"], scene.store, "parent", journal=journal)
    try:
        scene.memory["shipped"] = await to_thread.run_sync(
            lambda: ship(shipped=shipped, writer="this host")
        )
    except HandtoolsError as failure:
        return Answer(False, str(failure))
    return Answer(True, "shipped")


async def _shipped(scene: Scene, _: Answer) -> list[str]:
    """The log can be written now, and another host makes the same workspace of it."""
    second = await _ship(scene, "")
    if not second.ok:
        return [f"can't be shipped now: {second.text}"]
    elsewhere = WorkspaceStore(scene.folder / "elsewhere", kind="copy")
    log = scene.memory["log"]
    recovered = recover_workspace(elsewhere, log, "parent", log.read_head("parent"), writer="another host")
    there = Scene(scene.folder, memory={"root": elsewhere.files_folder("parent")})
    elsewhere.close_all()
    return (
        [] if recovered and there.tree() == scene.tree() else ["another host makes another workspace of it"]
    )


EDIT = {"path": "a.txt", "old_string": "line 8\n", "new_string": "line eight\n"}
LARGE_EDIT = {"path": "large.txt", "old_string": "line 8 of", "new_string": "line eight of"}
OPERATIONS = [
    _changing("write a new file", "write", {"path": "x/y/z.txt", "content": TEXT, "mode": "create"}),
    _changing("overwrite", "write", {"path": "a.txt", "content": "short\n", "mode": "overwrite"}),
    _changing("edit", "edit", EDIT),
    replace(_changing("edit a large file", "edit", LARGE_EDIT), prepare=_large),
    _changing("patch four files", "patch", {"patch": PATCH}),
    _changing("delete", "patch", {"patch": DELETE}),
    _changing("rename", "patch", {"patch": MOVE}),
    Operation("undo", _patched, _undo_patch, _redo_patch, _undo_patch),
    Operation("redo", _taken_back, _redo_patch, _undo_patch, _redo_patch),
    _changing("land a command", "bash", {"command": SCRIPT}),
    Operation("read", _plain, _look),
    Operation("grep", _plain, _search),
    Operation("list", _plain, _list),
    Operation("open a new journal", _unopened, _open_and_edit, _undo, _redo),
    Operation("open after a crash", _interrupted, _open_and_edit, _undo, _redo),
    Operation("append to the journal", _plain, _append),
    Operation("prune the journal", _edited, _prune, check=_pruned),
    Operation("fork a layer", partial(_parent, kind="overlay"), _fork, reopen=_reopen, check=_forked),
    Operation("fork a copy", partial(_parent, kind="copy"), _fork, reopen=_reopen, check=_forked),
    Operation("merge a fork", partial(_two, kind="overlay"), _merge, _unmerge, _remerge, _reopen),
]
if importlib.util.find_spec("fsspec") is not None:
    OPERATIONS.append(Operation("ship a log", _logged, _ship, check=_shipped))
