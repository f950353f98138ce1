"""Trees to run commands on, and what is in them."""

import hashlib
import os
import random
import stat
import subprocess
from collections.abc import Collection
from pathlib import Path
from typing import Any

Snapshot = dict[str, tuple[Any, ...]]
"""Facts by path."""


def grow(root: Path, files: int) -> None:
    """Many small files, a hundred to a folder."""
    for number in range(files):
        if number % 100 == 0:
            folder = root / f"d{number // 10_000}" / f"e{number // 100}"
            folder.mkdir(parents=True)
        (folder / f"f{number}").write_bytes(b"x\n")


def plant(root: Path, chance: random.Random) -> None:
    """A small project with every kind of thing in it."""
    (root / "src" / "deep" / "deeper").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "ignored").mkdir()
    for number in range(12):
        data = chance.randbytes(chance.choice([0, 10, 5000, 300_000]))
        (root / "src" / f"f{number}").write_bytes(data)
        (root / "src" / "deep" / f"g{number}").write_text(f"line {number}\n" * number)
        (root / "ignored" / f"i{number}").write_text("ignored")
    (root / ".gitignore").write_text("ignored/\n*.o\n")
    (root / "link").symlink_to("src/f1")
    (root / "to_folder").symlink_to("src")
    (root / "broken").symlink_to("nowhere")
    os.link(root / "src" / "f2", root / "src" / "same")
    (root / "src" / "f3").chmod(0o755)
    (root / "src" / "f4").chmod(0o400)
    with (root / "holes").open("wb") as file:
        file.truncate(3 << 20)
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@e", "-c", "commit.gpgsign=false"]
    for words in (["init", "-q", "-b", "main"], ["add", "-A"], ["commit", "-qm", "one"]):
        subprocess.run([*git, *words], cwd=root, check=True, capture_output=True)


def snapshot(root: Path) -> Snapshot:
    """Everything below a folder: kind, mode, bytes or target, and the other names of the same file."""
    found: Snapshot = {}
    names: dict[int, list[str]] = {}
    for folder, folders, files in os.walk(root):
        for name in (*folders, *files):
            path = os.path.join(folder, name)
            facts = os.lstat(path)
            inside = os.path.relpath(path, root)
            mode = oct(facts.st_mode)
            if stat.S_ISLNK(facts.st_mode):
                found[inside] = (mode, os.readlink(path))
            elif stat.S_ISREG(facts.st_mode):
                found[inside] = (mode, facts.st_uid, facts.st_size, _hash(path))
                if facts.st_nlink > 1:
                    names.setdefault(facts.st_ino, []).append(inside)
            else:
                found[inside] = (mode, facts.st_uid)
    found["\0links"] = tuple(sorted(tuple(sorted(group)) for group in names.values()))
    return found


def difference(one: Snapshot, other: Snapshot, *, but: Collection[str] = ()) -> list[str]:
    """Where two snapshots differ, apart from some paths."""
    paths = [path for path in {**one, **other} if one.get(path) != other.get(path) and path not in but]
    return [f"{path}: {one.get(path)} / {other.get(path)}" for path in paths]


def _hash(path: str) -> str:
    try:
        with open(path, "rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except PermissionError:
        return "unreadable"
