"""Ignore files (`.gitignore`, `.ignore`, `.rgignore`): which names they leave out.

Decided one name at a time on the way down.

As ripgrep has it: the last rule of a file that matches decides, a deeper file before a higher one, and
`.ignore` files before `.gitignore` files. What is in an ignored folder is never reached, so nothing here looks
at the folders above a name.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from handtools.text.search.glob import BadGlob, Glob, GlobPrefilter

IGNORE_FILES = (".rgignore", ".ignore", ".gitignore", ".git/info/exclude")
"""Names of ignore files, the stronger first."""
_PLAIN = 2
"""So many of them are not git's."""
_EVERYTHING = GlobPrefilter([""])
IgnoreVerdict = Literal["ignore", "keep"]
_MARK = "\x01"
_TRAILING_SPACE = re.compile(r"(?<!\\)[ \t]+\Z")


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: str
    glob: Glob
    """Matches a path with the mark after it: a glob alone would also match what is below a folder."""
    verdict: IgnoreVerdict
    by_name: bool
    """A rule without a slash speaks about the name alone, at any depth."""
    for_folders: bool

    def speaks(self, path: str, name: str, *, folder: bool) -> bool:
        """Tell whether the rule is about this path itself."""
        if self.for_folders and not folder:
            return False
        return self.glob.matches(f"{name if self.by_name else path}/{_MARK}")


class IgnoreFile:
    """One ignore file, with the folder whose names it speaks about."""

    __slots__ = ("_above", "_rules", "folder", "screen")

    def __init__(self, text: str, folder: str = "", above: str = "") -> None:
        self.folder = folder
        self._above = f"{above}/" if above else ""
        self._rules = _rules(text)
        # What a rule says about the way down to the root is in no path below it.
        self.screen = _EVERYTHING if above else _screen(text)

    def verdict(self, path: str, *, folder: bool) -> IgnoreVerdict | None:
        """Tell what this file says about a path below its folder."""
        below = path[len(self.folder) + 1 :] if self.folder else self._above + path
        name = below.rpartition("/")[2]
        for rule in self._rules:
            if rule.speaks(below, name, folder=folder):
                return rule.verdict
        return None


class IgnoreRules:
    """All ignore files that speak about the names of one folder."""

    __slots__ = ("_ranks", "_tracked")

    def __init__(
        self,
        ranks: tuple[tuple[IgnoreFile, ...], ...] = ((),) * len(IGNORE_FILES),
        *,
        tracked: bool = False,
    ) -> None:
        self._ranks = ranks
        self._tracked = tracked
        """Whether the root is in a repository."""

    def __bool__(self) -> bool:
        return any(self._ranks)

    def into(
        self, folder: str, texts: dict[str, str], *, repository: bool = False, above: str = ""
    ) -> "IgnoreRules":
        """Give the ignores of a folder further down, which may hold ignore files of its own.

        In a repository, a folder that is another one knows nothing of git's rules outside. `above` is the
        way from a folder outside down to the root.
        """
        if not texts and not repository:
            return self
        ranks = self._ranks
        if repository and self._tracked:
            ranks = (*ranks[:_PLAIN], *((),) * len(ranks[_PLAIN:]))
        ranks = tuple(
            (IgnoreFile(texts[name], folder, above), *rank) if name in texts else rank
            for name, rank in zip(IGNORE_FILES, ranks, strict=True)
        )
        return IgnoreRules(ranks, tracked=self._tracked or (repository and not folder))

    def suspects(self, paths: Sequence[str]) -> set[str]:
        """Give the paths about which some rule may have something to say."""
        found: set[str] = set()
        return found.union(*(file.screen.suspects(paths) for rank in self._ranks for file in rank))

    def verdict(self, path: str, *, folder: bool) -> IgnoreVerdict | None:
        """Tell whether a path is left out, or kept in spite of other rules."""
        for rank in self._ranks:
            for file in rank:
                if found := file.verdict(path, folder=folder):
                    return found
        return None


def is_left_out(ignores: IgnoreRules, path: str, *, folder: bool, hidden: bool) -> bool:
    """Tell whether a walk passes a name by; an explicit rule to keep it also shows a hidden one."""
    verdict = ignores.verdict(path, folder=folder)
    if verdict is None:
        return not hidden and path.rpartition("/")[2].startswith(".")
    return verdict == "ignore"


@lru_cache(maxsize=1024)
def _screen(text: str) -> GlobPrefilter:
    return GlobPrefilter(rule.pattern for rule in _rules(text))


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
    verdict: IgnoreVerdict = "ignore"
    if line.startswith("!"):
        verdict, line = "keep", line[1:]
    bare = line.rstrip("/")
    # `a/**` is all that is in `a`, not `a` itself.
    inner = f"{bare}/*" if bare.endswith("/**") else bare
    try:
        glob = Glob(f"{inner}/{_MARK}")
    except BadGlob:
        return None
    return _Rule(bare, glob, verdict, by_name="/" not in bare, for_folders=line.endswith("/"))
