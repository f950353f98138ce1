"""Access to hosts: allow lists of names and networks, and refusal of local and private IP addresses."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

MAX_PORT = 65535
_PORT_RANGE = re.compile(r"([1-9]\d{0,4})(?:-([1-9]\d{0,4}))?", re.ASCII)


class BadPort(Exception):
    """Raised for an entry that is neither a port nor a range of ports."""


@dataclass(frozen=True, slots=True)
class PortRanges:
    """Ports as ranges, with both ends included."""

    ranges: tuple[tuple[int, int], ...]

    def contain(self, port: int) -> bool:
        """Whether a port is in one of the ranges."""
        return any(first <= port <= last for first, last in self.ranges)


def parse_port_ranges(written: Iterable[str]) -> PortRanges:
    """Parse a list of ports; raises `BadPort`, which names the entry."""
    return PortRanges(tuple(map(_parse_port_range, written)))


def _parse_port_range(entry: str) -> tuple[int, int]:
    match = _PORT_RANGE.fullmatch(entry)
    first = int(match[1]) if match else 0
    last = int(match[2] or first) if match else 0
    if not 0 < first <= last <= MAX_PORT:
        raise BadPort(f"`{entry}` is not a port. Use for example `3000`, or `8000-8999` for a range.")
    return first, last


IpAddress = IPv4Address | IPv6Address
IpNetwork = IPv4Network | IPv6Network

METADATA_ADDRESSES = (
    "169.254.169.254",
    "169.254.170.2",
    "100.100.100.200",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd20:ce::254",
)
"""Addresses at which cloud providers serve a machine's credentials."""

_THIS_MACHINE = "this machine"
# Documentation networks are not listed: no machine legitimately has such an address, except in labs that
# route them.
_LOCAL_NETWORKS = (
    ("0.0.0.0/8", _THIS_MACHINE),
    ("127.0.0.0/8", _THIS_MACHINE),
    ("10.0.0.0/8", "a private network"),
    ("172.16.0.0/12", "a private network"),
    ("192.168.0.0/16", "a private network"),
    ("100.64.0.0/10", "a provider's network"),
    ("169.254.0.0/16", "the local link"),
    ("192.0.0.0/24", "a network for protocol assignments"),
    ("192.88.99.0/24", "a 6to4 relay"),
    ("198.18.0.0/15", "a benchmark network"),
    ("224.0.0.0/4", "a multicast group"),
    ("240.0.0.0/4", "a reserved network"),
    ("::/128", _THIS_MACHINE),
    ("::1/128", _THIS_MACHINE),
    ("100::/64", "a discard-only network"),
    ("fc00::/7", "a private network"),
    ("fe80::/10", "the local link"),
    ("fec0::/10", "a private network"),
    ("ff00::/8", "a multicast group"),
)
_WRAPPING_NETWORKS = (
    ("::ffff:0:0/96", 0),
    ("::ffff:0:0:0/96", 0),
    ("::/96", 0),
    ("64:ff9b::/96", 0),
    ("64:ff9b:1::/48", 0),
    ("2002::/16", 80),
)
"""IPv6 networks that embed an IPv4 address, and how many bits follow it."""
_REFUSED_NETWORKS = tuple((ip_network(network), words) for network, words in _LOCAL_NETWORKS)
_IPV4_CARRIERS = tuple((IPv6Network(network), shift) for network, shift in _WRAPPING_NETWORKS)
_TEREDO = IPv6Network("2001::/32")
_ADDRESS_PARTS = 4
_ADDRESS_NUMBER = re.compile(r"0[xX][0-9a-fA-F]*|[0-9]+")


def ip_address_refusal(address: str | IpAddress, *, but: tuple[IpNetwork, ...] = ()) -> str:
    """Return why an IP address is refused (local, private, metadata); empty if it is allowed.

    `but` are the networks that the user has allowed.
    """
    found = _parse_ip_address_or_none(address)
    if found is None:
        return "It is not an address."
    inner = _embedded_ipv4_addresses(found)
    if any(
        each in network for each in (found, *inner) for network in but if each.version == network.version
    ):
        return ""
    for each in (*inner, found):
        if str(each) in METADATA_ADDRESSES:
            return f"{address} is a cloud metadata address that serves machine credentials."
        if network := _name_of_refused_network(each):
            return f"{address} leads to {network}."
    return ""


def is_address_of_this_machine(address: str) -> bool:
    """Whether an IP address, or each IPv4 address embedded in it, is this machine's own."""
    found = _parse_ip_address_or_none(address)
    return found is not None and all(
        _name_of_refused_network(each) == _THIS_MACHINE
        for each in _embedded_ipv4_addresses(found) or (found,)
    )


def _name_of_refused_network(address: IpAddress) -> str:
    """Describe the refused network that contains an address; empty if there is none."""
    return next(
        (
            words
            for network, words in _REFUSED_NETWORKS
            if address.version == network.version and address in network
        ),
        "",
    )


def ip_literal(host: str) -> IpAddress | None:
    """Parse a host as an IP address, in any spelling that a resolver accepts; None if it is a name."""
    bare = host[1:-1] if host.startswith("[") and host.endswith("]") else host
    found = _parse_ip_address_or_none(bare)
    return found if found is not None else _address_in_old_spelling(bare.removesuffix("."))


def _parse_ip_address_or_none(address: str | IpAddress) -> IpAddress | None:
    if isinstance(address, IPv4Address | IPv6Address):
        return _unscoped_address(address)
    try:
        return _unscoped_address(ip_address(address))
    except ValueError:
        return None


