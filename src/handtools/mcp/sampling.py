"""Sampling: the client's own model, lent to our tools. Protocols before the current one have it."""

import warnings
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from handtools.core.errors import WrongKind

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

MOST_TOKENS = 32_000
_request: ContextVar["ServerRequestContext[Any, Any] | None"] = ContextVar("request", default=None)
"""Whose call this is: a desk may serve several clients, each with its own model."""


@contextmanager
def lent_by(ctx: "ServerRequestContext[Any, Any]") -> Iterator[None]:
    """Calls made within this ask the client of this request."""
    before = _request.set(ctx)
    try:
        yield
    finally:
        _request.reset(before)


async def sampled(prompt: str) -> AsyncIterator[str]:
    """The answer of the client's model; the protocol brings it in one piece."""
    ctx = _request.get()
    capabilities = ctx.session.client_capabilities if ctx else None
    if (
        ctx is None
        or capabilities is None
        or capabilities.sampling is None
        or not ctx.session.can_send_request
    ):
        raise WrongKind("This client lends no model (MCP sampling).", hint="Use `edit`.")
    from mcp.shared.exceptions import MCPError
    from mcp_types import SamplingMessage, TextContent

    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    with warnings.catch_warnings():
        # It is deprecated for good reasons, and what clients of today have.
        warnings.simplefilter("ignore")
        asking = ctx.session.create_message(
            [message], max_tokens=MOST_TOKENS, related_request_id=ctx.request_id
        )
    try:
        said = await asking
    except MCPError as problem:
        raise WrongKind(f"The client's model gave no answer: {problem}.", hint="Use `edit`.") from problem
    if isinstance(said.content, TextContent):
        yield said.content.text
