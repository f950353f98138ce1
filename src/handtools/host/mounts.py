"""Mounts: whether a folder is on this machine or at the other end of a wire."""

import os
from pathlib import Path

DISTANT = ("nfs", "cifs", "smb", "fuse", "9p", "afs", "ceph", "lustre", "gluster", "virtiofs")


def is_near(folder: str | Path) -> bool:
    """Whether a look at a file there is answered by this machine; unknown counts as far."""
    kind = file_system(folder)
    return kind is not None and not kind.startswith(DISTANT)


def file_system(folder: str | Path) -> str | None:
    """The name of the file system that holds a folder, where the machine tells."""
    try:
        device = os.stat(folder).st_dev
        rows = Path("/proc/self/mountinfo").read_text(errors="replace").splitlines()
    except OSError:
        return None
    wanted = f"{os.major(device)}:{os.minor(device)}"
    kinds = [row.partition(" - ")[2].split(" ")[0] for row in rows if row.split(" ", 3)[2] == wanted]
    return kinds[-1] if kinds else None
