"""The TCP ports on which a process and its descendants listen, as /proc shows them."""

import contextlib
import os
from collections.abc import Iterator
from itertools import islice

from handtools.host.sandbox.processes.kill_tree import descendants

MOST_LOOKED_AT = 512
"""How many processes of a tree are looked at; the rest is not asked for its sockets."""
_LISTEN_STATE = "0A"


def listening_ports(pid: int) -> tuple[int, ...]:
    """The ports on which a process tree listens, in its own network namespace, in ascending order."""
    ports = dict(_listening_sockets(pid))
    if not ports:
        return ()
    tree = islice((pid, *descendants(pid)), MOST_LOOKED_AT)
    return tuple(sorted({ports[held] for each in tree for held in _sockets_of(each) if held in ports}))


def _listening_sockets(pid: int) -> Iterator[tuple[str, int]]:
    """The inode and the port of each listening socket in the process's network namespace."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/net/{name}", encoding="ascii") as file:
            for row in islice(file, 1, None):
                fields = row.split()
                if fields[3] == _LISTEN_STATE:
                    yield fields[9], int(fields[1].rpartition(":")[2], 16)


def _sockets_of(pid: int) -> Iterator[str]:
    """The inodes of the sockets that a process has open."""
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/{pid}/fd/{name}")
                if target.startswith("socket:["):
                    yield target.removeprefix("socket:[").removesuffix("]")
