"""Words of a script that may name files which it runs."""

import re

from handtools.text.shell.hazards import find_hazards
from handtools.text.shell.script_commands import Script

MAX_FILE_WORDS = 400
_BETWEEN_WORDS = re.compile(r"""[\s;|&<>()`"'$=,:]+""")
_RUN_NO_FILE = frozenset({
    "[", "basename", "cat", "cd", "chmod", "cksum", "cmp", "cp", "cut", "date", "df", "diff", "dirname", "du",
    "echo", "egrep", "false", "fgrep", "file", "grep", "head", "less", "ln", "ls", "md5sum", "mkdir", "more", "mv",
    "nl", "printf", "pwd", "readlink", "realpath", "rev", "rg", "rm", "rmdir", "sha256sum", "sleep", "sort",
    "stat", "tac", "tail", "tee", "test", "touch", "tr", "true", "type", "uniq", "wc", "which",
})  # fmt: skip
"""Programs that look at files or move them and run none of them, unless told to by an option that is a hazard."""


def words_that_may_name_programs(script: Script) -> tuple[str, ...]:
    """Give the words of a script among which are the files that it runs; none if all it does is look at files.

    Whether a word is a program, a script for an interpreter or data is not known here. They are the words as they
    are written, between blanks and signs of the shell, and those of the commands, without quotes.
    """
    if script.parts and all(words[0] in _RUN_NO_FILE and not find_hazards(words) for words in script.parts):
        return ()
    written = _BETWEEN_WORDS.split(script.text)
    words = dict.fromkeys((*written, *(word for words in script.found for word in words)))
    return tuple(word for word in words if word.strip("./"))[:MAX_FILE_WORDS]
