"""The reference page of every tool, made from its code: `python -m tests.docs.tool_pages` writes them."""

import json
from pathlib import Path
from typing import Any

from pydantic import BaseModel, TypeAdapter

from handtools.core.tool import AnyTool, json_schema
from handtools.toolbox import EVERYTHING, built_in_tool
from handtools.tools.text_editor import text_editor

FOLDER = Path(__file__).parents[2] / "docs" / "reference" / "tools"
MADE = "<!-- Made from the code by `just docs`: change the tool, not this page. -->"


def pages() -> dict[str, str]:
    """Every page by its file name."""
    return {"index.md": _index(TOOLS)} | {f"{stem(tool)}.md": _page(tool) for tool in TOOLS}


def stem(tool: AnyTool) -> str:
    """The name of the tool's module; one that speaks as a vendor's has another name of its own."""
    return tool.run.__module__.rpartition(".")[2]


TOOLS: list[AnyTool] = sorted((*map(built_in_tool, EVERYTHING), text_editor()), key=stem)
"""Every tool of ours, the ones that no preset has included."""


def _index(tools: list[AnyTool]) -> str:
    rows = [
        f"| [`{stem(tool)}`]({stem(tool)}.md) | {_summary(tool)} | {_effects(tool)} |" for tool in tools
    ]
    head = [
        "# Tools",
        "",
        MADE,
        "",
        "| tool | what it does | what it may do to the world |",
        "|---|---|---|",
    ]
    return "\n".join([*head, *rows]) + "\n"


def _page(tool: AnyTool) -> str:
    parts = [
        f"# `{stem(tool)}`",
        MADE,
        _summary(tool),
        f"May do to the world: {_effects(tool)}.",
        "## What the model is told",
        "\n".join(f"> {line}" for line in tool.prompt.splitlines()),
        *(["## What its answers tell", tool.told_by_answers] if tool.told_by_answers else []),
        "## Parameters",
        _parameters(tool.params),
        "## Details",
        "What programs get beside the text:",
        _details(json_schema(tool.details)),
        "## Promises",
        "Each is above and carried by a test of the same id:",
        ", ".join(f"`{claim}`" for claim in sorted(tool.claims)) or "none",
    ]
    return "\n\n".join(parts) + "\n"


def _summary(tool: AnyTool) -> str:
    return tool.prompt.partition(". ")[0].partition(".\n")[0].rstrip(".") + "."


def _effects(tool: AnyTool) -> str:
    return ", ".join(sorted(tool.effects)) or "nothing"


def _parameters(model: type[BaseModel]) -> str:
    """Every parameter, those that no model is told of included, with what people are told of it."""
    told = json_schema(model)["properties"]
    rows = ["| name | type | required | default | meaning |", "|---|---|---|---|---|"]
    for name, field in model.model_fields.items():
        required = field.is_required()
        default = "" if required or field.default is None else f"`{json.dumps(field.default)}`"
        meaning = (field.title or field.description or "").replace("|", "\\|")
        shown = field.alias or name
        if shown not in told:
            meaning += " For programs: models are not told of it."
        kind = _kind(told.get(shown) or TypeAdapter(field.annotation).json_schema())
        rows.append(f"| `{shown}` | {kind} | {'yes' if required else 'no'} | {default} | {meaning} |")
    return "\n".join(rows)


def _details(fields: dict[str, Any]) -> str:
    rows = ["| name | type | always there |", "|---|---|---|"]
    required = fields.get("required", [])
    rows += [
        f"| `{name}` | {_kind(field)} | {'yes' if name in required else 'no'} |"
        for name, field in fields["properties"].items()
    ]
    return "\n".join(rows)


def _kind(field: dict[str, Any]) -> str:
    if "enum" in field:
        return " or ".join(f"`{value}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(_kind(kind) for kind in field["anyOf"])
    if field.get("type") == "array":
        return f"list of {_kind(field.get('items', {}))}"
    return str(field.get("type", "any"))


def main() -> None:
    """Write the pages, and remove those of tools that are gone."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    wanted = pages()
    for path in FOLDER.glob("*.md"):
        if path.name not in wanted:
            path.unlink()
    for name, text in wanted.items():
        (FOLDER / name).write_text(text, "utf-8")


if __name__ == "__main__":
    main()
