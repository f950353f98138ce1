"""Tool definitions and results as the JSON that MCP sends. ADR 110."""

import base64
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from handtools.core.result import ContentBlock, Image, Result, Text
from handtools.core.tool import AnyTool
from handtools.text.encoding import without_surrogates
from handtools.toolbox import Toolbox, ToolDefinition

CALL_ID_KEY = "handtools/call_id"
"""The key in `_meta` under which call ids travel, both ways."""

DETAILS_KEY = "handtools/details"
"""The key in `_meta`: a program that sends it as true with a call gets the result's details under it, and more.

They are not `structuredContent`: clients give the model that instead of the text (docs/adr/0110).
"""

LIST_TTL_MS = 300_000
"""How long a client may keep the list of tools: a policy does not change while a server runs."""

Json = dict[str, Any]


def complete_result(value: Json, *, keep_ms: int | None = None) -> Json:
    """An answer as the current protocol marks it; older ones leave the marks out."""
    marks: Json = {"resultType": "complete"}
    if keep_ms is not None:
        marks |= {"ttlMs": keep_ms, "cacheScope": "private"}
    return value | marks


def tool_list(toolbox: Toolbox) -> list[Json]:
    """What `tools/list` answers."""
    return [_tool_json(definition, toolbox.tools[definition.name]) for definition in toolbox.definitions()]


def _tool_json(definition: ToolDefinition, tool: AnyTool) -> Json:
    return {
        "name": definition.name,
        "title": tool_title(definition.name),
        "description": definition.description,
        "inputSchema": dict(definition.input_schema),
        "annotations": tool_annotations(tool),
    }


def tool_title(name: str) -> str:
    """A tool's name as people write it."""
    return name.replace("_", " ").capitalize()


def tool_annotations(tool: AnyTool) -> Json:
    """What a tool may do to the world, as hints: the most it may do, since they are given per tool."""
    return {
        "title": tool_title(tool.name),
        "readOnlyHint": tool.reads_only,
        "destructiveHint": not tool.reads_only,
        "idempotentHint": tool.reads_only,
        "openWorldHint": bool(tool.effects & {"run", "visit", "deliver", "delegate"}),
    }


def call_result(result: Result[Any], call_id: str, *, details: bool = False) -> Json:
    """A result as `tools/call` answers it: blocks for the model, and details for a program that wants them."""
    content = [content_block(part, call_id) for part in result.content]
    # Some clients show the model `_meta` as well, so it is as short as can be.
    meta = {CALL_ID_KEY: call_id} | (_program_meta(result) if details else {})
    return complete_result({"content": content, "isError": not result.ok, "_meta": meta})


def failure_result(text: str, call_id: str = "") -> Json:
    """A failure that the model can read."""
    return complete_result(
        {
            "content": [{"type": "text", "text": without_surrogates(text)}],
            "isError": True,
            "_meta": {CALL_ID_KEY: call_id} if call_id else {},
        }
    )


def content_block(part: ContentBlock, call_id: str = "") -> Json:
    """A content block."""
    if isinstance(part, Text):
        return {"type": "text", "text": without_surrogates(part.text)}
    encoded = base64.b64encode(part.data).decode()
    if isinstance(part, Image):
        return {"type": "image", "data": encoded, "mimeType": part.media_type}
    uri = f"handtools://call/{call_id}/{part.name}"
    return {"type": "resource", "resource": {"uri": uri, "mimeType": part.media_type, "blob": encoded}}


def plain_json(value: Any) -> Any:
    """Values as JSON that every transport can carry: bytes that stood for no character are shown.

    A field of a model that is None by default is left out, as its schema has it.
    """
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, BaseModel):
        return {
            field.alias or name: plain_json(item)
            for name, field in type(value).model_fields.items()
            if (item := getattr(value, name)) is not None or field.is_required()
        }
    if isinstance(value, Mapping):
        return {without_surrogates(str(key)): plain_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [plain_json(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float) else to_jsonable_python(value)


def _program_meta(result: Result[Any]) -> Json:
    """What is not for the model: the details, how it ended, what it changed, and where the whole output is."""
    meta: Json = {"handtools/status": result.status}
    if result.ok and result.details is not None:
        meta[DETAILS_KEY] = plain_json(result.details)
    if result.fault is not None:
        meta["handtools/fault"] = result.fault.code
    if result.spill is not None:
        meta["handtools/output"] = result.spill.path
    if result.changes is not None:
        meta["handtools/changed"] = [without_surrogates(touched.path) for touched in result.changes.touched]
    return meta
