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


def server_launch(spoken: FoundServer, workspace: str, cache: Path, private: Sequence[PathGlobs]) -> Launch:
    """The launch of a language server: writes only to its cache folder, no network."""
    folder = cache / spoken.server.name
    folder.mkdir(0o700, parents=True, exist_ok=True)
    if (owner := workspace_owner(workspace)) is not None:
        os.chown(folder, *owner)
    own = {name: value.replace("{cache}", str(folder)) for name, value in spoken.server.environment.items()}
    layers = [os.environ[name] for name in _PACKAGE_VARIABLES if os.environ.get(name)]
    home = Path(os.environ.get("HOME", "/"))
    outside = [
        *folders_needed_by_program(spoken.program, workspace),
        *(place for place in os.environ.get("PATH", "").split(os.pathsep) if place),
        *layers,
        *(str(home / each) for each in spoken.server.readable),
        *(
            folder
            for name in (".venv", "venv")
            for folder in interpreter_folders(os.path.join(spoken.root, name, "bin", "python"))
        ),
    ]
    path = os.pathsep.join([os.path.dirname(spoken.program), os.environ.get("PATH", os.defpath)])
    more = {name: os.environ[name] for name in _PACKAGE_VARIABLES if os.environ.get(name)}
    return Launch(
        argv=(spoken.program, *spoken.server.command[1:]),
        env=command_environment(
            {**more, "PATH": path, "XDG_CACHE_HOME": str(folder), **own}, frozenset(), terminal=False
        ),
        cwd=spoken.root,
        root=workspace,
        private=tuple(private),
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
        allowance=CommandLimits(seconds=SERVER_LIFETIME_SECONDS, processes=4096),
    )


