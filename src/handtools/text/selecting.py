"""Selecting: which paths below a folder were asked for by globs."""

import re
from collections.abc import Sequence

from handtools.text.globbing import AnyGlob

_WITH_SUFFIX = re.compile(r"[\w*?-]*\.(?:[\w*?.-]+|[\w*?.-]*\{[\w*?.,-]+\})")
_STARS = re.compile(r"\*+")
_NAME_CHARS = 255
_END = "\x01"
"""Stands below a path as nothing on a disk does, so that a glob can name it."""


def suffixed(globs: Sequence[str]) -> tuple[str, ...]:
    """Give the names' part of each glob to take when all of them ask for a suffix, as `*.py` does; else none.

    Such a glob is meant for files: a folder called `x.py` does not stand for all that is in it.
    """
    lasts = [glob.rpartition("/")[2] for glob in globs if not glob.startswith("!")]
    names = [_STARS.sub("*", last) for last in lasts]
    fit = all(len(name) <= _NAME_CHARS and _WITH_SUFFIX.fullmatch(name) for name in names)
    return tuple(names) if fit else ()


class Selection:
    """Globs to take and, after a `!`, globs to leave: read from the folder searched or from the workspace.

    `decided` says that somebody else has matched the globs already; what is left is to keep
    hidden names out, which a glob by itself never lets in. With `itself` a glob means the paths that
    it names, and not what is below them.
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
        meant = Itself if itself else AnyGlob
        self._wanted = meant(wanted, case_sensitive=case_sensitive) if wanted else None
        names = suffixed(globs)
        self._names = AnyGlob(names, case_sensitive=case_sensitive) if names else None
        self._unwanted = AnyGlob(unwanted, case_sensitive=case_sensitive) if unwanted else None
        self._shows_hidden = hidden or not globs
        self._decided = decided
        self._root = root
        self._prefix = 0 if root == "." else len(root) + 1

    def takes(self, path: str) -> bool:
        """Tell whether a path was asked for; one that was named itself always was."""
        if path == self._root:
            return True
        name = path.rpartition("/")[2]
        if not self._shows_hidden and name.startswith("."):
            return False
        if self._names and not self._names.matches(name):
            return False
        if self._unwanted and self._any(self._unwanted, path):
            return False
        return self._decided or self._wanted is None or self._any(self._wanted, path)

    def of(self, paths: Sequence[str]) -> Sequence[str]:
        """Give the paths that were asked for."""
        if self._decided and not self._unwanted and (self._shows_hidden or not _any_hidden(paths)):
            return paths
        if self._wanted is None and self._unwanted is None and self._shows_hidden:
            return paths
        return [path for path in paths if self.takes(path)]

    def _any(self, globs: "AnyGlob | Itself", path: str) -> bool:
        return globs.matches(path[self._prefix :]) or (self._prefix > 0 and globs.matches(path))


class Itself:
    """Globs that do not go on below what they match."""

    def __init__(self, globs: Sequence[str], *, case_sensitive: bool) -> None:
        bare = [glob.rstrip("/") for glob in globs]
        # `a/**` is all that is in `a`, not `a` itself.
        whole = [f"{glob}/*" if glob.endswith("/**") else glob for glob in bare]
        self._names = AnyGlob([f"{g}/{_END}" for g in whole if "/" not in g], case_sensitive=case_sensitive)
        self._paths = AnyGlob([f"{g}/{_END}" for g in whole if "/" in g], case_sensitive=case_sensitive)

    def matches(self, path: str) -> bool:
        """Tell whether a path is one of those."""
        name = path.rpartition("/")[2]
        return self._names.matches(f"{name}/{_END}") or self._paths.matches(f"{path}/{_END}")


def _any_hidden(paths: Sequence[str]) -> bool:
    whole = "/" + "\0/".join(paths)
    return "/." in whole
