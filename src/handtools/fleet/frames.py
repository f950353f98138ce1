"""Messages of the direct connection to a host: JSON, each after its length in four bytes."""

import asyncio
import json
import re
import struct
from typing import Any

from handtools.core.errors import HostError

PROTOCOL = 1
"""Version of the protocol, which client and host exchange first; both must have the same one."""
MOST_FRAME_BYTES = 64 << 20
_LENGTH = struct.Struct(">I")
_PORT = re.compile("[0-9]{1,5}")
FIRST_FRAME_BYTES = 4096
"""Most bytes of the first message, which is the token of somebody yet unknown."""


def frame(message: Any) -> bytes:
    """Encode a message."""
    return raw_frame(json.dumps(message, separators=(",", ":")).encode())


def raw_frame(body: bytes) -> bytes:
    """A message that is JSON already."""
    if len(body) > MOST_FRAME_BYTES:
        raise HostError(f"A message of {len(body):,} bytes is more than a connection carries.")
    return _LENGTH.pack(len(body)) + body


class FrameConnection(asyncio.Protocol):
    """One end of a connection: cuts what comes into messages and hands them on."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_congested = False
        """Whether the other end reads more slowly than we write."""
        self.most_bytes = MOST_FRAME_BYTES
        self._buffer = bytearray()

    def received(self, message: dict[str, Any]) -> None:
        """Take a message."""
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def pause_writing(self) -> None:
        """Note that the other end is slow."""
        self.is_congested = True

    def resume_writing(self) -> None:
        """Note that the other end has caught up."""
        self.is_congested = False

    def send(self, message: Any) -> None:
        """Send a message; it is lost when the connection is."""
        self.send_raw(frame(message))

    def send_raw(self, data: bytes) -> None:
        """Send a message that is a frame already."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def close(self) -> None:
        """Close the connection."""
        if self.transport is not None:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Cut what came into messages."""
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            if length > self.most_bytes:
                self.close()
                return
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                return
            body = bytes(self._buffer[_LENGTH.size : end])
            del self._buffer[:end]
            try:
                message = json.loads(body)
            except (ValueError, RecursionError):
                self.close()
                return
            if not isinstance(message, dict):
                self.close()
                return
            self.received(message)


def parse_address(address: str) -> tuple[str, int] | str:
    """`unix:PATH` as a path, `tcp:HOST:PORT` as host and port; raises `HostError` for anything else."""
    kind, _, rest = address.partition(":")
    if kind == "unix" and rest:
        return rest
    host, _, port = rest.rpartition(":")
    if kind == "tcp" and host and _PORT.fullmatch(port):
        return host, int(port)
    raise HostError(f"{address!r} is no address of a host.")
