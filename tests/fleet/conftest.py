"""The suite needs Ray, fsspec and an S3 server, which `.ci/fleet` installs; elsewhere it is not run."""

import os
import secrets
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from handtools.core.call import Call
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.workspace_log import LogStore
from handtools.fleet.workspaces import WorkspaceStore
from tests.fleet.s3_server import fsspec_options, s3_server

collect_ignore_glob = [] if os.environ.get("HANDTOOLS_FLEET") else ["test_*.py"]

Hosts = Callable[..., WorkspaceHost]


@pytest.fixture(scope="session")
def s3_port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """The port of a server on loopback that speaks S3, with a bucket `fleet`."""
    with s3_server(tmp_path_factory.mktemp("s3")) as port:
        yield port


@pytest.fixture
def s3_options(s3_port: int) -> dict[str, object]:
    """How fsspec reaches it."""
    return fsspec_options(s3_port)


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


@pytest.fixture(params=["file", "s3"])
def log(request: pytest.FixtureRequest, tmp_path: Path) -> LogStore:
    if request.param == "file":
        return LogStore(f"file://{tmp_path}/log")
    return LogStore(f"s3://fleet/{secrets.token_hex(4)}", **request.getfixturevalue("s3_options"))


@pytest.fixture
def hosts(tmp_path: Path, log: LogStore) -> Any:
    """Make a host with a disk of its own and the log."""
    made: list[WorkspaceHost] = []

    def host(folder: Path | None = None) -> WorkspaceHost:
        made.append(WorkspaceHost(WorkspaceStore(folder or tmp_path / f"host{len(made)}"), log=log))
        return made[-1]

    yield host
    for each in made:
        each.store.close_all()


async def call(host: WorkspaceHost, name: str, tool: str, **args: Any) -> Any:
    return await host.call(name, Call(tool=tool, args=args))
