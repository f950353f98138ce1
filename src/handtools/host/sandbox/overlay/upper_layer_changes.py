"""Convert an overlay's upper directory to file changes, without setuid bits, other owners and devices."""

import contextlib
import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import Literal

from handtools.core.changes import (
    WHOLE_FOLDER_ITEMS,
    Change,
    FolderItem,
    Node,
    change_apply_order,
    combine_folder_changes,
    folder_item,
    folder_node,
)
from handtools.host.files.change_detection import tree_item
from handtools.host.files.folder_handle import (
    OPEN_FOLDER_TO_LIST_FLAGS,
    FolderHandle,
    join_path,
    open_child,
)
from handtools.host.files.folder_trees import SubfolderCache, TreeEntry, walk_tree
from handtools.host.files.temporary_file import is_temporary_name
from handtools.host.sandbox.change_capture import NodeReader
from handtools.host.sandbox.overlay.whiteouts import OVERLAY_XATTR_PREFIXES, entry_meaning
from handtools.text.git_config import enclosing_git_folder
from handtools.text.paths import folders_above

_SETID_BITS = stat.S_ISUID | stat.S_ISGID
_CAPABILITY_XATTR = "security.capability"
_SPECIAL_FILES = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(slots=True)
class UpperLayerSanitizer:
    """Removes privileges from files in the layer and refuses devices, and records both."""

    owner: tuple[int, int] | None
    """The workspace's owner, to give the files to; None if we are not root."""
    refused: dict[str, str] = field(default_factory=dict)
    """Paths that can't be applied to the workspace, with their kinds, such as a device."""
    stripped: list[str] = field(default_factory=list)
    """Paths that lost setuid or setgid bits or file capabilities."""

    def refuses(self, entry: TreeEntry) -> bool:
        """Whether an entry is of a kind that is never applied, such as a device; records it if so."""
        kind = _SPECIAL_FILES.get(stat.S_IFMT(entry.found.st_mode))
        if is_temporary_name(entry.name):
            kind = "a name reserved for handtools"  # listings omit it, so it could not be checked
        if kind:
            self.refused[entry.path] = kind
        return kind is not None

    def clean(self, entry: TreeEntry, lower_entry: TreeEntry | None) -> int:
        """Remove privileges from an entry and set its owner; returns its permission bits."""
        self._set_owner(entry, lower_entry)
        self._remove_special_xattrs(entry)
        if entry.kind == "link":
            return entry.mode
        wanted = entry.mode & ~_SETID_BITS
        if entry.is_folder:
            # On a folder, setgid grants no privilege; it only makes files inherit the group. Keep it if the
            # workspace's folder has it or, for a new folder, if the parent has it.
            above = lower_entry.found if lower_entry else entry.folder.own_stat()
            wanted |= entry.mode & above.st_mode & stat.S_ISGID
        if wanted != entry.mode:
            self.stripped.append(entry.path)
            os.chmod(entry.proc_fd_path, wanted)
        return wanted

    def _set_owner(self, entry: TreeEntry, lower_entry: TreeEntry | None) -> None:
        if self.owner is None:
            return
        owner = (lower_entry.found.st_uid, lower_entry.found.st_gid) if lower_entry else self.owner
        if (entry.found.st_uid, entry.found.st_gid) != owner:
            os.chown(entry.name, *owner, dir_fd=entry.folder.fd, follow_symlinks=False)

    def _remove_special_xattrs(self, entry: TreeEntry) -> None:
        with contextlib.suppress(OSError):
            for attribute in os.listxattr(entry.proc_fd_path, follow_symlinks=False):
                if attribute.startswith(OVERLAY_XATTR_PREFIXES) or attribute == _CAPABILITY_XATTR:
                    os.removexattr(entry.proc_fd_path, attribute, follow_symlinks=False)
                    if attribute == _CAPABILITY_XATTR:
                        self.stripped.append(entry.path)


