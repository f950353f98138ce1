"""The installation: where our own program lies, and what of that is in a workspace.

A program that runs from the folder it works on loads its code from there, whenever it needs more of it. No check
of ours could tell such a file from one that was put in its place. So these folders are kept as they are: the
toolbox adds a rule about them.
"""

import os
import sys
from pathlib import Path

from handtools.host.programs import outside

_PACKAGE = Path(__file__).parents[1]


def installed_in(root: str | os.PathLike[str]) -> tuple[str, ...]:
    """The folders of a workspace that we run from, relative to it; usually none. `.` is the workspace itself."""
    if not os.fspath(root):
        return ()
    real = os.path.realpath(root)
    ours = {os.path.realpath(each): None for each in (sys.prefix, sys.base_prefix, _PACKAGE)}
    inside = [Path(each).relative_to(real).as_posix() for each in ours if Path(each).is_relative_to(real)]
    return tuple(each for each in inside if not any(_below(each, other) for other in inside))


def is_ours(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> bool:
    """Whether a path really lies in the part of a workspace that we run from."""
    folders = [os.path.join(os.path.realpath(root), each) for each in installed_in(root)]
    return any(Path(os.path.realpath(path)).is_relative_to(folder) for folder in folders)


def import_path(root: str | os.PathLike[str]) -> list[str]:
    """Where modules may come from: not from the workspace, unless we do, and not from wherever we happen to be."""
    return [
        folder
        for folder in sys.path
        if os.path.isabs(folder) and (outside(folder, root) or _holds_us(folder) or is_ours(folder, root))
    ]


def _holds_us(folder: str) -> bool:
    """Whether our own package comes from there."""
    return os.path.realpath(folder) == os.path.realpath(_PACKAGE.parent)


def _below(path: str, other: str) -> bool:
    return path != other and (other == "." or path.startswith(f"{other}/"))
