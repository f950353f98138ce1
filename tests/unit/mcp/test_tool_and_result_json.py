"""Definitions and results as MCP writes them."""

import json
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field

from handtools import Document, Image, Result, Text
from handtools.core.result import CallFailure
from handtools.core.tool import json_schema
from handtools.mcp.tool_and_result_json import CALL_ID_META_KEY, call_result, plain_json, tool_list
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.text.token_estimate import estimate_tokens
from handtools.toolbox import CODING

KEPT = Path(__file__).parent / "tools_list.json"
TOKENS = 3_500
"""For the tools of the coding preset, all that a client is sent."""
UNKNOWN_TO_STRICT = {
    "default",
    "minLength",
    "maxLength",
    "format",
    "examples",
    "title",
    "$ref",
    "$defs",
    "allOf",
}
"""Keywords that the strictest provider refuses."""


class Part(BaseModel):
    name: str
    note: str | None = None


class Whole(BaseModel):
    parts: list[Part]
    must: int | None
    count: int = 0
    shown: str | None = Field(None, alias="as")


def test_the_list_of_tools_is_as_reviewed(request):
    listed = [
        {key: tool[key] for key in ("name", "annotations")}
        | {"inputs": sorted(tool["inputSchema"]["properties"])}
        for tool in tool_list(memory_toolbox())
    ]
    text = json.dumps(listed, indent=1) + "\n"
    if request.config.getoption("--update-snapshots", default=False) or not KEPT.exists():
        KEPT.write_text(text)
    assert text == KEPT.read_text(), f"if this is meant, delete {KEPT.name}, run again, and commit it"


def test_all_definitions_together_stay_within_their_budget():
    told = json.dumps(tool_list(memory_toolbox(tools=CODING)), separators=(",", ":"))
    assert estimate_tokens(told) <= TOKENS


@pytest.mark.parametrize("tool", memory_toolbox().definitions("strict"), ids=lambda one: one.name)
def test_the_strictest_provider_accepts_the_schema(tool):
    assert json.dumps(tool.input_schema).isascii()

    def check(node):
        if isinstance(node, list):
            for item in node:
                check(item)
        elif isinstance(node, dict):
            if node.get("type") == "object":
                assert node["additionalProperties"] is False
                assert node["required"] == list(node["properties"])
                for field in node["properties"].values():
                    check(field)
                return
            assert not UNKNOWN_TO_STRICT & set(node), node
            for value in node.values():
                check(value)

    check(tool.input_schema)


@pytest.mark.parametrize("tool", tool_list(memory_toolbox()), ids=lambda tool: tool["name"])
def test_names_and_schemas_keep_to_what_every_client_takes(tool):
    assert tool["name"].replace("_", "").isalnum()
    assert len(tool["name"]) <= 64
    jsonschema.Draft202012Validator.check_schema(tool["inputSchema"])
    assert tool["inputSchema"]["type"] == "object"
    assert "$ref" not in json.dumps(tool["inputSchema"])


def test_details_fit_their_schema():
    whole = Whole.model_validate({"parts": [{"name": "a"}, {"name": "b", "note": "c"}], "must": None})
    shown = plain_json(whole)
    jsonschema.validate(shown, json_schema(Whole))
    assert shown == {"parts": [{"name": "a"}, {"name": "b", "note": "c"}], "must": None, "count": 0}


def test_blocks_of_every_kind_have_a_shape():
    result = Result([Text("t"), Image(b"i", "image/png"), Document(b"d", "application/pdf", "a.pdf")], None)
    content = call_result(result, "id")["content"]
    assert [block["type"] for block in content] == ["text", "image", "resource"]
    assert content[2]["resource"]["uri"] == "handtools://call/id/a.pdf"


def test_a_failure_is_an_error_with_its_code_and_without_details():
    result = Result("no", Part(name="x"), status="denied", fault=CallFailure("denied", "no"))
    value = call_result(result, "id", details=True)
    assert value["isError"]
    assert value["_meta"] == {
        CALL_ID_META_KEY: "id",
        "handtools/status": "denied",
        "handtools/fault": "denied",
    }


@given(
    st.recursive(st.none() | st.booleans() | st.text(st.characters()), st.lists, max_leaves=5),
    st.text(st.characters()),
)
def test_whatever_is_carried_is_json_in_utf8(value, key):
    json.dumps(plain_json({key: value, "lone\udcff": ["\ud800"]}), ensure_ascii=False).encode()
