"""Layers: how the kernel writes down, in the upper folder, what is gone and what hides the lower one."""

import os
import stat
from dataclasses import dataclass
from typing import Literal

LAYER_NOTES = ("trusted.overlay.", "user.overlay.")
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
Sign = Literal["gone", "opaque", "merged", "thing"]


@dataclass(frozen=True, slots=True)
class Spot:
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
        return os.open(self.name, _FOLDER, dir_fd=self.folder)


def sign(spot: Spot) -> Sign:
    """What a name in the upper folder stands for."""
    found = spot.found
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
        return "gone"
    if spot.is_folder:
        return "opaque" if _noted(spot, "opaque") == b"y" else "merged"
    if stat.S_ISREG(found.st_mode) and not found.st_size and _noted(spot, "whiteout") is not None:
        return "gone"
    return "thing"


def _noted(spot: Spot, word: str) -> bytes | None:
    for prefix in LAYER_NOTES:
        try:
            return os.getxattr(spot.path, prefix + word, follow_symlinks=False)
        except OSError:
            continue
    return None
