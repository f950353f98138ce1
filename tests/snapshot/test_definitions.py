"""What models are told: every prompt and every schema, in each dialect, word for word."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from handtools.core.tool import AnyTool, SchemaDialect, json_schema
from tests.docs.tool_pages import TOOLS, stem

Matches = Callable[[str, str], None]
DIALECTS: list[SchemaDialect] = ["plain", "strict", "gemini"]


def by_name(value: object) -> str | None:
    return stem(value) if hasattr(value, "run") else None


@pytest.mark.parametrize("tool", TOOLS, ids=by_name)
def test_the_prompt_is_as_reviewed(tool: AnyTool, matches: Matches) -> None:
    assert "{" not in tool.prompt, "a limit was not filled in"
    assert "claim:" not in tool.prompt
    matches(f"{stem(tool)}/prompt.md", tool.prompt + "\n")


@pytest.mark.parametrize("dialect", DIALECTS)
@pytest.mark.parametrize("tool", TOOLS, ids=by_name)
def test_the_schema_is_as_reviewed(tool: AnyTool, dialect: SchemaDialect, matches: Matches) -> None:
    matches(f"{stem(tool)}/{dialect}.json", json.dumps(json_schema(tool.params, dialect), indent=2) + "\n")


@pytest.mark.parametrize("tool", TOOLS, ids=by_name)
def test_the_schema_of_the_details_is_as_reviewed(tool: AnyTool, matches: Matches) -> None:
    matches(f"{stem(tool)}/details.json", json.dumps(json_schema(tool.details), indent=2) + "\n")


def test_no_snapshot_is_left_of_a_tool_that_is_gone() -> None:
    kept = {path.name for path in (Path(__file__).parent / "kept").iterdir()}
    assert kept == {stem(tool) for tool in TOOLS}
