r"""Globs: path patterns as in `.gitignore`, matched in bounded time; a prefilter and path selections.

`*`, `?` and `[a-z]` match within one component, `**` spans components, `{a,b}` are alternatives and `\`
escapes the next character. A pattern without a slash (except a trailing one) matches at any depth; one with
a slash is anchored at the root. A trailing slash matches only folders. A pattern that matches a folder
matches everything below it. `**` next to other characters means `*`, and a leading `!` or `#` is an
ordinary character.

Matching time is bounded because wildcards don't backtrack (atomic groups): each takes the first place where
the fixed text after it fits. For such patterns the first place is as good as any later one, so no match is
missed, and the cost is at most the product of both lengths.

The prefilter relies on literal text, which most globs have and a path must contain to match. One search for
that text through all paths at once is enough in the usual case that no path contains it.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

from handtools.text.paths import inherited_value

_MAX_ALTERNATIVES = 1000
_MAX_CHARS = 1 << 15
_MAX_EXPANDED_CHARS = 1 << 19
_MAX_KEPT_FOLDERS = 1 << 10
# Alternatives are regex text with two special characters: a slash between components, and NUL for a star,
# because no path can contain NUL.
_STAR = "\0"
_STARS = re.compile("\0+")
_ANY = r"[^\x2f]"
_SET = r"[!^]?+(?:\\.|[^\\])(?:\\.|[^]\\])*+"
"""The content of square brackets; a `]` at the start is one of the characters and does not close them."""
_PIECE = re.compile(
    rf"""(?P<literal>[^][{{}}*?,/\\\0]+)
    | \[(?P<set>{_SET})\]
    | \\(?P<escaped>[^\0])
    | (?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)
_SET_ITEM = re.compile(r"\\?(.)(?:-\\?(.))?", re.DOTALL)
_SIGNS = re.compile(r"[][{}*?,\\!#]")
_WILD = frozenset("*?[]{}\\/\0")


class BadGlob(ValueError):
    """Raised for a glob pattern that can't be parsed, or that expands to too many alternatives."""


class Glob:
    """One compiled glob pattern for relative paths."""

    __slots__ = ("_match", "case_sensitive", "pattern")

    def __init__(self, pattern: str, *, case_sensitive: bool = True) -> None:
        self.pattern = pattern
        self.case_sensitive = case_sensitive
        self._match = _compiled_regex((pattern,), re.NOFLAG if case_sensitive else re.IGNORECASE).match

    def matches(self, path: str, *, folder: bool = False) -> bool:
        """Whether a relative POSIX path, or a folder above it, matches the pattern."""
        return self._match(path + "/" if folder else path) is not None

    def __repr__(self) -> str:
        return f"Glob({self.pattern!r}, case_sensitive={self.case_sensitive})"


def glob_of_path(path: str) -> str:
    """Return the pattern that matches exactly this relative path and everything below it."""
    return "/" + _SIGNS.sub(r"\\\g<0>", path)


def glob_in_folder(pattern: str, folder: str) -> str:
    """Return a pattern that matches below `folder` the paths that `pattern` matches below the root.

    The folder may be a pattern itself: `*` is any top-level folder.
    """
    if not folder:
        return pattern
    anywhere = "" if "/" in pattern.rstrip("/") else "**/"
    return f"{folder}/{anywhere}{pattern.removeprefix('/')}"


