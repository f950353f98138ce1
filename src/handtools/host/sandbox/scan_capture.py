"""Capture by scanning the workspace before and after a command, if no overlay can be mounted.

The command writes in place. So its changes are recorded but not checked before they happen. Changes to
files beyond the budget can't be undone; those paths are listed as omitted.
"""

import contextlib
import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from handtools.core.changes import BackupRef, Change, Node, change_apply_order
from handtools.host.files.backups import REPLACED_FILES_NAME, UPPER_LAYER_NAME, BackupItem, FolderBackups
from handtools.host.files.change_detection import stat_mark
from handtools.host.files.folder_handle import FolderHandle, join_path, kind_of_mode, open_inner_folder
from handtools.host.files.folder_trees import SubfolderCache, TreeEntry, walk_tree
from handtools.host.files.temporary_file import is_temporary_name
from handtools.host.sandbox.change_capture import CapturedChanges, NodeReader
from handtools.host.sandbox.launch import Launch, Overlay

WROTE_IN_PLACE_NOTE = "It wrote in place: its changes were recorded afterwards, not checked first."


@dataclass(frozen=True, slots=True)
class ScanBudget:
    """Limits on the files and bytes scanned and copied before a command."""

    entries: int = 200_000
    file_bytes: int = 4 << 20
    bytes: int = 256 << 20


@dataclass(frozen=True, slots=True)
class ScannedPath:
    """The state of a path at the time of a scan."""

    found: os.stat_result
    target: str = ""
    copied: bool = False


class ScanCapture:
    """Captures changes by scanning the workspace before and after every command."""

    has_isolated_writes = False

    def __init__(
        self, root: str | Path, backups: FolderBackups, *, budget: ScanBudget | None = None, name: str = ""
    ) -> None:
        """`name` is the folder's name if the workspace has several folders."""
        self._root = os.path.realpath(root)
        self._backups = backups
        self._budget = budget or ScanBudget()
        self._name = name

    def begin(self, launch: Launch, *, in_place: bool) -> "ScanCommandCapture":  # noqa: ARG002
        """Scan the workspace and copy small files to the backups before the command starts."""
        item = self._backups.create_item()
        scan_before = Scan(self._root, self._budget, self._backups, f"{item.name}/{REPLACED_FILES_NAME}")
        scan_before.walk()
        return ScanCommandCapture(self._root, item, self._backups, scan_before, self._name)

    def close(self) -> None:
        """Do nothing: nothing is kept between commands."""


@dataclass(slots=True)
class Scan:
    """A scan of the files in a workspace, within a budget."""

    root: str
    budget: ScanBudget
    backups: FolderBackups | None = None
    """The backups to copy files to; None to make no copies."""
    shelf: str = ""
    scanned_paths: dict[str, ScannedPath] = field(default_factory=dict)
    cut: bool = False
    """Whether the workspace has more files than the budget allows."""
    _left: int = field(init=False)

    def __post_init__(self) -> None:
        self._left = self.budget.bytes

    def walk(self) -> None:
        """Scan the workspace folder by folder."""
        with FolderHandle.at(self.root) as top:
            for path, folder, name, found in walk_tree(top):
                if is_temporary_name(name):
                    continue
                if len(self.scanned_paths) >= self.budget.entries:
                    self.cut = True
                    return
                target = ""
                if stat.S_ISLNK(found.st_mode):
                    with contextlib.suppress(OSError):
                        target = os.fsdecode(folder.link_target(name))
                self.scanned_paths[path] = ScannedPath(
                    found, target, self._copy_to_backup(path, folder, name, found)
                )

    def _copy_to_backup(self, path: str, folder: FolderHandle, name: str, found: os.stat_result) -> bool:
        if self.backups is None or not stat.S_ISREG(found.st_mode):
            return False
        if found.st_size > min(self.budget.file_bytes, self._left):
            return False
        with contextlib.suppress(OSError):
            self.backups.copy_in(f"{self.shelf}/{path}", folder, name)
            self._left -= found.st_size
            return True
        return False


