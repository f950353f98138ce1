"""Masks over paths that a command must not read or write: private paths, system secrets and sockets."""

import os
import stat
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from handtools.core.errors import HostError
from handtools.host.files.backups import MASK_LAYER_NAME
from handtools.host.files.config_files import project_files
from handtools.host.files.git_repository import worktree_git_folder
from handtools.host.sandbox.launch import Launch, Overlay
from handtools.host.sandbox.runners.bubblewrap_args import SANDBOX_SYSTEM_FOLDERS, MaskedPaths
from handtools.host.workspace_folders import (
    path_in_folders,
    path_in_workspace,
    shown_folders,
    workspace_folders,
)

_WHITEOUT = os.makedev(0, 0)


def with_mask_layer(overlay: Overlay, paths: Sequence[str]) -> Overlay:
    """Return the overlay with a middle layer that hides these workspace paths."""
    layer = _Layer(Path(overlay.upper).with_name(MASK_LAYER_NAME), overlay.lower)
    for path in paths:
        os.mknod(layer.prepare_mask_path(path), stat.S_IFCHR, _WHITEOUT)
    layer.copy_folder_metadata()
    return replace(overlay, masks=os.fspath(layer.top))


class _Layer:
    """Builds the mask layer: copies of the workspace folders that contain paths to hide."""

    def __init__(self, top: Path, root: str) -> None:
        self.top = top
        self._root = root
        self._made: dict[Path, os.stat_result] = {}
        self._create_folder(top)

    def prepare_mask_path(self, path: str) -> Path:
        """Create the parent folders in the layer for a workspace path; returns its path in the layer."""
        place = self.top / os.path.relpath(path, self._root)
        for above in reversed(place.relative_to(self.top).parents):
            if self.top / above not in self._made:
                self._create_folder(self.top / above)
        return place

    def copy_folder_metadata(self) -> None:
        """Give the layer's folders the owners, modes and times of the workspace folders."""
        for folder, facts in self._made.items():
            if os.geteuid() == 0:
                os.chown(folder, facts.st_uid, facts.st_gid)
            folder.chmod(stat.S_IMODE(facts.st_mode))
            os.utime(folder, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    def _create_folder(self, place: Path) -> None:
        self._made[place] = os.stat(os.path.join(self._root, place.relative_to(self.top)))
        place.mkdir(0o700)


_UNIX_SOCKETS = "/proc/net/unix"


@cache
def system_secrets() -> MaskedPaths:
    """Return paths in /etc that this user can read but not every user can, to be masked."""
    files: list[str] = []
    folders: list[str] = []
    for folder, names, plain in os.walk("/etc"):
        shut = [name for name in names if not _world_readable(os.path.join(folder, name), 0o005)]
        folders += [os.path.join(folder, name) for name in shut]
        names[:] = [name for name in names if name not in shut]
        paths = [os.path.join(folder, name) for name in plain]
        files += [path for path in paths if not _world_readable(path, 0o004) and os.stat(path).st_size]
    return MaskedPaths(
        tuple(path for path in files if os.access(path, os.R_OK)),
        tuple(path for path in folders if os.access(path, os.X_OK)),
    )


def _world_readable(path: str, bits: int) -> bool:
    """Whether every user has read permission for a path; a symlink counts as readable."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return True
    return stat.S_ISLNK(mode) or mode & bits == bits


def visible_sockets(*folders: str) -> list[str]:
    """Return running programs' sockets in visible folders: a read-only mount does not block them."""
    try:
        rows = Path(_UNIX_SOCKETS).read_text("utf-8", "surrogateescape").splitlines()[1:]
    except OSError:
        return []
    seen = tuple(f"{tree.rstrip('/')}/" for tree in (*folders, *SANDBOX_SYSTEM_FOLDERS))
    paths = {row.split(None, 7)[7] for row in rows if row.count(" /")}
    return sorted(path for path in paths if path.startswith(seen) and os.path.exists(path))


def private_masks(root: str, private: Iterable[str]) -> MaskedPaths:
    """Return the masks for a workspace's private paths. Symlinks are resolved; targets outside it are skipped."""
    files: list[str] = []
    folders: list[str] = []
    shown, real_folder = tuple(shown_folders(root)), cache(os.path.realpath)
    for path in private:
        above, name = os.path.split(path)
        real = os.path.join(real_folder(above), name)
        real = os.path.realpath(real) if os.path.islink(real) else real
        if path_in_folders(real, shown) in {None, "."}:
            continue
        if os.path.isdir(real):
            folders.append(real)
        elif os.path.exists(real):
            files.append(real)
    # Paths in a masked folder are hidden with it.
    shut = tuple(f"{folder}/" for folder in folders)
    return MaskedPaths(
        tuple(sorted({path for path in files if not path.startswith(shut)})),
        tuple(sorted({path for path in folders if not path.startswith(shut)})),
    )


def limit_masks(masks: MaskedPaths, root: str, *, most: int) -> tuple[MaskedPaths, tuple[str, ...]]:
    """Reduce the masks to at most `most`, by hiding all of a folder that has many private files.

    Returns the masks, and a note about each such folder.
    """
    files, folders = list(masks.files), list(masks.folders)
    notes = []
    while len(files) + len(folders) > most:
        held = Counter(os.path.dirname(path) for path in files)
        for folder in workspace_folders(root).values():
            held.pop(folder, None)
        if not held:
            raise HostError(
                f"The workspace has {len(files) + len(folders):,} private paths; at most {most:,} can be "
                "hidden from a command that writes to it directly. Run it without `live`, move them into "
                "one folder, or declare in the policy that they are not private."
            )
        shut = held.most_common(1)[0][0]
        files = [path for path in files if not path.startswith(f"{shut}/")]
        folders = [*(path for path in folders if not path.startswith(f"{shut}/")), shut]
        notes.append(
            f"All of `{path_in_workspace(shut, root)}` is hidden from it: it has too many private files."
        )
    return MaskedPaths(tuple(files), tuple(folders)), tuple(notes)


def read_only_paths(launch: Launch, found: Iterable[str], *, writes_apart: bool) -> list[str]:
    """Return the existing workspace paths that must not be written, including a linked worktree's git data.

    If an overlay captures the command's writes, only the git data is returned, since captured writes are
    checked before they are applied. Otherwise the project's settings files are included, even a
    pyproject.toml if it has a table for handtools.
    """
    root = launch.root
    kept: set[str] = set()
    if launch.read_only_globs and not writes_apart:
        own = (str(path) for _, path in project_files(root))
        kept = {os.path.realpath(path) for path in (*found, *own)}
    inside = [
        path for path in kept if os.path.exists(path) and path_in_workspace(path, root) not in {None, "."}
    ]
    records = filter(None, map(_worktree_record, workspace_folders(root).values()))
    # If the repository is in the workspace, changes to its git data follow the rules for any repository.
    return [*sorted(inside), *(record for record in records if path_in_workspace(record, root) is None)]


def with_aliases(paths: Iterable[str], root: str) -> tuple[str, ...]:
    """Return the paths; in a workspace of several folders, also each one's path in the combined root."""
    shown = dict(shown_folders(root)) if "" not in workspace_folders(root) else {}
    places: dict[str, None] = {}
    for path in paths:
        places[path] = None
        inside = path_in_workspace(path, root) if shown else None
        if inside not in {None, "."}:
            places[os.path.join(shown[""], str(inside))] = None
    return tuple(places)


def _worktree_record(root: str) -> str | None:
    """Return the git folder of a linked worktree if the repository refers back to it; otherwise None."""
    record = worktree_git_folder(Path(root, ".git"))
    real = os.path.realpath(record.parents[1]) if record else ""
    return real if real and os.path.isfile(f"{real}/HEAD") else None
