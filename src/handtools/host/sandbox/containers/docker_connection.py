"""Client of the Docker Engine API: availability, stream connections, and its errors as `HostError`.

It uses the `docker` package except for streams: the package returns their socket without the bytes it
received together with the response head, so the start of a quick command's output could be lost.
"""

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from typing import Any

from handtools.core.errors import HostError

DEFAULT_DOCKER_HOST = "unix:///var/run/docker.sock"
_UNIX = "unix://"
_API_SECONDS = 60
_HEAD_BYTES = 64 << 10
_END_OF_HEAD = b"\r\n\r\n"


class DockerEngine:
    """A connection to this machine's Docker Engine; a remote engine can't mount the workspace."""

    def __init__(self, address: str = "") -> None:
        self.address = address or os.environ.get("DOCKER_HOST", "") or DEFAULT_DOCKER_HOST

    @cached_property
    def client(self) -> Any:
        """The client of the `docker` package, created on first use."""
        import docker

        with docker_errors():
            self._connected_socket().close()  # the package leaks a socket if the connection fails
            return docker.DockerClient(base_url=self.address, timeout=_API_SECONDS, version="auto")

    def problem(self) -> str:
        """Return why the Docker Engine can't be used; empty if it responds."""
        if not self.address.startswith(_UNIX):
            return f"{self.address} is on another machine, which can't mount a workspace from here."
        try:
            self._connected_socket().close()
            self.client.ping()
        except PermissionError:
            return f"This user has no permission to connect to Docker at {self._socket_path}."
        except OSError as error:
            return f"Can't connect to Docker at {self._socket_path}: {error.strerror}."
        except ImportError:
            return "The docker package is not installed (extra `container`)."
        except HostError as error:
            return str(error)
        return ""

    def close(self) -> None:
        """Close the connections; they are reopened when needed."""
        client = self.__dict__.pop("client", None)
        if client is not None:
            client.close()

    def stream(self, path: str, body: dict[str, Any] | None = None) -> tuple[socket.socket, bytes]:
        """Make a request that is upgraded to a raw stream; returns the socket and bytes already read."""
        content = json.dumps(body or {}).encode()
        words = (
            f"POST {path} HTTP/1.1",
            "Host: docker",
            "Content-Type: application/json",
            "Connection: Upgrade",
            "Upgrade: tcp",
            f"Content-Length: {len(content)}",
        )
        try:
            line = self._connected_socket()
            with _closed_on_failure(line):
                line.sendall("\r\n".join(words).encode() + _END_OF_HEAD + content)
                first = _read_upgrade_response(line)
                line.settimeout(None)
        except OSError as error:
            raise HostError(f"Docker did not respond: {error}.") from error
        return line, first

    @property
    def _socket_path(self) -> str:
        return self.address.removeprefix(_UNIX)

    def _connected_socket(self) -> socket.socket:
        line = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        with _closed_on_failure(line):
            line.settimeout(_API_SECONDS)
            line.connect(self._socket_path)
        return line


@contextmanager
def _closed_on_failure(line: socket.socket) -> Iterator[None]:
    try:
        yield
    except BaseException:
        line.close()
        raise


def _read_upgrade_response(line: socket.socket) -> bytes:
    """Read the HTTP response head of an upgraded connection; returns the bytes received after it."""
    head = bytearray()
    while _END_OF_HEAD not in head and len(head) < _HEAD_BYTES:
        part = line.recv(_HEAD_BYTES)
        if not part:
            break
        head += part
    said, _, rest = bytes(head).partition(_END_OF_HEAD)
    first = said.split(b"\r\n", 1)[0].decode("latin-1")
    if " 101 " not in first and " 200 " not in first:
        raise HostError(f"Docker refused to open a stream: {_error_message(rest) or first}.")
    return rest


def _error_message(body: bytes) -> str:
    try:
        return str(json.loads(body)["message"])
    except (ValueError, KeyError, TypeError):
        return ""


@contextmanager
def docker_errors() -> Iterator[None]:
    """Context manager that converts errors of the `docker` package and the connection to `HostError`."""
    import docker.errors
    import requests.exceptions

    try:
        yield
    except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as error:
        said = getattr(error, "explanation", None) or error
        raise HostError(f"Docker: {said}") from error
