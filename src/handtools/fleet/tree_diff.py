"""Compare two folders; if they are overlays, only the paths that their layers changed."""

import errno
import os
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from handtools.host.files.folder_handle import FolderHandle, join_path, open_inner_folder
from handtools.host.files.folder_trees import TreeEntry, copy_tree, remove_tree
from handtools.host.files.syscalls import is_root
from handtools.host.sandbox.overlay.whiteouts import entry_meaning

_COMPARED_CHUNK_BYTES = 1 << 20
_NOT_THERE_ERRNOS = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}


@dataclass(frozen=True, slots=True)
class TreeDifference:
    """A path that differs between two folders."""

    path: str
    action: Literal["added", "removed", "changed"]
    is_folder: bool = False
    """Whether it is a folder in the new tree, or in the old one if it was removed."""


def tree_differences(old: str, new: str, layers: Sequence[str] | None = None) -> list[TreeDifference]:
    """List the paths whose kind, mode, bytes or symlink target differ, each folder before its contents.

    `layers` are the overlayfs layers that contain the changes. Without them everything is compared.
    """
    return list(_differences_below(old, new, "", layers))


def _differences_below(
    old: str, new: str, path: str, layers: Sequence[str] | None
) -> Iterator[TreeDifference]:
    names, layers = _names_in_layers(path, layers)
    if names is None:
        names = {*_names_in_folder(os.path.join(old, path)), *_names_in_folder(os.path.join(new, path))}
    for name in sorted(names):
        inner = join_path(path, name)
        before, after = (_stat_or_none(os.path.join(top, inner)) for top in (old, new))
        if before is None and after is None:
            continue
        was_folder, is_folder = (
            found is not None and stat.S_ISDIR(found.st_mode) for found in (before, after)
        )
        if before is None or after is None:
            yield TreeDifference(inner, "added" if before is None else "removed", is_folder or was_folder)
        elif not _is_same_entry(os.path.join(old, inner), before, os.path.join(new, inner), after):
            yield TreeDifference(inner, "changed", is_folder)
        if was_folder or is_folder:
            # If it is a folder on only one side, everything below it differs: compare without the layers.
            yield from _differences_below(old, new, inner, layers if was_folder and is_folder else None)


def _names_in_layers(
    path: str, layers: Sequence[str] | None
) -> tuple[set[str] | None, Sequence[str] | None]:
    """The names in a folder that the layers contain, and the layers to use for its subfolders.

    None for both means that everything must be compared.
    """
    if layers is None:
        return None, None
    names: set[str] = set()
    for layer in layers:
        try:
            with FolderHandle.at(layer) as top, open_inner_folder(top, path) as folder:
                if path and _is_opaque_in_layer(top, path):
                    return None, None
                names.update(folder.names())
        except OSError as error:
            if error.errno not in _NOT_THERE_ERRNOS:
                raise
            # The layer does not have the folder. If it has a file instead, a higher layer made a new folder.
            if path and _has_non_folder(layer, path):
                return None, None
    return names, layers


def _is_opaque_in_layer(top_handle: FolderHandle, path: str) -> bool:
    above, _, name = path.rpartition("/")
    with open_inner_folder(top_handle, above) as parent:
        found = parent.find(name)
        return found is not None and entry_meaning(TreeEntry(path, parent, name, found)) == "opaque"


def _has_non_folder(layer: str, path: str) -> bool:
    """Whether a layer has a non-folder at a path or at one of its parents."""
    place = layer
    for part in path.split("/"):
        place = os.path.join(place, part)
        found = _stat_or_none(place)
        if found is None:
            return False
        if not stat.S_ISDIR(found.st_mode):
            return True
    return False


def _names_in_folder(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except (FileNotFoundError, NotADirectoryError):
        return []


def _stat_or_none(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _is_same_entry(old: str, before: os.stat_result, new: str, after: os.stat_result) -> bool:
    if stat.S_IFMT(before.st_mode) != stat.S_IFMT(after.st_mode):
        return False
    if stat.S_ISLNK(before.st_mode):
        return os.readlink(old) == os.readlink(new)
    if stat.S_IMODE(before.st_mode) != stat.S_IMODE(after.st_mode):
        return False
    return not stat.S_ISREG(before.st_mode) or (
        before.st_size == after.st_size and have_same_bytes(old, new)
    )


def have_same_bytes(one: str, other: str) -> bool:
    """Whether two files have the same content."""
    with open(one, "rb") as a, open(other, "rb") as b:
        while True:
            first, second = a.read(_COMPARED_CHUNK_BYTES), b.read(_COMPARED_CHUNK_BYTES)
            if first != second:
                return False
            if not first:
                return True


def apply_differences(differences: Sequence[TreeDifference], source: str, target: str) -> None:
    """Copy the differing paths from `source` to `target`, or delete them there.

    Owners, times and attributes are copied too.
    """
    with FolderHandle.at(source) as new, FolderHandle.at(target) as old:
        for each in differences:
            above, _, name = each.path.rpartition("/")
            if each.action == "removed":
                try:
                    with open_inner_folder(old, above) as there:
                        remove_tree(there, name)
                except (FileNotFoundError, NotADirectoryError):
                    continue  # already removed with its parent folder
                continue
            with open_inner_folder(new, above) as here, open_inner_folder(old, above) as there:
                _copy_entry(here, there, name)


def _copy_entry(handle: FolderHandle, folder_handle: FolderHandle, name: str) -> None:
    found, known = handle.stat(name), folder_handle.find(name)
    if not stat.S_ISDIR(found.st_mode):
        if known is not None:
            remove_tree(folder_handle, name)
        copy_tree(handle, name, folder_handle, name)
        return
    if known is not None and not stat.S_ISDIR(known.st_mode):
        folder_handle.unlink(name)
        known = None
    if known is None:
        folder_handle.create_folder(name)
    # Copy only the folder itself: its contents are separate differences.
    folder_handle.set_mode(name, stat.S_IMODE(found.st_mode))
    if is_root():
        folder_handle.set_owner(name, found)
