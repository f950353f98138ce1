"""OpenAI Agents: function tools, `Agent(name="…", tools=tools(coding(".")))`.

A call that needs approval interrupts the run. `RunState.approve` or `reject` answers it, even after the
state was stored and the toolbox was closed and opened again. `questions` returns the approval requests to
show the user.
"""

import json
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

from agents import (
    FunctionTool,
    RunConfig,
    RunContextWrapper,
    ToolApprovalItem,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents.run_config import ToolErrorFormatterArgs, ToolExecutionConfig
from agents.tool_context import ToolContext
from agents.tool_guardrails import (
    ToolGuardrailFunctionOutput,
    ToolInputGuardrail,
    ToolInputGuardrailData,
)

from handtools.adapters.provider_calls import (
    CONVERSATION_KEY,
    MALFORMED_HINT,
    PROVIDER_ID_KEY,
    arguments_from_json,
    build_provider_call,
    content_parts,
)
from handtools.core.approval import Approval, Reply
from handtools.core.call import Call
from handtools.core.errors import InvalidInput
from handtools.core.result import Document, Image, Result
from handtools.toolbox import Toolbox, ToolDefinition

Conversation = str | Callable[[RunContextWrapper[Any]], str]
"""Name of the conversation, or a function that returns it for a run's context."""
MAX_SETTLED = 100
NOT_JSON = "The arguments are not a JSON object"
Output = str | list[ToolOutputText | ToolOutputImage | ToolOutputFileContent]


def tools(toolbox: Toolbox, *, conversation: Conversation = "") -> list[FunctionTool]:
    """Return the offered tools of a toolbox.

    Calls are separate by conversation: neither their ids nor approvals for the session are shared.
    """
    offered = toolbox.definitions("strict")
    runs = RunQuestions(toolbox, conversation, [one.name for one in offered])
    return [_function_tool(runs, one) for one in offered]


def run_config(toolbox: Toolbox, **options: Any) -> RunConfig:
    """Return a run config that reports unknown tools and malformed JSON to the model.

    Without it, they end the run. `options` are other fields of `RunConfig`.
    """

    async def explain(problem: ToolErrorFormatterArgs[Any]) -> str | None:
        if problem.kind != "tool_not_found":
            return None
        return (await toolbox.call(problem.tool_name)).text

    ours = {
        "tool_not_found_behavior": "return_error_to_model",
        "tool_error_formatter": explain,
        "tool_execution": ToolExecutionConfig(pre_approval_tool_input_guardrails=True),
    }
    return RunConfig(**(ours | options))


async def questions(toolbox: Toolbox, interruptions: Iterable[ToolApprovalItem]) -> list[Approval]:
    """Return the approval requests for a run's interruptions, in the same order."""
    asked = {approval.metadata.get(PROVIDER_ID_KEY): approval for approval in await toolbox.waiting()}
    return [asked[one.call_id] for one in interruptions if one.call_id in asked]


@dataclass
class RunQuestions:
    """The calls of runs and their approval requests.

    A call is already made when the SDK checks whether it needs approval. Its result is stored until the SDK
    invokes the tool.
    """

    toolbox: Toolbox
    conversation: Conversation
    names: Collection[str]
    settled: dict[str, Result[Any]] = field(default_factory=dict)
    """Results of calls that needed no approval, until the SDK invokes them; the journal has them as well."""
    may_be_rejected: WeakKeyDictionary[Any, bool] = field(default_factory=WeakKeyDictionary)
    """For each run, whether the user may have rejected one of its requests since the last check."""

    def conversation_of_run(self, run: RunContextWrapper[Any]) -> str:
        """Return the name of a run's conversation."""
        return self.conversation if isinstance(self.conversation, str) else self.conversation(run)

    async def call_needs_approval(self, run: RunContextWrapper[Any], call: Call) -> bool:
        """Make the call, and return True if it needs approval; there is no other way to find out."""
        result = await self.toolbox.call(call)
        if result.request is not None:
            self.may_be_rejected[run] = True
            return True
        if len(self.settled) >= MAX_SETTLED:
            self.settled.clear()
        self.settled[call.id] = result
        return False

    async def result_or_run(self, call: Call, *, approved: bool) -> Result[Any]:
        """Return the result of a call that was already made, or make it if the user has approved it."""
        known = self.settled.pop(call.id, None)
        return known or await self.toolbox.call(call, reply=Reply(allow=True) if approved else None)

    async def withdraw_rejected_requests(self, run: RunContextWrapper[Any]) -> None:
        """Withdraw requests that the user rejected; the SDK reports a rejection only to the model."""
        if not self.may_be_rejected.get(run, True):
            return
        self.may_be_rejected[run] = False
        for approval in await self.toolbox.waiting():
            if approval.metadata.get(CONVERSATION_KEY) != self.conversation_of_run(run):
                continue
            provider_id = str(approval.metadata.get(PROVIDER_ID_KEY))
            if any(run.is_tool_approved(name, provider_id) is False for name in self.names):
                await self.toolbox.withdraw(approval.call_id)
            else:
                # A resumed run knows about rejections only after it has requested its tools once.
                self.may_be_rejected[run] = True


def _function_tool(runs: RunQuestions, definition: ToolDefinition) -> FunctionTool:
    facts: WeakKeyDictionary[Any, dict[str, Any]] = WeakKeyDictionary()

    async def asks(run: RunContextWrapper[Any], args: dict[str, Any], provider_id: str) -> bool:
        return await runs.call_needs_approval(
            run, build_provider_call(definition.name, args, provider_id, runs.conversation_of_run(run))
        )

    async def invoke(context: ToolContext[Any], raw: str) -> Output:
        try:
            args = arguments_from_json(raw)
        except InvalidInput as problem:
            return str(problem)
        call = build_provider_call(
            definition.name, args, context.tool_call_id, runs.conversation_of_run(context)
        )
        approved = context.is_tool_approved(definition.name, context.tool_call_id) is True
        result = await runs.result_or_run(call, approved=approved)
        facts[context] = {"call_id": call.id, "status": result.status}
        return _tool_output(result)

    async def offered(run: RunContextWrapper[Any], _agent: Any) -> bool:
        await runs.withdraw_rejected_requests(run)
        return True

    return FunctionTool(
        name=definition.name,
        description=definition.description,
        params_json_schema=dict(definition.input_schema),
        on_invoke_tool=invoke,
        needs_approval=asks,
        is_enabled=offered,
        tool_input_guardrails=[ToolInputGuardrail(_refuse_malformed_arguments, "handtools_arguments")],
        custom_data_extractor=lambda data: facts.get(data.tool_context),
    )


def _refuse_malformed_arguments(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    """Return an error to the model for malformed arguments; the user must not be asked to approve them."""
    text = data.context.tool_arguments
    try:
        arguments_from_json(text)
        json.loads(text)  # The SDK parses more strictly than we do.
    except InvalidInput as problem:
        return ToolGuardrailFunctionOutput.reject_content(str(problem))
    except ValueError as problem:
        return ToolGuardrailFunctionOutput.reject_content(f"{NOT_JSON}: {problem}. {MALFORMED_HINT}")
    return ToolGuardrailFunctionOutput.allow()


def _tool_output(result: Result[Any]) -> Output:
    parts = content_parts(result, _text_output, _image_output, _file_output)
    if len(parts) == 1 and isinstance(parts[0], ToolOutputText):
        return str(parts[0].text)
    return parts


def _text_output(text: str) -> Any:
    return ToolOutputText(text=text)


def _image_output(image: Image) -> Any:
    return ToolOutputImage(image_url=_data_url(image))


def _file_output(document: Document) -> Any:
    return ToolOutputFileContent(file_data=_data_url(document), filename=document.name)


def _data_url(block: Image | Document) -> str:
    return f"data:{block.media_type};base64,{block.base64}"
