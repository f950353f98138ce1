"""Tool `jobs`: lists background jobs, shows output, sends input, kills, publishes ports."""

import time
from functools import partial
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field

from handtools.core.commands import Job
from handtools.core.context import Context
from handtools.core.errors import InvalidInput
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.text.terminal_emulator import (
    KEY_NAMES_IN_HINT,
    TerminalScreen,
    UnknownTerminalKey,
    decode_output,
    key_escape_sequence,
    plain_output,
)
from handtools.tools.commands.exit_text import changes_and_notes

JOB_OUTPUT_PAGE_BYTES = 16_000
SCREEN_BYTES = 128 << 10
"""Maximum number of bytes of recent output used to render the terminal screen."""
MAX_WAIT_SECONDS = 300
REACTION_SECONDS = 0.3
"""Seconds between sending input and reading the output."""

LISTEN_SECONDS = 5.0
"""How many seconds to wait for a job to listen before its port is published."""


class JobsParams(BaseModel):
    """Arguments of the `jobs` tool."""

    action: Literal["list", "output", "screen", "wait", "send", "kill", "publish", "unpublish"] = Field(
        "list", title="All actions except list need `job`."
    )
    job: str | None = Field(None, title="The job's id.")
    since: int | None = Field(None, ge=0, title="Show output from this cursor.")
    timeout: Annotated[float, AfterValidator(partial(min, MAX_WAIT_SECONDS))] = Field(
        30.0, ge=0, title="Seconds to wait."
    )
    text: str = Field("", max_length=100_000, title="Text to send.")
    keys: list[str] = Field(default=[], title="Keys to send after the text: enter, up, ctrl-c …")
    port: int | None = Field(None, title="Port to publish or unpublish; defaults to the only one.")


class JobsDetails(BaseModel):
    """Structured result of the `jobs` tool: the job's state, exit and output cursor."""

    jobs: list[str] = []
    running: bool = False
    code: int | None = None
    signal: int | None = None
    seconds: float = 0.0
    output_bytes: int = 0
    output_path: str = ""
    cursor: int = 0
    ports: list[int] = []
    urls: list[str] = []
    """URLs at which the user can reach the job's published ports."""


@tool(effects=("run", "change", "publish"))
async def jobs(ctx: Context, params: JobsParams) -> Result[JobsDetails]:
    """Show, control, publish and kill background jobs."""
    if params.action == "list":
        found = await ctx.commands.jobs()
        rows = [_job_row(job) for job in found]
        return Result("\n".join(rows) or "No jobs.", JobsDetails(jobs=[job.id for job in found]))
    if not params.job:
        raise InvalidInput("`job` is missing.", hint="`action=list` lists the jobs.")
    if params.action == "publish":
        return await _publish_port(ctx, params)
    if params.action == "unpublish":
        job = await ctx.commands.unpublish(params.job, params.port)
        return Result(_job_row(job), _job_details(job, job.output.bytes))
    if params.action == "send":
        await ctx.commands.send(params.job, _text_to_type(params).encode())
    elif params.action == "kill":
        await ctx.commands.kill(params.job)
    waited = {"wait": params.timeout, "send": REACTION_SECONDS}.get(params.action, 0.0)
    job = await ctx.commands.job(params.job, timeout=waited)
    if params.action == "screen" or (params.action == "send" and job.terminal):
        return await _screen_result(ctx, job)
    return await _output_result(ctx, job, params.since)


def _text_to_type(params: JobsParams) -> str:
    try:
        return params.text + "".join(key_escape_sequence(key) for key in params.keys)
    except UnknownTerminalKey as unknown:
        hint = f"Keys: {', '.join(KEY_NAMES_IN_HINT)}."
        raise InvalidInput(f"Unknown key {unknown}.", hint=hint) from None


async def _publish_port(ctx: Context, params: JobsParams) -> Result[JobsDetails]:
    job_id, port = str(params.job), params.port
    ports = await _ports_once_it_listens(ctx, job_id, port, min(params.timeout, LISTEN_SECONDS))
    if port is None:
        if len(ports) != 1:
            listens = f"{job_id} listens on {', '.join(map(str, ports)) or 'no port yet'}."
            raise InvalidInput("`port` is missing.", hint=listens)
        port = ports[0]
    job = await ctx.commands.publish(job_id, port)
    where = next(each for each in job.published if each.port == port)
    other = "" if where.host_port == port else f" ({port} is not available there)"
    said = f"The user can reach port {port} of {job_id} at {where.url}{other}."
    return Result(f"{said}\n{_job_row(job)}", _job_details(job, job.output.bytes))


