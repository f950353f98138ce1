"""A fleet on Ray: Ray places and restarts the hosts, and clients send calls to the hosts directly.

Each host is a named detached actor, and a workspace's name contains its host's name. A client that knows a
workspace's name asks Ray for the actor, then connects to the actor's server. No directory service is
needed.
"""

import asyncio
import contextlib
import json
import os
import pickle
import secrets
import time
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from anyio import to_thread

from handtools.core.errors import Busy, HostError, UsageError
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.host_client import ClientConnection, HostClient, ProgressHandler, error_from_json
from handtools.fleet.host_log import start_recording_log_lines
from handtools.fleet.host_server import HostMethods, HostServer
from handtools.fleet.log_shipping import Durability
from handtools.fleet.metrics import HostMetrics, RayMetricRegistry
from handtools.fleet.workspace_log import LogStore
from handtools.fleet.workspace_slots import HostLimits, WorkspaceMoved
from handtools.fleet.workspaces import WorkspaceQuota, WorkspaceStore
from handtools.host.files.file_locks import try_lock, unlock
from handtools.runtime.policy import Policy
from handtools.toolbox import CODING

NAMESPACE = "handtools"
SLOT_RESOURCE = "workspace_slots"
"""Ray resource that limits slots: if nodes declare it, a host reserves one unit per slot."""
OWNER_LOCK_NAME = "owner"
LOCATE_SECONDS = 30.0
CLOSE_SECONDS = 60.0
RELAY_SECONDS = 60.0
PATIENCE_SECONDS = 180.0
"""How long a call waits for a lost host to be restarted. Ray takes up to a minute to detect a lost node."""
MAX_ARGUMENT_BYTES = 64 * 1024
"""Maximum size of a Ray argument. Ray stores arguments below 100 kB with the actor. Larger ones go into the
object store of the process that starts the fleet, so a host restarted after that process has exited would
not find them.
"""
_MAX_RAY_CALLS = 2000
_MAX_MOVES = 10
_SAMPLE_SECONDS = 5.0
_NAME_LOOK_SECONDS = 0.1
_MAX_PAUSE_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class HostSettings:
    """Settings of the hosts of a fleet."""

    folder: str
    """Folder on the nodes in which hosts store workspaces, in a separate subfolder for each node."""
    limits: HostLimits = field(default_factory=HostLimits)
    quota: WorkspaceQuota = field(default_factory=WorkspaceQuota)
    policy: Policy = field(default_factory=Policy)
    runner: str = ""
    listen: str = "127.0.0.1"
    """The address that a host's server listens on, or `node` for the node's address, reachable from others.

    Clients that can't connect to it send their requests through Ray.
    """
    tenants: Mapping[str, str] = field(default_factory=dict)
    """Tenants by token."""
    log_url: str = ""
    """fsspec URL for logs and templates. Without it, workspaces are lost with their node."""
    log_options: Mapping[str, Any] = field(default_factory=dict)
    durability: Durability = "durable"
    runtime_env: Mapping[str, Any] = field(default_factory=dict)
    """Ray's runtime environment for the hosts: packages, variables, an image."""


