"""The paths a sandboxed command must be able to read so that the programs on the user's PATH work.

For each folder on PATH these are the folder itself and the installation it belongs to: a virtual
environment and its base interpreter, the libraries next to a `bin`, and the targets of symlinks in the
folder, such as pipx's.
"""

import os
import stat
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from handtools.core.errors import UsageError
from handtools.host.files.syscalls import read_small_text
from handtools.host.sandbox.program_dependencies import contains_home_folder, node_modules_folder
from handtools.host.sandbox.runners.bubblewrap_args import SANDBOX_SYSTEM_FOLDERS
from handtools.host.workspace_folders import shown_folders

_PROGRAM_FOLDERS = frozenset({"bin", "sbin", "condabin", "shims"})
_BESIDE = ("lib", "lib32", "lib64", "libexec", "share", "include", "pkg", "src", "plugins")
"""Folders next to a `bin` that its programs need; other folders may belong to a project."""
_WHOLE = ("pyvenv.cfg", "conda-meta", "go.env")
"""A folder with one of these names in it is an installation: a virtual environment, conda or Go."""
_BROAD = frozenset({
    "/", "/bin", "/boot", "/dev", "/etc", "/home", "/lib", "/lib64", "/media", "/mnt", "/opt", "/proc", "/root",
    "/run", "/sbin", "/srv", "/sys", "/tmp", "/usr", "/var", "/var/lib", "/var/run", "/var/tmp",  # noqa: S108
})  # fmt: skip
_SECRET_FOLDERS = frozenset({
    ".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config", ".password-store", ".mozilla", ".git",
})  # fmt: skip
"""Folders with credentials: being on PATH doesn't make anything in them readable."""
_MAX_LINKS = 4096
"""How many entries of a folder are checked for symlinks."""
_MAX_STEPS = 1000
_SETTING_BYTES = 16 << 10


def folders_needed_by_path_programs(path: str, root: str, state: str) -> tuple[str, ...]:
    """Return the paths outside the workspace that programs on a PATH need, except system folders.

    Workspace files are not consulted: a project's symlink or `pyvenv.cfg` could point to a folder with
    secrets.
    """
    places = tuple(
        (place, _folder_modified_ns(place))
        for place in dict.fromkeys(path.split(os.pathsep))
        if os.path.isabs(place)
    )
    tops = tuple(dict.fromkeys(folder for _, folder in shown_folders(root)))
    return _path_folders(places, tops, os.path.realpath(state))


def validate_readable_path(path: str | Path, *, root: str, state: str) -> str:
    """Return the absolute form of a path to make readable; raises `UsageError` if it exposes too much."""
    given = os.path.abspath(os.path.expanduser(path))
    if is_too_broad_to_show(given):
        raise UsageError(f"Commands can't be allowed to read all of {given}. Name folders inside it.")
    tops = ((folder, "the workspace") for _, folder in shown_folders(root))
    for other, what in ((state, "this workspace's log"), *tops):
        if _is_within(os.path.realpath(given), other) or _is_within(other, os.path.realpath(given)):
            raise UsageError(f"Commands can't be allowed to read {given}: it overlaps with {what}.")
    return given


def is_too_broad_to_show(path: str) -> bool:
    """Whether a folder contains far more than programs: a system folder, the home folder or its parents."""
    return os.path.realpath(path) in _BROAD or contains_home_folder(path)


@lru_cache(maxsize=8)
def _path_folders(
    places: tuple[tuple[str, int], ...], tops: tuple[str, ...], state: str
) -> tuple[str, ...]:
    found: dict[str, None] = {}
    for place, changed in places:
        if changed and not _is_system(place) and not passes_through(place, *tops):
            for folder in _needed_paths(os.path.normpath(place), tops):
                if _may_be_shown(folder, tops, state):
                    found[folder] = None
    return tuple(found)


def _needed_paths(place: str, tops: tuple[str, ...]) -> Iterator[str]:
    """Yield the paths that programs in a PATH folder need: the folder, its installation, symlink targets."""
    for folder in dict.fromkeys((place, os.path.realpath(place))):
        yield folder
        yield from _prefix_folders(folder)
    yield from _link_targets(place, tops)


