"""How overlayfs marks deleted files (whiteout) and replaced folders (opaque) in the upper directory."""

import os
import stat
from dataclasses import dataclass
from typing import Literal

from handtools.host.files import syscalls

OVERLAY_XATTR_PREFIXES = ("trusted.overlay.", "user.overlay.")
_FOLDER_FLAGS = os.O_RDONLY | syscalls.DIRECTORY | syscalls.OPEN_FLAGS | syscalls.NO_FOLLOW
EntryMeaning = Literal["gone", "opaque", "merged", "thing"]


@dataclass(frozen=True, slots=True)
class LayerEntry:
    """A directory entry: its open folder, its name and its stat result."""

    folder: int
    name: str
    found: os.stat_result

    @property
    def is_folder(self) -> bool:
        """Whether the entry is a folder, not a symlink to one."""
        return stat.S_ISDIR(self.found.st_mode)

    @property
    def mode(self) -> int:
        """The entry's permission bits."""
        return stat.S_IMODE(self.found.st_mode)

    @property
    def proc_fd_path(self) -> str:
        """A path to the entry through `/proc/self/fd`, for calls that don't accept a directory fd."""
        return f"/proc/self/fd/{self.folder}/{self.name}"

    def open(self) -> int:
        """Open the entry as a folder; returns an fd."""
        return os.open(self.name, _FOLDER_FLAGS, dir_fd=self.folder)


def entry_meaning(entry: LayerEntry) -> EntryMeaning:
    """Whether an upper-directory entry means deleted, opaque or present."""
    found = entry.found
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
        return "gone"
    if entry.is_folder:
        return "opaque" if _overlay_xattr(entry, "opaque") == b"y" else "merged"
    if stat.S_ISREG(found.st_mode) and not found.st_size and _overlay_xattr(entry, "whiteout") is not None:
        return "gone"
    return "thing"


def _overlay_xattr(entry: LayerEntry, word: str) -> bytes | None:
    for prefix in OVERLAY_XATTR_PREFIXES:
        try:
            return os.getxattr(entry.proc_fd_path, prefix + word, follow_symlinks=False)
        except OSError:
            continue
    return None
