"""CLI command `handtools fleet run`: an agent on every task of a file, with scores, journals and one report."""

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
MOST_REPORTED_CALLS = 5_000
EXIT_INTERRUPTED = 130


def run(
    tasks: Annotated[
        Path, typer.Argument(metavar="TASKS", exists=True, dir_okay=False, help="Tasks as JSON lines.")
    ],
    *,
    agent: Annotated[
        str, typer.Option(metavar="COMMAND", help="A command, or an async function module:function.")
    ],
    template: Annotated[
        str,
        typer.Option(
            metavar="SOURCE", help="A folder, a tar archive, REPOSITORY@COMMIT or image:FILE[#/FOLDER]."
        ),
    ] = "",
    score: Annotated[
        str,
        typer.Option(metavar="COMMAND", help="Scores a workspace: its exit, or a number in its last line."),
    ] = "",
    out: Annotated[Path, typer.Option(metavar="DIR", help="Where results, journals and report go.")] = Path(
        "batch"
    ),
    concurrency: Annotated[int, typer.Option("--concurrency", "-n", min=1, help="Tasks at a time.")] = 4,
    retries: Annotated[int, typer.Option(min=0, help="How often a task that fails is tried again.")] = 1,
    timeout: Annotated[float, typer.Option(min=1, help="Seconds that the agent gets for a task.")] = 1800.0,
    policy: Annotated[
        Path | None, typer.Option(metavar="FILE", help="What agents may do; what would be asked is denied.")
    ] = None,
    runner: options.RunnerOption = "",
    local: Annotated[
        bool, typer.Option("--local", help="In this process, without Ray; so it is without --address.")
    ] = False,
    address: Annotated[str, typer.Option(help="The address of a Ray cluster, or auto.")] = "",
    fleet: Annotated[
        str, typer.Option(help="With --address: this fleet, which is started if it is not there.")
    ] = DEFAULT_FLEET,
    as_json: options.JsonOption = False,
) -> None:
    """Run an agent on every task of a file, and score what it did.

    Each task gets a workspace of its own. Results go to DIR/results.jsonl as tasks end, journals to DIR/tasks, and
    DIR/report.html shows all of it. The same command again goes on where it was stopped.

    Example: handtools fleet run tasks.jsonl --template repo@HEAD --agent agents:mend --score 'pytest -q'
    """
    from handtools.fleet.batch_agent import AgentCommand, is_entry_point, load_agent
    from handtools.fleet.batch_runner import BatchRunner, BatchSettings
    from handtools.fleet.batch_tasks import BatchFolder, read_tasks
    from handtools.fleet.workspace_relay import WorkspaceRelay

    if local and address:
        raise CliCommandError("--local and --address exclude each other.", "Say one of them.")
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
            print_remark(f"{_summary(folder, found)} Stopped; the same command goes on from here.")
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

    # Nobody sits beside a batch: what would be asked is denied, and the agent reads that.
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
    """End as Ctrl-C does: agents are ended, and their workspaces removed."""
    task = asyncio.current_task()
    with suppress(NotImplementedError):  # Windows has no such signal
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel if task else lambda: None)


@contextmanager
def _progress_shown(total: int) -> "Iterator[Callable[[BatchProgress], None]]":
    """A bar with counts on stderr; a line about what an earlier run left, and nothing more, into a pipe."""
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
                print_remark(f"{number_with_noun(progress.earlier, 'task')} done earlier: not run again.")
            if progress.restarted:
                count = number_with_noun(progress.restarted, "task")
                print_remark(f"{count} half-done: begun anew in a fresh workspace.")
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
    """What a batch has come to; a task without a score counts as 0."""
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
    """Write one page over all tasks with their calls; returns its size."""
    from handtools.text.html_report import ReportedTask, html_report

    results = [folder.results[task.id] for task in tasks if task.id in folder.results]
    calls: list[ReportedCall] = []
    for result in results:
        # The tasks that come later have no less right to be seen: each shows its newest so many.
        calls += _reported_calls(folder, result, max(1, MOST_REPORTED_CALLS // len(results)))
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
    record = WorkspaceJournal(place, opened.journal, opened.files)
    try:
        found = [reported_call(record, logged) for logged in record.calls.page(limit=most)[::-1]]
    finally:
        opened.journal.close()
    # The workspace is gone: there is nothing to take back. Ids are those of one journal, names those of all.
    return [
        replace(each, id=f"{result.id}-{each.id}", agent=each.agent or result.id, undo_command="")
        for each in found
    ]
