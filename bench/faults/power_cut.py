"""Power cuts: build every state that a cut may leave on disk from a log of file calls, and restart on each.

A scenario runs once under the recorder, which logs what reaches the kernel: creations, renames, deletions, writes
with their bytes, and syncs. At each point of the log, everything that was synced is on disk. Of the rest, anything
may be: nothing, all of it, all but one operation, one operation alone, the operations on names up to a point, no
bytes, files of zeros, half of the last write. An operation on a name is on disk once its folder was synced, bytes
once their file was. Mode and owner go with the file. A new process, after another boot, opens each state.
"""

import contextlib
import importlib
import json
import logging
import os
import shutil
import stat
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import anyio

from bench.children import drained, run_child
from bench.faults.failing_syscalls import (
    ARM,
    DISARM,
    MARKS,
    HeldCall,
    Kind,
    hold_calls,
    mark,
    run_with_fault,
)
from bench.faults.operations import DELETE, EDIT, FILES, LARGE, LARGE_EDIT, MOVE, PATCH, TEXT
from bench.faults.scene import Scene, Tree, without_temporary
from bench.figures import Figure
from handtools.host.files.temporary_file import TEMPORARY_PREFIX
from handtools.runtime.journal import database

ANSWERED = f"{MARKS}answered"
HOUR_SECONDS = 3600
"""How far ahead the clock of the recorded run is: a file that is built later must not count as changed later."""
RENAME_EXCHANGE, REMOVE_FOLDER = 2, 0x200
_IGNORED = ("-shm", "/locks")
"""Memory shared by SQLite's processes, which is built again, and lock files, which are empty."""
KINDS_OF_HARM = ("torn", "mixed", "lost", "undo lost", "not in the log", "left behind", "other")


@dataclass(frozen=True, slots=True)
class Scenario:
    """Calls that follow one another, and the files that they find."""

    name: str
    calls: Sequence[tuple[str, dict[str, Any]]]
    files: dict[str, str] = field(default_factory=lambda: FILES)
    is_opened: bool = True
    """Whether the journal exists before."""
    checkpoint_writes: int = 0
    """After how many transactions SQLite's log is copied into the journal; 0 for the default."""
    syncs: bool = False
    """Whether the files are synced after each call but the last, as they are in the background."""
    is_moved: bool = False
    """Whether the change moves a file instead of storing its bytes. After a cut only the file is promised."""


def _undo(number: int, action: str = "undo") -> tuple[str, dict[str, Any]]:
    return "undo", {"scope": "call", "name": f"call-{number}", "action": action}


NEW = {"path": "x/y/z.txt", "content": TEXT, "mode": "create"}
SHORT = {"path": "a.txt", "content": "short\n", "mode": "overwrite"}
SECOND_EDIT = {"path": "a.txt", "old_string": "line 9\n", "new_string": "line nine\n"}
SCENARIOS = [
    Scenario("write a new file", [("write", NEW)]),
    Scenario("overwrite", [("write", SHORT)]),
    Scenario("edit", [("edit", EDIT)]),
    Scenario("first call", [("edit", EDIT)], is_opened=False),
    Scenario("edit twice", [("edit", EDIT), ("edit", SECOND_EDIT)]),
    Scenario("edit, sync, edit", [("edit", EDIT), ("edit", SECOND_EDIT)], syncs=True),
    Scenario("edit with a checkpoint", [("edit", EDIT), ("edit", SECOND_EDIT)], checkpoint_writes=2),
    Scenario("create and delete", [("write", NEW), ("patch", {"patch": DELETE})]),
    Scenario("patch four files", [("patch", {"patch": PATCH})]),
    Scenario("rename", [("patch", {"patch": MOVE})]),
    Scenario("undo and redo", [("patch", {"patch": PATCH}), _undo(1), _undo(1, "redo")]),
    Scenario("edit a large file", [("edit", LARGE_EDIT)], FILES | {"large.txt": LARGE}, is_moved=True),
]


