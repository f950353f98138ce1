"""Strands Agents: tools, `Agent(model=model, tools=tools(coding(".")), session_manager=…)`.

A call that needs approval interrupts the agent with the approval request as JSON, so the run ends with the
stop reason `interrupt`. An `interruptResponse` can be true, false or `{"allow": true, "remember":
"session", "message": "…", "args": {…}}`, even in a new process if there is a session manager.
"""

import asyncio
import re
import threading
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Any

from strands import ToolContext
from strands.types.tools import AgentTool, ToolGenerator, ToolResult, ToolResultContent, ToolSpec, ToolUse

from handtools.adapters.provider_calls import (
    build_provider_call,
    call_and_ask_approval,
    content_parts,
    question_to_json,
)
from handtools.core.approval import Approval
from handtools.core.call import CancelToken
from handtools.core.result import Document, Image
from handtools.toolbox import Toolbox, ToolDefinition

CANCEL_POLL = 0.05
"""Seconds between polls of the agent's cancel signal, a `threading.Event` that can't be awaited."""
NOT_IN_NAMES = re.compile(r"[^A-Za-z0-9 ()\[\]-]+")
"""Characters that Bedrock refuses in document names."""


def tools(toolbox: Toolbox) -> list[AgentTool]:
    """Return the offered tools of a toolbox."""
    return [StrandsTool(toolbox, one) for one in toolbox.definitions()]


class StrandsTool(AgentTool):
    """A tool of a toolbox as a Strands tool."""

    def __init__(self, toolbox: Toolbox, definition: ToolDefinition) -> None:
        super().__init__()
        self._toolbox = toolbox
        self._spec: ToolSpec = {
            "name": definition.name,
            "description": definition.description,
            "inputSchema": {"json": dict(definition.input_schema)},
        }

    @property
    def tool_name(self) -> str:
        return str(self._spec["name"])

    @property
    def tool_spec(self) -> ToolSpec:
        return self._spec

    @property
    def tool_type(self) -> str:
        return "handtools"

    async def stream(
        self, tool_use: ToolUse, invocation_state: dict[str, Any], **known: Any
    ) -> ToolGenerator:
        """Run the tool and yield its result; a call that needs approval interrupts the agent."""
        yield await self._run_tool(
            known.get("_tool_context") or _build_tool_context(tool_use, invocation_state)
        )

    async def _run_tool(self, context: ToolContext) -> ToolResult:
        use, agent = context.tool_use, context.agent
        args = use["input"] if isinstance(use["input"], Mapping) else {}
        # The models of two agents in one session may use the same call ids.
        conversation = f"{getattr(agent, 'session_id', '')}/{getattr(agent, 'agent_id', '')}"
        call = build_provider_call(self.tool_name, args, str(use["toolUseId"]), conversation)

        async def ask(approval: Approval) -> Any:
            return context.interrupt(approval.fingerprint, reason=question_to_json(approval))

        cancel = CancelToken()
        cancel_watcher = asyncio.create_task(_cancel_when_signalled(context.cancel_signal, cancel))
        try:
            result = await call_and_ask_approval(self._toolbox, call, ask, cancel)
        finally:
            cancel_watcher.cancel()
        return {
            "toolUseId": str(use["toolUseId"]),
            "status": "success" if result.ok else "error",
            "content": content_parts(result, _text_block, _image_block, _document_block),
        }


def _build_tool_context(tool_use: ToolUse, invocation_state: dict[str, Any]) -> ToolContext:
    """Build the tool context, which the SDK passes only to decorated functions and background tasks."""
    agent = invocation_state.get("agent")
    return ToolContext(
        tool_use=tool_use,
        agent=agent,
        invocation_state=invocation_state,
        cancel_signal=getattr(agent, "cancel_signal", None) or threading.Event(),
    )


async def _cancel_when_signalled(signal: threading.Event, cancel: CancelToken) -> None:
    while not signal.is_set():  # noqa: ASYNC110 - a threading event can't be awaited
        await asyncio.sleep(CANCEL_POLL)
    cancel.cancel()


def _text_block(text: str) -> ToolResultContent:
    return {"text": text}


def _image_block(image: Image) -> ToolResultContent:
    return {"image": {"format": image.media_type.removeprefix("image/"), "source": {"bytes": image.data}}}


def _document_block(document: Document) -> ToolResultContent:
    name = PurePosixPath(document.name)
    return {
        "document": {
            "format": name.suffix.removeprefix(".").lower() or "txt",
            "name": NOT_IN_NAMES.sub(" ", name.stem).strip() or "document",
            "source": {"bytes": document.data},
        }
    }
