"""Real changes of real files, written as patches: seeded random edits of the standard library."""

import os
import random
import subprocess
import sysconfig
from functools import cache
from pathlib import Path

from handtools.text.diffs.unified_diff import diff_line_edits

Tree = dict[str, bytes]
LARGEST = 40_000


@cache
def sources() -> tuple[tuple[str, str], ...]:
    """Files of the standard library, by name, with their texts."""
    root = Path(sysconfig.get_path("stdlib"))
    paths = sorted(
        [*root.glob("*.py"), *root.glob("email/*.py"), *root.glob("asyncio/*.py"), *root.glob("*.txt")]
    )
    found = []
    for path in paths:
        data = path.read_bytes()
        if 200 < len(data) < LARGEST and b"\r" not in data and b"\0" not in data:
            try:
                found.append((path.relative_to(root).as_posix(), data.decode()))
            except UnicodeDecodeError:
                continue
    return tuple(found)


def edited(text: str, chance: random.Random) -> str:
    """The text after a few edits: lines changed, added, removed, copied and moved; or its last line end."""
    rows = text.splitlines(keepends=True)
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(rows))
        end = min(at + chance.choice([1, 1, 2, 5]), len(rows))
        kind = chance.choice(["change", "add", "remove", "copy", "move", "end"])
        if kind == "change":
            rows[at:end] = [
                row.replace("e", "3", 1) if "e" in row else f"{row.rstrip()} # new\n"
                for row in rows[at:end]
            ]
        elif kind == "add":
            rows[at:at] = [
                f"    added_{chance.randrange(999)} = {n}\n" for n in range(chance.randint(1, 4))
            ]
        elif kind == "remove" and len(rows) > 8:
            del rows[at:end]
        elif kind == "copy":
            rows[end:end] = rows[at:end]
        elif kind == "move" and len(rows) > 8:
            rows[at:end], rest = [], rows[at:end]
            place = chance.randrange(len(rows))
            rows[place:place] = rest
        elif kind == "end":
            rows[-1] = rows[-1].rstrip("\n") if rows[-1].endswith("\n") else rows[-1] + "\n"
        rows[:-1] = [row if row.endswith("\n") else row + "\n" for row in rows[:-1]]
    return "".join(rows)


def change(chance: random.Random) -> tuple[Tree, Tree]:
    """A small tree before and after: files edited, moved, added and deleted."""
    picked = chance.sample(sources(), chance.randint(1, 4))
    before: Tree = {}
    after: Tree = {}
    for name, text in picked:
        kind = chance.choice(["edit"] * 6 + ["move", "add", "delete"])
        if kind != "add":
            before[name] = text.encode()
        if kind == "edit":
            after[name] = edited(text, chance).encode()
        elif kind == "move":
            after[f"moved/{name}"] = edited(text, chance).encode()
        elif kind == "add":
            after[name] = text.encode()
    if before == after:
        return change(chance)
    return before, after


def lay(tree: Tree, folder: Path) -> Path:
    """Write a tree to disk."""
    for name, data in tree.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


SCRIPT = """
git init -q --bare repo
for side in a b; do
  git --git-dir=repo --work-tree=$side add -A && git --git-dir=repo write-tree
done > trees
git --git-dir=repo diff --find-renames $(cat trees)
"""


def git_diff(before: Tree, after: Tree, folder: Path) -> str:
    """What `git diff` prints between two trees of a repository, renames found."""
    lay(before, folder / "a")
    lay(after, folder / "b")
    clean = os.environ | {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    done = subprocess.run(["sh", "-ec", SCRIPT], cwd=folder, env=clean, capture_output=True, check=True)
    return done.stdout.decode()


def vendor(before: Tree, after: Tree) -> str | None:
    """The change as `*** Begin Patch`, with as many kept lines as make every hunk unique; None where none do."""
    parts = ["*** Begin Patch"]
    moved = {}
    for name in before.keys() - after.keys():
        target = name.removeprefix("moved/") if name.startswith("moved/") else f"moved/{name}"
        if target in after:
            moved[name] = target
    for name, data in before.items():
        target = moved.get(name, name)
        if target not in after:
            parts.append(f"*** Delete File: {name}")
            continue
        hunks = _hunks(data.decode(), after[target].decode())
        if hunks == [] and target == name:
            continue
        if hunks is None:
            return None
        parts += (
            [f"*** Update File: {name}"] + ([f"*** Move to: {target}"] if target != name else []) + hunks
        )
    for name in after.keys() - before.keys() - set(moved.values()):
        rows = after[name].decode().split("\n")
        parts += [f"*** Add File: {name}", *(f"+{row}" for row in rows[: -1 if rows[-1] == "" else None])]
    return "\n".join([*parts, "*** End Patch"]) + "\n"


def _hunks(before: str, after: str) -> list[str] | None:
    if before.endswith("\n") != after.endswith("\n"):
        return None  # the format has no word for it
    a, b = before.split("\n"), after.split("\n")
    if before.endswith("\n"):
        a, b = a[:-1], b[:-1]
    for context in range(3, 60, 4):
        groups: list[list[tuple[int, int, int, int]]] = []
        for edit in diff_line_edits(a, b):
            if groups and edit.start_a - groups[-1][-1][1] <= 2 * context:
                groups[-1].append(tuple(edit))
            else:
                groups.append([tuple(edit)])
        blocks = [_block(a, b, group, context) for group in groups]
        if all(_once(a, block[0]) and _once(b, block[1]) for block in blocks):
            return [row for block in blocks for row in block[2]]
    return None


def _block(a, b, group, context):
    first, last = max(group[0][0] - context, 0), min(group[-1][1] + context, len(a))
    low, high = group[0][2] - (group[0][0] - first), group[-1][3] + (last - group[-1][1])
    rows = ["@@"]
    at = first
    for start_a, end_a, start_b, end_b in group:
        rows += [f" {row}" for row in a[at:start_a]] + [f"-{row}" for row in a[start_a:end_a]]
        rows += [f"+{row}" for row in b[start_b:end_b]]
        at = end_a
    return a[first:last], b[low:high], rows + [f" {row}" for row in a[at:last]]


def _once(rows: list[str], block: list[str]) -> bool:
    places = range(len(rows) - len(block) + 1)
    return bool(block) and sum(rows[at : at + len(block)] == block for at in places) == 1
