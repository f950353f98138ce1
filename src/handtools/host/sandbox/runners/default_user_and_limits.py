"""The user as which a confined command runs, and its default resource limits."""

import errno
import os
import stat
from dataclasses import replace
from pathlib import Path

from handtools.core.commands import CommandLimits
from handtools.host.workspace_folders import workspace_folders

_MOST_PROCESSES = 1024
_MOST_FILE_BYTES = 8 << 30


def allowance_with_default_limits(allowance: CommandLimits) -> CommandLimits:
    """The allowance with default limits for what the caller left open.

    Not memory: where no control group counts it, a limit per process would break programs that only reserve a lot.
    """
    return replace(
        allowance,
        processes=allowance.processes or _MOST_PROCESSES,
        written_bytes=allowance.written_bytes or _MOST_FILE_BYTES,
    )


def workspace_owner(root: str) -> tuple[int, int] | None:
    """The user and group to run commands as if we are root: those of the workspace's owner; else None.

    For a workspace that root owns we stay root, but only within the user namespace.
    """
    if os.geteuid() != 0:
        return None
    folders = list(workspace_folders(root).values())
    status = os.stat(folders[0])
    owner = (status.st_uid, status.st_gid)
    reached = owner[0] != 0 and all(user_can_reach(folder, owner) for folder in folders)
    return owner if reached else None


def user_can_reach(path: str, user: tuple[int, int] | None) -> bool:
    """Whether a user has permission to reach a path through the folders above it."""
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
