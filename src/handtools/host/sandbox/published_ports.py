"""Published ports: a port of this machine's loopback leads to one port of a background job.

Connections are opened from outside only. What goes to the job is a socket that was made in the network namespace
of its session and stays there, so it reaches nothing of this machine; and before each connection it is looked up
whether the job still listens, since another command of the session could have taken the port over. ADR 169.
"""

import asyncio
import errno
import os
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from handtools.core.commands import PublishedPort
from handtools.core.errors import Busy, HostError, InvalidInput, TooLarge, Unavailable
from handtools.host.sandbox.processes.listening_ports import ListeningAddress
from handtools.host.sandbox.session_network import SessionNetwork
from handtools.host.sandbox.socket_server_thread import ByteRelay, RelayServer, StreamPair

HOST_ADDRESS = "127.0.0.1"
MOST_PUBLISHED_PORTS = 8
"""How many ports of one job may be published at the same time."""
MOST_PUBLISHED_CONNECTIONS = 64
"""How many connections to a published port are served at once; more wait in the kernel's queue."""
SPARE_SOCKETS = 8
"""How many sockets are fetched from the namespace at a time."""
FIRST_UNPRIVILEGED_PORT = 1024
PRIVILEGED_PORT_SHIFT = 8000
"""What is added to a port below 1024 for its number outside: 80 becomes 8080."""
TRIED_PORTS = 100
"""How many numbers are tried, from the port's own on."""
SILENCE_SECONDS = 3600.0
"""After how many seconds without a byte a connection is closed; reloaders keep one open while nothing changes."""
CONNECT_SECONDS = 20.0

FindListeners = Callable[[], Iterable[ListeningAddress]]
"""Callback: the sockets on which a job listens at this moment."""


def free_host_port(port: int) -> int:
    """The port outside for a port of a job: the same number, or the next one that is free.

    The same as long as nothing else changes, so that a person who is asked later is asked about the same.
    """
    first = port if port >= FIRST_UNPRIVILEGED_PORT else port + PRIVILEGED_PORT_SHIFT
    for candidate in range(first, min(first + TRIED_PORTS, 65536)):
        try:
            _listen(candidate).close()
        except OSError:
            continue
        return candidate
    raise Unavailable(
        f"No port from {first} on is free on this machine.", hint="Start the server on another port."
    )


@dataclass(slots=True)
class PortForwarder:
    """Passes connections to a loopback port of this machine on to the job that listens on a port."""

    where: PublishedPort
    network: SessionNetwork
    listeners: FindListeners
    _server: RelayServer = field(init=False)
    _spare: dict[int, list[socket.socket]] = field(default_factory=dict)
    """Unconnected sockets of the namespace, by address family."""

    def __post_init__(self) -> None:
        self._server = RelayServer(self._forward, MOST_PUBLISHED_CONNECTIONS)

    def start(self) -> None:
        """Start listening; raises `OSError` when the port is taken."""
        self._server.start(_listen(self.where.host_port))

    def stop(self) -> None:
        """Stop listening and close all connections."""
        self._server.stop()
        for spare in self._spare.values():
            for each in spare:
                each.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inside_reader, inside_writer = await self._connected()
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(ByteRelay(reader, inside_writer).run(SILENCE_SECONDS))
                directions.create_task(ByteRelay(inside_reader, writer).run(SILENCE_SECONDS))
        except* OSError:  # one side has gone; a silent one is a `TimeoutError`, which is an `OSError` too
            pass
        finally:
            inside_writer.transport.abort()

    async def _connected(self) -> StreamPair:
        """A connection to the job; raises `OSError` when it does not listen on the port any more."""
        found = sorted(each.connectable for each in self.listeners() if each.port == self.where.port)
        if not found:
            raise ConnectionRefusedError
        family, address = found[0]
        inside = self._socket(family)
        try:
            inside.settimeout(0)
            async with asyncio.timeout(CONNECT_SECONDS):
                await asyncio.get_running_loop().sock_connect(inside, (address, self.where.port))
            return await asyncio.open_connection(sock=inside)
        except BaseException:
            inside.close()
            raise

    def _socket(self, family: int) -> socket.socket:
        """A socket of the namespace. It blocks this thread for a moment, and so can't outlive the namespace."""
        spare = self._spare.setdefault(family, [])
        if not spare:
            try:
                spare += self.network.unconnected_sockets(family, SPARE_SOCKETS)
            except HostError as failure:
                raise OSError(str(failure)) from failure
        return spare.pop()


class PublishedPorts:
    """The published ports of one job. A context manager, left when the job has ended: then all of them close."""

    def __init__(self, network: SessionNetwork | None) -> None:
        self._network = network
        self._forwarders: dict[int, PortForwarder] = {}
        self._lock = threading.Lock()
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed = True
        self.close()

    def listed(self) -> tuple[PublishedPort, ...]:
        """The published ports, by their number inside."""
        with self._lock:
            return tuple(self._forwarders[port].where for port in sorted(self._forwarders))

    def place_for(self, port: int, pid: int) -> PublishedPort:
        """Where a port is published, or would be; raises if it can't be, for a job with that process."""
        for each in self.listed():
            if each.port == port:
                return each
        if self._network is not None:
            return PublishedPort(port, free_host_port(port))
        if _on_own_network(pid):
            raise InvalidInput(
                "The job is on this machine's own network: nothing needs to be published.",
                hint=f"Tell the person: {PublishedPort(port, port).url}",
            )
        raise Unavailable(
            "The job is in a network that can't be entered.", hint="Start it again, then publish its port."
        )

    def open(self, where: PublishedPort, listeners: FindListeners) -> None:
        """Publish a port, unless it is; raises `Busy` when its number outside was taken meanwhile."""
        with self._lock:
            if self._closed or self._network is None:
                raise InvalidInput("The job has ended.", hint="Start it again, then publish its port.")
            if where.port in self._forwarders:
                return
            if len(self._forwarders) >= MOST_PUBLISHED_PORTS:
                raise TooLarge(
                    f"{MOST_PUBLISHED_PORTS} ports of the job are published.", hint="Unpublish one first."
                )
            forwarder = PortForwarder(where, self._network, listeners)
            try:
                forwarder.start()
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise HostError(f"Port {where.host_port} can't be opened: {error}.") from error
                raise Busy(
                    f"Port {where.host_port} of this machine was taken meanwhile.", hint="Send it again."
                ) from error
            self._forwarders[where.port] = forwarder

    def close(self, port: int | None = None) -> None:
        """Close one published port, or all of them, with all connections."""
        with self._lock:
            chosen = list(self._forwarders) if port is None else [port]
            closed = [self._forwarders.pop(each) for each in chosen if each in self._forwarders]
        for forwarder in closed:
            forwarder.stop()


def _listen(port: int) -> socket.socket:
    return socket.create_server((HOST_ADDRESS, port), backlog=MOST_PUBLISHED_CONNECTIONS)


def _on_own_network(pid: int) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/ns/net", "/proc/self/ns/net")
    except OSError:
        return False