class GlobSet:
    """A set of glob patterns that is matched fast against many paths."""

    __slots__ = (
        "_asked",
        "_flags",
        "_folders",
        "_folds",
        "_match",
        "_names",
        "_prefixes",
        "_suffixes",
        "_tails",
    )

    def __init__(self, patterns: Iterable[str], *, case_sensitive: bool = True) -> None:
        self._asked = asked = tuple(dict.fromkeys(patterns))
        # Most patterns are a name, `*.suffix`, `prefix*` or `**/folder/name`, for which a lookup beats any
        # regex. Case-insensitive lookups work for ASCII only: the regex engine handles case folding of
        # other letters.
        self._folds = not case_sensitive
        fold = str if case_sensitive else str.lower
        fixed = {
            each: _components_if_simple(fold(each)) for each in asked if case_sensitive or each.isascii()
        }
        simple = [parts for parts in fixed.values() if parts]
        alone = [parts[0] for parts in simple if len(parts) == 1]
        self._names = frozenset(name for name in alone if "*" not in name)
        self._suffixes = _group_by_end_character((name[1:] for name in alone if name[0] == "*"), -1)
        self._prefixes = _group_by_end_character((name[:-1] for name in alone if name[-1] == "*"), 0)
        self._folders = {"": False}
        """Whether each folder is matched, by its own name or the name of a folder above it."""
        self._tails: dict[str, list[list[str]]] = {}
        for *above, name in simple:
            if above:
                self._tails.setdefault(name, []).append(above)
        others = tuple(each for each in asked if not fixed.get(each))
        self._flags = re.NOFLAG if case_sensitive else re.IGNORECASE
        self._match = _compiled_regex(others, self._flags).match if others else None

    def matches(self, path: str, *, folder: bool = False) -> bool:
        """Whether any pattern matches a relative POSIX path."""
        if self._folds and not path.isascii():
            # Compiled lazily: a policy has a thousand globs, and most trees have no non-ASCII paths.
            match = _compiled_regex(self._asked, self._flags).match if self._asked else None
            return bool(match and match(path + "/" if folder else path))
        plain = path.lower() if self._folds else path
        above, _, name = plain.rpartition("/")
        if self._is_folder_or_parent_named(above) or self._matches_name_pattern(name):
            return True
        names = plain.split("/") if self._tails else []
        if not self._tails.keys().isdisjoint(names) and self._contains_named_components(names):
            return True
        return bool(self._match and self._match(path + "/" if folder else path))

    def _is_folder_or_parent_named(self, folder: str) -> bool:
        """Whether a pattern matches the name of a folder or of one above it; cached for siblings."""
        known = self._folders
        named = inherited_value(
            folder, known, lambda above, path: above or self._matches_name_pattern(path.rpartition("/")[2])
        )
        if len(known) > _MAX_KEPT_FOLDERS:
            self._folders = {"": False, folder: named}
        return named

    def _matches_name_pattern(self, name: str) -> bool:
        """Whether a name matches a pattern that is a name, or a fixed prefix or suffix such as `*.py`."""
        if name in self._names:
            return True
        ends, starts = self._suffixes.get(name[-1:]), self._prefixes.get(name[:1])
        return bool((ends and name.endswith(ends)) or (starts and name.startswith(starts)))

    def _contains_named_components(self, names: list[str]) -> bool:
        """Whether the path has the consecutive components that a pattern such as `**/a/b` names."""
        return any(
            names[max(0, place - len(above)) : place] == above
            for place, name in enumerate(names)
            for above in self._tails.get(name, ())
        )

    def first_matching_pattern(self, path: str, *, folder: bool = False) -> str | None:
        """Return the first pattern that matches a path; None if none does."""
        shown = path + "/" if folder else path
        hits = (each for each in self._asked if _compiled_regex((each,), self._flags).match(shown))
        return next(hits, None)


def _components_if_simple(pattern: str) -> list[str]:
    """Return the components of a simple pattern (a name with a star at one end, or `**/` and names).

    Returns an empty list for any other pattern.
    """
    if len(pattern) > _MAX_CHARS:
        return []
    if len(pattern) > 1 and (_WILD.isdisjoint(pattern[1:]) or _WILD.isdisjoint(pattern[:-1])):
        ends = pattern[0] + pattern[-1]
        return [pattern] if _WILD.isdisjoint(ends.replace("*", "", 1)) else []
    parts = pattern.removeprefix("**/").split("/")
    fixed = all(part not in {"", "."} and _WILD.isdisjoint(part) for part in parts)
    return parts if fixed and (len(parts) == 1 or pattern.startswith("**/")) else []


def _group_by_end_character(some: Iterable[str], end: int) -> dict[str, tuple[str, ...]]:
    """Group texts by their first (0) or last (-1) character, for quick lookup."""
    found: dict[str, tuple[str, ...]] = {}
    for each in some:
        found[each[end]] = (*found.get(each[end], ()), each)
    return found


@lru_cache(maxsize=4096)
def _compiled_regex(patterns: tuple[str, ...], flags: re.RegexFlag) -> re.Pattern[str]:
    pieces = [
        _alternative_regex(each) for pattern in patterns for each in _regex_texts_of_alternatives(pattern)
    ]
    return re.compile("|".join(pieces), flags)


def brace_alternatives(pattern: str) -> list[str]:
    """Expand the braces of a pattern into patterns without braces; raises `BadGlob` if there are too many.

    Together they match what the pattern matches, and each can be split at its slashes.
    """
    pieces = ("/" if match["escaped"] == "/" else match[0] for match in _PIECE.finditer(pattern))
    return _expand_braces(pattern, pieces)


def _regex_texts_of_alternatives(pattern: str) -> list[str]:
    """Expand the braces of a pattern into alternatives, each as regex text with slashes and star marks."""
    return _expand_braces(pattern, _regex_pieces(pattern))


