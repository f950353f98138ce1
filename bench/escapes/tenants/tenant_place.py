"""The place of a host-side attack as a workspace of a fleet's host: what lies around it is another tenant's."""

import asyncio
import os
from dataclasses import dataclass, field
from pathlib import Path

from bench.children import run_child
from bench.escapes.host.place import Place, new_secrets
from bench.escapes.scene import Marks, marks
from bench.escapes.tenants.two_tenants import ATTACKER, VICTIM
from handtools import Toolbox, local_workspace
from handtools.fleet.workspaces import WorkspaceStore
from handtools.toolbox import CODING


@dataclass(slots=True)
class TenantPlace(Place):
    """A workspace of layers; `outside` is the tree of the other tenant, which began with the same template."""

    own: str = ""
    theirs: str = ""
    _elsewhere: Marks = field(default_factory=dict)

    @property
    def store(self) -> Path:
        return self.base / "fleet"

    @property
    def workspace(self) -> Path:
        return self.store / "workspaces" / self.own / "root"

    @property
    def outside(self) -> Path:
        return self.store / "workspaces" / self.theirs / "root"

    @property
    def state(self) -> Path:
        return self.store / "workspaces" / self.own / "state"

    def changes_elsewhere(self) -> list[str]:
        """What changed of the other's journal and layers, and of the template."""
        after = self._marks()
        paths = {*self._elsewhere, *after}
        return [f"changed {path}" for path in sorted(paths) if self._elsewhere.get(path) != after.get(path)]

    def note(self) -> None:
        """From here on nothing of the other's may change."""
        self._elsewhere = self._marks()

    def _marks(self) -> Marks:
        found: Marks = {}
        for part in ("templates", "layers", f"workspaces/{self.theirs}"):
            found |= {
                f"{part}/{path}": mark for path, mark in marks(self.store / part, but=("root",)).items()
            }
        return found


def new_tenant_place(base: Path, port: int) -> Place:
    """A place on a host with two tenants; the other has made a call already."""
    (base / "source").mkdir()
    (base / "source" / "begun.txt").write_text("begun\n")
    store = WorkspaceStore(base / "fleet")
    digest = store.templates.add_folder(base / "source").digest
    own, theirs = (store.create(digest, tenant=tenant).id for tenant in (ATTACKER, VICTIM))
    place = TenantPlace(base, port, new_secrets("JOURNAL"), own=own, theirs=theirs)
    place.furnish()
    pid = os.fork()  # threads of a toolbox would not survive the fork that the attack runs in
    if pid == 0:
        run_child(lambda: asyncio.run(_call(store, theirs, place.secrets["JOURNAL"])))
    os.waitpid(pid, 0)
    place.note()
    return place


async def _call(store: WorkspaceStore, name: str, secret: str) -> None:
    workspace = local_workspace(store.files_folder(name), state=store.state_folder(name))
    async with Toolbox(CODING, workspace=workspace) as box:
        done = await box.call("write", {"path": "theirs.txt", "content": f"{secret}\n"})
        assert done.status == "ok", done.text
