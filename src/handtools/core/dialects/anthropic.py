"""Anthropic's dialects: `bash`, `memory` and the text editor by their types, and the agent toolset.

Taken from the PyPI package `anthropic` 2.8.0. The arguments of `bash` and the editor are defined by the API
and not in the package, so they follow the vendor's guides.
"""

from collections.abc import Mapping
from typing import Any

from handtools.core.dialects.bash_result_parts import parse_command_text
from handtools.core.dialects.dialect_tool import (
    BOOLEAN,
    INTEGER,
    INTEGERS,
    STRING,
    Args,
    Dialect,
    DialectTool,
    OurCalls,
    map_to_one_call,
    object_schema,
    with_text_replaced,
)
from handtools.core.errors import InvalidInput
from handtools.core.result import Result
from handtools.text.patch_model import begin_patch_text

MEMORY_FOLDER = "memories"
"""Workspace folder for `/memories`."""
NEW_SHELL = "unalias -a; unset -f $(compgen -A function)"
NEW_SHELL_TEXT = "The shell was restarted in the workspace folder. Exported variables persist."


def _calls_for_bash(args: Args) -> OurCalls:
    if args.get("restart"):
        result = yield "bash", {"command": NEW_SHELL, "cwd": "."}
        return with_text_replaced(result, NEW_SHELL_TEXT) if result.ok else result
    if not args.get("command"):
        raise InvalidInput("`command` is missing.", hint="Send a command, or restart=true.")
    ours = {"command": args["command"]}
    if args.get("timeout_ms"):
        ours["timeout"] = args["timeout_ms"] / 1000
    result = yield "bash", ours
    return bash_result_for_vendor(result)


def bash_result_for_vendor(result: Result[Any]) -> Result[Any]:
    """Format the result of a command as its output, and its exit code if it failed."""
    done = parse_command_text(result)
    if not result.ok or done.job:
        return result
    parts = [done.full_output.rstrip("\n"), done.notes]
    if done.timed_out:
        parts.insert(1, f"Timed out after {done.seconds:.1f} s; the command was killed.")
    elif done.code:
        parts.insert(1, f"Exit code {done.code}")
    return with_text_replaced(result, "\n".join(part for part in parts if part) or "(No output.)")


def _line_range_arguments(view_range: list[int]) -> Mapping[str, Any]:
    if len(view_range) != 2:
        raise InvalidInput("`view_range` needs two numbers.", hint="Send [first, last]; 0 is the end.")
    first, last = view_range
    return {"start_line": max(first, 1)} | ({"end_line": last} if last > 0 else {})


def _calls_for_memory(args: Args) -> OurCalls:
    command = args["command"]
    missing = [name for name in _MEMORY_COMMANDS[command] if args.get(name) is None]
    if missing:
        names = ", ".join(f"`{name}`" for name in missing)
        raise InvalidInput(f"{names} is missing for {command}.", hint="Send it too.")
    ours = {
        name: _path_in_memory_folder(value) if "path" in name else value for name, value in args.items()
    }
    if command == "delete":
        if ours["path"] == MEMORY_FOLDER:
            raise InvalidInput("/memories itself can't be deleted.", hint="Delete the files in it.")
        result = yield "patch", {"patch": begin_patch_text("Delete", ours["path"])}
        return with_text_replaced(result, f"Deleted {args['path']}.") if result.ok else result
    if command == "rename":
        moved = begin_patch_text("Update", ours["old_path"], move_to=ours["new_path"])
        result = yield "patch", {"patch": moved}
        done = f"Renamed {args['old_path']} to {args['new_path']}."
        return with_text_replaced(result, done) if result.ok else result
    result = yield TEXT_EDITOR, ours
    if command == "view" and ours["path"] == MEMORY_FOLDER and _is_not_found_error(result):
        return Result("/memories is empty.", None)
    return _with_memory_paths(result) if result.ok else result


def _with_memory_paths(result: Result[Any]) -> Result[Any]:
    """Show paths as the vendor does, in the first line and in file lists."""
    listing = result.details.command == "view" and result.details.file_content is None
    head, *rows = result.text.split("\n")
    shown = [f"/{row}" if row.startswith(MEMORY_FOLDER) and listing else row for row in rows]
    first = head.replace(f" {MEMORY_FOLDER}", f" /{MEMORY_FOLDER}", 1)
    return with_text_replaced(result, "\n".join([first, *shown]))


def _is_not_found_error(result: Result[Any]) -> bool:
    return result.fault is not None and result.fault.code == "not_found"


