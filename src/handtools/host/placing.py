"""Placing: a file or a link takes its place in one moment, and gives it back as carefully.

The new thing changes places with the old, so that what was displaced can still be looked at: if it is not what
was compared, or someone wrote to it meanwhile, the two change places again. No bytes are removed that were not
compared. A hard link is broken on purpose: writing in place would change a file outside the workspace through it.
"""

import errno
import os
import stat
from typing import Literal

from handtools.core.changes import Node
from handtools.core.errors import Busy
from handtools.host import staging
from handtools.host.folders import Folder, kind_of
from handtools.host.handles import Place
from handtools.host.moves import Move, Removing, stale
from handtools.host.syscalls import Unsupported
from handtools.host.watching import Veil, Watched

State = Literal["planned", "staged", "landed", "settled"]


class Placing(Move):
    """A file or a link that is written, created or deleted."""

    def __init__(self, place: Place, before: Node | None, after: Node | None) -> None:
        super().__init__(place)
        self._before, self._after = before, after
        self._state: State = "planned"
        self._displaced = False
        """Whether the old thing is at the temporary name; not so where names can't be exchanged."""
        self._old: Watched | None = None
        self._made: os.stat_result | None = None
        self._mode: int | None = None
        self._seen: Node | None = None

    def begin(self) -> None:
        self._find(self.place.folder, self.place.name)
        self.stage()
        if self._after is not None and self._after.kind == "folder":
            self.land()  # what comes next may go into it

    def stage(self) -> None:
        """Make the new thing at the temporary name."""
        if self._after is None:
            return
        self._state = "staged"
        like = self._old if self._old and self._old.node.kind == "file" else None
        if self._after.moved:
            self._made = self._fetched(self._after, like)
            return
        self._made = staging.stage(self.place.folder, self.place.temporary, self._after, like)

    def _fetched(self, after: Node, like: Watched | None) -> os.stat_result:
        self.place.fetch(after)
        if after.kind == "file" and like is not None and after.mode is None:
            staging.make_alike(self.place.folder, self.place.temporary, like)
        return self.place.folder.stat(self.place.temporary)

    def _find(self, folder: Folder, name: str) -> None:
        if self._before is not None:
            self._old = Watched.find(folder, name, self._before)
        if self._old is None and (self._before is not None or folder.find(name) is not None):
            raise stale(self.place)

    def watch(self) -> None:
        if self._before is None or self._state == "landed":
            return
        if self._old is None:
            self._find(self.place.folder, self.place.name)
        if self._old is None or not self._old.hold(self.place.folder):
            self._old = None
            raise stale(self.place)

    def land(self) -> None:
        if self._state == "landed":
            return
        folder, name, temporary = self.place.parts
        if self._old is None or not self._old.held:
            self.watch()
        if self._before is None:
            folder.move_new(temporary, name)
        elif self._after is None:
            self._refuse_other()
            folder.move_new(name, temporary)
            self._displaced = True
        else:
            self._change_places()
        self._state = "landed"
        if self._before is not None and self._before.kind == "folder":
            self.place.forget()
        if self._after is None:
            self.confirm()

    def _change_places(self) -> None:
        # What is only moved is the same before and after: whoever sees it early sees nothing that is taken back.
        is_file = self._after is not None and self._after.kind == "file" and not self._after.moved
        veil = Veil(self.place.folder, self.place.temporary) if is_file else None
        try:
            self._refuse_other()
            self._displaced = change_places(self.place, keep=self._keeps)
            if self._displaced and not self._undisturbed():
                self._return_at_once(veil)
                raise stale(self.place)
        finally:
            if veil:
                veil.lift()

    def _return_at_once(self, veil: Veil | None) -> None:
        """Someone was there in the last instant: what is theirs goes back before they miss it."""
        folder, name, temporary = self.place.parts
        change_places(self.place)
        self._seen = self._after
        found = folder.find(temporary)
        if found and self._made and not os.path.samestat(found, self._made):
            # They replaced ours as well: the newer of their two takes the name, as it would have without us.
            change_places(self.place)
        elif veil:
            shown = veil.show(folder, name)
            self._seen = self._after if shown is None else Node("file", shown)

    def _refuse_other(self) -> None:
        if self._old is None or not self._old.is_at(self.place.folder, self.place.name):
            raise stale(self.place)

    @property
    def _keeps(self) -> bool:
        """Whether what is displaced is kept as it is."""
        return self._before is not None and self._before.held is not None

    def _undisturbed(self) -> bool:
        folder, _, temporary = self.place.parts
        if self._old is None or not self._old.is_at(folder, temporary):
            return False
        return self._old.intact() and self._old.holds_tree_at(folder, temporary)

    def confirm(self) -> None:
        if self._before is None:
            return
        if self._old is None:
            if not self._displaced:
                return  # replaced for want of a swap, and let go: there is nothing left to look at
            self._old = Watched.take(self.place.folder, self.place.temporary, self._before)
        if not (self._undisturbed() if self._displaced else self._old and self._old.intact()):
            raise stale(self.place)

    def release(self) -> None:
        if self._old is not None:
            self._old.close()
            self._old = None

    def settle(self) -> None:
        if self._displaced:
            put_away(self.place, self._before)
        if self._after is not None and self._after.held and self._after.moved:
            self.place.vault.drop(self._after.held.ref)  # left there only where it had to be copied
        if self._old is not None:
            self._mode = stat.S_IMODE(self._old.found.st_mode)
        self._state, self._displaced = "settled", False
        self.release()

    def take_back(self) -> str | None:
        try:
            if not self._has_landed():
                return self._drop_made()
            if self._after is not None and self._after.kind == "folder":
                self.place.forget()
            if self._before is not None and not self._displaced:
                self._make_again(self._before)
            return give_back(self.place, self._before, self._after)
        finally:
            self._state = "planned"
            self.release()

    def _drop_made(self) -> str | None:
        """Remove the new thing, unless it was in sight for an instant and someone wrote to it."""
        if self._seen is not None:
            ours = _watch_again(self.place, self.place.temporary, self._seen)
            if ours is None:
                return recover(self.place)
            ours.close()
        if self._state == "staged" and self.place.folder.find(self.place.temporary) is not None:
            put_back(self.place, self._after)
        return None

    def _has_landed(self) -> bool:
        """Whether names have moved: an interrupt may come between the call that moves them and our note of it."""
        if self._state in {"landed", "settled"}:
            return True
        found = self.place.folder.find(self.place.temporary)
        if self._after is None:
            self._displaced = found is not None
            return self._displaced
        if self._made is None or (found is not None and os.path.samestat(found, self._made)):
            return False
        self._displaced = found is not None
        return True

    def _make_again(self, before: Node) -> None:
        """Where nothing was displaced, or it is gone already: the old thing as far as it is known."""
        if before.held:
            self.place.fetch(before)
            return
        mode = before.mode if before.mode is not None else self._mode
        old = Node(before.kind, before.data, mode)
        staging.stage(self.place.folder, self.place.temporary, old, self._old)


