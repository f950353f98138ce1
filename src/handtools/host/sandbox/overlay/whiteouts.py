"""How overlayfs marks, in the upper directory, what was deleted (whiteouts) or replaced (opaque folders)."""

import os
import stat
from dataclasses import dataclass
from typing import Literal

OVERLAY_XATTR_PREFIXES = ("trusted.overlay.", "user.overlay.")
_FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
EntryMeaning = Literal["gone", "opaque", "merged", "thing"]


@dataclass(frozen=True, slots=True)
class LayerEntry:
    """A name in an open folder, and what was found there."""

    folder: int
    name: str
    found: os.stat_result

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder itself."""
        return stat.S_ISDIR(self.found.st_mode)

    @property
    def mode(self) -> int:
        """Its permission bits."""
        return stat.S_IMODE(self.found.st_mode)

    @property
    def path(self) -> str:
        """For calls that take no folder's handle."""
        return f"/proc/self/fd/{self.folder}/{self.name}"

    def open(self) -> int:
        """Open it as a folder."""
        return os.open(self.name, _FOLDER_FLAGS, dir_fd=self.folder)


def entry_meaning(spot: LayerEntry) -> EntryMeaning:
    """What a name in the upper folder stands for."""
    found = spot.found
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
        return "gone"
    if spot.is_folder:
        return "opaque" if _overlay_xattr(spot, "opaque") == b"y" else "merged"
    if stat.S_ISREG(found.st_mode) and not found.st_size and _overlay_xattr(spot, "whiteout") is not None:
        return "gone"
    return "thing"


def _overlay_xattr(spot: LayerEntry, word: str) -> bytes | None:
    for prefix in OVERLAY_XATTR_PREFIXES:
        try:
            return os.getxattr(spot.path, prefix + word, follow_symlinks=False)
        except OSError:
            continue
    return None