def _path_in_memory_folder(path: str) -> str:
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if parts[:1] != [MEMORY_FOLDER] or ".." in parts:
        raise InvalidInput(f"{path} is not in /memories.", hint="Send a path that begins with /memories.")
    return "/".join(parts)


TEXT_EDITOR = "str_replace_based_edit_tool"
_MEMORY_COMMANDS: Mapping[str, tuple[str, ...]] = {
    "view": ("path",),
    "create": ("path", "file_text"),
    "str_replace": ("path", "old_str", "new_str"),
    "insert": ("path", "insert_line", "insert_text"),
    "delete": ("path",),
    "rename": ("old_path", "new_path"),
}
_EDITOR_PARAMS: Mapping[str, Any] = {
    "path": STRING,
    "view_range": INTEGERS,
    "file_text": STRING,
    "old_str": STRING,
    "new_str": STRING,
    "insert_line": INTEGER,
    "insert_text": STRING,
}


def _tool_definition(kind: str, name: str) -> Mapping[str, Any]:
    return {"type": kind, "name": name}


def _text_editor_tool(kind: str, name: str, *commands: str) -> DialectTool:
    known = {"type": "string", "enum": ["view", "create", "str_replace", "insert", *commands]}
    return DialectTool(
        name=name,
        tools=(name,),
        description="View, create and edit files.",
        schema=object_schema({"command": known, **_EDITOR_PARAMS}, "command", "path"),
        calls=map_to_one_call(name),
        definition=_tool_definition(kind, name),
    )


_BASH = DialectTool(
    name="bash",
    tools=("bash",),
    description="Run a bash command. The folder and exported variables persist between calls.",
    schema=object_schema({"command": STRING, "restart": BOOLEAN}),
    calls=_calls_for_bash,
    definition=_tool_definition("bash_20250124", "bash"),
)
_MEMORY = DialectTool(
    name="memory",
    tools=(TEXT_EDITOR, "patch"),
    description="Keep notes in files under /memories.",
    schema=object_schema(
        {
            "command": {"type": "string", "enum": list(_MEMORY_COMMANDS)},
            **_EDITOR_PARAMS,
            "old_path": STRING,
            "new_path": STRING,
        },
        "command",
    ),
    calls=_calls_for_memory,
    definition=_tool_definition("memory_20250818", "memory"),
)

ANTHROPIC: Dialect = (_BASH, _text_editor_tool("text_editor_20250728", TEXT_EDITOR), _MEMORY)
ANTHROPIC_20250429: Dialect = (_BASH, _text_editor_tool("text_editor_20250429", TEXT_EDITOR))
ANTHROPIC_20250124: Dialect = (
    _BASH,
    _text_editor_tool("text_editor_20250124", "str_replace_editor", "undo_edit"),
)

AGENT_TOOLSET_20260401: Dialect = (
    DialectTool(
        name="bash",
        tools=("bash",),
        description="Run a bash command. The folder and exported variables persist between calls.",
        schema=object_schema({"command": STRING, "restart": BOOLEAN, "timeout_ms": INTEGER}),
        calls=_calls_for_bash,
    ),
    DialectTool(
        name="read",
        tools=("read",),
        description="Read a file; `view_range` is the first and last line, where 0 means the end.",
        schema=object_schema({"file_path": STRING, "view_range": INTEGERS}, "file_path"),
        calls=map_to_one_call("read", {"file_path": "path", "view_range": _line_range_arguments}),
    ),
    DialectTool(
        name="write",
        tools=("write",),
        description="Write a whole file, creating or overwriting it.",
        schema=object_schema({"file_path": STRING, "content": STRING}, "file_path", "content"),
        calls=map_to_one_call("write", {"file_path": "path"}, mode="either"),
    ),
    DialectTool(
        name="edit",
        tools=("edit",),
        description="Replace `old_string`, which must be in the file once, or all occurrences.",
        schema=object_schema(
            {"file_path": STRING, "old_string": STRING, "new_string": STRING, "replace_all": BOOLEAN},
            "file_path",
            "old_string",
            "new_string",
        ),
        calls=map_to_one_call("edit", {"file_path": "path"}),
    ),
    DialectTool(
        name="glob",
        tools=("find",),
        description="Find files by glob, newest first.",
        schema=object_schema({"pattern": STRING, "path": STRING}, "pattern"),
        calls=map_to_one_call("find"),
    ),
    DialectTool(
        name="grep",
        tools=("grep",),
        description="Search file contents with a regular expression.",
        schema=object_schema({"pattern": STRING, "path": STRING}, "pattern"),
        calls=map_to_one_call("grep"),
    ),
)