def _expand_braces(pattern: str, pieces: Iterable[str]) -> list[str]:
    if len(pattern) > _MAX_CHARS:
        raise BadGlob(f"the pattern is too long ({len(pattern)} characters)")
    # One frame for each open brace: complete alternatives, and those still growing.
    frames: list[tuple[list[str], list[str]]] = [([], [""])]
    for piece in pieces:
        complete, growing = frames[-1]
        inside = len(frames) > 1
        if piece == "{":
            frames.append(([], [""]))
        elif piece == "," and inside:
            complete += growing
            growing[:] = [""]
        elif piece == "}" and inside:
            frames.pop()
            # Braces without a comma are literal: templates have folders called `{{name}}`.
            choices = complete + growing if complete else [rf"\{{{each}\}}" for each in growing]
            _append_every_end(frames[-1][1], choices)
        else:
            _append_every_end(growing, [piece])
    if len(frames) > 1:
        raise BadGlob(f"`{{` is not closed in {pattern[:200]!r}")
    return frames[0][1]


def _append_every_end(starts: list[str], ends: list[str]) -> None:
    """Combine every start with every end, in place; raises `BadGlob` if there would be too many."""
    size = len(starts) * sum(map(len, ends)) + len(ends) * sum(map(len, starts))
    if len(starts) * len(ends) > _MAX_ALTERNATIVES or size > _MAX_EXPANDED_CHARS:
        raise BadGlob(f"its braces expand to more than {_MAX_ALTERNATIVES} alternatives")
    starts[:] = [start + end for start in starts for end in ends]


def _regex_pieces(pattern: str) -> Iterator[str]:
    """Yield the regex text of each piece of a pattern, and the characters that structure it."""
    for match in _PIECE.finditer(pattern):
        kind, text = str(match.lastgroup), match[str(match.lastgroup)]
        if kind == "set":
            yield _character_set_regex(text)
        elif kind != "sign":
            # Put commas in brackets, so that they don't separate alternatives.
            yield re.escape(text).replace(",", "[,]")
        elif text in "[\\\0":
            raise BadGlob(f"`{text}` is incomplete or not allowed in {pattern[:200]!r}")
        else:
            yield {"*": _STAR, "?": _ANY, "]": r"\]"}.get(text, text)


def _character_set_regex(content: str) -> str:
    """Translate a character set in square brackets into a regex that never matches a slash."""
    negated = content[0] in "!^"
    items = ""
    for first, last in _SET_ITEM.findall(content[negated:]):
        if last and last < first:
            raise BadGlob(f"the range {first}-{last} is empty")
        items += re.escape(first) + (f"-{re.escape(last)}" if last else "")
    if "/" in content or _STAR in content or not items:
        raise BadGlob(f"[{content}] can't match any character of a name")
    return rf"(?!\x2f)[{'^' if negated else ''}{items}]"


def _alternative_regex(alternative: str) -> str:
    """Translate one alternative of a pattern into a regex for the start of a path."""
    end = "/" if alternative.endswith("/") else r"(?:/|\Z)"
    body = alternative.rstrip("/")
    parts = [part for part in body.split("/") if part not in ("", r"\.")]
    if not parts:
        raise BadGlob("the pattern names no file or folder")
    if "/" not in body:
        parts.insert(0, _STAR * 2)
    if _is_double_star(parts[-1]):
        parts.append(_STAR)
    parts[:-1] = [part if _is_double_star(part) else _component_regex(part, "/") for part in parts[:-1]]
    parts[-1] = _component_regex(parts[-1], end)
    regex = opened = ""
    for part, before in zip(parts, ["", *parts], strict=False):
        if not _is_double_star(part):
            regex += part
        elif not _is_double_star(before):
            regex += f"{opened}(?>(?:{_ANY}++/)*?"
            opened = ")"
    return regex + opened


def _is_double_star(part: str) -> bool:
    return len(part) > 1 and not part.strip(_STAR)


def _component_regex(part: str, end: str) -> str:
    """Translate one path component, with its stars and its terminator, into a regex."""
    first, *others = _STARS.split(part)
    if not others:
        return first + end
    *inner, last = others
    if not (first or inner or last):
        return f"{_ANY}++{end}"
    middle = "".join([f"(?>{_ANY}*?{piece})" for piece in inner])
    return f"(?>{first}{middle}{_ANY}*{last}{end})"


_PLAIN = re.compile(r"[^*?\[\]{}\\/\x00-\x1f\x7f-\U0010ffff]+")
_NO_PLAIN = re.compile(rf"\[{_SET}\]|\{{.*|\\.", re.DOTALL)
_BETWEEN = "\0"


