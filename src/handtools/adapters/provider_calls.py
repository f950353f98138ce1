"""Helpers for all adapters: argument parsing, calls with provider ids, approval requests and replies."""

import json
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any, TypeVar

from handtools.core.approval import Approval, Reply, approval_to_json
from handtools.core.call import Call, CancelToken, derived_call_id, new_call_id
from handtools.core.errors import InvalidInput
from handtools.core.result import Document, Image, Result, Text
from handtools.text.encoding import without_surrogates
from handtools.toolbox import Toolbox

Part = TypeVar("Part")
PROVIDER_ID_KEY = "provider_call_id"
CONVERSATION_KEY = "conversation"
"""Keys in a call's metadata: the provider's call id (or ours if it has none), and the conversation."""

MALFORMED_HINT = "Nothing was run. Send the call again with one complete JSON object."


def arguments_from_json(text: str | bytes) -> dict[str, Any]:
    """Parse the arguments of a call as a model wrote them; empty text means no arguments.

    Raises `InvalidInput` with a message for the model.
    """
    try:
        # Not strict: models write raw line breaks into strings, which are unambiguous.
        value = json.loads(text or "{}", strict=False)
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(
            f"The arguments are not a JSON object: {problem}.", hint=MALFORMED_HINT
        ) from problem
    if not isinstance(value, dict):
        raise InvalidInput("The arguments are JSON, but not a JSON object.", hint=MALFORMED_HINT)
    return value


def build_provider_call(
    tool: str, args: Mapping[str, Any], provider_id: str, conversation: str = "", turn: str = ""
) -> Call:
    """Build the call that a model requested; repeating it with the same provider id gives the same call id.

    Without a provider id, every call gets a new id.
    """
    known = derived_call_id(conversation, provider_id, tool, dict(args)) if provider_id else new_call_id()
    return Call(
        tool=tool,
        args=args,
        id=known,
        session=conversation or "default",
        turn=turn,
        metadata={PROVIDER_ID_KEY: provider_id or known, CONVERSATION_KEY: conversation},
    )


def content_parts(
    result: Result[Any],
    text: Callable[[str], Part],
    image: Callable[[Image], Part],
    document: Callable[[Document], Part],
) -> list[Part]:
    """Convert the content of a result to an SDK's types, with one function per kind of content."""
    found = []
    for block in result.safe_content:
        if isinstance(block, Text):
            found.append(text(block.text))
        else:
            found.append(image(block) if isinstance(block, Image) else document(block))
    return found


def question_to_json(approval: Approval) -> dict[str, Any]:
    """Convert an approval request to JSON values that any encoder accepts, for an SDK to store."""
    value = approval_to_json(approval)
    return {key: without_surrogates(item) if isinstance(item, str) else item for key, item in value.items()}


def reply_from_json(value: Any) -> Reply:
    """Build a reply from true, false or an object with the fields of `Reply`; any other value denies."""
    if not isinstance(value, Mapping):
        return Reply(value is True)
    remember: Any = value.get("remember")
    return Reply(
        value.get("allow") is True,
        remember if remember in {"session", "project"} else "once",
        str(value.get("message") or ""),
    )


async def call_and_ask_approval(
    toolbox: Toolbox,
    call: Call,
    ask: Callable[[Approval], Awaitable[Any]],
    cancel: CancelToken | None = None,
) -> Result[Any]:
    """Run a call and pass its approval requests to `ask`; for SDKs that rerun an interrupted tool.

    `ask` returns a value that `reply_from_json` accepts; its `args` are arguments that the user edited.
    """
    result = await toolbox.call(call, cancel=cancel)
    while (asked := result.request) is not None:
        answered, reply = await call_and_reply_for_answer(toolbox, call, await ask(asked))
        if answered is call:
            reply = replace(reply, fingerprint=asked.fingerprint)
        call = answered
        result = await toolbox.call(call, reply=reply, cancel=cancel)
    return result


async def call_with_answer(toolbox: Toolbox, call: Call, answer: Any) -> Result[Any]:
    """Run a call, with the user's answer if it is not None; for SDKs that repeat a call with the answer."""
    if answer is None:
        return await toolbox.call(call)
    call, reply = await call_and_reply_for_answer(toolbox, call, answer)
    return await toolbox.call(call, reply=reply)


async def call_and_reply_for_answer(toolbox: Toolbox, call: Call, answer: Any) -> tuple[Call, Reply]:
    """Return the call and the reply that an answer to its approval request means.

    If the user approved edited arguments, this is another call, whose first approval request the reply
    answers; the request of the original call is withdrawn.
    """
    reply = reply_from_json(answer)
    edited = answer.get("args") if isinstance(answer, Mapping) else None
    if not reply.allow or edited is None or dict(edited) == dict(call.args):
        return call, reply
    provider_id, conversation = call.metadata[PROVIDER_ID_KEY], call.metadata[CONVERSATION_KEY]
    other = build_provider_call(call.tool, edited, provider_id, conversation, call.turn)
    await withdraw_questions(toolbox, conversation, {provider_id}, but=other.id)
    return other, reply


async def withdraw_questions(
    toolbox: Toolbox, conversation: str, provider_ids: Collection[str], *, but: str = ""
) -> None:
    """Withdraw a conversation's pending approval requests by provider id, except the one of call `but`."""
    for approval in await toolbox.waiting():
        known = approval.metadata
        if (
            known.get(CONVERSATION_KEY) == conversation
            and known.get(PROVIDER_ID_KEY) in provider_ids
            and approval.call_id != but
        ):
            await toolbox.withdraw(approval.call_id)
