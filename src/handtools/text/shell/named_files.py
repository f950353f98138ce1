"""Words of a script that may name files which it runs."""

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
"""Programs that look at files or move them and run none of them, unless told to by an option that is a hazard."""


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
"""Files that well-known programs run without being told their names."""


def words_that_may_name_programs(script: Script) -> tuple[str, ...]:
    """Give the words of a script among which are the files that it runs; none if all it does is look at files.

    Whether a word is a program, a script for an interpreter or data is not known here. They are the words as they
    are written, between blanks and signs of the shell, and those of the commands, without quotes; of each also
    what follows a slash, as `$PWD/x` and `a/../x` may be `x`. What a well-known program runs by itself is added.
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
    """Give a word, and what follows each slash in it."""
    parts = word.split("/")[-MAX_WORD_PARTS:]
    return [word, *("/".join(parts[at:]) for at in range(1, len(parts)))]
