"""The folders of a workspace (usually one, or several that appear as named subfolders), and of its state.

A workspace of several folders is represented by a folder in our state with a symlink to each of them. So it
has a path, like every other workspace, and a journal. Only handtools writes there: only symlinks in our
state are treated as workspace folders; symlinks inside a project stay ordinary symlinks.
"""

import contextlib
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import count
from pathlib import Path

from handtools.core.errors import HostError, UsageError
from handtools.host.home_folders import STATE_VARIABLE, state_root

COMBINED_FOLDER = "combined"
"""The folder in our state that contains workspaces with several folders."""
_UNFIT_CHARS = re.compile(r"[\x00-\x20\x7f-\x9f\\/:*?\[\]{}!~]+")
"""Characters with a special meaning in a path argument or a glob; they are replaced in a folder's name."""
_SHOWN_NAMES = 3


OneOrMoreFolders = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]
"""A folder, or several that make up one workspace."""


def combined_workspace(folders: OneOrMoreFolders) -> Path:
    """Return the path of a workspace with these folders, creating it if necessary.

    A single folder is its own workspace. Raises `UsageError` if a folder is inside another one.
    """
    if isinstance(folders, (str, os.PathLike)):
        return Path(folders)
    if not folders:
        raise UsageError("A workspace needs a folder.")
    if len(folders) == 1:
        return Path(folders[0])
    real = sorted(os.path.realpath(each) for each in folders)
    links = dict(sorted(zip(_distinct_folder_names(real), real, strict=True)))
    _check_folders(links)
    digest = hashlib.sha256(os.fsencode("\0".join(real))).hexdigest()[:12]
    view = state_root() / COMBINED_FOLDER / f"{'+'.join([*links][:_SHOWN_NAMES])[:60]}-{digest}"
    try:
        view.mkdir(0o755, parents=True, exist_ok=True)
        for name, folder in links.items():
            if not os.path.lexists(view / name):
                os.symlink(folder, view / name)
    except FileExistsError:
        pass  # another process is creating it
    except OSError as error:
        raise HostError(f"Can't create {view}: {error.strerror}.") from error
    return view


def workspace_folders(root: str | os.PathLike[str]) -> Mapping[str, str]:
    """Return the real paths of a workspace's folders by displayed name; a single folder has the name ""."""
    real = os.path.realpath(root)
    return _linked_folders(real) if _is_combined(real) else {"": real}


def is_in_workspace(path: str | os.PathLike[str], root: str | os.PathLike[str]) -> bool:
    """Whether a path, with symlinks resolved, is a workspace folder or inside one."""
    return path_in_workspace(os.path.realpath(path), root) is not None


def path_in_workspace(path: str, root: str | os.PathLike[str]) -> str | None:
    """Convert an absolute path, without resolving symlinks, to a workspace path; None if it is outside.

    The path `.` means the whole workspace.
    """
    return path_in_folders(path, shown_folders(root))


def path_in_folders(path: str, shown: Iterable[tuple[str, str]]) -> str | None:
    """Like `path_in_workspace`, but with the result of one `shown_folders` call, to convert many paths."""
    for name, folder in shown:
        above = f"{folder.rstrip('/')}/"
        if path == folder or path.startswith(above):
            return os.path.normpath(os.path.join(name, path[len(above) :]))
    return None


def is_at_or_below(path: str, folder: str) -> bool:
    """Whether a normalized absolute path is a folder's or is below it; symlinks are not resolved."""
    return path == folder or path.startswith(f"{folder.rstrip('/')}/")


def real_path(path: str, root: str | os.PathLike[str]) -> str:
    """Convert a workspace path to an absolute path below the real path of its folder."""
    name, _, below = path.partition("/")
    folders = workspace_folders(root)
    if "" in folders:
        return os.path.normpath(os.path.join(folders[""], path))
    top = folders.get(name)
    return os.path.normpath(os.path.join(top, below) if top else os.path.join(os.path.realpath(root), path))


def shown_folders(root: str | os.PathLike[str]) -> Iterator[tuple[str, str]]:
    """Yield the name and absolute path of each workspace folder.

    With several folders, first come their real paths, then their symlinks, then the root (with the name "").
    """
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


def _check_folders(links: Mapping[str, str]) -> None:
    if len(set(links.values())) < len(links):
        raise UsageError("A folder was given twice. List each folder of a workspace only once.")
    for name, folder in links.items():
        if not os.path.isdir(folder):
            raise UsageError(f"{folder} is not a folder, so it can't be part of a workspace.")
        inner = [
            each for other, each in links.items() if other != name and Path(each).is_relative_to(folder)
        ]
        if inner:
            raise UsageError(
                f"{inner[0]} is inside {folder}, so a file would have two paths. Give only the outer one."
            )
        if state_root().is_relative_to(folder):
            raise UsageError(f"{folder} contains handtools' own state. Give folders inside it instead.")


def _distinct_folder_names(folders: Sequence[str]) -> list[str]:
    """Return a name for each folder: its own, prefixed with its parent's name if several share it."""
    own = [_sanitized_name(os.path.basename(folder)) for folder in folders]
    often = Counter(map(str.casefold, own))
    longer = [
        name
        if often[name.casefold()] == 1
        else f"{_sanitized_name(os.path.basename(os.path.dirname(folder)))}-{name}"
        for name, folder in zip(own, folders, strict=True)
    ]
    taken: dict[str, str] = {}
    for name in longer:
        free = (each for number in count(1) if (each := f"{name}-{number}" if number > 1 else name))
        chosen = next(each for each in free if each.casefold() not in taken)
        taken[chosen.casefold()] = chosen
    return list(taken.values())


def _sanitized_name(name: str) -> str:
    return _UNFIT_CHARS.sub("-", name).strip("-.") or "root"


_ODD_NAME_CHARS = re.compile(r"[^A-Za-z0-9._-]+")


def state_folder(root: str | Path) -> Path:
    """Return the folder for a workspace's journal and other state.

    It is created on first use, accessible only to its owner.
    """
    real = Path(os.path.realpath(root))
    folder = state_root() / workspace_id(real)
    if is_in_workspace(folder, real):
        raise HostError(
            f"The log of {real} would be inside the workspace. Set {STATE_VARIABLE} to another folder."
        )
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        reason = error.strerror or str(error)
        raise HostError(
            f"Can't create {folder}: {reason}. Set {STATE_VARIABLE} to another folder."
        ) from error
    return folder


def workspace_id(real: Path) -> str:
    """Return a readable folder name for a workspace, unique on this machine, derived from its real path."""
    name = _ODD_NAME_CHARS.sub("-", real.name).strip("-.")[:40] or "root"
    return f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"


def backups_folder(root: str | Path, state: Path) -> Path:
    """Return the folder for a workspace's backups, on the same file system if possible.

    It is in the state folder or next to the workspace.
    """
    real = Path(next(iter(workspace_folders(root).values())))
    device = real.stat().st_dev
    if not state.exists() or state.stat().st_dev == device:
        return state / "vault"
    beside = real.parent
    with contextlib.suppress(OSError):
        found = beside.stat()
        if found.st_dev == device and os.access(beside, os.W_OK) and found.st_uid == os.geteuid():
            return beside / f".handtools-vault-{state.name}"
    return state / "vault"
