"""OpenAI Agents: function tools, `Agent(name="…", tools=tools(coding(".")))`.

A call that needs approval interrupts the run; `RunState.approve` or `reject` answers it, also after the state was
stored and the toolbox was closed and opened again. `questions` has what a person is to be shown. ADR 208.
"""

import json
from collections.abc import Callable, Iterable
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
    content_parts,
    provider_call,
)
from handtools.core.approval import Approval, Reply
from handtools.core.errors import InvalidInput
from handtools.core.result import Document, Image, Result
from handtools.toolbox import Toolbox, ToolDefinition

Conversation = str | Callable[[RunContextWrapper[Any]], str]
"""Name of the conversation, or a function that reads it from the context of the run."""
MAX_SETTLED = 100
Output = str | list[ToolOutputText | ToolOutputImage | ToolOutputFileContent]


def tools(toolbox: Toolbox, *, conversation: Conversation = "") -> list[FunctionTool]:
    """Return the offered tools of a toolbox.

    Conversations share neither the ids of calls nor what a person allowed for a session.
    """
    functions = _Functions(toolbox, conversation)
    return [functions.tool(one) for one in toolbox.definitions("strict")]


def run_config(toolbox: Toolbox, **options: Any) -> RunConfig:
    """Return a run config under which the model reads of unknown tools and malformed JSON; else the run ends.

    `options` are other fields of `RunConfig`.
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
    """Return what a person is to be shown for the interruptions of a run, in their order."""
    asked = {approval.metadata.get(PROVIDER_ID_KEY): approval for approval in await toolbox.waiting()}
    return [asked[one.call_id] for one in interruptions if one.call_id in asked]


@dataclass
class _Functions:
    toolbox: Toolbox
    conversation: Conversation
    settled: dict[str, Result[Any]] = field(default_factory=dict)
    """Results of calls that asked nothing, until the SDK invokes them; without one, the journal has it."""
    may_be_rejected: WeakKeyDictionary[Any, bool] = field(default_factory=WeakKeyDictionary)
    """By run: whether a question of it may have been rejected since we looked."""
    facts: WeakKeyDictionary[Any, dict[str, Any]] = field(default_factory=WeakKeyDictionary)
    """By context of a call: what programs find at its output item."""

    def tool(self, one: ToolDefinition) -> FunctionTool:
        async def asks(run: RunContextWrapper[Any], args: dict[str, Any], provider_id: str) -> bool:
            # Only the call itself finds out what it would do: it runs here, and the SDK pauses for what it asks.
            call = provider_call(one.name, args, provider_id, self.conversation_of(run))
            result = await self.toolbox.call(call)
            if result.request is not None:
                self.may_be_rejected[run] = True
                return True
            if len(self.settled) >= MAX_SETTLED:
                self.settled.clear()
            self.settled[call.id] = result
            return False

        async def invoke(context: ToolContext[Any], raw: str) -> Output:
            try:
                args = arguments_from_json(raw)
            except InvalidInput as problem:
                return str(problem)
            call = provider_call(one.name, args, context.tool_call_id, self.conversation_of(context))
            result = self.settled.pop(call.id, None)
            if result is None:
                yes = context.is_tool_approved(one.name, context.tool_call_id)
                result = await self.toolbox.call(call, reply=Reply(allow=True) if yes else None)
            self.facts[context] = {"call_id": call.id, "status": result.status}
            return _output(result)

        return FunctionTool(
            name=one.name,
            description=one.description,
            params_json_schema=dict(one.input_schema),
            on_invoke_tool=invoke,
            needs_approval=asks,
            is_enabled=self.offered,
            tool_input_guardrails=[ToolInputGuardrail(_refuse_malformed, "handtools_arguments")],
            custom_data_extractor=lambda data: self.facts.get(data.tool_context),
        )

    def conversation_of(self, run: RunContextWrapper[Any]) -> str:
        return self.conversation if isinstance(self.conversation, str) else self.conversation(run)

    async def offered(self, run: RunContextWrapper[Any], _agent: Any) -> bool:
        """Withdraw what was rejected before the run goes on: the SDK tells the model of it, and no tool."""
        if not self.may_be_rejected.get(run, True):
            return True
        self.may_be_rejected[run] = False
        names = [one.name for one in self.toolbox.definitions()]
        for approval in await self.toolbox.waiting():
            if approval.metadata.get(CONVERSATION_KEY) != self.conversation_of(run):
                continue
            provider_id = str(approval.metadata.get(PROVIDER_ID_KEY))
            if any(run.is_tool_approved(name, provider_id) is False for name in names):
                await self.toolbox.withdraw(approval.call_id)
            else:
                # A run that goes on knows what was rejected only after it has asked for its tools once.
                self.may_be_rejected[run] = True
        return True


def _refuse_malformed(data: ToolInputGuardrailData) -> ToolGuardrailFunctionOutput:
    """Tell the model of arguments that the SDK can't read; it would ask a person about them."""
    text = data.context.tool_arguments
    try:
        arguments_from_json(text)
        # The SDK reads more strictly than we do.
        json.loads(text)
    except InvalidInput as problem:
        return ToolGuardrailFunctionOutput.reject_content(str(problem))
    except ValueError as problem:
        what = f"The arguments are not a JSON object: {problem}. {MALFORMED_HINT}"
        return ToolGuardrailFunctionOutput.reject_content(what)
    return ToolGuardrailFunctionOutput.allow()


def _output(result: Result[Any]) -> Output:
    parts = content_parts(result, _text, _image, _file)
    if len(parts) == 1 and isinstance(parts[0], ToolOutputText):
        return str(parts[0].text)
    return parts


def _text(text: str) -> Any:
    return ToolOutputText(text=text)


def _image(block: Image) -> Any:
    return ToolOutputImage(image_url=_data_url(block))


def _file(block: Document) -> Any:
    return ToolOutputFileContent(file_data=_data_url(block), filename=block.name)


def _data_url(block: Image | Document) -> str:
    return f"data:{block.media_type};base64,{block.base64}"
