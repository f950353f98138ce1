"""Tool `bash`: runs a bash script in the workspace, in the foreground or as a background job."""

import re
from functools import partial
from typing import Literal

from pydantic import BaseModel, Field

from handtools.core.commands import Command, CommandEnding, CommandExit, CommandLimits, CommandOutput
from handtools.core.context import Context
from handtools.core.errors import InvalidInput, Stale
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.text.terminal_emulator import decode_output, plain_output
from handtools.text.truncation import clip_text
from handtools.tools.commands.exit_text import changes_and_notes

SECONDS = 120
MAX_TIMEOUT_SECONDS = 590
JOB_SECONDS = 24 * 3600
MAX_SHOWN_OUTPUT_BYTES = 30_000
MAX_SHOWN_OUTPUT_LINES = 800
ROWS, COLUMNS = 40, 120
_SIZE_LINE = re.compile(r"\([\d,]+ lines, .* in total\b.*\)")


class BashParams(BaseModel):
    """Arguments of the `bash` tool."""

    command: str = Field(min_length=1, max_length=1_000_000, title="The script to run.")
    description: str = Field("", max_length=200, description="What it does, in five to ten words.")
    cwd: str | None = Field(
        None,
        title="Folder to run in, relative to the workspace root; kept for the next call.",
        description="Kept for the next call.",
    )
    timeout: float | None = Field(None, gt=0, title="Seconds until it is killed.")
    background: bool = Field(default=False, title="Return a job id immediately; see `jobs`.")
    pty: bool = Field(
        default=False,
        title="With background: run in a terminal, for REPLs and prompts.",
        description="A terminal for a job.",
    )
    live: bool = Field(
        default=False,
        title="With background: write directly to the files, visible at once; may need approval.",
    )
    review: bool = Field(
        default=False,
        title="Apply its changes only after the user has approved them.",
        description="The user approves its changes.",
    )
    hosts: list[str] = Field(
        [],
        max_length=20,
        title="Hosts it must reach, such as a package index; may need approval.",
        description="Hosts to reach; may need approval.",
    )


class BashDetails(BaseModel):
    """Structured result of the `bash` tool: exit, time, output size and path, folder, job id."""

    code: int | None = None
    signal: int | None = None
    ended: Literal[CommandEnding, "running"] = "running"
    seconds: float = 0.0
    peak_bytes: int | None = None
    output_bytes: int = 0
    output_lines: int = 0
    output_path: str = ""
    stdout: str | None = None
    stderr: str | None = None
    cwd: str = "."
    job: str = ""
    notes: list[str] = []

    @property
    def failed(self) -> bool:
        """Whether the command ended with anything but exit code 0."""
        return self.ended != "running" and self.code != 0

    @property
    def outcome(self) -> str:
        """Outcome of a failed command for the log: its exit code, signal or how it was stopped."""
        if not self.failed:
            return ""
        if self.ended != "exited":
            return self.ended
        return f"signal {self.signal}" if self.signal is not None else f"exit {self.code}"


@tool(effects=("run", "change"))
async def bash(ctx: Context, params: BashParams) -> Result[BashDetails]:
    """Run a bash script."""
    if params.pty and not params.background:
        raise InvalidInput("`pty` needs background=true.", hint="Set background=true, then use `jobs`.")
    command = Command(
        script=params.command,
        cwd=params.cwd or "",
        limits=CommandLimits(seconds=_timeout_seconds(params)),
        review=params.review,
        network="listed" if params.hosts else "off",
        hosts=tuple(params.hosts),
        terminal=(ROWS, COLUMNS) if params.pty else None,
        live=params.live and params.background,
    )
    if params.background:
        job = await ctx.commands.start(command, params.description)
        return Result(f"Started {job.id}. Use `jobs` to read, control or kill it.", BashDetails(job=job.id))

    end = await ctx.commands.run(command)
    text = await _command_result_text(ctx, end)
    if end.discarded:
        raise Stale(text, hint="Run it again.")
    return Result(text, _details(end))


