"""Google Agent Development Kit: a toolset, `LlmAgent(name="…", model=model, tools=[Toolset(coding("."))])`.

A call that needs approval requests a confirmation with the approval request as its payload. `confirmed` in
the answer approves or denies it, even in another process if the session is stored. The answer's `payload`
may be `{"remember": "session", "message": "…", "args": {…}}`.
"""

from collections.abc import Mapping
from typing import Any

from google.adk.agents.readonly_context import ReadonlyContext
from google.adk.tools.base_tool import BaseTool
from google.adk.tools.base_toolset import BaseToolset
from google.adk.tools.tool_confirmation import ToolConfirmation
from google.adk.tools.tool_context import ToolContext
from google.genai import types

from handtools.adapters.provider_calls import (
    build_provider_call,
    call_with_answer,
    content_parts,
    question_to_json,
)
from handtools.core.result import Document, Image
from handtools.toolbox import Toolbox, ToolDefinition


class Toolset(BaseToolset):
    """The tools of a toolbox as an ADK toolset; the caller closes the toolbox."""

    def __init__(self, toolbox: Toolbox) -> None:
        super().__init__()
        self._tools = [ToolboxTool(toolbox, one) for one in toolbox.definitions()]

    async def get_tools(self, readonly_context: ReadonlyContext | None = None) -> list[BaseTool]:
        del readonly_context
        return list(self._tools)


class ToolboxTool(BaseTool):
    """A tool of a toolbox as an ADK tool."""

    def __init__(self, toolbox: Toolbox, definition: ToolDefinition) -> None:
        super().__init__(name=definition.name, description=definition.description)
        self._toolbox = toolbox
        self._schema = dict(definition.input_schema)

    def _get_declaration(self) -> types.FunctionDeclaration:
        return types.FunctionDeclaration(
            name=self.name, description=self.description, parameters_json_schema=self._schema
        )

    async def run_async(self, *, args: dict[str, Any], tool_context: ToolContext) -> dict[str, Any]:
        """Run the tool; if it needs approval, request a confirmation, which ends the run."""
        answer = tool_context.tool_confirmation
        call = build_provider_call(
            self.name,
            args,
            tool_context.function_call_id or "",
            tool_context.session.id,
            tool_context.invocation_id,
        )
        result = await call_with_answer(self._toolbox, call, _answer_of_confirmation(answer))
        # The SDK ignores a second request for one call; the model then reads that the call is waiting.
        if result.request is not None and answer is None:
            question = question_to_json(result.request)
            tool_context.request_confirmation(hint=question["title"], payload=question)
            # The run ends here; don't let the model summarise a call that has not run.
            tool_context.actions.skip_summarization = True
        parts = content_parts(result, str, _media_part, _media_part)
        text = "\n".join(part for part in parts if isinstance(part, str))
        media = [part for part in parts if not isinstance(part, str)]
        return {"result" if result.ok else "error": text} | ({"media": media} if media else {})


def _answer_of_confirmation(answer: ToolConfirmation | None) -> dict[str, Any] | None:
    if answer is None:
        return None
    payload = answer.payload if isinstance(answer.payload, Mapping) else {}
    return {**payload, "allow": answer.confirmed}


def _media_part(block: Image | Document) -> Any:
    return types.Part.from_bytes(data=block.data, mime_type=block.media_type)
