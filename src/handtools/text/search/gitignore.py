"""Ignore files (`.gitignore`, `.ignore`, `.rgignore`): parsed, and asked which paths of a walk are ignored.

As ripgrep has it: the last rule of a file that matches decides, a deeper file before a higher one, and `.ignore`
files before `.gitignore` files. What is in an ignored folder is never reached, so nothing here looks at the
folders above a name.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Literal

from handtools.text.paths import inherited_value
from handtools.text.search.glob import BadGlob, Glob, GlobPrefilter

IGNORE_FILES = (".rgignore", ".ignore", ".gitignore", ".git/info/exclude")
"""Names of the ignore files that are read in each folder, in descending precedence."""
_PLAIN = 2
"""How many of `IGNORE_FILES`, from the first, are not git's own and hold in nested repositories too."""
_EVERYTHING = GlobPrefilter([""])
IgnoreVerdict = Literal["ignore", "keep"]
_MARK = "\x01"
MAX_IGNORE_RULES = 1_000
"""Most rules that are taken from one ignore file: each is compiled, and asked about every path."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: str
    glob: Glob
    """Matches a path with `_MARK` after it, so that the glob does not match what is below a folder."""
    verdict: IgnoreVerdict
    by_name: bool
    """Whether the rule has no slash and so matches the base name at any depth."""
    for_folders: bool

    def speaks(self, path: str, name: str, *, folder: bool) -> bool:
        """Whether the rule matches this path itself, not only a folder above it."""
        if self.for_folders and not folder:
            return False
        return self.glob.matches(f"{name if self.by_name else path}/{_MARK}")


class IgnoreFile:
    """The parsed rules of one ignore file, with the folder that it applies to."""

    __slots__ = ("_above", "_rules", "folder", "screen")

    def __init__(self, text: str, folder: str = "", above: str = "") -> None:
        self.folder = folder
        self._above = f"{above}/" if above else ""
        self._rules = _rules(text)
        # What a rule says about the way down to the root is in no path below it.
        self.screen = _EVERYTHING if above else _screen(text)

    def verdict(self, path: str, *, folder: bool) -> IgnoreVerdict | None:
        """Give what the last matching rule of this file says about a path: ignore or keep.

        Gives None if no rule matches.
        """
        below = self._above + (path[len(self.folder) + 1 :] if self.folder else path)
        name = below.rpartition("/")[2]
        for rule in self._rules:
            if rule.speaks(below, name, folder=folder):
                return rule.verdict
        return None


class IgnoreRules:
    """All ignore files that apply to the paths of one folder, in order of precedence."""

    __slots__ = ("_ranks", "_tracked")

    def __init__(
        self,
        ranks: tuple[tuple[IgnoreFile, ...], ...] = ((),) * len(IGNORE_FILES),
        *,
        tracked: bool = False,
    ) -> None:
        self._ranks = ranks
        self._tracked = tracked
        """Whether the root of the walk is in a git repository."""

    def __bool__(self) -> bool:
        return any(self._ranks)

    def into(
        self,
        folder: str,
        texts: dict[str, str],
        *,
        repository: bool = False,
        above: str = "",
        top: bool = False,
    ) -> "IgnoreRules":
        """Give the rules of a subfolder, with the ignore files that it has itself; `texts` are those, by name.

        A folder that is a git repository of its own drops git's rules from outside. `above` is the way from a
        folder outside down to this one. `top` is for a folder of several that make up the workspace.
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
        return IgnoreRules(ranks, tracked=self._tracked or (repository and (top or not folder)))

    def possible_matches(self, paths: Sequence[str]) -> set[str]:
        """Give the paths that some rule may match, by a fast prefilter; all others match none."""
        found: set[str] = set()
        return found.union(*(file.screen.possible_matches(paths) for rank in self._ranks for file in rank))

    def verdict(self, path: str, *, folder: bool) -> IgnoreVerdict | None:
        """Give whether a path is ignored or explicitly kept; None when no rule matches."""
        for rank in self._ranks:
            for file in rank:
                if found := file.verdict(path, folder=folder):
                    return found
        return None


def is_skipped_by_walk(ignores: IgnoreRules, path: str, *, folder: bool, hidden: bool) -> bool:
    """Whether a walk skips a path because it is ignored or hidden; a rule that keeps it overrides hidden."""
    verdict = ignores.verdict(path, folder=folder)
    if verdict is None:
        return not hidden and path.rpartition("/")[2].startswith(".")
    return verdict == "ignore"


def ignored_paths(
    paths: Iterable[str],
    enter: Callable[[IgnoreRules, str], IgnoreRules],
    *,
    top: IgnoreRules | None = None,
) -> set[str]:
    """Give those of some paths that ignore files exclude, by themselves or by a folder above them.

    `enter` gives the rules inside a folder, from the rules outside of it; `top` are the rules above the root.
    What a path is may be unknown, as of one that is gone: a rule for folders counts, too.
    """

    def derive(rules: IgnoreRules | None, folder: str) -> IgnoreRules | None:
        return None if rules is None or _is_ignored(rules, folder) else enter(rules, folder)

    inside: dict[str, IgnoreRules | None] = {"": enter(top or IgnoreRules(), "")}
    """The rules inside of each folder; None for a folder that is ignored."""
    found = set()
    for path in paths:
        rules = inherited_value(path.rpartition("/")[0], inside, derive)
        if rules is None or _is_ignored(rules, path):
            found.add(path)
    return found


def _is_ignored(rules: IgnoreRules, path: str) -> bool:
    return bool(rules) and "ignore" in {rules.verdict(path, folder=folder) for folder in (False, True)}


@lru_cache(maxsize=256)
def _screen(text: str) -> GlobPrefilter:
    return GlobPrefilter(rule.pattern for rule in _rules(text))


@lru_cache(maxsize=256)
def _rules(text: str) -> tuple[_Rule, ...]:
    """Parse the rules of an ignore file, in reverse order, since the last match decides."""
    lines = (line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n"))
    rules = (rule for line in lines if (rule := _rule(line)) is not None)
    return tuple(reversed(list(islice(rules, MAX_IGNORE_RULES))))


def _without_trailing_blanks(line: str) -> str:
    """Cut the blanks at the end of a line, but for one that a backslash stands before."""
    bare = line.rstrip(" \t")
    return line[: len(bare) + 1] if bare.endswith("\\") else bare


def _rule(line: str) -> _Rule | None:
    line = _without_trailing_blanks(line)
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
