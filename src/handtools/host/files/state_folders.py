"""Where a workspace's state is kept: its state folder, and backups on its file system."""

import contextlib
import hashlib
import os
import re
from pathlib import Path

from handtools.core.errors import HostError
from handtools.host.home_folders import STATE_VARIABLE, state_root
from handtools.host.workspace_folders import is_in_workspace, workspace_folders

_ODD_NAME_CHARS = re.compile(r"[^A-Za-z0-9._-]+")


def state_folder(root: str | Path) -> Path:
    """Return the folder for a workspace's journal and other state.

    It is created on first use, accessible only to its owner.
    """
    real = Path(os.path.realpath(root))
    folder = state_root() / workspace_id(real)
    if is_in_workspace(folder, real):
        raise HostError(
            f"The log of {real} would be inside the workspace. Set {STATE_VARIABLE} to another folder."
        )
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        reason = error.strerror or str(error)
        raise HostError(
            f"Can't create {folder}: {reason}. Set {STATE_VARIABLE} to another folder."
        ) from error
    return folder


def workspace_id(real: Path) -> str:
    """Return a readable folder name for a workspace, unique on this machine, derived from its real path."""
    name = _ODD_NAME_CHARS.sub("-", real.name).strip("-.")[:40] or "root"
    return f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"


def backups_folder(root: str | Path, state: Path) -> Path:
    """Return the folder for a workspace's backups, on the same file system if possible.

    It is in the state folder or next to the workspace.
    """
    real = Path(next(iter(workspace_folders(root).values())))
    device = real.stat().st_dev
    if not state.exists() or state.stat().st_dev == device:
        return state / "vault"
    beside = real.parent
    with contextlib.suppress(OSError):
        found = beside.stat()
        if found.st_dev == device and os.access(beside, os.W_OK) and found.st_uid == os.geteuid():
            return beside / f".handtools-vault-{state.name}"
    return state / "vault"
