"""LangChain and LangGraph: structured tools, `create_agent(model, tools(coding(".")), checkpointer=…)`.

A call that needs approval interrupts the graph with the approval request as JSON. `Command(resume=…)`
accepts true, false or `{"allow": true, "remember": "session", "message": "…", "args": {…}}`, even after the
toolbox was closed and opened again. `middleware=[MalformedCalls()]` lets a run continue after arguments
that are not JSON.
"""

from collections.abc import Mapping
from typing import Any

from langchain.agents.middleware import AgentMiddleware, hook_config
from langchain.tools import ToolRuntime
from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool

from handtools.adapters.langgraph_calls import reply_after_interrupt
from handtools.adapters.provider_calls import (
    MALFORMED_HINT,
    arguments_from_json,
    build_provider_call,
    call_and_ask_approval,
    content_parts,
)
from handtools.core.errors import InvalidInput
from handtools.core.result import Document, Image
from handtools.toolbox import Toolbox, ToolDefinition


def tools(toolbox: Toolbox) -> list[StructuredTool]:
    """Return the offered tools of a toolbox; they are async, for use with `ainvoke` and `astream`."""
    return [_structured_tool(toolbox, one) for one in toolbox.definitions()]


def _structured_tool(toolbox: Toolbox, definition: ToolDefinition) -> StructuredTool:
    async def run(runtime: ToolRuntime = None, **args: Any) -> Any:  # type: ignore[assignment]
        configured = (runtime.config if runtime else {}).get("configurable", {})
        provider_id = (runtime.tool_call_id if runtime else "") or ""
        call = build_provider_call(
            definition.name, args, provider_id, str(configured.get("thread_id") or "")
        )
        result = await call_and_ask_approval(toolbox, call, reply_after_interrupt)
        content = content_parts(result, _text_block, _image_block, _file_block)
        if not provider_id:
            return content
        return ToolMessage(
            content,
            tool_call_id=provider_id,
            name=definition.name,
            artifact={"call_id": call.id, "status": result.status},
            status="success" if result.ok else "error",
        )

    return StructuredTool(
        name=definition.name,
        description=definition.description,
        args_schema=dict(definition.input_schema),
        coroutine=run,
        metadata={"reads_only": definition.reads_only},
    )


class MalformedCalls(AgentMiddleware[Any, Any, Any]):
    """Middleware that returns an error if arguments are not JSON; without it, `create_agent` ends the run."""

    @hook_config(can_jump_to=["model"])  # type: ignore[untyped-decorator]
    def after_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Return an error for each malformed call; without any valid call, go straight back to the model."""
        del runtime
        spoken = state["messages"][-1]
        answers = [
            ToolMessage(
                _reason_call_is_malformed(one),
                tool_call_id=one["id"],
                name=one["name"] or "unknown",
                status="error",
            )
            for one in getattr(spoken, "invalid_tool_calls", ())
        ]
        if not answers:
            return None
        return {"messages": answers} | ({} if spoken.tool_calls else {"jump_to": "model"})


def _reason_call_is_malformed(call: Mapping[str, Any]) -> str:
    try:
        arguments_from_json(call["args"] or "")
    except InvalidInput as problem:
        return str(problem)
    return f"{call['error']} {MALFORMED_HINT}"


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image_block(image: Image) -> dict[str, Any]:
    return {"type": "image", "base64": image.base64, "mime_type": image.media_type}


def _file_block(document: Document) -> dict[str, Any]:
    return {
        "type": "file",
        "base64": document.base64,
        "mime_type": document.media_type,
        "extras": {"filename": document.name},
    }
