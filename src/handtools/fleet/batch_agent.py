"""The agent of a batch: a Python function, or a command that gets the workspace as an MCP server."""

import asyncio
import contextlib
import hmac
import importlib
import inspect
import json
import os
import re
import secrets
import shlex
import shutil
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from handtools.core.errors import HandtoolsError, UsageError
from handtools.core.events import Event, Progressed
from handtools.fleet.batch_tasks import BatchTask
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.host_server import Asked, FrameServer, error_response_json
from handtools.fleet.workspace_mcp import ADDRESS_VARIABLE, TOKEN_VARIABLE, WORKSPACE_VARIABLE
from handtools.host.programs import end_process_group

RELAYED_METHODS = frozenset({"call", "cancel", "definitions", "ping", "why"})
"""Methods that an agent may call. Not `resume`, with which it could approve its own calls."""

CANCEL_SECONDS = 30.0
"""How long to wait for running calls to stop after they were cancelled together with their agent."""


class WorkspaceRelay(FrameServer):
    """Forwards an agent's requests to the host of its workspace, and only for that workspace."""

    def __init__(self) -> None:
        super().__init__(secrets.token_hex(8))
        self._opened: dict[str, RelayedWorkspace] = {}

    @asynccontextmanager
    async def token_for_workspace(self, toolbox: FleetToolbox) -> AsyncIterator[str]:
        """Yield a token for a workspace, valid within the block; at the end, running calls are cancelled."""
        token = secrets.token_hex(32)
        relayed = self._opened[token] = RelayedWorkspace(toolbox)
        try:
            yield token
        finally:
            del self._opened[token]
            await relayed.refuse_and_cancel_calls()

    def request_handler_for_token(self, token: str) -> "RelayedWorkspace | None":
        found = None
        for known, workspace in self._opened.items():  # no early exit, to prevent timing attacks
            if hmac.compare_digest(known.encode(), token.encode("utf-8", "surrogatepass")):
                found = workspace
        return found


class RelayedWorkspace:
    """Handles the requests of one agent."""

    def __init__(self, toolbox: FleetToolbox) -> None:
        self.toolbox = toolbox
        self._is_over = False
        """Whether the task has ended. The connection may stay open longer."""
        self._running: set[str] = set()
        """Ids of running calls. They continue if the connection is lost."""
        self._idle = asyncio.Event()
        self._idle.set()

    async def handle_request(self, asked: Asked, on_event: Callable[[Event], None] | None = None) -> bytes:
        """Forward a request to the host and return the JSON of its response."""
        try:
            method = asked.get("method")
            if self._is_over:
                raise UsageError("The task of this token has ended.")
            if method not in RELAYED_METHODS or asked.get("workspace") != self.toolbox.workspace_name:
                raise UsageError(f"This token does not allow {method!r} in that workspace.")
            params = {name: value for name, value in asked.items() if name not in _OF_THE_CONNECTION}

            def progressed(event: dict[str, Any]) -> None:
                if on_event is not None:
                    on_event(Progressed(**event))

            told = progressed if asked.get("progress") else None
            with self._track_running_call(asked):
                answer = await self.toolbox.client.request(str(method), params, told)
            return b'"result":' + json.dumps(answer, separators=(",", ":")).encode()
        except HandtoolsError as problem:
            return error_response_json(problem)

    async def refuse_and_cancel_calls(self) -> None:
        """Refuse further requests and cancel running calls."""
        self._is_over = True
        for call_id in self._running:
            self.toolbox.client.send_without_response(
                "cancel", {"workspace": self.toolbox.workspace_name, "id": call_id}
            )
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), CANCEL_SECONDS)

    @contextmanager
    def _track_running_call(self, asked: Asked) -> Iterator[None]:
        """Track a call while it runs."""
        call = asked.get("call")
        if asked["method"] != "call" or not isinstance(call, dict):
            yield
            return
        call_id = str(call.get("id"))
        self._running.add(call_id)
        self._idle.clear()
        try:
            yield
        finally:
            self._running.discard(call_id)
            if not self._running:
                self._idle.set()


_OF_THE_CONNECTION = frozenset({"n", "method", "progress", "sent_to"})
"""Fields of a request that are about its connection and are not forwarded."""


BatchAgent = Callable[[FleetToolbox, BatchTask, Path], Awaitable[Mapping[str, Any] | None]]
"""Function that works on a task. The path is a folder for files that don't belong in the workspace."""
AGENT_LOG_NAME = "agent.log"
MCP_CONFIG_NAME = "mcp.json"
TASK_NAME = "task.json"
MCP_CONFIG_VARIABLE = "HANDTOOLS_MCP_CONFIG"
TASK_VARIABLE = "HANDTOOLS_TASK"
_ENTRY_POINT = re.compile(r"[A-Za-z_][\w.]*:[A-Za-z_][\w.]*")
_END_SECONDS = 5.0
_MAX_LOG_CHARS = 300


