"""The `Tool` type and the `@tool` decorator: a typed async function with prompt, effects and schemas."""

import inspect
import re
import sys
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from importlib import resources
from typing import Any, Generic, Literal, TypeVar, get_args, get_type_hints, overload

from pydantic import BaseModel
from pydantic_core import from_json, to_json

from handtools.core.callbacks import ToolRequirement
from handtools.core.context import Context
from handtools.core.effects import EffectKind
from handtools.core.errors import UsageError
from handtools.core.result import Result

P = TypeVar("P", bound=BaseModel)
D = TypeVar("D", bound=BaseModel)

ToolFunction = Callable[[Context, P], Awaitable[Result[D]]]
PathsOfCall = Callable[[P], Iterable[str]]

PROMPT_WITH_TOOL_MARK = re.compile(r"[ \t]*<!--\s*with:\s*(\w+)\s*-->")
"""Marks a prompt line that is included only if the named tool is offered too."""
_QUOTED_NAME = re.compile(r"`(\w+)`")
TESTED_CLAIM_COMMENT_PATTERN = re.compile(r"[ \t]*<!--\s*claim:\s*([\w.]+)\s*-->")
PROMPT_END_MARK = re.compile(r"^<!--\s*told by the result\s*-->$", re.MULTILINE)
"""Ends the prompt. The text after it is documented and tested, but models learn it from tool results."""


@dataclass(frozen=True)
class Tool(Generic[P, D]):
    """A tool made by `@tool` from an async function; pass it to a toolbox, there is no registry."""

    run: ToolFunction[P, D]
    name: str
    params: type[P]
    details: type[D]
    effects: frozenset[EffectKind]
    paths: PathsOfCall[P]
    """Returns the paths named in a call's arguments, so that they can be locked before it runs."""
    needs: ToolRequirement | None = None
    """The callback or search engine without which the tool is not offered."""
    vendor_type: str = ""
    """Type name of the tool if a vendor's API has it built in; requests send it instead of a schema."""

    def __call__(self, ctx: Context, params: P) -> Awaitable[Result[D]]:
        return self.run(ctx, params)

    @property
    def reads_only(self) -> bool:
        """Whether the tool's only effects are reading files and visiting web pages."""
        return self.effects <= {"read", "visit"}

    @property
    def prompt(self) -> str:
        """The prompt if no other tool is offered."""
        return self.prompt_beside(())

    def prompt_beside(self, offered: Collection[str]) -> str:
        """Return the prompt with limits filled in, without markers and lines on tools not offered."""
        rows = (
            row
            for row in self._prompt_parts[0].splitlines()
            if all(name in offered for name in PROMPT_WITH_TOOL_MARK.findall(row))
        )
        return PROMPT_WITH_TOOL_MARK.sub("", "\n".join(rows)).strip()

    @property
    def told_by_answers(self) -> str:
        """Documented behaviour that is not in the prompt, because models see it in tool results."""
        return "".join(self._prompt_parts[1:]).strip()

    @cached_property
    def _prompt_parts(self) -> list[str]:
        """The prompt with limits filled in, and the text after its end mark."""
        module = sys.modules[self.run.__module__]
        filled = re.sub(r"\{([A-Z_]+)\}", lambda m: f"{getattr(module, m[1]):,}", self._prompt_source)
        return PROMPT_END_MARK.split(TESTED_CLAIM_COMMENT_PATTERN.sub("", filled))

    @cached_property
    def claims(self) -> frozenset[str]:
        """Ids of the claims in the prompt and after its end mark, each of which needs a test."""
        return frozenset(TESTED_CLAIM_COMMENT_PATTERN.findall(self._prompt_source))

    @cached_property
    def _prompt_source(self) -> str:
        """The prompt source: `<module>.md` next to the tool's module, or the function's docstring."""
        package, _, stem = self.run.__module__.rpartition(".")
        page = resources.files(package) / f"{stem}.md" if package else None
        # Compare the function's name, because a vendor's tool is offered under another name.
        own = stem == self.run.__name__.removesuffix("_")
        if page is not None and own and page.is_file():
            return page.read_text("utf-8")
        return inspect.getdoc(self.run) or ""