class Inode:
    """A file, symlink or folder of the model."""

    def __init__(self, kind: str, mode: int, data: bytes = b"") -> None:
        self.kind, self.mode, self.data = kind, mode, data
        self.children: dict[str, Inode] = {}


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One logged operation: names of folders, the bytes of a file, a sync, or an answer."""

    names: tuple[tuple[Inode, str, Inode | None], ...] = ()
    """What becomes of names: the folder, the name, and what it is then."""
    file: Inode | None = None
    offset: int = 0
    data: bytes | None = None
    """Bytes written at `offset`; None if the file is cut off there."""
    synced: Inode | None = None
    is_answer: bool = False


class DiskLog:
    """Logs the operations of a child and keeps the tree that they lead to."""

    def __init__(self, place: Path) -> None:
        self._place = os.fspath(place)
        self.operations: list[Operation] = []
        self.root = Inode("folder", 0o755)
        self.first: list[Operation] = []
        """What makes the tree that was there before."""

    def note(self, call: HeldCall) -> None:
        """Log a call that is about to happen, if it will change something."""
        if call.path.startswith(MARKS):
            if call.path == ARM:
                self.first = list(self._found(Path(self._place), self.root))
            elif call.path == ANSWERED:
                self.operations.append(Operation(is_answer=True))
            return
        if call.path.endswith(_IGNORED[0]) or _IGNORED[1] in call.path or call.path.endswith(" (deleted)"):
            return
        for operation in self._operations(call):
            self._apply(operation)
            self.operations.append(operation)

    def _apply(self, operation: Operation) -> None:
        for folder, name, node in operation.names:
            _set_name(folder, name, node)
        if operation.file is not None:
            operation.file.data = _written(operation.file.data, operation)

    def _found(self, path: Path, folder: Inode) -> Iterator[Operation]:
        for entry in sorted(path.iterdir()):
            if entry.name.endswith(_IGNORED[0]) or entry.name == _IGNORED[1][1:]:
                continue
            facts = entry.lstat()
            mode = stat.S_IMODE(facts.st_mode)
            if stat.S_ISDIR(facts.st_mode):
                node = Inode("folder", mode)
            elif stat.S_ISLNK(facts.st_mode):
                node = Inode("link", mode, os.fsencode(os.readlink(entry)))
            else:
                node = Inode("file", mode, entry.read_bytes())
            folder.children[entry.name] = node
            yield Operation(names=((folder, entry.name, node),))
            if node.kind == "file":
                yield Operation(file=node, data=node.data)
            elif node.kind == "folder":
                yield from self._found(entry, node)

    def _parent(self, path: str) -> tuple[Inode, str] | None:
        *above, name = os.path.relpath(path, self._place).split("/")
        folder = self.root
        for part in above:
            if part not in folder.children:
                return None
            folder = folder.children[part]
        return folder, name

    def _at(self, path: str) -> Inode | None:
        if path == self._place:
            return self.root
        found = self._parent(path)
        return None if found is None else found[0].children.get(found[1])

    def _operations(self, call: HeldCall) -> Iterator[Operation]:
        name, path, arguments = call.name, call.path, call.arguments
        node, place = self._at(path), self._parent(path)
        if name in {"open", "openat", "openat2"} and place:
            flags, mode = self._flags(call)
            if node is None and flags & os.O_CREAT:
                yield Operation(names=((*place, Inode("file", mode)),))
            elif node is not None and flags & os.O_TRUNC:
                yield Operation(file=node)
        elif name in {"mkdir", "mkdirat"} and place and node is None:
            yield Operation(names=((*place, Inode("folder", 0o755)),))
        elif name in {"symlink", "symlinkat"} and place and node is None:
            target = os.fsencode(call.path_of(Kind(0, "path", 0, frozenset())))
            yield Operation(names=((*place, Inode("link", 0o777, target)),))
        elif name in {"unlink", "unlinkat", "rmdir"} and place and node is not None:
            removes_folder = name == "rmdir" or (name == "unlinkat" and arguments[2] & REMOVE_FOLDER)
            if removes_folder == (node.kind == "folder") and not node.children:
                yield Operation(names=((*place, None),))
        elif name in {"rename", "renameat", "renameat2"} and place and node is not None:
            yield from self._rename(call, node, place)
        elif name in {"link", "linkat"} and place and node is None:
            raise NotImplementedError("the model has no hard links")
        elif node is not None and name in {"fchmod", "chmod", "fchmodat"}:
            node.mode = arguments[2 if name == "fchmodat" else 1] & 0o7777
        elif node is not None and name in {"write", "pwrite64"}:
            offset = arguments[3] if name == "pwrite64" else _position(call)
            yield Operation(
                file=node, offset=offset, data=os.pread(call.memory, arguments[2], arguments[1])
            )
        elif node is not None and name in {"ftruncate", "truncate"}:
            yield Operation(file=node, offset=arguments[1])
        elif node is not None and name in {"fsync", "fdatasync"}:
            yield Operation(synced=node)
        elif name in {"copy_file_range", "sendfile", "fallocate"}:
            raise NotImplementedError(f"the model has no {name}")

    def _rename(self, call: HeldCall, node: Inode, place: tuple[Inode, str]) -> Iterator[Operation]:
        if call.name == "rename":
            target, flags = Kind(0, "path", 1, frozenset()), 0
        else:
            target = Kind(0, "at", 2, frozenset())
            flags = call.arguments[4] if call.name == "renameat2" else 0
        onto = self._parent(call.path_of(target))
        if onto is None:
            return
        other = onto[0].children.get(onto[1])
        if flags & RENAME_EXCHANGE:
            if other is not None:
                yield Operation(names=((*place, other), (*onto, node)))
        elif other is None or not flags:
            yield Operation(names=((*place, None), (*onto, node)))

    def _flags(self, call: HeldCall) -> tuple[int, int]:
        if call.name == "openat2":
            how = os.pread(call.memory, 16, call.arguments[2])
            return int.from_bytes(how[:8], "little"), int.from_bytes(how[8:], "little") & 0o7777
        start = 1 if call.name == "open" else 2
        return call.arguments[start], call.arguments[start + 1] & 0o7777 & ~0o022


def _position(call: HeldCall) -> int:
    rows = Path(f"/proc/{call.child}/fdinfo/{call.arguments[0] & 0xFFFFFFFF}").read_text().splitlines()
    found = dict(row.split(":", 1) for row in rows)
    if int(found["flags"], 8) & os.O_APPEND:
        return os.stat(call.path).st_size
    return int(found["pos"])


def _written(data: bytes, operation: Operation) -> bytes:
    head = data[: operation.offset].ljust(operation.offset, b"\0")
    if operation.data is None:
        return head
    return head + operation.data + data[operation.offset + len(operation.data) :]


def _set_name(folder: Inode, name: str, node: Inode | None) -> None:
    if node is None:
        folder.children.pop(name, None)
    else:
        folder.children[name] = node


@dataclass(frozen=True, slots=True)
class Cut:
    """A state after a cut: where in the log, how many answers were given, and which operations are on disk."""

    point: int
    how: str
    answered: int
    on_disk: list[Operation]


def cuts(log: DiskLog) -> Iterator[Cut]:
    """Every state that a cut may leave, at every point of a log."""
    seen = set[tuple[int, ...]]()
    for point in range(len(log.operations) + 1):
        done = log.operations[:point]
        answered = sum(each.is_answer for each in done)
        for how, chosen in _choices(done):
            key = (answered, *map(id, chosen))
            if key not in seen:
                seen.add(key)
                yield Cut(point, how, answered, chosen)


def _choices(done: Sequence[Operation]) -> Iterator[tuple[str, list[Operation]]]:
    """What of some operations is on disk after a cut, and how it is called."""
    made = [each for each in done if each.names or each.file is not None]
    is_open, synced = set[int](), set[int]()
    for each in reversed(done):
        if each.synced is not None:
            synced.add(id(each.synced))
        inodes = [each.file] if each.file is not None else [folder for folder, _, _ in each.names]
        if not synced.issuperset(map(id, inodes)):
            is_open.add(id(each))
    pending = [each for each in made if id(each) in is_open]
    names = [each for each in pending if each.names]

    def with_only(kept: Iterable[Operation]) -> list[Operation]:
        wanted = {id(each) for each in kept}
        return [each for each in made if id(each) not in is_open or id(each) in wanted]

    yield "nothing", with_only([])
    yield "all", made
    for number, one in enumerate(pending):
        yield f"all but {number}", with_only([each for each in pending if each is not one])
        yield f"only {number}", with_only([one])
    for count in range(1, len(names) + 1):
        yield f"{count} names, no bytes", with_only(names[:count])
        bytes_too = [each for each in pending if each.file is not None]
        yield f"{count} names, all bytes", with_only([*names[:count], *bytes_too])
    zeros = [
        replace(each, data=bytes(len(each.data))) if id(each) in is_open and each.data else each
        for each in made
    ]
    yield "zeros", zeros
    if pending and pending[-1].data:
        last = pending[-1]
        half = replace(last, data=last.data[: len(last.data) // 2]) if last.data else last
        yield "half of the last write", [half if each is last else each for each in made]


def _tree(log: DiskLog, chosen: Iterable[Operation]) -> dict[str, tuple[str, int, bytes]]:
    names: dict[int, dict[str, Inode]] = {}
    data: dict[int, bytes] = {}
    for operation in (*log.first, *chosen):
        for folder, name, node in operation.names:
            entries = names.setdefault(id(folder), {})
            if node is None:
                entries.pop(name, None)
            else:
                entries[name] = node
        if operation.file is not None:
            data[id(operation.file)] = _written(data.get(id(operation.file), b""), operation)
    found: dict[str, tuple[str, int, bytes]] = {}

    def walk(folder: Inode, above: str, parents: frozenset[int]) -> None:
        for name, node in names.get(id(folder), {}).items():
            content = node.data if node.kind == "link" else data.get(id(node), b"")
            found[above + name] = (node.kind, node.mode, content)
            if node.kind == "folder" and id(node) not in parents:
                walk(node, f"{above}{name}/", parents | {id(node)})

    walk(log.root, "", frozenset())
    return found


def _build(place: Path, tree: dict[str, tuple[str, int, bytes]]) -> None:
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    for name, (kind, mode, data) in tree.items():
        path = place / name
        if kind == "folder":
            path.mkdir()
        elif kind == "link":
            path.symlink_to(os.fsdecode(data))
        else:
            path.write_bytes(data)
            path.chmod(mode)


@dataclass(slots=True)
class Recorded:
    """A scenario without a cut: its log, and the tree after each number of answers."""

    log: DiskLog
    trees: list[Tree]


def record(scenario: Scenario, place: Path) -> Recorded:
    """Run a scenario and log it."""
    log = DiskLog(place)
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir()
    observed = run_with_fault(lambda: _run(scenario, place), os.fspath(place), None, log.note)
    if not observed.report:
        raise RuntimeError(f"{scenario.name} does not work without a cut")
    said = json.loads(observed.report)
    for name in said["modules"]:  # so that the checkers, which are forked, need not import them
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    return Recorded(log, said["trees"])


def _run(scenario: Scenario, place: Path) -> bytes:
    clock = time.time
    time.time = lambda: clock() + HOUR_SECONDS

    async def main() -> dict[str, Any]:
        scene = Scene(place)
        scene.write_files(scenario.files)
        if scenario.is_opened:
            scene.open()
            await scene.call("think", {"thought": "the first call settles what was left"})
            await scene.call("read", {"path": "a.txt"})
        if scenario.checkpoint_writes:
            database.CHECKPOINT_WRITES = scenario.checkpoint_writes
        trees = [scene.tree()]
        hold_calls()
        mark(ARM)
        if not scenario.is_opened:
            scene.open()
        for number, (tool, args) in enumerate(scenario.calls, 1):
            answer = await scene.call(tool, args, f"call-{number}")
            mark(ANSWERED)
            if not answer.ok:
                raise RuntimeError(answer.text)
            trees.append(scene.tree())
            if scenario.syncs and number < len(scenario.calls):
                workspace = scene.box.workspace
                workspace.journal.file_syncs.sync_now(workspace.files.sync)
        mark(DISARM)
        known = [name for name in sys.modules if name.startswith(("handtools", "pydantic", "anyio"))]
        return {"trees": trees, "modules": known}

    return json.dumps(anyio.run(main)).encode()


def harm_of(cut: Cut, scenario: Scenario, recorded: Recorded, place: Path) -> list[tuple[str, str]]:
    """What a cut costs: kind and description of each harm that a new process finds, or does."""
    _build(place, _tree(recorded.log, cut.on_disk))
    trees = recorded.trees
    told, tell = os.pipe()
    child = os.fork()
    if not child:
        os.close(told)
        logging.getLogger("handtools").setLevel(logging.CRITICAL)
        run_child(
            lambda: os.write(tell, json.dumps(anyio.run(_harm, cut, scenario, trees, place)).encode())
        )
    os.close(tell)
    report = drained(told)
    os.waitpid(child, 0)
    return (
        [(kind, text) for kind, text in json.loads(report)] if report else [("other", "the checker died")]
    )


async def _harm(cut: Cut, scenario: Scenario, trees: list[Tree], place: Path) -> list[tuple[str, str]]:
    scene = Scene(place, boot="second boot")
    scene.open()
    first = await scene.call("think", {"thought": "the first call settles what was left"})
    harm = [] if first.ok else [("other", f"the first call fails: {first.text}")]
    now = scene.tree()
    harm += [("left behind", name) for name in now if TEMPORARY_PREFIX in name or "recovered" in name]
    if scene.box.workspace.journal.entries.open():
        harm.append(("other", "an intent is still open"))
    now = without_temporary(now)
    answered = cut.answered
    torn = [name for name in now if all(now[name] != tree.get(name) for tree in trees)]
    if torn:
        return [*harm, ("torn", ", ".join(torn))]
    promised = trees[answered : answered + 2]
    if now not in promised:
        return [*harm, ("lost" if now in trees else "mixed", f"after {answered} answers")]
    number = trees.index(now, answered)
    if number == 0:
        return harm
    back = await _call(scene, *_undo_of(scenario, number))
    if not back.ok or without_temporary(scene.tree()) != trees[number - 1]:
        kind = "undo lost" if number <= answered else "not in the log"
        return [*harm, (kind, back.text)]
    again = await _call(scene, *_undo(number, "redo")) if not _is_undo(scenario, number) else None
    if again is not None and (not again.ok or without_temporary(scene.tree()) != trees[number]):
        harm.append(("undo lost", f"can't be redone: {again.text}"))
    return harm


def _is_undo(scenario: Scenario, number: int) -> bool:
    return scenario.calls[number - 1][0] == "undo"


def _undo_of(scenario: Scenario, number: int) -> tuple[str, dict[str, Any]]:
    """The call that reverts a call; an undo is reverted by a redo."""
    if not _is_undo(scenario, number):
        return _undo(number)
    args = scenario.calls[number - 1][1]
    return "undo", args | {"action": "redo" if args["action"] == "undo" else "undo"}


async def _call(scene: Scene, tool: str, args: dict[str, Any]) -> Any:
    return await scene.call(tool, args)


def run_power_cuts(
    folder: Path, *, only: Sequence[str], points: int | None, draw: Callable[[str, Cut], float]
) -> Iterable[Figure]:
    """Run the scenarios; `points` states of each, drawn by `draw`, or all."""
    total, wrong = 0, 0
    place = folder / "place"
    for scenario in SCENARIOS:
        if only and scenario.name not in only:
            continue
        recorded = record(scenario, place)
        states = list(cuts(recorded.log))
        if points is not None:
            states = sorted(states, key=lambda cut: draw(scenario.name, cut))[:points]
        counts, shown = Counter[str](), set[str]()
        failures = 0
        for cut in states:
            harm = harm_of(cut, scenario, recorded, place)
            for kind, text in harm:
                counts[kind] += 1
                if kind not in shown:
                    shown.add(kind)
                    print(f"      {scenario.name} at {cut.point}, {cut.how}: {kind}: {text}", flush=True)
            failures += any(kind not in _unpromised(scenario) for kind, _ in harm)
        total += len(states)
        wrong += failures
        what = ", ".join(f"{kind} {counts[kind]}" for kind in KINDS_OF_HARM if counts[kind])
        name = f"{scenario.name}: wrong, of {len(states):,} states{f' ({what})' if what else ''}"
        yield Figure(name=name, value=failures, unit="", goal=0)
    yield Figure(name="states after a power cut", value=total, unit="")
    yield Figure(name="wrong after a power cut", value=wrong, unit="", goal=0)


def _unpromised(scenario: Scenario) -> set[str]:
    """What is not promised: a record of a call without an answer; for a moved file, only that it is whole."""
    return {"not in the log", "undo lost", "left behind"} if scenario.is_moved else {"not in the log"}