class HostActor:
    """A host in a Ray actor, started by `Fleet.start` and looked up by name."""

    def __init__(self, name: str, *pickled_settings: bytes) -> None:
        self._name = name
        # Unpickling is safe: the bytes come from the process that starts this actor, and Ray unpickles
        # its other arguments anyway.
        self._settings: HostSettings = pickle.loads(b"".join(pickled_settings))  # noqa: S301
        self._token = secrets.token_hex(32)
        self._methods: HostMethods | None = None
        self._server: HostServer | None = None
        self._starting = asyncio.Lock()
        self._sampling: asyncio.Task[None] | None = None
        start_recording_log_lines()

    def __repr__(self) -> str:
        """The actor's name in Ray's dashboard and in the prefix of its log lines."""
        return f"handtools host {self._name}"

    async def where(self) -> dict[str, str]:
        """The address of the host's server, a token for it, its node and its incarnation."""
        import ray

        server = await self._start_or_get_server()
        return {
            "address": server.address,
            "token": self._token,
            "node": ray.util.get_node_ip_address(),
            "incarnation": server.host.incarnation,
        }

    async def ask(self, asked: dict[str, Any]) -> bytes:
        """Handle a request as the host's server would, for clients that can't connect to the server."""
        await self._start_or_get_server()
        assert self._methods is not None
        return b"{" + await self._methods.handle_request(asked) + b"}"

    async def settings(self) -> HostSettings:
        """The settings that the host was started with, for a restart."""
        return self._settings

    async def close(self) -> None:
        """Store and close all workspaces, before the actor is killed."""
        server = await self._start_or_get_server()
        await server.aclose()
        await server.host.aclose()

    async def pid(self) -> int:
        """The process id of the host."""
        return os.getpid()

    async def ping(self) -> None:
        """Do nothing; a response shows that the actor is alive."""

    def _make_log_store(self) -> LogStore | None:
        settings = self._settings
        return LogStore(settings.log_url, **settings.log_options) if settings.log_url else None

    async def _start_or_get_server(self) -> HostServer:
        async with self._starting:
            if self._server is None:
                import ray

                top, node = Path(self._settings.folder), ray.get_runtime_context().get_node_id()
                log = self._make_log_store()
                names = list(CODING)
                metrics = HostMetrics(RayMetricRegistry(ray.get_runtime_context().get_actor_name()), names)
                if log is not None:
                    await to_thread.run_sync(_remove_abandoned_workspaces, top)
                store = WorkspaceStore(
                    top / "nodes" / node[:16] / self._name,
                    quota=self._settings.quota,
                    templates=top / "templates",
                    mount_point=top,
                )
                try_lock(store.folder / OWNER_LOCK_NAME)  # locked until this process exits
                host = WorkspaceHost(
                    store,
                    limits=self._settings.limits,
                    policy=self._settings.policy,
                    runner=self._settings.runner,
                    log=log,
                    durability=self._settings.durability,
                    name=self._name,
                    metrics=metrics,
                )
                self._methods = HostMethods(host)
                server = HostServer(host, {self._token: "", **self._settings.tenants})
                listen = self._settings.listen
                address = ray.util.get_node_ip_address() if listen == "node" else listen
                await server.start(f"tcp:{address}:0")
                self._server = server
                self._sampling = asyncio.create_task(_sample_metrics(host))
            return self._server


async def _sample_metrics(host: WorkspaceHost) -> None:
    while True:
        host.sample_metrics()
        await asyncio.sleep(_SAMPLE_SECONDS)


def _remove_abandoned_workspaces(top: Path) -> None:
    """Delete workspaces of host processes that died on this machine; they are all stored in their logs."""
    for folder in top.glob("nodes/*/*"):
        lock = try_lock(folder / OWNER_LOCK_NAME)
        if lock is not None:
            store = WorkspaceStore(folder, templates=top / "templates")
            for name in store.workspace_names():
                store.remove(name)
            store.collect_garbage()
            unlock(lock)


