"""Ignoring: which names ignore files leave out, decided one name at a time on the way down.

As ripgrep has it: the last rule of a file that matches decides, a deeper file before a higher
one, and `.ignore` files before `.gitignore` files. What is in an ignored folder is never reached,
so nothing here looks at the folders above a name.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from handtools.text.globbing import BadGlob, Glob
from handtools.text.screening import Screen

IGNORE_FILES = (".rgignore", ".ignore", ".gitignore", ".git/info/exclude")
"""Names of ignore files, the stronger first."""
Verdict = Literal["ignore", "keep"]
_TRAILING_SPACE = re.compile(r"(?<!\\)[ \t]+\Z")


@dataclass(frozen=True, slots=True)
class _Rule:
    glob: Glob
    verdict: Verdict
    by_name: bool
    """A rule without a slash speaks about the name alone, at any depth."""


class IgnoreFile:
    """One ignore file, with the folder whose names it speaks about."""

    __slots__ = ("_rules", "folder", "screen")

    def __init__(self, text: str, folder: str = "") -> None:
        self.folder = folder
        self._rules = _rules(text)
        self.screen = _screen(text)

    def verdict(self, path: str, *, folder: bool) -> Verdict | None:
        """Tell what this file says about a path below its folder."""
        below = path[len(self.folder) + 1 :] if self.folder else path
        name = below.rpartition("/")[2]
        for rule in self._rules:
            if rule.glob.matches(name if rule.by_name else below, folder=folder):
                return rule.verdict
        return None

    def without(self, path: str) -> "IgnoreFile":
        """This file for someone who has entered `path` on purpose: rules against the way in are off."""
        parts = path.split("/")
        ways = ["/".join(parts[: depth + 1]) for depth in range(len(parts))]
        below = [way[len(self.folder) + 1 :] if self.folder else way for way in ways]
        inside = [way for way in below if way]
        entered = IgnoreFile("", self.folder)
        entered.screen = self.screen
        entered._rules = tuple(
            rule
            for rule in self._rules
            if rule.by_name or not any(rule.glob.matches(way, folder=True) for way in inside)
        )
        return entered


class Ignores:
    """All ignore files that speak about the names of one folder."""

    __slots__ = ("_ranks",)

    def __init__(self, ranks: tuple[tuple[IgnoreFile, ...], ...] = ((),) * len(IGNORE_FILES)) -> None:
        self._ranks = ranks

    def into(self, folder: str, texts: dict[str, str]) -> "Ignores":
        """Give the ignores of a folder further down, which may hold ignore files of its own."""
        if not texts:
            return self
        ranks = tuple(
            (IgnoreFile(texts[name], folder), *rank) if name in texts else rank
            for name, rank in zip(IGNORE_FILES, self._ranks, strict=True)
        )
        return Ignores(ranks)

    def entered(self, path: str) -> "Ignores":
        """Give these ignores for a walk that starts at `path` because someone named it."""
        return Ignores(tuple(tuple(file.without(path) for file in rank) for rank in self._ranks))

    def suspects(self, paths: Sequence[str]) -> set[str]:
        """Give the paths about which some rule may have something to say."""
        found: set[str] = set()
        return found.union(*(file.screen.suspects(paths) for rank in self._ranks for file in rank))

    def verdict(self, path: str, *, folder: bool) -> Verdict | None:
        """Tell whether a path is left out, or kept in spite of other rules."""
        for rank in self._ranks:
            for file in rank:
                if found := file.verdict(path, folder=folder):
                    return found
        return None


def leaves_out(ignores: Ignores, path: str, *, folder: bool, hidden: bool) -> bool:
    """Tell whether a walk passes a name by; an explicit rule to keep it also shows a hidden one."""
    verdict = ignores.verdict(path, folder=folder)
    if verdict is None:
        return not hidden and path.rpartition("/")[2].startswith(".")
    return verdict == "ignore"


@lru_cache(maxsize=1024)
def _screen(text: str) -> Screen:
    return Screen(rule.glob.pattern for rule in _rules(text))


@lru_cache(maxsize=1024)
def _rules(text: str) -> tuple[_Rule, ...]:
    """The rules of a file, the last one first, as it is asked first."""
    lines = text.removeprefix("\ufeff").split("\n")
    return tuple(_readable(_rule(line.removesuffix("\r")) for line in reversed(lines)))


def _readable(rules: Iterable[_Rule | None]) -> list[_Rule]:
    return [rule for rule in rules if rule is not None]


def _rule(line: str) -> _Rule | None:
    line = _TRAILING_SPACE.sub("", line)
    if not line or line.startswith("#"):
        return None
    verdict: Verdict = "ignore"
    if line.startswith("!"):
        verdict, line = "keep", line[1:]
    try:
        return _Rule(Glob(line), verdict, by_name="/" not in line.rstrip("/"))
    except BadGlob:
        return None
