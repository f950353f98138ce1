"""A workspace in which one operation is made while a system call fails, and what must be so afterwards."""

import hashlib
import os
import sqlite3
import stat
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from handtools import Call, Policy, Toolbox, local_workspace
from handtools.core.call import new_call_id
from handtools.core.result import Result
from handtools.fleet.workspaces import WorkspaceStore
from handtools.host.files.temporary_file import TEMPORARY_PREFIX
from handtools.runtime.policy import DEFAULTS
from handtools.toolbox import CODING

Tree = dict[str, list[Any]]
KEPT = "keep.txt"
"""A file that no operation touches."""
DID_CHANGE = "did change"
IN_DOUBT = (
    "could not be restored",
    "check whether the call already changed something",
    "Read the files to see their state",
    "was kept.",
    "in doubt",
)
"""What an answer says when files are neither as before nor as wanted, or may be."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the maker of an operation was told."""

    ok: bool
    text: str
    is_bug: bool = False

    @classmethod
    def of(cls, result: Result[Any]) -> "Answer":
        return cls(result.ok, result.text, result.fault is not None and result.fault.code == "internal")


@dataclass(slots=True)
class Scene:
    """The folders of one attempt, and the toolbox over them."""

    folder: Path
    box: Toolbox = field(init=False)
    store: WorkspaceStore = field(init=False)
    memory: dict[str, Any] = field(default_factory=dict)
    """What an operation's preparation leaves for it."""
    boot: str = "first boot"
    """The boot of the machine. The folders are in memory, but the journal is said to be on a disk."""

    @property
    def root(self) -> Path:
        found: Path = self.memory.get("root", self.folder / "work")
        return found

    @property
    def state(self) -> Path:
        found: Path = self.memory.get("state", self.folder / "state")
        return found

    def open(self) -> None:
        """Open a toolbox, as a new process would."""
        workspace = replace(local_workspace(self.root, state=self.state), boot=self.boot)
        policy = Policy(defaults=DEFAULTS | {"run": "allow"})
        self.box = Toolbox(CODING, workspace=workspace, policy=policy)

    def write_files(self, files: Mapping[str, str]) -> None:
        """Put files into the workspace, past the tools."""
        for name, text in {KEPT: "kept\n", **files}.items():
            path = self.root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)

    async def call(self, tool: str, args: Mapping[str, Any], call_id: str = "") -> Answer:
        return Answer.of(await self.box.call(Call(tool=tool, args=args, id=call_id or new_call_id())))

    def tree(self) -> Tree:
        """Everything in the workspace: kind, mode and content."""
        return dict(_entry(self.root, path) for path in sorted(self.root.rglob("*")))


def without_temporary(tree: Tree) -> Tree:
    """A tree as its user means it: what is about to be cleaned up does not count until the end."""
    return {name: entry for name, entry in tree.items() if TEMPORARY_PREFIX not in name}


def _entry(root: Path, path: Path) -> tuple[str, list[Any]]:
    facts = path.lstat()
    if stat.S_ISLNK(facts.st_mode):
        content = os.readlink(path)
    else:
        content = hashlib.sha256(path.read_bytes()).hexdigest() if stat.S_ISREG(facts.st_mode) else ""
    return str(path.relative_to(root)), [stat.filemode(facts.st_mode), content]


@dataclass(frozen=True, slots=True)
class Operation:
    """Something that changes the workspace or the record, and how it is taken back."""

    name: str
    prepare: Callable[[Scene], Awaitable[None]]
    act: Callable[[Scene, str], Awaitable[Answer]]
    """Do it, under a call id."""
    back: Callable[[Scene, str], Awaitable[Answer]] | None = None
    again: Callable[[Scene, str], Awaitable[Answer]] | None = None
    """Bring back what `back` took back."""
    reopen: Callable[[Scene], None] | None = None
    """What its maker does before going on, such as opening a workspace again."""
    check: Callable[[Scene, Answer], Awaitable[list[str]]] | None = None
    """What else must be so when the fault is over."""


