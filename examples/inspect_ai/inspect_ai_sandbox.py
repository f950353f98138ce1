"""Workspaces as Inspect's sandbox environment: `Task(…, sandbox=("handtools", "FOLDER"))` begins with a folder.

Each sample gets a layer over one template: making it costs a mount and no copy, and commands run confined, without
a container. Inspect's own tools (`bash()`, `python()`) and scorers work in it.
"""

# ruff: noqa: A002, ARG002, ARG003, ASYNC109, FBT002, PLR0917 - the signatures are Inspect's

import base64
import os
import shlex
import tempfile
from pathlib import Path

from inspect_ai.util import ExecResult, OutputLimitExceededError, SandboxEnvironment, sandboxenv

from handtools import Call, Policy, Toolbox, local_workspace
from handtools.fleet.workspaces import WorkspaceStore
from handtools.toolbox import CODING
from handtools.tools.bash import MAX_SHOWN_OUTPUT_BYTES

WRITTEN_CHUNK_BYTES = 300_000
SECONDS = 600


@sandboxenv(name="handtools")
class HandtoolsSandbox(SandboxEnvironment):
    """The workspace of one sample."""

    store: WorkspaceStore

    def __init__(self, workspace: str) -> None:
        super().__init__()
        self.workspace, self.root = workspace, self.store.open(workspace)
        made = local_workspace(self.root, state=self.store.state_folder(workspace), separate_streams=True)
        # Nobody sits beside an evaluation.
        self.toolbox = Toolbox(CODING, workspace=made, policy=Policy(unattended="deny"))

    @classmethod
    async def task_init(cls, task_name, config) -> None:
        cls.store = WorkspaceStore(Path(tempfile.mkdtemp(prefix="handtools-")) / "store")

    @classmethod
    async def sample_init(cls, task_name, config, metadata):
        source = config or tempfile.mkdtemp(dir=cls.store.folder)
        template = cls.store.templates.add_folder(source)
        return {"default": cls(cls.store.create(template.digest).id)}

    @classmethod
    async def sample_cleanup(cls, task_name, config, environments, interrupted) -> None:
        for each in environments.values():
            await each.toolbox.aclose()
            cls.store.remove(each.workspace)

    async def exec(
        self,
        cmd,
        input=None,
        cwd=None,
        env=None,
        user=None,
        timeout=None,
        timeout_retry=True,
        concurrency=True,
    ):
        """Run a command in the workspace, with its own limits, recorded and undoable."""
        if user is not None:
            raise PermissionError("Commands run as the sandbox's own user.")
        script = shlex.join(cmd)
        if cwd is not None:
            script = f"cd {shlex.quote(cwd)} && {script}"
        if input is not None:
            script = f"printf %s {_base64(input)} | base64 -d | ({script})"
        # A shell of its own: what it exports or where it goes is not for the next one.
        args = {"command": f"({script})", "timeout": timeout or SECONDS}
        call = Call(tool="bash", args=args, env=env or {})
        result = await self.toolbox.call(call)
        if not result.ok:
            raise PermissionError(result.text)
        ended = result.details
        if ended.ended == "timeout":
            raise TimeoutError(f"{cmd[0]} took more than {timeout} s.")
        if ended.output_bytes > MAX_SHOWN_OUTPUT_BYTES:
            raise OutputLimitExceededError(f"{MAX_SHOWN_OUTPUT_BYTES} bytes", ended.stdout)
        code = 1 if ended.code is None else ended.code
        return ExecResult(code == 0, code, ended.stdout or "", ended.stderr or "")

    async def write_file(self, file, contents) -> None:
        """Write a file through the tools, so that this too is in the journal."""
        data = contents.encode() if isinstance(contents, str) else contents
        path = shlex.quote(self._path(file).relative_to(self.root.resolve()).as_posix())
        await self.exec(["sh", "-c", f"mkdir -p $(dirname {path}) && : > {path}"])
        for start in range(0, len(data), WRITTEN_CHUNK_BYTES):
            chunk = data[start : start + WRITTEN_CHUNK_BYTES]
            await self.exec(["sh", "-c", f"cat >> {path}"], input=chunk)

    async def read_file(self, file, text=True):
        """Read a file of the workspace."""
        data = self._path(file).read_bytes()
        return data.decode() if text else data

    def _path(self, file) -> Path:
        """A path in the workspace; links that lead out of it are not followed."""
        path = Path(os.path.realpath(self.root / file))
        if not path.is_relative_to(os.path.realpath(self.root)):
            raise PermissionError(f"{file} is outside of the workspace.")
        return path


def _base64(data) -> str:
    return base64.b64encode(data.encode() if isinstance(data, str) else data).decode()
