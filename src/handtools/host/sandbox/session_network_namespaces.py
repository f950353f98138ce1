"""Network namespaces of sessions: a session's commands and jobs can reach each other's loopback ports.

A namespace needs no process to keep it alive: it exists as long as one of its fds is open, and the kernel
closes ours when we exit, for whatever reason. So there is nothing to kill and nothing can leak. A
supervisor's child creates the namespace: an unprivileged user needs a user namespace around it, which only
a single-threaded process can create or enter.
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
"""How many namespaces are kept for sessions in which nothing runs."""
IDLE_NETWORK_SECONDS = 600.0
"""Idle timeout of a session's namespace, checked when the next command starts."""


@dataclass(slots=True)
class SessionNetwork:
    """A network namespace with only a loopback interface; exists as long as its fds are open."""

    namespaces: tuple[int, ...]
    """Fds to join, in this order: the user namespace if there is one, then the network namespace."""
    users: int = 0
    """How many commands and jobs are running in it."""
    left: float = 0.0
    """When the last of them ended, in monotonic time."""

    def listening_socket(self) -> socket.socket:
        """Return a socket in our process that listens on a free loopback port in the namespace."""
        order = NetworkOrder(order="network", unshare=0, listening=1, connecting=())
        _, [fd] = open_network(order, self.namespaces)
        return socket.socket(fileno=fd)

    def unconnected_sockets(self, family: int, count: int) -> list[socket.socket]:
        """Return TCP sockets that connect inside the namespace, even when a process outside uses them."""
        order = NetworkOrder(order="network", unshare=0, listening=0, connecting=[family] * count)
        _, fds = open_network(order, self.namespaces)
        return [socket.socket(fileno=fd) for fd in fds]

    def close(self) -> None:
        """Close the fds; the kernel removes the namespace when the last process in it exits."""
        namespaces, self.namespaces = self.namespaces, ()
        for fd in namespaces:
            os.close(fd)


@dataclass(slots=True)
class SessionNetworks:
    """The network namespaces of the sessions of one workspace."""

    _networks: dict[str, SessionNetwork] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @contextmanager
    def opened_network(self, session: str) -> Iterator[SessionNetwork]:
        """Context manager: keeps the session's network open; raises `HostError` if it can't be created."""
        with self._lock:
            self._close_idle()
            network = self._networks.get(session)
            if network is None:
                network = self._networks[session] = _new_network()
            network.users += 1
        try:
            yield network
        finally:
            with self._lock:
                network.users -= 1
                network.left = time.monotonic()
                if self._networks.get(session) is not network and not network.users:
                    network.close()

    def close(self) -> None:
        """Close all namespaces in which nothing runs; the others close when their last command exits."""
        with self._lock:
            networks = list(self._networks.values())
            self._networks.clear()
            for network in networks:
                if not network.users:
                    network.close()

    def _close_idle(self) -> None:
        old = time.monotonic() - IDLE_NETWORK_SECONDS
        idle = sorted(
            (network.left, session) for session, network in self._networks.items() if not network.users
        )
        for place, (left, session) in enumerate(reversed(idle)):
            if place >= IDLE_NETWORKS or left < old:
                self._networks.pop(session).close()


def _new_network() -> SessionNetwork:
    flags = CLONE_NEWNET | (CLONE_NEWUSER if os.geteuid() else 0)  # root needs no user namespace
    order = NetworkOrder(order="network", unshare=flags, listening=0, connecting=())
    namespaces, _ = open_network(order)
    return SessionNetwork(tuple(namespaces))
