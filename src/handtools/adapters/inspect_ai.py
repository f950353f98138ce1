"""Inspect: tools, `react(tools=tools(coding("."), approver=human_approver()))`.

A call that needs approval is sent to the approver, with our preview as its view, and waits there, because
Inspect can't store a paused call. Without an approver, or if it escalates, the model reads that the call
needs approval.
"""

from contextvars import Context
from typing import Any

from inspect_ai._util.exception import TerminateSampleError
from inspect_ai.approval import Approver
from inspect_ai.event import ToolEvent
from inspect_ai.log import transcript
from inspect_ai.model import ContentDocument, ContentImage, ContentText
from inspect_ai.tool import (
    ToolCall,
    ToolCallContent,
    ToolCallView,
    ToolDef,
    ToolParams,
    ToolResult,
)
from inspect_ai.tool import (
    ToolError as SdkToolError,
)
from inspect_ai.util import store

from handtools.adapters.provider_calls import build_provider_call, call_and_ask_approval, content_parts
from handtools.core.approval import Approval
from handtools.core.call import Call, new_call_id
from handtools.core.result import Document, Image
from handtools.text.encoding import without_surrogates
from handtools.toolbox import Toolbox, ToolDefinition

CONVERSATION = "handtools:conversation"


def tools(toolbox: Toolbox, *, approver: Approver | None = None, conversation: str = "") -> list[ToolDef]:
    """Return the offered tools of a toolbox.

    Each sample is a separate conversation; outside samples, `conversation` names it.
    """
    return [_tool_definition(toolbox, one, approver, conversation) for one in toolbox.definitions()]


def _tool_definition(
    toolbox: Toolbox, definition: ToolDefinition, approver: Approver | None, conversation: str
) -> ToolDef:
    async def run(**kwargs: Any) -> ToolResult:
        call = _call_with_transcript_id(definition.name, kwargs, conversation)

        async def ask(approval: Approval) -> Any:
            return await _answer_of_approver(approver, approval, call)

        result = await call_and_ask_approval(toolbox, call, ask)
        if not result.ok:
            raise SdkToolError(without_surrogates(result.text))
        return content_parts(result, _text_content, _image_content, _document_content)

    return ToolDef(
        run,
        name=definition.name,
        description=definition.description,
        parameters=_tool_parameters(definition),
        # Only read-only tools run in parallel; others run in the order of the model's calls.
        parallel=definition.reads_only,
        # The toolbox limits its output and stores the full text.
        max_output=0,
    )


def _tool_parameters(definition: ToolDefinition) -> ToolParams:
    """Return a tool's parameters; those without a description get their name, as Inspect requires one."""
    parameters = ToolParams.model_validate(dict(definition.input_schema))
    for name, parameter in parameters.properties.items():
        parameter.description = parameter.description or name.replace("_", " ")
    return parameters


def _call_with_transcript_id(tool: str, args: dict[str, Any], conversation: str) -> Call:
    """Build the call, with the id from Inspect's transcript.

    The newest tool event belongs to this call, because nothing was awaited since Inspect wrote the event.
    """
    events = reversed(transcript().history.resident_events)
    event = next((one for one in events if isinstance(one, ToolEvent)), None)
    known = event.id if event is not None and event.pending and event.function == tool else ""
    conversation = conversation or _conversation_of_sample()
    return build_provider_call(tool, args, known if conversation else "", conversation)


def _conversation_of_sample() -> str:
    """Return the name of the sample's conversation, or empty outside samples.

    The name is in the sample's store, so that checkpoints include it.
    """
    kept = store()
    # Outside samples, `store` returns the default store, as it does in an empty context.
    if kept is Context().run(store):
        return ""
    if not kept.get(CONVERSATION):
        kept.set(CONVERSATION, new_call_id())
    return str(kept.get(CONVERSATION))


async def _answer_of_approver(approver: Approver | None, approval: Approval, call: Call) -> dict[str, Any]:
    """Ask the approver; raises `SdkToolError` with a message for the model if it does not decide."""
    title, preview = without_surrogates(approval.title), without_surrogates(approval.preview)
    if approver is not None:
        asked = ToolCall(id=approval.call_id, function=call.tool, arguments=dict(call.args))
        fence = "`" * 10
        shown = ToolCallContent(title=title, format="markdown", content=f"{fence}diff\n{preview}\n{fence}")
        given = await approver(title, asked, ToolCallView(call=shown), [])
        if given.decision == "terminate":
            raise TerminateSampleError(given.explanation or "The user ended the sample.")
        if given.decision != "escalate":
            edited = given.modified.arguments if given.decision == "modify" and given.modified else None
            allow = given.decision in {"approve", "modify"}
            return {"allow": allow, "message": given.explanation or "", "args": edited}
    raise SdkToolError(
        f"Needs the user's approval: {title}. Continue with other work until it is answered."
    )


def _text_content(text: str) -> ContentText:
    return ContentText(text=text)


def _image_content(image: Image) -> ContentImage:
    return ContentImage(image=f"data:{image.media_type};base64,{image.base64}")


def _document_content(document: Document) -> ContentDocument:
    return ContentDocument(
        document=f"data:{document.media_type};base64,{document.base64}",
        filename=document.name,
        mime_type=document.media_type,
    )
