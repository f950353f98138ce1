"""Names that are understood beside ours: each means one parameter of its tool, and is none itself."""

import importlib
import pkgutil
from collections.abc import Mapping
from typing import get_args

import pytest
from pydantic import BaseModel

import handtools.tools
from handtools.core.tool import Tool
from handtools.runtime.arguments import PARAMETER_ALIASES

Table = Mapping[str, Mapping[str, tuple[str, ...]]]


def all_tools() -> dict[str, Tool]:
    """Every tool of ours, by its name."""
    names = [found.name for found in pkgutil.iter_modules(handtools.tools.__path__) if not found.ispkg]
    homes = [importlib.import_module(f"handtools.tools.{name}") for name in names]
    found = [value for home in homes for value in vars(home).values() if isinstance(value, Tool)]
    return {one.name: one for one in found}


def models(tool: Tool) -> list[type[BaseModel]]:
    """What a call consists of: the arguments, and the objects in their lists."""
    inner = [item for field in tool.params.model_fields.values() for item in get_args(field.annotation)]
    return [tool.params, *(one for one in inner if isinstance(one, type) and issubclass(one, BaseModel))]


def collisions(table: Table) -> list[str]:
    """What the table says of no tool, or twice."""
    tools = all_tools()
    problems = [f"{name} is no tool" for name in table if name not in tools]
    for name in table.keys() & tools.keys():
        row, taken = table[name], [set(model.model_fields) for model in models(tools[name])]
        problems += [f"{name} has no {one}" for one in row if not any(one in own for own in taken)]
        for own in taken:
            meant = [alias for parameter in own & row.keys() for alias in row[parameter]]
            problems += [f"{name}: {alias} is a parameter" for alias in sorted(own.intersection(meant))]
            problems += [
                f"{name}: {alias} means two" for alias in sorted({a for a in meant if meant.count(a) > 1})
            ]
    return problems


def test_no_alias_collides():
    assert collisions(PARAMETER_ALIASES) == []


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        ({"raed": {"path": ("file",)}}, "raed is no tool"),
        ({"read": {"pth": ("file",)}}, "read has no pth"),
        ({"read": {"path": ("view",)}}, "read: view is a parameter"),
        ({"read": {"path": ("file",), "view": ("file",)}}, "read: file means two"),
        ({"multi_edit": {"old_string": ("insert_line",)}}, "multi_edit: insert_line is a parameter"),
    ],
)
def test_a_collision_is_seen(row, problem):
    assert problem in collisions(row)
