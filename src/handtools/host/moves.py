"""Moves: what one step of a transaction goes through, and the steps that concern folders."""

import contextlib
import os
import stat
from collections.abc import Collection

from handtools.core.changes import Node
from handtools.core.errors import Stale
from handtools.host.folders import kind_of
from handtools.host.handles import Place


class Move:
    """A step: each method is called on all steps of the transaction before the next one is called on any."""

    def __init__(self, place: Place) -> None:
        self.place = place

    def begin(self) -> None:
        """Make what is new, out of sight; folders in sight, for what comes next may go into them."""

    def watch(self) -> None:
        """Compare what is old, and hold it."""

    def land(self) -> None:
        """Put the new in the place of the old."""

    def confirm(self) -> None:
        """Check once more that nobody interfered."""

    def settle(self) -> None:
        """Remove the old."""

    def seal(self) -> None:
        """Last, and innermost first: take away what only we needed."""

    def release(self) -> None:
        """Let go of what is held."""

    def take_back(self) -> str | None:
        """Undo as much as was done; say what another writer keeps us from undoing."""
        return None


class Making(Move):
    """A new folder."""

    def __init__(self, place: Place, node: Node) -> None:
        super().__init__(place)
        self._node = node
        self._made = False

    def begin(self) -> None:
        folder, name, _ = self.place.parts
        folder.create_folder(name)
        self._made = True
        if hasattr(os, "geteuid") and os.geteuid() == 0:
            folder.set_owner(name, folder.own_stat())  # the workspace is its owner's, whoever we are
        if self._node.mode is not None:
            folder.set_mode(name, self._node.mode | stat.S_IRWXU)

    def seal(self) -> None:
        if self._node.mode is not None and self._node.mode & stat.S_IRWXU != stat.S_IRWXU:
            self.place.folder.set_mode(self.place.name, self._node.mode)

    def take_back(self) -> str | None:
        if self._made:
            self.place.forget()
            try:
                self.place.folder.remove_folder(self.place.name)
            except OSError:
                return f"The folder `{self.place.path}` is in use by another program and stays."
        return None


class Permitting(Move):
    """A folder that gets another mode."""

    def __init__(self, place: Place, before: Node, after: Node) -> None:
        super().__init__(place)
        self._before, self._after = before, after
        self._was: int | None = None

    def begin(self) -> None:
        found = _folder_found(self.place, self._before)
        if self._after.mode is not None:
            self._was = stat.S_IMODE(found.st_mode)
            self.place.folder.set_mode(self.place.name, self._after.mode | stat.S_IRWXU)

    def seal(self) -> None:
        if self._after.mode is not None and self._after.mode & stat.S_IRWXU != stat.S_IRWXU:
            self.place.folder.set_mode(self.place.name, self._after.mode)

    def take_back(self) -> str | None:
        if self._was is not None:
            self.place.folder.set_mode(self.place.name, self._was)
        return None


class Removing(Move):
    """An empty folder that goes away, after everything that leaves it has left."""

    def __init__(self, place: Place, node: Node, leaving: Collection[str]) -> None:
        super().__init__(place)
        self._node = node
        self._leaving = leaving
        self._removed: os.stat_result | None = None

    def watch(self) -> None:
        _folder_found(self.place, self._node)

    def confirm(self) -> None:
        with self.place.folder.child(self.place.name) as inside:
            if not set(inside.names()) <= set(self._leaving):
                raise _not_empty(self.place)

    def settle(self) -> None:
        found = _folder_found(self.place, self._node)
        self.place.folder.remove_folder(self.place.name)
        self.place.forget()
        self._removed = found

    def take_back(self) -> str | None:
        if self._removed is None:
            return None
        folder, name, _ = self.place.parts
        with contextlib.suppress(FileExistsError):
            folder.create_folder(name)
            with contextlib.suppress(OSError):
                folder.set_owner(name, self._removed)
            folder.set_mode(name, stat.S_IMODE(self._removed.st_mode))
        return None


def stale(place: Place) -> Stale:
    """The refusal of a step whose target is not as expected."""
    return Stale(
        f"`{place.path}` is no longer what this change was based on; nothing was written.",
        hint="Read it again and redo the change.",
    )


def _folder_found(place: Place, node: Node) -> os.stat_result:
    found = place.folder.find(place.name)
    if found is None or kind_of(found.st_mode) != "folder":
        raise stale(place)
    if node.mode is not None and node.mode != stat.S_IMODE(found.st_mode):
        raise stale(place)
    return found


def _not_empty(place: Place) -> Stale:
    return Stale(f"The folder `{place.path}` is not empty; nothing was written.", hint="List it again.")
