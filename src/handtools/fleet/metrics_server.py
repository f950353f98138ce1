"""Serve a host's metrics on loopback, for Prometheus or its agent on the same machine."""

import asyncio
import contextlib

from handtools.core.errors import UsageError
from handtools.fleet.host import WorkspaceHost
from handtools.text.prometheus import PROMETHEUS_CONTENT_TYPE, TextMetricRegistry

_LOOPBACK = ("127.0.0.1", "::1", "localhost")
_REQUEST_SECONDS = 10.0
_MAX_REQUEST_BYTES = 16384


class MetricsServer:
    """Answers only `GET /metrics`. It needs no token because it listens only on loopback."""

    def __init__(self, host: WorkspaceHost, registry: TextMetricRegistry) -> None:
        self._host, self._registry = host, registry
        self._server: asyncio.Server | None = None

    async def start(self, address: str = "127.0.0.1", port: int = 0) -> int:
        """Start listening, by default on any free port. Returns the port."""
        if address not in _LOOPBACK:
            raise UsageError(f"Metrics can be served only on a loopback address, not on {address!r}.")
        self._server = await asyncio.start_server(
            self._handle_http_request, address, port, limit=_MAX_REQUEST_BYTES
        )
        return int(self._server.sockets[0].getsockname()[1])

    async def aclose(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    async def _handle_http_request(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        try:
            async with asyncio.timeout(_REQUEST_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                words = head.split(b"\r\n", 1)[0].split(b" ")
                found = len(words) == 3 and words[0] == b"GET" and words[1].split(b"?")[0] == b"/metrics"
                if found:
                    self._host.sample_metrics()
                body = self._registry.text() if found else "Metrics are at GET /metrics.\n"
                status = "200 OK" if found else "404 Not Found"
                writer.write(
                    f"HTTP/1.1 {status}\r\nContent-Type: {PROMETHEUS_CONTENT_TYPE}\r\n"
                    f"Content-Length: {len(body.encode())}\r\nConnection: close\r\n\r\n{body}".encode()
                )
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass  # the client disconnected, or did not send a valid request
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()
