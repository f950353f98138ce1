"""The setting: one host, a tenant with secrets of every kind, and new workspaces for the one who attacks."""

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import tempfile
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.escapes.scene import Marks, Scene, marked_processes, marks, plant
from bench.escapes.scripts import Script
from bench.escapes.transactions import script as script_tool
from bench.escapes.transactions import script_arguments
from handtools import Call, Policy, Result
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.host_server import HostServer
from handtools.fleet.workspace_slots import HostLimits
from handtools.fleet.workspaces import WorkspaceStore
from handtools.toolbox import CODING

ATTACKER, VICTIM = "red", "blue"
ALL_ALLOWED = Policy(rules=(), defaults={"run": "allow", "change": "allow"}, unattended="allow")
_JOB_SECONDS = 36_000


@dataclass(slots=True)
class TenantScene(Scene):
    """The surroundings of an attempt, all of them in the workspace of the other tenant."""

    attacked_from: Path = Path()

    @property
    def workspace(self) -> Path:
        return self.attacked_from

    @property
    def sockets(self) -> Path:
        # Beside the tree: a command of the tenant's own that runs would be shown each change there.
        return self.base.parent / "run"

    def renew(self) -> None:
        self.nonce = f"n{secrets.token_hex(8)}"
        if not (self.base / "out").exists():
            plant(self.base, self.secrets)
        if not hasattr(self, "victim") or self.victim.poll() is not None:
            self._start_victim()
        self._open_inheritable()
        self.listeners.heard.clear()
        self._standing = self.victim_standing()

    @property
    def was_touched(self) -> bool:
        """Whether somebody did something to the other tenant's process."""
        return self.victim_standing() != self._standing


@dataclass(slots=True)
class TwoTenants:
    """A host that holds both; the attacker gets a new workspace for each attempt."""

    store: WorkspaceStore
    host: WorkspaceHost
    server: HostServer
    template: str
    theirs: str
    """The workspace that is attacked."""
    scene: TenantScene
    port: int
    job: int = 0
    """A process of the attacked tenant's running command."""
    their_calls: list[str] = field(default_factory=list)
    """Ids of the calls that the attacked tenant made."""
    secrets: dict[str, str] = field(default_factory=dict)
    own: str = ""
    """The workspace that it is attacked from."""
    _before: Marks = field(default_factory=dict)

    async def renew(self) -> None:
        """A new workspace for the attacker; what the other has is noted."""
        self.own = await self.host.create(self.template, tenant=ATTACKER)
        self.scene.attacked_from = self.store.files_folder(self.own)
        self.scene.renew()
        self._before = self._marks()

    async def attempt(self, given: Script) -> list[str]:
        """Run a script as a command of the attacker; gives all that shows it got something of the other's."""
        await self.renew()
        with self.scene.watched() as seen:
            args = script_arguments(given, self.environment())
            result = await self.call(Call(tool="script", args=args))
        await asyncio.sleep(given.pause)
        details: Any = result.details
        said = getattr(details, "output", b"") + result.text.encode()
        return await self.verdicts(said, [each for each in seen if each == "let somebody in"])

    async def call(self, call: Call, workspace: str = "") -> Result[Any]:
        """A call of the attacker."""
        return await self.host.call(workspace or self.own, call, tenant=ATTACKER)

    def environment(self) -> dict[str, str]:
        """Where everything is, but no secret."""
        place = self.store.files_folder(self.theirs).parent
        return self.scene.environment() | {
            "STORE": str(self.store.folder),
            "THEIR_ROOT": str(self.store.files_folder(self.theirs)),
            "THEIR_PLACE": str(place),
            "THEIR_JOB": str(self.job),
            "TEMPLATE": str(self.store.templates.files_folder(self.template)),
            "HOST_PID": str(os.getpid()),
            "HOST_SOCKET": f"{self.store.folder}/socket",
            "HOST_PORT": str(self.port),
        }

    async def verdicts(self, said: bytes, found: list[str]) -> list[str]:
        """What was read, changed, reached or ended; then the attacker's workspace is removed."""
        if f"ESCAPED:{self.scene.nonce}".encode() in said:
            found.append("it did what it tried")
        # Also what landed in its own files, and what was kept of its output.
        own = (
            said
            + b"".join(_contents(self.store.files_folder(self.own)))
            + b"".join(_contents(self.store.state_folder(self.own)))
        )
        found += [f"read the secret {name}" for name, text in self.secrets.items() if text.encode() in own]
        after = self._marks()
        changed = {path for path in {*self._before, *after} if self._before.get(path) != after.get(path)}
        found += [f"changed {path}" for path in sorted(changed)]
        if self.scene.nonce.encode() in self.scene.what_was_heard():
            found.append("reached a listener")
        if self.scene.was_touched:
            found.append("touched the other's process")
        if not _is_running(self.job):
            found.append("ended the other's command")
        await self.host.remove(self.own, tenant=ATTACKER)
        for pid in marked_processes(self.scene.nonce):
            found.append("left a process running")
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return list(dict.fromkeys(found))

    def _marks(self) -> Marks:
        """All of the store but what is the attacker's: trees, layers, journals, records, templates."""
        found: Marks = {}
        for part in ("templates", "layers", f"workspaces/{self.theirs}"):
            # Its sockets and the report of its process change as they are used.
            seen = marks(self.store.folder / part, but=("run",))
            found |= {f"{part}/{path}": mark for path, mark in seen.items()}
        return found