class GlobPrefilter:
    """A fast, case-insensitive prefilter for globs: paths that it does not return match none of them."""

    def __init__(self, globs: Iterable[str]) -> None:
        needles = {_rarest_literal(glob) for glob in globs}
        self._everything = "" in needles
        self._bundles = [] if self._everything else _regexes_by_common_start(needles)

    def possible_matches(self, paths: Sequence[str]) -> set[str]:
        """Return the paths that may match one of the globs; the others certainly do not."""
        if self._everything:
            return set(paths)
        if not self._bundles:
            return set()
        whole = _BETWEEN.join(paths)
        if not whole.isascii():
            # `lower` is not full case folding for non-ASCII letters: leave such paths to the globs.
            odd = {path for path in paths if not path.isascii()}
            return odd | self.possible_matches([path for path in paths if path.isascii()])
        whole = whole.lower()
        # `findall` skips a needle that overlaps the one before it, but then the one before it selects the
        # path.
        present = {needle for bundle in self._bundles for needle in bundle.findall(whole)}
        return {path for path in paths if any(needle in path.lower() for needle in present)}


@lru_cache(maxsize=4096)
def _rarest_literal(glob: str) -> str:
    """Return the rarest literal text that a path must contain to match a glob; empty if there is none."""
    pieces = [piece for piece in _NO_PLAIN.sub("*", glob).split("/") if piece != "."]
    runs = [run for piece in pieces for run in _PLAIN.findall(piece)]
    # Prefer text that begins with a dot: a hidden name or a suffix, which few paths share.
    return max(runs, key=lambda run: (run.startswith("."), len(run)), default="").lower()


def _regexes_by_common_start(needles: Iterable[str]) -> list[re.Pattern[str]]:
    """Combine literal texts that begin alike into one regex each, for a fast search through all paths."""
    alike: dict[str, list[str]] = {}
    for needle in sorted(needles):
        # A leading punctuation character is rare enough as a common start, a letter is not.
        alike.setdefault(needle[: 3 if needle[0].isalnum() else 1], []).append(needle)
    return [_regex_of_any_needle(start, bundle) for start, bundle in alike.items()]


def _regex_of_any_needle(start: str, needles: Sequence[str]) -> re.Pattern[str]:
    rests = "|".join(re.escape(needle[len(start) :]) for needle in needles)
    return re.compile(f"{re.escape(start)}(?:{rests})")


_WITH_SUFFIX = re.compile(r"[\w*?-]*\.(?:[\w*?.-]+|[\w*?.-]*\{[\w*?.,-]+\})")
_STAR_RUN = re.compile(r"\*+")
_NAME_CHARS = 255
_END = "\x01"
"""A sentinel name below a path, so that a glob can match the path itself but nothing below it."""


def suffix_globs(globs: Sequence[str]) -> tuple[str, ...]:
    """Return the file name part of each glob if all of them have a suffix, as `*.py` does; otherwise none.

    Such globs are meant for files: they select a folder called `x.py` without its content.
    """
    lasts = [glob.rpartition("/")[2] for glob in globs if not glob.startswith("!")]
    names = [_STAR_RUN.sub("*", last) for last in lasts]
    fit = all(len(name) <= _NAME_CHARS and _WITH_SUFFIX.fullmatch(name) for name in names)
    return tuple(names) if fit else ()


class PathSelection:
    """Selection of paths by globs to include and, after a `!`, to exclude.

    Globs are relative to the searched folder or to the workspace. `decided` means that the caller has
    already matched the included globs, so only excluded and hidden names are filtered out; globs alone
    never select hidden names. With `itself`, a glob selects the paths that it names, but not the paths
    below them.
    """

    def __init__(
        self,
        globs: Sequence[str],
        *,
        root: str = ".",
        case_sensitive: bool = True,
        hidden: bool = False,
        decided: bool = False,
        itself: bool = False,
    ) -> None:
        wanted = [glob for glob in globs if not glob.startswith("!")]
        unwanted = [glob[1:] for glob in globs if glob.startswith("!")]
        meant = GlobsWithoutDescendants if itself else GlobSet
        self._wanted = meant(wanted, case_sensitive=case_sensitive) if wanted else None
        names = suffix_globs(globs)
        self._names = GlobSet(names, case_sensitive=case_sensitive) if names else None
        self._unwanted = GlobSet(unwanted, case_sensitive=case_sensitive) if unwanted else None
        self._shows_hidden = hidden or not globs
        self._decided = decided
        self._root = root
        self._prefix = 0 if root == "." else len(root) + 1

    def takes(self, path: str) -> bool:
        """Whether the globs select a path; the root of the search is always selected."""
        if path == self._root:
            return True
        name = path.rpartition("/")[2]
        if not self._shows_hidden and name.startswith("."):
            return False
        if self._names and not self._names.matches(name):
            return False
        if self._unwanted and self._has_match(self._unwanted, path):
            return False
        return self._decided or self._wanted is None or self._has_match(self._wanted, path)

    def filter_selected_paths(self, paths: Sequence[str]) -> Sequence[str]:
        """Filter paths to those that the globs select."""
        if self._decided and not self._unwanted and (self._shows_hidden or not _has_hidden_path(paths)):
            return paths
        if self._wanted is None and self._unwanted is None and self._shows_hidden:
            return paths
        return [path for path in paths if self.takes(path)]

    def _has_match(self, globs: "GlobSet | GlobsWithoutDescendants", path: str) -> bool:
        return globs.matches(path[self._prefix :]) or (self._prefix > 0 and globs.matches(path))


