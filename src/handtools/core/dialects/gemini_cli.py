"""Gemini CLI's dialect.

Tools as the client offers them (npm `@google/gemini-cli` 0.61.0).
"""

from typing import Any

from handtools.core.dialects.bash_result_parts import parse_command_text
from handtools.core.dialects.dialect_tool import (
    BOOLEAN,
    INTEGER,
    STRING,
    STRINGS,
    Args,
    Dialect,
    DialectTool,
    OurCalls,
    description_argument,
    flag_to_arguments,
    map_to_one_call,
    object_schema,
    with_text_replaced,
)
from handtools.core.result import Result

MAX_HITS = 200
JOB_PREFIX = "job"
"""Gemini CLI numbers its background processes; we use the number of our job."""
_FROM_ONE = {"type": "integer", "minimum": 1}
_FROM_ZERO = {"type": "integer", "minimum": 0}


def _shell_result_for_vendor(result: Result[Any], _: Args) -> Result[Any]:
    done = parse_command_text(result)
    if done.job:
        number = done.job.removeprefix(JOB_PREFIX)
        return with_text_replaced(result, f"Command moved to background (PID: {number}).")
    rows = [f"Output: {done.full_output.rstrip(chr(10)) or '(empty)'}"]
    if done.timed_out:
        rows.append(f"Error: timed out after {done.seconds:.1f} s")
    elif done.code:
        rows.append(f"Exit Code: {done.code}")
    return with_text_replaced(result, "\n".join([*rows, done.notes]).rstrip("\n"))


def _calls_for_grep_search(args: Args) -> OurCalls:
    around = [args[name] for name in ("after", "before", "context") if name in args]
    left_out = args.get("exclude_pattern")
    ours = {"pattern": args["pattern"], "case_sensitive": args.get("case_sensitive", False)}
    ours |= {"path": args["dir_path"]} if args.get("dir_path") else {}
    ours |= {"include": args["include_pattern"]} if args.get("include_pattern") else {}
    ours |= {"syntax": "literal"} if args.get("fixed_strings") else {}
    ours |= {"mode": "files"} if args.get("names_only") else {}
    ours |= {"context": max(around)} if around else {}
    ours |= {"include_ignored": True} if args.get("no_ignore") else {}
    if "total_max_matches" in args:
        ours["limit"] = min(args["total_max_matches"], MAX_HITS)
    result = yield "grep", ours
    if left_out and result.ok:
        return with_text_replaced(result, f"{result.text}\n(`exclude_pattern` was ignored.)")
    return result


GEMINI_CLI: Dialect = (
    DialectTool(
        name="read_file",
        tools=("read",),
        description="Read a file, or its lines from `start_line` to `end_line`.",
        schema=object_schema(
            {"file_path": STRING, "start_line": _FROM_ONE, "end_line": _FROM_ONE}, "file_path"
        ),
        calls=map_to_one_call("read", {"file_path": "path"}),
    ),
    DialectTool(
        name="write_file",
        tools=("write",),
        description="Write a whole file, creating or overwriting it.",
        schema=object_schema({"file_path": STRING, "content": STRING}, "file_path", "content"),
        calls=map_to_one_call("write", {"file_path": "path"}, mode="either"),
    ),
    DialectTool(
        name="replace",
        tools=("edit",),
        description="Replace `old_string`, which must be in the file once, or all with `allow_multiple`.",
        schema=object_schema(
            {
                "file_path": STRING,
                "instruction": STRING,
                "old_string": STRING,
                "new_string": STRING,
                "allow_multiple": BOOLEAN,
            },
            "file_path",
            "instruction",
            "old_string",
            "new_string",
        ),
        calls=map_to_one_call(
            "edit",
            {"file_path": "path", "instruction": "description", "allow_multiple": "replace_all"},
        ),
    ),
    DialectTool(
        name="glob",
        tools=("find",),
        description="Find files by glob, newest first.",
        schema=object_schema(
            {
                "pattern": STRING,
                "dir_path": STRING,
                "case_sensitive": BOOLEAN,
                "respect_git_ignore": BOOLEAN,
                "respect_gemini_ignore": BOOLEAN,
            },
            "pattern",
        ),
        calls=map_to_one_call(
            "find",
            {
                "dir_path": "path",
                "respect_git_ignore": lambda respected: {"include_ignored": not respected},
                "respect_gemini_ignore": None,
            },
        ),
    ),
    DialectTool(
        name="grep_search",
        tools=("grep",),
        description="Search file contents with a regular expression.",
        schema=object_schema(
            {
                "pattern": STRING,
                "dir_path": STRING,
                "include_pattern": STRING,
                "exclude_pattern": STRING,
                "names_only": BOOLEAN,
                "case_sensitive": BOOLEAN,
                "fixed_strings": BOOLEAN,
                "context": _FROM_ZERO,
                "after": _FROM_ZERO,
                "before": _FROM_ZERO,
                "no_ignore": BOOLEAN,
                "max_matches_per_file": _FROM_ONE,
                "total_max_matches": _FROM_ONE,
            },
            "pattern",
        ),
        calls=_calls_for_grep_search,
    ),
    DialectTool(
        name="list_directory",
        tools=("list",),
        description="List a folder.",
        schema=object_schema(
            {
                "dir_path": STRING,
                "ignore": STRINGS,
                "file_filtering_options": object_schema(
                    {"respect_git_ignore": BOOLEAN, "respect_gemini_ignore": BOOLEAN}
                ),
            },
            "dir_path",
        ),
        calls=map_to_one_call(
            "list",
            {
                "dir_path": "path",
                "ignore": None,
                "file_filtering_options": lambda options: {
                    "include_ignored": not options.get("respect_git_ignore", True)
                },
            },
        ),
    ),
    DialectTool(
        name="run_shell_command",
        tools=("bash",),
        description="Run a bash command in the workspace, or in the folder `dir_path`.",
        schema=object_schema(
            {
                "command": STRING,
                "description": STRING,
                "dir_path": STRING,
                "is_background": BOOLEAN,
                "delay_ms": INTEGER,
            },
            "command",
        ),
        calls=map_to_one_call(
            "bash",
            {
                "description": description_argument,
                "dir_path": "cwd",
                "is_background": flag_to_arguments(background=True),
                "delay_ms": None,
            },
            render=_shell_result_for_vendor,
            cwd=".",
        ),
    ),
    DialectTool(
        name="list_background_processes",
        tools=("jobs",),
        description="List background commands.",
        schema=object_schema({"wait_for_previous": BOOLEAN}),
        calls=map_to_one_call("jobs", {"wait_for_previous": None}, action="list"),
    ),
    DialectTool(
        name="read_background_output",
        tools=("jobs",),
        description="Read the output of a background command.",
        schema=object_schema(
            {
                "pid": INTEGER,
                "lines": _FROM_ONE,
                "delay_ms": INTEGER,
                "wait_for_previous": BOOLEAN,
            },
            "pid",
        ),
        calls=map_to_one_call(
            "jobs",
            {
                "pid": lambda number: {"job": f"{JOB_PREFIX}{number}"},
                "lines": None,
                "delay_ms": lambda waited: {"action": "wait", "timeout": min(waited / 1000, 300.0)},
                "wait_for_previous": None,
            },
            action="output",
        ),
    ),
)
