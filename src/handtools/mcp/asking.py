"""Asking: an approval as the form that a client shows, and what the person put into it."""

from collections.abc import Mapping
from typing import Any

from handtools.core.approval import Approval, Remember, Reply
from handtools.text.clipping import clip

KEY = "approval"
"""The name of our one question among the input requests of a result."""
SHOWN_LINES = 60
SHOWN_BYTES = 6_000
KEPT_LINES = 12
CHOICES: dict[str, Remember | None] = {
    "once": "once",
    "session": "session",
    "project": "project",
    "no": None,
}


def question(approval: Approval) -> str:
    """What the person reads: what is wanted, why they are asked, what exactly it is, what a yes stands for."""
    shown = approval.excerpt(max_lines=SHOWN_LINES, max_bytes=SHOWN_BYTES)
    remembered = clip(approval.remembered, max_lines=KEPT_LINES, max_bytes=SHOWN_BYTES, keep="both").text
    return (
        f"{approval.title}\n\nAsked: {approval.rule}\n\n{shown}\n\n"
        f"session or project would remember:\n{remembered}"
    )


def form() -> dict[str, Any]:
    """The flat schema of an answer: clients can only draw plain fields."""
    return {
        "type": "object",
        "properties": {
            "decision": {
                "type": "string",
                "title": "Allow?",
                "description": "once, for this session, for this project, or no.",
                "enum": list(CHOICES),
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
    params = {"mode": "form", "message": question(approval), "requestedSchema": form()}
    return {
        "resultType": "input_required",
        "inputRequests": {KEY: {"method": "elicitation/create", "params": params}},
        "requestState": state_of(approval),
    }


def state_of(approval: Approval) -> str:
    """The question, as a client carries it to its answer."""
    return f"{approval.call_id}.{approval.fingerprint}"


def reply(action: object, content: Mapping[str, Any] | None, *, to: str = "") -> Reply | None:
    """What the person said to the question of this fingerprint; None when they left it open."""
    if action == "decline":
        return Reply(allow=False, fingerprint=to)
    if action != "accept":
        return None
    filled = content or {}
    remember = CHOICES.get(str(filled.get("decision", "")))
    message = str(filled.get("message") or "")
    if remember is None:
        return Reply(allow=False, message=message, fingerprint=to)
    return Reply(allow=True, remember=remember, fingerprint=to)


def can_ask(capabilities: Any) -> bool:
    """Whether the client can show a form: one that names no kind of form at all means the plain one."""
    asked = getattr(capabilities, "elicitation", None)
    if asked is None:
        return False
    return getattr(asked, "form", None) is not None or getattr(asked, "url", None) is None


def still_waiting(approval: Approval) -> str:
    """What the model is told when nobody could be asked."""
    return (
        f"Waiting for a person: {approval.title}. Nothing was changed. They can answer with "
        f"`handtools approve {approval.call_id}` or `handtools deny {approval.call_id}`; "
        "go on with something else, or tell them."
    )
