"""A server on loopback that speaks S3, with a bucket `fleet`."""

import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

START_SECONDS = 120


@contextmanager
def s3_server(folder: Path) -> Iterator[int]:
    """Run the server and return its port; its log is in the folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = int(free.getsockname()[1])
    with (folder / "s3.log").open("wb") as log:
        server = subprocess.Popen(
            [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)],
            stdout=log,
            stderr=log,
        )
        try:
            _wait_for(server, port)
            import s3fs

            s3fs.S3FileSystem(**fsspec_options(port), skip_instance_cache=True).mkdir("fleet")
            yield port
        finally:
            server.terminate()
            server.wait(30)


def fsspec_options(port: int) -> dict[str, object]:
    """How fsspec reaches it."""
    return {"key": "k", "secret": "s", "client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}"}}


def _wait_for(server: subprocess.Popen[bytes], port: int) -> None:
    end = time.monotonic() + START_SECONDS
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            assert server.poll() is None and time.monotonic() < end, "the S3 server does not start"
        else:
            return
