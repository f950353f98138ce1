"""A tool as a vendor's models know it: name, schema, and the calls of our tools that implement it."""

from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, Field, create_model

from handtools.core.result import Result, Text

Args: TypeAlias = Mapping[str, Any]
OurCalls: TypeAlias = Generator[tuple[str, dict[str, Any]], Result[Any], Result[Any]]
"""Yields our tool's name and arguments, is sent its result, and returns the result in the vendor's form."""
Rendering: TypeAlias = Callable[[Result[Any], Args], Result[Any]]


@dataclass(frozen=True, kw_only=True)
class DialectTool:
    """One row of a dialect's table."""

    name: str
    tools: tuple[str, ...]
    """Our tools that this tool needs; it is offered if all of them are."""
    description: str
    schema: Mapping[str, Any]
    """The vendor's schema of the arguments, without the vendor's descriptions."""
    calls: Callable[[Args], OurCalls]
    definition: Mapping[str, Any] = field(default_factory=dict)
    """Entry that a request to the vendor's API has instead of a schema; empty for a plain function."""

    @cached_property
    def params(self) -> type[BaseModel]:
        """A pydantic model that validates arguments against the schema."""
        return _pydantic_model_of_schema(self.name, self.schema)


Dialect: TypeAlias = tuple[DialectTool, ...]

STRING: Mapping[str, Any] = {"type": "string"}
STRINGS: Mapping[str, Any] = {"type": "array", "items": STRING}
NUMBER: Mapping[str, Any] = {"type": "number"}
INTEGER: Mapping[str, Any] = {"type": "integer"}
INTEGERS: Mapping[str, Any] = {"type": "array", "items": INTEGER}
BOOLEAN: Mapping[str, Any] = {"type": "boolean"}
MAX_DESCRIPTION_CHARS = 200


def object_schema(properties: Mapping[str, Any], *required: str, closed: bool = False) -> dict[str, Any]:
    """Return the schema of an object; with `closed` it allows no other properties."""
    schema: dict[str, Any] = {"type": "object", "properties": dict(properties)}
    if required:
        schema["required"] = list(required)
    return schema | {"additionalProperties": False} if closed else schema


_SCALARS: Mapping[str, Any] = {"string": str, "integer": int, "number": int | float, "boolean": bool}


def _pydantic_model_of_schema(name: str, schema: Mapping[str, Any]) -> type[BaseModel]:
    required = set(schema.get("required", ()))
    fields: dict[str, Any] = {}
    for number, (key, node) in enumerate(schema["properties"].items()):
        # Numbered field names, because a vendor's parameter may be called `-A`.
        default: Any = ... if key in required else None
        fields[f"field_{number}"] = (_annotation_of_schema(key, node), Field(default, alias=key))
    return create_model(name, **fields)


def _annotation_of_schema(name: str, node: Mapping[str, Any]) -> Any:
    if "enum" in node:
        return Literal[tuple(node["enum"])]
    if node["type"] == "array":
        return list[_annotation_of_schema(name, node["items"])]  # type: ignore[misc]
    return _pydantic_model_of_schema(name, node) if node["type"] == "object" else _SCALARS[node["type"]]


def map_to_one_call(
    tool: str,
    params: Mapping[str, str | Callable[[Any], Mapping[str, Any]] | None] | None = None,
    *,
    render: Rendering = lambda result, _: result,
    **constants: Any,
) -> Callable[[Args], OurCalls]:
    """Map a vendor's tool to a single call of our tool.

    `params` maps the vendor's parameter names to ours, to None if we ignore the parameter, or to a function
    that converts its value. Names that are not in it stay the same. `constants` are arguments of every
    call.
    """
    named = params or {}

    def calls(args: Args) -> OurCalls:
        ours = dict(constants)
        for name, value in args.items():
            meant = named.get(name, name)
            if callable(meant):
                ours |= meant(value)
            elif meant is not None:
                ours[meant] = value
        result = yield tool, ours
        return render(result, args) if result.ok else _with_vendor_parameter_names(result, named)

    return calls


def _with_vendor_parameter_names(result: Result[Any], params: Mapping[str, Any]) -> Result[Any]:
    """Use the vendor's parameter names in the error about invalid arguments."""
    if result.fault is None or result.fault.code != "invalid_input":
        return result
    text = result.text
    for theirs, ours in params.items():
        if isinstance(ours, str):
            text = text.replace(f"`{ours}`", f"`{theirs}`")
    return with_text_replaced(result, text)


def with_text_replaced(result: Result[Any], text: str) -> Result[Any]:
    """Return a result with its text replaced; images and documents are kept."""
    return result.with_fields(
        content=(Text(text), *(block for block in result.content if not isinstance(block, Text)))
    )


def milliseconds_to_argument(name: str) -> Callable[[float], Mapping[str, Any]]:
    """Return a function that maps milliseconds to our argument `name` in seconds, and 0 to no argument."""
    return lambda value: {name: value / 1000} if value > 0 else {}


def flag_to_arguments(**arguments: Any) -> Callable[[bool], Mapping[str, Any]]:
    """Return a function that maps a flag to these arguments of our tool if it is set, otherwise to none."""
    return lambda value: arguments if value else {}


def description_argument(text: str) -> dict[str, Any]:
    """Map a command's description to ours, cut to the maximum length."""
    return {"description": text[:MAX_DESCRIPTION_CHARS]} if text else {}
