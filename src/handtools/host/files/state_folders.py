"""Where the state of a workspace is kept: its folder, and the backups beside its files."""

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
    """The folder for a workspace's journal and other state.

    Created on first use with access for its owner only.
    """
    real = Path(os.path.realpath(root))
    folder = state_root() / workspace_id(real)
    if is_in_workspace(folder, real):
        raise HostError(
            f"The record of {real} would lie inside it; set {STATE_VARIABLE} to another folder."
        )
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        reason = error.strerror or str(error)
        raise HostError(
            f"{folder} can't be made: {reason}. Set {STATE_VARIABLE} to another folder."
        ) from error
    return folder


def workspace_id(real: Path) -> str:
    """A readable folder name for a workspace, unique on this machine, made from its real path."""
    name = _ODD_NAME_CHARS.sub("-", real.name).strip("-.")[:40] or "root"
    return f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"


def backups_folder(root: str | Path, state: Path) -> Path:
    """The folder for a workspace's backups, on its file system: in the state folder, or beside the workspace."""
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
