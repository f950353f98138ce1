"""Path arguments of a model, made relative to the workspace root or refused; specs like `a.py:10-40`.

Also handles `file:` URLs, names similar to one that does not exist, and the parent folders of paths.

A `..` is refused anywhere in a path. Above the root it would leave the workspace; further down, `a/../b` is
`b` only if `a` is not a symlink, which the text alone can't tell. A spec names a file and a part of it, as
compilers, test runners and people write it: `a.py:10-40`, `a.py:10`, `a.py::Class.method`. The column of
`a.py:10:5` is dropped.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

MAX_PATH_BYTES = 4096
MAX_NAME_BYTES = 255

_FILE_URL = re.compile(r"file:(?://(?P<host>[^/]*))?(?P<path>/.*)", re.IGNORECASE | re.DOTALL)
_DRIVE = re.compile(r"[A-Za-z]:(?:[\\/]|\Z)")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_MIN_NAME_SIMILARITY = 75.0


class BadPath(ValueError):
    """Raised for a path that can't be in the workspace, with the reason and what to write instead."""

    def __init__(self, path: str, reason: str, hint: str = "Use a path below the root.") -> None:
        super().__init__(f"{path[:200]!r} {reason}. {hint}")
        self.path = path
        self.reason = reason
        self.hint = hint


@lru_cache(maxsize=512)
def workspace_relative(path: str, root: str) -> str:
    """Normalize a path or `file:` URL to a path relative to `root`, an absolute POSIX path.

    Raises `BadPath`.
    """
    plain = _path_of_file_url(path)
    _check_storable_name(path, plain)
    names = _path_components(plain)
    if ".." in names:
        raise _climbing_path_error(path, plain)
    if plain.startswith("/"):
        if not root.startswith("/"):
            raise ValueError(f"the root {root!r} is not absolute")
        above = _path_components(root)
        if names[: len(above)] != above:
            raise BadPath(path, "is outside the workspace")
        names = names[len(above) :]
    below = "/".join(names)
    # Check the normalized path, not the input, so that a normalized path is accepted again.
    _check_no_foreign_syntax(path, below)
    return below or "."


def file_url(path: str) -> str:
    """Return the `file:` URL of an absolute path."""
    return f"file://{url_escaped_path(path)}"


def url_escaped_path(path: str) -> str:
    """Percent-encode a path for use in a URL."""
    from urllib.parse import quote

    return quote(path, errors="surrogateescape")


def path_to_printable(path: str) -> str:
    """Encode a relative path as printable text on one line; `path_from_printable` decodes it."""
    return path if path.isprintable() else f"/{url_escaped_path(path)}"


def path_from_printable(text: str) -> str:
    """Decode a path that `path_to_printable` encoded."""
    return _without_percent_escapes(text[1:]) if text.startswith("/") else text


_Value = TypeVar("_Value")


def inherited_value(path: str, known: dict[str, _Value], derive: Callable[[_Value, str], _Value]) -> _Value:
    """Return the value of a path, which `derive` computes from the value of its parent folder and the path.

    `known` caches the values; it must contain the root's value under the empty path. Each folder is
    computed once, so that the cost of many paths does not grow with the square of their depth.
    """
    steps = []
    while path not in known:
        steps.append(path)
        path = path.rpartition("/")[0]
    value = known[path]
    for step in reversed(steps):
        value = known[step] = derive(value, step)
    return value


def folders_above(paths: Iterable[str]) -> set[str]:
    """Return all parent folders of some paths, without the root; each folder is visited once."""
    found: set[str] = set()
    for path in paths:
        folder = path.rpartition("/")[0]
        while folder and folder not in found:
            found.add(folder)
            folder = folder.rpartition("/")[0]
    return found


def similar_names(wanted: str, names: Iterable[str], *, most: int = 5) -> list[str]:
    """Return the paths that a misspelt path probably means, likeliest first, up to `most`."""
    pool = [name for name in dict.fromkeys(names) if name != wanted]
    kin = [name for *_, name in sorted(_sort_keys_of_related_paths(wanted, pool))]
    return (kin or _paths_at_small_distance(wanted, pool, most))[:most]


def _path_components(path: str) -> list[str]:
    return [name for name in path.split("/") if name not in ("", ".")]


def _path_of_file_url(path: str) -> str:
    """Return the path of a local `file:` URL; other text is unchanged. Raises `BadPath` for other hosts."""
    match = _FILE_URL.fullmatch(path)
    if match is None:
        return path
    if match["host"] not in (None, "", "localhost"):
        raise BadPath(path, "is on another machine")
    return _without_percent_escapes(match["path"])


def _without_percent_escapes(path: str) -> str:
    from urllib.parse import unquote

    return unquote(path, errors="surrogateescape")


