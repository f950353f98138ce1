"""Find the TCP ports on which a process and its descendants listen, from /proc."""

import contextlib
import os
import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address
from itertools import islice

from handtools.host.sandbox.processes.kill_tree import descendants

MAX_PROCESSES_LOOKED_AT = 512
"""How many processes of a tree are checked; sockets of the others are not found."""
_LISTEN_STATE = "0A"


@dataclass(frozen=True, slots=True, order=True)
class ListeningAddress:
    """The address at which a socket listens, in its own network namespace."""

    port: int
    address: IPv4Address | IPv6Address

    @property
    def connectable(self) -> tuple[int, str]:
        """The address family and loopback address for connecting to it from its namespace."""
        mapped = self.address.ipv4_mapped if isinstance(self.address, IPv6Address) else self.address
        if mapped is None:
            return socket.AF_INET6, "::1" if self.address.is_unspecified else str(self.address)
        return socket.AF_INET, "127.0.0.1" if mapped.is_unspecified else str(mapped)


def listening_ports(pid: int) -> tuple[int, ...]:
    """Return the ports on which a process tree listens in its own network namespace, in ascending order."""
    return tuple(sorted({each.port for each in listening_sockets(pid)}))


def listening_sockets(pid: int) -> set[ListeningAddress]:
    """Return the sockets on which a process tree listens, in its own network namespace."""
    found = dict(_sockets_in_namespace(pid))
    if not found:
        return set()
    tree = islice((pid, *descendants(pid)), MAX_PROCESSES_LOOKED_AT)
    return {found[held] for each in tree for held in _sockets_of(each) if held in found}


def _sockets_in_namespace(pid: int) -> Iterator[tuple[str, ListeningAddress]]:
    """Yield the inode and address of each listening socket in the process's network namespace."""
    for name in ("tcp", "tcp6"):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/net/{name}", encoding="ascii") as file:
            for row in islice(file, 1, None):
                fields = row.split()
                if fields[3] == _LISTEN_STATE:
                    address, _, port = fields[1].partition(":")
                    yield fields[9], ListeningAddress(int(port, 16), _address(address))


def _address(written: str) -> IPv4Address | IPv6Address:
    """Parse an address as the kernel writes it: 32-bit words in the machine's byte order."""
    words = [int(written[start : start + 8], 16) for start in range(0, len(written), 8)]
    packed = struct.pack(f"={len(words)}I", *words)
    return IPv4Address(packed) if len(words) == 1 else IPv6Address(packed)


def _sockets_of(pid: int) -> Iterator[str]:
    """Yield the inodes of the sockets that a process has open."""
    with contextlib.suppress(OSError):
        for name in os.listdir(f"/proc/{pid}/fd"):
            with contextlib.suppress(OSError):
                target = os.readlink(f"/proc/{pid}/fd/{name}")
                if target.startswith("socket:["):
                    yield target.removeprefix("socket:[").removesuffix("]")
