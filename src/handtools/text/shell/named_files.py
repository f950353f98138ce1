"""Words of a script that may name files it runs."""

import re

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
"""Programs that read or move files but run none, unless an option in the hazard table makes them."""


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

    It is not known here whether a word is a program, a script for an interpreter or data. The result has
    the words as written, split at white space and shell operators, and the unquoted words of the commands.
    For each word it also has the parts after each slash, since `$PWD/x` and `a/../x` may be `x`. Files that
    well-known programs run by default are added.
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
    """Return a word, and the parts of it after each slash."""
    parts = word.split("/")[-MAX_WORD_PARTS:]
    return [word, *("/".join(parts[at:]) for at in range(1, len(parts)))]
