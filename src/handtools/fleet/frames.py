"""Messages on a direct connection to a host: JSON, each prefixed with its length in four bytes."""

import asyncio
import json
import re
import struct
from typing import Any

from handtools.core.errors import HostError

PROTOCOL = 1
"""Protocol version. The client sends it first, and is refused if the host's version is different."""
MAX_FRAME_BYTES = 64 << 20
_LENGTH = struct.Struct(">I")
_PORT = re.compile("[0-9]{1,5}")
FIRST_FRAME_BYTES = 4096
"""Maximum size of the first message, which contains the token: the client is not authenticated yet."""


def encode_frame(message: Any) -> bytes:
    return frame_of_json_bytes(json.dumps(message, separators=(",", ":")).encode())


def frame_of_json_bytes(body: bytes) -> bytes:
    """Encode a message that is already JSON."""
    if len(body) > MAX_FRAME_BYTES:
        raise HostError(f"A message of {len(body):,} bytes is too large to send.")
    return _LENGTH.pack(len(body)) + body


class FrameConnection(asyncio.Protocol):
    """One end of a connection: splits incoming data into messages and passes them to `handle_message`."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport | None = None
        self.is_congested = False
        """Whether the other end reads more slowly than we write (backpressure)."""
        self.most_bytes = MAX_FRAME_BYTES
        self._buffer = bytearray()

    def handle_message(self, message: dict[str, Any]) -> None:
        """Handle a message."""
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def pause_writing(self) -> None:
        self.is_congested = True

    def resume_writing(self) -> None:
        self.is_congested = False

    def send_message(self, message: Any) -> None:
        """Send a message. It is dropped if the connection is closed."""
        self.send_encoded_frame(encode_frame(message))

    def send_encoded_frame(self, data: bytes) -> None:
        """Send an already encoded frame."""
        if self.transport is not None and not self.transport.is_closing():
            self.transport.write(data)

    def close(self) -> None:
        if self.transport is not None:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
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
            self.handle_message(message)


def parse_address(address: str) -> tuple[str, int] | str:
    """Parse `unix:PATH` to a path, or `tcp:HOST:PORT` to host and port. Raises `HostError` otherwise."""
    kind, _, rest = address.partition(":")
    if kind == "unix" and rest:
        return rest
    host, _, port = rest.rpartition(":")
    if kind == "tcp" and host and _PORT.fullmatch(port):
        return host, int(port)
    raise HostError(f"{address!r} is not a valid host address. Use unix:PATH or tcp:HOST:PORT.")
