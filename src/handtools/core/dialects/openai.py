"""OpenAI's dialects: `apply_patch` and `shell` as built-in tools, as functions, or with a patch grammar.

Taken from the PyPI packages `openai` 3.49.0 and `openai-agents` 0.24.0. The arguments of a call are the
fields of its item: `operation`, `action`, `input`. Results of built-in tools are the fields of the item to
return, as JSON.
"""

import json
import shlex
from collections.abc import Mapping
from typing import Any, Literal

from handtools.core.dialects.bash_result_parts import parse_command_text
from handtools.core.dialects.dialect_tool import (
    INTEGER,
    NUMBER,
    STRING,
    STRINGS,
    Args,
    Dialect,
    DialectTool,
    OurCalls,
    map_to_one_call,
    milliseconds_to_argument,
    object_schema,
    with_text_replaced,
)
from handtools.core.errors import InvalidInput
from handtools.core.result import Result
from handtools.text.patch_model import begin_patch_text

PATCH_GRAMMAR = """\
start: opening section+ closing
opening: "*** Begin Patch" LF
closing: "*** End Patch" LF?

section: added | deleted | updated
added: "*** Add File: " path LF new_line+
deleted: "*** Delete File: " path LF
updated: "*** Update File: " path LF moved? rows?

path: /(.+)/
new_line: "+" /(.*)/ LF -> line

moved: "*** Move to: " path LF
rows: (scope | row)+ at_end?
scope: ("@@" | "@@ " /(.+)/) LF
row: ("+" | "-" | " ") /(.*)/ LF
at_end: "*** End of File" LF

%import common.LF
"""
"""The patch format for constrained decoding, in Lark's notation."""
PATCH_ACTIONS: Mapping[str, Literal["Add", "Update", "Delete"]] = {
    "create_file": "Add",
    "update_file": "Update",
    "delete_file": "Delete",
}


def _calls_for_apply_patch(args: Args) -> OurCalls:
    operation = args["operation"]
    kind, path, diff = operation["type"], operation["path"], operation.get("diff")
    if diff is None and kind != "delete_file":
        raise InvalidInput(f"`operation.diff` is missing for {kind}.", hint="Send the diff too.")
    result = yield "patch", {"patch": begin_patch_text(PATCH_ACTIONS[kind], path, diff or "")}
    status = "completed" if result.ok else "failed"
    return _result_with_json_text(result, type="apply_patch_call_output", status=status, output=result.text)


def _calls_for_shell(args: Args) -> OurCalls:
    action = args["action"]
    most, limit = action.get("max_output_length"), action.get("timeout_ms")
    if not action["commands"]:
        raise InvalidInput("`action.commands` is empty.", hint="Send a command.")
    results, outputs = [], []
    for command in action["commands"]:
        result = yield "bash", {"command": command} | ({"timeout": limit / 1000} if limit else {})
        results.append(result)
        outputs.append(_shell_output_json(result, most))
    failed = next((each for each in results if not each.ok), results[-1])
    kept = {} if most is None else {"max_output_length": most}
    return _result_with_json_text(failed, type="shell_call_output", output=outputs, **kept)


def _shell_output_json(result: Result[Any], most: int | None) -> dict[str, Any]:
    done = parse_command_text(result)
    outcome: dict[str, Any] = {"type": "timeout"}
    if not done.timed_out:
        outcome = {"type": "exit", "exit_code": 1 if done.code is None else done.code}
    errors = "\n".join(part for part in (done.stderr.rstrip("\n"), done.notes) if part)
    return {"stdout": done.stdout[:most], "stderr": errors[:most], "outcome": outcome}


def _result_with_json_text(result: Result[Any], **fields: Any) -> Result[Any]:
    return with_text_replaced(result, json.dumps(fields, ensure_ascii=False))


def _bash_arguments(command: list[str]) -> Mapping[str, Any]:
    if not command:
        raise InvalidInput("`command` is empty.", hint="Send a program and its arguments.")
    # Models wrap scripts in `bash -lc SCRIPT`; our tool already runs the script in bash.
    if (
        len(command) == 3
        and command[0] in {"bash", "sh", "/bin/bash", "/bin/sh"}
        and command[1] in {"-c", "-lc"}
    ):
        return {"command": command[2]}
    return {"command": shlex.join(command)}


def _shell_function_result_for_vendor(result: Result[Any], _: Args) -> Result[Any]:
    done = parse_command_text(result)
    facts = {"exit_code": done.code, "duration_seconds": round(done.seconds, 1)}
    output = "\n".join(part for part in (done.full_output.rstrip("\n"), done.notes) if part)
    return _result_with_json_text(result, output=output, metadata=facts)


_OPERATION = object_schema(
    {"type": {"type": "string", "enum": list(PATCH_ACTIONS)}, "path": STRING, "diff": STRING},
    "type",
    "path",
)
_ACTION = object_schema(
    {"commands": STRINGS, "timeout_ms": INTEGER, "max_output_length": INTEGER}, "commands"
)
_PATCH = "Add, change, move and delete files with a patch: `*** Begin Patch` … `*** End Patch`."
_SHELL = DialectTool(
    name="shell",
    tools=("bash",),
    description="Run shell commands, one after another.",
    schema=object_schema({"action": _ACTION}, "action"),
    calls=_calls_for_shell,
    definition={"type": "shell", "environment": {"type": "local"}},
)
APPLY_PATCH_FREEFORM = DialectTool(
    name="apply_patch",
    tools=("patch",),
    description=_PATCH,
    schema=object_schema({"input": STRING}, "input"),
    calls=map_to_one_call("patch", {"input": "patch"}),
    definition={
        "type": "custom",
        "name": "apply_patch",
        "description": _PATCH,
        "format": {"type": "grammar", "syntax": "lark", "definition": PATCH_GRAMMAR},
    },
)

OPENAI: Dialect = (
    DialectTool(
        name="apply_patch",
        tools=("patch",),
        description="Create, update or delete one file with a diff.",
        schema=object_schema({"operation": _OPERATION}, "operation"),
        calls=_calls_for_apply_patch,
        definition={"type": "apply_patch"},
    ),
    _SHELL,
)
OPENAI_FREEFORM: Dialect = (APPLY_PATCH_FREEFORM, _SHELL)
OPENAI_FUNCTIONS: Dialect = (
    DialectTool(
        name="apply_patch",
        tools=("patch",),
        description=_PATCH,
        schema=object_schema({"input": STRING}, "input", closed=True),
        calls=map_to_one_call("patch", {"input": "patch"}),
    ),
    DialectTool(
        name="shell",
        tools=("bash",),
        description="Run a program with arguments; `bash -lc SCRIPT` runs a script.",
        schema=object_schema(
            {"command": STRINGS, "workdir": STRING, "timeout_ms": NUMBER}, "command", closed=True
        ),
        calls=map_to_one_call(
            "bash",
            {
                "command": _bash_arguments,
                "workdir": "cwd",
                "timeout_ms": milliseconds_to_argument("timeout"),
            },
            render=_shell_function_result_for_vendor,
            cwd=".",
        ),
    ),
)
