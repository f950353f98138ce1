"""Hosts: a list of what may be reached, as people write it."""

import re
from dataclasses import dataclass
from functools import cached_property
from ipaddress import ip_network

from handtools.text.addresses import Network, literal

WEB_PORTS = frozenset({80, 443})
"""What an entry without a port means."""
_ENTRY = re.compile(
    r"(?P<host>\[[0-9a-fA-F:.]+\]|[^:]+|[0-9a-fA-F:.]*:[0-9a-fA-F:.]*(?:/\d+)?)"
    r"(?::(?P<port>\d+|\*))?"
)
_NAME = re.compile(r"(?:\*\.)?[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?(?:\.[a-z0-9_](?:[a-z0-9_-]*[a-z0-9_])?)*")
_MOST_PORT = 65535


class BadHost(ValueError):
    """An entry that can't be read."""


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of a list: a name, `*.name` for all names below it, or an address or network; and its ports."""

    name: str = ""
    network: Network | None = None
    ports: frozenset[int] | None = WEB_PORTS
    """None: every port."""

    def takes(self, host: str, port: int) -> bool:
        """Whether it lets this through."""
        if self.ports is not None and port not in self.ports:
            return False
        if self.network is not None:
            address = literal(host)
            return (
                address is not None and address.version == self.network.version and address in self.network
            )
        if self.name.startswith("*."):
            return host.endswith(self.name[1:]) and len(host) > len(self.name) - 1
        return host == self.name


@dataclass(frozen=True)
class Hosts:
    """A whole list: what is not in it is refused."""

    entries: tuple[Entry, ...]

    def lists(self, host: str, port: int) -> bool:
        """Whether a connection is allowed, by name alone."""
        return any(entry.takes(normal(host), port) for entry in self.entries)

    @cached_property
    def networks(self) -> tuple[Network, ...]:
        """The addresses that were listed as such: these may be local."""
        return tuple(entry.network for entry in self.entries if entry.network is not None)


def read_hosts(listed: tuple[str, ...]) -> Hosts:
    """A list from what a person wrote; raises `BadHost`."""
    return Hosts(tuple(_entry(each) for each in listed))


def address(written: str) -> tuple[str, int]:
    """A host and a port from `host` or `host:port`; the usual port where none is written."""
    host, colon, port = written.rpartition(":")
    if not colon or not port.isdecimal() or (":" in host and not host.endswith("]")):
        return written, 443
    return host, int(port)


def normal(host: str) -> str:
    """A name in the one spelling that is compared: small letters, no dot at the end, ASCII."""
    bare = host.removesuffix(".").lower()
    if bare.isascii():
        return bare
    try:
        return bare.encode("idna").decode("ascii")
    except UnicodeError:
        return bare


def _entry(written: str) -> Entry:
    found = _ENTRY.fullmatch(written.strip())
    if found is None:
        raise BadHost(f"`{written}` is not a host.")
    ports = _ports(written, found["port"])
    bare = found["host"].removeprefix("[").removesuffix("]")
    try:
        return Entry(network=ip_network(bare, strict=False), ports=ports)
    except ValueError:
        pass
    name = normal(bare)
    if literal(name) is not None or not _NAME.fullmatch(name):
        raise BadHost(f"`{written}` is not a host: write a name, `*.name`, an address or a network.")
    return Entry(name=name, ports=ports)


def _ports(written: str, port: str | None) -> frozenset[int] | None:
    if port is None:
        return WEB_PORTS
    if port == "*":
        return None
    if not 0 < int(port) <= _MOST_PORT:
        raise BadHost(f"`{written}` has no such port.")
    return frozenset({int(port)})
