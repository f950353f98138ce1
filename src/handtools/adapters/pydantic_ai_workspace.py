"""Pydantic AI's workspace: `agent.run("…", workspace=ToolboxWorkspace(coding(".")))`.

Tools that use `ctx.workspace`, such as those of pydantic-ai-harness, then read, write and run commands
through the toolbox, where calls are confined, recorded and undoable. A backend does not know which call of
the model it serves, so it can't pause a run for approval. It asks the toolbox's approver instead; without
one, calls that need approval raise `PermissionError`.
"""

import posixpath
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_ai.workspaces import (
    CommandResult,
    FileEntry,
    WorkspaceCommand,
    WorkspaceError,
    WorkspaceOutputLimitError,
    WorkspaceRef,
    WorkspaceTimeoutError,
    WorkspaceUnavailableError,
)

from handtools.adapters.backend_calls import (
    NOTHING_THERE,
    BackendCalls,
    PathContent,
    RawExit,
    removal_script,
)
from handtools.core.files import FileFacts
from handtools.core.result import Result
from handtools.toolbox import Toolbox

PROVIDER = "handtools"
SIGNALLED = 128
_ERRORS: Mapping[str, type[Exception]] = {
    "not_found": FileNotFoundError,
    "already_exists": FileExistsError,
    "outside_workspace": PermissionError,
    "denied": PermissionError,
    "wrong_kind": OSError,
}


