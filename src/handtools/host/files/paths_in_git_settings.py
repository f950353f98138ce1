"""Workspace paths named in git settings, such as the `core.hooksPath` folder or a filter program.

The settings of the repositories and of the user are parsed as data; git does not run. They are read again
only if the size or time of one of the files has changed, so that a plain edit costs only a few system
calls. Symlinks in the named paths are resolved every time.
"""

import os
import re
import shlex
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from handtools.core.files import GitNamedPath, SettingPredicate
from handtools.host.files.git_repository import SYSTEM_GIT_CONFIG
from handtools.host.files.syscalls import SETTINGS_BYTES, read_small_text
from handtools.host.home_folders import config_home, user_home
from handtools.host.workspace_folders import path_in_folders
from handtools.text.git_config import GIT_FOLDER, BadGitConfig, GitConfig, GitConfigKey, parse_git_config

MAX_SETTING_WORDS = 200
_FOLDER_KEYS = frozenset({"core.hookspath", "init.templatedir"})
_PATH_ENDINGS = ("path", "file", "dir")
_DATA_KEYS = frozenset(
    {
        "blame.ignorerevsfile", "commit.template", "core.worktree", "maintenance.repo", "mailmap.blob",
        "mailmap.file", "safe.directory", "scalar.repo",
    }
)  # fmt: skip
"""Keys whose value is a path that git only reads as text to display, or the path of a repository."""
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
    """The word as written; relative to the top of the repository unless it begins with a slash."""
    is_whole_folder: bool
    """Whether, if it is a folder, everything below it counts as named too."""


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
        # A word without a slash or a dot is hardly ever a path: it is a program, a subcommand or a branch.
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
    """List the words of a command line, split both as a shell does and at any punctuation.

    `$VARIABLE/path` gives `path`.
    """
    try:
        quoted = shlex.split(command)
    except ValueError:
        quoted = []
    bare = _WORD_BREAKS.split(_VARIABLES.sub("", command))
    options = [found[0] for word in bare if word.startswith("-") and (found := _OPTION_PATH.search(word))]
    after_variable = [word.lstrip("/") for word in bare if word.startswith("/")] if "$" in command else []
    words = (*quoted, *bare, *options, *after_variable)
    return [word for word in dict.fromkeys(words) if not word.startswith("-")]


MAX_CONFIG_FILES = 50
"""The most configuration files read for one repository, including included ones."""
_MAX_KNOWN_REPOSITORIES = 256
_SETTINGS_FILES = ("config", "config.worktree")
_LINKED_NAMES = (*_SETTINGS_FILES, "hooks", "info/attributes")
"""Entries of a git folder that git reads and that may be symlinks into the workspace."""
_HOOKS_KEY = "core.hookspath"
FileState = tuple[int | str, ...] | None
"""Identity, size and times of a file or folder, and the target of a symlink; None if it does not exist."""


class _GitFolders(NamedTuple):
    """A repository: its top folder, its git folder, and the git folder that its worktrees share."""

    top: str
    own: str
    shared: str


class _Name(NamedTuple):
    """A word in a setting that may be a path, and the folder to which it is relative."""

    key: str
    word: PathWord
    base: str


def git_named_paths(
    folders: Mapping[str, str], paths: Collection[str], is_plain: SettingPredicate
) -> tuple[GitNamedPath, ...]:
    """List the workspace paths named in the git settings of repositories that contain `folders` or `paths`.

    `folders` are the workspace's folders by name; `paths` are absolute, below these folders.
    """
    named_paths: dict[GitNamedPath, None] = {}
    for repository in _repositories(folders.values(), paths):
        for key, word, base in _names_in_settings(repository, is_plain):
            place = os.path.normpath(os.path.join(base, word.word))
            for path in {place, os.path.realpath(place)}:
                inside = path_in_folders(path, folders.items())
                is_strictly_inside = inside is not None and inside != "." and inside not in folders
                if is_strictly_inside and (word.is_whole_folder or not os.path.isdir(path)):
                    named_paths[GitNamedPath(str(inside), key, word.is_whole_folder)] = None
    return tuple(named_paths)


def _repositories(tops: Iterable[str], paths: Iterable[str]) -> list[_GitFolders]:
    """Return the repositories that contain the workspace folders or one of the paths.

    If there are none, returns a placeholder for each workspace folder, so that the user's settings are
    read.
    """
    git_folders: dict[str, _GitFolders | None] = {}
    for top in tops:
        above = top
        while above not in git_folders:
            git_folders[above] = _git_folders(above)
            if git_folders[above] is not None:
                break
            above = os.path.dirname(above)
    for path in paths:
        above = os.path.dirname(path)
        while above not in git_folders:
            git_folders[above] = _git_folders(above)
            above = os.path.dirname(above)
    repositories = [each for each in git_folders.values() if each is not None]
    return repositories or [_GitFolders(top, "", "") for top in tops]


def _git_folders(top: str) -> _GitFolders | None:
    own = f"{top}/{GIT_FOLDER}"
    try:
        mode = os.stat(own).st_mode
    except (OSError, ValueError):
        return None
    if stat.S_ISDIR(mode):
        return _GitFolders(top, own, own)
    written = read_small_text(own).removeprefix("gitdir:").strip()
    if not written or "\0" in written:
        return None
    own = os.path.normpath(os.path.join(top, written))
    shared = read_small_text(f"{own}/commondir").strip()
    is_linked = shared and "\0" not in shared
    return _GitFolders(top, own, os.path.normpath(os.path.join(own, shared)) if is_linked else own)