def _prefix_folders(folder: str) -> Iterator[str]:
    """Yield the folders of the installation that a program folder belongs to, if any."""
    prefix = os.path.dirname(folder)
    if (
        os.path.basename(folder) not in _PROGRAM_FOLDERS
        or is_too_broad_to_show(prefix)
        or _is_shared(prefix)
    ):
        return
    if any(os.path.lexists(os.path.join(prefix, name)) for name in _WHOLE):
        yield prefix
        yield from _base_interpreter(prefix)
        return
    # A git checkout is someone's project and may contain more than programs.
    if not os.path.lexists(os.path.join(prefix, ".git")):
        yield from (
            path for path in (os.path.join(prefix, name) for name in _BESIDE) if os.path.isdir(path)
        )


def _base_interpreter(prefix: str) -> Iterator[str]:
    """Yield the installation of a virtual environment's base interpreter."""
    for line in read_small_text(Path(prefix, "pyvenv.cfg"), _SETTING_BYTES).splitlines():
        name, _, value = line.partition("=")
        home = os.path.realpath(value.strip())
        known = name.strip() == "home" and os.path.isabs(value.strip()) and os.path.isdir(home)
        if known and os.path.dirname(home) != os.path.realpath(prefix):
            yield home
            yield from _prefix_folders(home)


def _link_targets(place: str, tops: tuple[str, ...]) -> Iterator[str]:
    """Yield the targets of symlinks that lead out of a folder, and the installations they belong to."""
    real = os.path.realpath(place)
    seen: set[str] = set()
    for path in _links(place):
        target = os.path.realpath(path)
        folder = os.path.dirname(target)
        if _is_within(target, real) or not os.path.isfile(target) or passes_through(path, *tops):
            continue
        yield target
        # The path to the target may contain more symlinks, such as `current` for a version.
        first = os.path.normpath(os.path.join(place, os.readlink(path)))
        for each in (os.path.dirname(first), folder):
            if each not in seen:
                seen.add(each)
                modules = node_modules_folder(os.path.join(each, "x"))
                yield from (modules,) if modules else _prefix_with_programs(each)


def _prefix_with_programs(folder: str) -> Iterator[str]:
    needed = list(_prefix_folders(folder))
    yield from (folder, *needed) if needed else ()


def _links(place: str) -> Iterator[str]:
    try:
        with os.scandir(place) as entries:
            for _, entry in zip(range(_MAX_LINKS), entries, strict=False):
                if entry.is_symlink():
                    yield entry.path
    except OSError:
        return


def _may_be_shown(path: str, tops: tuple[str, ...], state: str) -> bool:
    real = os.path.realpath(path)
    return (
        os.path.exists(real)
        and not is_too_broad_to_show(real)
        and not _is_system(real)
        and not _SECRET_FOLDERS.intersection(Path(real).parts)
        and not any(_is_within(real, other) or _is_within(other, real) for other in (state, *tops))
        and not passes_through(path, *tops)
    )


def passes_through(path: str, *folders: str) -> bool:
    """Whether a path, or a symlink on the way to it, is in one of the folders.

    Anyone who can write to these folders could redirect the path.
    """
    at, waiting = "/", [part for part in reversed(path.split("/")) if part]
    for _ in range(_MAX_STEPS):
        if any(_is_within(at, folder) for folder in folders):
            return True
        if not waiting:
            return False
        part = waiting.pop()
        at = os.path.dirname(at) if part == ".." else at if part == "." else os.path.join(at, part)
        if os.path.islink(at):
            target = os.readlink(at)
            waiting += [each for each in reversed(target.split("/")) if each]
            if any(_is_within(at, folder) for folder in folders):
                return True
            at = "/" if os.path.isabs(target) else os.path.dirname(at)
    return True


def _is_system(path: str) -> bool:
    return any(_is_within(os.path.realpath(path), folder) for folder in SANDBOX_SYSTEM_FOLDERS)


def _is_shared(prefix: str) -> bool:
    """Whether a prefix is `~/.local` or `~/.cargo`, which contain the data of many unrelated programs."""
    home = os.environ.get("HOME", "/")
    return os.path.realpath(prefix) in {
        os.path.realpath(os.path.join(home, name)) for name in (".local", ".cargo")
    }


def _is_within(path: str, folder: str) -> bool:
    return Path(path).is_relative_to(folder)


def _folder_modified_ns(place: str) -> int:
    """Return a folder's modification time in ns; 0 if there is no such folder."""
    try:
        found = os.stat(place)
    except OSError:
        return 0
    return found.st_mtime_ns if stat.S_ISDIR(found.st_mode) else 0
