"""The client of a host: one connection for all workspaces that a program uses there, reopened if lost."""

import asyncio
import base64
import secrets
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from anyio import to_thread

from handtools.core.errors import HandtoolsError, HostError, ToolError, UsageError
from handtools.fleet.fork_merge import ForkMerge
from handtools.fleet.frames import PROTOCOL, FrameConnection, parse_address
from handtools.fleet.host_status import HostedWorkspace, HostStatus
from handtools.fleet.journal_archive import unpack_journal
from handtools.fleet.tree_diff import TreeDifference
from handtools.fleet.workspace_slots import WorkspaceMoved

CONNECT_SECONDS = 10.0
MAX_ATTEMPTS = 6
FIRST_PAUSE_SECONDS = 0.05
ProgressHandler = Callable[[dict[str, Any]], None]


class ConnectionLost(ConnectionError):
    """The connection was lost before the response arrived, so the outcome of the request is unknown."""


class HostClient:
    """Client of a host. If the connection is lost, requests are sent again, because they are idempotent."""

    def __init__(self, address: str, token: str, *, attempts: int = MAX_ATTEMPTS) -> None:
        self._known: tuple[str, str] | None = (address, token) if address else None
        self._attempts = attempts
        self._open: tuple[asyncio.AbstractEventLoop, ClientConnection] | None = None
        self._opening: asyncio.Lock = asyncio.Lock()

    async def address_and_token(self) -> tuple[str, str]:
        """The address and token of the host."""
        if self._known is None:
            raise UsageError("The client needs an address, or must override `address_and_token`.")
        return self._known

    async def request(
        self, method: str, params: dict[str, Any], on_progress: ProgressHandler | None = None
    ) -> dict[str, Any]:
        """Send a request. Raises the error that the host reports, or `HostError` if it is unreachable."""
        pause, lost, sent_to = FIRST_PAUSE_SECONDS, "", ""
        for _ in range(self._attempts):
            try:
                connection = await self._open_or_reuse_connection()
                asked = {**params, "sent_to": sent_to} if sent_to else params
                sent_to = sent_to or connection.incarnation
                return await connection.request(method, asked, on_progress)
            except (OSError, TimeoutError) as failure:
                lost = str(failure) or type(failure).__name__
            await asyncio.sleep(pause)
            pause *= 2
        raise HostError(f"Can't reach the host: {lost}.")

    def send_without_response(self, method: str, params: dict[str, Any]) -> None:
        """Send a request without waiting for a response; do nothing if there is no connection."""
        if self._open is not None:
            self._open[1].send_message({"n": 0, "method": method, **params})

    async def add_template(self, kind: str, source: str, *, commit: str = "", folder: str = "") -> str:
        """Create a template from a `folder`, `tarball`, `git` commit or `image` and return its digest.

        `folder` selects a folder of an image, such as `/app`.
        """
        asked = {"kind": kind, "source": source, "commit": commit, "folder": folder}
        return str((await self.request("add_template", asked))["digest"])

    async def create(self, template: str, *, name: str = "") -> str:
        """Create a workspace from a template and return its name."""
        asked = {"template": template, "name": name or secrets.token_hex(8)}
        return str((await self.request("create", asked))["name"])

    async def fork(self, workspace: str, count: int = 1) -> list[str]:
        """Fork a workspace in its current state. Returns the names of the forks."""
        # The prefix before the first dash names the host; a fork is on its parent's host.
        prefix = f"{workspace.partition('-')[0]}-" if "-" in workspace else ""
        names = [f"{prefix}{secrets.token_hex(8)}" for _ in range(count)]
        return list((await self.request("fork", {"workspace": workspace, "names": names}))["names"])

    async def diff(self, workspace: str) -> list[TreeDifference]:
        """The differences between a workspace and its initial state."""
        found = await self.request("diff", {"workspace": workspace})
        return [TreeDifference(**each) for each in found["differences"]]

    async def merge(self, fork: str) -> ForkMerge:
        """Merge a fork into its parent. Conflicting paths are left unchanged in the parent."""
        return _fork_merge_from_json(await self.request("merge", {"workspace": fork}))

    async def promote(self, fork: str) -> ForkMerge:
        """Make the parent identical to its fork. Raises `Stale` if the parent has changed since the fork."""
        return _fork_merge_from_json(await self.request("merge", {"workspace": fork, "whole": True}))

    async def fetch_journal(self, workspace: str, folder: Path) -> None:
        """Download a copy of a workspace's journal into a new folder, after its running calls end."""
        with TemporaryFile() as archive:
            size = 1
            while archive.tell() < size:
                part = await self.request("journal", {"workspace": workspace, "offset": archive.tell()})
                size = part["bytes"]
                archive.write(base64.b64decode(part["data"]))
            archive.seek(0)
            await to_thread.run_sync(unpack_journal, archive, folder)

    async def remove(self, workspace: str) -> None:
        """Delete a workspace and its journal."""
        await self.request("remove", {"workspace": workspace})

    async def workspace_names(self) -> list[str]:
        """The names of the workspaces of this token's tenant."""
        return list((await self.request("names", {}))["names"])

    async def status(self) -> HostStatus:
        """The status of the host."""
        return HostStatus(**await self.request("status", {}))

    async def list_workspaces(self) -> list[HostedWorkspace]:
        """All workspaces on the host. Requires the fleet's own token."""
        found = await self.request("workspaces", {})
        return [HostedWorkspace(**each) for each in found["workspaces"]]

    async def recorded_calls(
        self, workspace: str, *, limit: int = 20, before: int | None = None
    ) -> list[dict[str, Any]]:
        """The recorded calls of a workspace, newest first. `before` is the `seq` of the last call seen."""
        asked = {"workspace": workspace, "limit": limit, "before": before}
        return list((await self.request("recorded_calls", asked))["calls"])

    async def host_log(self, *, limit: int = 20) -> list[str]:
        """The last log lines of the host's process. Requires the fleet's own token."""
        return list((await self.request("host_log", {"limit": limit}))["lines"])

    async def ping(self) -> None:
        """Check that the host responds."""
        await self.request("ping", {})

    async def aclose(self) -> None:
        """Close the connection. The next request opens a new one."""
        if self._open is not None:
            connection, self._open = self._open[1], None
            connection.close()

    async def _open_or_reuse_connection(self) -> "ClientConnection":
        loop = asyncio.get_running_loop()
        if self._open is not None and self._open[0] is loop and not self._open[1].is_lost:
            return self._open[1]
        async with self._opening:
            if self._open is not None and self._open[0] is loop and not self._open[1].is_lost:
                return self._open[1]
            address, token = await self.address_and_token()
            async with asyncio.timeout(CONNECT_SECONDS):
                connection = await _open_connection(parse_address(address), token)
            self._open = (loop, connection)
            return connection


