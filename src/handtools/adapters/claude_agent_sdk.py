"""Claude Agent SDK: options with our tools instead of the SDK's, `ClaudeSDKClient(options(coding(".")))`.

A call that needs approval is deferred: the run ends, and its result names the call in `deferred_tool_use`;
`question` returns the approval request. To continue, even in a new process, resume the session with
`options(toolbox, answers={call_id: True}, resume=session_id)`; `args` in an answer are edited arguments.
Don't send a prompt then: Claude Code continues by itself, and a prompt would start another turn, which
loses the next approval request.
"""

from collections.abc import Mapping
from typing import Any

from claude_agent_sdk import ClaudeAgentOptions, HookMatcher
from claude_agent_sdk.types import DeferredToolUse, McpSdkServerConfig
from mcp.server import Server
from mcp.types import CallToolResult, ListToolsResult, Tool

from handtools.adapters.provider_calls import (
    PROVIDER_ID_KEY,
    build_provider_call,
    content_parts,
    question_to_json,
    reply_from_json,
    withdraw_questions,
)
from handtools.core.call import new_call_id
from handtools.core.result import Document, Image
from handtools.toolbox import Toolbox

TOOL_USE_KEY = "claudecode/toolUseId"
"""The key in a request's `_meta` under which Claude Code puts the model's call id."""
HOOK_TIMEOUT = 600.0


def options(
    toolbox: Toolbox, *, name: str = "handtools", answers: Mapping[str, Any] | None = None, **others: Any
) -> ClaudeAgentOptions:
    """Return client options with the toolbox's tools, and without Claude Code's own.

    `answers` are the user's replies by id of the deferred call, in the form that `reply_from_json` accepts.
    """
    calls = ClaudeCalls(toolbox, name, dict(answers or {}))
    return ClaudeAgentOptions(
        **{
            "tools": [],
            "mcp_servers": {name: calls.mcp_server_config()},
            "allowed_tools": [f"mcp__{name}"],
            "hooks": {
                "PreToolUse": [
                    HookMatcher(
                        matcher=f"mcp__{name}__.*", hooks=[calls.decide_before_call], timeout=HOOK_TIMEOUT
                    )
                ]
            },
            **others,
        }
    )


async def question(toolbox: Toolbox, deferred: DeferredToolUse) -> dict[str, Any]:
    """Return a deferred call's approval request: title, preview and the other fields of an `Approval`."""
    for approval in await toolbox.waiting():
        if approval.metadata.get(PROVIDER_ID_KEY) == deferred.id:
            return question_to_json(approval)
    return {}


class ClaudeCalls:
    """The calls of one Claude Code run. Before it sends a call to our MCP server, it runs our hook."""

    def __init__(self, toolbox: Toolbox, name: str, answers: dict[str, Any]) -> None:
        self.toolbox = toolbox
        self.name = name
        self.answers = answers
        self._sessions: dict[str, str] = {}
        """Claude Code's session of each call, known from the hook; the MCP request does not include it."""
        self._alone = new_call_id()

    def mcp_server_config(self) -> McpSdkServerConfig:
        """Return the tools as an in-process MCP server."""
        served = Server(self.name, on_list_tools=self._list_tools, on_call_tool=self._call_tool)
        return McpSdkServerConfig(type="sdk", name=self.name, instance=served)

    async def decide_before_call(
        self, known: Any, tool_use_id: str | None, _context: Any
    ) -> dict[str, Any]:
        """Hook that decides whether a call runs now; a call that needs approval is deferred."""
        provider_id, session = tool_use_id or "", str(known["session_id"])
        self._sessions[provider_id] = session
        tool, args = known["tool_name"].removeprefix(f"mcp__{self.name}__"), dict(known["tool_input"])
        call = build_provider_call(tool, args, provider_id, session)
        if provider_id in self.answers:
            answer = self.answers[provider_id]
            if not reply_from_json(answer).allow:
                result = await self.toolbox.call(call, reply=reply_from_json(answer))
                return _hook_decision("deny", permissionDecisionReason=result.text)
            edited = answer.get("args") if isinstance(answer, Mapping) else None
            if edited is not None:
                await withdraw_questions(self.toolbox, session, {provider_id})
            return _hook_decision("allow", updatedInput=dict(edited or args))
        if (await self.toolbox.why(tool, args)).verdict != "ask":
            return {}
        # The call stops if it needs approval. Otherwise it runs, and the MCP request returns this result.
        result = await self.toolbox.call(call)
        return _hook_decision("defer" if result.request is not None else "allow")

    async def _list_tools(self, _context: Any, _params: Any) -> ListToolsResult:
        return ListToolsResult(
            tools=[
                Tool.model_validate(
                    {
                        "name": one.name,
                        "description": one.description,
                        "inputSchema": dict(one.input_schema),
                        "annotations": {"readOnlyHint": one.reads_only},
                    }
                )
                for one in self.toolbox.definitions()
            ]
        )

    async def _call_tool(self, context: Any, params: Any) -> CallToolResult:
        provider_id = str((context.meta or {}).get(TOOL_USE_KEY) or "")
        session = self._sessions.get(provider_id, self._alone)
        call = build_provider_call(params.name, params.arguments or {}, provider_id, session)
        answer = self.answers.get(provider_id)
        reply = None if answer is None else reply_from_json(answer)
        result = await self.toolbox.call(call, reply=reply)
        content = content_parts(result, _text_block, _image_block, _document_block)
        return CallToolResult.model_validate({"content": content, "isError": not result.ok})


def _hook_decision(verdict: str, **more: Any) -> dict[str, Any]:
    return {"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": verdict, **more}}


def _text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _image_block(image: Image) -> dict[str, Any]:
    return {"type": "image", "data": image.base64, "mimeType": image.media_type}


def _document_block(document: Document) -> dict[str, Any]:
    held = {"uri": f"handtools://{document.name}", "mimeType": document.media_type, "blob": document.base64}
    return {"type": "resource", "resource": held}
