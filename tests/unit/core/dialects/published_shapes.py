"""The vendors' published shapes: kept as files beside this one, without the vendors' sentences."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

PUBLISHED = Path(__file__).parent / "published"


def recorded(name: str) -> dict[str, Any]:
    """One file: where it is from, the version, and the shapes."""
    kept: dict[str, Any] = json.loads((PUBLISHED / f"{name}.json").read_text())
    return kept


def shape(schema: Any) -> Any:
    """A schema without its sentences, and without saying that more is permitted, which is so anyway.

    A property may be called `description`, so only texts go.
    """
    if isinstance(schema, list):
        return [shape(each) for each in schema]
    if not isinstance(schema, Mapping):
        return schema
    left_out = {"description", "$schema", "title"}
    return {
        key: shape(value)
        for key, value in schema.items()
        if not (key in left_out and isinstance(value, str))
        and (key, value) != ("additionalProperties", True)
    }


def grammar_structure(grammar: str) -> list[str]:
    """The rules of a Lark grammar in order, with numbers in place of names: two that are equal mean the same."""
    rules = [row for row in grammar.splitlines() if row and not row.startswith("%")]
    numbers = {row.partition(":")[0]: f"<{number}>" for number, row in enumerate(rules)}
    # Names outside of quotes and patterns; what stands after `->` is only a label.
    parts = re.compile(r'"[^"]*"|/[^/]*/|[a-z_]+')
    return [
        parts.sub(lambda part: numbers.get(part[0], part[0]), row.partition("->")[0]).strip()
        for row in rules
    ]


def client_tools(tools: list[dict[str, Any]]) -> dict[str, Any]:
    """The tools of a request of any client by name: the shape of their arguments, or of their grammar."""
    found: dict[str, Any] = {}
    for tool in tools:
        for each in tool.get("functionDeclarations", [tool]):
            one = each.get("function", each)
            if one.get("type") == "custom":
                given = one["format"]
                rules = grammar_structure(given["definition"])
                found[one["name"]] = {"type": "custom", "syntax": given["syntax"], "rules": rules}
                continue
            schema = one.get("input_schema") or one.get("parameters") or one.get("parametersJsonSchema")
            if one.get("name") and schema:
                found[one["name"]] = shape(schema)
    return found
