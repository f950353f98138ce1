"""`FleetToolbox`: the tools of a workspace on a host, with the interface of `Toolbox`."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Self

from handtools.core.call import Call, CancelToken, call_to_json
from handtools.core.events import Progressed
from handtools.core.result import Result, result_from_json
from handtools.fleet.host_client import HostClient
from handtools.mcp.remote_toolbox import RemoteToolbox


class FleetToolbox(RemoteToolbox):
    """Client for the tools of one workspace. Like a `RemoteToolbox`, it is an async context manager.

    All toolboxes of a host share the client's connection. If the connection is lost, a call is sent again
    with the same id, so that it runs only once.
    """

    def __init__(self, client: HostClient, workspace: str) -> None:
        super().__init__(workspace, "")
        self.client = client
        self.workspace_name = workspace

    def _unopened_copy(self) -> Self:
        return type(self)(self.client, self.workspace_name)

    async def call_in_order(self, calls: Sequence[Call]) -> list[Result[Any]]:
        """Run calls one after another in one request. A failed call does not stop those after it."""
        asked = [call_to_json(replace(call, tool=self._own_name(call.tool))) for call in calls]
        answer = await self._send_request("batch", {"calls": asked, **self._narrowing})
        return [result_from_json(each) for each in answer["results"]]

    async def aclose(self) -> None:
        """Do nothing: the connection belongs to the client and may be shared."""

    async def _send_request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        return await self.client.request(method, {**params, "workspace": self.workspace_name})

    async def _run(self, call: Call, token: CancelToken) -> dict[str, Any]:
        asked = {"workspace": self.workspace_name, "call": call_to_json(call), **self._narrowing}
        cancelled = {"workspace": self.workspace_name, "id": call.id}
        loop = asyncio.get_running_loop()
        unlink = token.on_cancel(
            lambda: loop.call_soon_threadsafe(self.client.send_without_response, "cancel", cancelled)
        )
        progress = self._announce_progress if self._announcer.is_heard(call.id) else None
        try:
            return await self.client.request("call", asked, progress)
        except asyncio.CancelledError:
            self.client.send_without_response("cancel", cancelled)
            raise
        finally:
            unlink()

    def _announce_progress(self, event: dict[str, Any]) -> None:
        self._announcer.announce(Progressed(**event))