class RayHostClient(HostClient):
    """Client of a host in a Ray actor: Ray locates the host, and relays requests if no connection works."""

    def __init__(
        self,
        actor_name: str,
        *,
        namespace: str = NAMESPACE,
        direct: bool = True,
        find_host: "Callable[[str], RayHostClient] | None" = None,
    ) -> None:
        super().__init__("", "")
        self.actor_name = actor_name
        self._find_host = find_host
        self._moved: dict[str, str] = {}
        """Hosts of moved workspaces, as learned from earlier requests."""
        self._namespace, self._direct = namespace, direct
        self._actor: Any = None
        self._incarnation = ""
        self._relayed_until = 0.0
        """Until this time, requests go through Ray without trying a direct connection."""
        self.through_ray = 0
        """Number of requests sent through Ray."""

    async def address_and_token(self) -> tuple[str, str]:
        """Ask Ray for the actor, and the actor for its address.

        Raises `ConnectionRefusedError` if the address is not reachable from here.
        """
        import ray

        found: dict[str, str] = await asyncio.wait_for(self._actor_handle().where.remote(), LOCATE_SECONDS)
        self._incarnation = found["incarnation"]
        loopback = found["address"].startswith(("tcp:127.", "tcp:localhost:"))
        if not self._direct or (loopback and found["node"] != ray.util.get_node_ip_address()):
            raise ConnectionRefusedError("the host listens on its own node only")
        return found["address"], found["token"]

    async def node_address(self) -> str:
        """The address of the host's node."""
        return str((await asyncio.wait_for(self._actor_handle().where.remote(), LOCATE_SECONDS))["node"])

    async def request(
        self, method: str, params: dict[str, Any], on_progress: ProgressHandler | None = None
    ) -> dict[str, Any]:
        """Send a request directly or through Ray. Follows a moved workspace to its new host."""
        workspace, sent_to = str(params.get("workspace", "")), ""
        client = self._client_of_current_host(workspace)
        for _ in range(_MAX_MOVES):
            try:
                return await client.request_from_this_host(method, params, on_progress, sent_to)
            except WorkspaceMoved as moved:
                if self._find_host is None or not workspace:
                    raise
                sent_to, self._moved[workspace] = moved.sent_to, moved.host
                client = self._client_of_current_host(workspace)
        raise HostError(f"Workspace {workspace} keeps being moved between hosts.")

    def send_without_response(self, method: str, params: dict[str, Any]) -> None:
        client = self._client_of_current_host(str(params.get("workspace", "")))
        if client is self:
            super().send_without_response(method, params)
        else:
            client.send_without_response(method, params)

    def _client_of_current_host(self, workspace: str) -> "RayHostClient":
        host = self._moved.get(workspace)
        return self if host is None or self._find_host is None else self._find_host(host)

    async def request_from_this_host(
        self,
        method: str,
        params: dict[str, Any],
        on_progress: ProgressHandler | None = None,
        sent_to: str = "",
    ) -> dict[str, Any]:
        """Send a request to this host only, waiting while it is being restarted.

        `sent_to` is the incarnation (run of a host) that the same request was sent to before, if any.
        """
        import ray

        end, pause, lost = time.monotonic() + PATIENCE_SECONDS, 0.05, ""
        while time.monotonic() < end:
            asked = {**params, "sent_to": sent_to} if sent_to else params
            try:
                connection = await self._direct_connection_or_none()
                sent_to = sent_to or (self._incarnation if connection is None else connection.incarnation)
                if connection is None:
                    return await self._request_through_ray(method, asked)
                return await connection.request(method, asked, on_progress)
            except WorkspaceMoved as moved:
                # Calls that this incarnation ran are in the log; an earlier incarnation's may be lost.
                moved.sent_to = "" if sent_to == moved.incarnation else sent_to
                raise
            except ray.exceptions.RayTaskError as failure:
                raise HostError(f"The host {self.actor_name} failed: {failure.cause!r}.") from failure
            except (OSError, TimeoutError, ray.exceptions.RayError, ValueError) as failure:
                lost = str(failure) or type(failure).__name__
                self._actor, self._relayed_until = None, 0.0
            await asyncio.sleep(pause)
            pause = min(pause * 2, _MAX_PAUSE_SECONDS)
        raise HostError(f"Can't reach the host {self.actor_name}: {lost.splitlines()[0] if lost else ''}")

    async def _direct_connection_or_none(self) -> ClientConnection | None:
        """Connect directly, or return None if that is not possible and requests must go through Ray."""
        if time.monotonic() < self._relayed_until:
            return None
        try:
            return await self._open_or_reuse_connection()
        except (OSError, TimeoutError):
            self._relayed_until = time.monotonic() + RELAY_SECONDS
            return None

    async def _request_through_ray(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self.through_ray += 1
        answer = json.loads(await self._actor_handle().ask.remote({"method": method, **params}))
        if "error" in answer:
            raise error_from_json(answer["error"])
        found: dict[str, Any] = answer["result"]
        return found

    def _actor_handle(self) -> Any:
        import ray

        if self._actor is None:
            self._actor = ray.get_actor(self.actor_name, self._namespace)
        return self._actor


class Fleet:
    """The hosts of a fleet, as seen by one driver. Any number of drivers can use one fleet."""

    def __init__(self, name: str, hosts: list[str], *, direct: bool = True) -> None:
        self.name = name
        self._direct = direct
        self._clients: dict[str, RayHostClient] = {}
        for host in hosts:
            self.client_by_host_name(host)
        self._next = 0

    @classmethod
    async def start(cls, name: str, settings: HostSettings, *, hosts: int = 1) -> "Fleet":
        """Start hosts as detached actors, spread over the nodes. Existing hosts are kept."""
        for number in range(hosts):
            _start_detached_host(name, f"h{number}", settings)
        fleet = cls(name, [f"h{number}" for number in range(hosts)])
        await asyncio.gather(*(client.ping() for client in fleet._clients.values()))
        return fleet

    @classmethod
    def connect(cls, name: str, *, direct: bool = True) -> "Fleet":
        """Connect to a running fleet from another program."""
        import ray

        named = ray.util.list_named_actors(all_namespaces=True)
        mine = [each["name"] for each in named if each["namespace"] == NAMESPACE]
        hosts = sorted(each.partition("/")[2] for each in mine if each.startswith(f"{name}/"))
        if not hosts:
            raise UsageError(f"Fleet {name!r} not found in this cluster.")
        return cls(name, hosts, direct=direct)

    @property
    def hosts(self) -> Mapping[str, RayHostClient]:
        """The clients of the hosts, by name."""
        return self._clients

    async def add_template(self, kind: str, source: str, *, commit: str = "", folder: str = "") -> str:
        """Create a template on every host and return its digest.

        The source, a `folder`, `tarball`, `git` commit or `image`, must exist on all nodes. `folder` selects
        a folder of an image, such as `/app`.
        """
        digests = [
            await client.add_template(kind, source, commit=commit, folder=folder)
            for client in list(self._clients.values())
        ]
        return digests[0]

    async def create(self, template: str) -> FleetToolbox:
        """Create a workspace on the next host with a free slot. Raises `Busy` if there is none."""
        names = list(self._clients)
        busy: Busy | None = None
        for _ in names:
            host = names[self._next % len(names)]
            self._next += 1
            try:
                made = await self._clients[host].create(template, name=f"{host}-{secrets.token_hex(8)}")
                return FleetToolbox(self._clients[host], made)
            except Busy as full:
                busy = full
        raise busy or Busy("The fleet has no hosts.", hint="Start one.")

    def toolbox(self, workspace: str) -> FleetToolbox:
        """The toolbox of a workspace, from any driver."""
        return FleetToolbox(self.client_for_workspace(workspace), workspace)

    def client_for_workspace(self, workspace: str) -> RayHostClient:
        """The client of the host that a workspace's name starts with; if that is gone, of any other host.

        A host that does not have the workspace recovers it or names the host that has it.
        """
        host = workspace.partition("-")[0]
        if host not in self._clients:
            names = sorted(self._clients)
            host = names[zlib.crc32(workspace.encode()) % len(names)]  # every driver chooses the same host
        return self._clients[host]

    def client_by_host_name(self, host: str) -> RayHostClient:
        """The client of a host by name, even of a host started after this object was created."""
        if host not in self._clients:
            self._clients[host] = RayHostClient(
                f"{self.name}/{host}", direct=self._direct, find_host=self.client_by_host_name
            )
        return self._clients[host]

    async def restart_host(self, host: str, settings: HostSettings | None = None) -> None:
        """Stop a host and start it again with the currently installed code and packages. Drain it first.

        Calls wait during the restart, and stored workspaces are recovered when they are used. `settings`
        replace the old ones.
        """
        import ray

        client = self.client_by_host_name(host)
        actor = ray.get_actor(client.actor_name, NAMESPACE)
        settings = settings or await actor.settings.remote()
        await self._close_and_kill_host(client)
        end = time.monotonic() + CLOSE_SECONDS
        while time.monotonic() < end:
            # Retry: Ray frees the name only some time after the actor is gone.
            with contextlib.suppress(ValueError):
                _start_detached_host(self.name, host, settings, is_new=True)
                break
            await asyncio.sleep(_NAME_LOOK_SECONDS)
        await client.ping()

    async def _close_and_kill_host(self, client: RayHostClient) -> None:
        import ray

        await client.aclose()
        actor = ray.get_actor(client.actor_name, NAMESPACE)
        with contextlib.suppress(ray.exceptions.RayError, TimeoutError):
            await asyncio.wait_for(actor.close.remote(), CLOSE_SECONDS)
        ray.kill(actor, no_restart=True)

    async def fork(self, workspace: str, count: int = 1) -> list[FleetToolbox]:
        """Fork a workspace in its current state, on the same host."""
        client = self.client_for_workspace(workspace)
        return [FleetToolbox(client, name) for name in await client.fork(workspace, count)]

    async def aclose(self) -> None:
        """Close this driver's connections. The hosts keep running."""
        for client in list(self._clients.values()):
            await client.aclose()

    async def stop(self) -> None:
        """Stop the hosts. Workspaces with a log can be recovered later."""
        for client in list(self._clients.values()):
            await self._close_and_kill_host(client)


def _start_detached_host(fleet: str, host: str, settings: HostSettings, *, is_new: bool = False) -> None:
    """Start a host as an actor. With `is_new`, raises `ValueError` if an actor with that name exists."""
    import ray

    options: dict[str, Any] = {
        "name": f"{fleet}/{host}",
        "namespace": NAMESPACE,
        "get_if_exists": not is_new,
        "lifetime": "detached",
        "max_restarts": -1,
        # Ray's own retries would run a call twice; ours are recognised by the call id.
        "max_task_retries": 0,
        "max_concurrency": _MAX_RAY_CALLS,
        "num_cpus": 0,
        "scheduling_strategy": "SPREAD",
        "runtime_env": dict(settings.runtime_env),
    }
    if SLOT_RESOURCE in ray.cluster_resources():
        options["resources"] = {SLOT_RESOURCE: settings.limits.slots}
    pickled = ray.cloudpickle.dumps(settings)
    parts = [pickled[at : at + MAX_ARGUMENT_BYTES] for at in range(0, len(pickled), MAX_ARGUMENT_BYTES)]
    ray.remote(HostActor).options(**options).remote(host, *parts)
