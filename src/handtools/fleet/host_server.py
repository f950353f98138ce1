"""The server of a host: tool calls over a socket, authenticated with tokens.

A lost connection does not stop a call: sending the call again with the same id returns its result. A token
belongs to a tenant, who can access only its own workspaces.
"""

import asyncio
import base64
import contextlib
import hmac
import json
import os
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, replace
from functools import partial
from typing import Any, Protocol

from anyio import to_thread

from handtools import __version__
from handtools.core.approval import Reply
from handtools.core.call import call_from_json
from handtools.core.errors import HandtoolsError, HostError, ToolError, UsageError
from handtools.core.events import Event, Progressed
from handtools.core.result import result_to_bytes
from handtools.fleet.frames import (
    FIRST_FRAME_BYTES,
    PROTOCOL,
    FrameConnection,
    encode_frame,
    frame_of_json_bytes,
    parse_address,
)
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.host_log import recent_log_lines
from handtools.fleet.workspace_slots import WorkspaceMoved
from handtools.mcp.remote_toolbox import TOOLBOX_METHODS, RemoteParams, ToolboxMethod
from handtools.mcp.tool_and_result_json import plain_json

TOKEN_SECONDS = 10.0
"""Seconds that a new connection has to send its token."""
FAILED = {"kind": "host", "message": "Internal error in the host. See the host's log for details."}
Asked = dict[str, Any]


