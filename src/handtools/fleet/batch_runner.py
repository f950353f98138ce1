"""Runs the tasks of a batch, each in a workspace of its own: agent, score, journal, result. ADR 250."""

import asyncio
import contextlib
import math
import os
import re
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
from handtools.fleet.batch_fleet import BatchFleet
from handtools.fleet.batch_tasks import IMAGE_PREFIX, JOURNAL_NAME, BatchFolder, BatchTask, TaskResult
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.local_journal import open_local_journal

SETUP_SESSION, SCORE_SESSION = "setup", "score"
MOST_CHANGED_PATHS = 1_000
_READ_CALLS = 1_000
_EXIT_LINE = "Exit code 0 after "
_ALL_OF_IT = re.compile(r"\([\d,]+ lines, .* in all\b.*\)")
_BUSY_PAUSE_SECONDS = 0.2
_LONGEST_BUSY_PAUSE_SECONDS = 5.0
_BUSY_PATIENCE_SECONDS = 1800.0


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchSettings:
    """How the tasks of a batch are run."""

    template: str = ""
    """A folder, a tar archive, or `REPOSITORY@COMMIT`."""
    score: str = ""
    """The command that scores a task that has none of its own; without any, a task that ends scores nothing."""
    concurrency: int = 4
    retries: int = 1
    """How often a task is tried again after an attempt that failed; a low score is no failure."""
    timeout: float = 1800.0
    """Seconds that an agent gets for a task."""
    score_timeout: float = 600.0
    """Seconds that a setup or a score command gets."""


@dataclass(slots=True)
class BatchProgress:
    """How far a batch is."""

    total: int
    earlier: int = 0
    """Tasks with a result of an earlier run."""
    restarted: int = 0
    """Tasks that an earlier run had begun and not ended."""
    running: int = 0
    passed: int = 0
    """Tasks with a score of 1 or more; those below are `failed`."""
    failed: int = 0
    errors: int = 0
    unscored: int = 0

    @property
    def done(self) -> int:
        """Tasks that have a result."""
        return self.passed + self.failed + self.errors + self.unscored

    def count(self, result: TaskResult) -> None:
        """Count a result."""
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
    """What one attempt at a task has come to so far."""

    folder: Path
    workspaces: list[FleetToolbox] = field(default_factory=list)
    score: float | None = None
    changed: list[str] = field(default_factory=list)
    told: Mapping[str, Any] = field(default_factory=dict)
    calls: int = 0
    tokens: int = 0
    has_journal: bool = False


