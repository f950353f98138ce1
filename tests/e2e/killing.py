"""A patch over forty files, killed again and again: `python -m tests.e2e.killing FOLDER POINTS` says what is left.

It is a program of its own because it forks: in a process without threads that is cheap and safe. Each child kills
itself just before or after the system call it was given by number, so every run is the same.
"""

import json
import logging
import os
import signal
import sys
import threading
from collections.abc import Collection
from pathlib import Path

import anyio

from bench.children import drained, run_child
from handtools import Call, Toolbox, local_workspace
from handtools.toolbox import CODING
from tests.e2e.patch_making import Tree, lay

FILES = 40
BEFORE, AFTER = ("c_call",), ("c_return", "c_exception")


def trees() -> tuple[Tree, Tree, str]:
    """What is there before, what after, and the patch between: twenty changed, the rest moved, deleted, added."""
    before: Tree = {}
    after: Tree = {}
    parts = ["*** Begin Patch"]
    for n in range(FILES):
        name, rows = f"part_{n % 4}/file_{n}.txt", [f"line {row} of file {n}" for row in range(60)]
        old, new = (
            "".join(f"{row}\n" for row in rows),
            "".join(f"{row}\n" for row in [*rows[:30], "new", *rows[31:]]),
        )
        hunk = [f" {rows[29]}", f"-{rows[30]}", "+new", f" {rows[31]}"]
        if n < 20:
            before[name], after[name] = old.encode(), new.encode()
            parts += [f"*** Update File: {name}", *hunk]
        elif n < 27:
            before[name], after[f"moved/{name}"] = old.encode(), new.encode()
            parts += [f"*** Update File: {name}", f"*** Move to: moved/{name}", *hunk]
        elif n < 33:
            before[name] = old.encode()
            parts.append(f"*** Delete File: {name}")
        else:
            after[f"new/{name}"] = new.encode()
            parts += [f"*** Add File: new/{name}", *(f"+{row}" for row in new.splitlines())]
    return before, after, "\n".join([*parts, "*** End Patch"])


def box(folder: Path) -> Toolbox:
    return Toolbox(CODING, workspace=local_workspace(folder / "work", state=folder / "state"))


def tree(folder: Path) -> Tree:
    root = folder / "work"
    return {
        path.relative_to(root).as_posix(): path.read_bytes() for path in root.rglob("*") if path.is_file()
    }


class Killer:
    """Counts the system calls of this process and ends it at one of them."""

    def __init__(self, at: int, events: Collection[str]) -> None:
        self.at, self.events, self.count = at, events, 0

    def __call__(self, frame: object, event: str, function: object) -> None:
        if event in self.events and getattr(function, "__module__", "") == "posix":
            self.count += 1
            if self.count == self.at:
                os.kill(os.getpid(), signal.SIGKILL)


def writer(folder: Path, patch: str, killer: Killer) -> int:
    """Apply the patch under the killer; gives back how many system calls it took."""

    async def run() -> None:
        opened = box(folder)
        await opened.call("think", {"thought": "open everything first"})
        killer.count = 0
        threading.setprofile(killer)
        sys.setprofile(killer)
        result = await opened.call(Call(id="the-patch", tool="patch", args={"patch": patch}))
        assert result.ok, result.text

    anyio.run(run)
    return killer.count


async def verdict(folder: Path, before: Tree, after: Tree) -> str:
    """What a new start finds: `before`, `after`, or what is wrong."""
    opened = box(folder)
    await opened.call("think", {"thought": "the first call settles what was left"})
    found = tree(folder)
    if opened.workspace.journal.entries.open():
        return "an intent is still open"
    if found == before:
        return "before"
    if found != after:
        odd = sorted(name for name in found.keys() | after.keys() if found.get(name) != after.get(name))
        return f"neither: {odd[:5]}"
    await opened.call("undo", {"scope": "call", "name": "the-patch"})
    return "after" if tree(folder) == before else "could not be undone"


def child(action) -> bytes:
    """Run in a fork, and give back what it says; empty when it was killed."""
    told, tell = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(told)
        run_child(lambda: os.write(tell, action().encode()))
    os.close(tell)
    said = drained(told)
    os.waitpid(pid, 0)
    return said


def main() -> None:
    logging.getLogger("handtools").setLevel(logging.ERROR)
    folder, points = Path(sys.argv[1]), int(sys.argv[2])
    before, after, patch = trees()
    lay(before, folder / "dry" / "work")
    calls = int(child(lambda: str(writer(folder / "dry", patch, Killer(0, BEFORE)))))
    for point in range(points):
        here = folder / str(point)
        lay(before, here / "work")
        killer = Killer(1 + point * (calls - 1) // max(points - 1, 1), (BEFORE, AFTER)[point % 2])
        killed = child(lambda: str(writer(here, patch, killer))) == b""  # noqa: B023
        said = child(lambda: anyio.run(verdict, here, before, after)).decode()  # noqa: B023
        print(json.dumps({"at": killer.at, "of": calls, "killed": killed, "verdict": said}), flush=True)


if __name__ == "__main__":
    main()
