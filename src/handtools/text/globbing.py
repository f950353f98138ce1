r"""Globbing: path patterns as `.gitignore` has them, matched without exponential cases.

`*`, `?` and `[a-z]` stay within one component, `**` spans components, `{a,b}` are alternatives
and `\` takes the next character literally. A pattern without a slash (a trailing one aside)
matches at any depth, one with a slash from the root on. A trailing slash asks for a folder.
What matches a folder matches everything below it. Two stars beside other characters are one
star, and a leading `!` or `#` has no meaning of its own.

Why time is bounded: a wildcard takes the first place where the fixed text after it fits and is
never tried again (atomic groups). For patterns of this kind the first place is as good as any
later one, so nothing is lost, and the cost stays within the product of both lengths.
"""

import re
from collections.abc import Iterable, Iterator
from functools import lru_cache

_MOST_ALTERNATIVES = 1000
_MOST_CHARS = 1 << 15
_MOST_EXPANDED_CHARS = 1 << 19
# Alternatives are regex text in which two signs keep a meaning of their own: a slash between
# components and, as no path can hold one, NUL for a star.
_STAR = "\0"
_STARS = re.compile("\0+")
_ANY = r"[^\x2f]"
_PIECE = re.compile(
    r"""(?P<literal>[^][{}*?,/\\\0]+)
    | \[(?P<set>[!^]?+(?:\\.|[^\\])(?:\\.|[^]\\])*+)\]
    | \\(?P<escaped>[^\0])
    | (?P<sign>.)""",
    re.DOTALL | re.VERBOSE,
)
_SET_ITEM = re.compile(r"\\?(.)(?:-\\?(.))?", re.DOTALL)
_WILD = frozenset("*?[]{}\\/\0")


class BadGlob(ValueError):
    """A pattern that cannot be read."""


class Glob:
    """One path pattern."""

    __slots__ = ("_match", "case_sensitive", "pattern")

    def __init__(self, pattern: str, *, case_sensitive: bool = True) -> None:
        self.pattern = pattern
        self.case_sensitive = case_sensitive
        self._match = _compiled((pattern,), re.NOFLAG if case_sensitive else re.IGNORECASE).match

    def matches(self, path: str, *, folder: bool = False) -> bool:
        """Tell whether a relative POSIX path matches, taken as a folder or as a file."""
        return self._match(path + "/" if folder else path) is not None

    def __repr__(self) -> str:
        return f"Glob({self.pattern!r}, case_sensitive={self.case_sensitive})"


class AnyGlob:
    """An ordered union of patterns, cheap enough to ask about every file."""

    __slots__ = ("_folds", "_globs", "_match", "_match_all", "_names", "_prefixes", "_suffixes", "_tails")

    def __init__(self, patterns: Iterable[str], *, case_sensitive: bool = True) -> None:
        self._globs = tuple(Glob(each, case_sensitive=case_sensitive) for each in patterns)
        asked = dict.fromkeys(each.pattern for each in self._globs)
        # Most patterns are a name, `*.suffix`, `prefix*` or `**/folder/name`, where looking up beats any regex.
        # Without regard to case it does so for ASCII only: which other letters are the same, the regex knows.
        self._folds = not case_sensitive
        fold = str if case_sensitive else str.lower
        fixed = {each: _fixed(fold(each)) for each in asked if case_sensitive or each.isascii()}
        simple = [parts for parts in fixed.values() if parts]
        alone = [parts[0] for parts in simple if len(parts) == 1]
        self._names = frozenset(name for name in alone if "*" not in name)
        self._suffixes = _by_end((name[1:] for name in alone if name[0] == "*"), -1)
        self._prefixes = _by_end((name[:-1] for name in alone if name[-1] == "*"), 0)
        self._tails: dict[str, list[list[str]]] = {}
        for *above, name in simple:
            if above:
                self._tails.setdefault(name, []).append(above)
        others = tuple(each for each in asked if not fixed.get(each))
        flags = re.NOFLAG if case_sensitive else re.IGNORECASE
        self._match = _compiled(others, flags).match if others else None
        self._match_all = _compiled(tuple(asked), flags).match if simple and not case_sensitive else None

    def matches(self, path: str, *, folder: bool = False) -> bool:
        """Tell whether any pattern matches."""
        if self._folds and not path.isascii():
            match = self._match_all or self._match
            return bool(match and match(path + "/" if folder else path))
        names = (path.lower() if self._folds else path).split("/")
        if not self._names.isdisjoint(names) or any(map(self._is_like, names)):
            return True
        if not self._tails.keys().isdisjoint(names) and self._ends_somewhere(names):
            return True
        return bool(self._match and self._match(path + "/" if folder else path))

    def _is_like(self, name: str) -> bool:
        """Whether a name begins or ends as a pattern wants it to."""
        ends, starts = self._suffixes.get(name[-1:]), self._prefixes.get(name[:1])
        return bool((ends and name.endswith(ends)) or (starts and name.startswith(starts)))

    def _ends_somewhere(self, names: list[str]) -> bool:
        """Whether some component stands below the ones that a pattern wants above it."""
        return any(
            names[max(0, place - len(above)) : place] == above
            for place, name in enumerate(names)
            for above in self._tails.get(name, ())
        )

    def which(self, path: str, *, folder: bool = False) -> str | None:
        """Give the first pattern that matches."""
        hits = (each.pattern for each in self._globs if each.matches(path, folder=folder))
        return next(hits, None)