class BatchRunner:
    """Runs the tasks that have no result yet; what happens to one never ends the others."""

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
        """Run until every task has a result; cancelled, running tasks are ended and stay without one."""
        waiting = [task for task in self._tasks if task.id not in self._folder.results]
        for task in self._tasks:
            if task.id in self._folder.results:
                self.progress.count(self._folder.results[task.id])
        self.progress.earlier = self.progress.done
        self.progress.restarted = sum(self._folder.is_begun(task.id) for task in waiting)
        self._on_progress(self.progress)
        queue = iter(waiting)  # shared by all workers: each takes the next one

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
            restarted = self._folder.is_begun(task.id)
            await self._remove_noted(task)
            result = await self._attempted(task, 1, restarted=restarted)
            while result.error and result.attempts <= self._settings.retries:
                result = await self._attempted(task, result.attempts + 1, restarted=restarted)
            self._folder.add(result)
            self.progress.count(result)
        finally:
            self.progress.running -= 1
            self._on_progress(self.progress)

    async def _attempted(self, task: BatchTask, number: int, *, restarted: bool) -> TaskResult:
        began, attempt = time.monotonic(), _Attempt(self._folder.begin(task.id))
        # An agent is anybody's code, and whatever it raises is the task's result.
        [failure] = await asyncio.gather(self._attempt(task, attempt), return_exceptions=True)
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
            changed=attempt.changed[:MOST_CHANGED_PATHS],
            changed_count=len(attempt.changed),
            journal=str(journal) if attempt.has_journal else "",
            error=_told(failure),
            attempts=number,
            restarted=restarted,
            agent=attempt.told,
        )

    async def _attempt(self, task: BatchTask, attempt: _Attempt) -> None:
        try:
            toolbox = await self._begin_workspace(task, attempt)
            limit = task.timeout or self._settings.timeout
            deadline = asyncio.timeout(limit)
            try:
                async with deadline, toolbox:
                    attempt.told = await self._agent(toolbox, task, attempt.folder) or {}
            except TimeoutError:
                if not deadline.expired():
                    raise
                raise TimeoutError(f"The agent took more than {limit:g} s.") from None
            finally:
                await self._look(toolbox, attempt)
            if score := task.score or self._settings.score:
                await self._write_files(toolbox, task.score_files, SCORE_SESSION)
                attempt.score = _score(await self._bash(toolbox, score, SCORE_SESSION))
        finally:
            await self._finish(attempt)

    async def _begin_workspace(self, task: BatchTask, attempt: _Attempt) -> FleetToolbox:
        """Make the workspace of a task; one that has to be set up first is a fork of what the setup made.

        So its journal and its differences are the agent's alone.
        """
        template = await self._template(task.template or self._settings.template)
        first = await self._created(task, template, attempt)
        if not task.files and not task.setup:
            return first
        await self._write_files(first, task.files, SETUP_SESSION)
        if task.setup:
            result = await self._bash(first, task.setup, SETUP_SESSION)
            if result.details.get("code") != 0:
                raise UsageError(f"The setup failed: {result.text[-500:]}")
        [fork] = await self._fleet.fork(first.workspace_name)
        self._note(task, fork, attempt)
        return fork

    async def _created(self, task: BatchTask, template: str, attempt: _Attempt) -> FleetToolbox:
        """Make a workspace, when there is room for it."""
        end, pause = time.monotonic() + _BUSY_PATIENCE_SECONDS, _BUSY_PAUSE_SECONDS
        while True:
            try:
                made = await self._fleet.create(template)
            except Busy:
                if time.monotonic() > end:
                    raise
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_BUSY_PAUSE_SECONDS)
            else:
                self._note(task, made, attempt)
                return made

    def _note(self, task: BatchTask, made: FleetToolbox, attempt: _Attempt) -> None:
        attempt.workspaces.append(made)
        self._folder.note_workspace(task.id, made.workspace_name)

    async def _template(self, source: str) -> str:
        """The digest of a template, which is made once for all tasks that name it."""
        if source not in self._templates:
            named = template_source(source)
            self._templates[source] = asyncio.create_task(
                self._fleet.add_template(named.kind, named.path, commit=named.commit, folder=named.folder)
            )
        return await asyncio.shield(self._templates[source])

    async def _write_files(self, toolbox: FleetToolbox, files: Mapping[str, str], session: str) -> None:
        if not files:
            return
        lines = ["set -e"]
        for path, text in files.items():
            target = shlex.quote(path)
            lines += [f"mkdir -p -- $(dirname -- {target})", f"printf %s {shlex.quote(text)} > {target}"]
        result = await self._bash(toolbox, "\n".join(lines), session)
        if result.details.get("code") != 0:
            raise UsageError(f"The files of the task can't be written: {result.text[-500:]}")

    async def _bash(self, toolbox: FleetToolbox, command: str, session: str) -> Result[Any]:
        args = {"command": command, "timeout": self._settings.score_timeout}
        result = await toolbox.call(Call(tool="bash", args=args, session=session))
        if not result.ok:
            raise UsageError(f"A {session} command can't be run: {result.text[:500]}")
        return result

    async def _look(self, toolbox: FleetToolbox, attempt: _Attempt) -> None:
        """Note what the agent changed, before anything else does."""
        found = await toolbox.client.diff(toolbox.workspace_name)
        attempt.changed = [each.path for each in found if not each.is_folder]

    async def _finish(self, attempt: _Attempt) -> None:
        """Keep the journal of the agent's workspace, and remove what was made, also of a task that is ended."""
        try:
            if attempt.workspaces:
                last, place = attempt.workspaces[-1], attempt.folder / JOURNAL_NAME
                await last.client.fetch_journal(last.workspace_name, place)
                attempt.has_journal = True
                attempt.calls, attempt.tokens = await to_thread.run_sync(_calls_and_tokens, place)
        finally:
            for each in reversed(attempt.workspaces):
                await each.client.remove(each.workspace_name)

    async def _remove_noted(self, task: BatchTask) -> None:
        """Remove the workspaces of a task that an earlier run had begun, where they are still there."""
        for name in self._folder.noted_workspaces(task.id):
            with contextlib.suppress(HandtoolsError):
                await self._fleet.toolbox(name).client.remove(name)


class TemplateSource(NamedTuple):
    """What a template is made of."""

    kind: Literal["folder", "tarball", "git", "image"]
    path: str
    commit: str = ""
    folder: str = ""
    """The folder of an image that is meant; empty for all of it."""


def template_source(source: str) -> TemplateSource:
    """What a template is made of that is named as a folder, a tar archive, `REPOSITORY@COMMIT` or `image:FILE`."""
    if not source:
        raise UsageError("There is no template: name one for the batch, or in each task.")
    if source.startswith(IMAGE_PREFIX):
        return _image_source(source.removeprefix(IMAGE_PREFIX))
    if os.path.isdir(source):
        return TemplateSource("folder", os.path.abspath(source))
    if os.path.isfile(source):
        return TemplateSource("tarball", os.path.abspath(source))
    repository, at, commit = source.rpartition("@")
    if at and commit and os.path.isdir(repository):
        return TemplateSource("git", os.path.abspath(repository), commit)
    raise UsageError(f"{source} is no folder, no archive, no REPOSITORY@COMMIT and no image:FILE.")


def _image_source(named: str) -> TemplateSource:
    """An image, and behind `#` the folder of it that is meant."""
    path, _, folder = (named, "", "") if os.path.exists(named) else named.rpartition("#")
    if not os.path.exists(path):
        raise UsageError(f"There is no image {named}: name what `docker save` wrote, or an OCI layout.")
    return TemplateSource("image", os.path.abspath(path), folder=folder)


def _score(result: Result[Any]) -> float:
    """The score of a command: 0 if it failed, else the number in the last line that it printed, else 1."""
    if result.details.get("code") != 0:
        return 0.0
    # After what it printed come lines of ours: where all of it is, how it ended, which files it changed.
    lines = result.text.rpartition(_EXIT_LINE)[0].strip().split("\n")
    printed = lines[-2:-1] if _ALL_OF_IT.fullmatch(lines[-1]) else lines[-1:]
    try:
        score = float("".join(printed))
    except ValueError:
        return 1.0
    if not math.isfinite(score):
        raise UsageError(f"The score is {score}.")
    return score


def _calls_and_tokens(state: Path) -> tuple[int, int]:
    """How many calls an agent made, and how many tokens their answers had."""
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


def _told(failure: BaseException | None) -> str:
    if failure is None:
        return ""
    text = str(failure)
    return text if isinstance(failure, HandtoolsError | TimeoutError) and text else repr(failure)