class HostMethods:
    """The methods of a host for one tenant, called over a socket or through a Ray actor."""

    def __init__(self, host: WorkspaceHost, tenant: str = "") -> None:
        self.host = host
        self.tenant = tenant

    async def handle_request(self, asked: Asked, on_event: Callable[[Event], None] | None = None) -> bytes:
        """Handle a request. Returns JSON with a `result`, or an `error` with its kind and message."""
        try:
            method = self._methods_by_name().get(str(asked.get("method")))
            if method is None:
                raise UsageError(f"A host has no method {asked.get('method')!r}.")
            if method == self.call:
                return b'"result":{"result":' + await self.call(asked, on_event) + b"}"
            if method == self.batch:
                return b'"result":{"results":[' + b",".join(await self.batch(asked)) + b"]}"
            return b'"result":' + _json_bytes(await method(asked))
        except HandtoolsError as problem:
            return error_response_json(problem)
        except OSError as problem:
            return b'"error":' + _json_bytes({"kind": "host", "message": f"The host failed: {problem}."})
        except (KeyError, TypeError, ValueError) as problem:
            return b'"error":' + _json_bytes(
                {"kind": "usage", "message": f"The request is invalid: {problem!r}."}
            )

    async def call(self, asked: Asked, on_event: Callable[[Event], None] | None = None) -> bytes:
        """Run a call and return the JSON of its result."""
        reply = asked.get("reply")
        result = await self.host.call(
            asked["workspace"],
            replace(call_from_json(asked["call"]), owner=""),
            tenant=self.tenant,
            policy=asked.get("policy"),
            reply=None if reply is None else Reply(**reply),
            listener=on_event,
            sent_to=asked.get("sent_to", ""),
        )
        return result_to_bytes(result)

    async def batch(self, asked: Asked) -> list[bytes]:
        """Run several calls in one workspace, one after another."""
        rest = {name: value for name, value in asked.items() if name != "calls"}
        return [await self.call({**rest, "call": call}) for call in asked["calls"]]

    async def resume(self, asked: Asked) -> Any:
        """Answer the approval request of a pending call."""
        result = await self.host.resume(
            asked["workspace"],
            asked["id"],
            RemoteParams.model_validate(asked).reply,
            tenant=self.tenant,
            policy=asked.get("policy"),
        )
        return {"result": json.loads(result_to_bytes(result))}

    async def cancel(self, asked: Asked) -> Any:
        """Cancel a call by its id."""
        return {"cancelled": self.host.cancel(asked["workspace"], asked["id"], tenant=self.tenant)}

    async def add_template(self, asked: Asked) -> Any:
        """Create a template from a source on this machine. Operator only."""
        self._require_operator()
        made = await self.host.add_template(
            asked["kind"], asked["source"], asked.get("commit", ""), asked.get("folder", "")
        )
        return {"digest": made}

    async def create(self, asked: Asked) -> Any:
        """Create a workspace from a template."""
        made = await self.host.create(asked["template"], name=asked.get("name", ""), tenant=self.tenant)
        return {"name": made}

    async def fork(self, asked: Asked) -> Any:
        """Fork a workspace."""
        made = await self.host.fork(
            asked["workspace"],
            tenant=self.tenant,
            count=asked.get("count", 1),
            names=asked.get("names", ()),
        )
        return {"names": made}

    async def diff(self, asked: Asked) -> Any:
        """The differences between a workspace and its initial state."""
        found = await self.host.diff(asked["workspace"], tenant=self.tenant)
        return {"differences": [asdict(each) for each in found]}

    async def merge(self, asked: Asked) -> Any:
        """Merge a fork into its parent, or with `whole` replace the parent with it."""
        done = await self.host.merge_or_promote_fork(
            asked["workspace"], tenant=self.tenant, whole=asked.get("whole", False)
        )
        return asdict(done)

    async def journal(self, asked: Asked) -> Any:
        """A part of the archive of a workspace's journal. Requesting offset 0 creates the archive."""
        part, size = await self.host.journal_archive_part(
            asked["workspace"], int(asked["offset"]), tenant=self.tenant
        )
        return {"data": base64.b64encode(part).decode(), "bytes": size}

    async def remove(self, asked: Asked) -> Any:
        """Delete a workspace."""
        await self.host.remove(asked["workspace"], tenant=self.tenant)
        return {}

    async def names(self, _asked: Asked) -> Any:
        """The names of the tenant's workspaces."""
        return {"names": self.host.workspace_names(tenant=self.tenant)}

    async def status(self, _asked: Asked) -> Any:
        """The status of the host."""
        return asdict(self.host.status())

    async def workspaces(self, _asked: Asked) -> Any:
        """All workspaces with their details. Operator only."""
        self._require_operator()
        return {"workspaces": [asdict(each) for each in self.host.list_workspaces()]}

    async def drain(self, _asked: Asked) -> Any:
        """Accept no new workspaces. Operator only."""
        self._require_operator()
        await self.host.refuse_new_workspaces()
        return {}

    async def hand_over(self, asked: Asked) -> Any:
        """Move a workspace to another host. Operator only."""
        self._require_operator()
        await self.host.hand_over_workspace(
            asked["moved"], asked["to"], job_seconds=float(asked.get("job_seconds", 0.0))
        )
        return {}

    async def adopt(self, asked: Asked) -> Any:
        """Recover a workspace that another host has handed over. Operator only."""
        self._require_operator()
        await self.host.recover_handed_over_workspace(asked["moved"])
        return {}

    async def recorded_calls(self, asked: Asked) -> Any:
        """The recorded calls of a workspace, newest first."""
        async with self._open_requested_toolbox(asked) as box:
            found = await to_thread.run_sync(
                lambda: box.workspace.journal.calls.page(
                    before=asked.get("before"), limit=int(asked.get("limit", 20))
                )
            )
        return {"calls": [plain_json(asdict(each)) for each in found]}

    async def host_log(self, asked: Asked) -> Any:
        """The last log lines of the host's process. Operator only."""
        self._require_operator()
        return {"lines": recent_log_lines(int(asked.get("limit", 20)))}

    async def ping(self, _asked: Asked) -> Any:
        """Respond with an empty result."""
        return {}

    def _methods_by_name(self) -> Mapping[str, Callable[..., Awaitable[Any]]]:
        named = (
            self.call, self.batch, self.resume, self.cancel, self.add_template, self.create, self.fork,
            self.diff, self.merge, self.journal, self.remove, self.names, self.status, self.workspaces,
            self.drain, self.hand_over, self.adopt, self.recorded_calls, self.host_log, self.ping,
        )  # fmt: skip
        shared = {
            name: partial(self._call_toolbox_method, method) for name, method in TOOLBOX_METHODS.items()
        }
        return {method.__name__: method for method in named} | shared

    async def _call_toolbox_method(self, method: ToolboxMethod, asked: Asked) -> Any:
        async with self._open_requested_toolbox(asked) as box:
            return await method(box, RemoteParams.model_validate(asked))

    def _require_operator(self) -> None:
        if self.tenant:
            raise UsageError("Tenants can't do this. Use the fleet's own token.")

    def _open_requested_toolbox(self, asked: Asked) -> Any:
        return self.host.use_toolbox(asked["workspace"], tenant=self.tenant, policy=asked.get("policy"))


class AnswersRequests(Protocol):
    """Handles the requests of a connection."""

    async def handle_request(self, asked: Asked, on_event: Callable[[Event], None] | None = None) -> bytes:
        """Handle a request. Returns JSON with a `result`, or an `error` with its kind and message."""
        ...


