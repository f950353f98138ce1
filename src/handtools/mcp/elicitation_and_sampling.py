"""Requests from the MCP server to its client: approval forms (elicitation) and model prompts (sampling)."""

from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from handtools.core.approval import Approval, RememberScope, Reply
from handtools.core.errors import WrongKind
from handtools.mcp.tool_request import ClientRefusal, ToolRequest
from handtools.text.truncation import clip_text

MAX_SAMPLING_TOKENS = 32_000
_current_request: ContextVar[ToolRequest | None] = ContextVar("request", default=None)
"""The MCP request whose tool call runs in this context. `sample_model` sends its prompts to that client."""


@contextmanager
def set_sampling_request(request: ToolRequest) -> Iterator[None]:
    """Within the block, make `sample_model` send its prompts to the client that made this MCP request."""
    before = _current_request.set(request)
    try:
        yield
    finally:
        _current_request.reset(before)


async def sample_model(prompt: str) -> AsyncIterator[str]:
    """Send a prompt to the client's model by MCP sampling and yield its reply in one piece.

    Raises `WrongKind` if the client does not support sampling or refuses.
    """
    request = _current_request.get()
    if request is None or request.send_to_client is None or "sampling" not in request.capabilities:
        raise WrongKind("This client does not support MCP sampling.", hint="Use `edit`.")
    message = {"role": "user", "content": {"type": "text", "text": prompt}}
    params = {"messages": [message], "maxTokens": MAX_SAMPLING_TOKENS}
    try:
        said = await request.send_to_client("sampling/createMessage", params)
    except ClientRefusal as problem:
        raise WrongKind(f"The client's model did not reply: {problem}.", hint="Use `edit`.") from problem
    match said.get("content"):
        case {"type": "text", "text": str() as text}:
            yield text


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


def elicitation_params(approval: Approval) -> dict[str, Any]:
    """The parameters of an `elicitation/create` request for an approval."""
    return {"mode": "form", "message": approval_question(approval), "requestedSchema": approval_form()}


async def elicit_reply(request: ToolRequest, approval: Approval) -> Reply | None:
    """Request approval by elicitation during the call, as older protocols do.

    None if the client cancels or fails. Nothing is locked while waiting.
    """
    assert request.send_to_client is not None
    try:
        form = await request.send_to_client("elicitation/create", elicitation_params(approval))
    except ClientRefusal:
        return None
    return reply_from_form(form, to=approval.fingerprint)


def input_required_result(approval: Approval) -> dict[str, Any]:
    """An approval as an MCP result of type `input_required`.

    The client shows the form and repeats the call with the user's reply.
    """
    return {
        "resultType": "input_required",
        "inputRequests": {
            APPROVAL_KEY: {"method": "elicitation/create", "params": elicitation_params(approval)}
        },
        "requestState": build_request_state(approval),
    }


def build_request_state(approval: Approval) -> str:
    """The `requestState` that ties a client's reply to an approval: call id and fingerprint."""
    return f"{approval.call_id}.{approval.fingerprint}"


def reply_from_form(form: Mapping[str, Any], *, to: str = "") -> Reply | None:
    """Convert a submitted approval form to a `Reply` for the approval with fingerprint `to`.

    None if the user cancelled the form.
    """
    action, content = form.get("action"), form.get("content")
    if action == "decline":
        return Reply(allow=False, fingerprint=to)
    if action != "accept":
        return None
    filled = content if isinstance(content, dict) else {}
    remember = APPROVAL_DECISIONS.get(str(filled.get("decision", "")))
    message = str(filled.get("message") or "")
    if remember is None:
        return Reply(allow=False, message=message, fingerprint=to)
    return Reply(allow=True, remember=remember, fingerprint=to)


def can_elicit(capabilities: Mapping[str, Any]) -> bool:
    """Whether the client supports elicitation by form, which is the default if it names no mode."""
    modes = capabilities.get("elicitation")
    return modes is not None and ("form" in modes or "url" not in modes)


def pending_call_text(approval: Approval) -> str:
    """The message to the model when a call needs approval and the client can't show a form."""
    return (
        f"Needs the user's approval: {approval.title}. Nothing was changed. They can run "
        f"`handtools approve {approval.call_id}` or `handtools deny {approval.call_id}`. "
        "Continue with other work, or tell them."
    )
