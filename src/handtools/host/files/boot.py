"""The id of this boot, if the journal survives the end of it."""

import os
from collections.abc import Iterable
from pathlib import Path

from handtools.host.files.folder_handle import FolderHandle
from handtools.host.files.syscalls import filesystem_type, is_local_filesystem

_BOOT_ID_FILE = Path("/proc/sys/kernel/random/boot_id")
_MEMORY_FILESYSTEMS = {"tmpfs", "ramfs"}


def boot_if_lasting(state: Path, folders: Iterable[str]) -> str:
    """Return this boot's id if the journal in `state` survives a power failure, otherwise an empty string.

    Also empty if a workspace folder is on a network, where a write may fail as late as its sync. Creates the state
    folder, synced, because SQLite syncs only the folder that the journal is in.
    """
    try:
        boot = _BOOT_ID_FILE.read_text("ascii").strip()
        if not all(map(is_local_filesystem, folders)):
            return ""
        _make_synced_folder(state)
    except OSError:
        return ""  # not Linux, or the state folder can't be created, which the first use of the journal reports
    return boot if filesystem_type(state) not in {None, *_MEMORY_FILESYSTEMS} else ""


def _make_synced_folder(folder: Path) -> None:
    if folder.is_dir():
        return
    _make_synced_folder(folder.parent)
    folder.mkdir(0o700, exist_ok=True)
    with FolderHandle.at(os.fspath(folder.parent)) as parent:
        parent.sync()