def _check_storable_name(path: str, plain: str) -> None:
    """Raise `BadPath` for control characters, invalid Unicode, or names too long for a file system."""
    if _CONTROL.search(plain):
        raise BadPath(path, "contains a control character", "Write the name without it.")
    if _SURROGATE.search(plain):
        raise BadPath(path, "is not valid Unicode", "Write the name in UTF-8.")
    if len(plain.encode()) > MAX_PATH_BYTES:
        raise BadPath(path, f"is longer than {MAX_PATH_BYTES} bytes")
    if any(len(name.encode()) > MAX_NAME_BYTES for name in plain.split("/")):
        raise BadPath(path, f"has a name longer than {MAX_NAME_BYTES} bytes")


def _check_no_foreign_syntax(path: str, below: str) -> None:
    """Raise `BadPath` for paths with a special meaning for a shell, a browser or Windows, such as `~/a`."""
    if below.startswith("~"):
        raise BadPath(path, "starts at a home folder")
    if _FILE_URL.match(below):
        raise BadPath(path, "contains a URL")
    if _DRIVE.match(below):
        raise BadPath(path, "starts at a Windows drive")
    if below.startswith("\\\\"):
        raise BadPath(path, "is a Windows network path")
    if "\\" in below:
        hint = f"Use forward slashes: `{below.replace(chr(92), '/')[:200]}`."
        raise BadPath(path, "contains a backslash", hint)


def _climbing_path_error(path: str, plain: str) -> BadPath:
    straight: list[str] = []
    for name in _path_components(plain):
        if name != "..":
            straight.append(name)
        elif straight:
            straight.pop()
        else:
            return BadPath(path, "goes above the workspace root")
    start = "/" if plain.startswith("/") else ""
    hint = f"Write it without: `{start}{'/'.join(straight)[:200] or '.'}`."
    return BadPath(path, "contains `..`, which may not lead where it seems to", hint)


def _sort_keys_of_related_paths(wanted: str, names: list[str]) -> Iterator[tuple[int, int, str]]:
    """Yield sort keys of the paths that differ from `wanted` only in case, folder or extension."""
    folder, _, base = wanted.rpartition("/")
    folders = set(folder.split("/"))
    folded, folded_base, stem = wanted.casefold(), base.casefold(), _name_stem(base.casefold())
    for name in names:
        own_folder, _, own_base = name.rpartition("/")
        own_folded = own_base.casefold()
        if own_folded == folded_base:
            rank = 0 if name.casefold() == folded else 1 if own_base == base else 2
        elif own_folded.startswith(stem) and _name_stem(own_folded) == stem:
            rank = 3 if own_folder == folder else 4
        else:
            continue
        yield rank, -len(folders.intersection(own_folder.split("/"))), name


def _name_stem(base: str) -> str:
    """Return a base name without its extension; `.env` has no extension."""
    return base.rpartition(".")[0] or base


def _paths_at_small_distance(wanted: str, names: list[str], most: int) -> list[str]:
    """Return the paths at a small edit distance, by full path or base name, most similar first."""
    from rapidfuzz import fuzz, process

    bases = [name.rpartition("/")[2] for name in names]
    base = wanted.rpartition("/")[2]
    hits = [
        (score, names[index])
        for query, choices in ((wanted, names), (base, bases))
        for _, score, index in process.extract(
            query, choices, scorer=fuzz.ratio, limit=most, score_cutoff=_MIN_NAME_SIMILARITY
        )
    ]
    hits.sort(key=lambda hit: -hit[0])
    return list(dict.fromkeys(name for _, name in hits))


_LINES_AFTER_PATH = re.compile(
    r"(?P<path>.+?):L?(?P<first>-?\d{1,9})(?:[-–]L?(?P<last>\d{0,9})|:\d+)?\Z", re.DOTALL
)


@dataclass(frozen=True, slots=True)
class PathSpec:
    """A path with, optionally, a symbol or a range of lines in that file."""

    path: str
    symbol: str = ""
    first: int | None = None
    last: int | None = None

    @property
    def is_whole_file(self) -> bool:
        """Whether the spec means the whole file, without a symbol or lines."""
        return not self.symbol and self.first is None and self.last is None


def parse_path_spec(text: str) -> PathSpec:
    """Parse `path`, `path:10-40` or `path::Class.method`; anything else is taken as a path."""
    path, mark, symbol = text.partition("::")
    if mark and path and symbol:
        return PathSpec(path, symbol)
    match = _LINES_AFTER_PATH.match(text)
    if match is None:
        return PathSpec(text)
    last = match["last"]
    return PathSpec(match["path"], "", int(match["first"]), int(last) if last else None)
