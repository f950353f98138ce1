"""Claude Code's dialect.

Tools as the client offers them (npm `@anthropic-ai/claude-code` 2.1.325). It did not offer Glob, Grep and
TaskStop, so these follow the types in npm `@anthropic-ai/claude-agent-sdk` 0.3.325.
"""

from typing import Any

from handtools.core.dialects.bash_result_parts import parse_command_text
from handtools.core.dialects.dialect_tool import (
    BOOLEAN,
    NUMBER,
    STRING,
    Args,
    Dialect,
    DialectTool,
    OurCalls,
    description_argument,
    map_to_one_call,
    milliseconds_to_argument,
    object_schema,
    with_text_replaced,
)
from handtools.core.result import Result

MAX_HITS = 200
_MAX_SAFE_INTEGER = 9007199254740991
_MODES = {"content": "content", "files_with_matches": "files", "count": "counts"}
_TYPE_GLOBS = {
    "cpp": "*.{cpp,cc,cxx,hpp,h}",
    "js": "*.{js,jsx,mjs,cjs}",
    "markdown": "*.{md,markdown}",
    "py": "*.{py,pyi}",
    "python": "*.{py,pyi}",
    "ruby": "*.rb",
    "rust": "*.rs",
    "ts": "*.{ts,tsx,mts,cts}",
    "yaml": "*.{yaml,yml}",
}
"""File types whose extension differs from the type's name."""


def _bash_result_for_vendor(result: Result[Any], _: Args) -> Result[Any]:
    done = parse_command_text(result)
    if done.job:
        return with_text_replaced(result, f"Command running in background with ID: {done.job}.")
    parts = [done.full_output.rstrip("\n"), done.notes]
    if done.timed_out:
        parts.insert(0, f"Command timed out after {done.seconds:.1f} s")
    elif done.code:
        parts.insert(0, f"Exit code {done.code}")
    return with_text_replaced(result, "\n".join(part for part in parts if part) or "(No output.)")


def _calls_for_grep(args: Args) -> OurCalls:
    around = [args[name] for name in ("-A", "-B", "-C", "context") if name in args]
    kind = args.get("type")
    include = args.get("glob") or (kind and _TYPE_GLOBS.get(kind, f"*.{kind}"))
    ours = {name: args[name] for name in ("pattern", "path", "offset", "multiline") if name in args}
    ours["mode"] = _MODES[args.get("output_mode", "files_with_matches")]
    ours |= {"include": include} if include else {}
    ours |= {"case_sensitive": False} if args.get("-i") else {}
    ours |= {"context": max(around)} if around else {}
    if "head_limit" in args:
        ours["limit"] = min(args["head_limit"] or MAX_HITS, MAX_HITS)
    return (yield "grep", ours)


CLAUDE_CODE: Dialect = (
    DialectTool(
        name="Bash",
        tools=("bash",),
        description="Run a bash command; `timeout` is in milliseconds. The folder persists between calls.",
        schema=object_schema(
            {
                "command": STRING,
                "timeout": NUMBER,
                "description": STRING,
                "run_in_background": BOOLEAN,
                "dangerouslyDisableSandbox": BOOLEAN,
            },
            "command",
            closed=True,
        ),
        calls=map_to_one_call(
            "bash",
            {
                "timeout": milliseconds_to_argument("timeout"),
                "description": description_argument,
                "run_in_background": "background",
                "dangerouslyDisableSandbox": None,
            },
            render=_bash_result_for_vendor,
        ),
    ),
    DialectTool(
        name="Read",
        tools=("read",),
        description="Read a file: `limit` lines from line `offset`, or `pages` of a PDF such as 1-5.",
        schema=object_schema(
            {
                "file_path": STRING,
                "offset": {"type": "integer", "minimum": 0, "maximum": _MAX_SAFE_INTEGER},
                "limit": {"type": "integer", "exclusiveMinimum": 0, "maximum": _MAX_SAFE_INTEGER},
                "pages": STRING,
                "allow_large": BOOLEAN,
            },
            "file_path",
            closed=True,
        ),
        calls=map_to_one_call(
            "read",
            {
                "file_path": "path",
                "offset": lambda line: {"start_line": max(line, 1)},
                "allow_large": None,
            },
        ),
    ),
    DialectTool(
        name="Edit",
        tools=("edit",),
        description="Replace `old_string`, which must be in the file once, or all occurrences.",
        schema=object_schema(
            {
                "file_path": STRING,
                "old_string": STRING,
                "new_string": STRING,
                "replace_all": {"default": False, "type": "boolean"},
            },
            "file_path",
            "old_string",
            "new_string",
            closed=True,
        ),
        calls=map_to_one_call("edit", {"file_path": "path"}),
    ),
    DialectTool(
        name="Write",
        tools=("write",),
        description="Write a whole file, creating or overwriting it.",
        schema=object_schema({"file_path": STRING, "content": STRING}, "file_path", "content", closed=True),
        calls=map_to_one_call("write", {"file_path": "path"}, mode="either"),
    ),
    DialectTool(
        name="Glob",
        tools=("find",),
        description="Find files by glob, newest first.",
        schema=object_schema({"pattern": STRING, "path": STRING}, "pattern", closed=True),
        calls=map_to_one_call("find"),
    ),
    DialectTool(
        name="Grep",
        tools=("grep",),
        description="Search file contents with a regular expression.",
        schema=object_schema(
            {
                "pattern": STRING,
                "path": STRING,
                "glob": STRING,
                "output_mode": {"type": "string", "enum": list(_MODES)},
                "-B": NUMBER,
                "-A": NUMBER,
                "-C": NUMBER,
                "context": NUMBER,
                "-n": BOOLEAN,
                "-i": BOOLEAN,
                "-o": BOOLEAN,
                "type": STRING,
                "head_limit": NUMBER,
                "offset": NUMBER,
                "multiline": BOOLEAN,
            },
            "pattern",
            closed=True,
        ),
        calls=_calls_for_grep,
    ),
    DialectTool(
        name="TaskStop",
        tools=("jobs",),
        description="Stop a background command by its ID.",
        schema=object_schema({"task_id": STRING, "shell_id": STRING}, closed=True),
        calls=map_to_one_call("jobs", {"task_id": "job", "shell_id": "job"}, action="kill"),
    ),
)
