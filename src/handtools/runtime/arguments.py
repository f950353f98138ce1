"""Arguments of a tool call: rename aliases used by other products, then validate with the tool's model.

Also the names that other products give to our tools.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from itertools import pairwise
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from handtools.core.errors import InvalidInput
from handtools.core.tool import AnyTool
from handtools.text.paths import similar_names

if TYPE_CHECKING:
    from handtools.core.dialects.dialect_tool import DialectTool

_FILE = (
    "file_path", "filepath", "file", "filename", "file_name", "target_file", "absolute_path", "relative_path",
)  # fmt: skip
_FOLDER = (
    "directory", "dir", "dir_path", "directory_path", "folder", "target_directory", "search_path",
    "relative_workspace_path",
)  # fmt: skip
_EDIT = {
    "path": _FILE,
    "old_string": ("old_str", "old_text", "old", "search"),
    "new_string": ("new_str", "new_text", "new", "replace", "replacement"),
    "replace_all": ("all", "replace_every"),
    "description": ("instruction", "explanation", "display_description"),
}

PARAMETER_ALIASES: dict[str, dict[str, tuple[str, ...]]] = {
    "attach": {"paths": (*_FILE, "path", "files", "file_paths", "attachments")},
    "bash": {
        "command": ("cmd", "script", "command_line"),
        "cwd": ("workdir", "work_dir", "working_directory", "working_dir", *_FOLDER),
        "background": ("run_in_background", "is_background"),
        "description": ("explanation",),
    },
    "edit": _EDIT,
    "edit_agent": {"path": _FILE, "instructions": ("instruction", "prompt")},
    "fetch": {"url": ("uri", "link", "address")},
    "find": {
        "pattern": ("glob", "glob_pattern", "query", "name", "file_pattern"),
        "path": _FOLDER,
        "limit": ("max_results", "head_limit"),
    },
    "grep": {
        "pattern": ("regex", "query", "search", "search_pattern"),
        "path": (*_FILE, *_FOLDER),
        "include": ("glob", "glob_pattern", "file_pattern", "include_pattern"),
        "context": ("context_lines",),
        "limit": ("max_results", "head_limit"),
    },
    "jobs": {
        "job": ("id", "job_id", "bash_id", "shell_id", "task_id", "session_id"),
        "text": ("input", "stdin", "chars"),
    },
    "list": {"path": _FOLDER, "depth": ("max_depth",)},
    "lsp": {"path": _FILE, "operation": ("action", "method"), "symbol": ("name", "symbol_name")},
    "multi_edit": {**_EDIT, "edits": ("changes", "replacements")},
    "patch": {"patch": ("input", "patch_text", "diff")},
    "read": {
        "path": (*_FILE, "notebook_path"),
        "start_line": ("offset", "line_start", "start"),
        "end_line": ("line_end", "end"),
        "limit": ("line_count", "num_lines", "length"),
    },
    "skill": {"name": ("skill", "skill_name")},
    "task": {"prompt": ("instructions", "task"), "title": ("description",)},
    "think": {"thought": ("thoughts", "text")},
    "undo": {"name": (*_FILE, "path", "call_id", "id")},
    "web_search": {"query": ("q", "search_query", "search_term")},
    "write": {"path": _FILE, "content": ("contents", "file_text", "text", "file_content")},
}  # fmt: skip
"""Parameter names by tool, with the aliases that other products use."""

TOOL_ALIASES: dict[str, tuple[str, ...]] = {
    "bash": ("terminal", "shell", "run_command", "run_terminal_cmd", "execute_command", "exec"),
    "edit": ("edit_file", "str_replace", "str_replace_editor", "replace"),
    "fetch": ("web_fetch", "fetch_url", "browse"),
    "find": ("glob", "find_files", "file_search", "search_files"),
    "grep": ("search", "grep_search", "search_file_content", "ripgrep", "rg"),
    "list": ("ls", "dir", "list_directory", "list_dir", "list_files"),
    "patch": ("apply_patch",),
    "read": ("view", "cat", "open", "read_file", "open_file", "view_file"),
    "undo": ("redo", "revert", "undo_edit"),
    "web_search": ("google", "search_web"),
    "write": ("create", "create_file", "write_file", "write_to_file"),
}
"""Our tools, with names of similar tools in other products: suggested if a call names one of them."""


def _is_set(flag: Any) -> bool:
    return flag is True or str(flag).lower() in {"true", "1", "yes"}


_CONVERTED: dict[str, dict[str, Callable[[Any], dict[str, Any]]]] = {
    "edit": {"mode": lambda mode: {} if mode == "edit" else {"mode": mode}},
    "grep": {
        **dict.fromkeys(
            ("ignore_case", "case_insensitive", "_i"), lambda flag: {"case_sensitive": not _is_set(flag)}
        ),
        **dict.fromkeys(
            ("literal", "fixed_strings"), lambda flag: {"syntax": "literal"} if _is_set(flag) else {}
        ),
    },
}
"""Parameters of other products by tool, each with the arguments of our tool that its value means."""
_OF_WRITE = {("edit", "mode"), ("edit", "content")}
"""Parameters that other products' edit tools have for a whole file."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def resolve_aliases(tool: str, model: type[BaseModel], args: Mapping[str, Any]) -> dict[str, Any]:
    """Rename arguments given under known aliases to the tool's parameter names.

    The tool's own names are never renamed. If a parameter and its alias are both given, the alias is
    renamed only if the values are equal.
    """
    own = parameters_of(model)
    renamed = {name: value for name, value in args.items() if name in own}
    for name, value in args.items():
        convert = None if name in own else _CONVERTED.get(tool, {}).get(_snake(name))
        meant = convert(value) if convert else {_parameter_meant(tool, model, name): value}
        taken = any(renamed.get(key, one) != one for key, one in meant.items())
        renamed |= {name: value} if taken else meant
    for name, item in _item_models(model).items():
        single = [key for key in renamed if key not in own and _is_parameter(tool, item, key)]
        if single and name not in renamed:
            # The only item of the list, given without the list.
            renamed[name] = [{key: renamed.pop(key) for key in single}]
    for name, item in _item_models(model).items():
        given = renamed.get(name)
        if isinstance(given, list):
            renamed[name] = [
                resolve_aliases(tool, item, one) if isinstance(one, dict) else one for one in given
            ]
    return renamed


