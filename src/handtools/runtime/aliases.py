"""Argument names that models know from other tools, understood as ours; none of them is advertised."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, get_args, get_origin

from pydantic import BaseModel

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
    "description": ("instruction", "explanation"),
}

ALIASES: dict[str, dict[str, tuple[str, ...]]] = {
    "attach": {"paths": ("files", "file_paths", "attachments")},
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
"""For each tool, its parameters with the names that other tools have for the same thing."""

_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def understood(tool: str, model: type[BaseModel], args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments under the names of the tool's parameters.

    What the tool takes itself is never renamed, and nothing is renamed onto an argument that is given as well,
    unless both say the same.
    """
    own = parameters(model)
    renamed = {name: value for name, value in args.items() if name in own}
    for name, value in args.items():
        meant = _meant(tool, model, name)
        taken = meant in renamed and renamed[meant] != value
        renamed[name if taken else meant] = value
    return {name: _inner(tool, own.get(name), value) for name, value in renamed.items()}


@lru_cache(maxsize=256)
def parameters(model: type[BaseModel]) -> dict[str, Any]:
    """The names that a model takes, in its order, each with its annotation."""
    return {field.alias or name: field.annotation for name, field in model.model_fields.items()}


@lru_cache(maxsize=4096)
def _meant(tool: str, model: type[BaseModel], name: str) -> str:
    own, plain = parameters(model), _snake(name)
    if name in own or plain in own:
        return name if name in own else plain
    aliases = ALIASES.get(tool, {})
    return next((parameter for parameter in own if plain in aliases.get(parameter, ())), name)


def _inner(tool: str, annotation: Any, value: Any) -> Any:
    """The same inside a list of objects."""
    item = next(iter(get_args(annotation)), None) if get_origin(annotation) is list else None
    if not (isinstance(value, list) and isinstance(item, type) and issubclass(item, BaseModel)):
        return value
    return [understood(tool, item, one) if isinstance(one, dict) else one for one in value]


def _snake(name: str) -> str:
    return _HUMP.sub("_", name).replace("-", "_").lower()
