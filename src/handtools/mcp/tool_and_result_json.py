"""Convert tool definitions and call results to the JSON of MCP's `tools/list` and `tools/call`."""

from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import to_jsonable_python

from handtools.core.result import ContentBlock, Image, Result, Text
from handtools.core.tool import AnyTool
from handtools.mcp.served_toolbox import ServedToolbox
from handtools.text.encoding import without_surrogates
from handtools.toolbox import Toolbox, ToolDefinition

CALL_ID_META_KEY = "handtools/call_id"
"""Key in `_meta` for the call id, in requests and in results."""

DETAILS_META_KEY = "handtools/details"
"""Key in `_meta`: a client that sets it to true gets the result's details back under the same key.

They are not sent as `structuredContent`, because clients would show that to the model instead of the text.
"""

LIST_TTL_MS = 300_000
"""Milliseconds that a client may cache the tool list. The policy does not change while a server runs."""

Json = dict[str, Any]


def mark_result_complete(value: Json, *, keep_ms: int | None = None) -> Json:
    """Add the current MCP version's fields to a result: `resultType`, and with `keep_ms` a cache time."""
    marks: Json = {"resultType": "complete"}
    if keep_ms is not None:
        marks |= {"ttlMs": keep_ms, "cacheScope": "private"}
    return value | marks


def tool_list(toolbox: ServedToolbox) -> list[Json]:
    """The tools of a toolbox as the JSON of a `tools/list` result."""
    here: Mapping[str, AnyTool] = toolbox.tools if isinstance(toolbox, Toolbox) else {}
    return [_tool_json(definition, here.get(definition.name)) for definition in toolbox.definitions()]


def _tool_json(definition: ToolDefinition, tool: AnyTool | None) -> Json:
    return {
        "name": definition.name,
        "description": definition.description,
        "inputSchema": dict(definition.input_schema),
        "annotations": _tool_annotations(definition, tool),
    }


def _tool_annotations(definition: ToolDefinition, tool: AnyTool | None) -> Json:
    """The MCP annotations of a tool, derived from its declared effects. Only true hints are included.

    Hints that clients act on are given even if they are the protocol's default, because not all clients apply
    the default. For a tool on another machine only the definition is known, not its effects.
    """
    hints = {"readOnlyHint" if definition.reads_only else "destructiveHint": True}
    reaches_out = tool is not None and tool.effects & {"run", "visit", "deliver", "delegate"}
    return hints | ({"openWorldHint": True} if reaches_out else {})


def call_result(result: Result[Any], call_id: str, *, details: bool = False) -> Json:
    """Convert a call's result to the JSON of a `tools/call` result.

    `details` adds fields that only programs need to `_meta`.
    """
    content = [content_block(part, call_id) for part in result.content]
    # Some clients show `_meta` to the model, too, so keep it short.
    meta = {CALL_ID_META_KEY: call_id} | (_program_meta(result) if details else {})
    return mark_result_complete({"_meta": meta, "content": content, "isError": not result.ok})


def failure_result(text: str, call_id: str = "") -> Json:
    """A `tools/call` result with `isError` set and a message for the model."""
    return mark_result_complete(
        {
            "_meta": {CALL_ID_META_KEY: call_id} if call_id else {},
            "content": [{"text": without_surrogates(text), "type": "text"}],
            "isError": True,
        }
    )


def content_block(part: ContentBlock, call_id: str = "") -> Json:
    """Convert a result's text, image or document to an MCP content block."""
    if isinstance(part, Text):
        return {"text": without_surrogates(part.text), "type": "text"}
    encoded = part.base64
    if isinstance(part, Image):
        return {"data": encoded, "mimeType": part.media_type, "type": "image"}
    uri = f"handtools://call/{call_id}/{part.name}"
    return {"type": "resource", "resource": {"uri": uri, "mimeType": part.media_type, "blob": encoded}}


def plain_json(value: Any) -> Any:
    """Convert a value (pydantic models, bytes, sets …) to plain JSON data.

    Invalid characters are replaced, and optional model fields that are None are omitted.
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
    """`_meta` fields for programs: details, status, error code, path of the full output, changed paths."""
    meta: Json = {"handtools/status": result.status}
    if result.ok and result.details is not None:
        meta[DETAILS_META_KEY] = plain_json(result.details)
    if result.fault is not None:
        meta["handtools/fault"] = result.fault.code
    if result.spill is not None:
        meta["handtools/output"] = result.spill.path
    if result.changes is not None:
        meta["handtools/changed"] = [without_surrogates(touched.path) for touched in result.changes.touched]
    return meta