@lru_cache(maxsize=256)
def parameters_of(model: type[BaseModel]) -> dict[str, Any]:
    """Return the parameter names of a pydantic model, in order, with their type annotations."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


@lru_cache(maxsize=4096)
def _parameter_meant(tool: str, model: type[BaseModel], name: str) -> str:
    own, plain = parameters_of(model), _snake(name)
    if name in own or plain in own:
        return name if name in own else plain
    aliases = PARAMETER_ALIASES.get(tool, {})
    return next((parameter for parameter in own if plain in aliases.get(parameter, ())), name)


def _is_parameter(tool: str, model: type[BaseModel], name: str) -> bool:
    return _parameter_meant(tool, model, name) in parameters_of(model)


def without_nulls(model: type[BaseModel], args: Mapping[str, Any]) -> dict[str, Any]:
    """Remove nulls of optional parameters, which models send in the strict dialect for omitted ones."""
    optional = {
        field.alias or name for name, field in model.model_fields.items() if not field.is_required()
    }
    kept = {name: value for name, value in args.items() if value is not None or name not in optional}
    for name, item in _item_models(model).items():
        given = kept.get(name)
        if isinstance(given, list):
            kept[name] = [without_nulls(item, one) if isinstance(one, dict) else one for one in given]
    return kept


@lru_cache(maxsize=256)
def _item_models(model: type[BaseModel]) -> dict[str, type[BaseModel]]:
    """Return the models of list items, by the name of the list parameter."""
    items = {
        name: next(iter(get_args(annotation)), None)
        for name, annotation in parameters_of(model).items()
        if get_origin(annotation) is list
    }
    return {
        name: item for name, item in items.items() if isinstance(item, type) and issubclass(item, BaseModel)
    }


def _snake(name: str) -> str:
    return _HUMP.sub("_", name).replace("-", "_").lower()


def validate_arguments(tool: "AnyTool | DialectTool", args: Mapping[str, Any]) -> BaseModel:
    """Validate arguments and return the tool's params model; raises `InvalidInput` with all problems."""
    model: type[BaseModel] = tool.params
    known = parameters_of(model)
    args = without_nulls(model, resolve_aliases(tool.name, model, args))
    problems = [_unknown_parameter_message(tool.name, name, known) for name in args if name not in known]
    params: BaseModel | None = None
    try:
        params = tool.params.model_validate(args)
    except ValidationError as failure:
        params = _parse_json_text(tool, args, failure)
        if params is None:
            problems += _error_messages(failure)
    if params is not None:
        problems += _empty_path(params)
    if params is None or problems:
        hint = f"`{tool.name}` takes: {', '.join(known) or 'nothing'}."
        raise InvalidInput(" ".join(problems), hint=hint)
    return params


