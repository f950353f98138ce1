"""The contract on a workspace of a fleet: an adapter takes a `FleetToolbox` as it takes a `Toolbox`."""

import os
import secrets
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path

import pytest

from handtools import Policy
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.host_client import HostClient
from handtools.fleet.host_server import HostServer
from handtools.fleet.workspaces import WorkspaceStore
from tests.adapters.drivers import Wanted
from tests.adapters.new_process import ASK, RUN

pytestmark = pytest.mark.anyio
driver = import_module(f"tests.adapters.driver_{os.environ['HANDTOOLS_ADAPTER']}").Driver()


@pytest.fixture
def store(tmp_path) -> WorkspaceStore:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.txt").write_text("one\ntwo\n")
    store = WorkspaceStore(tmp_path / "fleet")
    store.templates.add_folder(tmp_path / "source")
    return store


@asynccontextmanager
async def fleet_toolbox(store: WorkspaceStore, policy: Policy | None = None):
    """A toolbox whose workspace is on a host, over the host's socket; and the folder of its files."""
    host = WorkspaceHost(store, policy=policy)
    server = HostServer(host, {"token": "tenant"})
    client = HostClient(await server.start(f"unix:{store.folder}/socket"), "token")
    try:
        name = await client.create(store.templates.digests()[0])
        async with FleetToolbox(client, name) as box:
            yield box, store.files_folder(name)
    finally:
        await client.aclose()
        await server.aclose()
        await host.aclose()


def call(tool: str, args) -> Wanted:
    return Wanted(tool, args, f"call_{secrets.token_hex(6)}")


async def test_tools_run_on_the_host_and_errors_are_read_by_the_model(store):
    async with fleet_toolbox(store, RUN) as (box, root):
        edit = {"path": "a.txt", "old_string": "one", "new_string": "1"}
        edited, ran, missing = await driver.run(
            box,
            call("edit", edit),
            call("bash", {"command": "echo hi > made.txt; echo said"}),
            call("read", {"path": "nowhere.txt"}),
        )
        assert (edited.error, ran.error, missing.error) == (False, False, True)
        assert "said" in ran.text
        assert (root / "a.txt").read_text() == "1\ntwo\n"
        assert (root / "made.txt").read_text() == "hi\n"


async def test_the_same_id_runs_once(store):
    async with fleet_toolbox(store, RUN) as (box, root):
        command = call("bash", {"command": "echo x >> count.txt"})
        for _ in range(2):
            await driver.run(box, command, conversation="one")
        assert (root / "count.txt").read_text() == "x\n"


@pytest.mark.parametrize("allow", [True, False])
async def test_a_question_of_the_host_is_a_pause_of_the_sdk(store, allow):
    async with fleet_toolbox(store, ASK) as (box, root):
        paused, question = await driver.ask(box, call("write", {"path": "made.txt", "content": "x\n"}))
        assert "made.txt" in question["title"]
        assert not (root / "made.txt").exists()
        await driver.answer(box, paused, allow=allow)
        assert await box.waiting() == []
        assert Path(root, "made.txt").exists() == allow