@dataclass(slots=True)
class _NameSearch:
    """Collects the words in one repository's settings that may be paths, and the state of each file read."""

    git_folders: _GitFolders
    is_plain: SettingPredicate
    states: dict[str, FileState] = field(default_factory=dict)
    files_read: set[str] = field(default_factory=set)

    def names(self) -> Iterator[_Name]:
        """Yield the words that may be paths."""
        top, own, shared = self.git_folders
        folders = dict.fromkeys(filter(None, (own, shared)))
        for folder in folders:
            for name in _LINKED_NAMES:
                place = f"{folder}/{name}"
                self._record_state(place)
                if os.path.islink(place):
                    yield _Name(f"{GIT_FOLDER}/{name}", PathWord(place, is_whole_folder=True), top)
        hooks = [f"{folder}/hooks" for folder in folders]
        own_files = [f"{folder}/{name}" for folder in folders for name in _SETTINGS_FILES]
        for file in (*_files_of_person(*map(os.environ.get, _PLACE_VARIABLES)), *own_files):
            for found in self._in_file(file):
                if found.key == _HOOKS_KEY:
                    hooks.append(os.path.join(top, found.word.word))
                yield found
        for folder in dict.fromkeys(hooks):
            for link in self._links_in(folder):
                place = os.path.join(folder, link)
                yield _Name(f"hooks/{link}", PathWord(place, is_whole_folder=False), top)

    def _in_file(self, file: str) -> Iterator[_Name]:
        if file in self.files_read or len(self.files_read) >= MAX_CONFIG_FILES:
            return
        self.files_read.add(file)
        self._record_state(file)
        for key, values in _read_settings(file).items():
            parts = GitConfigKey.of(key)
            is_include = parts.section in {"include", "includeif"} and parts.name == "path"
            for value in filter(None, values):
                if is_include:
                    # Git resolves included files relative to the including file, and all other paths
                    # relative to the top.
                    base = os.path.dirname(os.path.realpath(file))
                    yield _Name(key, PathWord(_with_home(value), is_whole_folder=False), base)
                    yield from self._in_file(os.path.normpath(os.path.join(base, _with_home(value))))
                elif not self.is_plain(key, value):
                    for word, is_whole_folder in setting_path_words(key, value):
                        yield _Name(key, PathWord(_with_home(word), is_whole_folder), self.git_folders.top)

    def _links_in(self, folder: str) -> list[str]:
        self._record_state(folder)
        try:
            with os.scandir(folder) as entries:
                return [entry.name for entry in entries if entry.is_symlink()]
        except (OSError, ValueError):
            return []

    def _record_state(self, path: str) -> None:
        """Record the state of a file before reading it, so that a concurrent change causes another read."""
        self.states.setdefault(path, _file_state(path))


_known_names: dict[tuple[object, ...], tuple[dict[str, FileState], tuple[_Name, ...]]] = {}


def _names_in_settings(git_folders: _GitFolders, is_plain: SettingPredicate) -> tuple[_Name, ...]:
    """Return the words in a repository's settings that may be paths; cached until a file changes."""
    key = (git_folders, is_plain, *map(os.environ.get, _PLACE_VARIABLES))
    states, names = _known_names.get(key, ({}, ()))
    if not states or any(_file_state(path) != state for path, state in states.items()):
        search = _NameSearch(git_folders, is_plain)
        names = tuple(search.names())
        if len(_known_names) >= _MAX_KNOWN_REPOSITORIES:
            _known_names.clear()
        _known_names[key] = search.states, names
    return names


_PLACE_VARIABLES = ("HOME", "XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM")
"""Variables that determine where the user's settings are."""


@lru_cache(maxsize=64)
def _files_of_person(
    home: str | None, config: str | None, given: str | None, system: str | None
) -> tuple[str, ...]:
    """Return the system's and the user's settings files, for values of `_PLACE_VARIABLES`."""
    del home, config
    files = [given] if given else [f"{each}/git/config" for each in (config_home(),) if each]
    files += [] if given else [f"{each}/.gitconfig" for each in (user_home(),) if each]
    return (system or SYSTEM_GIT_CONFIG, *files)


def _with_home(word: str) -> str:
    home = user_home() if word.startswith("~/") else None
    return os.path.join(home, word[2:]) if home else word


def _file_state(path: str) -> FileState:
    try:
        found = os.lstat(path)
        state = (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
        if not stat.S_ISLNK(found.st_mode):
            return state
        target = os.path.realpath(path)
        there = os.stat(target)
    except (OSError, ValueError):
        return None
    return (*state, target, there.st_dev, there.st_ino, there.st_size, there.st_mtime_ns, there.st_ctime_ns)


def _read_settings(file: str) -> GitConfig:
    """Parse a settings file; empty if it is not valid git configuration."""
    text = read_small_text(file, SETTINGS_BYTES, links=True)
    try:
        return parse_git_config(text.encode("utf-8", "replace"))
    except BadGitConfig:
        return {}
