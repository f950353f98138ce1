"""The shapes of vendors' tools that are kept as files are those of the packages, where one is installed."""

import importlib
import json
from importlib.metadata import version
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from handtools import coding
from handtools.core.dialects.openai import PATCH_GRAMMAR
from handtools.core.tool import json_schema
from tests.adapters.new_process import RUN
from tests.unit.core.dialects.published_shapes import grammar_structure, recorded, shape

COMMANDS = ("view", "create", "str_replace", "insert", "delete", "rename")
TYPED = (
    "tool_bash_20250124",
    "tool_text_editor_20250124",
    "tool_text_editor_20250429",
    "tool_text_editor_20250728",
    "memory_tool_20250818",
)


def literals(typed_dict: Any) -> dict[str, str]:
    """The fields of a definition that have only one value."""
    hints = get_type_hints(typed_dict)
    return {name: get_args(hints[name])[0] for name in ("type", "name") if name in hints}


def anthropic_shapes() -> dict[str, Any]:
    beta = importlib.import_module("anthropic.types.beta")

    def model(name: str) -> Any:
        return getattr(beta, name)

    tools = {
        name: shape(json_schema(model(f"BetaManagedAgentsAgentToolset20260401{name.title()}Input")))
        for name in ("bash", "read", "write", "edit", "glob", "grep")
    }
    commands = {
        name: shape(json_schema(model(f"BetaMemoryTool20250818{name.title().replace('_', '')}Command")))
        for name in COMMANDS
    }
    definitions = {}
    for name in TYPED:
        camel = "".join(part.title() for part in name.split("_"))
        one = literals(model(f"Beta{camel}Param"))
        definitions[one["type"]] = one
    return {"agent_toolset_20260401": tools, "memory_20250818": commands, "definitions": definitions}


def openai_shapes() -> dict[str, Any]:
    responses = importlib.import_module("openai.types.responses")
    patches = importlib.import_module("openai.types.responses.response_apply_patch_tool_call")
    shells = importlib.import_module("openai.types.responses.response_function_shell_tool_call")
    operations = {
        name: shape(json_schema(getattr(patches, f"Operation{name.title().replace('_', '')}")))
        for name in ("create_file", "update_file", "delete_file")
    }
    definitions = {
        literals(param)["type"]: literals(param)
        for param in (responses.ApplyPatchToolParam, responses.FunctionShellToolParam)
    }
    return {
        "operation": operations,
        "action": shape(json_schema(shells.Action)),
        "definitions": definitions,
    }


def numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:3])


PACKAGES = {"anthropic": anthropic_shapes, "openai": openai_shapes}


@pytest.mark.parametrize("name", PACKAGES)
def test_the_kept_shapes_are_those_of_the_package(name: str) -> None:
    pytest.importorskip(name, reason=f"machine: {name} is in another environment")
    kept = recorded(name)
    if numbers(version(name)) < numbers(kept["version"]):
        pytest.skip("machine: the oldest version that we take, whose shapes are not kept")
    assert PACKAGES[name]() == kept["shapes"]


def test_the_grammar_is_that_of_the_package_but_that_a_file_may_only_be_moved() -> None:
    module = "agents.sandbox.capabilities.tools.apply_patch_tool"
    pytest.importorskip("agents", reason="machine: openai-agents is in another environment")
    theirs = grammar_structure(importlib.import_module(module)._APPLY_PATCH_CUSTOM_TOOL_GRAMMAR)
    ours = grammar_structure(PATCH_GRAMMAR)
    assert [row.replace("<10>?", "<10>") for row in ours] == theirs


@pytest.mark.anyio
async def test_answers_are_items_that_the_package_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("openai", reason="machine: openai is in another environment")
    from openai.types.responses import response_input_item_param as items
    from pydantic import TypeAdapter

    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    work = tmp_path / "work"
    work.mkdir()
    async with coding(work, policy=RUN) as box:
        view = box.in_dialect("openai")
        operation = {"type": "create_file", "path": "a.txt", "diff": "+a\n"}
        patched = await view.call("apply_patch", {"operation": operation})
        ran = await view.call("shell", {"action": {"commands": ["cat a.txt", "exit 3"]}})
    for result, item in ((patched, items.ApplyPatchCallOutput), (ran, items.ShellCallOutput)):
        TypeAdapter(item).validate_python({"call_id": "call_1", **json.loads(result.text)})