async def start_server(spoken: FoundServer, ready: Launch, runner: Runner) -> LspClient:
    """Start and initialize a language server; kills it and raises if it does not answer."""
    child = await ServerProcess.start(ready, runner)
    client = LspClient(spoken.server, spoken.root, child)
    try:
        await client.start(node_modules_folder(spoken.program), spoken.server.settings)
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

    def warm(self, path: str, private: tuple[PathGlobs, ...]) -> None:
        """Start the servers of a file in advance and record its current errors; returns at once."""
        LANGUAGE_THREAD.submit(self._warm(path, private))

    async def review(
        self, changes: ChangeSet, private: tuple[PathGlobs, ...], seconds: float, late: LateReviewListener
    ) -> DiagnosticReview:
        """The new errors that the servers prove for a change within `seconds`; later ones go to `late`."""
        return await LANGUAGE_THREAD.run(self._review(changes.changes, private, seconds, late))

    async def ask(self, question: LanguageQuestion, private: tuple[PathGlobs, ...]) -> LanguageAnswer:
        """Ask the language servers of a file a question; returns their combined answer."""
        return await LANGUAGE_THREAD.run(self._ask(question, private))

    def close(self) -> None:
        """Release this workspace's servers; returns when those without another owner have stopped."""
        LANGUAGE_THREAD.submit(self._close()).result(LATE_REVIEW_SECONDS)

    async def _close(self) -> None:
        for task in self._behind.values():
            task.cancel()
        await LANGUAGE_THREAD.pool.release_owner(self)

    def _seat(self, spoken: FoundServer, private: tuple[PathGlobs, ...]) -> ServerSlot:
        key = (spoken.server.name, spoken.program, spoken.root, self._workspace, private)
        starting = partial(self._start, spoken, private)
        return LANGUAGE_THREAD.pool.seat(key, spoken.server.name, starting, self, self._workspace)

    async def _start(self, spoken: FoundServer, private: tuple[PathGlobs, ...]) -> LspClient:
        loop = asyncio.get_running_loop()
        ready = await loop.run_in_executor(
            None, server_launch, spoken, self._workspace, self._cache, private
        )
        runner = await loop.run_in_executor(None, self._runner)
        if not runner.confined and (
            spoken.server.runs_code or not is_outside_workspace(spoken.program, self._workspace)
        ):
            raise ServerNotStarted(UNCONFINED_SERVERS_NOTE)
        return await start_server(spoken, ready, runner)

    def _alone(self, seat: ServerSlot, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Start a task for a slot, cancelling the one still running for an earlier call."""
        former = self._behind.get(id(seat))
        if former is not None and not former.done():
            former.cancel()
        task = self._behind[id(seat)] = asyncio.create_task(work)
        return task

    async def _warm(self, path: str, private: tuple[PathGlobs, ...]) -> None:
        for spoken in self._finder.servers_of_file(path):
            seat = self._seat(spoken, private)
            former = self._behind.get(id(seat))
            if former is None or former.done():
                self._alone(seat, self._look(path, seat))

    async def _look(self, path: str, seat: ServerSlot) -> None:
        uri, deadline = self._texts.uri(path), time.monotonic() + LATE_REVIEW_SECONDS
        stamp, text = self._texts.stamp(path), document_text(self._texts.read(path))
        if text is None or stamp is None or (seat.client and seat.stamps.get(uri) == stamp):
            return
        async with seat.lock:
            try:
                client = await LANGUAGE_THREAD.pool.client(seat, deadline)
            except ServerNotReady:
                return  # the next call that needs the server reports it
            verdict = await proved_diagnostics(client, client.tell(uri, text), path, deadline)
            if verdict.standing != "unknown":
                seat.stamps[uri] = stamp
                seat.set_baseline(uri, DiagnosticsBaseline(text, verdict.errors))

    async def _review(
        self,
        changes: Sequence[Change],
        private: tuple[PathGlobs, ...],
        seconds: float,
        late: LateReviewListener,
    ) -> DiagnosticReview:
        began = time.monotonic()
        groups: dict[FoundServer, list[EditedDocument]] = {}
        for change in changes:
            if (edited := self._edited(change)) is not None:
                for spoken in self._finder.servers_of_file(change.path):
                    groups.setdefault(spoken, []).append(edited)
        work: list[tuple[ServerChangeReview, asyncio.Task[None]]] = []
        for spoken, files in groups.items():
            reviewer = ServerChangeReview(
                seat=self._seat(spoken, private),
                pool=LANGUAGE_THREAD.pool,
                texts=self._texts,
                edited=files,
                changes=changes,
                findings=ServerFindings(spoken.server.name),
                ready=asyncio.Event(),
                deadline=began + LATE_REVIEW_SECONDS,
            )
            known = reviewer.seat.client
            if known is not None and known.alive and known.proved:
                reviewer.ready.set()
            work.append((reviewer, self._alone(reviewer.seat, reviewer.run())))
        cold = max((spoken.server.start_seconds for spoken in groups), default=0.0)
        await _wait_for_starts(work, min(seconds, cold))
        running = [task for reviewer, task in work if reviewer.ready.is_set()]
        if running:
            await asyncio.wait(running, timeout=max(began + seconds - time.monotonic(), 0.0))
        review = _combined_review([reviewer for reviewer, _ in work])
        if not all(task.done() for _, task in work):
            self._follow(work, late)
        return review

    def _edited(self, change: Change) -> EditedDocument | None:
        if change.after is None or (after := document_text(change.after.data)) is None:
            return None
        before = document_text(change.before.data) if change.before is not None else None
        return EditedDocument(change.path, self._texts.uri(change.path), before, after, change.after.data)

    def _follow(
        self, work: Sequence[tuple[ServerChangeReview, "asyncio.Task[None]"]], late: LateReviewListener
    ) -> None:
        async def follow() -> None:
            await asyncio.wait([task for _, task in work])
            if not any(task.cancelled() for _, task in work):
                late(_combined_review([reviewer for reviewer, _ in work]))

        task = asyncio.create_task(follow())
        self._behind[id(task)] = task
        task.add_done_callback(lambda each: self._behind.pop(id(each), None))

    async def _ask(self, question: LanguageQuestion, private: tuple[PathGlobs, ...]) -> LanguageAnswer:
        if not question.path:
            return await self._ask_project(question)
        if why := self._finder.missing_server_sentence(question.path):
            raise Unavailable(why, hint=NO_SERVER_HINT)
        spoken = self._finder.servers_of_file(question.path)
        if question.kind != "diagnostics":
            return await self._first_answer(spoken, question, private)
        answers = [await self._asked(each, question, private) for each in spoken]
        return _joined_answer([answer for answer in answers if answer])

    async def _first_answer(
        self, spoken: Sequence[FoundServer], question: LanguageQuestion, private: tuple[PathGlobs, ...]
    ) -> LanguageAnswer:
        """The first non-empty answer: for example, a linter has no references."""
        empty: LanguageAnswer | None = None
        for each in spoken:
            answer = await self._asked(each, question, private)
            if answer is not None and answer.tells:
                return answer
            empty = empty or answer
        if empty is None:
            names = " and ".join(each.server.name for each in spoken)
            raise Unavailable(f"{names} can't find {question.kind.replace('_', ' ')}.", hint=NO_SERVER_HINT)
        return empty

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
            asker = ServerQuery(
                seat, LANGUAGE_THREAD.pool, self._texts, time.monotonic() + LANGUAGE_QUERY_SECONDS
            )
            answers.append(await asker.answer(question))
        return _joined_answer([answer for answer in answers if answer])

    async def _asked(
        self, spoken: FoundServer, question: LanguageQuestion, private: tuple[PathGlobs, ...]
    ) -> LanguageAnswer | None:
        asker = ServerQuery(
            self._seat(spoken, private),
            LANGUAGE_THREAD.pool,
            self._texts,
            time.monotonic() + LANGUAGE_QUERY_SECONDS,
        )
        return await asker.answer(question)


async def _wait_for_starts(
    work: Sequence[tuple[ServerChangeReview, "asyncio.Task[None]"]], seconds: float
) -> None:
    """Wait at most `seconds` until each server is ready or has failed."""

    async def until(reviewer: ServerChangeReview, task: "asyncio.Task[None]") -> None:
        ready = asyncio.create_task(reviewer.ready.wait())
        try:
            await asyncio.wait([ready, task], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()

    pending = [asyncio.create_task(until(*each)) for each in work if not each[0].ready.is_set()]
    if pending:
        _, late = await asyncio.wait(pending, timeout=seconds)
        for task in late:
            task.cancel()


def _combined_review(reviewers: Sequence[ServerChangeReview]) -> DiagnosticReview:
    """Combine the reports of all servers so far; files without a report yet are `unknown`."""
    verdicts: list[DiagnosticReport] = []
    for reviewer in reviewers:
        found = reviewer.findings
        verdicts += found.verdicts
        if not found.main_done:
            why = STILL_CHECKING if reviewer.ready.is_set() else "still starting"
            known = {verdict.path for verdict in found.verdicts}
            verdicts += [
                DiagnosticReport(each.path, found.server, "unknown", why=why)
                for each in reviewer.edited
                if each.path not in known
            ]
        elif not found.done:
            verdicts.append(DiagnosticReport("other files", found.server, "unknown", why=STILL_CHECKING))
    return DiagnosticReview(
        deltas=tuple(each for reviewer in reviewers for each in reviewer.findings.deltas),
        elsewhere=tuple(each for reviewer in reviewers for each in reviewer.findings.elsewhere),
        verdicts=tuple(verdicts),
    )


def _joined_answer(answers: Sequence[LanguageAnswer]) -> LanguageAnswer:
    return LanguageAnswer(
        server=", ".join(dict.fromkeys(answer.server for answer in answers)),
        places=tuple(place for answer in answers for place in answer.places),
        verdicts=tuple(verdict for answer in answers for verdict in answer.verdicts),
        notes=tuple(note for answer in answers for note in answer.notes),
        partial=any(answer.partial for answer in answers),
    )
