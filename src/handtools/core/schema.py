"""JSON schemas of parameters, in the dialects that providers accept."""

from typing import Any, Literal

from pydantic import BaseModel

Dialect = Literal["plain", "strict", "gemini"]
"""plain: Anthropic, MCP and most others. strict: OpenAI's strict mode. gemini: no keywords beyond its subset."""

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
STRICT_DROPS = {"default", "minLength", "maxLength", "format", "examples"}


def schema(model: type[BaseModel], dialect: Dialect = "plain") -> dict[str, Any]:
    """The model's schema: references put in place, titles left out, then narrowed to the dialect."""
    full = model.model_json_schema()
    plain = _inline(full, full.get("$defs", {}))
    plain.pop("$defs", None)
    plain.pop("description", None)
    plain.setdefault("properties", {})
    if dialect == "strict":
        narrowed: dict[str, Any] = _strict(plain)
        return narrowed
    return _gemini(plain) if dialect == "gemini" else plain


def _inline(node: Any, definitions: dict[str, Any]) -> Any:
    if isinstance(node, list):
        return [_inline(item, definitions) for item in node]
    if not isinstance(node, dict):
        return node
    if reference := node.get("$ref"):
        beside = {key: value for key, value in node.items() if key != "$ref"}
        return _inline(definitions[reference.rpartition("/")[2]] | beside, definitions)
    # A property may be called "title": only the keyword is dropped, and that is never a schema.
    kept = {k: v for k, v in node.items() if not (k == "title" and isinstance(v, str))}
    return _optional({key: _inline(value, definitions) for key, value in kept.items()})


def _optional(node: dict[str, Any]) -> dict[str, Any]:
    """`X | None` with a default of None is simply an optional X: leaving it out says the same."""
    kinds = node.get("anyOf")
    if not kinds or {"type": "null"} not in kinds or node.get("default", 0) is not None or len(kinds) != 2:
        return node
    only: dict[str, Any] = next(kind for kind in kinds if kind != {"type": "null"})
    return only | {key: value for key, value in node.items() if key not in {"anyOf", "default"}}


def _strict(node: Any) -> Any:
    """Every property required, optional ones nullable, nothing additional."""
    if isinstance(node, list):
        return [_strict(item) for item in node]
    if not isinstance(node, dict):
        return node
    result = {key: _strict(value) for key, value in node.items() if key not in STRICT_DROPS}
    if node.get("type") == "object":
        required = set(node.get("required", ()))
        # One by one: a property may be called "format" or "default".
        fields = {name: _strict(value) for name, value in node.get("properties", {}).items()}
        result["properties"] = {k: v if k in required else _nullable(v) for k, v in fields.items()}
        result["required"] = list(fields)
        result["additionalProperties"] = False
    return result


def _nullable(node: dict[str, Any]) -> dict[str, Any]:
    return {"anyOf": [node, {"type": "null"}]}


def _gemini(node: dict[str, Any]) -> dict[str, Any]:
    if "const" in node:
        node = {**node, "enum": [node["const"]]}
    kept = {key: value for key, value in node.items() if key in GEMINI_KEYS}
    if "properties" in kept:
        kept["properties"] = {key: _gemini(value) for key, value in kept["properties"].items()}
    if "items" in kept:
        kept["items"] = _gemini(kept["items"])
    if "anyOf" in kept:
        kept["anyOf"] = [_gemini(kind) for kind in kept["anyOf"]]
    return kept
