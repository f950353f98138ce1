"""Find the workspace files that a command names, with their content at the time of the approval request."""

import hashlib
import re
from collections.abc import Callable

from handtools.core.effects import CommandRun, NamedFile
from handtools.core.errors import ToolError
from handtools.core.files import FileFacts, HostFiles
from handtools.text.shell.hazards import find_hazards
from handtools.text.shell.script_commands import Script

MAX_FILE_WORDS = 400
MAX_WORD_PARTS = 12
_BETWEEN_WORDS = re.compile(r"""[\s;|&<>()`"'$=,:]+""")
_RUN_NO_FILE = frozenset({
    "[", "basename", "cat", "cd", "chmod", "cksum", "cmp", "cp", "cut", "date", "df", "diff", "dirname", "du",
    "echo", "egrep", "false", "fgrep", "file", "grep", "head", "less", "ln", "ls", "md5sum", "mkdir", "more", "mv",
    "nl", "printf", "pwd", "readlink", "realpath", "rev", "rg", "rm", "rmdir", "sha256sum", "sleep", "sort",
    "stat", "tac", "tail", "tee", "test", "touch", "tr", "true", "type", "uniq", "wc", "which",
})  # fmt: skip
"""Programs that read or move files but don't run any, except with an option in the hazard table."""


_FILES_OF_PROGRAMS = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun", "node"), ("package.json",)),
    "just": ("justfile", ".justfile", "Justfile"),
    "rake": ("Rakefile", "rakefile"),
    "task": ("Taskfile.yml", "Taskfile.yaml"),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    "pytest": ("conftest.py", "pytest.ini"),
    "cargo": ("Cargo.toml", "build.rs"),
    "gradle": ("build.gradle", "build.gradle.kts", "settings.gradle"),
    "mvn": ("pom.xml",),
    "ant": ("build.xml",),
    "cmake": ("CMakeLists.txt",),
    "invoke": ("tasks.py",),
}
"""Files that well-known programs run by default, without being given their names."""


def words_that_may_name_programs(script: Script) -> tuple[str, ...]:
    """Return the words of a script that may name files it runs; none if it only reads or moves files.

    Words can't be classified as programs, scripts or data here, so the result has all words as written, split at
    white space and shell operators, and the commands' words without their quotes. It also has the rest of each
    word after each slash, since `$PWD/x` and `a/../x` may be `x`, and files that well-known programs run by
    default.
    """
    if script.parts and all(words[0] in _RUN_NO_FILE and not find_hazards(words) for words in script.parts):
        return ()
    written = _BETWEEN_WORDS.split(script.text)
    words = dict.fromkeys((*written, *(word for words in script.found for word in words)))
    known = dict.fromkeys(
        file
        for words in script.found
        for word in words
        for file in _FILES_OF_PROGRAMS.get(word.rpartition("/")[2], ())
    )
    ends = (end for word in (*words, *known) for end in _ends_after_slashes(word))
    return tuple(dict.fromkeys(end for end in ends if end.strip("./")))[:MAX_FILE_WORDS]


def _ends_after_slashes(word: str) -> list[str]:
    """Return a word, and the rest of it after each slash."""
    parts = word.split("/")[-MAX_WORD_PARTS:]
    return [word, *("/".join(parts[at:]) for at in range(1, len(parts)))]


MAX_NAMED_FILES = 40
MAX_NAMED_FOLDERS = 8
MAX_HASHED_BYTES = 64 << 20
"""Most bytes hashed for one command; beyond that, a file's size and time stand in for its digest."""
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
