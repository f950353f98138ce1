"""The language servers of one workspace: start them in a sandbox, send them questions and changes."""

import asyncio
import os
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from handtools.core.changes import Change, ChangeSet
from handtools.core.commands import CommandLimits
from handtools.core.errors import Unavailable
from handtools.core.language import (
    NO_SERVER_HINT,
    DiagnosticReport,
    DiagnosticReview,
    LanguageAnswer,
    LanguageQuestion,
    LateReviewListener,
)
from handtools.host.language.change_diagnostics import EditedDocument, ServerChangeReview, ServerFindings
from handtools.host.language.file_uris import DocumentFiles, document_text
from handtools.host.language.fresh_diagnostics import STILL_CHECKING, proved_diagnostics
from handtools.host.language.lsp_client import LspClient
from handtools.host.language.lsp_requests import ServerQuery
from handtools.host.language.server_discovery import UNCONFINED_SERVERS_NOTE, FoundServer, ServerFinder
from handtools.host.language.server_pool import (
    LANGUAGE_THREAD,
    DiagnosticsBaseline,
    ServerNotReady,
    ServerSlot,
)
from handtools.host.language.server_process import ServerNotStarted, ServerProcess
from handtools.host.programs import is_outside_workspace
from handtools.host.sandbox.environment_variables import command_environment
from handtools.host.sandbox.launch import Launch, Runner
from handtools.host.sandbox.program_dependencies import (
    contains_home_folder,
    folders_needed_by_program,
    interpreter_folders,
    node_modules_folder,
)
from handtools.host.sandbox.runners.default_user_and_limits import workspace_owner
from handtools.text.search.glob import PathGlobs

SERVER_LIFETIME_SECONDS = 10 * 365 * 86400.0
"""Time limit of a server process in seconds: practically none, because idle servers are stopped."""
_PACKAGE_VARIABLES = ("VIRTUAL_ENV", "CONDA_PREFIX", "GOROOT", "GOPATH", "JAVA_HOME")
"""Environment variables that name package folders outside the project."""
_ALWAYS_READABLE = ("/usr", "/etc", "/opt", "/bin", "/lib")


def server_launch(
    found_server: FoundServer, workspace: str, cache: Path, private_globs: Sequence[PathGlobs]
) -> Launch:
    """The launch of a language server: writes only to its cache folder, no network."""
    folder = cache / found_server.server.name
    folder.mkdir(0o700, parents=True, exist_ok=True)
    if (owner := workspace_owner(workspace)) is not None:
        os.chown(folder, *owner)
    own = {
        name: value.replace("{cache}", str(folder))
        for name, value in found_server.server.environment.items()
    }
    layers = [os.environ[name] for name in _PACKAGE_VARIABLES if os.environ.get(name)]
    home = Path(os.environ.get("HOME", "/"))
    outside = [
        *folders_needed_by_program(found_server.program, workspace),
        *(place for place in os.environ.get("PATH", "").split(os.pathsep) if place),
        *layers,
        *(str(home / each) for each in found_server.server.readable),
        *(
            folder
            for name in (".venv", "venv")
            for folder in interpreter_folders(os.path.join(found_server.root, name, "bin", "python"))
        ),
    ]
    path = os.pathsep.join([os.path.dirname(found_server.program), os.environ.get("PATH", os.defpath)])
    more = {name: os.environ[name] for name in _PACKAGE_VARIABLES if os.environ.get(name)}
    return Launch(
        argv=(found_server.program, *found_server.server.command[1:]),
        env=command_environment(
            {**more, "PATH": path, "XDG_CACHE_HOME": str(folder), **own}, frozenset(), terminal=False
        ),
        cwd=found_server.root,
        root=workspace,
        private_globs=tuple(private_globs),
        frozen=True,
        readable=tuple(
            each
            for each in dict.fromkeys(outside)
            if os.path.isdir(each)
            and not each.startswith(_ALWAYS_READABLE)
            and not contains_home_folder(each)
            and not Path(workspace).is_relative_to(os.path.realpath(each))
        ),
        writable=(str(folder),),
        limits=CommandLimits(seconds=SERVER_LIFETIME_SECONDS, processes=4096),
    )


