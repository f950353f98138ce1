"""The workspace files that a command names, as they are when its approval is requested."""

import hashlib
from collections.abc import Callable

from handtools.core.effects import CommandRun, NamedFile
from handtools.core.errors import ToolError
from handtools.core.files import FileFacts, HostFiles
from handtools.text.shell.named_files import words_that_may_name_programs

MAX_NAMED_FILES = 40
MAX_NAMED_FOLDERS = 8
MAX_HASHED_BYTES = 64 << 20
"""Most bytes hashed for one command; for further files, size and time are used."""
_PIECE_BYTES = 1 << 20


def read_named_files(
    files: HostFiles, run: CommandRun, is_private: Callable[[str], bool]
) -> tuple[NamedFile, ...]:
    """Find the regular files that a command's words name, with a digest of each. Blocking.

    A word is looked up in the folder that the command starts in, and in folders that other words name,
    because it may follow a `cd`. A private file is not read: its size and time are used instead.
    """
    start = run.facts[0][1]
    words = words_that_may_name_programs(run.script)
    named = [facts for word in words if (facts := _facts(files, start, word))]
    folders = [facts.path for facts in named if facts.kind == "folder"][:MAX_NAMED_FOLDERS]
    below = [facts for folder in folders for word in words if (facts := _facts(files, folder, word))]
    every = {facts.path: facts for facts in (*named, *below) if facts.kind == "file"}
    named_files: list[NamedFile] = []
    room = MAX_HASHED_BYTES
    for path in sorted(every)[:MAX_NAMED_FILES]:
        facts = every[path]
        is_read = facts.bytes <= room and not is_private(path)
        room -= facts.bytes if is_read else 0
        digest = _digest(files, facts) if is_read else ""
        named_files.append(NamedFile(path, facts.bytes, digest or f"{facts.bytes} {facts.modified!r}"))
    return tuple(named_files)


def _facts(files: HostFiles, folder: str, word: str) -> FileFacts | None:
    try:
        return files.facts(files.locate(word if word.startswith("/") else f"{folder}/{word}"))
    except ToolError:  # outside the workspace, not a path, or not accessible
        return None


def _digest(files: HostFiles, facts: FileFacts) -> str:
    seen, start = hashlib.sha256(), 0
    try:
        while start < facts.bytes and (piece := files.read(facts.path, start=start, size=_PIECE_BYTES)):
            seen.update(piece)
            start += len(piece)
    except ToolError:
        return ""
    return seen.hexdigest()
