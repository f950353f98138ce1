"""Run the tasks of a batch, each in its own workspace: run the agent, score its work, save the journal."""

import asyncio
import contextlib
import math
import os
import shlex
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from anyio import to_thread

from handtools.core.call import Call
from handtools.core.errors import Busy, HandtoolsError, UsageError
from handtools.core.result import Result, result_from_json
from handtools.fleet.batch_agent import AGENT_LOG_NAME, BatchAgent
from handtools.fleet.batch_tasks import IMAGE_PREFIX, JOURNAL_NAME, BatchFolder, BatchTask, TaskResult
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.fleets_for_batches import BatchFleet
from handtools.local_journal import open_local_journal
from handtools.tools.bash import last_output_line

SETUP_SESSION, SCORE_SESSION = "setup", "score"
MAX_CHANGED_PATHS = 1_000
_READ_CALLS = 1_000
_BUSY_PAUSE_SECONDS = 0.2
_MAX_BUSY_PAUSE_SECONDS = 5.0
_BUSY_PATIENCE_SECONDS = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """Settings for running the tasks of a batch."""

    template: str = ""
    """A folder, a tar archive, or `REPOSITORY@COMMIT`."""
    score: str = ""
    """Default score command for tasks without their own. A task with neither gets no score."""
    concurrency: int = 4
    retries: int = 1
    """How often a task is retried after an error. A low score is not an error."""
    timeout: float = 1800.0
    """Time limit for an agent on one task, in seconds."""
    score_timeout: float = 600.0
    """Time limit for a setup or score command, in seconds."""


@dataclass(slots=True)
class BatchProgress:
    """The progress of a batch."""

    total: int
    earlier: int = 0
    """Tasks with a result from an earlier run."""
    restarted: int = 0
    """Tasks that an earlier run started but did not finish."""
    running: int = 0
    passed: int = 0
    """Tasks with a score of 1 or more; tasks with a lower score are counted in `failed`."""
    failed: int = 0
    errors: int = 0
    unscored: int = 0

    @property
    def finished_count(self) -> int:
        """The number of tasks that have a result."""
        return self.passed + self.failed + self.errors + self.unscored

    def count_result(self, result: TaskResult) -> None:
        if result.error:
            self.errors += 1
        elif result.score is None:
            self.unscored += 1
        elif result.score >= 1:
            self.passed += 1
        else:
            self.failed += 1


@dataclass(slots=True)
class _Attempt:
    """The state of one attempt at a task."""

    folder: Path
    toolboxes: list[FleetToolbox] = field(default_factory=list)
    score: float | None = None
    changed: list[str] = field(default_factory=list)
    told: Mapping[str, Any] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0
    has_journal: bool = False


