"""Skill shelves: what skills a folder holds, and what files a skill has."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

from handtools.core.errors import ToolError
from handtools.core.ports import FileFacts, HostFiles
from handtools.core.skills import FILE, Bundle, Origin, Skill, described
from handtools.host.local_files import LocalFiles
from handtools.text.encoding import decode
from handtools.text.frontmatter import Frontmatter, read_frontmatter
from handtools.text.paths import file_url

HEAD_BYTES = 128 << 10
"""As much of a SKILL.md is read to describe it."""
MOST_SKILLS = 500
"""On one shelf."""
MOST_FILES = 200
MOST_DEPTH = 8
_UNLISTED = {".git", "__pycache__", "node_modules"}


def of_workspace(files: HostFiles, root: str, shelf: str, scope: str) -> Iterator[Skill]:
    """The skills on a shelf of the workspace; what a link brings in from outside is not there."""
    for path in islice(_inside(files, shelf), MOST_SKILLS):
        source, head, problem = _head(files, f"{path}/{FILE}")
        yield described(
            head,
            path.rpartition("/")[2],
            origin="workspace",
            folder=path,
            source=source,
            location=file_url(f"{root}/{path}"),
            scope=scope,
            unreadable=problem,
        )


def of_machine(shelf: Path, origin: Origin) -> Iterator[Skill]:
    """The skills on a shelf of the machine; its owner may have linked their folders from elsewhere."""
    for path in islice(_outside(shelf), MOST_SKILLS):
        _, head, problem = _head(LocalFiles(path), FILE)
        location = file_url(str(path.resolve()))
        yield described(head, path.name, origin=origin, folder="", location=location, unreadable=problem)


def bundled(files: HostFiles, folder: str) -> Bundle:
    """The files below a skill's folder beside its SKILL.md."""
    found: list[FileFacts] = []
    waiting = [(folder, 0)]
    while waiting:
        here, depth = waiting.pop()
        for entry in _entries(files, here):
            name = entry.path.rpartition("/")[2]
            if entry.kind == "folder" and depth < MOST_DEPTH and name not in _UNLISTED:
                waiting.append((entry.path, depth + 1))
            # A link to a file is followed as far as it stays inside; one to a folder might come back here.
            facts = facts_of(files, entry.path) if entry.kind == "link" else entry
            if facts is not None and facts.kind == "file" and (depth or name != FILE):
                found.append(facts)
            if len(found) > MOST_FILES:
                return _bundle(found[:MOST_FILES], folder, more=True)
    return _bundle(found, folder, more=False)


def facts_of(files: HostFiles, path: str) -> FileFacts | None:
    """What a path leads to, as far as it is ours to look at."""
    try:
        facts = files.facts(files.locate(path))
    except ToolError:
        return None
    return facts and replace(facts, path=path)


def _bundle(found: list[FileFacts], folder: str, *, more: bool) -> Bundle:
    prefix = f"{folder}/" if folder else ""
    named = [replace(facts, path=facts.path.removeprefix(prefix)) for facts in found]
    return Bundle(tuple(sorted(named, key=lambda facts: facts.path)), more)


def _inside(files: HostFiles, shelf: str) -> Iterator[str]:
    """The real folders that hold a SKILL.md; one that holds none may be a group of them."""
    for entry in _entries(files, shelf):
        facts = facts_of(files, entry.path)
        if facts is None or facts.kind != "folder":
            continue
        inner = [entry.path, *(each.path for each in _entries(files, entry.path))]
        holding = [path for path in inner if facts_of(files, f"{path}/{FILE}") is not None]
        yield from (files.locate(path) for path in (holding[:1] if entry.path in holding else holding))


def _outside(shelf: Path) -> Iterator[Path]:
    for path in _folders(shelf):
        yield from (
            [path]
            if (path / FILE).exists()
            else [each for each in _folders(path) if (each / FILE).exists()]
        )


def _folders(folder: Path) -> list[Path]:
    try:
        return sorted(path for path in folder.iterdir() if path.is_dir())
    except OSError:
        return []


def _entries(files: HostFiles, folder: str) -> list[FileFacts]:
    """What a folder holds, as far as it can be read."""
    try:
        located = files.locate(folder or ".")
        inside = files.names(located)
    except ToolError:
        return []
    # By the names through which they were reached: they may be links' names.
    return [replace(facts, path=_joined(folder, facts.path.rpartition("/")[2])) for facts in inside]


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name


def _head(files: HostFiles, path: str) -> tuple[str, Frontmatter, str]:
    """Where a SKILL.md really is, and its head; or why it can't be read."""
    located = path
    try:
        located = files.locate(path)
        return located, read_frontmatter(decode(files.read(located, size=HEAD_BYTES)).body), ""
    except ToolError as failure:
        return located, Frontmatter(), failure.message
