"""Listing: the layer that a command wrote, as changes of the workspace."""

import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from handtools.core.changes import Change, Node
from handtools.core.trees import WHOLE, folded, leaf, order, tree
from handtools.host.commands.noting import FOLDER, Notary
from handtools.host.commands.overlay.cleaning import Cleaner
from handtools.host.commands.overlay.layers import Spot, sign
from handtools.host.folders import kind_of
from handtools.host.staging import is_temporary

Name = Callable[[str], str]


@dataclass(slots=True)
class Listing:
    """Walks the layer with the workspace beside it; touches only the layer."""

    old: Name
    """The ref under which a thing is held that leaves its path."""
    new: Name
    """The ref under which a thing is held that is to come to a path."""
    since: int
    """When the command began, by the file system's clock: what others changed later is theirs."""
    cleaner: Cleaner
    notary: Notary = field(default_factory=Notary)
    conflicts: list[str] = field(default_factory=list)
    """Paths that changed in the workspace while the command ran."""
    stuck: list[str] = field(default_factory=list)
    """Pipes, sockets and devices of the workspace that the command removed or replaced: they stay."""
    changes: list[Change] = field(default_factory=list)

    def of(self, upper: str, lower: str) -> list[Change]:
        """Every change, removals first; large folders that come or go as one."""
        self._merged("", os.open(upper, FOLDER), os.open(lower, FOLDER))
        spoilt = self._spoilt()
        clean = [change for change in self.changes if change.path not in spoilt]
        return folded(sorted(clean, key=order), apart=self.cleaner.refused)

    def _spoilt(self) -> set[str]:
        """The conflicts, and the folders that can't go because something of others is in them."""
        theirs = {*self.conflicts, *self.stuck}
        above = {parent for path in theirs for parent in _above(path)}
        staying = {c.path for c in self.changes if c.after is None or c.after.kind != "folder"} & above
        return theirs | staying

    def _merged(self, path: str, upper: int, lower: int | None) -> None:
        """A folder that shows what is below it, except where it says otherwise."""
        try:
            for spot in _spots(upper):
                self._entry(_join(path, spot.name), spot, _find(lower, spot.name))
        finally:
            os.close(upper)
            if lower is not None:
                os.close(lower)

    def _entry(self, path: str, up: Spot, low: Spot | None) -> None:
        what = sign(up)
        if what == "gone":
            if low is not None:
                self._leave(path, low, None)
            return
        if self.cleaner.refuses(path, up):
            return
        mode = self.cleaner.clean(path, up, low)
        if not up.is_folder:
            self._thing(path, up, low, mode)
        elif low is None or not low.is_folder:
            self._arrive(path, low, Node("folder", mode=mode))
            self._merged(path, _opened(up, mode), None)
            _closed_again(up, mode)
        elif what == "opaque":
            self._replaced(path, up, low, mode)
        else:
            self._permitted(path, low, mode)
            self._merged(path, _opened(up, mode), low.open())

    def _thing(self, path: str, up: Spot, low: Spot | None, mode: int) -> None:
        """A file or a link."""
        after = self.notary.node(up.folder, up.name, up.found, ref=self.new(path), mode=mode)
        if low is None or low.is_folder:
            self._arrive(path, low, after)
        elif kind_of(low.found.st_mode) is None:
            self.stuck.append(path)
        else:
            before = self._old(path, low)
            # A file that was opened for writing and left as it was is in the layer all the same.
            if not (after.same(before) and up.found.st_mtime_ns == low.found.st_mtime_ns):
                self._changed(path, low, before, after)

    def _arrive(self, path: str, low: Spot | None, after: Node) -> None:
        """Something where there was nothing, or another kind of thing."""
        if low is None:
            self.changes.append(Change(path, None, after))
        else:
            self._leave(path, low, after)

    def _leave(self, path: str, low: Spot, after: Node | None) -> None:
        """A thing of the workspace goes, with all that is in it; and perhaps another takes its place."""
        if kind_of(low.found.st_mode) is None:
            self.stuck.append(path)
            return
        if low.is_folder:
            self._emptied(path, low.open())
        self._changed(path, low, self._old(path, low), after)

    def _emptied(self, path: str, lower: int) -> None:
        try:
            for spot in _spots(lower):
                self._leave(_join(path, spot.name), spot, None)
        finally:
            os.close(lower)

    def _permitted(self, path: str, low: Spot, mode: int) -> None:
        if mode != low.mode:
            self.changes.append(Change(path, self._old(path, low), Node("folder", mode=mode)))

    def _replaced(self, path: str, up: Spot, low: Spot, mode: int) -> None:
        """A folder that was removed and made anew: the old and the new in full, as one change or side by side."""
        theirs = len(self.conflicts) + len(self.stuck)
        gone = self._apart(lambda: self._emptied(path, low.open()))
        come = self._apart(lambda: self._merged(path, _opened(up, mode), None))
        alone = len(self.conflicts) + len(self.stuck) == theirs
        if alone and max(len(gone), len(come)) > WHOLE and not self._refused_below(path):
            start = len(path) + 1
            old = [leaf(p[start:], change.before) for p, change in gone.items() if change.before]
            new = [leaf(p[start:], change.after) for p, change in come.items() if change.after]
            before = tree(old, mode=low.mode, ref=self.old(path))
            self.changes.append(Change(path, before, tree(new, mode=mode, ref=self.new(path))))
            return
        self._permitted(path, low, mode)
        for inner in {**gone, **come}:
            before_node = gone[inner].before if inner in gone else None
            after_node = come[inner].after if inner in come else None
            if not (before_node and before_node.same(after_node)):
                self.changes.append(Change(inner, before_node, after_node))

    def _apart(self, walk: Callable[[], None]) -> dict[str, Change]:
        """The changes of a walk by path, beside the list."""
        kept, self.changes = self.changes, []
        walk()
        found, self.changes = self.changes, kept
        return {change.path: change for change in found}

    def _refused_below(self, path: str) -> bool:
        return any(refused.startswith(f"{path}/") for refused in self.cleaner.refused)

    def _changed(self, path: str, low: Spot, before: Node, after: Node | None) -> None:
        self.changes.append(Change(path, before, after))
        if low.found.st_ctime_ns > self.since and not low.is_folder:
            self.conflicts.append(path)

    def _old(self, path: str, low: Spot) -> Node:
        return self.notary.node(low.folder, low.name, low.found, ref=self.old(path))


def _spots(folder: int) -> Iterator[Spot]:
    with os.scandir(folder) as entries:
        found = [(entry.name, entry.stat(follow_symlinks=False)) for entry in entries]
    found.sort(key=lambda pair: pair[0])
    return (Spot(folder, name, facts) for name, facts in found if not is_temporary(name))


def _find(folder: int | None, name: str) -> Spot | None:
    if folder is None:
        return None
    try:
        return Spot(folder, name, os.stat(name, dir_fd=folder, follow_symlinks=False))
    except FileNotFoundError:
        return None


def _opened(spot: Spot, mode: int) -> int:
    """A folder of the layer, made ready for things to be moved out of it."""
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(spot.path, mode | stat.S_IRWXU)
    return spot.open()


def _closed_again(spot: Spot, mode: int) -> None:
    """A new folder may land as one: then its mode is the one it has here."""
    if mode & stat.S_IRWXU != stat.S_IRWXU:
        os.chmod(spot.path, mode)


def _above(path: str) -> Iterator[str]:
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path


def _join(path: str, name: str) -> str:
    return f"{path}/{name}" if path else name