async def _open_connection(place: tuple[str, int] | str, token: str) -> "ClientConnection":
    loop = asyncio.get_running_loop()
    if isinstance(place, str):
        _, connection = await loop.create_unix_connection(ClientConnection, place)
    else:
        _, connection = await loop.create_connection(ClientConnection, *place)
    try:
        await connection.authenticate(token)
    except BaseException:
        connection.close()
        raise
    return connection


class ClientConnection(FrameConnection):
    """The client's end of a connection."""

    def __init__(self) -> None:
        super().__init__()
        self.is_lost = False
        self.incarnation = ""
        """The incarnation (id of the run) of the host at the other end."""
        self.version = ""
        self._number = 0
        self._asked: dict[int, asyncio.Future[dict[str, Any]]] = {}
        self._progress: dict[int, ProgressHandler] = {}

    async def authenticate(self, token: str) -> None:
        """Send the token. Raises `UsageError` if it is refused or the protocol versions differ."""
        told = await self._send_and_wait(0, {"token": token, "protocol": PROTOCOL})
        self.incarnation, self.version = told["incarnation"], told["version"]

    async def request(
        self, method: str, params: dict[str, Any], on_progress: ProgressHandler | None = None
    ) -> dict[str, Any]:
        """Send a request and wait for its response. Raises `ConnectionLost`."""
        self._number += 1
        number = self._number
        message = {"n": number, "method": method, **params}
        if on_progress is not None:
            message["progress"] = True
            self._progress[number] = on_progress
        try:
            return await self._send_and_wait(number, message)
        finally:
            self._progress.pop(number, None)

    def handle_message(self, message: dict[str, Any]) -> None:
        number = message.get("n", 0)
        if "progress" in message:
            if handler := self._progress.get(number):
                handler(message["progress"])
            return
        future = self._asked.get(number)
        if future is not None and not future.done():
            future.set_result(message)

    def connection_lost(self, exc: Exception | None) -> None:
        self.is_lost = True
        for future in self._asked.values():
            if not future.done():
                future.set_exception(ConnectionLost(str(exc or "the connection was closed")))

    async def _send_and_wait(self, number: int, message: dict[str, Any]) -> dict[str, Any]:
        if self.is_lost:
            raise ConnectionLost("the connection was closed")
        future = self._asked[number] = asyncio.get_running_loop().create_future()
        self.send_message(message)
        try:
            answer: dict[str, Any] = await future
        finally:
            del self._asked[number]
        if "error" in answer:
            raise error_from_json(answer["error"])
        found: dict[str, Any] = answer.get("result", {})
        return found


def error_from_json(problem: dict[str, str]) -> HandtoolsError:
    """The exception that a host raised; `HostError` if its kind is unknown."""
    errors: dict[str, type[ToolError]] = {each.code: each for each in ToolError.__subclasses__()}
    kind, message = problem.get("kind", ""), problem.get("message", "")
    if kind == "moved":
        return WorkspaceMoved(message, problem["host"], problem["incarnation"])
    if kind in errors:
        return errors[kind](message, hint=problem.get("hint", ""))
    return UsageError(message) if kind == "usage" else HostError(message)


def _fork_merge_from_json(value: dict[str, Any]) -> ForkMerge:
    return ForkMerge(value["call_id"], tuple(value["changed"]), tuple(value["conflicts"]))
