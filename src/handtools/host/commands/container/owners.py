"""Owners: whose a container is, written on it, so that the next of us can tell which ones were left behind."""

import hashlib
import os
from pathlib import Path

MINE = "handtools.owner"
WORKSPACE = "handtools.workspace"
FOLDER = "handtools.folder"


def workspace(root: str) -> str:
    """A workspace, as a label has it."""
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def ours() -> str:
    """This process, as no other has ever been called: machine start, process namespace, number, start."""
    pid = os.getpid()
    return f"{_boot()} {_namespace()} {pid} {_started(pid)}"


def left_behind(owner: str) -> bool:
    """Whether an owner is gone. One in a namespace that we can't see into is taken to be there."""
    try:
        boot, namespace, pid, started = owner.split(" ")
    except ValueError:
        return False
    if boot != _boot():
        return True
    return namespace == _namespace() and _started(int(pid)) != started


def _boot() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def _namespace() -> str:
    return os.readlink("/proc/self/ns/pid")


def _started(pid: int) -> str:
    """When a process started, in ticks; empty when it is not there or has ended."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if facts[0] in {"Z", "X"} else facts[19]