class ToolboxWorkspace:
    """Workspace backend over a toolbox, for commands and files; paths are as commands see them."""

    def __init__(self, toolbox: Toolbox) -> None:
        self._calls = BackendCalls(toolbox)
        self._root = toolbox.workspace.root

    @property
    def ref(self) -> WorkspaceRef | None:
        """The workspace folder, once it is known."""
        return WorkspaceRef(provider=PROVIDER, id=self._root) if self._root else None

    async def working_dir(self) -> str:
        """Return the workspace folder, in which commands start."""
        if not self._root:
            result, ran = await self._calls.run_command("pwd -P")
            if ran is None or ran.end.code != 0:
                raise WorkspaceUnavailableError(result.text)
            self._root = ran.output.decode(errors="surrogateescape").removesuffix("\n")
        return self._root

    async def run(
        self,
        command: WorkspaceCommand,
        *,
        shell: bool = False,
        env: Mapping[str, str] | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the protocol's
    ) -> CommandResult:
        """Run a command with `bash`; `stdout` has both streams unless `separate_streams` is set."""
        if isinstance(command, str) != shell:
            raise TypeError("A shell command must be a string, any other command a list of words.")
        script = command if isinstance(command, str) else shlex.join(command)
        result, ran = await self._calls.run_command(script, timeout=timeout, env=env)
        if ran is None:
            raise _error_from_result(result)
        stdout, stderr = _stdout_and_stderr(ran)
        if ran.end.ended == "timeout":
            raise WorkspaceTimeoutError(result.text, stdout=stdout, stderr=stderr)
        code = ran.end.code
        return CommandResult(
            exit_code=SIGNALLED + (ran.end.signal or 0) if code is None else code,
            stdout=stdout,
            stderr=stderr,
        )

    async def read_bytes(self, path: str) -> bytes:
        found, facts = await self._read_or_list("read", path)
        if facts.kind == "folder":
            raise IsADirectoryError(path)
        return found.data

    async def write_bytes(self, path: str, data: bytes) -> None:
        """Write a file and create its parent folders; symlinks are followed."""
        result = await self._calls.write_file(await self._path_for_tools(path), data)
        if result.fault is not None and result.fault.code == "wrong_kind":
            raise IsADirectoryError(path)
        if result.fault is not None and result.fault.code == "not_found":
            raise NotADirectoryError(path)  # A missing parent would be created, so it must be a file.
        if not result.ok:
            raise _error_from_result(result)

    async def stat(self, path: str) -> FileEntry:
        _, facts = await self._read_or_list("list", path)
        return _file_entry(path, facts)

    async def list_dir(self, path: str) -> Sequence[FileEntry]:
        """List a folder, without entries that the policy hides."""
        found, facts = await self._read_or_list("list", path)
        if facts.kind != "folder":
            raise NotADirectoryError(path)
        return [
            _file_entry(posixpath.join(path, posixpath.basename(one.path)), one) for one in found.entries
        ]

    async def make_dir(self, path: str) -> None:
        result, ran = await self._calls.run_command(
            f"mkdir -p -- {shlex.quote(await self._path_for_tools(path))}"
        )
        if ran is None:
            raise _error_from_result(result)
        if ran.end.code != 0:
            raise FileExistsError(path) if await self.exists(path) else NotADirectoryError(path)

    async def remove(self, path: str) -> None:
        """Remove a file, a symlink or a whole folder."""
        ours, root = await self._path_for_tools(path), await self.working_dir()
        if f"{root}/".startswith(f"{posixpath.normpath(path).rstrip('/')}/"):
            raise ValueError("Can't remove the workspace folder or a folder above it.")
        result, ran = await self._calls.run_command(removal_script(ours))
        if ran is None:
            raise _error_from_result(result)
        if ran.end.code == NOTHING_THERE:
            raise FileNotFoundError(path)
        if ran.end.code != 0:
            raise WorkspaceError(result.text)

    async def exists(self, path: str) -> bool:
        result, found = await self._calls.read_or_list("list", await self._path_for_tools(path))
        if found is None and result.fault is not None and result.fault.code == "outside_workspace":
            return False
        return found is not None and found.facts is not None

    async def realpath(self, path: str) -> str:
        """Resolve symlinks in a path; raises `PermissionError` if it is outside the workspace."""
        root = await self.working_dir()
        if not f"{path}/".startswith(f"{root}/"):
            raise PermissionError(path)
        # After a symlink, `..` leads to the target's parent. Our tools refuse `..`, so split the path there.
        *above, last = f"{path.removeprefix(root)}/".split("/../")
        real = "."
        for part in above:
            real = posixpath.dirname(await self._real_path(f"{real}/{part}"))
        return posixpath.normpath(posixpath.join(root, await self._real_path(f"{real}/{last}")))

    async def _real_path(self, path: str) -> str:
        result, found = await self._calls.read_or_list("list", posixpath.normpath(path))
        if found is None:
            raise _error_from_result(result)
        return found.real_path

    async def _read_or_list(self, tool: Any, path: str) -> tuple[PathContent, FileFacts]:
        result, found = await self._calls.read_or_list(tool, await self._path_for_tools(path))
        if found is None:
            raise _error_from_result(result)
        if found.facts is None:
            raise FileNotFoundError(path)
        return found, found.facts

    async def _path_for_tools(self, path: str) -> str:
        """Return the path relative to the workspace, whose absolute path is different inside a container."""
        root = await self.working_dir()
        return posixpath.relpath(path, root) if f"{path}/".startswith(f"{root}/") else path


def _error_from_result(result: Result[Any]) -> Exception:
    if result.request is not None:
        return PermissionError(result.text)
    kind: type[Exception] = _ERRORS.get(result.fault.code if result.fault else "", WorkspaceError)
    return kind(result.text)


def _file_entry(path: str, facts: FileFacts) -> FileEntry:
    is_dir = facts.kind == "folder"
    size = facts.bytes if facts.kind == "file" else None
    return FileEntry(name=posixpath.basename(path), path=path, is_dir=is_dir, size=size)


def _stdout_and_stderr(raw_exit: RawExit) -> tuple[str, str]:
    output = raw_exit.end.output
    apart = raw_exit.end.streams
    parts = [one.head for one in apart] or [raw_exit.output, b""]
    stdout, stderr = (part.decode("utf-8", "replace") for part in parts)
    if output.dropped_bytes or any(one.tail for one in apart):
        limit = sum(map(len, parts))
        raise WorkspaceOutputLimitError(
            f"The output is too long: {output.bytes:,} bytes.", limit=limit, stdout=stdout, stderr=stderr
        )
    return stdout, stderr