def _empty_path(params: BaseModel) -> list[str]:
    """Report required path parameters that are empty."""
    path = type(params).model_fields.get("path")
    empty = path is not None and path.is_required() and getattr(params, "path", None) == ""
    return ["`path` is empty."] if empty else []


def _parse_json_text(
    tool: "AnyTool | DialectTool", args: Mapping[str, Any], failure: ValidationError
) -> BaseModel | None:
    """Retry validation with lists and objects parsed from JSON strings; None if that fails, too.

    A string that is not JSON is a list of one string if such a list is expected.
    """
    wanted = {"list_type", "dict_type", "model_type", "model_attributes_type"}
    model: type[BaseModel] = tool.params
    mended, known = dict(args), parameters_of(model)
    for error in failure.errors(include_url=False, include_context=False):
        if error["type"] not in wanted or len(error["loc"]) != 1 or not isinstance(error["input"], str):
            return None
        name, text = str(error["loc"][0]), error["input"]
        single = [text] if get_args(known[name]) == (str,) else None
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            parsed = None
        mended[name] = parsed if isinstance(parsed, list | dict) else single
        if mended[name] is None:
            return None
    mended = without_nulls(model, resolve_aliases(tool.name, model, mended))
    try:
        return model.model_validate(mended)
    except ValidationError:
        return None


def _unknown_parameter_message(tool: str, name: str, known: Iterable[str]) -> str:
    if (tool, _snake(name)) in _OF_WRITE:
        return f"`{name}` is not a parameter; use `write` for a whole file."
    close = similar_names(name, list(known), most=1)
    return f"`{name}` is not a parameter" + (f"; did you mean `{close[0]}`?" if close else ".")


def _error_messages(failure: ValidationError) -> list[str]:
    """Describe each invalid argument once; of the alternatives of a union, the first."""
    messages: dict[str, str] = {}
    for error in failure.errors(include_url=False, include_context=False):
        # The types of a union's alternatives follow the parameter's name; only list items have inner names.
        loc = error["loc"]
        inner = [part for above, part in pairwise(loc) if isinstance(part, int) or isinstance(above, int)]
        where = ".".join(map(str, [*loc[:1], *inner])) or "arguments"
        messages.setdefault(where, _error_message(where, error))
    return list(messages.values())


def _error_message(where: str, error: Any) -> str:
    if error["type"] == "missing":
        return f"`{where}` is missing."
    given = repr(error["input"])
    shown = given if len(given) <= 60 else f"{given[:57]}..."
    return f"`{where}`: {error['msg']} (given {shown})."
