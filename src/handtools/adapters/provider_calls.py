"""What the adapters share: arguments as models write them, calls with a provider's ids, questions and replies.

ADR 190, 214.
"""

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
"""Keys in the metadata of a call: the provider's own id of it, and the conversation to which it belongs."""

MALFORMED_HINT = "Nothing was run. Send the call again with one whole JSON object."


def arguments_from_json(text: str | bytes) -> dict[str, Any]:
    """Parse the arguments of a call from the text that a model wrote; empty text stands for no arguments.

    Raises `InvalidInput`, whose text is for the model to read.
    """
    try:
        # Not strict: models write line breaks into strings as they are, and those can't mean anything else.
        value = json.loads(text or "{}", strict=False)
    except (ValueError, RecursionError) as problem:
        raise InvalidInput(
            f"The arguments are not a JSON object: {problem}.", hint=MALFORMED_HINT
        ) from problem
    if not isinstance(value, dict):
        raise InvalidInput("The arguments are JSON, but not a JSON object.", hint=MALFORMED_HINT)
    return value


def provider_call(
    tool: str, args: Mapping[str, Any], provider_id: str, conversation: str = "", turn: str = ""
) -> Call:
    """Make the call of a tool that a model asked for; the same one again is the same call.

    Without a provider's id each is a new one.
    """
    known = derived_call_id(conversation, provider_id, tool, dict(args)) if provider_id else new_call_id()
    return Call(
        tool=tool,
        args=args,
        id=known,
        session=conversation or "default",
        turn=turn,
        metadata={PROVIDER_ID_KEY: provider_id, CONVERSATION_KEY: conversation},
    )


def content_parts(
    result: Result[Any],
    text: Callable[[str], Part],
    image: Callable[[Image], Part],
    document: Callable[[Document], Part],
) -> list[Part]:
    """Convert the content of a result with an SDK's own constructors."""
    found = []
    for block in result.safe_content:
        if isinstance(block, Text):
            found.append(text(block.text))
        else:
            found.append(image(block) if isinstance(block, Image) else document(block))
    return found


def question_to_json(approval: Approval) -> dict[str, Any]:
    """Convert an approval request to JSON values that any encoder takes, for an SDK's stored pause."""
    value = approval_to_json(approval)
    return {key: without_surrogates(item) if isinstance(item, str) else item for key, item in value.items()}


def reply_from_json(value: Any) -> Reply:
    """Build a reply from true, false or an object with the fields of `Reply`; any other value is a no."""
    if not isinstance(value, Mapping):
        return Reply(value is True)
    remember: Any = value.get("remember")
    return Reply(
        value.get("allow") is True,
        remember if remember in {"session", "project"} else "once",
        str(value.get("message") or ""),
    )


async def call_with_questions(
    toolbox: Toolbox,
    call: Call,
    ask: Callable[[Approval], Awaitable[Any]],
    cancel: CancelToken | None = None,
) -> Result[Any]:
    """Run a call and put each of its questions to `ask`; for SDKs that run a tool again from its start.

    An answer is what `reply_from_json` takes; `args` in it are arguments that the person edited.
    """
    result = await toolbox.call(call, cancel=cancel)
    while (asked := result.request) is not None:
        answer = await ask(asked)
        reply = replace(reply_from_json(answer), fingerprint=asked.fingerprint)
        edited = answer.get("args") if isinstance(answer, Mapping) else None
        if reply.allow and edited is not None and dict(edited) != dict(call.args):
            await toolbox.withdraw(call.id)
            other = provider_call(call.tool, edited, call.id, call.session)
            call = replace(other, metadata=call.metadata)
            # The edited call asks a question of its own, to which the answer was given with the arguments.
            reply = replace(reply, fingerprint="")
        result = await toolbox.call(call, reply=reply, cancel=cancel)
    return result


async def withdraw_questions(
    toolbox: Toolbox, conversation: str, provider_ids: Collection[str], *, but: str = ""
) -> None:
    """Withdraw what calls of a conversation still ask, by the provider's ids; `but` is a call id to leave."""
    for approval in await toolbox.waiting():
        known = approval.metadata
        if (
            known.get(CONVERSATION_KEY) == conversation
            and known.get(PROVIDER_ID_KEY) in provider_ids
            and approval.call_id != but
        ):
            await toolbox.withdraw(approval.call_id)