AnyTool = Tool[Any, Any]


def with_tool_names(text: str, names: Mapping[str, str], own: Collection[str] = ()) -> str:
    """Replace the tool names in a prompt, which are in backquotes; names in `own` are parameters and stay."""
    renamed = {name: shown for name, shown in names.items() if name not in own and name != shown}
    return _QUOTED_NAME.sub(lambda found: f"`{renamed.get(found[1], found[1])}`", text) if renamed else text


def schema_with_tool_names(schema: Any, names: Mapping[str, str], own: Collection[str] = ()) -> Any:
    """Replace tool names in the descriptions of a schema."""
    if isinstance(schema, list):
        return [schema_with_tool_names(item, names, own) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: with_tool_names(value, names, own)
        if key == "description" and isinstance(value, str)
        else schema_with_tool_names(value, names, own)
        for key, value in schema.items()
    }


@overload
def tool(run: ToolFunction[P, D], /) -> Tool[P, D]: ...
@overload
def tool(
    *,
    effects: Iterable[EffectKind] = ...,
    paths: PathsOfCall[Any] | None = ...,
    needs: ToolRequirement | None = ...,
) -> Callable[[ToolFunction[P, D]], Tool[P, D]]: ...
def tool(
    run: ToolFunction[P, D] | None = None,
    /,
    *,
    effects: Iterable[EffectKind] = ("read", "change"),
    paths: PathsOfCall[Any] | None = None,
    needs: ToolRequirement | None = None,
) -> Tool[P, D] | Callable[[ToolFunction[P, D]], Tool[P, D]]:
    """Decorator that makes a `Tool` of an async function; name and types come from the function."""

    def make(run: ToolFunction[P, D]) -> Tool[P, D]:
        params, details = _params_and_details_types(run)
        name = run.__name__.removesuffix("_")
        return Tool(run, name, params, details, frozenset(effects), paths or _path_fields, needs)

    return make if run is None else make(run)


def _params_and_details_types(run: ToolFunction[P, D]) -> tuple[type[P], type[D]]:
    hints = get_type_hints(run)
    result = hints.pop("return", None)
    hints.pop("ctx", None)
    params = next(iter(hints.values()), None)
    details = next(iter(get_args(result)), None)
    for found, where in ((params, "parameter"), (details, "Result[...]")):
        if not (isinstance(found, type) and issubclass(found, BaseModel)):
            raise UsageError(f"{run.__name__}: annotate the {where} with a pydantic model.")
    return params, details  # type: ignore[return-value]


def _path_fields(params: BaseModel) -> Iterable[str]:
    path = getattr(params, "path", None)
    return [path] if isinstance(path, str) else []


SchemaDialect = Literal["plain", "strict", "gemini"]
"""JSON schema dialect: plain (Anthropic, MCP and most others), OpenAI's strict mode, Gemini's subset."""

GEMINI_KEYS = {
    "type",
    "format",
    "description",
    "nullable",
    "enum",
    "items",
    "properties",
    "required",
    "anyOf",
}
STRICT_DROPS = {"default", "format", "examples"}
UNTOLD_KEYWORDS = {
    "title", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minLength", "maxLength",
    "minItems", "maxItems", "pattern",
}  # fmt: skip
"""Keywords removed to save tokens in every request; a refusal names a limit when it is exceeded."""
EVIDENT_DEFAULTS: tuple[Any, ...] = (None, False, "", ".", [])


def json_schema(model: type[BaseModel], dialect: SchemaDialect = "plain") -> dict[str, Any]:
    """Return the JSON schema of a pydantic model in a dialect.

    References are inlined; titles, limits and obvious defaults are left out, since they are of no use to a
    model.
    """
    # A copy, because SDKs modify the schemas that they are given.
    copied: dict[str, Any] = from_json(_schema_text(model, dialect))
    return copied