class BatchRunner:
    """Runs the tasks that have no result yet. A failing task never stops the others."""

    def __init__(
        self,
        tasks: Sequence[BatchTask],
        *,
        fleet: BatchFleet,
        agent: BatchAgent,
        folder: BatchFolder,
        settings: BatchSettings,
        on_progress: Callable[[BatchProgress], None] = lambda _: None,
    ) -> None:
        self._tasks, self._fleet, self._agent = tasks, fleet, agent
        self._folder, self._settings, self._on_progress = folder, settings, on_progress
        self._templates: dict[str, asyncio.Task[str]] = {}
        self.progress = BatchProgress(len(tasks))

    async def run(self) -> BatchProgress:
        """Run until every task has a result. On cancellation, running tasks stop without a result."""
        waiting = [task for task in self._tasks if task.id not in self._folder.results]
        for task in self._tasks:
            if task.id in self._folder.results:
                self.progress.count_result(self._folder.results[task.id])
        self.progress.earlier = self.progress.finished_count
        self.progress.restarted = sum(self._folder.is_task_begun(task.id) for task in waiting)
        self._on_progress(self.progress)
        queue = iter(waiting)  # shared by all workers, so each takes the next task

        async def work() -> None:
            for task in queue:
                await self._run_task(task)

        async with asyncio.TaskGroup() as group:
            for _ in range(min(self._settings.concurrency, len(waiting))):
                group.create_task(work())
        return self.progress

    async def _run_task(self, task: BatchTask) -> None:
        self.progress.running += 1
        self._on_progress(self.progress)
        try:
            restarted = self._folder.is_task_begun(task.id)
            await self._delete_workspaces_of_earlier_run(task)
            result = await self._result_of_attempt(task, 1, restarted=restarted)
            while result.error and result.attempts <= self._settings.retries:
                result = await self._result_of_attempt(task, result.attempts + 1, restarted=restarted)
            self._folder.append_result(result)
            self.progress.count_result(result)
        finally:
            self.progress.running -= 1
            self._on_progress(self.progress)

    async def _result_of_attempt(self, task: BatchTask, number: int, *, restarted: bool) -> TaskResult:
        began, attempt = time.monotonic(), _Attempt(self._folder.create_task_folder(task.id))
        # An agent is third-party code: any exception that it raises is recorded in the task's result.
        [failure] = await asyncio.gather(self._run_attempt(task, attempt), return_exceptions=True)
        if isinstance(failure, BaseException) and not isinstance(failure, HandtoolsError | TimeoutError):
            with (attempt.folder / AGENT_LOG_NAME).open("a", encoding="utf-8") as log:
                log.writelines(traceback.format_exception(failure))
        journal = (attempt.folder / JOURNAL_NAME).relative_to(self._folder.path)
        return TaskResult(
            id=task.id,
            score=None if failure else attempt.score,
            seconds=round(time.monotonic() - began, 3),
            calls=attempt.calls,
            tokens=attempt.tokens,
            changed=attempt.changed[:MAX_CHANGED_PATHS],
            changed_count=len(attempt.changed),
            journal=str(journal) if attempt.has_journal else "",
            error=_error_text(failure),
            attempts=number,
            restarted=restarted,
            agent=attempt.told,
        )

    async def _run_attempt(self, task: BatchTask, attempt: _Attempt) -> None:
        try:
            toolbox = await self._create_prepared_workspace(task, attempt)
            limit = task.timeout or self._settings.timeout
            deadline = asyncio.timeout(limit)
            try:
                async with deadline, toolbox:
                    attempt.told = await self._agent(toolbox, task, attempt.folder) or {}
            except TimeoutError:
                if not deadline.expired():
                    raise
                raise TimeoutError(f"The agent took longer than {limit:g} s.") from None
            finally:
                await self._record_changed_paths(toolbox, attempt)
            if score := task.score or self._settings.score:
                await self._write_task_files(toolbox, task.score_files, SCORE_SESSION)
                attempt.score = _score_of_command_result(
                    await self._run_bash(toolbox, score, SCORE_SESSION)
                )
        finally:
            await self._save_journal_and_delete_workspaces(attempt)

    async def _create_prepared_workspace(self, task: BatchTask, attempt: _Attempt) -> FleetToolbox:
        """Create the workspace of a task and set it up.

        If there was anything to set up, returns a fork, whose journal and diff contain only the agent's work.
        """
        template = await self._template_digest(task.template or self._settings.template)
        first = await self._create_workspace(task, template, attempt)
        if not task.files and not task.setup:
            return first
        await self._write_task_files(first, task.files, SETUP_SESSION)
        if task.setup:
            result = await self._run_bash(first, task.setup, SETUP_SESSION)
            if result.details.get("code") != 0:
                raise UsageError(f"The setup failed: {result.text[-500:]}")
        [fork] = await self._fleet.fork(first.workspace_name)
        self._record_workspace_of_task(task, fork, attempt)
        return fork

    async def _create_workspace(self, task: BatchTask, template: str, attempt: _Attempt) -> FleetToolbox:
        """Create a workspace, waiting for a free slot."""
        end, pause = time.monotonic() + _BUSY_PATIENCE_SECONDS, _BUSY_PAUSE_SECONDS
        while True:
            try:
                made = await self._fleet.create(template)
            except Busy:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, _MAX_BUSY_PAUSE_SECONDS)
            else:
                self._record_workspace_of_task(task, made, attempt)
                return made

    def _record_workspace_of_task(self, task: BatchTask, toolbox: FleetToolbox, attempt: _Attempt) -> None:
        attempt.toolboxes.append(toolbox)
        self._folder.record_workspace(task.id, toolbox.workspace_name)

    async def _template_digest(self, source: str) -> str:
        """The digest of a template, which is created once for all tasks that use it."""
        if source not in self._templates:
            named = parse_template_source(source)
            self._templates[source] = asyncio.create_task(
                self._fleet.add_template(named.kind, named.path, commit=named.commit, folder=named.folder)
            )
        return await asyncio.shield(self._templates[source])

    async def _write_task_files(
        self, toolbox: FleetToolbox, files: Mapping[str, str], session: str
    ) -> None:
        if not files:
            return
        lines = ["set -e"]
        for path, text in files.items():
            target = shlex.quote(path)
            lines += [f"mkdir -p -- $(dirname -- {target})", f"printf %s {shlex.quote(text)} > {target}"]
        result = await self._run_bash(toolbox, "\n".join(lines), session)
        if result.details.get("code") != 0:
            raise UsageError(f"Can't write the task's files: {result.text[-500:]}")

    async def _run_bash(self, toolbox: FleetToolbox, command: str, session: str) -> Result[Any]:
        args = {"command": command, "timeout": self._settings.score_timeout}
        result = await toolbox.call(Call(tool="bash", args=args, session=session))
        if not result.ok:
            raise UsageError(f"Can't run a {session} command: {result.text[:500]}")
        return result

    async def _record_changed_paths(self, toolbox: FleetToolbox, attempt: _Attempt) -> None:
        """Record the agent's changes before the score command makes others."""
        found = await toolbox.client.diff(toolbox.workspace_name)
        attempt.changed = [each.path for each in found if not each.is_folder]

    async def _save_journal_and_delete_workspaces(self, attempt: _Attempt) -> None:
        """Save the journal of the agent's workspace, and delete all workspaces of the attempt."""
        try:
            if attempt.toolboxes:
                last, place = attempt.toolboxes[-1], attempt.folder / JOURNAL_NAME
                await last.client.fetch_journal(last.workspace_name, place)
                attempt.has_journal = True
                attempt.calls, attempt.tokens = await to_thread.run_sync(_count_calls_and_tokens, place)
        finally:
            for each in reversed(attempt.toolboxes):
                await each.client.remove(each.workspace_name)

    async def _delete_workspaces_of_earlier_run(self, task: BatchTask) -> None:
        """Delete the workspaces that an interrupted earlier run created for a task."""
        for name in self._folder.recorded_workspaces(task.id):
            with contextlib.suppress(HandtoolsError):
                await self._fleet.toolbox(name).client.remove(name)


