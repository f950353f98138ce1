"""Published ports: a loopback port of this machine is forwarded to a port of a background job.

Connections can be opened only from outside. The socket that connects to the job was created in its session's
network namespace and stays there, so it can't reach anything else on this machine. Before each connection
we check that the job still listens, since another command of the session could have taken over the port.
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
from handtools.host.sandbox.session_network_namespaces import SessionNetwork
from handtools.host.sandbox.socket_server_thread import ByteRelay, RelayServer, StreamPair

HOST_ADDRESS = "127.0.0.1"
MAX_PUBLISHED_PORTS = 8
"""How many ports of one job can be published at the same time."""
MAX_PUBLISHED_CONNECTIONS = 64
"""How many connections to a published port are served concurrently; more wait in the kernel's queue."""
SPARE_SOCKETS = 8
"""How many sockets are opened in the namespace at a time."""
FIRST_UNPRIVILEGED_PORT = 1024
PRIVILEGED_PORT_SHIFT = 8000
"""The offset added to a port below 1024 to get its host port: 80 becomes 8080."""
TRIED_PORTS = 100
"""How many port numbers are tried, starting with the job's own."""
SILENCE_SECONDS = 3600.0
"""Idle timeout of a connection; live reloaders keep one open while nothing changes."""
CONNECT_SECONDS = 20.0

FindListeners = Callable[[], Iterable[ListeningAddress]]
"""Callback that returns the sockets on which a job is listening now."""


def free_host_port(port: int) -> int:
    """Return a host port for a job's port: the same number or the next free one.

    The result is deterministic unless ports are taken or freed, so that an approval request made later
    names the same port.
    """
    first = port if port >= FIRST_UNPRIVILEGED_PORT else port + PRIVILEGED_PORT_SHIFT
    for candidate in range(first, min(first + TRIED_PORTS, 65536)):
        try:
            _listen(candidate).close()
        except OSError:
            continue
        return candidate
    raise Unavailable(
        f"No free port found on this machine from {first} on.", hint="Start the server on another port."
    )


@dataclass(slots=True)
class PortForwarder:
    """Forwards connections from a loopback port of this machine to the port on which a job listens."""

    port: PublishedPort
    network: SessionNetwork
    listeners: FindListeners
    _server: RelayServer = field(init=False)
    _spare: dict[int, list[socket.socket]] = field(default_factory=dict)
    """Unconnected sockets in the namespace, by address family."""

    def __post_init__(self) -> None:
        self._server = RelayServer(self._forward, MAX_PUBLISHED_CONNECTIONS)

    def start(self) -> None:
        """Start listening; raises `OSError` if the port is taken."""
        self._server.start(_listen(self.port.host_port))

    def stop(self) -> None:
        """Stop listening and close all connections."""
        self._server.stop()
        for spare in self._spare.values():
            for each in spare:
                each.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inside_reader, inside_writer = await self._connect_to_job()
        try:
            async with asyncio.TaskGroup() as directions:
                directions.create_task(ByteRelay(reader, inside_writer).run(SILENCE_SECONDS))
                directions.create_task(ByteRelay(inside_reader, writer).run(SILENCE_SECONDS))
        except* OSError:  # one side disconnected, or was idle: `TimeoutError` is an `OSError` too
            pass
        finally:
            inside_writer.transport.abort()

    async def _connect_to_job(self) -> StreamPair:
        """Connect to the job; raises `OSError` if it no longer listens on the port."""
        found = sorted(each.connectable for each in self.listeners() if each.port == self.port.port)
        if not found:
            raise ConnectionRefusedError
        family, address = found[0]
        inside = self._socket_in_namespace(family)
        try:
            inside.settimeout(0)
            async with asyncio.timeout(CONNECT_SECONDS):
                await asyncio.get_running_loop().sock_connect(inside, (address, self.port.port))
            return await asyncio.open_connection(sock=inside)
        except BaseException:
            inside.close()
            raise

    def _socket_in_namespace(self, family: int) -> socket.socket:
        """Return a socket in the namespace.

        Blocks the server's thread, so that `stop` waits for it and the namespace stays open.
        """
        spare = self._spare.setdefault(family, [])
        if not spare:
            try:
                spare += self.network.unconnected_sockets(family, SPARE_SOCKETS)
            except HostError as failure:
                raise OSError(str(failure)) from failure
        return spare.pop()


class PublishedPorts:
    """The published ports of one job. A context manager that closes them when the job has ended."""

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
        """Return the published ports, sorted by the job's port number."""
        with self._lock:
            return tuple(self._forwarders[port].port for port in sorted(self._forwarders))

    def place_for(self, port: int, pid: int) -> PublishedPort:
        """Return where a port is or would be published; raises if the job's network makes it impossible."""
        for each in self.listed():
            if each.port == port:
                return each
        if self._network is not None:
            return PublishedPort(port, free_host_port(port))
        if _on_own_network(pid):
            raise InvalidInput(
                "The job uses this machine's network, so its ports don't need to be published.",
                hint=f"Tell the user: {PublishedPort(port, port).url}",
            )
        raise Unavailable(
            "The job's network namespace can't be entered.", hint="Start it again, then publish its port."
        )

    def open(self, port: PublishedPort, listeners: FindListeners) -> None:
        """Publish a port unless it already is; raises `Busy` if its host port was taken in the meantime."""
        with self._lock:
            if self._closed or self._network is None:
                raise InvalidInput("The job has ended.", hint="Start it again, then publish its port.")
            if port.port in self._forwarders:
                return
            if len(self._forwarders) >= MAX_PUBLISHED_PORTS:
                raise TooLarge(
                    f"The job already has {MAX_PUBLISHED_PORTS} published ports.",
                    hint="Unpublish one first.",
                )
            forwarder = PortForwarder(port, self._network, listeners)
            try:
                forwarder.start()
            except OSError as error:
                if error.errno != errno.EADDRINUSE:
                    raise HostError(f"Can't listen on port {port.host_port}: {error}.") from error
                raise Busy(
                    f"Another program just took port {port.host_port}.", hint="Send the call again."
                ) from error
            self._forwarders[port.port] = forwarder

    def close(self, port: int | None = None) -> None:
        """Close one or all published ports and their connections."""
        with self._lock:
            chosen = list(self._forwarders) if port is None else [port]
            closed = [self._forwarders.pop(each) for each in chosen if each in self._forwarders]
        for forwarder in closed:
            forwarder.stop()


def _listen(port: int) -> socket.socket:
    return socket.create_server((HOST_ADDRESS, port), backlog=MAX_PUBLISHED_CONNECTIONS)


def _on_own_network(pid: int) -> bool:
    try:
        return os.path.samefile(f"/proc/{pid}/ns/net", "/proc/self/ns/net")
    except OSError:
        return False
