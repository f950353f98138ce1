"""Anthropic: definitions and results for your own loop, and tools for the beta tool runner.

`await tool_results(toolbox, message)` runs the calls of a message. Calls that need approval are in
`questions`. Store the message and call `tool_results` again with the replies, even after the toolbox was
closed and opened again; calls that have already run are not repeated.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import anyio
from anthropic.lib.tools import BetaAsyncBuiltinFunctionTool
from anthropic.lib.tools import ToolError as SdkToolError
from anthropic.types import ToolResultBlockParam, ToolUnionParam

from handtools.adapters.provider_calls import (
    arguments_from_json,
    build_provider_call,
    call_and_ask_approval,
    call_with_answer,
    content_parts,
)
from handtools.core.approval import Approval
from handtools.core.errors import InvalidInput
from handtools.core.result import Document, Image, Result
from handtools.toolbox import Toolbox, ToolDefinition

CUT_OFF = "The call was cut off at the token limit. Nothing was run. Send it again, in smaller parts."


@dataclass
class ToolResults:
    """Results of the calls in a message, and the approval requests to answer before continuing."""

    content: list[ToolResultBlockParam] = field(default_factory=list)
    questions: dict[str, Approval] = field(default_factory=dict)
    """Approval requests by id of the `tool_use` block."""

    @property
    def message(self) -> dict[str, Any]:
        """The results as the user's next message."""
        return {"role": "user", "content": self.content}


def definitions(toolbox: Toolbox) -> list[ToolUnionParam]:
    """Return the offered tools for the `tools` parameter of `messages.create`."""
    return [_definition_json(one) for one in toolbox.definitions()]


async def tool_results(
    toolbox: Toolbox, message: Any, *, conversation: str = "", replies: Mapping[str, Any] | None = None
) -> ToolResults:
    """Run the calls of a message concurrently; `message` is an SDK `Message` or a dictionary.

    `replies` are answers to approval requests by `tool_use` id: true, false, or `{"allow": true,
    "remember": "session", "message": "…", "args": {…}}`.
    """
    said = _message_field(message, "content")
    blocks = [] if isinstance(said, str) else [_block_as_mapping(block) for block in said]
    uses = [block for block in blocks if block["type"] == "tool_use"]
    # At the token limit, only the last block can be incomplete.
    cut = blocks[-1] if blocks and _message_field(message, "stop_reason") == "max_tokens" else None
    settled_results: dict[str, Result[Any] | str] = {}

    async def run(use: Mapping[str, Any]) -> None:
        known = use["id"]
        reply = (replies or {}).get(known)
        settled_results[known] = (
            CUT_OFF if use is cut else await _run_tool_use(toolbox, use, conversation, reply)
        )

    async with anyio.create_task_group() as group:
        for use in uses:
            group.start_soon(run, use)
    results = ToolResults()
    for use in uses:
        result = settled_results[use["id"]]
        if isinstance(result, Result) and result.request is not None:
            results.questions[use["id"]] = result.request
        results.content.append(
            {
                "type": "tool_result",
                "tool_use_id": use["id"],
                "content": content_blocks(result) if isinstance(result, Result) else result,
                "is_error": not isinstance(result, Result) or not result.ok,
            }
        )
    return results


async def _run_tool_use(
    toolbox: Toolbox, use: Mapping[str, Any], conversation: str, answer: Any
) -> Result[Any] | str:
    """Run one call; return a message for the model if its arguments can't be parsed."""
    try:
        args = arguments_from_json(use["input"]) if isinstance(use["input"], str) else use["input"]
    except InvalidInput as problem:
        return str(problem)
    call = build_provider_call(use["name"], args, use["id"], conversation)
    return await call_with_answer(toolbox, call, answer)


def tools(
    toolbox: Toolbox, *, conversation: str = "", ask: Callable[[Approval], Any] | None = None
) -> list["RunnerTool"]:
    """Return the offered tools for `client.beta.messages.tool_runner` and for an environment worker.

    The runner can't pause, so `ask` is an async function that waits for the user and returns a reply as in
    `tool_results`. Without it, the model reads that the call is waiting, and continues with other work.
    """
    return [RunnerTool(toolbox, one, conversation, ask) for one in toolbox.definitions()]


class RunnerTool(BetaAsyncBuiltinFunctionTool):
    """A tool for the runner, which passes no call id, so repeated calls can't be recognised."""

    def __init__(
        self,
        toolbox: Toolbox,
        definition: ToolDefinition,
        conversation: str,
        ask: Callable[[Approval], Any] | None,
    ) -> None:
        self._toolbox = toolbox
        self._definition = definition
        self._conversation = conversation
        self._ask = ask

    def to_dict(self) -> Any:
        return _definition_json(self._definition)

    async def call(self, input: object) -> list[Any]:  # noqa: A002 - the SDK's name
        """Run the tool; raises `SdkToolError`, whose content the model reads as an error."""
        args = input if isinstance(input, Mapping) else {}
        call = build_provider_call(self._definition.name, args, "", self._conversation)
        if self._ask is None:
            result = await self._toolbox.call(call)
        else:
            result = await call_and_ask_approval(self._toolbox, call, self._ask)
        if not result.ok:
            raise SdkToolError(content_blocks(result))
        return content_blocks(result)


def content_blocks(result: Result[Any]) -> list[Any]:
    """Convert the content of a result to blocks of the Messages API."""
    return content_parts(result, _text_block, _image_block, _document_block)


def _definition_json(definition: ToolDefinition) -> Any:
    # Tools that Anthropic defines are named by their type and need no schema.
    ours = {
        "name": definition.name,
        "description": definition.description,
        "input_schema": dict(definition.input_schema),
    }
    return dict(definition.vendor_definition) or ours


def _message_field(message: Any, name: str) -> Any:
    return message.get(name) if isinstance(message, Mapping) else getattr(message, name)


def _block_as_mapping(block: Any) -> Mapping[str, Any]:
    """Convert an SDK block to a mapping; input that is not an object is kept unchanged."""
    return block if isinstance(block, Mapping) else block.model_dump(warnings=False)


def _text_block(text: str) -> Any:
    return {"type": "text", "text": text}


def _image_block(image: Image) -> Any:
    return {"type": "image", "source": _base64_source(image)}


def _document_block(document: Document) -> Any:
    return {"type": "document", "source": _base64_source(document), "title": document.name}


def _base64_source(block: Image | Document) -> dict[str, str]:
    return {"type": "base64", "media_type": block.media_type, "data": block.base64}