class GlobsWithoutDescendants:
    """A set of globs that match only the paths they name, not the paths below a matching folder."""

    def __init__(self, globs: Sequence[str], *, case_sensitive: bool) -> None:
        bare = [glob.rstrip("/") for glob in globs]
        # `a/**` matches everything in `a`, not `a` itself.
        whole = [f"{glob}/*" if glob.endswith("/**") else glob for glob in bare]
        self._names = GlobSet([f"{g}/{_END}" for g in whole if "/" not in g], case_sensitive=case_sensitive)
        self._paths = GlobSet([f"{g}/{_END}" for g in whole if "/" in g], case_sensitive=case_sensitive)

    def matches(self, path: str) -> bool:
        """Whether a path itself, not only a folder above it, matches one of the globs."""
        name = path.rpartition("/")[2]
        return self._names.matches(f"{name}/{_END}") or self._paths.matches(f"{path}/{_END}")


@dataclass(frozen=True)
class PathGlobs:
    """The globs of one policy rule and its exceptions, matched case-insensitively.

    The policy uses the same object for tools and, through the sandbox, for commands.
    """

    globs: tuple[str, ...]
    """Each covers a file, symlink or folder and everything below; without globs, every path is covered."""
    exceptions: tuple[str, ...] = ()
    """A glob with a slash exempts what it matches and everything below it.

    A bare name exempts only the path with that name: paths inside such a folder are judged as if the folder
    had another name.
    """

    def __reduce__(self) -> tuple[type["PathGlobs"], tuple[tuple[str, ...], tuple[str, ...]]]:
        """Pickle only the globs: the compiled patterns are large, and are recreated on use."""
        return PathGlobs, (self.globs, self.exceptions)

    def covers(self, path: str) -> bool:
        """Whether a relative POSIX path is covered, by its own name or by a folder above it."""
        if self.globs and not self._glob_set.matches(path):
            return False
        if not self.exceptions:
            return True
        name = path.rpartition("/")[2]
        if self._exempt_trees.matches(path) or self._exempt_names.matches(name):
            return False
        if not self._exempt_names.matches(path):
            return True
        names = path.split("/")
        return any(
            self._globs_without_descendants.matches("/".join(names[:depth]))
            for depth in range(1, len(names) + 1)
            if self.globs and not self._exempt_names.matches(names[depth - 1])
        )

    def exempts_all_below(self, folder: str) -> bool:
        """Whether everything below a folder is exempt, whatever its name."""
        return self._exempt_trees.matches(f"{folder}/\x01")

    def check(self) -> None:
        """Raise `BadGlob` if one of the globs can't be parsed."""
        for globs in (self._glob_set, self._exempt_trees, self._exempt_names):
            globs.matches("")

    @cached_property
    def _glob_set(self) -> GlobSet:
        return GlobSet(self.globs, case_sensitive=False)

    @cached_property
    def _globs_without_descendants(self) -> GlobsWithoutDescendants:
        return GlobsWithoutDescendants(self.globs, case_sensitive=False)

    @cached_property
    def _exempt_trees(self) -> GlobSet:
        return GlobSet([glob for glob in self.exceptions if "/" in glob], case_sensitive=False)

    @cached_property
    def _exempt_names(self) -> GlobSet:
        return GlobSet([glob for glob in self.exceptions if "/" not in glob], case_sensitive=False)


def any_covers(path_globs: Iterable[PathGlobs], path: str) -> bool:
    """Whether any of the rules covers a path; the exceptions of one rule don't affect the others."""
    return any(rule.covers(path) for rule in path_globs)


def _has_hidden_path(paths: Sequence[str]) -> bool:
    whole = "/" + "\0/".join(paths)
    return "/." in whole
