"""Find the user at the other end of a loopback TCP connection in the kernel's socket tables."""

import ipaddress
import os
import struct
from collections.abc import Iterable, Iterator

Address = tuple[str, int]
SOCKET_TABLES = ("/proc/net/tcp", "/proc/net/tcp6")
_ESTABLISHED = "01"
_TABLE_READS = 3
"""How many times to read the tables: a read can miss a row while other sockets open and close."""


def is_peer_of_other_user(client: Address, server: Address) -> bool:
    """Whether an accepted connection comes from a user other than root or the one running this process.

    Root could read this process anyway, and relays into containers and virtual machines run as root. A
    connection that the tables don't list as open counts as another user's: its socket was closed, or is on
    another machine. Returns False on systems without these tables.
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
    """Yield the uids that own a connection's client socket. The table's header row never matches."""
    ends = {(_table_address(client, form), _table_address(server, form)) for form in (4, 6)}
    for row in rows:
        # Number, local address, remote address, state, queues, timer, retransmits, uid, timeouts, inode.
        fields = row.split()
        # A socket that its process has closed is listed with uid 0 and inode 0.
        if tuple(fields[1:3]) in ends and fields[3] == _ESTABLISHED and fields[9] != "0":
            yield int(fields[7])


def _table_address(address: Address, form: int) -> str:
    """Format an address as the tables do: 32-bit words in the machine's byte order, then the port."""
    ip = ipaddress.ip_address(address[0])
    mapped = ipaddress.ip_address(f"::ffff:{ip}") if form == 6 and ip.version == 4 else ip
    words = struct.unpack(f"={len(mapped.packed) // 4}I", mapped.packed)
    return f"{''.join(f'{word:08X}' for word in words)}:{address[1]:04X}"
