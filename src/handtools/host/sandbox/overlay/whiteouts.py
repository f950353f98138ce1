"""How overlayfs marks deleted files (whiteout) and replaced folders (opaque) in the upper directory."""

import os
import stat
from typing import Literal

from handtools.host.files.folder_trees import TreeEntry

OVERLAY_XATTR_PREFIXES = ("trusted.overlay.", "user.overlay.")
EntryMeaning = Literal["gone", "opaque", "merged", "thing"]


def entry_meaning(entry: TreeEntry) -> EntryMeaning:
    """Return what an upper-directory entry means.

    A path is deleted ("gone"), a folder replaces ("opaque") or extends ("merged") the lower one, or the entry
    is an ordinary file or symlink ("thing").
    """
    found = entry.found
    if stat.S_ISCHR(found.st_mode) and found.st_rdev == 0:
        return "gone"
    if entry.is_folder:
        return "opaque" if _overlay_xattr(entry, "opaque") == b"y" else "merged"
    if stat.S_ISREG(found.st_mode) and not found.st_size and _overlay_xattr(entry, "whiteout") is not None:
        return "gone"
    return "thing"


def _overlay_xattr(entry: TreeEntry, word: str) -> bytes | None:
    for prefix in OVERLAY_XATTR_PREFIXES:
        try:
            return os.getxattr(entry.proc_fd_path, prefix + word, follow_symlinks=False)
        except OSError:
            continue
    return None
