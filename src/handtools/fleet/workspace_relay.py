"""A server for agents in separate processes: each token gives access to one workspace, on any host."""

import asyncio
import contextlib
import hmac
import json
import secrets
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

from handtools.core.errors import HandtoolsError, UsageError
from handtools.core.events import Event, Progressed
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.host_server import Asked, FrameServer, error_answer

RELAYED_METHODS = frozenset({"call", "cancel", "definitions", "ping", "why"})
"""Methods that an agent can use. Not `resume`: it could approve its own calls."""

CANCEL_SECONDS = 30.0
"""Seconds that running calls have to finish when they are cancelled with their agent."""


class WorkspaceRelay(FrameServer):
    """Forwards an agent's requests to the host of its workspace, and only for that workspace."""

    def __init__(self) -> None:
        super().__init__(secrets.token_hex(8))
        self._opened: dict[str, RelayedWorkspace] = {}

    @asynccontextmanager
    async def opened(self, toolbox: FleetToolbox) -> AsyncIterator[str]:
        """A token for a workspace, valid within the block. Calls still running at its end are cancelled."""
        token = secrets.token_hex(32)
        relayed = self._opened[token] = RelayedWorkspace(toolbox)
        try:
            yield token
        finally:
            del self._opened[token]
            await relayed.close()

    def methods_of(self, token: str) -> "RelayedWorkspace | None":
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

    async def answer(self, asked: Asked, on_event: Callable[[Event], None] | None = None) -> bytes:
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
            with self._noted(asked):
                answer = await self.toolbox.client.ask(str(method), params, told)
            return b'"result":' + json.dumps(answer, separators=(",", ":")).encode()
        except HandtoolsError as problem:
            return error_answer(problem)

    async def close(self) -> None:
        """Refuse further requests and cancel running calls."""
        self._is_over = True
        for call_id in self._running:
            self.toolbox.client.tell("cancel", {"workspace": self.toolbox.workspace_name, "id": call_id})
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), CANCEL_SECONDS)

    @contextmanager
    def _noted(self, asked: Asked) -> Iterator[None]:
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
"""Fields of a request that concern only its connection."""
