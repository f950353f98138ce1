"""Translating: definitions and results as MCP writes them."""

import base64
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from handtools.core.content import Block, Image, Text
from handtools.core.result import Result
from handtools.core.tool import AnyTool
from handtools.text.encoding import displayed
from handtools.toolbox import Definition, Toolbox

CALL_ID = "handtools/call_id"
"""The key in `_meta` under which call ids travel, both ways."""

DETAILS = "handtools/details"
"""The key in `_meta`: a program that sends it as true with a call gets the result's details under it, and more.

They are not `structuredContent`: clients give the model that instead of the text (docs/adr/0110).
"""

LIST_MS = 300_000
"""How long a client may keep the list of tools: a policy does not change while a server runs."""

Json = dict[str, Any]


def complete(value: Json, *, keep_ms: int | None = None) -> Json:
    """An answer as the current protocol marks it; older ones leave the marks out."""
    marks: Json = {"resultType": "complete"}
    if keep_ms is not None:
        marks |= {"ttlMs": keep_ms, "cacheScope": "private"}
    return value | marks


def tools(toolbox: Toolbox) -> list[Json]:
    """What `tools/list` answers."""
    return [_tool(definition, toolbox.tools[definition.name]) for definition in toolbox.definitions()]


def _tool(definition: Definition, tool: AnyTool) -> Json:
    return {
        "name": definition.name,
        "title": title(definition.name),
        "description": definition.description,
        "inputSchema": dict(definition.input_schema),
        "annotations": annotations(tool),
    }


def title(name: str) -> str:
    """A tool's name as people write it."""
    return name.replace("_", " ").capitalize()


def annotations(tool: AnyTool) -> Json:
    """What a tool may do to the world, as hints: the most it may do, since they are given per tool."""
    return {
        "title": title(tool.name),
        "readOnlyHint": tool.reads_only,
        "destructiveHint": not tool.reads_only,
        "idempotentHint": tool.reads_only,
        "openWorldHint": bool(tool.effects & {"run", "visit", "deliver", "delegate"}),
    }


def answer(result: Result[Any], call_id: str, *, details: bool = False) -> Json:
    """A result as `tools/call` answers it: blocks for the model, and details for a program that wants them."""
    content = [block(part, call_id) for part in result.content]
    # Some clients show the model `_meta` as well, so it is as short as can be.
    meta = {CALL_ID: call_id} | (_for_programs(result) if details else {})
    return complete({"content": content, "isError": not result.ok, "_meta": meta})


def failure(text: str, call_id: str = "") -> Json:
    """A failure that the model can read."""
    return complete(
        {
            "content": [{"type": "text", "text": displayed(text)}],
            "isError": True,
            "_meta": {CALL_ID: call_id} if call_id else {},
        }
    )


def block(part: Block, call_id: str = "") -> Json:
    """A content block."""
    if isinstance(part, Text):
        return {"type": "text", "text": displayed(part.text)}
    encoded = base64.b64encode(part.data).decode()
    if isinstance(part, Image):
        return {"type": "image", "data": encoded, "mimeType": part.media_type}
    uri = f"handtools://call/{call_id}/{part.name}"
    return {"type": "resource", "resource": {"uri": uri, "mimeType": part.media_type, "blob": encoded}}


def carried(value: Any) -> Any:
    """Values as JSON that every transport can carry: bytes that stood for no character are shown.

    A field of a model that is None by default is left out, as its schema has it.
    """
    if isinstance(value, str):
        return displayed(value)
    if isinstance(value, BaseModel):
        return {
            field.alias or name: carried(item)
            for name, field in type(value).model_fields.items()
            if (item := getattr(value, name)) is not None or field.is_required()
        }
    if isinstance(value, Mapping):
        return {displayed(str(key)): carried(item) for key, item in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [carried(item) for item in value]
    return value if value is None or isinstance(value, bool | int | float) else to_jsonable_python(value)


def _for_programs(result: Result[Any]) -> Json:
    """What is not for the model: the details, how it ended, what it changed, and where the whole output is."""
    meta: Json = {"handtools/status": result.status}
    if result.ok and result.details is not None:
        meta[DETAILS] = carried(result.details)
    if result.fault is not None:
        meta["handtools/fault"] = result.fault.code
    if result.spill is not None:
        meta["handtools/output"] = result.spill.path
    if result.changes is not None:
        meta["handtools/changed"] = [displayed(touched.path) for touched in result.changes.touched]
    return meta
