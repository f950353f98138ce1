"""Starting: a launch in the words that a supervisor understands."""

import contextlib
import os
from functools import cache
from typing import Any

from handtools.host.commands.launching import Launch

MARK = "HANDTOOLS_RUN"
"""In the environment of every command: who loses a supervisor is found by it."""

OPEN_FILES = 65_536
"""Of each process, where the command was given no other number."""
MEMORY_SHARE = 0.75
"""Of the machine's memory, for all processes of a command together, where it was given no other number."""
_OWN_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


@cache
def usual_memory_bytes() -> int:
    """What a command may take of a machine, or of the container that we are in."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in _OWN_LIMITS:
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            most = min(most, int(file.read()))
    return int(most * MEMORY_SHARE)


def start_order(launch: Launch, mark: str) -> dict[str, Any]:
    """What a supervisor is told; descriptors go with it: three for input and output, then the extra ones."""
    allowance, layer = launch.allowance, launch.overlay
    limits: dict[str, int] = {"RLIMIT_CORE": 0, "RLIMIT_NOFILE": allowance.open_files or OPEN_FILES}
    if allowance.written_bytes is not None:
        limits["RLIMIT_FSIZE"] = allowance.written_bytes
    return {
        "order": "start",
        "argv": launch.argv,
        "env": {**launch.env, MARK: mark},
        "cwd": launch.cwd,
        "fds": [0, 1, 2, *extra_fds(launch)],
        "terminal": launch.terminal,
        "limits": limits,
        "memory": allowance.memory_bytes,
        "usual_memory": usual_memory_bytes(),
        "processes": allowance.processes,
        "unshare": launch.unshare,
        "identity": launch.identity,
        "door": launch.door,
        "mounts": [(m.source, m.target, m.kind, m.flags, m.options) for m in launch.mounts],
        "user": launch.user,
        "landlock": launch.landlock,
        "seccomp": launch.seccomp.hex(),
        "alone": launch.alone,
        "layer": layer and (layer.upper, layer.mounted_at, layer.most_bytes, layer.most_files),
        "places": launch.places,
    }


def extra_fds(launch: Launch) -> tuple[int, ...]:
    """Descriptors beyond input and output that a launch needs."""
    more = (launch.landlock, launch.door[0] if launch.door else None)
    return (*launch.pass_fds, *(fd for fd in more if fd is not None))
