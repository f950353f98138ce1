"""pi's dialect.

Tools as the package defines them (npm `@earendil-works/pi-coding-agent` 1.5.0).
"""

from collections.abc import Mapping
from typing import Any

from handtools.core.dialects.anthropic import bash_result_for_vendor
from handtools.core.dialects.dialect_tool import (
    BOOLEAN,
    NUMBER,
    STRING,
    Dialect,
    DialectTool,
    flag_to_arguments,
    map_to_one_call,
    object_schema,
)

MAX_HITS = 200


def _multi_edit_arguments(edits: list[Mapping[str, str]]) -> Mapping[str, Any]:
    return {"edits": [{"old_string": each["oldText"], "new_string": each["newText"]} for each in edits]}


PI: Dialect = (
    DialectTool(
        name="read",
        tools=("read",),
        description="Read a file: `limit` lines from line `offset`.",
        schema=object_schema({"path": STRING, "offset": NUMBER, "limit": NUMBER}, "path"),
        calls=map_to_one_call("read", {"offset": lambda line: {"start_line": max(line, 1)}}),
    ),
    DialectTool(
        name="bash",
        tools=("bash",),
        description="Run a bash command; `timeout` is in seconds.",
        schema=object_schema({"command": STRING, "timeout": NUMBER}, "command"),
        calls=map_to_one_call("bash", render=lambda result, _: bash_result_for_vendor(result), cwd="."),
    ),
    DialectTool(
        name="edit",
        tools=("multi_edit",),
        description="Replace each `oldText`, which must be in the file once.",
        schema=object_schema(
            {
                "path": STRING,
                "edits": {
                    "type": "array",
                    "items": object_schema({"oldText": STRING, "newText": STRING}, "oldText", "newText"),
                },
            },
            "path",
            "edits",
        ),
        calls=map_to_one_call("multi_edit", {"edits": _multi_edit_arguments}),
    ),
    DialectTool(
        name="write",
        tools=("write",),
        description="Write a whole file, creating or overwriting it.",
        schema=object_schema({"path": STRING, "content": STRING}, "path", "content"),
        calls=map_to_one_call("write", mode="either"),
    ),
    DialectTool(
        name="grep",
        tools=("grep",),
        description="Search file contents with a regular expression, or for `literal` text.",
        schema=object_schema(
            {
                "pattern": STRING,
                "path": STRING,
                "glob": STRING,
                "ignoreCase": BOOLEAN,
                "literal": BOOLEAN,
                "context": NUMBER,
                "limit": NUMBER,
            },
            "pattern",
        ),
        calls=map_to_one_call(
            "grep",
            {
                "glob": "include",
                "ignoreCase": flag_to_arguments(case_sensitive=False),
                "literal": flag_to_arguments(syntax="literal"),
                "limit": lambda most: {"limit": min(most, MAX_HITS)},
            },
        ),
    ),
    DialectTool(
        name="find",
        tools=("find",),
        description="Find files by glob.",
        schema=object_schema({"pattern": STRING, "path": STRING, "limit": NUMBER}, "pattern"),
        calls=map_to_one_call("find", {"limit": lambda most: {"limit": min(most, 1000)}}),
    ),
    DialectTool(
        name="ls",
        tools=("list",),
        description="List a folder.",
        schema=object_schema({"path": STRING, "limit": NUMBER}),
        calls=map_to_one_call("list", {"limit": lambda most: {"limit": min(most, 1000)}}),
    ),
)