class FrameServer(ABC):
    """Listens on a socket and serves requests of connections that send a known token."""

    def __init__(self, incarnation: str) -> None:
        self.incarnation = incarnation
        """Id of this run of the server, sent to each client that connects."""
        self.address = ""
        self._server: asyncio.Server | None = None
        self.connections: set[ServerConnection] = set()

    async def start(self, address: str) -> str:
        """Listen on `unix:PATH` or `tcp:HOST:PORT` (port 0 for any). Returns the address with its port."""
        loop, place = asyncio.get_running_loop(), parse_address(address)
        if isinstance(place, str):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(place)
            self._server = await loop.create_unix_server(lambda: ServerConnection(self), place)
            os.chmod(place, 0o600)
            self.address = address
        else:
            self._server = await loop.create_server(lambda: ServerConnection(self), *place)
            host, port = self._server.sockets[0].getsockname()[:2]
            self.address = f"tcp:{host}:{port}"
        return self.address

    async def aclose(self) -> None:
        """Stop listening and close all connections. Running requests continue."""
        if self._server is not None:
            self._server.close()
            for connection in list(self.connections):
                connection.close()
            await self._server.wait_closed()
            self._server = None

    @abstractmethod
    def request_handler_for_token(self, token: str) -> AnswersRequests | None:
        """The request handler for a token; None if the token is unknown."""


class HostServer(FrameServer):
    """Serves a host on a socket."""

    def __init__(self, host: WorkspaceHost, tokens: Mapping[str, str]) -> None:
        if not all(tokens):
            raise UsageError("A token can't be empty.")
        super().__init__(host.incarnation)
        self.host = host
        self.tokens = dict(tokens)
        """Tenants by token. The empty tenant can access all workspaces."""

    def request_handler_for_token(self, token: str) -> HostMethods | None:
        methods = None
        for known, tenant in self.tokens.items():  # no early exit, to prevent timing attacks
            if hmac.compare_digest(known.encode(), token.encode("utf-8", "surrogatepass")):
                methods = HostMethods(self.host, tenant)
        return methods


class ServerConnection(FrameConnection):
    """The server's end of a connection."""

    def __init__(self, server: FrameServer) -> None:
        super().__init__()
        self.most_bytes = FIRST_FRAME_BYTES
        self._server = server
        self._methods: AnswersRequests | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._late: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._server.connections.add(self)
        self._late = asyncio.get_running_loop().call_later(TOKEN_SECONDS, self.close)

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        """Forget the connection. Its calls continue."""
        self._server.connections.discard(self)
        if self._late is not None:
            self._late.cancel()

    def handle_message(self, message: Asked) -> None:
        """Handle the token first, then requests."""
        if self._methods is None:
            self._handle_greeting(message)
            return
        task = asyncio.get_running_loop().create_task(self._handle_request(self._methods, message))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _handle_greeting(self, message: Asked) -> None:
        methods = self._server.request_handler_for_token(str(message.get("token", "")))
        if methods is None:
            self.send_message({"error": {"kind": "usage", "message": "Unknown token."}})
            self.close()
            return
        if problem := _protocol_version_problem(message.get("protocol")):
            self.send_message({"error": {"kind": "usage", "message": problem}})
            self.close()
            return
        assert self._late is not None
        self._late.cancel()
        self._methods = methods
        self.most_bytes = FrameConnection().most_bytes
        self.send_message({"result": {"incarnation": self._server.incarnation, "version": __version__}})

    async def _handle_request(self, answerer: AnswersRequests, asked: Asked) -> None:
        number, loop = int(asked.get("n", 0)), asyncio.get_running_loop()

        def progressed(event: Event) -> None:
            # Don't send progress to a client that reads slowly; the result contains everything.
            if isinstance(event, Progressed) and not self.is_congested:
                loop.call_soon_threadsafe(self.send_message, {"n": number, "progress": asdict(event)})

        told = progressed if asked.get("progress") else None
        answer: bytes | None = None
        try:
            body = await answerer.handle_request(asked, told)
            answer = frame_of_json_bytes(b'{"n":%d,%s}' % (number, body))
        except HostError as too_large:
            answer = encode_frame({"n": number, "error": _error_to_json(too_large)})
        finally:
            # Respond even after an unexpected exception (logged with traceback): no client must wait forever.
            self.send_encoded_frame(answer or encode_frame({"n": number, "error": FAILED}))


def _protocol_version_problem(spoken: Any) -> str:
    if spoken == PROTOCOL:
        return ""
    return (
        f"This host runs handtools {__version__} with protocol version {PROTOCOL}; your handtools uses another. "
        "Next: install the same version on both, then `handtools fleet drain FLEET HOST --restart`"
    )


def error_response_json(error: HandtoolsError) -> bytes:
    """The JSON of an error response."""
    return b'"error":' + _json_bytes(_error_to_json(error))


def _error_to_json(error: HandtoolsError) -> dict[str, str]:
    if isinstance(error, WorkspaceMoved):
        return {
            "kind": "moved",
            "message": str(error),
            "host": error.host,
            "incarnation": error.incarnation,
        }
    if isinstance(error, ToolError):
        return {"kind": error.code, "message": error.message, "hint": error.hint}
    return {"kind": "usage" if isinstance(error, UsageError) else "host", "message": str(error)}


def _json_bytes(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
