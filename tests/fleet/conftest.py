"""The suite needs Ray, fsspec and an S3 server, which `.ci/fleet` installs; elsewhere it is not run."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

collect_ignore_glob = [] if os.environ.get("HANDTOOLS_FLEET") else ["test_*.py"]


@pytest.fixture(scope="session")
def s3_options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """How fsspec reaches a server on loopback that speaks S3, with a bucket `fleet`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    log = (tmp_path_factory.mktemp("s3") / "log").open("wb")
    server = subprocess.Popen(
        [sys.executable, "-m", "moto.server", "-H", "127.0.0.1", "-p", str(port)], stdout=log, stderr=log
    )
    try:
        end = time.monotonic() + 120
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert server.poll() is None and time.monotonic() < end, "the S3 server does not start"
        options: dict[str, object] = {
            "key": "k",
            "secret": "s",
            "client_kwargs": {"endpoint_url": f"http://127.0.0.1:{port}"},
        }
        import s3fs

        s3fs.S3FileSystem(**options, skip_instance_cache=True).mkdir("fleet")
        yield options
    finally:
        server.terminate()
        server.wait(30)
        log.close()


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder to make a template of."""
    folder = tmp_path / "source"
    (folder / "pkg").mkdir(parents=True)
    (folder / "a.txt").write_text("".join(f"line {number}\n" for number in range(20)))
    (folder / "pkg" / "b.txt").write_text("b\n")
    (folder / "run.sh").write_text("true\n")
    (folder / "run.sh").chmod(0o755)
    return folder