def _timeout_seconds(params: BashParams) -> float:
    most = JOB_SECONDS if params.background else MAX_TIMEOUT_SECONDS
    usual = JOB_SECONDS if params.background else SECONDS
    return min(params.timeout or usual, most)


def _details(command_exit: CommandExit) -> BashDetails:
    stdout, stderr = map(_clipped_stream, command_exit.streams) if command_exit.streams else (None, None)
    return BashDetails(
        code=command_exit.code,
        signal=command_exit.signal,
        ended=command_exit.ended,
        seconds=command_exit.seconds,
        peak_bytes=command_exit.peak_bytes,
        output_bytes=command_exit.output.bytes,
        output_lines=command_exit.output.lines,
        output_path=command_exit.output.kept,
        stdout=stdout,
        stderr=stderr,
        cwd=command_exit.cwd,
        notes=list(command_exit.notes),
    )


async def _command_result_text(ctx: Context, command_exit: CommandExit) -> str:
    parts = [
        _clipped_output(command_exit.output),
        _exit_sentence(command_exit),
        *await changes_and_notes(ctx.search, command_exit),
    ]
    return "\n".join(part for part in parts if part)


def _clipped_output(output: CommandOutput) -> str:
    """Return the output; if it is too long, its head and tail, its size and the path of the full output."""
    if not output.tail:
        whole = plain_output(decode_output(output.head)).rstrip("\n")
        clipped = clip_text(
            whole, max_lines=MAX_SHOWN_OUTPUT_LINES, max_bytes=MAX_SHOWN_OUTPUT_BYTES, keep="both"
        )
        return clipped.text + (f"\n({_output_size_note(output)})" if clipped.clipped else "")
    half = partial(clip_text, max_lines=MAX_SHOWN_OUTPUT_LINES // 2, max_bytes=MAX_SHOWN_OUTPUT_BYTES // 2)
    head = half(plain_output(decode_output(output.head, ends=False)), keep="head").text.rstrip("\n")
    tail = half(plain_output(decode_output(output.tail, starts=False)), keep="tail").text.rstrip("\n")
    return f"{head}\n[… {_output_size_note(output)} …]\n{tail}"


def _clipped_stream(output: CommandOutput) -> str:
    """Return one stream as shown, but with its final line ending, since programs may join the streams."""
    return _clipped_output(output) + "\n" * (output.tail or output.head).endswith(b"\n")


def _output_size_note(output: CommandOutput) -> str:
    missing = f", {output.dropped_bytes:,} of them dropped from the middle" if output.dropped_bytes else ""
    size = f"{output.lines:,} lines, {output.bytes:,} bytes{missing} in total"
    return f"{size}; `read` or `grep` `{output.kept}`" if output.kept else size


def last_output_line(answer: str) -> str:
    """Return the last line that a successful command printed, from the text of its result.

    After the output come the size of the full output, the exit code and the changed files.
    """
    *lines, last = answer.rpartition("Exit code 0 after ")[0].strip().split("\n")
    return lines[-1] if lines and _SIZE_LINE.fullmatch(last) else last


def _exit_sentence(command_exit: CommandExit) -> str:
    took = f"after {command_exit.seconds:.1f} s"
    match command_exit.ended:
        case "timeout":
            longer = f"Send a longer `timeout` (up to {MAX_TIMEOUT_SECONDS}), or background=true."
            return f"Timed out {took}; it and everything it started were killed. {longer}"
        case "killed" | "cancelled":
            return f"Killed {took}."
        case "limit":
            return f"Stopped by a limit on memory or file size {took}."
    if command_exit.signal is not None:
        return f"Ended by signal {command_exit.signal} {took}."
    where = f" Now in {command_exit.cwd}." if command_exit.cwd not in {"", "."} else ""
    return f"Exit code {command_exit.code} {took}.{where}"
