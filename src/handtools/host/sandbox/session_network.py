"""Network namespaces of sessions: what a session's commands and jobs start on a loopback port, the others reach.

A namespace needs no process to hold it: it lives as long as a descriptor of it is open, and ours close with us,
however we end. So there is nothing to end and nothing that could be left. A supervisor's child makes it, since
only a process with one thread can make or enter the user namespace that an ordinary user needs around it. ADR 162.
"""

import os
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from handtools.host.sandbox.processes.supervisor_client import open_network
from handtools.host.sandbox.supervisor_messages import NetworkOrder

CLONE_NEWNET, CLONE_NEWUSER = 0x40000000, 0x10000000
IDLE_NETWORKS = 16
"""How many namespaces of sessions in which nothing runs are kept."""
IDLE_NETWORK_SECONDS = 600.0
"""After how many seconds without a command a session's namespace is closed, when the next command looks."""


@dataclass(slots=True)
class SessionNetwork:
    """A network namespace with nothing but loopback, alive as long as its descriptors are open."""

    namespaces: tuple[int, ...]
    """Descriptors to join, in this order: the user namespace if there is one, then the network."""
    users: int = 0
    """How many commands and jobs are in it."""
    left: float = 0.0
    """When the last of them ended, by the monotonic clock."""

    def listening_socket(self) -> socket.socket:
        """A socket that listens in the namespace, on a loopback port of its own, and is ours."""
        order = NetworkOrder(order="network", unshare=0, listening=1, connecting=())
        _, [fd] = open_network(order, self.namespaces)
        return socket.socket(fileno=fd)

    def unconnected_sockets(self, family: int, count: int) -> list[socket.socket]:
        """TCP sockets of an address family that connect within the namespace, whoever connects them."""
        order = NetworkOrder(order="network", unshare=0, listening=0, connecting=[family] * count)
        _, fds = open_network(order, self.namespaces)
        return [socket.socket(fileno=fd) for fd in fds]

    def close(self) -> None:
        """Close the descriptors: the namespace goes with the last process in it."""
        namespaces, self.namespaces = self.namespaces, ()
        for fd in namespaces:
            os.close(fd)


@dataclass(slots=True)
class SessionNetworks:
    """The network namespaces of the sessions of one workspace."""

    _open: dict[str, SessionNetwork] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def opened_network(self, session: str) -> Iterator[SessionNetwork]:
        """Context manager: the session's network, kept open meanwhile; `HostError` where none can be made."""
        with self._lock:
            self._close_idle()
            network = self._open.get(session)
            if network is None:
                network = self._open[session] = _new_network()
            network.users += 1
        try:
            yield network
        finally:
            with self._lock:
                network.users -= 1
                network.left = time.monotonic()
                if self._open.get(session) is not network and not network.users:
                    network.close()

    def close(self) -> None:
        """Close all namespaces in which nothing runs; the others close with what runs in them."""
        with self._lock:
            networks = list(self._open.values())
            self._open.clear()
            for network in networks:
                if not network.users:
                    network.close()

    def _close_idle(self) -> None:
        old = time.monotonic() - IDLE_NETWORK_SECONDS
        idle = sorted(
            (network.left, session) for session, network in self._open.items() if not network.users
        )
        for place, (left, session) in enumerate(reversed(idle)):
            if place >= IDLE_NETWORKS or left < old:
                self._open.pop(session).close()


def _new_network() -> SessionNetwork:
    flags = CLONE_NEWNET | (CLONE_NEWUSER if os.geteuid() else 0)  # only root needs no user namespace
    order = NetworkOrder(order="network", unshare=flags, listening=0, connecting=())
    namespaces, _ = open_network(order)
    return SessionNetwork(tuple(namespaces))