@contextlib.asynccontextmanager
async def two_tenants(runner: str = "") -> AsyncIterator[TwoTenants]:
    """Both tenants on a host that serves a socket and a port."""
    base = Path(os.path.realpath(tempfile.mkdtemp(prefix="tenants-")))
    tokens = {f"SECRET-TOKEN-{secrets.token_hex(8)}": tenant for tenant in (VICTIM, "")}
    tokens["red-token"] = ATTACKER
    store = WorkspaceStore(base / "fleet")
    host = WorkspaceHost(
        store,
        tools=[*CODING, script_tool],
        policy=ALL_ALLOWED,
        runner=runner,
        limits=HostLimits(idle_seconds=3600.0),
    )
    server, on_port = HostServer(host, tokens), HostServer(host, tokens)
    try:
        await server.start(f"unix:{store.folder}/socket")
        port = int((await on_port.start("tcp:127.0.0.1:0")).rpartition(":")[2])
        digest = await host.add_template("folder", str(_template(base)))
        theirs = await host.create(digest, tenant=VICTIM)
        scene = TenantScene(store.files_folder(theirs), attacked_from=store.files_folder(theirs) / "work")
        both = TwoTenants(store, host, server, digest, theirs, scene, port)
        both.secrets = {
            f"TOKEN of {tenant or 'all'}": token for token, tenant in tokens.items() if tenant != ATTACKER
        }
        try:
            await _furnish(both)
            yield both
        finally:
            scene.close()
    finally:
        await server.aclose()
        await on_port.aclose()
        await host.aclose()
        shutil.rmtree(base, ignore_errors=True)


def _template(base: Path) -> Path:
    folder = base / "source"
    plant(folder, dict.fromkeys(("FILE", "OTHER", "HOME", "DOTENV"), "nothing"))
    return folder / "work"


async def _furnish(both: TwoTenants) -> None:
    """Give the attacked tenant secrets wherever something of a workspace is kept."""
    kinds = ("WRITTEN", "GIT", "PRINTED", "SCRATCH", "JOB", "SHARED")
    known = {kind: f"SECRET-{kind}-{secrets.token_hex(8)}" for kind in kinds}

    async def call(tool: str, **args: Any) -> None:
        made = Call(tool=tool, args=args)
        done = await both.host.call(both.theirs, made, tenant=VICTIM)
        assert done.status == "ok", done.text
        both.their_calls.append(made.id)

    await call("write", path="written.txt", content=f"{known['WRITTEN']}\n")
    await call(
        "bash",
        command="rm -rf .git; git init -q . && git config user.email b@b && git config user.name b && "
        f"echo {known['GIT']} > committed.txt && git add committed.txt && git commit -qm c && rm committed.txt",
    )
    await call("bash", command=f"mkdir -p ~/.cache; for n in 1 2 3; do echo {known['PRINTED']}; done")
    await call(
        "bash",
        command=f"for path in ~/token /tmp/token ~/.cache/token; do echo {known['SCRATCH']} > $path; done",
    )
    await both.host.fork(both.theirs, tenant=VICTIM)  # what was written so far is a layer now
    both.scene.build()
    os.environ["HOST_SECRET"] = both.scene.secrets["ENVIRON"]
    await call(
        "bash",
        background=True,
        command=f"echo {known['SHARED']} > /dev/shm/shared; export JOB={known['JOB']}; "
        f"exec -a {known['JOB']} sleep {_JOB_SECONDS}",
    )
    both.secrets |= known | both.scene.secrets
    while not (pids := marked_processes(known["JOB"])):
        await asyncio.sleep(0.01)
    both.job = pids[-1]


def _is_running(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] in "SR"
    return False


def _contents(folder: Path) -> Iterator[bytes]:
    for path in folder.rglob("*"):
        with contextlib.suppress(OSError):
            if path.is_file() and not path.is_symlink():
                yield path.read_bytes()
