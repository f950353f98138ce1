"""State: where what we remember of a workspace is kept, outside of it."""

import contextlib
import hashlib
import os
import re
from pathlib import Path

from handtools.core.errors import HostError
from handtools.host.home import state_home

OVERRIDE = "HANDTOOLS_STATE"
_UNREADABLE = re.compile(r"[^A-Za-z0-9._-]+")


def state_folder(root: str | Path) -> Path:
    """The folder for a workspace's record, made on first use and closed to others."""
    real = Path(os.path.realpath(root))
    folder = state_root() / workspace_id(real)
    if folder.is_relative_to(real):
        raise HostError(f"The record of {real} would lie inside it; set {OVERRIDE} to another folder.")
    try:
        folder.mkdir(0o700, parents=True, exist_ok=True)
        folder.chmod(0o700)
    except OSError as error:
        reason = error.strerror or str(error)
        raise HostError(f"{folder} can't be made: {reason}. Set {OVERRIDE} to another folder.") from error
    return folder


def workspace_id(real: Path) -> str:
    """A readable name that no other workspace on this machine has."""
    name = _UNREADABLE.sub("-", real.name).strip("-.")[:40] or "root"
    return f"{name}-{hashlib.sha256(os.fsencode(real)).hexdigest()[:12]}"


def vault_folder(root: str | Path, state: Path) -> Path:
    """Where held things go: on the workspace's file system, in the state folder or else beside the workspace."""
    real = Path(os.path.realpath(root))
    device = real.stat().st_dev
    if not state.exists() or state.stat().st_dev == device:
        return state / "vault"
    beside = real.parent
    with contextlib.suppress(OSError):
        found = beside.stat()
        if found.st_dev == device and os.access(beside, os.W_OK) and found.st_uid == os.geteuid():
            return beside / f".handtools-vault-{state.name}"
    return state / "vault"


def state_root() -> Path:
    """Where the records of all workspaces are, and what is remembered of none in particular."""
    override = os.environ.get(OVERRIDE)
    if override:
        return Path(os.path.realpath(override))
    place = state_home()
    if place is None:
        raise HostError(
            f"There is no home folder, and so no place for the record; set {OVERRIDE} to a folder."
        )
    return Path(os.path.realpath(place)) / "handtools"
