"""A `tools/call` request as JSON, the same for every transport, and what the server can ask its client."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Protocol

from handtools.core.errors import HandtoolsError
from handtools.mcp.handshake import CURRENT_PROTOCOL_VERSION, Json


class ClientRefusal(HandtoolsError):
    """The client answered a request from the server with an error, or not in time."""


class SendToClient(Protocol):
    """Function that sends the client a JSON-RPC request and returns its result. Raises `ClientRefusal`."""

    def __call__(
        self, method: str, params: Json | None, *, seconds: float | None = None
    ) -> Awaitable[Json]: ...


@dataclass(slots=True)
class ToolRequest:
    """One `tools/call` request, with its parameters as the client sent them."""

    request_id: str | int | None
    params: Json
    client_name: str
    capabilities: Json
    """The client's capabilities. One that it does not have is missing."""
    protocol_version: str
    send_to_client: SendToClient | None
    """None if the client takes requests only in results, as in the current protocol."""
    report_progress: Callable[[float, str], Awaitable[None]]
    """Sends a progress notification: number and message."""
    header: Callable[[str], str] = lambda _: ""
    """Returns an HTTP header by name; empty if it is missing, and on stdio."""

    @property
    def tool(self) -> str:
        """The name of the tool."""
        return str(self.params["name"])

    @property
    def arguments(self) -> Json:
        """The arguments of the call."""
        return self.params.get("arguments") or {}

    @property
    def meta(self) -> Json:
        """The request's `_meta`."""
        return self.params.get("_meta") or {}

    @property
    def request_state(self) -> str | None:
        """The state that the client returns with its reply to an `input_required` result."""
        state: str | None = self.params.get("requestState")
        return state

    @property
    def is_current_protocol(self) -> bool:
        """Whether the client uses the protocol version in which the server asks in results."""
        return self.protocol_version == CURRENT_PROTOCOL_VERSION

    def input_response(self, key: str) -> Json | None:
        """The client's reply to one of the `inputRequests` of an earlier result."""
        given: Any = (self.params.get("inputResponses") or {}).get(key)
        return given if isinstance(given, dict) else None
