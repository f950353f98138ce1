"""CLI command group `handtools fleet`: manage many workspaces on this machine or a Ray cluster."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handtools.cli import options
from handtools.cli.log import format_log_time
from handtools.cli.terminal import (
    CliCommandError,
    make_plain_table,
    print_failure,
    print_json,
    print_remark,
    print_text,
    stderr_console,
    stdout_console,
    table_cell,
)
from handtools.text.plurals import number_with_noun

if TYPE_CHECKING:
    from handtools.cli.html_report import ReportedCall
    from handtools.fleet.batch_agent import WorkspaceRelay
    from handtools.fleet.batch_runner import BatchProgress, BatchRunner
    from handtools.fleet.batch_tasks import BatchFolder, BatchTask, TaskResult
    from handtools.fleet.drain import WorkspaceMove
    from handtools.fleet.fleet_status import FleetHostStatus
    from handtools.fleet.fleet_toolbox import FleetToolbox
    from handtools.fleet.fleets_for_batches import BatchFleet
    from handtools.fleet.ray_fleet import Fleet
    from handtools.runtime.policy import Policy


FleetArgument = Annotated[str, typer.Argument(metavar="FLEET", help="Fleet name.")]
AddressOption = Annotated[
    str, typer.Option("--address", help="Ray cluster address; auto for this machine's cluster.")
]


@asynccontextmanager
async def connected_fleet(address: str, name: str) -> "AsyncIterator[Fleet]":
    """Connect to a running fleet for a block; its hosts keep running afterwards."""
    try:
        import ray  # pyright: ignore[reportMissingImports]
    except ImportError as missing:
        raise CliCommandError("Fleets need Ray.", "pip install 'handtools-slim[fleet]'") from missing
    from handtools.fleet.ray_fleet import Fleet

    started_here = not ray.is_initialized()
    if started_here:
        try:
            ray.init(address, logging_level="ERROR", log_to_driver=False)
        except (ConnectionError, ValueError) as problem:
            raise CliCommandError(
                f"Can't connect to a Ray cluster at {address}: {problem}", "Pass --address HOST:6379."
            ) from problem
    try:
        fleet = Fleet.connect(name)
        try:
            yield fleet
        finally:
            await fleet.aclose()
    finally:
        if started_here:
            ray.shutdown()


def mcp(
    fleet: FleetArgument,
    workspace: Annotated[str, typer.Argument(metavar="WORKSPACE", help="Workspace, such as h0-5d0c….")],
    *,
    address: AddressOption = "auto",
) -> None:
    """Serve a workspace's tools over MCP on stdin and stdout.

    The fleet's policy applies. Resources and prompts are not offered, because they show the journal, which
    is on the workspace's host; use `handtools fleet logs` instead.

    Example: handtools fleet mcp evals h0-5d0c1f7e
    """
    from handtools.mcp.stdio import serve_remote_over_stdio

    serve_remote_over_stdio(lambda: _open_toolbox(address, fleet, workspace))


@asynccontextmanager
async def _open_toolbox(address: str, name: str, workspace: str) -> "AsyncIterator[FleetToolbox]":
    async with connected_fleet(address, name) as fleet, fleet.toolbox(workspace) as toolbox:
        yield toolbox


EXIT_LEFT = 1


def drain(
    fleet: FleetArgument,
    host: Annotated[str, typer.Argument(metavar="HOST", help="Host name, for example h0.")],
    *,
    restart: Annotated[
        bool,
        typer.Option("--restart", help="Then restart the host with the installed version."),
    ] = False,
    job_seconds: Annotated[
        float,
        typer.Option("--wait", min=0, help="Seconds to let running jobs finish before stopping them."),
    ] = 60.0,
    address: AddressOption = "auto",
    as_json: options.JsonOption = False,
) -> None:
    """Move a host's workspaces to other hosts without interruption.

    The host accepts no new workspaces until it is restarted. Exits with 1 if a workspace could not be
    moved; it stays on the host.

    Example: handtools fleet drain evals h0 --restart
    """
    moves = asyncio.run(_drain_host(address, fleet, host, restart=restart, job_seconds=job_seconds))
    left = [move for move in moves if move.problem]
    if as_json:
        print_json(
            {"host": host, "moves": [asdict(move) for move in moves], "restarted": restart and not left}
        )
    else:
        for move in left:
            print_failure(
                f"{move.workspace} stays on {host}: {move.problem}", "Run the same command again to retry."
            )
        done = f"{number_with_noun(len(moves) - len(left), 'workspace')} moved from {host}."
        step = "" if restart or left else f" Next: handtools fleet drain {fleet} {host} --restart"
        print_remark(f"{done}{' The host was restarted.' if restart and not left else ''}{step}")
    if left:
        raise typer.Exit(EXIT_LEFT)


async def _drain_host(
    address: str, name: str, host: str, *, restart: bool, job_seconds: float
) -> "list[WorkspaceMove]":
    from handtools.fleet.drain import drain_host

    async with connected_fleet(address, name) as fleet:
        moves = await drain_host(fleet, host, job_seconds=job_seconds)
        if restart and not any(move.problem for move in moves):
            await fleet.restart_host(host)
        return moves


def logs(
    fleet: FleetArgument,
    name: Annotated[str, typer.Argument(metavar="NAME", help="Workspace, or host such as h0.")],
    *,
    limit: Annotated[int, typer.Option("--limit", "-n", min=1, help="Number of calls or lines.")] = 20,
    before: Annotated[int | None, typer.Option(help="Only calls before this number (for paging).")] = None,
    address: AddressOption = "auto",
    as_json: options.JsonOption = False,
) -> None:
    """Show a workspace's calls or a host's log.

    Example: handtools fleet logs evals h0 --limit 50
    """
    is_host, rows = asyncio.run(_fetch_calls_or_log_lines(address, fleet, name, limit, before))
    if as_json:
        for row in rows:
            print_json({"line": row} if is_host else row)
    elif not rows:
        print_remark("Nothing is logged.")
    elif is_host:
        print_text("\n".join(rows))
    else:
        _print_calls(rows)
        if len(rows) == limit:
            last = rows[-1]["seq"]
            print_remark("", f"Older: handtools fleet logs {fleet} {name} --before {last} -n {limit}")


async def _fetch_calls_or_log_lines(
    address: str, name: str, wanted: str, limit: int, before: int | None
) -> tuple[bool, list[Any]]:
    async with connected_fleet(address, name) as fleet:
        if wanted in fleet.hosts:
            return True, await fleet.client_by_host_name(wanted).host_log(limit=limit)
        client = fleet.client_for_workspace(wanted)
        return False, list(await client.recorded_calls(wanted, limit=limit, before=before))


def _print_calls(rows: list[dict[str, Any]]) -> None:
    shown = make_plain_table("WHEN", "CALL", "TOOL", "STATUS", "SECONDS")
    for row in rows:
        shown.add_row(
            format_log_time(row["started"]),
            table_cell(row["id"], 40),
            table_cell(row["tool"]),
            table_cell(row["code"] or row["status"]),
            f"{row['ended'] - row['started']:.2f}",
        )
    stdout_console().print(shown)


def status(
    fleet: FleetArgument, *, address: AddressOption = "auto", as_json: options.JsonOption = False
) -> None:
    """Show a fleet's hosts and their load.

    For each host: workspaces and slots, running and queued calls, calls rejected as busy since the start,
    memory, free disk space, and the age of the oldest change not yet stored in its log.

    Example: handtools fleet status evals
    """
    from handtools.fleet.fleet_status import workspace_counts_by_tenant

    hosts = asyncio.run(_fetch_host_statuses(address, fleet))
    tenants = workspace_counts_by_tenant(hosts)
    if as_json:
        rows = [asdict(each) | {"state": each.state} for each in hosts]
        print_json({"fleet": fleet, "hosts": rows, "tenants": tenants})
        return
    _print_hosts(hosts)
    named = {tenant: count for tenant, count in tenants.items() if tenant}
    if named:
        shown = make_plain_table("TENANT", "WORKSPACES")
        for tenant, count in named.items():
            shown.add_row(table_cell(tenant), f"{count:,}")
        stdout_console().print("", shown)
    total = number_with_noun(sum(tenants.values()), "workspace")
    print_remark("", f"{number_with_noun(len(hosts), 'host')}, {total}.")
    if any(each.state == "away" for each in hosts):
        print_remark("Ray is restarting the hosts that are away; calls to them wait.")


async def _fetch_host_statuses(address: str, name: str) -> "list[FleetHostStatus]":
    from handtools.fleet.fleet_status import query_all_hosts

    async with connected_fleet(address, name) as fleet:
        return await query_all_hosts(fleet)


def _print_hosts(hosts: "Sequence[FleetHostStatus]") -> None:
    shown = make_plain_table(
        "HOST", "NODE", "VERSION", "STATE", "WORKSPACES", "OPEN", "RUNNING", "WAITING", "BUSY", "MEMORY",
        "DISK FREE", "UNSTORED",
    )  # fmt: skip
    for each in hosts:
        now = each.status
        if now is None:
            shown.add_row(each.host, "", "", each.state)
            continue
        shown.add_row(
            each.host,
            each.node,
            now.version,
            each.state,
            f"{now.workspaces:,}/{now.slots:,}",
            f"{now.open:,}",
            f"{now.running:,}",
            f"{now.waiting:,}",
            f"{now.shed:,}",
            f"{now.memory_bytes / 1e6:,.0f} MB",
            f"{now.disk_free_bytes / 1e9:,.1f} GB",
            f"{now.unstored_seconds:,.1f} s" if now.has_log else "no log",
        )
    stdout_console().print(shown)


REPORT_NAME = "report.html"
LOCAL_STORE_NAME = "workspaces"
DEFAULT_FLEET = "batch"
MAX_REPORTED_CALLS = 5_000
EXIT_INTERRUPTED = 130


def run(
    tasks: Annotated[
        Path, typer.Argument(metavar="TASKS", exists=True, dir_okay=False, help="Tasks as JSON lines.")
    ],
    *,
    agent: Annotated[
        str, typer.Option(metavar="COMMAND", help="Command, or async function as module:function.")
    ],
    template: Annotated[
        str,
        typer.Option(
            metavar="SOURCE", help="Folder, tar archive, REPOSITORY@COMMIT or image:FILE[#/FOLDER]."
        ),
    ] = "",
    score: Annotated[
        str,
        typer.Option(metavar="COMMAND", help="Scores a task by exit code or a number in its last line."),
    ] = "",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Output folder.")] = Path("batch"),
    concurrency: Annotated[
        int, typer.Option("--concurrency", "-n", min=1, help="Tasks to run in parallel.")
    ] = 4,
    retries: Annotated[int, typer.Option(min=0, help="Number of retries for a failed task.")] = 1,
    timeout: Annotated[float, typer.Option(min=1, help="Time limit per task, in seconds.")] = 1800.0,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Policy file; calls that need approval are denied.")
    ] = None,
    runner: options.RunnerOption = "",
    local: Annotated[
        bool, typer.Option("--local", help="Run without Ray (the default without --address).")
    ] = False,
    address: Annotated[str, typer.Option(help="Ray cluster address, or auto.")] = "",
    fleet: Annotated[
        str, typer.Option(help="With --address: the fleet, started if necessary.")
    ] = DEFAULT_FLEET,
    as_json: options.JsonOption = False,
) -> None:
    """Run an agent on every task of a file, and score the results.

    Each task gets its own workspace. Results go to DIR/results.jsonl as tasks end, logs to DIR/tasks, and a
    report to DIR/report.html. Run the same command again to resume a stopped batch.

    Example: handtools fleet run tasks.jsonl --template repo@HEAD --agent agents:fix --score 'pytest -q'
    """
    from handtools.fleet.batch_agent import AgentCommand, WorkspaceRelay, is_entry_point, load_agent
    from handtools.fleet.batch_runner import BatchRunner, BatchSettings
    from handtools.fleet.batch_tasks import BatchFolder, read_tasks

    if local and address:
        raise CliCommandError("--local and --address can't be combined.", "Pass only one of them.")
    found = read_tasks(tasks)
    relay = WorkspaceRelay()
    chosen = load_agent(agent) if is_entry_point(agent) else AgentCommand(agent, relay)
    settings = BatchSettings(
        template=template, score=score, concurrency=concurrency, retries=retries, timeout=timeout
    )
    identity = {"tasks": str(tasks.resolve()), "agent": agent, "template": template, "score": score}
    with BatchFolder(out, identity) as folder:
        place = _open_batch_fleet(
            out, _unattended_policy(policy), runner, address, fleet=fleet, concurrency=concurrency
        )
        try:
            progress = asyncio.run(
                _run_batch(
                    place,
                    relay,
                    lambda fleet, shown: BatchRunner(
                        found,
                        fleet=fleet,
                        agent=chosen,
                        folder=folder,
                        settings=settings,
                        on_progress=shown,
                    ),
                    len(found),
                )
            )
        except (KeyboardInterrupt, asyncio.CancelledError):
            write_report(folder, found)
            print_remark(
                f"{_batch_summary_text(folder, found)} Stopped; run the same command again to resume."
            )
            raise typer.Exit(EXIT_INTERRUPTED) from None
        size = write_report(folder, found)
        if as_json:
            print_json(
                {**summary_json(folder, found), **asdict(progress), "report": str(out / REPORT_NAME)}
            )
        else:
            print_remark(_batch_summary_text(folder, found), f"{out / REPORT_NAME}: {size / 1000:,.0f} kB.")


def _unattended_policy(file: Path | None) -> "Policy":
    from handtools.configuration import load_configuration
    from handtools.runtime.policy import Policy

    # Batches are unattended, so calls that need approval are denied, and the agent reads the denial.
    chosen = Policy() if file is None else load_configuration(".", file).policy
    return replace(chosen, unattended="deny")


@asynccontextmanager
async def _open_batch_fleet(
    out: Path, policy: "Policy", runner: str, address: str, *, fleet: str, concurrency: int
) -> "AsyncIterator[BatchFleet]":
    from handtools.fleet.fleets_for_batches import open_local_fleet, open_ray_fleet

    store = (out / LOCAL_STORE_NAME).absolute()
    opened = (
        open_ray_fleet(address, fleet, folder=store, policy=policy, runner=runner)
        if address
        else open_local_fleet(store, policy=policy, runner=runner, concurrency=concurrency)
    )
    async with opened as found:
        yield found


async def _run_batch(
    place: "AbstractAsyncContextManager[BatchFleet]",
    relay: "WorkspaceRelay",
    make_runner: "Callable[[BatchFleet, Callable[[BatchProgress], None]], BatchRunner]",
    total: int,
) -> "BatchProgress":
    _cancel_on_sigterm()
    await relay.start("tcp:127.0.0.1:0")
    try:
        async with place as fleet:
            with _show_progress(total) as shown:
                return await make_runner(fleet, shown).run()
    finally:
        await relay.aclose()


def _cancel_on_sigterm() -> None:
    """Handle SIGTERM like Ctrl-C: stop the agents and remove their workspaces."""
    task = asyncio.current_task()
    with suppress(NotImplementedError):  # Windows event loops have no signal handlers
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel if task else lambda: None)


@contextmanager
def _show_progress(total: int) -> "Iterator[Callable[[BatchProgress], None]]":
    """Yield a function that updates a progress bar on stderr.

    If stderr is not a terminal, it only prints how many tasks an earlier run finished or left interrupted.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    console, told = stderr_console(), False
    bar = Progress(
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    row = bar.add_task("", total=total)

    def show(progress: "BatchProgress") -> None:
        nonlocal told
        if not told:
            told = True
            if progress.earlier:
                print_remark(f"{number_with_noun(progress.earlier, 'task')} already done; not run again.")
            if progress.restarted:
                count = number_with_noun(progress.restarted, "task")
                print_remark(f"{count} interrupted; restarted in a new workspace.")
        bar.update(row, completed=progress.finished_count, description=_counts_in_words(progress))

    with bar:
        yield show


def _counts_in_words(progress: "BatchProgress") -> str:
    counted = {
        "running": progress.running,
        "passed": progress.passed,
        "failed": progress.failed,
        "unscored": progress.unscored,
        "errors": progress.errors,
    }
    return " · ".join(f"{count} {name}" for name, count in counted.items() if count)


def summary_json(folder: "BatchFolder", tasks: "list[BatchTask]") -> dict[str, Any]:
    """The summary of a batch as JSON; a task without a score counts as 0."""
    results = [folder.results[task.id] for task in tasks if task.id in folder.results]
    return {
        "tasks": len(tasks),
        "results": str(folder.path / "results.jsonl"),
        "score": round(sum(each.score or 0.0 for each in results) / len(tasks), 4),
        "calls": sum(each.calls for each in results),
        "tokens": sum(each.tokens for each in results),
    }


def _batch_summary_text(folder: "BatchFolder", tasks: "list[BatchTask]") -> str:
    from handtools.fleet.batch_runner import BatchProgress

    progress = BatchProgress(len(tasks))
    for task in tasks:
        if task.id in folder.results:
            progress.count_result(folder.results[task.id])
    found = summary_json(folder, tasks)
    return (
        f"{progress.finished_count} of {number_with_noun(len(tasks), 'task')}: "
        f"{_counts_in_words(progress) or 'none done'}; "
        f"mean score {found['score']:.3f}."
    )


def write_report(folder: "BatchFolder", tasks: "list[BatchTask]") -> int:
    """Write an HTML report of all tasks and their calls; return its size in bytes."""
    from handtools.cli.html_report import ReportedTask, html_report

    results = [folder.results[task.id] for task in tasks if task.id in folder.results]
    calls: list[ReportedCall] = []
    for result in results:
        # Divide the limit evenly, so that later tasks are shown too; each shows its newest calls.
        calls += _calls_for_report(folder, result, max(1, MAX_REPORTED_CALLS // len(results)))
    rows = [
        ReportedTask(
            name=each.id,
            status="error" if each.error else "ok" if each.score is None or each.score >= 1 else "failed",
            score=each.score,
            seconds=each.seconds,
            calls=each.calls,
            tokens=each.tokens,
            files=each.changed_count,
            note=each.error,
        )
        for each in results
    ]
    title = f"Batch {folder.path.resolve().name}"
    return (folder.path / REPORT_NAME).write_text(html_report(title, calls, tasks=rows), "utf-8")


def _calls_for_report(folder: "BatchFolder", result: "TaskResult", most: int) -> "list[ReportedCall]":
    from handtools.cli.open_workspace import WorkspaceJournal
    from handtools.cli.report import reported_call
    from handtools.local_journal import open_local_journal

    if not result.journal:
        return []
    place = folder.path / result.journal
    opened = open_local_journal(place, place)
    journal = WorkspaceJournal(place, opened.journal, opened.files)
    try:
        found = [reported_call(journal, logged) for logged in journal.calls.page(limit=most)[::-1]]
    finally:
        opened.journal.close()
    # The workspace was removed: nothing can be undone. Call ids are unique per journal, so add the task id.
    return [
        replace(each, id=f"{result.id}-{each.id}", agent=each.agent or result.id, undo_command="")
        for each in found
    ]


FLEET_COMMANDS: tuple[Callable[..., None], ...] = (run, status, drain, logs, mcp)
"""The group's commands, each named after its function."""


def fleet_group() -> typer.Typer:
    """The `handtools fleet` group with its commands."""
    group = typer.Typer(
        help="Run batches of tasks, and manage a fleet's hosts.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
    )
    for command in FLEET_COMMANDS:
        group.command()(command)
    return group
