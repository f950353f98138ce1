"""Pydantic AI: a toolset, `Agent(model, toolsets=[Toolset(coding("."))])`.

A call that needs approval raises `ApprovalRequired`, so the run ends with `DeferredToolRequests` if that is
one of the agent's output types. The answer in `DeferredToolResults` runs the call, even after the toolbox
was closed and opened again.
"""

from typing import Any

from pydantic_ai import ApprovalRequired, BinaryContent, ModelRetry, RunContext, ToolDefinition, ToolReturn
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ToolReturnPart
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool

from handtools.adapters.provider_calls import (
    arguments_from_json,
    build_provider_call,
    content_parts,
    question_to_json,
    reply_from_json,
    withdraw_questions,
)
from handtools.core.approval import Reply
from handtools.core.errors import InvalidInput
from handtools.core.result import Document, Image
from handtools.toolbox import Toolbox
from handtools.toolbox import ToolDefinition as OurDefinition

MAX_RETRIES = 3


class AnyArguments:
    """Validator that accepts any object; the toolbox validates arguments and reports all problems."""

    def validate_json(self, text: str | bytes | bytearray, **_: Any) -> dict[str, Any]:
        """Parse arguments; if they are not a JSON object, raises `ModelRetry` with a message to the model."""
        try:
            return arguments_from_json(bytes(text) if isinstance(text, bytearray) else text)
        except InvalidInput as problem:
            raise ModelRetry(str(problem)) from problem

    def validate_python(self, args: Any, **_: Any) -> dict[str, Any]:
        return dict(args)


class Toolset(AbstractToolset[Any]):
    """The tools of a toolbox as a Pydantic AI toolset; `id` must be unique among an agent's toolsets."""

    def __init__(self, toolbox: Toolbox, *, id: str = "handtools") -> None:  # noqa: A002 - the SDK's name
        self.toolbox = toolbox
        self._id = id

    @property
    def id(self) -> str:
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """Return the offered tools, after withdrawing approval requests that the user denied."""
        await self._withdraw_denied_requests(ctx)
        return {one.name: self._toolset_tool(one) for one in self.toolbox.definitions()}

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], _tool: ToolsetTool[Any]
    ) -> Any:
        """Run a tool; raises `ApprovalRequired` if it needs approval, and `ToolFailed` for an error."""
        conversation = ctx.conversation_id or ""
        call = build_provider_call(name, tool_args, ctx.tool_call_id or "", conversation, ctx.run_id or "")
        reply = _approving_reply(ctx)
        if reply is not None:
            # If the user edited the arguments, the original call is still pending under another id.
            await withdraw_questions(self.toolbox, conversation, {ctx.tool_call_id or ""}, but=call.id)
        result = await self.toolbox.call(call, reply=reply)
        if result.request is not None:
            raise ApprovalRequired(metadata=question_to_json(result.request))
        said = content_parts(result, str, _binary_content, _binary_content)
        if not result.ok:
            raise ToolFailed("\n".join(part for part in said if isinstance(part, str)))
        return ToolReturn(said[0] if len(said) == 1 else said, metadata={"call_id": call.id})

    def _toolset_tool(self, one: OurDefinition) -> ToolsetTool[Any]:
        definition = ToolDefinition(
            name=one.name,
            description=one.description,
            parameters_json_schema=dict(one.input_schema),
            metadata={"reads_only": one.reads_only},
        )
        return ToolsetTool(
            toolset=self, tool_def=definition, max_retries=MAX_RETRIES, args_validator=AnyArguments()
        )

    async def _withdraw_denied_requests(self, ctx: RunContext[Any]) -> None:
        """Withdraw requests that the user denied. The SDK reports a denial only to the model.

        So a call that has a result in the message history is no longer waiting.
        """
        settled = {
            part.tool_call_id
            for message in ctx.messages or ()
            for part in message.parts
            if isinstance(part, ToolReturnPart)
        }
        if settled:
            await withdraw_questions(self.toolbox, ctx.conversation_id or "", settled)


def _approving_reply(ctx: RunContext[Any]) -> Reply | None:
    """Return the user's approval, or None; the metadata of the deferred results may contain `remember`."""
    if not ctx.tool_call_approved:
        return None
    return reply_from_json({"allow": True, **(ctx.tool_call_metadata or {})})


def _binary_content(block: Image | Document) -> BinaryContent:
    return BinaryContent(block.data, media_type=block.media_type)
