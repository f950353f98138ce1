"""Microsoft Agent Framework: a provider, `Agent(client, context_providers=[ToolboxProvider(coding("."))])`.

A call that needs approval ends the run with a `function_approval_request`, which has the approval request
under `additional_properties["handtools"]`. `to_function_approval_response` answers it, even in a new
process if the session is stored. Answers may have `{"remember": "session", "args": {…}}` under the same
key.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agent_framework import (
    AgentSession,
    Content,
    ContextProvider,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool,
    SessionContext,
    SupportsAgentRun,
)

from handtools.adapters.provider_calls import (
    arguments_from_json,
    build_provider_call,
    call_and_ask_approval,
    content_parts,
    question_to_json,
)
from handtools.core.approval import Approval
from handtools.core.call import Call
from handtools.core.errors import InvalidInput
from handtools.core.result import Document, Image, Result
from handtools.toolbox import Toolbox, ToolDefinition

QUESTION_KEY = "handtools"
STATUS_KEY = "handtools_status"
"""Key of a failed result's status in its contents, because the framework has no suitable error field."""


class ToolboxProvider(ContextProvider):
    """Context provider that adds a toolbox's tools to an agent and runs them."""

    def __init__(self, toolbox: Toolbox, *, source_id: str = "handtools") -> None:
        super().__init__(source_id)
        self.toolbox = toolbox

    async def before_run(
        self,
        *,
        agent: SupportsAgentRun,
        session: AgentSession,
        context: SessionContext,
        state: dict[str, Any],
    ) -> None:
        """Add the offered tools, after withdrawing approval requests that the user denied."""
        del agent, session, state
        for content in (content for message in context.input_messages for content in message.contents):
            # The framework reports a denial to the model itself, without calling the tool.
            if content.type == "function_approval_response" and not content.approved:
                await self.toolbox.withdraw(str(_approval_request_of_response(content).get("call_id", "")))
        definitions = self.toolbox.definitions()
        context.extend_tools(self.source_id, [_declaration_only_tool(one) for one in definitions])
        names = frozenset(one.name for one in definitions)
        context.extend_middleware(self.source_id, ToolboxMiddleware(self.toolbox, names))


class ToolboxMiddleware(FunctionMiddleware):
    """Middleware that runs a toolbox's tools; plain functions would not get a call's id and session."""

    def __init__(self, toolbox: Toolbox, names: frozenset[str]) -> None:
        self.toolbox = toolbox
        self.names = names

    async def process(
        self, context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]
    ) -> None:
        """Run one of our tools, or pass on a call of another tool."""
        if context.function.name not in self.names:
            await call_next()
            return
        try:
            args = _call_arguments(context)
        except InvalidInput as problem:
            context.result = [Content.from_text(str(problem), additional_properties={STATUS_KEY: "error"})]
            return
        conversation = context.session.session_id if context.session else ""
        call = build_provider_call(
            context.function.name, args, str(context.metadata.get("call_id") or ""), conversation
        )
        response = context.metadata.get("approval_response")

        async def ask(approval: Approval) -> Any:
            asked = _approval_request_of_response(response) if response is not None else {}
            if asked.get("fingerprint") != approval.fingerprint:
                raise _Unanswered(approval)
            return {"allow": True, **asked}

        try:
            context.result = _result_contents(await call_and_ask_approval(self.toolbox, call, ask))
        except _Unanswered as question:
            context.result = _approval_request_content(context, call, question.approval)


class _Unanswered(Exception):
    def __init__(self, approval: Approval) -> None:
        super().__init__(approval.title)
        self.approval = approval


def _declaration_only_tool(definition: ToolDefinition) -> FunctionTool:
    def unreachable(**_: Any) -> None:
        raise NotImplementedError("The middleware runs this tool.")

    return FunctionTool(
        name=definition.name,
        description=definition.description,
        func=unreachable,
        input_model=dict(definition.input_schema),
    )


def _call_arguments(context: FunctionInvocationContext) -> dict[str, Any]:
    """Return a call's arguments. If the framework could not parse them, they are under `raw`, as text."""
    args = dict(context.arguments) if isinstance(context.arguments, Mapping) else {}
    if set(args) == {"raw"} and "raw" not in context.function.parameters().get("properties", {}):
        return arguments_from_json(str(args["raw"]))
    return args


def _approval_request_content(
    context: FunctionInvocationContext, call: Call, approval: Approval
) -> Content:
    call_id = str(context.metadata.get("call_id") or call.id)
    occurrence = str(context.metadata.get("function_call_occurrence_id") or call_id)
    asked = Content.from_function_call(call_id, call.tool, arguments=dict(call.args), id=occurrence)
    return Content.from_function_approval_request(
        occurrence, asked, additional_properties={QUESTION_KEY: question_to_json(approval)}
    )


def _approval_request_of_response(response: Content) -> Mapping[str, Any]:
    found = (response.additional_properties or {}).get(QUESTION_KEY)
    return found if isinstance(found, Mapping) else {}


def _result_contents(result: Result[Any]) -> list[Content]:
    found = content_parts(result, Content.from_text, _data_content, _data_content)
    if not result.ok:
        for one in found:
            one.additional_properties[STATUS_KEY] = result.status
    return found


def _data_content(block: Image | Document) -> Content:
    return Content.from_data(block.data, block.media_type)
