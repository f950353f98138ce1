"""Listeners: everything on the machine that a confined command must not reach, and what it heard."""

import contextlib
import os
import select
import socket
import threading
from pathlib import Path

_PACKET_BYTES = 65536


class Listeners:
    """Sockets of every kind and a named pipe, read in one thread."""

    def __init__(self, folder: Path, workspace: Path, abstract: str) -> None:
        self.heard = bytearray()
        self.port = 0
        self._streams: list[socket.socket] = []
        self._others: list[socket.socket] = []
        self._lines: list[socket.socket] = []
        for name in ("stream", "docker.sock"):
            self._unix(str(folder / name), socket.SOCK_STREAM)
        self._unix(str(folder / "packets"), socket.SOCK_SEQPACKET)
        self._unix(str(folder / "datagram"), socket.SOCK_DGRAM)
        self._unix(str(workspace / "service.sock"), socket.SOCK_STREAM)
        self._unix(f"\0{abstract}", socket.SOCK_STREAM)
        self._unix(f"\0{abstract}-datagram", socket.SOCK_DGRAM)
        self._inet()
        os.mkfifo(folder / "pipe")
        self._pipe = os.open(folder / "pipe", os.O_RDWR | os.O_NONBLOCK)
        self.inherited, self._other_end = socket.socketpair()
        self._lines.append(self._other_end)
        self._wake, self._waker = os.pipe()
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def close(self) -> None:
        os.write(self._waker, b"x")
        self._thread.join()
        for line in (*self._streams, *self._others, *self._lines, self.inherited):
            line.close()
        for fd in (self._pipe, self._wake, self._waker):
            os.close(fd)

    def _unix(self, path: str, kind: socket.SocketKind) -> None:
        line = socket.socket(socket.AF_UNIX, kind)
        line.bind(path)
        if kind != socket.SOCK_DGRAM:
            line.listen(8)
            self._streams.append(line)
        else:
            self._others.append(line)

    def _inet(self) -> None:
        """One port for everything, on loopback."""
        stream = socket.create_server(("127.0.0.1", 0))
        self.port = stream.getsockname()[1]
        stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_FASTOPEN, 8)
        datagram = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        datagram.bind(("127.0.0.1", self.port))
        self._streams.append(stream)
        self._others.append(datagram)
        self._streams.append(socket.create_server(("::1", self.port), family=socket.AF_INET6))
        sixth = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        sixth.bind(("::1", self.port))
        self._others.append(sixth)

    def _listen(self) -> None:
        while True:
            known = {line.fileno(): line for line in (*self._streams, *self._others, *self._lines)}
            ready, _, _ = select.select([self._wake, self._pipe, *known], [], [])
            if self._wake in ready:
                return
            if self._pipe in ready:
                self.heard += os.read(self._pipe, _PACKET_BYTES)
            for line in (known[fd] for fd in ready if fd in known):
                if line in self._streams:
                    self._lines.append(line.accept()[0])
                else:
                    self._hear(line)

    def _hear(self, line: socket.socket) -> None:
        found = b""
        with contextlib.suppress(OSError):
            found = line.recv(_PACKET_BYTES)
        self.heard += found
        if line in self._lines and line is not self._other_end:
            with contextlib.suppress(OSError):
                line.sendall(b"HTTP/1.0 200 OK\r\n\r\n")
            if not found:
                self._lines.remove(line)
                line.close()
