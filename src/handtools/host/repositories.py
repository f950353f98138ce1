"""Repositories: where git's own rules about ignored files are, when they are not below the workspace."""

import os
import stat
from pathlib import Path

from handtools.host.small_files import small_text

_POINTER = "gitdir: "
_BYTES = 1 << 20


def folders_above(root: str) -> tuple[str, ...]:
    """The folders above a workspace that is a part of a repository, from the repository's own on; else none."""
    if os.path.lexists(os.path.join(root, ".git")):
        return ()
    above = [str(folder) for folder in Path(root).parents]
    for depth, folder in enumerate(above, 1):
        if os.path.lexists(os.path.join(folder, ".git")):
            return tuple(reversed(above[:depth]))
    return ()


def linked_excludes(folder: str) -> str:
    """What `info/exclude` says for a worktree, whose `.git` is a file that leads to the repository."""
    try:
        own = _first_line(os.path.join(folder, ".git"))
        if not own.startswith(_POINTER):
            return ""
        git = os.path.join(folder, own.removeprefix(_POINTER))
        shared = os.path.join(git, _first_line(os.path.join(git, "commondir")))
        excludes = os.path.join(shared, "info", "exclude")
        return small_text(excludes, _BYTES) if is_plain(excludes, folder) else ""
    except (OSError, ValueError):
        return ""


def is_plain(path: str, root: str) -> bool:
    """Whether rules about names may be read there: from a plain file, and inside of the root through no link.

    Which names a rule hides tells what is in the file, and a link may lead to one that nobody may read.
    """
    try:
        plain = stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False
    written = os.path.normpath(path)
    return plain and (not written.startswith(f"{root}/") or os.path.realpath(path) == written)


def _first_line(path: str) -> str:
    return small_text(path, _BYTES).partition("\n")[0].rstrip("\r")
