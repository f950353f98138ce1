"""Selecting: which paths below a folder were asked for by globs."""

from collections.abc import Sequence

from handtools.text.globbing import AnyGlob


class Selection:
    """Globs to take and, after a `!`, globs to leave: read from the folder searched or from the workspace.

    `decided` says that somebody else has matched the globs already; what is left is to keep
    hidden names out, which a glob by itself never lets in.
    """

    def __init__(
        self,
        globs: Sequence[str],
        *,
        root: str = ".",
        case_sensitive: bool = True,
        hidden: bool = False,
        decided: bool = False,
    ) -> None:
        wanted = [glob for glob in globs if not glob.startswith("!")]
        unwanted = [glob[1:] for glob in globs if glob.startswith("!")]
        self._wanted = AnyGlob(wanted, case_sensitive=case_sensitive) if wanted else None
        self._unwanted = AnyGlob(unwanted, case_sensitive=case_sensitive) if unwanted else None
        self._shows_hidden = hidden or not globs
        self._decided = decided
        self._root = root
        self._prefix = 0 if root == "." else len(root) + 1

    def takes(self, path: str) -> bool:
        """Tell whether a path was asked for; one that was named itself always was."""
        if path == self._root:
            return True
        if not self._shows_hidden and path.rpartition("/")[2].startswith("."):
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

    def _any(self, globs: AnyGlob, path: str) -> bool:
        return globs.matches(path[self._prefix :]) or (self._prefix > 0 and globs.matches(path))


def _any_hidden(paths: Sequence[str]) -> bool:
    whole = "/" + "\0/".join(paths)
    return "/." in whole