async def judged(scene: Scene, operation: Operation, answer: Answer, old: Tree, new: Tree) -> list[str]:
    """What is wrong after an operation during which a call may have failed; nothing, if all is well."""
    if operation.reopen is not None:
        operation.reopen(scene)
    wrong = _untrue(answer, without_temporary(scene.tree()), old, new)
    kept = await scene.call("read", {"path": KEPT})
    if not kept.ok or "kept" not in kept.text:
        wrong.append(f"the next call fails: {kept.text}")
    if operation.check is not None:
        wrong += await operation.check(scene, answer)
    now = without_temporary(scene.tree())
    if now not in (old, new):
        return [*wrong, f"neither old nor new after the next call: {difference(now, old)}"]
    wrong += await _repeated(scene, operation, old, new)
    return wrong + [f"left behind: {name}" for name in scene.tree() if TEMPORARY_PREFIX in name]


def _untrue(answer: Answer, now: Tree, old: Tree, new: Tree) -> list[str]:
    if answer.is_bug:
        return [f"a bug is told, not what happened: {answer.text}"]
    if answer.ok:
        return [] if now == new else [f"success, but not new: {difference(now, new)} ({answer.text})"]
    if now == old:
        return [f"says it changed, and did not: {answer.text}"] if DID_CHANGE in answer.text else []
    said = any(words in answer.text for words in IN_DOUBT)
    if now == new:
        return [] if said or DID_CHANGE in answer.text else [f"changed, and does not say so: {answer.text}"]
    return [] if said else [f"neither, and does not say so: {difference(now, old)} ({answer.text})"]


async def _repeated(scene: Scene, operation: Operation, old: Tree, new: Tree) -> list[str]:
    """The operation can be made now if it was not, taken back, and made again."""
    call_id = "the-call"
    if without_temporary(scene.tree()) == old and old != new:
        call_id = "the-second-call"
        second = await operation.act(scene, call_id)
        if not second.ok or scene.tree() != new:
            return [f"can't be made now: {second.text}"]
    if operation.back is None:
        return []
    back = await operation.back(scene, call_id)
    if not back.ok or scene.tree() != old:
        return [f"can't be taken back: {back.text} {difference(scene.tree(), old)}"]
    again = await (operation.again or operation.act)(scene, call_id)
    if not again.ok or scene.tree() != new:
        return [f"can't be brought back: {again.text} {difference(scene.tree(), new)}"]
    return []


async def judged_after_restart(scene: Scene, expected: Tree) -> list[str]:
    """What is wrong when a new process opens the workspace."""
    wrong = []
    scene.open()
    first = await scene.call("think", {"thought": "the first call settles what was left"})
    if not first.ok:
        wrong.append(f"the first call of a new process fails: {first.text}")
    journal = scene.box.workspace.journal
    if journal.entries.open():
        wrong.append("an intent is still open")
    with sqlite3.connect(journal.path) as connection:
        wrong += [str(row[0]) for row in connection.execute("PRAGMA integrity_check") if row[0] != "ok"]
        entries = [row[0] for row in connection.execute("SELECT id FROM entries WHERE state = 'done'")]
    connection.close()
    for entry in entries:
        for touch in journal.entries.touches(entry):
            try:
                journal.entries.planned_write(touch)
            except KeyError:
                wrong.append(f"the bytes of {touch.path} in change {entry} are gone")
    wrong += [f"a sound journal was set aside: {path.name}" for path in scene.state.glob("*damaged*")]
    if scene.tree() != expected:
        wrong.append(f"another tree after a restart: {difference(scene.tree(), expected)}")
    await scene.box.aclose()
    return wrong


def difference(now: Tree, wanted: Tree) -> str:
    """The paths that are not alike."""
    odd = sorted(name for name in now.keys() | wanted.keys() if now.get(name) != wanted.get(name))
    return ", ".join(
        f"{name} {'gone' if name not in now else 'too many' if name not in wanted else 'other'}"
        for name in odd
    )
