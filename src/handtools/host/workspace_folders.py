"""The folders of a workspace: usually one, or several that are shown below one folder, each by its name.

A workspace of several folders has a folder of its own in our state, with a link to each of them. So it has a path
like every other workspace, and a journal. Nobody else writes there: only links in our state are such folders, and
those that somebody puts into a project stay links. ADR 168.
"""

import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

from handtools.core.errors import HostError, UsageError
from handtools.host.home_folders import state_root

COMBINED_FOLDER = "combined"
"""The folder in our state that contains the workspaces of several folders."""
_UNFIT_CHARS = re.compile(r"[\x00-\x20\x7f-\x9f\\/:*?\[\]{}!~]+")
"""Characters that mean something else in a path argument or a glob, and are replaced in a folder's name."""
_SHOWN_NAMES = 3


OneOrMoreFolders = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A folder, or several that make up one workspace."""


def combined_workspace(folders: OneOrMoreFolders) -> Path:
    """The path of a workspace of these folders, made if it is not there yet; one folder is its own workspace.

    Raises `UsageError` for folders that lie in each other.
    """
    if isinstance(folders, (str, os.PathLike)):
        return Path(folders)
    if not folders:
        raise UsageError("A workspace needs a folder.")
    if len(folders) == 1:
        return Path(folders[0])
    real = sorted(os.path.realpath(each) for each in folders)
    links = dict(sorted(zip(_names(real), real, strict=True)))
    _check(links)
    digest = hashlib.sha256(os.fsencode("\0".join(real))).hexdigest()[:12]
    view = state_root() / COMBINED_FOLDER / f"{'+'.join([*links][:_SHOWN_NAMES])[:60]}-{digest}"
    try:
        view.mkdir(0o755, parents=True, exist_ok=True)
        for name, folder in links.items():
            if not os.path.lexists(view / name):
                os.symlink(folder, view / name)
    except FileExistsError:
        pass  # another process makes it at this moment
    except OSError as error:
        raise HostError(f"{view} can't be made: {error.strerror}.") from error
    return view


def workspace_folders(root: str | os.PathLike[str]) -> Mapping[str, str]:
    """The real paths of a workspace's folders by the names they are shown as; one folder alone has no name."""
    real = os.path.realpath(root)
    return _linked_folders(real) if _is_combined(real) else {"": real}


def is_in_workspace(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> bool:
    """Whether the real path of something lies in a folder of the workspace, or is one."""
    return path_in_workspace(os.path.realpath(path), root) is not None


def path_in_workspace(path: str, root: str | os.PathLike[str]) -> str | None:
    """The path in the workspace of an absolute path, which is taken as it is; None outside. `.` is all of it."""
    return path_in_folders(path, shown_folders(root))


def path_in_folders(path: str, shown: Iterable[tuple[str, str]]) -> str | None:
    """The same of many paths: for folders that `shown_folders` has looked up once."""
    for name, folder in shown:
        above = f"{folder.rstrip('/')}/"
        if path == folder or path.startswith(above):
            return os.path.normpath(os.path.join(name, path[len(above) :]))
    return None


def real_path(path: str, root: str | os.PathLike[str]) -> str:
    """The absolute path of a path in the workspace: below the real path of its folder."""
    name, _, below = path.partition("/")
    folders = workspace_folders(root)
    if "" in folders:
        return os.path.normpath(os.path.join(folders[""], path))
    top = folders.get(name)
    return os.path.normpath(os.path.join(top, below) if top else os.path.join(os.path.realpath(root), path))


def shown_folders(root: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """Every absolute path at which a folder of the workspace is, with its name: the real one, then the link."""
    folders = workspace_folders(root)
    yield from folders.items()
    if "" not in folders:
        real = os.path.realpath(root)
        yield from ((name, os.path.join(real, name)) for name in folders)
        yield "", real


def _is_combined(real: str) -> bool:
    above, _ = os.path.split(real)
    if os.path.basename(above) != COMBINED_FOLDER:
        return False
    try:
        return above == os.path.join(state_root(), COMBINED_FOLDER)
    except HostError:
        return False


def _linked_folders(view: str) -> dict[str, str]:
    with os.scandir(view) as entries:
        return {
            entry.name: os.readlink(entry.path) for entry in sorted(entries, key=lambda each: each.name)
        }


def _check(links: Mapping[str, str]) -> None:
    if len(set(links.values())) < len(links):
        raise UsageError("A folder is given twice; a workspace of several folders has each of them once.")
    for name, folder in links.items():
        if not os.path.isdir(folder):
            raise UsageError(f"{folder} is no folder, and can't be one of a workspace.")
        inner = [
            each for other, each in links.items() if other != name and Path(each).is_relative_to(folder)
        ]
        if inner:
            raise UsageError(
                f"{inner[0]} lies in {folder}, so a file would have two paths. Name the outer one alone."
            )
        if state_root().is_relative_to(folder):
            raise UsageError(f"{folder} contains the record of handtools itself. Name folders in it.")


def _names(folders: Sequence[str]) -> list[str]:
    """The name of each folder: its own, with that of the folder above it if others have the same."""
    own = [_fit(os.path.basename(folder)) for folder in folders]
    often = Counter(map(str.casefold, own))
    longer = [
        name if often[name.casefold()] == 1 else f"{_fit(os.path.basename(os.path.dirname(folder)))}-{name}"
        for name, folder in zip(own, folders, strict=True)
    ]
    taken: dict[str, str] = {}
    for name in longer:
        free = (each for number in count(1) if (each := f"{name}-{number}" if number > 1 else name))
        chosen = next(each for each in free if each.casefold() not in taken)
        taken[chosen.casefold()] = chosen
    return list(taken.values())


def _fit(name: str) -> str:
    return _UNFIT_CHARS.sub("-", name).strip("-.") or "root"