RefForPath = Callable[[str], str]
FolderPresence = Literal["merged", "new", "gone", "gone as one"]
"""Where a folder exists: in both layer and workspace, only in the layer, or only in the workspace.

"gone as one" is a large deleted folder, which is moved to the backups in one piece. Its files are identified
by size and time, not read.
"""
_FolderToVisit = tuple[str, FolderPresence]
_UNREADABLE_ERRNOS = {errno.EACCES, errno.EPERM, errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
"""Errors for a workspace folder that we may not read or that was replaced in the meantime: it is skipped."""


@dataclass(slots=True)
class UpperLayerDiff:
    """Compares the upper layer with the workspace and lists the file changes; modifies only the layer."""

    old: RefForPath
    """Returns the backup reference for a file that is removed or replaced."""
    new: RefForPath
    """Returns the backup reference for a file that is added."""
    since: int
    """When the command started, in ns by the file system's clock: later workspace changes are conflicts."""
    sanitizer: UpperLayerSanitizer
    node_reader: NodeReader = field(default_factory=NodeReader)
    shown: Mapping[str, int] = field(default_factory=dict)
    """The ctimes of workspace files refreshed while the command ran; later changes are conflicts."""
    conflicts: list[str] = field(default_factory=list)
    """Paths that another program changed in the workspace while the command ran."""
    closed: list[str] = field(default_factory=list)
    """Workspace folders that we have no permission to read: they are left unchanged."""
    stuck: list[str] = field(default_factory=list)
    """Pipes, sockets and devices that the command removed or replaced: they are left unchanged."""
    changes: list[Change] = field(default_factory=list)
    _item_counts: dict[str, int] = field(default_factory=dict)
    """How many items are below each deleted workspace folder that was walked."""
    _opened: list[tuple[str, int]] = field(default_factory=list)
    """New folders whose mode was changed so that we can read them, with their original modes."""
    _layer: SubfolderCache = field(init=False)
    _workspace: SubfolderCache = field(init=False)

    def list_changes(self, upper: str, lower: str) -> list[Change]:
        """Return the changes from `lower` to `upper`, removals first; large folders as one change."""
        with ExitStack() as stack:
            self._layer, self._workspace = (
                stack.enter_context(SubfolderCache(stack.enter_context(FolderHandle.at(top))))
                for top in (upper, lower)
            )
            self._collect_tree_changes("", "merged")
            for path, mode in reversed(self._opened):
                # A new folder may be applied in one piece: then it keeps the mode it has here.
                above, _, name = path.rpartition("/")
                self._layer.folder(above).set_mode(name, mode)
        self._add_repository_conflicts()
        spoilt = self._unappliable_paths()
        clean = [change for change in self.changes if change.path not in spoilt]
        return combine_folder_changes(sorted(clean, key=change_apply_order), apart=self.sanitizer.refused)

    def _add_repository_conflicts(self) -> None:
        """Extend a conflict in a repository to all changes in it: half a commit is worse than none."""
        known = set(self.conflicts)
        clashes = {folder for path in known if (folder := enclosing_git_folder(path))}
        paths = (change.path for change in self.changes)
        self.conflicts += [
            path for path in paths if path not in known and enclosing_git_folder(path) in clashes
        ]

    def _unappliable_paths(self) -> set[str]:
        """Return the conflicting paths, and folders that can't be removed because they contain one."""
        theirs = {*self.conflicts, *self.stuck, *self.closed}
        above = folders_above(theirs)
        staying = {c.path for c in self.changes if c.after is None or c.after.kind != "folder"} & above
        return theirs | staying

    def _collect_tree_changes(self, start: str, how: FolderPresence) -> None:
        """Collect the changes of a folder and everything below it, with a queue instead of recursion."""
        waiting: deque[_FolderToVisit] = deque([(start, how)])
        while waiting:
            path, way = waiting.popleft()
            try:
                waiting += self._collect_folder_changes(path, way)
            except OSError as error:
                if error.errno not in _UNREADABLE_ERRNOS:
                    raise
                self.closed.append(path)

    def _collect_folder_changes(self, path: str, way: FolderPresence) -> list[_FolderToVisit]:
        """Collect the changes of one folder's entries; returns the subfolders to visit next."""
        tasks: list[_FolderToVisit] = []
        is_gone = way in {"gone", "gone as one"}
        upper = None if is_gone else self._layer.folder(path)
        lower = None if way == "new" else self._workspace.folder(path)
        for entry in _entries(path, upper or lower):
            if upper:
                tasks += self._collect_entry_change(entry, _in_folder(lower, entry))
            elif not is_temporary_name(entry.name):  # skip other calls' temporary files
                tasks += self._collect_removal(entry, None, within=way)
        return tasks

    def _collect_entry_change(
        self, upper_entry: TreeEntry, lower_entry: TreeEntry | None
    ) -> list[_FolderToVisit]:
        """Collect the change of one layer entry; returns the subfolders to visit next."""
        path, what = upper_entry.path, entry_meaning(upper_entry)
        if what == "gone":
            return (
                []
                if lower_entry is None or is_temporary_name(upper_entry.name)
                else self._collect_removal(lower_entry, None)
            )
        if self.sanitizer.refuses(upper_entry):
            return []
        mode = self.sanitizer.clean(upper_entry, lower_entry)
        if not upper_entry.is_folder:
            return self._collect_file_change(upper_entry, lower_entry, mode)
        if mode & stat.S_IRWXU != stat.S_IRWXU:
            os.chmod(upper_entry.proc_fd_path, mode | stat.S_IRWXU)  # its entries will be moved out
        if lower_entry is None or not lower_entry.is_folder:
            if mode & stat.S_IRWXU != stat.S_IRWXU:
                self._opened.append((path, mode))
            return [*self._collect_creation(path, lower_entry, Node("folder", mode=mode)), (path, "new")]
        if what == "opaque":
            self._collect_recreated_folder(lower_entry, mode)
            return []
        self._collect_mode_change(lower_entry, mode)
        return [(path, "merged")]

    def _collect_file_change(
        self, upper_entry: TreeEntry, lower_entry: TreeEntry | None, mode: int
    ) -> list[_FolderToVisit]:
        """Collect the change of a file or a symlink."""
        path = upper_entry.path
        after = self.node_reader.node(upper_entry, ref=self.new(path), mode=mode)
        if lower_entry is None or lower_entry.is_folder:
            return self._collect_creation(path, lower_entry, after)
        if lower_entry.kind is None:
            self.stuck.append(path)
            return []
        before = self._old_node(lower_entry)
        # Opening a file for writing copies it to the layer even if it was not changed.
        if not (after.same(before) and upper_entry.found.st_mtime_ns == lower_entry.found.st_mtime_ns):
            self._add_change(lower_entry, before, after)
        return []

    def _collect_creation(
        self, path: str, lower_entry: TreeEntry | None, after: Node
    ) -> list[_FolderToVisit]:
        """Collect the change of a path that is new or has changed its kind, such as from folder to file."""
        if lower_entry is not None:
            return self._collect_removal(lower_entry, after)
        self.changes.append(Change(path, None, after))
        return []

    def _collect_removal(
        self, lower_entry: TreeEntry, after: Node | None, *, within: FolderPresence | None = None
    ) -> list[_FolderToVisit]:
        """Collect the removal of a workspace entry, or its replacement by `after`.

        `within` is the presence of its parent folder if that was deleted too.
        """
        path = lower_entry.path
        if lower_entry.kind is None:
            self.stuck.append(path)
            return []
        unread = within == "gone as one"
        if lower_entry.is_folder and after is None and not unread:
            found, alone = ([], False) if path in self._item_counts else self._tree_items(path)
            unread = self._item_counts[path] > WHOLE_FOLDER_ITEMS
            if unread and alone and not within:
                self.changes.append(
                    Change(path, folder_node(found, mode=lower_entry.mode, ref=self.old(path)), None)
                )
                return []
        reader = _UNREAD if unread else self.node_reader
        before = reader.node(lower_entry, ref=self.old(path))
        self._add_change(lower_entry, before, after)
        return [(path, "gone as one" if unread else "gone")] if lower_entry.is_folder else []

    def _tree_items(self, path: str) -> tuple[list[FolderItem], bool]:
        """Return the items below a workspace folder and whether all may be removed; also counts them."""
        above, _, name = path.rpartition("/")
        items: list[FolderItem] = []
        closed: list[str] = []
        kept = False
        # Use separate fds: the outer walk's cache closes fds when many others are opened.
        with (
            contextlib.suppress(OSError),
            open_child(self._workspace.folder(above), name, OPEN_FOLDER_TO_LIST_FLAGS) as top,
        ):
            for entry in walk_tree(top, skipped=closed):
                items.append(tree_item(entry))
                kept = kept or self._must_stay(f"{path}/{entry.path}", entry)
            self._count_items(path, items)
            return items, not kept and not closed
        self._count_items(path, items)
        return items, False

    def _count_items(self, path: str, items: Sequence[FolderItem]) -> None:
        """Record the number of items below a folder and its subfolders, so that none is walked twice."""
        self._item_counts[path] = len(items)
        counts = {item.path: 0 for item in items if item.kind == "folder"}
        for item in reversed(items):  # a folder comes before its contents
            above = item.path.rpartition("/")[0]
            if above:
                counts[above] += 1 + counts.get(item.path, 0)
        self._item_counts |= {f"{path}/{folder}": count for folder, count in counts.items()}

    def _must_stay(self, path: str, entry: TreeEntry) -> bool:
        return (
            entry.kind is None
            or (not entry.is_folder and self._is_newer(path, entry.found))
            or is_temporary_name(entry.name)
        )

    def _is_newer(self, path: str, found: os.stat_result) -> bool:
        """Whether another program changed a workspace file since the command started or last saw it."""
        return found.st_ctime_ns > self.shown.get(path, self.since)

    def _collect_mode_change(self, lower_entry: TreeEntry, mode: int) -> None:
        if mode != lower_entry.mode:
            after = Node("folder", mode=mode)
            self.changes.append(Change(lower_entry.path, self._old_node(lower_entry), after))

    def _collect_recreated_folder(self, lower_entry: TreeEntry, mode: int) -> None:
        """Collect the changes of a folder that was removed and recreated, as one change if it is large."""
        path = lower_entry.path
        theirs = len(self.conflicts) + len(self.stuck) + len(self.closed)
        gone = self._changes_by_path_below(path, "gone")
        come = self._changes_by_path_below(path, "new")
        alone = len(self.conflicts) + len(self.stuck) + len(self.closed) == theirs
        if alone and max(len(gone), len(come)) > WHOLE_FOLDER_ITEMS and not self._refused_below(path):
            start = len(path) + 1
            old = [folder_item(p[start:], change.before) for p, change in gone.items() if change.before]
            new = [folder_item(p[start:], change.after) for p, change in come.items() if change.after]
            before = folder_node(old, mode=lower_entry.mode, ref=self.old(path))
            self.changes.append(Change(path, before, folder_node(new, mode=mode, ref=self.new(path))))
            return
        self._collect_mode_change(lower_entry, mode)
        for below in {**gone, **come}:
            before_node = gone[below].before if below in gone else None
            after_node = come[below].after if below in come else None
            if not (before_node and before_node.same(after_node)):
                self.changes.append(Change(below, before_node, after_node))

    def _changes_by_path_below(self, path: str, how: FolderPresence) -> dict[str, Change]:
        """Walk a folder and return its changes by path, without adding them to `changes`."""
        kept, self.changes = self.changes, []
        self._collect_tree_changes(path, how)
        found, self.changes = self.changes, kept
        return {change.path: change for change in found}

    def _refused_below(self, path: str) -> bool:
        return any(refused.startswith(f"{path}/") for refused in self.sanitizer.refused)

    def _add_change(self, lower_entry: TreeEntry, before: Node, after: Node | None) -> None:
        path = lower_entry.path
        self.changes.append(Change(path, before, after))
        if not lower_entry.is_folder and self._is_newer(path, lower_entry.found):
            self.conflicts.append(path)

    def _old_node(self, lower_entry: TreeEntry) -> Node:
        return self.node_reader.node(lower_entry, ref=self.old(lower_entry.path))


_UNREAD = NodeReader(hashed_files=0)
"""Creates nodes without opening files."""


def _entries(path: str, folder: FolderHandle | None) -> list[TreeEntry]:
    assert folder is not None, "a folder exists in the layer, in the workspace or in both"
    assert folder.fd is not None, "layers exist only on systems with directory fds"
    with os.scandir(folder.fd) as entries:
        stats = {entry.name: entry.stat(follow_symlinks=False) for entry in entries}
    return [TreeEntry(join_path(path, name), folder, name, stats[name]) for name in sorted(stats)]


def _in_folder(folder: FolderHandle | None, entry: TreeEntry) -> TreeEntry | None:
    """Return the entry with the same path in another tree, whose open folder is given."""
    if folder is None:
        return None
    found = folder.find(entry.name)
    return found and TreeEntry(entry.path, folder, entry.name, found)
