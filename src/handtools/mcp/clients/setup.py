"""Setting a client up: which files change and how, before anything is written."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from handtools.core.errors import UsageError
from handtools.mcp.clients.edits import AppliedEdit, Edit, Shape, apply, in_place, revert, written_at
from handtools.mcp.clients.installed import InstalledFile, InstallRecord
from handtools.mcp.clients.known import Client, Launch

_FOLDER = re.compile(r'"mcp"\s*,\s*("(?:[^"\\]|\\.)*")')


class UnreadableConfiguration(UsageError):
    """A file that can't be changed safely, by name."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """One file, as it is and as it shall be; None is a file that is not there."""

    file: Path
    before: str | None
    after: str | None
    installed: InstalledFile | None
    """What to remember of it."""


def wanted(
    client: Client, workspace: Path, launch: Launch, *, only_ours: bool
) -> dict[Path, tuple[Shape, list[Edit]]]:
    """The edits of each file; the one with the server is first."""
    files: dict[Path, tuple[Shape, list[Edit]]] = {
        client.file(workspace): (client.shape, [client.server(launch)])
    }
    for own in client.own_tools if only_ours else ():
        files.setdefault(own.file(workspace), (own.shape, []))[1].extend(own.edits)
    return files


def installation(
    client: Client, workspace: Path, launch: Launch, record: InstallRecord, *, only_ours: bool
) -> list[FileChange]:
    """What there is to write; a file that is as it shall be is left out."""
    asked = wanted(client, workspace, launch, only_ours=only_ours)
    every = wanted(client, workspace, launch, only_ours=True)
    changes = []
    for file, (shape, _) in every.items():
        text, known = read(file), record.find(file)
        if client.folder is None and file == client.file(workspace) and _elsewhere(known, workspace):
            known = None  # Another project's: it comes back when this one goes.
        with _named(file):
            base = known.restored(shape, text) if known and text is not None else text
            edits = asked[file][1] if file in asked else []
            after, applied = apply(shape, base or "", edits) if edits else (base, [])
        if after == text:
            continue
        kept = None
        if edits and after is not None:
            made = known.made_folder if known else not file.parent.exists()
            kept = InstalledFile.of(workspace, base, after, applied, made_folder=made)
        changes.append(FileChange(file, text, after, kept))
    return changes


def removal(client: Client, workspace: Path, launch: Launch, record: InstallRecord) -> list[FileChange]:
    """What it takes to have every file as it was before; without a record, what is ours goes."""
    changes = []
    for file, (shape, edits) in wanted(client, workspace, launch, only_ours=True).items():
        text, known = read(file), record.find(file)
        if text is None:
            continue
        with _named(file):
            if known is not None:
                after = known.restored(shape, text)
            else:
                left = revert(shape, text, in_place(shape, text, edits))
                after = None if left != text and left.strip() in {"", "{}"} else left
        if after != text:
            changes.append(FileChange(file, text, after, None))
    return changes


def other_entry(client: Client, workspace: Path, launch: Launch) -> str | None:
    """What our name stands for in the client's file, if not for this folder: a folder, or something else."""
    text = read(client.file(workspace))
    with _named(client.file(workspace)):
        there = written_at(client.shape, text or "", client.keys)
    if there is None:
        return None
    found = _FOLDER.search(there)
    folder = json.loads(found[1]) if found else None
    if folder is None:
        return "something else"
    named = launch[1][-1]
    return None if folder in {named, client.folder} or Path(folder).resolve() == workspace else str(folder)


def own_tools_are_off(client: Client, workspace: Path) -> bool:
    """Whether the client's own file and shell tools are switched off here."""
    return bool(client.own_tools) and all(
        len(_in_place(own.file(workspace), own.shape, own.edits)) == len(own.edits)
        for own in client.own_tools
    )


def read(file: Path) -> str | None:
    """A file's text to the byte; None where there is none."""
    try:
        return file.read_bytes().decode("utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return None


def _in_place(file: Path, shape: Shape, edits: tuple[Edit, ...]) -> list[AppliedEdit]:
    text = read(file)
    with _named(file):
        return [] if text is None else in_place(shape, text, edits)


def _elsewhere(known: InstalledFile | None, workspace: Path) -> bool:
    return known is not None and known.workspace != str(workspace)


@contextmanager
def _named(file: Path) -> Iterator[None]:
    try:
        yield
    except UsageError as problem:
        raise UnreadableConfiguration(f"{file} is left as it is. {problem}") from problem
