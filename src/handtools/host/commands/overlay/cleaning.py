"""Cleaning: what a command wrote is made fit to land: no privilege, no foreign owner, no devices."""

import contextlib
import os
import stat
from dataclasses import dataclass, field

from handtools.host.commands.overlay.layers import LAYER_NOTES, Spot
from handtools.host.staging import is_temporary

_PRIVILEGE = stat.S_ISUID | stat.S_ISGID
_CAPABILITY = "security.capability"
_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


@dataclass(slots=True)
class Cleaner:
    """Goes along with the listing, and notes what it took away."""

    owner: tuple[int, int] | None
    """Who the workspace belongs to, when we are root and can give things to them."""
    refused: dict[str, str] = field(default_factory=dict)
    """What can't land, by path, and what it is."""
    stripped: list[str] = field(default_factory=list)
    """Paths that lost a privilege."""

    def refuses(self, path: str, spot: Spot) -> bool:
        """Whether a thing is of a kind that never lands."""
        kind = _KINDS.get(stat.S_IFMT(spot.found.st_mode))
        if is_temporary(spot.name):
            kind = "a name that is ours"  # no list shows it, so nobody could judge it
        if kind:
            self.refused[path] = kind
        return kind is not None

    def clean(self, path: str, spot: Spot, below: Spot | None) -> int:
        """Make a thing fit to land in the place of another; gives back its permission bits."""
        self._own(spot, below)
        self._unmark(path, spot)
        if stat.S_ISLNK(spot.found.st_mode):
            return spot.mode
        wanted = spot.mode & ~_PRIVILEGE
        if spot.is_folder:
            # In a folder this bit gives no privilege: it hands a group down, where the folder above does.
            above = below.found if below else os.fstat(spot.folder)
            wanted |= spot.mode & above.st_mode & stat.S_ISGID
        if wanted != spot.mode:
            self.stripped.append(path)
            os.chmod(spot.path, wanted)
        return wanted

    def _own(self, spot: Spot, below: Spot | None) -> None:
        if self.owner is None:
            return
        owner = (below.found.st_uid, below.found.st_gid) if below else self.owner
        if (spot.found.st_uid, spot.found.st_gid) != owner:
            os.chown(spot.name, *owner, dir_fd=spot.folder, follow_symlinks=False)

    def _unmark(self, path: str, spot: Spot) -> None:
        with contextlib.suppress(OSError):
            for attribute in os.listxattr(spot.path, follow_symlinks=False):
                if attribute.startswith(LAYER_NOTES) or attribute == _CAPABILITY:
                    os.removexattr(spot.path, attribute, follow_symlinks=False)
                    if attribute == _CAPABILITY:
                        self.stripped.append(path)
