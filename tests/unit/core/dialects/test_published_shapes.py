"""The tables say what the vendors publish: names, parameters, types and what is required."""

import json
from pathlib import Path
from typing import Any

import pytest

from handtools import Call
from handtools.core.dialects.all_dialects import DIALECTS
from handtools.core.dialects.dialect_tool import DialectTool
from handtools.core.dialects.openai import PATCH_GRAMMAR
from handtools.core.errors import InvalidInput
from handtools.runtime.dialect_calls import calls_of_ours
from handtools.tools.editing.patch_parser import parse_patch
from tests.unit.core.dialects.published_shapes import grammar_structure, recorded, shape

CLIENTS = ("claude_code", "codex", "gemini_cli", "openai_functions", "opencode", "pi")


def row(dialect: Any, name: str) -> DialectTool:
    return next(each for each in DIALECTS[dialect] if each.name == name)


def same(schema: Any) -> Any:
    """A schema whose `required` is a set: its order means nothing."""
    if not isinstance(schema, dict):
        return schema
    return {key: set(value) if key == "required" else same(value) for key, value in schema.items()}


@pytest.mark.parametrize(
    ("dialect", "name"), [(each, name) for each in CLIENTS for name in recorded(each)["tools"]]
)
def test_a_clients_tool_has_the_schema_that_the_client_offers(dialect, name):
    theirs = recorded(dialect)["tools"][name]
    ours = row(dialect, name)
    if theirs["type"] == "custom":
        given = ours.definition["format"]
        rules = grammar_structure(given["definition"])
        assert theirs == {"type": ours.definition["type"], "syntax": given["syntax"], "rules": rules}
    else:
        assert same(shape(ours.schema)) == same(theirs)


@pytest.mark.parametrize("name", recorded("claude_code_types")["tools"])
def test_a_tool_that_claude_code_did_not_offer_has_the_types_of_its_sdk(name):
    ours = dict(shape(row("claude_code", name).schema))
    del ours["additionalProperties"]  # types do not say it
    assert same(ours) == same(recorded("claude_code_types")["tools"][name])


def test_each_tool_of_claude_code_is_compared_with_something_published():
    kept = recorded("claude_code")["tools"].keys() | recorded("claude_code_types")["tools"].keys()
    assert kept == {each.name for each in DIALECTS["claude_code"]}


@pytest.mark.parametrize("name", recorded("anthropic")["shapes"]["agent_toolset_20260401"])
def test_the_agent_toolset_has_the_packages_schemas(name):
    theirs = recorded("anthropic")["shapes"]["agent_toolset_20260401"][name]
    assert same(shape(row("agent_toolset_20260401", name).schema)) == same(theirs)


def test_built_in_tools_are_named_by_the_packages_types():
    published = recorded("anthropic")["shapes"]["definitions"]
    for dialect in ("anthropic", "anthropic_20250429", "anthropic_20250124"):
        for each in DIALECTS[dialect]:
            assert each.definition == published[each.definition["type"]]
    openai = recorded("openai")["shapes"]["definitions"]
    for each in DIALECTS["openai"]:
        assert openai[each.definition["type"]].items() <= each.definition.items()


def test_memory_takes_the_parameters_of_each_command_and_misses_those_that_are_required():
    memory = row("anthropic", "memory")
    commands = recorded("anthropic")["shapes"]["memory_20250818"]
    properties = memory.schema["properties"]
    assert properties["command"]["enum"] == list(commands)
    known = {name: value for each in commands.values() for name, value in each["properties"].items()}
    assert set(properties) == set(known)
    for name, command in commands.items():
        given = {key: value for key, value in command["properties"].items() if key != "command"}
        assert {key: properties[key] for key in given} == given
        whole = {key: _example(key, value) for key, value in given.items()} | {"command": name}
        next(calls_of_ours(memory, Call(tool="memory", args=whole)))
        for missing in set(command["required"]) - {"command"}:
            args = {key: value for key, value in whole.items() if key != missing}
            with pytest.raises(InvalidInput, match=missing):
                next(calls_of_ours(memory, Call(tool="memory", args=args)))


def _example(name: str, schema: dict[str, Any]) -> Any:
    return {"string": "/memories/a", "integer": 1, "array": [1, 2]}[schema["type"]]


def test_an_operation_and_an_action_have_the_packages_fields():
    shapes = recorded("openai")["shapes"]
    operation = row("openai", "apply_patch").schema["properties"]["operation"]
    kinds = shapes["operation"]
    assert operation["properties"]["type"]["enum"] == list(kinds)
    for kind, theirs in kinds.items():
        fields = {key: value for key, value in theirs["properties"].items() if key != "type"}
        assert {key: operation["properties"][key] for key in fields} == fields
        call = Call(tool="apply_patch", args={"operation": {"type": kind, "path": "a"}})
        if "diff" in theirs["required"]:
            with pytest.raises(InvalidInput, match="diff"):
                next(calls_of_ours(row("openai", "apply_patch"), call))
    assert same(shape(row("openai", "shell").schema["properties"]["action"])) == same(shapes["action"])


def test_the_grammars_literals_are_those_that_our_parser_reads():
    patch = (
        "*** Begin Patch\n*** Add File: a\n+x\n*** Delete File: b\n*** Update File: c\n*** Move to: d\n"
        "@@ scope\n keep\n-old\n+new\n*** End of File\n*** End Patch\n"
    )
    assert [file.action for file in parse_patch(patch)] == ["add", "delete", "update"]
    marks = [line for line in patch.splitlines() if line.startswith("***")]
    assert all(f'"{mark.partition(": ")[0]}' in PATCH_GRAMMAR for mark in marks)


def test_the_page_names_every_dialect_and_its_tools():
    page = (Path(__file__).parents[4] / "docs/how-to/dialects.md").read_text()
    lines = {line.split("`")[1]: line for line in page.splitlines() if line.startswith("| `")}
    assert list(lines) == list(DIALECTS)
    for dialect, rows in DIALECTS.items():
        assert [each.name for each in rows if f"`{each.name}`" not in lines[dialect]] == []


def test_every_dialect_is_plain_json_with_descriptions_of_our_own():
    for rows in DIALECTS.values():
        assert len({each.name for each in rows}) == len(rows)
        for each in rows:
            assert json.loads(json.dumps(each.schema)) == each.schema
            assert each.description.endswith(".")
            assert len(each.description) < 120
