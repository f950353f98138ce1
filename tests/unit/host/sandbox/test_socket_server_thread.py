"""A server in a thread of its own: how many connections it takes at once, and what it leaves."""

import asyncio
import os
import socket
import threading
from contextlib import closing, suppress

from handtools.host.sandbox.socket_server_thread import RelayServer


class Held:
    """Serves by waiting until the client has ended, and counts."""

    def __init__(self) -> None:
        self.most = self.now = 0
        self.entered = threading.Semaphore(0)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        self.entered.release()
        try:
            await reader.read()
            writer.write(b"bye")
        finally:
            self.now -= 1


def started(held: Held, most: int) -> tuple[RelayServer, int]:
    listening = socket.create_server(("127.0.0.1", 0))
    server = RelayServer(held.serve, most)
    server.start(listening)
    return server, listening.getsockname()[1]


def test_a_bounded_number_is_served_at_once_and_the_rest_gets_its_turn():
    held = Held()
    server, port = started(held, 2)
    clients = [socket.create_connection(("127.0.0.1", port), timeout=20) for _ in range(6)]
    for _ in range(2):
        assert held.entered.acquire(timeout=20)
    for client in clients:
        client.shutdown(socket.SHUT_WR)
    for client in clients:
        with closing(client):
            assert client.recv(10) == b"bye"
    server.stop()
    assert held.most == 2


def test_nothing_is_left_when_it_stops():
    before = set(os.listdir("/proc/self/fd"))
    held = Held()
    server, port = started(held, 4)
    with closing(socket.create_connection(("127.0.0.1", port), timeout=20)) as client:
        assert held.entered.acquire(timeout=20)
        server.stop()
        assert held.now == 0
        with suppress(ConnectionResetError):
            assert client.recv(10) == b""
    assert set(os.listdir("/proc/self/fd")) <= before
    assert not any(each.name == "handtools-relay" for each in threading.enumerate())
