"""The part of a toolbox's interface that an MCP server needs, wherever the workspace is. ADR 284."""

from typing import Any, Protocol, Self

from handtools.core.approval import Approver, Reply
from handtools.core.call import Call
from handtools.core.events import EventListener
from handtools.core.result import Result
from handtools.runtime.policy import Policy
from handtools.toolbox import ToolDefinition


class ServedToolbox(Protocol):
    """What an MCP server needs of a toolbox: a `Toolbox` has it, and so has a `RemoteToolbox`."""

    @property
    def policy(self) -> Policy:
        """What it may do; of a toolbox elsewhere, by what that is narrowed here."""
        ...

    async def call(self, tool: Call, *, reply: Reply | None = None) -> Result[Any]:
        """Run a call, or return the recorded result of its id; `reply` answers the question it waits with."""
        ...

    async def resume(self, call_id: str, reply: Reply) -> Result[Any]:
        """Answer a pending call."""
        ...

    async def answer_from_elsewhere(self, call_id: str, *, only_if_watched: bool = False) -> Reply | None:
        """Wait for the answer of a person who watches; None if there is nobody, or the call has ended."""
        ...

    def definitions(self) -> list[ToolDefinition]:
        """The tools that are offered."""
        ...

    def listen(self, listener: EventListener) -> None:
        """Add a listener for all later events of calls."""
        ...

    def under(self, policy: Policy, *, approver: Approver | None = None) -> Self:
        """The same tools under another policy."""
        ...

    def look_ahead(self) -> None:
        """Begin in the background what the first command would wait for."""
        ...

    async def aclose(self) -> None:
        """Close what is open."""
        ...
