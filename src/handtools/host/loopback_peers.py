"""Which user is at the other end of a TCP connection on loopback, by the kernel's tables of sockets. ADR 230."""

import ipaddress
import os
import struct
from collections.abc import Iterable, Iterator

Address = tuple[str, int]
SOCKET_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_ESTABLISHED = "01"
_TABLE_READS = 3
"""The kernel writes a table in parts, and a row can be missed while other sockets come and go."""


def is_peer_of_other_user(client: Address, server: Address) -> bool:
    """Whether an accepted connection comes from a user other than this process's own and root.

    Root could read this process anyway, and relays into containers and virtual machines run as root. A connection
    that the tables don't list as open counts as another user's: its socket was closed, or is on another machine.
    A system without such tables can't tell, and False is returned.
    """
    tables = [table for table in SOCKET_TABLES if os.path.exists(table)]
    if not tables:
        return False
    for _ in range(_TABLE_READS):
        uids = {uid for table in tables for uid in _read_client_uids(table, client, server)}
        if uids:
            return not uids <= {0, os.geteuid()}
    return True


def _read_client_uids(table: str, client: Address, server: Address) -> list[int]:
    with open(table, encoding="ascii") as rows:
        return list(client_uids(rows, client, server))


def client_uids(rows: Iterable[str], client: Address, server: Address) -> Iterator[int]:
    """The owners of the client's socket of a connection, from the rows of a table; its heading matches nothing."""
    ends = {(_table_address(client, form), _table_address(server, form)) for form in (4, 6)}
    for row in rows:
        # Number, local address, remote address, state, queues, timer, retransmits, uid, timeouts, inode.
        fields = row.split()
        # A socket that its process has closed is listed with uid 0 and inode 0.
        if tuple(fields[1:3]) in ends and fields[3] == _ESTABLISHED and fields[9] != "0":
            yield int(fields[7])


def _table_address(address: Address, form: int) -> str:
    """An address as a table writes it: words of 32 bits in the machine's byte order, then the port."""
    ip = ipaddress.ip_address(address[0])
    mapped = ipaddress.ip_address(f"::ffff:{ip}") if form == 6 and ip.version == 4 else ip
    words = struct.unpack(f"={len(mapped.packed) // 4}I", mapped.packed)
    return f"{''.join(f'{word:08X}' for word in words)}:{address[1]:04X}"
