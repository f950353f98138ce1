"""The limits of a command where the caller sets none.

Imports nothing of the sandbox, because the configuration compares with them at every start.
"""

import contextlib
import os
from dataclasses import replace
from functools import cache

from handtools.core.commands import CommandLimits

MAX_COMMAND_PROCESSES = 4096
"""Default process limit for one command; stops fork bombs."""
DEFAULT_OPEN_FILES = 65_536
"""Default limit on open files for each process."""
MEMORY_SHARE = 0.75
"""Default memory limit for all processes of a command, as a share of the machine's memory."""
_CONTAINER_MEMORY_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_MAX_PROCESSES = 1024
_MAX_FILE_BYTES = 8 << 30


@cache
def default_memory_bytes() -> int:
    """Return the default memory limit of a command, from the memory of the machine or our container."""
    most = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in _CONTAINER_MEMORY_LIMITS:
        with contextlib.suppress(OSError, ValueError), open(path, encoding="ascii") as file:
            most = min(most, int(file.read()))
    return int(most * MEMORY_SHARE)


def with_default_limits(limits: CommandLimits) -> CommandLimits:
    """Return the limits, with defaults where the caller set none.

    Memory gets no default: without a cgroup, a per-process limit would break programs that reserve much
    memory but use little.
    """
    return replace(
        limits,
        processes=limits.processes or _MAX_PROCESSES,
        written_bytes=limits.written_bytes or _MAX_FILE_BYTES,
    )