async def start_server(found_server: FoundServer, launch: Launch, runner: Runner) -> LspClient:
    """Start and initialize a language server; kills it and raises if it does not answer."""
    child = await ServerProcess.start(launch, runner)
    client = LspClient(found_server.server, found_server.root, child)
    try:
        await client.start(node_modules_folder(found_server.program), found_server.server.settings)
    except BaseException:
        await client.stop("it did not start")
        raise
    return client


LATE_REVIEW_SECONDS = 60.0
"""Seconds for which servers may continue to check a change after the call has returned."""
LANGUAGE_QUERY_SECONDS = 20.0


class WorkspaceLanguageServers:
    """The language servers of one workspace.

    Call public methods from any thread, private ones only on the language thread.
    """

    def __init__(
        self, workspace: str, finder: ServerFinder, cache: Path, runner: Callable[[], Runner]
    ) -> None:
        self._workspace = workspace
        self._finder = finder
        self._cache = cache
        self._runner = runner
        self._texts = DocumentFiles(workspace)
        self._behind: dict[int, asyncio.Task[None]] = {}
        """For each slot, the task still running for an earlier call; a newer call cancels it."""

    def warm(self, path: str, private_globs: tuple[PathGlobs, ...]) -> None:
        """Start the servers of a file in advance and record its current errors; returns at once."""
        LANGUAGE_THREAD.submit(self._warm(path, private_globs))

    async def review(
        self,
        changes: ChangeSet,
        private_globs: tuple[PathGlobs, ...],
        seconds: float,
        late: LateReviewListener,
    ) -> DiagnosticReview:
        """The new errors that the servers prove for a change within `seconds`; later ones go to `late`."""
        return await LANGUAGE_THREAD.run(self._review(changes.changes, private_globs, seconds, late))

    async def ask(self, question: LanguageQuestion, private_globs: tuple[PathGlobs, ...]) -> LanguageAnswer:
        """Ask the language servers of a file a question; returns their combined answer."""
        return await LANGUAGE_THREAD.run(self._ask(question, private_globs))

    def close(self) -> None:
        """Release this workspace's servers; returns when those without another owner have stopped."""
        LANGUAGE_THREAD.submit(self._close()).result(LATE_REVIEW_SECONDS)

    async def _close(self) -> None:
        for task in self._behind.values():
            task.cancel()
        await LANGUAGE_THREAD.pool.release_owner(self)

    def _seat(self, found_server: FoundServer, private_globs: tuple[PathGlobs, ...]) -> ServerSlot:
        key = (
            found_server.server.name,
            found_server.program,
            found_server.root,
            self._workspace,
            private_globs,
        )
        starting = partial(self._start, found_server, private_globs)
        return LANGUAGE_THREAD.pool.seat(key, found_server.server.name, starting, self, self._workspace)

    async def _start(self, found_server: FoundServer, private_globs: tuple[PathGlobs, ...]) -> LspClient:
        loop = asyncio.get_running_loop()
        ready = await loop.run_in_executor(
            None, server_launch, found_server, self._workspace, self._cache, private_globs
        )
        runner = await loop.run_in_executor(None, self._runner)
        if not runner.confined and (
            found_server.server.runs_code or not is_outside_workspace(found_server.program, self._workspace)
        ):
            raise ServerNotStarted(UNCONFINED_SERVERS_NOTE)
        return await start_server(found_server, ready, runner)

    def _alone(self, slot: ServerSlot, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Start a task for a slot, cancelling the one still running for an earlier call."""
        former = self._behind.get(id(slot))
        if former is not None and not former.done():
            former.cancel()
        task = self._behind[id(slot)] = asyncio.create_task(work)
        return task

    async def _warm(self, path: str, private_globs: tuple[PathGlobs, ...]) -> None:
        for spoken in self._finder.servers_of_file(path):
            seat = self._seat(spoken, private_globs)
            former = self._behind.get(id(seat))
            if former is None or former.done():
                self._alone(seat, self._look(path, seat))

    async def _look(self, path: str, slot: ServerSlot) -> None:
        uri, deadline = self._texts.uri(path), time.monotonic() + LATE_REVIEW_SECONDS
        stamp, text = self._texts.stamp(path), document_text(self._texts.read(path))
        if text is None or stamp is None or (slot.client and slot.stamps.get(uri) == stamp):
            return
        async with slot.lock:
            try:
                client = await LANGUAGE_THREAD.pool.client(slot, deadline)
            except ServerNotReady:
                return  # the next call that needs the server reports it
            verdict = await proved_diagnostics(client, client.tell(uri, text), path, deadline)
            if verdict.standing != "unknown":
                slot.stamps[uri] = stamp
                slot.set_baseline(uri, DiagnosticsBaseline(text, verdict.errors))

    async def _review(
        self,
        changes: Sequence[Change],
        private_globs: tuple[PathGlobs, ...],
        seconds: float,
        late: LateReviewListener,
    ) -> DiagnosticReview:
        began = time.monotonic()
        groups: dict[FoundServer, list[EditedDocument]] = {}
        for change in changes:
            if (edited := self._edited(change)) is not None:
                for spoken in self._finder.servers_of_file(change.path):
                    groups.setdefault(spoken, []).append(edited)
        reviews: list[tuple[ServerChangeReview, asyncio.Task[None]]] = []
        for spoken, files in groups.items():
            reviewer = ServerChangeReview(
                slot=self._seat(spoken, private_globs),
                pool=LANGUAGE_THREAD.pool,
                document_files=self._texts,
                edited=files,
                changes=changes,
                findings=ServerFindings(spoken.server.name),
                ready=asyncio.Event(),
                deadline=began + LATE_REVIEW_SECONDS,
            )
            known = reviewer.slot.client
            if known is not None and known.alive and known.proved:
                reviewer.ready.set()
            reviews.append((reviewer, self._alone(reviewer.slot, reviewer.run())))
        cold = max((spoken.server.start_seconds for spoken in groups), default=0.0)
        await _wait_for_starts(reviews, min(seconds, cold))
        running = [task for reviewer, task in reviews if reviewer.ready.is_set()]
        if running:
            await asyncio.wait(running, timeout=max(began + seconds - time.monotonic(), 0.0))
        review = _combined_review([reviewer for reviewer, _ in reviews])
        if not all(task.done() for _, task in reviews):
            self._follow(reviews, late)
        return review

    def _edited(self, change: Change) -> EditedDocument | None:
        if change.after is None or (after := document_text(change.after.data)) is None:
            return None
        before = document_text(change.before.data) if change.before is not None else None
        return EditedDocument(change.path, self._texts.uri(change.path), before, after, change.after.data)

    def _follow(
        self, reviews: Sequence[tuple[ServerChangeReview, "asyncio.Task[None]"]], late: LateReviewListener
    ) -> None:
        async def follow() -> None:
            await asyncio.wait([task for _, task in reviews])
            if not any(task.cancelled() for _, task in reviews):
                late(_combined_review([reviewer for reviewer, _ in reviews]))

        task = asyncio.create_task(follow())
        self._behind[id(task)] = task
        task.add_done_callback(lambda each: self._behind.pop(id(each), None))

    async def _ask(
        self, question: LanguageQuestion, private_globs: tuple[PathGlobs, ...]
    ) -> LanguageAnswer:
        if not question.path:
            return await self._ask_project(question)
        if why := self._finder.missing_server_sentence(question.path):
            raise Unavailable(why, hint=NO_SERVER_HINT)
        spoken = self._finder.servers_of_file(question.path)
        if question.kind != "diagnostics":
            return await self._first_answer(spoken, question, private_globs)
        answers = [await self._asked(each, question, private_globs) for each in spoken]
        return _joined_answer([answer for answer in answers if answer])

    async def _first_answer(
        self,
        found_servers: Sequence[FoundServer],
        question: LanguageQuestion,
        private_globs: tuple[PathGlobs, ...],
    ) -> LanguageAnswer:
        """The first non-empty answer: for example, a linter has no references."""
        language_answer: LanguageAnswer | None = None
        for each in found_servers:
            answer = await self._asked(each, question, private_globs)
            if answer is not None and answer.tells:
                return answer
            language_answer = language_answer or answer
        if language_answer is None:
            names = " and ".join(each.server.name for each in found_servers)
            raise Unavailable(f"{names} can't find {question.kind.replace('_', ' ')}.", hint=NO_SERVER_HINT)
        return language_answer

    async def _ask_project(self, question: LanguageQuestion) -> LanguageAnswer:
        seats = [
            seat for seat in LANGUAGE_THREAD.pool.seats.values() if self in seat.owners and seat.client
        ]
        if not seats:
            raise Unavailable(
                "No language server is running yet.",
                hint="Set `path` to a file of the project to start one.",
            )
        answers = []
        for seat in seats:
            query = ServerQuery(
                seat, LANGUAGE_THREAD.pool, self._texts, time.monotonic() + LANGUAGE_QUERY_SECONDS
            )
            answers.append(await query.answer(question))
        return _joined_answer([answer for answer in answers if answer])

    async def _asked(
        self, found_server: FoundServer, question: LanguageQuestion, private_globs: tuple[PathGlobs, ...]
    ) -> LanguageAnswer | None:
        query = ServerQuery(
            self._seat(found_server, private_globs),
            LANGUAGE_THREAD.pool,
            self._texts,
            time.monotonic() + LANGUAGE_QUERY_SECONDS,
        )
        return await query.answer(question)


async def _wait_for_starts(
    reviews: Sequence[tuple[ServerChangeReview, "asyncio.Task[None]"]], seconds: float
) -> None:
    """Wait at most `seconds` until each server is ready or has failed."""

    async def until(reviewer: ServerChangeReview, task: "asyncio.Task[None]") -> None:
        ready = asyncio.create_task(reviewer.ready.wait())
        try:
            await asyncio.wait([ready, task], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()

    pending = [asyncio.create_task(until(*each)) for each in reviews if not each[0].ready.is_set()]
    if pending:
        _, late = await asyncio.wait(pending, timeout=seconds)
        for task in late:
            task.cancel()


def _combined_review(reviewers: Sequence[ServerChangeReview]) -> DiagnosticReview:
    """Combine the reports of all servers so far; files without a report yet are `unknown`."""
    reports: list[DiagnosticReport] = []
    for reviewer in reviewers:
        found = reviewer.findings
        reports += found.reports
        if not found.main_done:
            why = STILL_CHECKING if reviewer.ready.is_set() else "still starting"
            known = {verdict.path for verdict in found.reports}
            reports += [
                DiagnosticReport(each.path, found.server, "unknown", why=why)
                for each in reviewer.edited
                if each.path not in known
            ]
        elif not found.done:
            reports.append(DiagnosticReport("other files", found.server, "unknown", why=STILL_CHECKING))
    return DiagnosticReview(
        deltas=tuple(each for reviewer in reviewers for each in reviewer.findings.deltas),
        elsewhere=tuple(each for reviewer in reviewers for each in reviewer.findings.other_deltas),
        verdicts=tuple(reports),
    )


def _joined_answer(answers: Sequence[LanguageAnswer]) -> LanguageAnswer:
    return LanguageAnswer(
        server=", ".join(dict.fromkeys(answer.server for answer in answers)),
        places=tuple(place for answer in answers for place in answer.places),
        verdicts=tuple(verdict for answer in answers for verdict in answer.verdicts),
        notes=tuple(note for answer in answers for note in answer.notes),
        partial=any(answer.partial for answer in answers),
    )