class AgentFailed(HandtoolsError):
    """The agent's command exited with a non-zero code."""


def is_entry_point(agent: str) -> bool:
    """Whether an agent is given as `module:function`. Anything else is a command."""
    return bool(_ENTRY_POINT.fullmatch(agent))


def load_agent(name: str) -> BatchAgent:
    """Import an agent: an async function `module:function` that takes a toolbox and a task.

    If it returns a mapping of JSON values, that becomes part of the task's result.
    """
    module, _, path = name.partition(":")
    if os.getcwd() not in sys.path:
        sys.path.insert(0, os.getcwd())
    try:
        found: Any = importlib.import_module(module)
        for part in path.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError) as problem:
        raise UsageError(f"Can't import the agent {name}: {problem}.") from problem
    if not inspect.iscoroutinefunction(found):
        raise UsageError(f"The agent {name} is not an async function.")

    async def run(toolbox: FleetToolbox, task: BatchTask, _folder: Path) -> Mapping[str, Any] | None:
        told = await found(toolbox, task)
        return told if isinstance(told, Mapping) else None

    return run


class AgentCommand:
    """An agent that is a program, started for each task with the workspace as an MCP server.

    Its arguments can contain the placeholders `{prompt}`, `{id}`, `{task}` and `{mcp_config}` (paths of
    files), and `{here}` (the current folder). No shell is involved. The program runs as the user who started
    the batch, in an empty folder.
    """

    def __init__(self, command: str, relay: WorkspaceRelay) -> None:
        self._words = shlex.split(command)
        if not self._words:
            raise UsageError("The agent's command is empty.")
        self._here = os.getcwd()
        self._words[0] = self._words[0].replace("{here}", self._here)
        if shutil.which(self._words[0]) is None:
            raise UsageError(f"Can't run the agent: program {self._words[0]!r} not found.")
        self._relay = relay

    async def __call__(self, toolbox: FleetToolbox, task: BatchTask, folder: Path) -> None:
        """Run the command to completion. Raises `AgentFailed` if its exit code is not 0."""
        empty = folder / "agent"
        empty.mkdir()
        async with self._relay.token_for_workspace(toolbox) as token:
            config, asked = folder / MCP_CONFIG_NAME, folder / TASK_NAME
            asked.write_text(task.model_dump_json(), "utf-8")
            config.touch(0o600)
            config.write_text(json.dumps(self._mcp_config(toolbox, token)), "utf-8")
            values = {
                "{prompt}": task.prompt,
                "{id}": task.id,
                "{task}": str(asked.absolute()),
                "{mcp_config}": str(config.absolute()),
                "{here}": self._here,
            }
            files = {MCP_CONFIG_VARIABLE: values["{mcp_config}"], TASK_VARIABLE: values["{task}"]}
            words = [_PLACEHOLDER.sub(lambda found: values[found[0]], word) for word in self._words]
            try:
                code = await _run_program(words, empty, os.environ | files, folder / AGENT_LOG_NAME)
            finally:
                config.unlink()
        if code:
            raise AgentFailed(f"The agent failed with exit code {code}: {_end_of_agent_output(folder)}")

    def _mcp_config(self, toolbox: FleetToolbox, token: str) -> dict[str, Any]:
        """The MCP configuration in the format that most clients read."""
        server = {
            "command": sys.executable,
            "args": ["-m", "handtools.fleet.workspace_mcp"],
            "env": {
                ADDRESS_VARIABLE: self._relay.address,
                TOKEN_VARIABLE: token,
                WORKSPACE_VARIABLE: toolbox.workspace_name,
            },
        }
        return {"mcpServers": {"handtools": server}}


_PLACEHOLDER = re.compile(r"\{(?:prompt|id|task|mcp_config|here)\}")


async def _run_program(words: list[str], cwd: Path, env: Mapping[str, str], log: Path) -> int:
    """Run a program and return its exit code. Kills its process group at the end and on cancellation."""
    with log.open("wb") as output:
        starting = asyncio.create_task(
            asyncio.create_subprocess_exec(
                *words,
                cwd=cwd,
                env=env,
                stdin=asyncio.subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
        )
        try:
            # Shielded: on cancellation during startup, asyncio would kill the program but not its children.
            process = await asyncio.shield(starting)
            return await process.wait()
        finally:
            await _terminate_process_group(await starting)


async def _terminate_process_group(process: asyncio.subprocess.Process) -> None:
    """Terminate a program and all remaining processes of its group."""
    with contextlib.suppress(ProcessLookupError):
        end_process_group(process.pid, gently=True)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(process.wait(), _END_SECONDS)
        end_process_group(process.pid, gently=False)
    await process.wait()


def _end_of_agent_output(folder: Path) -> str:
    text = (folder / AGENT_LOG_NAME).read_bytes()[-4 * _MAX_LOG_CHARS :].decode(errors="replace").strip()
    return text[-_MAX_LOG_CHARS:] or "it printed nothing."
