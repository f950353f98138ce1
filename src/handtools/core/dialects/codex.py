"""Codex's dialect.

Tools as the client offers them to its own models (npm `@openai/codex` 0.166.0). Its sessions outlive a
call, so a command runs as a background job that is awaited for as long as the model requests.
"""

from typing import Any

from handtools.core.dialects.bash_result_parts import parse_command_text
from handtools.core.dialects.dialect_tool import (
    BOOLEAN,
    NUMBER,
    STRING,
    STRINGS,
    Args,
    Dialect,
    DialectTool,
    OurCalls,
    description_argument,
    map_to_one_call,
    object_schema,
    with_text_replaced,
)
from handtools.core.dialects.openai import APPLY_PATCH_FREEFORM
from handtools.core.result import Result

YIELD_MS = 10_000
MAX_YIELD_MS = 30_000
WRITE_YIELD_MS = 250
POLL_MS = 5_000
MAX_POLL_MS = 300_000
"""The client's own default and maximum times to wait for output."""
SESSION_PREFIX = "job"
"""Codex numbers its sessions; we use the number of our job."""


def _calls_for_exec_command(args: Args) -> OurCalls:
    ours = {"command": args["cmd"], "cwd": args.get("workdir") or ".", "background": True}
    ours |= {"pty": True} if args.get("tty") else {}
    ours |= description_argument(args.get("justification") or "")
    started = yield "bash", ours
    if not started.ok:
        return started
    waited = yield (
        "jobs",
        _wait_arguments(started.details.job, args.get("yield_time_ms", YIELD_MS), MAX_YIELD_MS),
    )
    return _session_result_for_vendor(waited)


def _calls_for_write_stdin(args: Args) -> OurCalls:
    job = f"{SESSION_PREFIX}{int(args['session_id'])}"
    if chars := args.get("chars"):
        sent = yield "jobs", {"action": "send", "job": job, "text": chars}
        if not sent.ok:
            return sent
        milliseconds, most = args.get("yield_time_ms", WRITE_YIELD_MS), MAX_YIELD_MS
    else:
        milliseconds, most = args.get("yield_time_ms", POLL_MS), MAX_POLL_MS
    waited = yield "jobs", _wait_arguments(job, milliseconds, most)
    return _session_result_for_vendor(waited)


def _wait_arguments(job: str, milliseconds: float, most: int) -> dict[str, Any]:
    return {"action": "wait", "job": job, "timeout": min(milliseconds, most) / 1000}


def _session_result_for_vendor(result: Result[Any]) -> Result[Any]:
    if not result.ok:
        return result
    done = parse_command_text(result)
    number = done.job.removeprefix(SESSION_PREFIX)
    state = f"Process running with session ID {number}"
    if not result.details.running:
        state = f"Process exited with code {done.code}"
    notes = "\n".join(row for row in done.notes.splitlines() if not row.startswith("(since="))
    rows = [
        f"Wall time: {done.seconds:.4f} seconds",
        state,
        "Output:",
        done.full_output.rstrip("\n"),
        notes,
    ]
    return with_text_replaced(result, "\n".join(row for row in rows if row))


CODEX: Dialect = (
    DialectTool(
        name="exec_command",
        tools=("bash", "jobs"),
        description="Run a command; if it still runs after `yield_time_ms`, continue with write_stdin.",
        schema=object_schema(
            {
                "cmd": STRING,
                "justification": STRING,
                "login": BOOLEAN,
                "max_output_tokens": NUMBER,
                "prefix_rule": STRINGS,
                "sandbox_permissions": {"type": "string", "enum": ["use_default", "require_escalated"]},
                "shell": STRING,
                "tty": BOOLEAN,
                "workdir": STRING,
                "yield_time_ms": NUMBER,
            },
            "cmd",
            closed=True,
        ),
        calls=_calls_for_exec_command,
    ),
    DialectTool(
        name="write_stdin",
        tools=("jobs",),
        description="Write to a running session and return its recent output; without `chars`, only wait.",
        schema=object_schema(
            {"chars": STRING, "max_output_tokens": NUMBER, "session_id": NUMBER, "yield_time_ms": NUMBER},
            "session_id",
            closed=True,
        ),
        calls=_calls_for_write_stdin,
    ),
    APPLY_PATCH_FREEFORM,
    DialectTool(
        name="view_image",
        tools=("read",),
        description="View an image file.",
        schema=object_schema(
            {"detail": {"type": "string", "enum": ["high", "original"]}, "path": STRING},
            "path",
            closed=True,
        ),
        calls=map_to_one_call("read", {"detail": None}),
    ),
)
