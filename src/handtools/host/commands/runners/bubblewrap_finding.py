"""Finding what globs of the policy mean in a workspace: private paths, and those that must not be written.

A mount needs a path, and a policy speaks in globs. So the tree is looked through once and then kept up to date by
folders' change times: a command in a large tree must not wait for a walk each time.
"""

import os
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from handtools.text.globbing import AnyGlob

_CHECK_SECONDS = 0.004
"""How long a call may look for folders that have changed since the last one."""
INSTALLED = frozenset({"node_modules", "site-packages", "dist-packages", ".tox", ".nox", "__pycache__"})
"""Folders of other people's files: what has a private name there (certificates, samples) is no secret."""
_PASSED_BY = INSTALLED | {".git", ".hg", ".jj", ".bzr"}
"""What is not looked into; a repository holds very many files, by names of its own."""
EXCEPT = "!"
"""Before a glob: what it matches is meant to be seen."""


@dataclass(frozen=True, slots=True)
class Found:
    """Absolute paths."""

    private: tuple[str, ...]
    read_only: tuple[str, ...]


class Wanted:
    """A list of globs; exceptions are for the globs before them, back to the exceptions before those."""

    def __init__(self, globs: Iterable[str]) -> None:
        groups: list[tuple[list[str], list[str]]] = [([], [])]
        for each in globs:
            if each.startswith(EXCEPT):
                groups[-1][1].append(each.removeprefix(EXCEPT))
                continue
            if groups[-1][1]:
                groups.append(([], []))
            groups[-1][0].append(each)
        self._groups = [(_Globs(meant), _Globs(but)) for meant, but in groups]

    def matches(self, path: str, *, folder: bool) -> bool:
        """Whether a path of the workspace is meant, by itself: those above it were looked at before."""
        return any(
            meant.matches(path, folder=folder) and not but.matches(path, folder=folder)
            for meant, but in self._groups
        )


class _Globs:
    """Globs of names apart from globs of paths: however deep a path is, its name is short."""

    def __init__(self, globs: Iterable[str]) -> None:
        every = list(globs)
        names = [each for each in every if "/" not in each.rstrip("/")]
        self._names = AnyGlob(names, case_sensitive=False)
        self._paths = AnyGlob([each for each in every if each not in names], case_sensitive=False)

    def matches(self, path: str, *, folder: bool) -> bool:
        name = path.rpartition("/")[2]
        return self._names.matches(name, folder=folder) or self._paths.matches(path, folder=folder)


class Finder:
    """What is to be found below one workspace."""

    def __init__(self, root: str, private: Iterable[str], read_only: Iterable[str]) -> None:
        self._root = root
        self._private = Wanted(private)
        self._read_only = Wanted(read_only)
        self._folders: dict[str, tuple[int, frozenset[str], frozenset[str]]] = {}
        self._kept: set[str] = set()
        """Folders that must not be written, or lie in one: only what is private in them is still to be found."""
        self._waiting: list[str] = []

    def found(self) -> Found:
        """What there is. A large tree is checked in turns: a new path may be found only some calls later."""
        if not self._folders:
            self._walk("")
        self._refresh("")
        self._waiting = self._waiting or list(self._folders)
        deadline = time.monotonic() + _CHECK_SECONDS
        while self._waiting and time.monotonic() < deadline:
            self._refresh(self._waiting.pop())
        seen = self._folders.values()
        return Found(
            tuple(sorted(path for _, private, _ in seen for path in private)),
            tuple(sorted(path for _, _, kept in seen for path in kept)),
        )

    def _refresh(self, folder: str) -> None:
        known = self._folders.get(folder)
        try:
            changed = os.stat(os.path.join(self._root, folder)).st_mtime_ns
        except OSError:
            self._folders.pop(folder, None)
            return
        if known is None or known[0] != changed:
            self._walk(folder)

    def _walk(self, start: str) -> None:
        """Look at a folder, and at those below that are not known yet."""
        waiting = [start]
        while waiting:
            waiting += [each for each in self._look(waiting.pop()) if each not in self._folders]

    def _look(self, folder: str) -> Iterator[str]:
        """Note what a folder holds; gives the folders in it that are to be looked at."""
        private: set[str] = set()
        kept: set[str] = set()
        try:
            changed = os.stat(os.path.join(self._root, folder)).st_mtime_ns
            with os.scandir(os.path.join(self._root, folder)) as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if self._private.matches(path, folder=is_folder):
                        private.add(entry.path)
                        continue
                    is_kept = folder in self._kept or self._read_only.matches(path, folder=is_folder)
                    if is_kept and folder not in self._kept:
                        kept.add(entry.path)
                    if is_folder and entry.name not in _PASSED_BY:
                        if is_kept:
                            self._kept.add(path)
                        yield path
        except OSError:
            return
        self._folders[folder] = (changed, frozenset(private), frozenset(kept))


class Finders:
    """One finder for each workspace and policy, kept from command to command."""

    def __init__(self) -> None:
        self._finders: dict[tuple[object, ...], Finder] = {}

    def found(self, root: str, private: Iterable[str], read_only: Iterable[str]) -> Found:
        """What the policy's globs mean in this workspace; absolute paths mean themselves."""
        inside = f"{root}/"
        given = (tuple(private), tuple(read_only))
        globs = tuple(tuple(each for each in some if not each.startswith(inside)) for some in given)
        paths = [[each for each in some if each.startswith(inside)] for some in given]
        key = (root, *globs)
        if key not in self._finders:
            self._finders[key] = Finder(root, *globs)
        found = self._finders[key].found() if any(globs) else Found((), ())
        return Found((*found.private, *paths[0]), (*found.read_only, *paths[1]))
