"""Words in a git setting that may be paths: the full value, and the words of a command line.

A setting is treated as a path or a command unless it is known to be neither, since many of git's settings
are one.
"""

import re
import shlex
from typing import NamedTuple

from handtools.text.git_config import GitConfigKey

MAX_SETTING_WORDS = 200
_FOLDER_KEYS = frozenset({"core.hookspath", "init.templatedir"})
_PATH_ENDINGS = ("path", "file", "dir")
_DATA_KEYS = frozenset(
    {
        "blame.ignorerevsfile", "commit.template", "core.worktree", "maintenance.repo", "mailmap.blob",
        "mailmap.file", "safe.directory", "scalar.repo",
    }
)  # fmt: skip
"""Keys of paths that git only reads as text to display, or that name a repository."""
_DATA_SECTIONS = frozenset({"gitflow", "color", "pretty", "gui"})
_WORD_BREAKS = re.compile(r"""[\s'"`;|&()<>{}=:,]+""")
_VARIABLES = re.compile(r"\$\{?\w+\}?|\$(?=\()")
_ENTERED_FOLDERS = re.compile(r"""(?:\bcd|(?<!\S)-C)\s+['"]?([^\s'";&|]+)""")
_ASSIGNED = re.compile(r"""(?<![\w-])\w+=(['"]?)([^\s;&|]+)\1""")
_OPTION_PATH = re.compile(r"[./~].*")
_NO_PATH = re.compile(r"-?[0-9]*[kmgKMG]?|(?i:true|false|yes|no|on|off|auto|always|never)|-+")


class PathWord(NamedTuple):
    """A word of a setting that may be a path."""

    word: str
    """As written, relative to the top of the repository if it does not begin with a slash."""
    is_whole_folder: bool
    """Whether everything below it counts too if it is a folder."""


def setting_path_words(key: str, value: str) -> tuple[PathWord, ...]:
    """List the words of a setting that may be paths; none for an alias that does not run a shell."""
    parts = GitConfigKey.of(key)
    if key in _DATA_KEYS or parts.section in _DATA_SECTIONS:
        return ()
    is_alias = parts.section == "alias"
    if is_alias and not value.startswith("!"):
        return ()
    command = value.removeprefix("!")
    words: dict[str, bool] = {}

    def add(word: str, *, is_whole_folder: bool) -> None:
        if word and not _NO_PATH.fullmatch(word) and len(words) < MAX_SETTING_WORDS:
            words[word] = words.get(word, False) or is_whole_folder

    # A program name without a slash is looked up on PATH, so it is not a file in the workspace.
    if parts.name.endswith(_PATH_ENDINGS) or ("/" in command and not any(map(str.isspace, command))):
        add(command, is_whole_folder=key in _FOLDER_KEYS or (not is_alias and "/" in command))
    first = command.split(maxsplit=1)[0] if command.strip() else ""
    entered = _ENTERED_FOLDERS.findall(command)
    for word in _command_words(command):
        # A word without a slash or a dot is hardly ever a path, but a program, a subcommand or a branch.
        if word in entered or ("/" not in word and ("." not in word or word == first)):
            continue
        add(word, is_whole_folder=not is_alias and "/" in word)
        for folder in entered:
            add(f"{folder.rstrip('/')}/{word}", is_whole_folder=not is_alias and "/" in word)
    for _, assigned in _ASSIGNED.findall(command):
        for word in _VARIABLES.sub("", assigned).split(":"):
            add(word.lstrip("/") if "$" in assigned else word, is_whole_folder=True)
    return tuple(PathWord(word, whole) for word, whole in words.items())


def _command_words(command: str) -> list[str]:
    """List the words of a command line, with and without quoting; paths after variables are relative."""
    try:
        quoted = shlex.split(command)
    except ValueError:
        quoted = []
    bare = _WORD_BREAKS.split(_VARIABLES.sub("", command))
    options = [found[0] for word in bare if word.startswith("-") and (found := _OPTION_PATH.search(word))]
    after_variable = [word.lstrip("/") for word in bare if word.startswith("/")] if "$" in command else []
    words = (*quoted, *bare, *options, *after_variable)
    return [word for word in dict.fromkeys(words) if not word.startswith("-")]
