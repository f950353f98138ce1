"""Where the workspaces of a batch run: on a host in this process, or on a Ray fleet."""

import secrets
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Protocol

from anyio import to_thread

from handtools.core.errors import UsageError
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.host_client import HostClient
from handtools.fleet.host_server import HostServer
from handtools.fleet.workspace_slots import HostLimits
from handtools.fleet.workspaces import WorkspaceStore
from handtools.runtime.policy import Policy


class BatchFleet(Protocol):
    """The fleet interface that a batch needs."""

    async def add_template(self, kind: str, source: str, *, commit: str = "", folder: str = "") -> str:
        """Create a template for workspaces and return its digest."""
        ...

    async def create(self, template: str) -> FleetToolbox:
        """Create a workspace. Raises `Busy` if there is no free slot."""
        ...

    async def fork(self, workspace: str, count: int = 1) -> list[FleetToolbox]:
        """Create workspaces from another one's current state."""
        ...

    def toolbox(self, workspace: str) -> FleetToolbox:
        """The toolbox of a workspace."""
        ...


class LocalFleet:
    """A host in this process as a fleet of one. Needs no extra packages."""

    def __init__(self, client: HostClient) -> None:
        self._client = client

    async def add_template(self, kind: str, source: str, *, commit: str = "", folder: str = "") -> str:
        """Create a template from a `folder`, `tarball`, `git` commit or `image` and return its digest."""
        return await self._client.add_template(kind, source, commit=commit, folder=folder)

    async def create(self, template: str) -> FleetToolbox:
        return self.toolbox(await self._client.create(template))

    async def fork(self, workspace: str, count: int = 1) -> list[FleetToolbox]:
        return [self.toolbox(name) for name in await self._client.fork(workspace, count)]

    def toolbox(self, workspace: str) -> FleetToolbox:
        return FleetToolbox(self._client, workspace)


@asynccontextmanager
async def open_local_fleet(
    folder: Path, *, policy: Policy, concurrency: int = 4, runner: str = ""
) -> AsyncIterator[LocalFleet]:
    """Open a host that stores its workspaces in a folder, and delete the folder at the end."""
    store = await to_thread.run_sync(WorkspaceStore, folder)
    for left in store.workspace_names():
        await to_thread.run_sync(store.remove, left)
    # A task has one workspace, or two during setup; all of them may be open at once.
    limits = HostLimits(open=max(HostLimits().open, 2 * concurrency))
    host = WorkspaceHost(store, limits=limits, policy=policy, runner=runner)
    token = secrets.token_hex(32)
    server = HostServer(host, {token: ""})
    client = HostClient(await server.start("tcp:127.0.0.1:0"), token)
    try:
        yield LocalFleet(client)
    finally:
        await client.aclose()
        await server.aclose()
        await host.aclose()
        await to_thread.run_sync(lambda: shutil.rmtree(folder, ignore_errors=True))


@asynccontextmanager
async def open_ray_fleet(
    address: str, name: str, *, folder: Path, policy: Policy, runner: str = ""
) -> AsyncIterator[BatchFleet]:
    """Connect to the named fleet in a Ray cluster, or start one for this batch if there is none.

    A fleet started here has one host per node. The hosts store their workspaces in `folder`, and stop at the
    end of the batch.
    """
    import ray  # pyright: ignore[reportMissingImports] - an extra

    from handtools.fleet.ray_fleet import SLOT_RESOURCE, Fleet, HostSettings

    started_here = not ray.is_initialized()
    if started_here:
        ray.init(address, logging_level="ERROR", log_to_driver=False)
    try:
        own = False
        try:
            fleet = Fleet.connect(name)
        except UsageError:
            own = True
            nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
            # If any node declares slots, start hosts only on the nodes that do.
            slots = [int(node[SLOT_RESOURCE]) for node in nodes if SLOT_RESOURCE in node]
            limits = HostLimits(slots=min(slots)) if slots else HostLimits()
            settings = HostSettings(folder=str(folder), policy=policy, runner=runner, limits=limits)
            fleet = await Fleet.start(name, settings, hosts=len(slots or nodes))
        try:
            yield fleet
        finally:
            await (fleet.stop() if own else fleet.aclose())
    finally:
        if started_here:
            ray.shutdown()