@lru_cache(maxsize=1024)
def _schema_text(model: type[BaseModel], dialect: SchemaDialect) -> bytes:
    """Return the schema as JSON; cached, because pydantic takes milliseconds to build it."""
    return to_json(_built_schema(model, dialect))


def _built_schema(model: type[BaseModel], dialect: SchemaDialect) -> dict[str, Any]:
    full = model.model_json_schema()
    plain = _simplified_schema(full, full.get("$defs", {}))
    plain.pop("$defs", None)
    plain.pop("description", None)
    plain.setdefault("properties", {})
    return narrowed_schema(plain, dialect)


def narrowed_schema(plain: Mapping[str, Any], dialect: SchemaDialect) -> dict[str, Any]:
    """Return a copy of a plain JSON schema with only the keywords that a dialect permits."""
    copied: dict[str, Any] = from_json(to_json(plain))
    if dialect == "strict":
        narrowed: dict[str, Any] = _strict_schema(copied)
        return narrowed
    return _gemini_schema(copied) if dialect == "gemini" else copied


def _simplified_schema(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_simplified_schema(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if reference := node.get("$ref"):
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _simplified_schema(definitions[reference.rpartition("/")[2]] | beside, definitions)
    kept = {
        key: _simplified_schema(value, definitions)
        for key, value in node.items()
        if not _says_nothing(key, value)
    }
    return _without_evident_default(_without_null_option(kept))


def _says_nothing(key: str, value: Any) -> bool:
    """Whether a keyword is of no use to a model.

    A dict as value means that the key is not a keyword, but a property with that name.
    """
    untold = key in UNTOLD_KEYWORDS or (key == "additionalProperties" and value is False)
    return untold and not isinstance(value, dict)


def _without_evident_default(node: dict[str, Any]) -> dict[str, Any]:
    """Leave out an obvious default: false, empty, `.`, or the first of the enum values."""
    choice = node.get("enum")
    first = choice[:1] if isinstance(choice, list) else []
    evident = "default" in node and node["default"] in (*EVIDENT_DEFAULTS, *first)
    return {key: value for key, value in node.items() if key != "default"} if evident else node


def _without_null_option(node: dict[str, Any]) -> dict[str, Any]:
    """Simplify the schema of `X | None` with default None to an optional X."""
    kinds = node.get("anyOf")
    if not kinds or {"type": "null"} not in kinds or node.get("default", 0) is not None or len(kinds) != 2:
        return node
    only: dict[str, Any] = next(kind for kind in kinds if kind != {"type": "null"})
    return only | {key: value for key, value in node.items() if key not in {"anyOf", "default"}}


def _strict_schema(node: Any) -> Any:
    """Convert to OpenAI's strict mode: all properties required, optional ones nullable, no others."""
    if isinstance(node, list):
        return [_strict_schema(item) for item in node]
    if not isinstance(node, dict):
        return node
    result = {key: _strict_schema(value) for key, value in node.items() if key not in STRICT_DROPS}
    if node.get("type") == "object":
        required = set(node.get("required", ()))
        # Property by property, because one may be called "format" or "default".
        fields = {name: _strict_schema(value) for name, value in node.get("properties", {}).items()}
        result["properties"] = {k: v if k in required else _nullable(v) for k, v in fields.items()}
        result["required"] = list(fields)
        result["additionalProperties"] = False
    return result


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [node, {"type": "null"}]}


def _gemini_schema(node: dict[str, Any]) -> dict[str, Any]:
    if "const" in node:
        node = {**node, "enum": [node["const"]]}
    kept = {key: value for key, value in node.items() if key in GEMINI_KEYS}
    if "properties" in kept:
        kept["properties"] = {key: _gemini_schema(value) for key, value in kept["properties"].items()}
    if "items" in kept:
        kept["items"] = _gemini_schema(kept["items"])
    if "anyOf" in kept:
        kept["anyOf"] = [_gemini_schema(kind) for kind in kept["anyOf"]]
    return kept