class Replacing(Move):
    """An empty folder that makes room for a file or a link."""

    def __init__(self, old: Removing, new: Placing) -> None:
        super().__init__(new.place)
        self._old, self._new = old, new

    def begin(self) -> None:
        self._new.stage()

    def watch(self) -> None:
        self._old.watch()

    def confirm(self) -> None:
        self._old.confirm()

    def settle(self) -> None:
        self._old.settle()
        self._new.land()
        self._new.settle()

    def take_back(self) -> str | None:
        return self._new.take_back() or self._old.take_back()


def give_back(place: Place, before: Node | None, after: Node | None) -> str | None:
    """Undo a landed step: the temporary name holds the old thing, if there was one."""
    folder, name, temporary = place.parts
    if after is None:
        return _put_back(place, before)
    ours = _watch_again(place, name, after)
    if ours is None:
        return _keep_theirs(place, before)
    try:
        if before is None:
            folder.move_new(name, temporary)
        elif not change_places(place, keep=after.held is not None):
            return None
        untouched = ours.is_at(folder, temporary) and ours.intact()
    finally:
        ours.close()
    if untouched and put_back(place, after):
        return None
    return _put_back(place, None) if before is None else recover(place)


def discard(place: Place) -> bool:
    """Remove what is at the temporary name; False when it is a folder that someone filled."""
    folder, _, temporary = place.parts
    found = folder.find(temporary)
    if found is None:
        return True
    if kind_of(found.st_mode) != "folder":
        folder.unlink(temporary)
        return True
    try:
        folder.remove_folder(temporary)
    except OSError as error:
        if error.errno not in {errno.ENOTEMPTY, errno.EEXIST}:
            raise
        return False
    return True


def put_away(place: Place, node: Node | None) -> bool:
    """Take what is at the temporary name out of the way: to where it is held, or for good."""
    if node is None or node.held is None:
        return discard(place)
    place.put_away(node)
    return True


def put_back(place: Place, node: Node | None) -> bool:
    """Take what was to come in out of the way again."""
    if node is None or not node.moved:
        return discard(place)
    place.put_back(node)
    return True


def change_places(place: Place, *, keep: bool = False) -> bool:
    """Swap target and temporary; False where the old thing is simply replaced, for want of a swap.

    With `keep` it never is: where names can't be swapped it is moved, in three steps.
    """
    folder, name, temporary = place.parts
    try:
        folder.exchange(name, temporary)
    except Unsupported:
        kinds = {kind_of(folder.stat(name).st_mode), kind_of(folder.stat(temporary).st_mode)}
        if "folder" not in kinds and not keep:
            folder.replace(temporary, name)
            return False
        between = staging.temporary_name()
        folder.move_new(name, between)
        folder.move_new(temporary, name)
        folder.move_new(between, temporary)
    return True


def _watch_again(place: Place, name: str, node: Node) -> Watched | None:
    try:
        return Watched.take(place.folder, name, Node(node.kind, node.data, held=node.held))
    except (Busy, OSError):
        return None


def _put_back(place: Place, before: Node | None) -> str | None:
    folder, name, temporary = place.parts
    try:
        folder.move_new(temporary, name)
    except FileExistsError:
        return _keep_theirs(place, before)
    return None


def _keep_theirs(place: Place, before: Node | None) -> str:
    """The target is another writer's by now: it stays, and what was displaced is not lost either."""
    folder, _, temporary = place.parts
    if folder.find(temporary) is not None:
        old = before and _watch_again(place, temporary, before)
        if not old:
            return recover(place)
        old.close()
        put_away(place, before)
    return f"`{place.path}` was changed by another program meanwhile and stays as it is."


def recover(place: Place) -> str:
    """Keep what is at the temporary name in sight, and say where."""
    folder, name, temporary = place.parts
    kept = staging.recovered_name(name)
    folder.move_new(temporary, kept)
    return f"What another program wrote to `{place.path}` meanwhile is kept beside it as `{kept}`."