def _fixed(pattern: str) -> list[str]:
    """The components of a pattern that is a name, maybe with one star at an end, or `**/` and names; or none."""
    if len(pattern) > 1 and (_WILD.isdisjoint(pattern[1:]) or _WILD.isdisjoint(pattern[:-1])):
        ends = pattern[0] + pattern[-1]
        return [pattern] if _WILD.isdisjoint(ends.replace("*", "", 1)) else []
    parts = pattern.removeprefix("**/").split("/")
    fixed = all(part not in {"", "."} and _WILD.isdisjoint(part) for part in parts)
    return parts if fixed and (len(parts) == 1 or pattern.startswith("**/")) else []


def _by_end(some: Iterable[str], end: int) -> dict[str, tuple[str, ...]]:
    """Texts by their first or last character: no name has to be compared with each."""
    found: dict[str, tuple[str, ...]] = {}
    for each in some:
        found[each[end]] = (*found.get(each[end], ()), each)
    return found


@lru_cache(maxsize=4096)
def _compiled(patterns: tuple[str, ...], flags: re.RegexFlag) -> re.Pattern[str]:
    pieces = [_translated(each) for pattern in patterns for each in _alternatives(pattern)]
    return re.compile("|".join(pieces), flags)


def _alternatives(pattern: str) -> list[str]:
    """Expand the braces; what comes back is regex text, slashes and star marks."""
    if len(pattern) > _MOST_CHARS:
        raise BadGlob(f"a pattern of {len(pattern)} characters is too long")
    # One frame for each open brace: the choices that are complete, and those still growing.
    frames: list[tuple[list[str], list[str]]] = [([], [""])]
    for piece in _pieces(pattern):
        complete, growing = frames[-1]
        inside = len(frames) > 1
        if piece == "{":
            frames.append(([], [""]))
        elif piece == "," and inside:
            complete += growing
            growing[:] = [""]
        elif piece == "}" and inside:
            frames.pop()
            # Without a comma it is no choice: `{{name}}` is what templates call a folder.
            choices = complete + growing if complete else [rf"\{{{each}\}}" for each in growing]
            _grow(frames[-1][1], choices)
        else:
            _grow(growing, [piece])
    if len(frames) > 1:
        raise BadGlob(f"`{{` is not closed in {pattern[:200]!r}")
    return frames[0][1]


def _grow(starts: list[str], ends: list[str]) -> None:
    """Continue every start with every end."""
    size = len(starts) * sum(map(len, ends)) + len(ends) * sum(map(len, starts))
    if len(starts) * len(ends) > _MOST_ALTERNATIVES or size > _MOST_EXPANDED_CHARS:
        raise BadGlob(f"braces stand for more than {_MOST_ALTERNATIVES} alternatives")
    starts[:] = [start + end for start in starts for end in ends]


def _pieces(pattern: str) -> Iterator[str]:
    """Give the regex text of each piece, and the signs that structure the pattern."""
    for match in _PIECE.finditer(pattern):
        kind, text = str(match.lastgroup), match[str(match.lastgroup)]
        if kind == "set":
            yield _set(text)
        elif kind != "sign":
            # In brackets an escaped comma is no longer the sign between alternatives.
            yield re.escape(text).replace(",", "[,]")
        elif text in "[\\\0":
            raise BadGlob(f"`{text}` stands alone in {pattern[:200]!r}")
        else:
            yield {"*": _STAR, "?": _ANY, "]": r"\]"}.get(text, text)


def _set(content: str) -> str:
    """Translate what stands between square brackets; a slash never matches it."""
    negated = content[0] in "!^"
    items = ""
    for first, last in _SET_ITEM.findall(content[negated:]):
        if last and last < first:
            raise BadGlob(f"the range {first}-{last} is empty")
        items += re.escape(first) + (f"-{re.escape(last)}" if last else "")
    if "/" in content or not items:
        raise BadGlob(f"[{content}] can match no character of a name")
    return rf"(?!\x2f)[{'^' if negated else ''}{items}]"


def _translated(alternative: str) -> str:
    """Translate one alternative into a regex for the start of a path."""
    end = "/" if alternative.endswith("/") else r"(?:/|\Z)"
    body = alternative.rstrip("/")
    parts = [part for part in body.split("/") if part not in ("", r"\.")]
    if not parts:
        raise BadGlob("a pattern must name something")
    if "/" not in body:
        parts.insert(0, _STAR * 2)
    if _is_span(parts[-1]):
        parts.append(_STAR)
    parts[:-1] = [part if _is_span(part) else _component(part, "/") for part in parts[:-1]]
    parts[-1] = _component(parts[-1], end)
    regex = opened = ""
    for part, before in zip(parts, ["", *parts], strict=False):
        if not _is_span(part):
            regex += part
        elif not _is_span(before):
            regex += f"{opened}(?>(?:{_ANY}++/)*?"
            opened = ")"
    return regex + opened


def _is_span(part: str) -> bool:
    return len(part) > 1 and not part.strip(_STAR)


def _component(part: str, end: str) -> str:
    """Translate one component and what ends it."""
    first, *others = _STARS.split(part)
    if not others:
        return first + end
    *inner, last = others
    if not (first or inner or last):
        return f"{_ANY}++{end}"
    middle = "".join([f"(?>{_ANY}*?{piece})" for piece in inner])
    return f"(?>{first}{middle}{_ANY}*{last}{end})"
