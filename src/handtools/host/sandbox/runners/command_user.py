"""The user that a confined command runs as, and the folder of its home."""

import errno
import os
import shutil
import stat
import tempfile
import weakref
from pathlib import Path

from handtools.host.workspace_folders import workspace_folders


def make_private_home(runner: object) -> str:
    """Create a folder with `home` and `tmp` in it that exists as long as the runner."""
    folder = tempfile.mkdtemp(prefix="handtools-")
    weakref.finalize(runner, shutil.rmtree, folder, ignore_errors=True)
    for name in ("home", "tmp"):
        Path(folder, name).mkdir(0o700)
    return folder


def workspace_owner(root: str) -> tuple[int, int] | None:
    """Return the workspace owner's uid and gid to run commands as, if we are root; otherwise None.

    In a workspace owned by root, commands run as root, but only inside the user namespace.
    """
    if os.geteuid() != 0:
        return None
    folders = list(workspace_folders(root).values())
    status = os.stat(folders[0])
    owner = (status.st_uid, status.st_gid)
    reached = owner[0] != 0 and all(user_can_reach(folder, owner) for folder in folders)
    return owner if reached else None


def user_can_reach(path: str, user: tuple[int, int] | None) -> bool:
    """Whether the permissions of a path's parent folders let a user reach it."""
    if user is None:
        return os.access(path, os.R_OK)
    for folder in (Path(path), *Path(path).parents):
        try:
            status = folder.stat()
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.EACCES, errno.ENOTDIR}:
                return False
            raise
        needed = stat.S_IXOTH
        if status.st_uid == user[0]:
            needed = stat.S_IXUSR
        elif status.st_gid == user[1]:
            needed = stat.S_IXGRP
        if folder.is_dir() and not status.st_mode & needed:
            return False
    return True
