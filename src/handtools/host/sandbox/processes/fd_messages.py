"""JSON messages with file descriptors over Unix sockets, between this process, supervisors and workers."""

import array
import json
import os
import socket
import struct
from collections.abc import Mapping, Sequence
from typing import Any

_SIZE = struct.Struct("!I")
_MAX_FDS = 64
_PIECE_BYTES = 1 << 16
_CLOSE_ON_EXEC: int = getattr(socket, "MSG_CMSG_CLOEXEC", 0)


class PeerGone(Exception):
    """Raised when the other side of the socket has closed it."""


def send_message(line: socket.socket, message: Mapping[str, object], fds: Sequence[int] = ()) -> None:
    """Send a message; the fds stay open on this side."""
    body = json.dumps(message).encode()
    whole = memoryview(_SIZE.pack(len(body)) + body)
    carried = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", fds))] if fds else []
    try:
        sent = line.sendmsg([whole[:_PIECE_BYTES]], carried)
        # Don't send an empty rest: the peer may already have handled the message and closed the socket.
        if rest := whole[sent:]:
            line.sendall(rest)
    except OSError as error:
        raise PeerGone from error


def receive_message_and_fds(line: socket.socket) -> tuple[Any, list[int]]:
    """Receive the next message and the fds sent with it, which are close-on-exec."""
    space = socket.CMSG_SPACE(_MAX_FDS * array.array("i").itemsize)
    try:
        start, carried, _, _ = line.recvmsg(_SIZE.size, space, _CLOSE_ON_EXEC)
        if not start:
            raise PeerGone
        fds = array.array("i")
        for _, _, some in carried:
            fds.frombytes(some[: len(some) - len(some) % fds.itemsize])
        for fd in fds if not _CLOSE_ON_EXEC else ():
            os.set_inheritable(fd, False)  # noqa: FBT003
        (size,) = _SIZE.unpack(start + _receive_exactly(line, _SIZE.size - len(start)))
        return json.loads(_receive_exactly(line, size)), list(fds)
    except OSError as error:
        raise PeerGone from error


def _receive_exactly(line: socket.socket, size: int) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        part = line.recv(min(size - len(parts), _PIECE_BYTES))
        if not part:
            raise PeerGone
        parts += part
    return bytes(parts)
