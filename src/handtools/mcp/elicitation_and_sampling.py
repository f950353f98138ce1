"""Requests from the MCP server to its client: approval forms (elicitation) and model prompts (sampling)."""

import warnings
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from handtools.core.approval import Approval, RememberScope, Reply
from handtools.core.errors import WrongKind
from handtools.text.truncation import clip_text

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

MAX_SAMPLING_TOKENS = 32_000
_current_request: ContextVar["ServerRequestContext[Any, Any] | None"] = ContextVar("request", default=None)
"""The MCP request whose tool call runs in this context. `sample_model` sends its prompts to that client."""


@contextmanager
def set_sampling_request(ctx: "ServerRequestContext[Any, Any]") -> Iterator[None]:
    """Within the block, make `sample_model` send its prompts to the client that made this MCP request."""
    before = _current_request.set(ctx)
    try:
        yield
    finally:
        _current_request.reset(before)


async def sample_model(prompt: str) -> AsyncIterator[str]:
    """Send a prompt to the client's model by MCP sampling and yield its reply in one piece.

    Raises `WrongKind` if the client does not support sampling or refuses.
    """
    ctx = _current_request.get()
    capabilities = ctx.session.client_capabilities if ctx else None
    if (
        ctx is None
        or capabilities is None
        or capabilities.sampling is None
        or not ctx.session.can_send_request
    ):
        raise WrongKind("This client does not support MCP sampling.", hint="Use `edit`.")
    from mcp.shared.exceptions import MCPError
    from mcp_types import SamplingMessage, TextContent

    message = SamplingMessage(role="user", content=TextContent(type="text", text=prompt))
    with warnings.catch_warnings():
        # The SDK warns that sampling is deprecated, but it is still what clients support.
        warnings.simplefilter("ignore")
        asking = ctx.session.create_message(
            [message], max_tokens=MAX_SAMPLING_TOKENS, related_request_id=ctx.request_id
        )
    try:
        said = await asking
    except MCPError as problem:
        raise WrongKind(f"The client's model did not reply: {problem}.", hint="Use `edit`.") from problem
    if isinstance(said.content, TextContent):
        yield said.content.text


APPROVAL_KEY = "approval"
"""Key of the approval request in the `inputRequests` of an MCP result."""
APPROVAL_QUESTION_LINES = 60
APPROVAL_QUESTION_BYTES = 6_000
REMEMBERED_APPROVAL_LINES = 12
APPROVAL_DECISIONS: dict[str, RememberScope | None] = {
    "once": "once",
    "session": "session",
    "project": "project",
    "no": None,
}


def approval_question(approval: Approval) -> str:
    """The text of an approval form: the call, the rule that requires it, a preview and what is remembered."""
    shown = approval.excerpt(max_lines=APPROVAL_QUESTION_LINES, max_bytes=APPROVAL_QUESTION_BYTES)
    remembered = clip_text(
        approval.remembered,
        max_lines=REMEMBERED_APPROVAL_LINES,
        max_bytes=APPROVAL_QUESTION_BYTES,
        keep="both",
    ).text
    return (
        f"{approval.title}\n\nReason: {approval.rule}\n\n{shown}\n\n"
        f"Remembered for session or project:\n{remembered}"
    )


def approval_form() -> dict[str, Any]:
    """The JSON schema of an approval form with decision and message. It is flat, as MCP elicitation requires."""
    return {
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Allow?",
                "description": "once, for this session, for this project, or no.",
                "enum": list(APPROVAL_DECISIONS),
            },
            "message": {
                "type": "string",
                "title": "What to do instead",
                "description": "Sent to the agent if you deny (optional).",
            },
        },
        "required": ["decision"],
    }


def input_required_result(approval: Approval) -> dict[str, Any]:
    """An approval as an MCP result of type `input_required`.

    The client shows the form and repeats the call with the user's reply.
    """
    params = {"mode": "form", "message": approval_question(approval), "requestedSchema": approval_form()}
    return {
        "resultType": "input_required",
        "inputRequests": {APPROVAL_KEY: {"method": "elicitation/create", "params": params}},
        "requestState": build_request_state(approval),
    }


def build_request_state(approval: Approval) -> str:
    """The `requestState` that ties a client's reply to an approval: call id and fingerprint."""
    return f"{approval.call_id}.{approval.fingerprint}"


def reply_from_form(action: object, content: Mapping[str, Any] | None, *, to: str = "") -> Reply | None:
    """Convert a submitted approval form to a `Reply` for the approval with fingerprint `to`.

    None if the user cancelled the form.
    """
    if action == "decline":
        return Reply(allow=False, fingerprint=to)
    if action != "accept":
        return None
    filled = content or {}
    remember = APPROVAL_DECISIONS.get(str(filled.get("decision", "")))
    message = str(filled.get("message") or "")
    if remember is None:
        return Reply(allow=False, message=message, fingerprint=to)
    return Reply(allow=True, remember=remember, fingerprint=to)


def can_elicit(capabilities: Any) -> bool:
    """Whether the client supports elicitation by form, which is the default if it names no mode."""
    asked = getattr(capabilities, "elicitation", None)
    if asked is None:
        return False
    return getattr(asked, "form", None) is not None or getattr(asked, "url", None) is None


def pending_call_text(approval: Approval) -> str:
    """The message to the model when a call needs approval and the client can't show a form."""
    return (
        f"Needs the user's approval: {approval.title}. Nothing was changed. They can run "
        f"`handtools approve {approval.call_id}` or `handtools deny {approval.call_id}`. "
        "Continue with other work, or tell them."
    )
