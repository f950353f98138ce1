"""Arguments: checked against the tool's model, with a message that says how to mend them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError

from handtools.core.errors import InvalidInput
from handtools.core.tool import AnyTool
from handtools.runtime.aliases import parameters, understood
from handtools.text.paths import near


def validate(tool: AnyTool, args: Mapping[str, Any]) -> BaseModel:
    """The arguments as the tool's parameters; raises `InvalidInput` naming every problem at once."""
    model: type[BaseModel] = tool.params
    known = parameters(model)
    args = understood(tool.name, model, args)
    problems = [_unknown(name, known) for name in args if name not in known]
    params: BaseModel | None = None
    try:
        params = tool.params.model_validate(args)
    except ValidationError as failure:
        params = _from_text(tool, args, failure)
        if params is None:
            problems += [
                _problem(error) for error in failure.errors(include_url=False, include_context=False)
            ]
    if params is not None:
        problems += _unnamed(params)
    if params is None or problems:
        hint = f"`{tool.name}` takes: {', '.join(known) or 'nothing'}."
        raise InvalidInput(" ".join(problems), hint=hint)
    return params


def _unnamed(params: BaseModel) -> list[str]:
    """A path that a call must name and that names nothing; where it may be left out, empty is the root."""
    path = type(params).model_fields.get("path")
    empty = path is not None and path.is_required() and getattr(params, "path", None) == ""
    return ["`path` is empty."] if empty else []


def _from_text(tool: AnyTool, args: Mapping[str, Any], failure: ValidationError) -> BaseModel | None:
    """The parameters, where lists and objects came as JSON text: a common slip that can mean nothing else."""
    wanted = {"list_type", "dict_type", "model_type", "model_attributes_type"}
    mended = dict(args)
    for error in failure.errors(include_url=False, include_context=False):
        if error["type"] not in wanted or len(error["loc"]) != 1 or not isinstance(error["input"], str):
            return None
        try:
            mended[str(error["loc"][0])] = json.loads(error["input"])
        except ValueError:
            return None
    try:
        params: BaseModel = tool.params.model_validate(understood(tool.name, tool.params, mended))
        return params
    except ValidationError:
        return None


def _unknown(name: str, known: Iterable[str]) -> str:
    close = near(name, list(known), most=1)
    return f"`{name}` is not a parameter" + (f"; did you mean `{close[0]}`?" if close else ".")


def _problem(error: Any) -> str:
    where = ".".join(str(part) for part in error["loc"]) or "arguments"
    if error["type"] == "missing":
        return f"`{where}` is missing."
    given = repr(error["input"])
    shown = given if len(given) <= 60 else f"{given[:57]}..."
    return f"`{where}`: {error['msg']} (given {shown})."
