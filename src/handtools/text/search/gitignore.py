"""Ignore files (`.gitignore`, `.ignore`, `.rgignore`): their parser, and which paths of a walk they ignore.

Precedence is the same as in ripgrep: the last matching rule of a file decides, deeper files take precedence
over higher ones, and `.ignore` files over `.gitignore` files. A walk never enters an ignored folder, so
rules are matched against a path only, not against its parent folders.
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
"""How many of `IGNORE_FILES`, from the first, are not git's own and so apply in nested repositories too."""
_EVERYTHING = GlobPrefilter([""])
IgnoreVerdict = Literal["ignore", "keep"]
_MARK = "\x01"
MAX_IGNORE_RULES = 1_000
"""Maximum number of rules used from one ignore file: each is compiled and matched against every path."""


@dataclass(frozen=True, slots=True)
class _Rule:
    pattern: str
    glob: Glob
    """Matches a path followed by `_MARK`, so that the glob does not match paths below a folder."""
    verdict: IgnoreVerdict
    by_name: bool
    """Whether the rule has no slash and so matches the base name at any depth."""
    for_folders: bool

    def matches_path_itself(self, path: str, name: str, *, folder: bool) -> bool:
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
        self._rules = _parse_rules_last_first(text)
        # Rules from above the root may match components that are not in the paths, which the prefilter
        # would miss.
        self.screen = _EVERYTHING if above else _prefilter_of_rules(text)

    def verdict(self, path: str, *, folder: bool) -> IgnoreVerdict | None:
        """Return the verdict of the last matching rule of this file: ignore or keep.

        Returns None if no rule matches.
        """
        below = self._above + (path[len(self.folder) + 1 :] if self.folder else path)
        name = below.rpartition("/")[2]
        for rule in self._rules:
            if rule.matches_path_itself(below, name, folder=folder):
                return rule.verdict
        return None


class IgnoreRules:
    """All ignore files that apply to the paths of one folder, in order of precedence."""

    __slots__ = ("_ignore_files", "_tracked")

    def __init__(
        self,
        ignore_files: tuple[tuple[IgnoreFile, ...], ...] = ((),) * len(IGNORE_FILES),
        *,
        tracked: bool = False,
    ) -> None:
        self._ignore_files = ignore_files
        self._tracked = tracked
        """Whether the root of the walk is in a git repository."""

    def __bool__(self) -> bool:
        return any(self._ignore_files)

    def into(
        self,
        folder: str,
        texts: dict[str, str],
        *,
        repository: bool = False,
        above: str = "",
        top: bool = False,
    ) -> "IgnoreRules":
        """Return the rules of a subfolder, including its ignore files; `texts` has their contents by name.

        In a nested git repository, git's rules from outside don't apply. `above` is the path from a folder
        outside the root down to this one. `top` marks one of several folders that make up the workspace.
        """
        if not texts and not repository:
            return self
        ranks = self._ignore_files
        if repository and self._tracked:
            ranks = (*ranks[:_PLAIN], *((),) * len(ranks[_PLAIN:]))
        ranks = tuple(
            (IgnoreFile(texts[name], folder, above), *rank) if name in texts else rank
            for name, rank in zip(IGNORE_FILES, ranks, strict=True)
        )
        return IgnoreRules(ranks, tracked=self._tracked or (repository and (top or not folder)))

    def possible_matches(self, paths: Sequence[str]) -> set[str]:
        """Return the paths that some rule may match, by a fast prefilter; all others match none."""
        found: set[str] = set()
        return found.union(
            *(file.screen.possible_matches(paths) for rank in self._ignore_files for file in rank)
        )

    def verdict(self, path: str, *, folder: bool) -> IgnoreVerdict | None:
        """Return whether a path is ignored or explicitly kept; None if no rule matches."""
        for rank in self._ignore_files:
            for file in rank:
                if found := file.verdict(path, folder=folder):
                    return found
        return None


def is_skipped_by_walk(ignores: IgnoreRules, path: str, *, folder: bool, hidden: bool) -> bool:
    """Whether a walk skips a path because it is ignored or hidden.

    A hidden path is not skipped if a rule explicitly keeps it.
    """
    verdict = ignores.verdict(path, folder=folder)
    if verdict is None:
        return not hidden and path.rpartition("/")[2].startswith(".")
    return verdict == "ignore"


def ignored_paths(
    paths: Iterable[str],
    enter: Callable[[IgnoreRules, str], IgnoreRules],
    *,
    top_rules: IgnoreRules | None = None,
) -> set[str]:
    """Return the paths that ignore files exclude, directly or through a parent folder.

    `enter` returns the rules inside a folder, given the rules outside; `top_rules` are those above the root.
    Rules for folders always apply, since it may be unknown whether a path (for example a deleted one) is a
    folder.
    """

    def derive(rules: IgnoreRules | None, folder: str) -> IgnoreRules | None:
        return None if rules is None or _is_ignored(rules, folder) else enter(rules, folder)

    inner_rules: dict[str, IgnoreRules | None] = {"": enter(top_rules or IgnoreRules(), "")}
    """The rules inside each folder; None for an ignored folder."""
    found = set()
    for path in paths:
        rules = inherited_value(path.rpartition("/")[0], inner_rules, derive)
        if rules is None or _is_ignored(rules, path):
            found.add(path)
    return found


def _is_ignored(rules: IgnoreRules, path: str) -> bool:
    return bool(rules) and "ignore" in {rules.verdict(path, folder=folder) for folder in (False, True)}


@lru_cache(maxsize=256)
def _prefilter_of_rules(text: str) -> GlobPrefilter:
    return GlobPrefilter(rule.pattern for rule in _parse_rules_last_first(text))


@lru_cache(maxsize=256)
def _parse_rules_last_first(text: str) -> tuple[_Rule, ...]:
    """Parse the rules of an ignore file; return them in reverse order, since the last match decides."""
    lines = (line.removesuffix("\r") for line in text.removeprefix("\ufeff").split("\n"))
    rules = (rule for line in lines if (rule := _parse_rule(line)) is not None)
    return tuple(reversed(list(islice(rules, MAX_IGNORE_RULES))))


def _without_trailing_blanks(line: str) -> str:
    """Remove the blanks at the end of a line, except one escaped by a backslash."""
    bare = line.rstrip(" \t")
    return line[: len(bare) + 1] if bare.endswith("\\") else bare


def _parse_rule(line: str) -> _Rule | None:
    line = _without_trailing_blanks(line)
    if not line or line.startswith("#"):
        return None
    verdict: IgnoreVerdict = "ignore"
    if line.startswith("!"):
        verdict, line = "keep", line[1:]
    bare = line.rstrip("/")
    # `a/**` matches everything in `a`, not `a` itself.
    inner = f"{bare}/*" if bare.endswith("/**") else bare
    try:
        glob = Glob(f"{inner}/{_MARK}")
    except BadGlob:
        return None
    return _Rule(bare, glob, verdict, by_name="/" not in bare, for_folders=line.endswith("/"))
