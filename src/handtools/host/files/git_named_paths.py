"""Paths of a workspace that git's settings name, such as the folder of `core.hooksPath` or a filter's program.

The settings of the repositories and of the person are read as data; no git runs. Files are parsed again only when
their size or times changed. What a link leads to is looked up every time. ADR 163.
"""

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

from handtools.core.files import GitNamedPath, SettingPredicate
from handtools.host.files.git_repository import SYSTEM_GIT_CONFIG
from handtools.host.files.small_text_reader import SETTINGS_BYTES, read_small_text
from handtools.host.home_folders import config_home, user_home
from handtools.host.workspace_folders import path_in_folders
from handtools.text.git_config import BadGitConfig, GitConfigKey, parse_git_config
from handtools.text.git_names import GIT_FOLDER
from handtools.text.git_setting_paths import PathWord, setting_path_words

MAX_CONFIG_FILES = 50
"""The most files that are read for one repository, with those that they include."""
_LINKED_NAMES = ("config", "config.worktree", "hooks", "info/attributes")
"""What of a git folder may be a link to a file of the workspace that git goes by."""
_HOOKS_KEY = "core.hookspath"
FileState = tuple[int, ...] | None


class _NamedWord(NamedTuple):
    """A word of a setting, and whether it is the path of a file with more settings."""

    key: str
    word: PathWord
    is_include: bool


class _GitFolders(NamedTuple):
    """A repository: the top of its files, its git folder, and the one that its worktrees share."""

    top: str
    own: str
    shared: str


def git_named_paths(
    folders: Mapping[str, str], paths: Collection[str], is_plain: SettingPredicate
) -> tuple[GitNamedPath, ...]:
    """List what git's settings name in the repositories above some paths and above the workspace's folders.

    `folders` are the workspace's folders by name; `paths` are absolute, below these folders.
    """
    shown = tuple(folders.items())
    found: dict[GitNamedPath, None] = {}
    for repository in _repositories(folders.values(), paths):
        for key, word, base in _NameSearch(repository, is_plain).names():
            place = os.path.normpath(os.path.join(base, word.word))
            for path in {place, os.path.realpath(place)}:
                inside = path_in_folders(path, shown)
                is_strictly_inside = inside is not None and inside != "." and inside not in folders
                if is_strictly_inside and (word.is_whole_folder or not os.path.isdir(path)):
                    found[GitNamedPath(str(inside), key, word.is_whole_folder)] = None
    return tuple(found)


def _repositories(tops: Iterable[str], paths: Iterable[str]) -> list[_GitFolders]:
    """The repositories at or above some paths, within the workspace's folders; if none, the one around these."""
    found: dict[str, _GitFolders | None] = {}
    for top in tops:
        above = top
        while above not in found:
            found[above] = _git_folders(above)
            if found[above] is not None or above == os.path.dirname(above):
                break
            above = os.path.dirname(above)
    for path in paths:
        above = os.path.dirname(path)
        while above not in found and above != os.path.dirname(above):
            found[above] = _git_folders(above)
            above = os.path.dirname(above)
    repositories = [each for each in found.values() if each is not None]
    return repositories or [_GitFolders(top, "", "") for top in tops]


def _git_folders(top: str) -> _GitFolders | None:
    own = os.path.join(top, GIT_FOLDER)
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
    shared = read_small_text(os.path.join(own, "commondir")).strip()
    return _GitFolders(top, own, os.path.normpath(os.path.join(own, shared)) if shared else own)


@dataclass(slots=True)
class _NameSearch:
    """The search for what the settings of one repository name."""

    repository: _GitFolders
    is_plain: SettingPredicate
    read: set[str] = field(default_factory=set)

    def names(self) -> Iterator[tuple[str, PathWord, str]]:
        """Yield the key, the word that may be a path, and the folder that it is relative to."""
        top, own, shared = self.repository
        folders = dict.fromkeys(filter(None, (own, shared)))
        for folder in folders:
            for name in _LINKED_NAMES:
                place = os.path.join(folder, name)
                if os.path.islink(place):
                    yield f"{GIT_FOLDER}/{name}", PathWord(place, is_whole_folder=True), top
        hooks = [os.path.join(folder, "hooks") for folder in folders]
        own_files = [
            os.path.join(folder, name) for folder in folders for name in ("config", "config.worktree")
        ]
        for file in (*_files_of_person(), *own_files):
            for key, word, base in self._in_file(file):
                if key == _HOOKS_KEY:
                    hooks.append(os.path.join(top, word.word))
                yield key, word, base
        for folder in dict.fromkeys(hooks):
            for name in _links_in(folder, _state(folder)):
                yield f"hooks/{name}", PathWord(os.path.join(folder, name), is_whole_folder=False), top

    def _in_file(self, file: str) -> Iterator[tuple[str, PathWord, str]]:
        if file in self.read or len(self.read) >= MAX_CONFIG_FILES:
            return
        self.read.add(file)
        for key, word, is_include in _words_in(file, _state(file), self.is_plain):
            written = _with_home(word.word)
            # Git reads included files relative to the file that names them, all else relative to the top.
            base = os.path.dirname(os.path.realpath(file)) if is_include else self.repository.top
            yield key, PathWord(written, word.is_whole_folder), base
            if is_include:
                yield from self._in_file(os.path.normpath(os.path.join(base, written)))


def _files_of_person() -> Iterator[str]:
    """The files with the settings of the system and of the person."""
    yield os.environ.get("GIT_CONFIG_SYSTEM") or SYSTEM_GIT_CONFIG
    given = os.environ.get("GIT_CONFIG_GLOBAL")
    if given:
        yield given
        return
    settings, home = config_home(), user_home()
    if settings:
        yield os.path.join(settings, "git", "config")
    if home:
        yield os.path.join(home, ".gitconfig")


def _with_home(word: str) -> str:
    home = user_home()
    return os.path.join(home, word[2:]) if home and word.startswith("~/") else word


def _state(path: str) -> FileState:
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns


@lru_cache(maxsize=512)
def _words_in(file: str, state: FileState, is_plain: SettingPredicate) -> tuple[_NamedWord, ...]:
    """The words of a file of settings that may be paths; none if git could not read it."""
    if state is None:
        return ()
    text = read_small_text(file, SETTINGS_BYTES, links=True)
    try:
        config = parse_git_config(text.encode("utf-8", "replace"))
    except BadGitConfig:
        return ()
    found: list[_NamedWord] = []
    for key, values in config.items():
        parts = GitConfigKey.of(key)
        is_include = parts.section in {"include", "includeif"} and parts.name == "path"
        for value in values:
            if value and is_include:
                found.append(_NamedWord(key, PathWord(value, is_whole_folder=False), is_include=True))
            elif value and not is_plain(key, value):
                found += (
                    _NamedWord(key, word, is_include=False) for word in setting_path_words(key, value)
                )
    return tuple(found)


@lru_cache(maxsize=128)
def _links_in(folder: str, state: FileState) -> tuple[str, ...]:
    """The names of the links in a folder."""
    if state is None:
        return ()
    try:
        with os.scandir(folder) as entries:
            return tuple(entry.name for entry in entries if entry.is_symlink())
    except OSError:
        return ()
