"""The part of a toolbox's interface that an MCP server needs, for a local or a remote workspace."""

from typing import Any, Protocol, Self

from handtools.core.approval import Approver, Reply
from handtools.core.call import Call
from handtools.core.events import EventListener
from handtools.core.result import Result
from handtools.runtime.policy import Policy
from handtools.toolbox import ToolDefinition


class ServedToolbox(Protocol):
    """The toolbox interface that an MCP server needs. `Toolbox` and `RemoteToolbox` implement it."""

    @property
    def policy(self) -> Policy:
        """The policy of the toolbox. For a remote toolbox, only the restrictions that are added locally."""
        ...

    async def call(self, tool_call: Call, *, reply: Reply | None = None) -> Result[Any]:
        """Run a call, or return the recorded result of its id. `reply` answers its approval request."""
        ...

    async def resume(self, call_id: str, reply: Reply) -> Result[Any]:
        """Answer a pending call."""
        ...

    async def answer_from_elsewhere(self, call_id: str, *, only_if_watched: bool = False) -> Reply | None:
        """Wait for an answer from `watch` or `view`; None if neither is open or the call has ended."""
        ...

    def definitions(self) -> list[ToolDefinition]:
        """The definitions of the available tools."""
        ...

    def listen(self, listener: EventListener) -> None:
        """Add a listener for all later call events."""
        ...

    def under(self, policy: Policy, *, approver: Approver | None = None) -> Self:
        """The same tools under another policy."""
        ...

    def look_ahead(self) -> None:
        """Start preparing for the first command in the background."""
        ...

    async def aclose(self) -> None:
        """Release all resources."""
        ...
