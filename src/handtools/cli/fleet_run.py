"""CLI command `handtools fleet run`: run an agent on every task of a file, with scores and a report."""

import asyncio
import signal
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handtools.cli import options
from handtools.cli.terminal import CliCommandError, print_json, print_remark, stderr_console
from handtools.text.plurals import number_with_noun

if TYPE_CHECKING:
    from handtools.fleet.batch_fleet import BatchFleet
    from handtools.fleet.batch_runner import BatchProgress, BatchRunner
    from handtools.fleet.batch_tasks import BatchFolder, BatchTask, TaskResult
    from handtools.fleet.workspace_relay import WorkspaceRelay
    from handtools.runtime.policy import Policy
    from handtools.text.html_report import ReportedCall

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
    from handtools.fleet.batch_agent import AgentCommand, is_entry_point, load_agent
    from handtools.fleet.batch_runner import BatchRunner, BatchSettings
    from handtools.fleet.batch_tasks import BatchFolder, read_tasks
    from handtools.fleet.workspace_relay import WorkspaceRelay

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
        place = _open_fleet(out, _policy(policy), runner, address, fleet=fleet, concurrency=concurrency)
        try:
            progress = asyncio.run(
                _run(
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
            print_remark(f"{_summary(folder, found)} Stopped; run the same command again to resume.")
            raise typer.Exit(EXIT_INTERRUPTED) from None
        size = write_report(folder, found)
        if as_json:
            print_json(
                {**summary_json(folder, found), **asdict(progress), "report": str(out / REPORT_NAME)}
            )
        else:
            print_remark(_summary(folder, found), f"{out / REPORT_NAME}: {size / 1000:,.0f} kB.")


def _policy(file: Path | None) -> "Policy":
    from handtools.configuration import load_configuration
    from handtools.runtime.policy import Policy

    # Batches are unattended, so calls that need approval are denied, and the agent reads the denial.
    chosen = Policy() if file is None else load_configuration(".", file).policy
    return replace(chosen, unattended="deny")


@asynccontextmanager
async def _open_fleet(
    out: Path, policy: "Policy", runner: str, address: str, *, fleet: str, concurrency: int
) -> "AsyncIterator[BatchFleet]":
    from handtools.fleet.batch_fleet import open_local_fleet, open_ray_fleet

    store = (out / LOCAL_STORE_NAME).absolute()
    opened = (
        open_ray_fleet(address, fleet, folder=store, policy=policy, runner=runner)
        if address
        else open_local_fleet(store, policy=policy, runner=runner, concurrency=concurrency)
    )
    async with opened as found:
        yield found


async def _run(
    place: "AbstractAsyncContextManager[BatchFleet]",
    relay: "WorkspaceRelay",
    make_runner: "Callable[[BatchFleet, Callable[[BatchProgress], None]], BatchRunner]",
    total: int,
) -> "BatchProgress":
    _cancel_on_sigterm()
    await relay.start("tcp:127.0.0.1:0")
    try:
        async with place as fleet:
            with _progress_shown(total) as shown:
                return await make_runner(fleet, shown).run()
    finally:
        await relay.aclose()


def _cancel_on_sigterm() -> None:
    """Handle SIGTERM like Ctrl-C: stop the agents and remove their workspaces."""
    task = asyncio.current_task()
    with suppress(NotImplementedError):  # Windows event loops have no signal handlers
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel if task else lambda: None)


@contextmanager
def _progress_shown(total: int) -> "Iterator[Callable[[BatchProgress], None]]":
    """Show a progress bar with counts on stderr; into a pipe, only a line about an earlier run's tasks."""
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
        bar.update(row, completed=progress.done, description=_counts(progress))

    with bar:
        yield show


def _counts(progress: "BatchProgress") -> str:
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


def _summary(folder: "BatchFolder", tasks: "list[BatchTask]") -> str:
    from handtools.fleet.batch_runner import BatchProgress

    progress = BatchProgress(len(tasks))
    for task in tasks:
        if task.id in folder.results:
            progress.count(folder.results[task.id])
    found = summary_json(folder, tasks)
    return (
        f"{progress.done} of {number_with_noun(len(tasks), 'task')}: {_counts(progress) or 'none done'}; "
        f"mean score {found['score']:.3f}."
    )


def write_report(folder: "BatchFolder", tasks: "list[BatchTask]") -> int:
    """Write an HTML report of all tasks and their calls; return its size."""
    from handtools.text.html_report import ReportedTask, html_report

    results = [folder.results[task.id] for task in tasks if task.id in folder.results]
    calls: list[ReportedCall] = []
    for result in results:
        # Divide the limit evenly, so that later tasks are shown too; each shows its newest calls.
        calls += _reported_calls(folder, result, max(1, MAX_REPORTED_CALLS // len(results)))
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


def _reported_calls(folder: "BatchFolder", result: "TaskResult", most: int) -> "list[ReportedCall]":
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
