"""The suite needs Ray, fsspec and an S3 server, which `.ci/fleet` installs; elsewhere it is not run."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fleet.s3_server import fsspec_options, s3_server

collect_ignore_glob = [] if os.environ.get("HANDTOOLS_FLEET") else ["test_*.py"]


@pytest.fixture(scope="session")
def s3_options(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, object]]:
    """How fsspec reaches a server on loopback that speaks S3, with a bucket `fleet`."""
    with s3_server(tmp_path_factory.mktemp("s3")) as port:
        yield fsspec_options(port)


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
