"""A server for agents that are programs of their own: a token opens one workspace, on any host. ADR 251."""

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
"""What an agent may ask. Not `resume`: it would answer its own questions."""

CANCEL_SECONDS = 30.0
"""How long calls get to end that are cancelled with their agent."""


class WorkspaceRelay(FrameServer):
    """Passes on what an agent asks to the host of its workspace, and to no other workspace."""

    def __init__(self) -> None:
        super().__init__(secrets.token_hex(8))
        self._opened: dict[str, RelayedWorkspace] = {}

    @asynccontextmanager
    async def opened(self, toolbox: FleetToolbox) -> AsyncIterator[str]:
        """A token for a workspace, good for as long as the block runs; calls that run at its end are cancelled."""
        token = secrets.token_hex(32)
        relayed = self._opened[token] = RelayedWorkspace(toolbox)
        try:
            yield token
        finally:
            del self._opened[token]
            await relayed.close()

    def methods_of(self, token: str) -> "RelayedWorkspace | None":
        """What a token may ask; None for one that is not ours."""
        found = None
        for known, workspace in self._opened.items():  # all of them, however the first compares
            if hmac.compare_digest(known.encode(), token.encode("utf-8", "surrogatepass")):
                found = workspace
        return found


class RelayedWorkspace:
    """The requests of one agent."""

    def __init__(self, toolbox: FleetToolbox) -> None:
        self.toolbox = toolbox
        self._is_over = False
        """Whether its time is over: a connection may be open longer than that."""
        self._running: set[str] = set()
        """Ids of the calls that run; a lost connection ends none of them."""
        self._idle = asyncio.Event()
        self._idle.set()

    async def answer(self, asked: Asked, on_event: Callable[[Event], None] | None = None) -> bytes:
        """Ask the host, and return the JSON of its answer."""
        try:
            method = asked.get("method")
            if self._is_over:
                raise UsageError("The task of this token is over.")
            if method not in RELAYED_METHODS or asked.get("workspace") != self.toolbox.workspace_name:
                raise UsageError(f"This token can't ask for {method!r} there.")
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
        """Answer no more, and cancel the calls that still run."""
        self._is_over = True
        for call_id in self._running:
            self.toolbox.client.tell("cancel", {"workspace": self.toolbox.workspace_name, "id": call_id})
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._idle.wait(), CANCEL_SECONDS)

    @contextmanager
    def _noted(self, asked: Asked) -> Iterator[None]:
        """Remember a call while it runs."""
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
"""Fields of a request that are about the connection that it came on."""
