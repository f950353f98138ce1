"""What the server asks of a client: an approval as a form (elicitation), and the client's own model (sampling).

ADR 71.
"""

import warnings
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from handtools.core.approval import Approval, Remember, Reply
from handtools.core.errors import WrongKind
from handtools.text.truncation import clip

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

SAMPLING_TOKENS = 32_000
_current_request: ContextVar["ServerRequestContext[Any, Any] | None"] = ContextVar("request", default=None)
"""Whose call this is: a desk may serve several clients, each with its own model."""


@contextmanager
def sampling_from(ctx: "ServerRequestContext[Any, Any]") -> Iterator[None]:
    """Calls made within this ask the client of this request."""
    before = _current_request.set(ctx)
    try:
        yield
    finally:
        _current_request.reset(before)


async def sample_model(prompt: str) -> AsyncIterator[str]:
    """The answer of the client's model; the protocol brings it in one piece."""
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
            [message], max_tokens=SAMPLING_TOKENS, related_request_id=ctx.request_id
        )
    try:
        said = await asking
    except MCPError as problem:
        raise WrongKind(f"The client's model gave no answer: {problem}.", hint="Use `edit`.") from problem
    if isinstance(said.content, TextContent):
        yield said.content.text


APPROVAL_KEY = "approval"
"""The name of our one question among the input requests of a result."""
QUESTION_LINES = 60
QUESTION_BYTES = 6_000
REMEMBERED_LINES = 12
DECISIONS: dict[str, Remember | None] = {
    "once": "once",
    "session": "session",
    "project": "project",
    "no": None,
}


def approval_question(approval: Approval) -> str:
    """What the person reads: what is wanted, why they are asked, what exactly it is, what a yes stands for."""
    shown = approval.excerpt(max_lines=QUESTION_LINES, max_bytes=QUESTION_BYTES)
    remembered = clip(
        approval.remembered, max_lines=REMEMBERED_LINES, max_bytes=QUESTION_BYTES, keep="both"
    ).text
    return (
        f"{approval.title}\n\nAsked: {approval.rule}\n\n{shown}\n\n"
        f"session or project would remember:\n{remembered}"
    )


def approval_form() -> dict[str, Any]:
    """The flat schema of an answer: clients can only draw plain fields."""
    return {
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Allow?",
                "description": "once, for this session, for this project, or no.",
                "enum": list(DECISIONS),
            },
            "message": {
                "type": "string",
                "title": "What to do instead",
                "description": "Told to the agent when the answer is no; may stay empty.",
            },
        },
        "required": ["decision"],
    }


def input_required(approval: Approval) -> dict[str, Any]:
    """The question as a result of the current protocol: the client asks, and calls again with the answer."""
    params = {"mode": "form", "message": approval_question(approval), "requestedSchema": approval_form()}
    return {
        "resultType": "input_required",
        "inputRequests": {APPROVAL_KEY: {"method": "elicitation/create", "params": params}},
        "requestState": request_state_of(approval),
    }


def request_state_of(approval: Approval) -> str:
    """The question, as a client carries it to its answer."""
    return f"{approval.call_id}.{approval.fingerprint}"


def reply_from_form(action: object, content: Mapping[str, Any] | None, *, to: str = "") -> Reply | None:
    """What the person said to the question of this fingerprint; None when they left it open."""
    if action == "decline":
        return Reply(allow=False, fingerprint=to)
    if action != "accept":
        return None
    filled = content or {}
    remember = DECISIONS.get(str(filled.get("decision", "")))
    message = str(filled.get("message") or "")
    if remember is None:
        return Reply(allow=False, message=message, fingerprint=to)
    return Reply(allow=True, remember=remember, fingerprint=to)


def can_elicit(capabilities: Any) -> bool:
    """Whether the client can show a form: one that names no kind of form at all means the plain one."""
    asked = getattr(capabilities, "elicitation", None)
    if asked is None:
        return False
    return getattr(asked, "form", None) is not None or getattr(asked, "url", None) is None


def pending_text(approval: Approval) -> str:
    """What the model is told when nobody could be asked."""
    return (
        f"Waiting for a person: {approval.title}. Nothing was changed. They can answer with "
        f"`handtools approve {approval.call_id}` or `handtools deny {approval.call_id}`; "
        "go on with something else, or tell them."
    )