def _unscoped_address(address: IpAddress) -> IpAddress:
    """Drop the interface of an IPv6 address: `fe80::1%eth0` becomes `fe80::1`."""
    return IPv6Address(int(address)) if isinstance(address, IPv6Address) else address


def _embedded_ipv4_addresses(address: IpAddress) -> tuple[IPv4Address, ...]:
    """Return the IPv4 addresses that are embedded in an IPv6 address."""
    if isinstance(address, IPv4Address):
        return ()
    if address in _TEREDO:
        server, client = (int(address) >> 64) & 0xFFFFFFFF, ~int(address) & 0xFFFFFFFF
        return (IPv4Address(server), IPv4Address(client))
    for network, shift in _IPV4_CARRIERS:
        if address in network and int(address) > 1:
            return (IPv4Address((int(address) >> shift) & 0xFFFFFFFF),)
    return ()


def _address_in_old_spelling(host: str) -> IPv4Address | None:
    """Parse old spellings of IPv4 addresses: `0x7f.1`, `017700000001`, `2130706433` are all 127.0.0.1."""
    parts = host.split(".")
    if len(parts) > _ADDRESS_PARTS or not all(_ADDRESS_NUMBER.fullmatch(part) for part in parts):
        return None
    try:
        numbers = [_parse_address_number(part) for part in parts]
    except ValueError:
        return None
    *first, last = numbers
    if any(number > 0xFF for number in first) or last >= 1 << 8 * (_ADDRESS_PARTS - len(first)):
        return None
    high = sum(number << 8 * (3 - place) for place, number in enumerate(first))
    return IPv4Address(high + last)


def _parse_address_number(text: str) -> int:
    if text[:2] in {"0x", "0X"}:
        return int(text[2:] or "0", 16)
    return int(text, 8 if text.startswith("0") else 10)


WEB_PORTS = frozenset({80, 443})
"""The ports that an entry of a host list allows if it names none."""
_HOST_ENTRY = re.compile(
    r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:]+|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(?:/\d+)?)"
    r"(?::(?P<port>\d{1,5}|\*))?"
)
_HOST_NAME = re.compile(
    r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*"
)
_MAX_PORT_DIGITS = 5


class BadHostEntry(ValueError):
    """Raised for an entry of a host list that can't be parsed."""


@dataclass(frozen=True, slots=True)
class HostEntry:
    """One host list entry: a name, `*.name` for all names below it, or an IP network, with its ports."""

    name: str = ""
    network: IpNetwork | None = None
    ports: frozenset[int] | None = WEB_PORTS
    """The allowed ports; None for every port."""

    def allows(self, host: str, port: int) -> bool:
        """Whether this entry allows a connection to a host and port."""
        if self.ports is not None and port not in self.ports:
            return False
        if self.network is not None:
            address = ip_literal(host)
            return (
                address is not None and address.version == self.network.version and address in self.network
            )
        if self.name.startswith("*."):
            return host.endswith(self.name[1:]) and len(host) > len(self.name) - 1
        return host == self.name


@dataclass(frozen=True)
class HostList:
    """An allow list of hosts: all other hosts are refused."""

    entries: tuple[HostEntry, ...]

    def lists(self, host: str, port: int) -> bool:
        """Whether the list allows a connection, by the host's name as written, without resolving it."""
        return any(entry.allows(normalized_host(host), port) for entry in self.entries)

    @cached_property
    def networks(self) -> tuple[IpNetwork, ...]:
        """The IP networks in the list; their addresses are allowed even if they are local."""
        return tuple(entry.network for entry in self.entries if entry.network is not None)


def parse_host_list(listed: tuple[str, ...]) -> HostList:
    """Parse the entries of a host list; raises `BadHostEntry`."""
    return HostList(tuple(_parse_host_entry(each) for each in listed))


def split_host_port(written: str) -> tuple[str, int]:
    """Split `host:port` into host and port; the port defaults to 443."""
    host, colon, port = written.rpartition(":")
    if (
        not colon
        or not port.isdecimal()
        or len(port) > _MAX_PORT_DIGITS
        or (":" in host and not host.endswith("]"))
    ):
        return written, 443
    return host, int(port)


def normalized_host(host: str) -> str:
    """Normalize a host name for comparison: lower case, no trailing dot, IDNA."""
    bare = host.removesuffix(".").lower()
    if bare.isascii():
        return bare
    try:
        return bare.encode("idna").decode("ascii")
    except UnicodeError:
        return bare


def _parse_host_entry(written: str) -> HostEntry:
    found = _HOST_ENTRY.fullmatch(written.strip())
    if found is None:
        raise BadHostEntry(f"`{written}` is not a host.")
    ports = _parse_entry_ports(written, found["port"])
    bare = found["host"].removeprefix("[").removesuffix("]")
    try:
        return HostEntry(network=ip_network(bare, strict=False), ports=ports)
    except ValueError:
        pass
    name = normalized_host(bare)
    if ip_literal(name) is not None or not _HOST_NAME.fullmatch(name):
        raise BadHostEntry(f"`{written}` is not a host. Use a name, `*.name`, an IP address or a network.")
    return HostEntry(name=name, ports=ports)


def _parse_entry_ports(written: str, port: str | None) -> frozenset[int] | None:
    if port is None:
        return WEB_PORTS
    if port == "*":
        return None
    if not 0 < int(port) <= MAX_PORT:
        raise BadHostEntry(f"`{written}` has an invalid port. Use 1 to 65535, or `*`.")
    return frozenset({int(port)})
