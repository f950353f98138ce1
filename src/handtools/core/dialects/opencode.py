"""opencode's dialect.

Tools as the client offers them (npm `opencode-ai` 1.18.33).
"""

from typing import Any

from handtools.core.dialects.anthropic import bash_result_for_vendor
from handtools.core.dialects.dialect_tool import (
    BOOLEAN,
    STRING,
    Dialect,
    DialectTool,
    map_to_one_call,
    milliseconds_to_argument,
    object_schema,
)

_MAX_SAFE_INTEGER = 9007199254740991
_FROM_ZERO = {"minimum": 0, "type": "integer", "maximum": _MAX_SAFE_INTEGER}
_MILLISECONDS: dict[str, Any] = {
    "minimum": -_MAX_SAFE_INTEGER,
    "exclusiveMinimum": 0,
    "type": "integer",
    "maximum": _MAX_SAFE_INTEGER,
}

OPENCODE: Dialect = (
    DialectTool(
        name="bash",
        tools=("bash",),
        description="Run a bash command; `timeout` is in milliseconds.",
        schema=object_schema({"command": STRING, "timeout": _MILLISECONDS, "workdir": STRING}, "command"),
        calls=map_to_one_call(
            "bash",
            {"timeout": milliseconds_to_argument("timeout"), "workdir": "cwd"},
            render=lambda result, _: bash_result_for_vendor(result),
            cwd=".",
        ),
    ),
    DialectTool(
        name="edit",
        tools=("edit",),
        description="Replace `oldString`, which must be in the file once, or all with `replaceAll`.",
        schema=object_schema(
            {"filePath": STRING, "oldString": STRING, "newString": STRING, "replaceAll": BOOLEAN},
            "filePath",
            "oldString",
            "newString",
        ),
        calls=map_to_one_call(
            "edit",
            {
                "filePath": "path",
                "oldString": "old_string",
                "newString": "new_string",
                "replaceAll": "replace_all",
            },
        ),
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
        schema=object_schema({"pattern": STRING, "path": STRING, "include": STRING}, "pattern"),
        calls=map_to_one_call("grep"),
    ),
    DialectTool(
        name="read",
        tools=("read",),
        description="Read a file: `limit` lines from line `offset`.",
        schema=object_schema({"filePath": STRING, "offset": _FROM_ZERO, "limit": _FROM_ZERO}, "filePath"),
        calls=map_to_one_call(
            "read",
            {
                "filePath": "path",
                "offset": lambda line: {"start_line": max(line, 1)},
                "limit": lambda most: {"limit": most} if most else {},
            },
        ),
    ),
    DialectTool(
        name="skill",
        tools=("skill",),
        description="Load a skill by its name.",
        schema=object_schema({"name": STRING}, "name"),
        calls=map_to_one_call("skill"),
    ),
    DialectTool(
        name="webfetch",
        tools=("fetch",),
        description="Fetch a page as text.",
        schema=object_schema(
            {
                "url": STRING,
                "format": {"type": "string", "enum": ["text", "markdown", "html"], "default": "markdown"},
                "timeout": {"type": "number"},
            },
            "url",
        ),
        calls=map_to_one_call("fetch", {"format": None, "timeout": None}),
    ),
    DialectTool(
        name="write",
        tools=("write",),
        description="Write a whole file, creating or overwriting it.",
        schema=object_schema({"content": STRING, "filePath": STRING}, "content", "filePath"),
        calls=map_to_one_call("write", {"filePath": "path"}, mode="either"),
    ),
)