@dataclass(slots=True)
class ScanCommandCapture:
    """The capture of one command by two scans."""

    root: str
    item: BackupItem
    backups: FolderBackups
    scan_before: Scan
    name: str = ""
    overlays: tuple[Overlay, ...] = ()

    def finish(self) -> CapturedChanges:
        """Scan again and return the differences, as changes that have already been made."""
        scan_after = Scan(self.root, self.scan_before.budget)
        scan_after.walk()
        omitted: list[str] = []
        changes = []
        needed = set()
        for path in {**self.scan_before.scanned_paths, **scan_after.scanned_paths}:
            was, now = self.scan_before.scanned_paths.get(path), scan_after.scanned_paths.get(path)
            if was and now and _is_unchanged(was, now):
                continue
            if was and not was.copied and stat.S_ISREG(was.found.st_mode):
                omitted.append(join_path(self.name, path))
                continue
            needed.add(path)
            changes.append(
                Change(
                    join_path(self.name, path), self._node_before(path, was), self._node_after(path, now)
                )
            )
        self._delete_unneeded_copies(needed)
        notes = [WROTE_IN_PLACE_NOTE]
        if self.scan_before.cut or scan_after.cut:
            notes.append(
                f"Only the first {self.scan_before.budget.entries:,} paths of the workspace were scanned."
            )
        return CapturedChanges(
            tuple(sorted(changes, key=change_apply_order)), "scan", tuple(sorted(omitted)), tuple(notes)
        )

    def discard(self) -> None:
        """Unlock this command's backup item; copies of changed files stay in it for undo."""
        self.backups.delete_item_leftovers(self.item.name)
        self.item.release()

    def _node_before(self, path: str, scanned: ScannedPath | None) -> Node | None:
        if scanned is None or kind_of_mode(scanned.found.st_mode) is None:
            return None
        return _scanned_node(
            scanned,
            f"{self.item.name}/{REPLACED_FILES_NAME}/{path}",
            os.fspath(self.item.path / REPLACED_FILES_NAME),
            path,
        )

    def _node_after(self, path: str, scanned: ScannedPath | None) -> Node | None:
        if scanned is None or kind_of_mode(scanned.found.st_mode) is None:
            return None
        return _scanned_node(scanned, f"{self.item.name}/{UPPER_LAYER_NAME}/{path}", self.root, path)

    def _delete_unneeded_copies(self, needed: set[str]) -> None:
        """Delete the copies of files that did not change."""
        for path, seen in self.scan_before.scanned_paths.items():
            if seen.copied and path not in needed:
                self.backups.drop(f"{self.item.name}/{REPLACED_FILES_NAME}/{path}")
        with (
            contextlib.suppress(OSError),
            FolderHandle.at(os.fspath(self.item.path / REPLACED_FILES_NAME)) as top,
        ):
            folders = [entry.path for entry in walk_tree(top) if entry.is_folder]
            with SubfolderCache(top) as subtree:
                for path in reversed(folders):
                    above, _, name = path.rpartition("/")
                    with contextlib.suppress(OSError):
                        subtree.folder(above).remove_folder(name)
        with contextlib.suppress(OSError):
            os.rmdir(self.item.path / REPLACED_FILES_NAME)


def _scanned_node(scanned: ScannedPath, ref: str, root: str, path: str) -> Node:
    kind, mode = kind_of_mode(scanned.found.st_mode), stat.S_IMODE(scanned.found.st_mode)
    if kind == "folder":
        return Node("folder", mode=mode)
    if kind == "link":
        return Node("link", os.fsencode(scanned.target))
    above, _, name = path.rpartition("/")
    with (
        contextlib.suppress(OSError),
        FolderHandle.at(root) as top,
        open_inner_folder(top, above) as folder,
    ):
        entry = TreeEntry(path, folder, name, folder.stat(name))
        return NodeReader().node(entry, ref=ref, mode=mode)
    return Node("file", b"", mode, BackupRef(ref, stat_mark(scanned.found), scanned.found.st_size))


def _is_unchanged(scanned_before: ScannedPath, scanned_now: ScannedPath) -> bool:
    one, other = scanned_before.found, scanned_now.found
    if stat.S_ISDIR(one.st_mode) or stat.S_ISDIR(other.st_mode):
        return one.st_mode == other.st_mode
    facts = [(f.st_mode, f.st_size, f.st_mtime_ns, f.st_ino, f.st_ctime_ns) for f in (one, other)]
    return facts[0] == facts[1]