async def _ports_once_it_listens(
    ctx: Context, job_id: str, port: int | None, seconds: float
) -> tuple[int, ...]:
    """Wait until a job listens, since it may have just started; return its ports."""
    until = time.monotonic() + seconds
    while True:
        job = await ctx.commands.job(job_id, timeout=min(max(until - time.monotonic(), 0.0), 0.1))
        if job.exit or time.monotonic() >= until or (port in job.ports if port else job.ports):
            return job.ports


async def _output_result(ctx: Context, job: Job, since: int | None) -> Result[JobsDetails]:
    start = max(job.output.bytes - JOB_OUTPUT_PAGE_BYTES, 0) if since is None else since
    page = await ctx.commands.page(job.id, start, JOB_OUTPUT_PAGE_BYTES)
    more = job.output.bytes - page.cursor
    parts = [
        plain_output(decode_output(page.data, starts=page.start == 0, ends=not more)).rstrip("\n"),
        _job_row(job),
    ]
    if page.start > 0:
        whole = f"; full output: `{job.output.kept}`" if job.output.kept else ""
        parts.insert(0, f"(From byte {page.start:,}{whole}.)")
    parts += await _lines_about_changes(ctx, job)
    parts.append(f"(since={page.cursor} continues{f' with {more:,} bytes' if more > 0 else ''}.)")
    return Result("\n".join(part for part in parts if part), _job_details(job, page.cursor))


async def _screen_result(ctx: Context, job: Job) -> Result[JobsDetails]:
    if job.terminal is None:
        raise InvalidInput(
            f"{job.id} has no terminal.", hint="Start it with pty=true, or use action=output."
        )
    page = await ctx.commands.page(job.id, max(job.output.bytes - SCREEN_BYTES, 0), SCREEN_BYTES)
    screen = TerminalScreen(*job.terminal)
    screen.draw_output(decode_output(page.data, starts=page.start == 0))
    shown = screen.text_lines() or ["(The screen is empty.)"]
    cursor = f"(Cursor at line {screen.row + 1}, column {screen.column + 1}.)"
    said = [*shown, cursor, _job_row(job), *await _lines_about_changes(ctx, job)]
    return Result("\n".join(said), _job_details(job, page.cursor))


async def _lines_about_changes(ctx: Context, job: Job) -> list[str]:
    if job.exit is None:
        return []
    # The change is recorded for the call that started the job, but that call's result was returned before
    # the change was known. So its number is shown here.
    number = [f"(Change {job.exit.changes.entry}.)"] if job.exit.changes else []
    return [*await changes_and_notes(ctx.search, job.exit), *number]


def _job_row(job: Job) -> str:
    name = job.description or job.script.strip().splitlines()[0][:80]
    end = job.exit
    if end is None:
        state = f"running for {job.seconds:.0f} s"
        if job.ports:
            state += f", listens on port {', '.join(map(str, job.ports))}"
        if job.published:
            state += f", published at {', '.join(each.url for each in job.published)}"
    elif end.ended != "exited":
        state = f"{'timed out' if end.ended == 'timeout' else 'killed'} after {job.seconds:.1f} s"
    elif end.signal is not None:
        state = f"ended by signal {end.signal} after {job.seconds:.1f} s"
    else:
        state = f"exit code {end.code} after {job.seconds:.1f} s"
    return f"{job.id}: {state}, {job.output.bytes:,} bytes of output: {name}"


def _job_details(job: Job, cursor: int) -> JobsDetails:
    return JobsDetails(
        jobs=[job.id],
        running=job.exit is None,
        code=job.exit.code if job.exit else None,
        signal=job.exit.signal if job.exit else None,
        seconds=job.seconds,
        output_bytes=job.output.bytes,
        output_path=job.output.kept,
        cursor=cursor,
        ports=list(job.ports),
        urls=[each.url for each in job.published],
    )