class TemplateSource(NamedTuple):
    """The source of a template."""

    kind: Literal["folder", "tarball", "git", "image"]
    path: str
    commit: str = ""
    folder: str = ""
    """The folder of the image to use; empty for the entire image."""


def parse_template_source(source: str) -> TemplateSource:
    """Parse a template source: a folder, a tar archive, `REPOSITORY@COMMIT` or `image:FILE`."""
    if not source:
        raise UsageError("No template given. Set one for the batch or in each task.")
    if source.startswith(IMAGE_PREFIX):
        return _parse_image_source(source.removeprefix(IMAGE_PREFIX))
    if os.path.isdir(source):
        return TemplateSource("folder", os.path.abspath(source))
    if os.path.isfile(source):
        return TemplateSource("tarball", os.path.abspath(source))
    repository, at, commit = source.rpartition("@")
    if at and commit and os.path.isdir(repository):
        return TemplateSource("git", os.path.abspath(repository), commit)
    raise UsageError(
        f"Can't use {source} as a template. "
        "Expected a folder, a tar archive, REPOSITORY@COMMIT or image:FILE."
    )


def _parse_image_source(named: str) -> TemplateSource:
    """Parse `IMAGE` or `IMAGE#FOLDER`."""
    path, _, folder = (named, "", "") if os.path.exists(named) else named.rpartition("#")
    if not os.path.exists(path):
        raise UsageError(f"Image {named} not found. Use an OCI layout or a file from `docker save`.")
    return TemplateSource("image", os.path.abspath(path), folder=folder)


def _score_of_command_result(result: Result[Any]) -> float:
    """The score that a score command reports.

    It is 0 if the command failed, otherwise the number in its last output line, or 1 if there is none.
    """
    if result.details.get("code") != 0:
        return 0.0
    try:
        score = float(last_output_line(result.text))
    except ValueError:
        return 1.0
    if not math.isfinite(score):
        raise UsageError(f"The score must be a finite number, not {score}.")
    return score


def _count_calls_and_tokens(state: Path) -> tuple[int, int]:
    """The number of calls that an agent made according to its journal, and the tokens in their results."""
    journal = open_local_journal(state, state).journal
    count = tokens = 0
    before: int | None = None
    try:
        while page := journal.calls.page(before=before, limit=_READ_CALLS):
            before = page[-1].seq
            for call in page:
                if call.session == SCORE_SESSION:
                    continue
                count += 1
                recalled = journal.calls.recall(call.id)
                tokens += result_from_json(recalled).usage.tokens if recalled else 0
    finally:
        journal.close()
    return count, tokens


def _error_text(failure: BaseException | None) -> str:
    if failure is None:
        return ""
    text = str(failure)
    return text if isinstance(failure, HandtoolsError | TimeoutError) and text else repr(failure)
