"""CLI command `handtools tools`: list the available tools, with their argument schemas or token costs."""

import json
from dataclasses import asdict
from typing import Annotated

import typer

from handtools.cli import options
from handtools.cli.mcp_serve import PresetOption
from handtools.cli.open_workspace import open_toolbox_at
from handtools.cli.terminal import (
    make_plain_table,
    print_json,
    print_remark,
    print_text,
    stdout_console,
    table_cell,
)


def tokens(
    preset: PresetOption = None,
    dialect: Annotated[str, typer.Option(help="Schema dialect: plain, strict or gemini.")] = "plain",
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Estimate the tokens that the tool definitions cost.

    Counts what is sent to the provider: names, descriptions and argument schemas. The estimate is high.

    Example: handtools tokens --preset everything
    """
    from handtools.configuration import load_configuration
    from handtools.mcp.served_toolbox import open_preset
    from handtools.text.token_estimate import estimate_tokens

    if dialect not in {"plain", "strict", "gemini"}:
        raise typer.BadParameter("Must be plain, strict or gemini.", param_hint="--dialect")
    chosen = preset or load_configuration(workspace).preset
    costs: dict[str, int] = {}
    for one in open_preset(workspace, preset=chosen).definitions(dialect):  # type: ignore[arg-type]
        told = {"name": one.name, "description": one.description, "input_schema": one.input_schema}
        costs[one.name] = estimate_tokens(json.dumps(told))
    total = sum(costs.values())
    if as_json:
        print_json({"preset": chosen, "dialect": dialect, "tokens": costs, "total": total})
        return
    rows = make_plain_table("TOOL", "TOKENS")
    for name, cost in costs.items():
        rows.add_row(name, f"{cost:,}")
    rows.add_row("all", f"{total:,}")
    stdout_console().print(rows)
    print_remark("", "A high estimate of the definitions only; tool results come on top.")


def tools(
    schema: Annotated[bool, typer.Option("--schema", help="Show the arguments of each tool.")] = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """List the tools, including those of installed packages.

    Example: handtools tools --schema
    """
    with open_toolbox_at(workspace, plugins=True) as (toolbox, _):
        offered = toolbox.toolbox.definitions()
    if as_json:
        for definition in offered:
            print_json(asdict(definition))
    elif schema:
        for definition in offered:
            print_text(f"{definition.name}\n{json.dumps(definition.input_schema, indent=2)}\n")
    else:
        rows = make_plain_table("TOOL", "ACCESS", "DESCRIPTION")
        for definition in offered:
            does = "reads" if definition.reads_only else "changes"
            rows.add_row(definition.name, does, table_cell(_first_sentence(definition.description), 100))
        stdout_console().print(rows)
        print_remark("", "Arguments: handtools tools --schema")


def _first_sentence(description: str) -> str:
    """The first sentence of a tool's description."""
    return description.partition("\n")[0].partition(". ")[0].rstrip(".") + "."
