"""Requests of the MCP server to its client: approval forms (elicitation) and prompts to its model (sampling).

ADR 71.
"""

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
"""The MCP request whose tool call runs in this context; its client's model is asked by `sample_model`."""


@contextmanager
def set_sampling_request(ctx: "ServerRequestContext[Any, Any]") -> Iterator[None]:
    """Within this block, `sample_model` sends its prompts to the client that made this MCP request."""
    before = _current_request.set(ctx)
    try:
        yield
    finally:
        _current_request.reset(before)


async def sample_model(prompt: str) -> AsyncIterator[str]:
    """Send a prompt to the client's model by MCP sampling and yield its answer, in one piece.

    Raises `WrongKind` when the client offers no sampling or refuses.
    """
    ctx = _current_request.get()
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
            [message], max_tokens=MAX_SAMPLING_TOKENS, related_request_id=ctx.request_id
        )
    try:
        said = await asking
    except MCPError as problem:
        raise WrongKind(f"The client's model gave no answer: {problem}.", hint="Use `edit`.") from problem
    if isinstance(said.content, TextContent):
        yield said.content.text


APPROVAL_KEY = "approval"
"""Key of the approval question in the `inputRequests` of an MCP result."""
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
    """The text of an approval form: what the call wants, the rule that asks, a preview, and what is remembered."""
    shown = approval.excerpt(max_lines=APPROVAL_QUESTION_LINES, max_bytes=APPROVAL_QUESTION_BYTES)
    remembered = clip_text(
        approval.remembered,
        max_lines=REMEMBERED_APPROVAL_LINES,
        max_bytes=APPROVAL_QUESTION_BYTES,
        keep="both",
    ).text
    return (
        f"{approval.title}\n\nAsked: {approval.rule}\n\n{shown}\n\n"
        f"session or project would remember:\n{remembered}"
    )


def approval_form() -> dict[str, Any]:
    """The JSON schema of an approval form, with a decision and a message; flat, as MCP elicitation demands."""
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
                "description": "Told to the agent when the answer is no; may stay empty.",
            },
        },
        "required": ["decision"],
    }


def input_required_result(approval: Approval) -> dict[str, Any]:
    """An approval as an MCP result of type `input_required_result`.

    The client shows the form and repeats the call with the answer.
    """
    params = {"mode": "form", "message": approval_question(approval), "requestedSchema": approval_form()}
    return {
        "resultType": "input_required",
        "inputRequests": {APPROVAL_KEY: {"method": "elicitation/create", "params": params}},
        "requestState": build_request_state(approval),
    }


def build_request_state(approval: Approval) -> str:
    """The `requestState` that ties a client's answer to an approval: call id and fingerprint."""
    return f"{approval.call_id}.{approval.fingerprint}"


def reply_from_form(action: object, content: Mapping[str, Any] | None, *, to: str = "") -> Reply | None:
    """Turn the answer to an approval form into a `Reply`, for the approval with fingerprint `to`.

    None when the person cancelled the form.
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
    """Whether the client's capabilities include form elicitation; naming neither form nor URL counts as form."""
    asked = getattr(capabilities, "elicitation", None)
    if asked is None:
        return False
    return getattr(asked, "form", None) is not None or getattr(asked, "url", None) is None


def pending_call_text(approval: Approval) -> str:
    """The message to the model when a call waits for approval and nobody could be asked."""
    return (
        f"Waiting for a person: {approval.title}. Nothing was changed. They can answer with "
        f"`handtools approve {approval.call_id}` or `handtools deny {approval.call_id}`; "
        "go on with something else, or tell them."
    )
