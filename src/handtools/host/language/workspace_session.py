"""The language servers of one workspace: start them in a sandbox, send them questions and changes."""

import asyncio
import time
from collections.abc import Callable, Collection, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from handtools.core.changes import Change, ChangeSet
from handtools.core.errors import Unavailable
from handtools.core.language import (
    NO_SERVER_HINT,
    DiagnosticReport,
    DiagnosticReview,
    LanguageAnswer,
    LanguageQuestion,
    LateReviewListener,
)
from handtools.host.language.change_diagnostics import (
    ChangedDefinitions,
    EditedDocument,
    ServerChangeReview,
)
from handtools.host.language.fresh_diagnostics import STILL_CHECKING, proved_diagnostics
from handtools.host.language.lsp_client import DocumentFiles, LspClient, document_text
from handtools.host.language.lsp_requests import ServerQuery
from handtools.host.language.server_pool import (
    LANGUAGE_THREAD,
    DiagnosticsBaseline,
    ServerNotReady,
    ServerSlot,
)
from handtools.host.language.server_process import ServerLost, ServerProcess, server_launch
from handtools.host.language.servers import (
    UNCONFINED_SERVERS_NOTE,
    FoundServer,
    LanguageServer,
    ServerFinder,
)
from handtools.host.programs import is_outside_workspace
from handtools.host.sandbox.launch import Runner
from handtools.host.sandbox.program_dependencies import node_modules_folder
from handtools.text.search.glob import PathGlobs

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
        self._document_files = DocumentFiles(workspace)
        self._definitions = ChangedDefinitions(workspace)
        self._tasks: dict[int, asyncio.Task[None]] = {}
        """For each slot, the task still running for an earlier call; a newer call cancels it."""

    def warm(self, path: str, private_globs: tuple[PathGlobs, ...]) -> None:
        """Start the servers of a file in advance and record its current errors; returns at once."""
        LANGUAGE_THREAD.submit(self._warm_up_servers(path, private_globs))

    async def review(
        self,
        changes: ChangeSet,
        ignored: Collection[str],
        private_globs: tuple[PathGlobs, ...],
        seconds: float,
        late: LateReviewListener,
    ) -> DiagnosticReview:
        """The new errors found in a change within `seconds`; errors found later are passed to `late`."""
        return await LANGUAGE_THREAD.run(
            self._review_on_thread(changes.changes, ignored, private_globs, seconds, late)
        )

    async def ask(self, question: LanguageQuestion, private_globs: tuple[PathGlobs, ...]) -> LanguageAnswer:
        """Ask the language servers of a file a question; returns their combined answer."""
        return await LANGUAGE_THREAD.run(self._ask_on_thread(question, private_globs))

    def close(self) -> None:
        """Release this workspace's servers; returns when those without another owner have stopped."""
        LANGUAGE_THREAD.submit(self._release_servers()).result(LATE_REVIEW_SECONDS)

    async def _release_servers(self) -> None:
        for task in self._tasks.values():
            task.cancel()
        await LANGUAGE_THREAD.pool.release_owner(self)

    def _slot_of_server(
        self, found_server: FoundServer, private_globs: tuple[PathGlobs, ...]
    ) -> ServerSlot:
        key = (found_server, self._workspace, private_globs)
        start = partial(self._start_server, found_server, private_globs)
        return LANGUAGE_THREAD.pool.slot(key, found_server.server.name, start, self)

    async def _start_server(
        self, found_server: FoundServer, private_globs: tuple[PathGlobs, ...]
    ) -> LspClient:
        loop = asyncio.get_running_loop()
        launch = await loop.run_in_executor(
            None, server_launch, found_server, self._workspace, self._cache, private_globs
        )
        runner = await loop.run_in_executor(None, self._runner)
        if not runner.confined and (
            found_server.server.runs_code or not is_outside_workspace(found_server.program, self._workspace)
        ):
            raise ServerLost(UNCONFINED_SERVERS_NOTE)
        process = await ServerProcess.start(launch, runner)
        client = LspClient(found_server.server, found_server.root, process)
        try:
            await client.start(node_modules_folder(found_server.program))
        except BaseException:
            await client.stop("it did not start")
            raise
        return client

    def _replace_task(self, slot: ServerSlot, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Start a task for a slot, cancelling the one still running for an earlier call."""
        former = self._tasks.get(id(slot))
        if former is not None and not former.done():
            former.cancel()
        task = self._tasks[id(slot)] = asyncio.create_task(work)
        return task

    async def _warm_up_servers(self, path: str, private_globs: tuple[PathGlobs, ...]) -> None:
        for found_server in self._finder.servers_of_file(path):
            slot = self._slot_of_server(found_server, private_globs)
            former = self._tasks.get(id(slot))
            if former is None or former.done():
                self._replace_task(slot, self._record_current_errors(path, slot))

    async def _record_current_errors(self, path: str, slot: ServerSlot) -> None:
        uri, deadline = self._document_files.uri(path), time.monotonic() + LATE_REVIEW_SECONDS
        stamp, text = self._document_files.stamp(path), document_text(self._document_files.read(path))
        if text is None or stamp is None or (slot.client and slot.stamps.get(uri) == stamp):
            return
        async with slot.lock:
            try:
                client = await LANGUAGE_THREAD.pool.client(slot, deadline)
            except ServerNotReady:
                return  # the next call that needs the server reports the failure
            verdict = await proved_diagnostics(client, client.tell(uri, text), path, deadline)
            if verdict.standing != "unknown":
                slot.stamps[uri] = stamp
                slot.set_baseline(uri, DiagnosticsBaseline(text, verdict.errors))

    async def _review_on_thread(
        self,
        changes: Sequence[Change],
        ignored: Collection[str],
        private_globs: tuple[PathGlobs, ...],
        seconds: float,
        late: LateReviewListener,
    ) -> DiagnosticReview:
        began = time.monotonic()
        groups: dict[FoundServer, list[EditedDocument]] = {}
        for change in changes:
            edited = None if change.path in ignored else self._edited_document(change)
            for found_server in self._finder.servers_of_file(change.path):
                if edited is not None:
                    groups.setdefault(found_server, []).append(edited)
                elif self._is_running(found_server, private_globs):
                    # Files that it checks may import the ignored or deleted file.
                    groups.setdefault(found_server, [])
        reviews: list[tuple[ServerChangeReview, asyncio.Task[None]]] = []
        start_wait = 0.0
        for found_server, edited_documents in groups.items():
            reviewer = ServerChangeReview(
                self._slot_of_server(found_server, private_globs),
                self._document_files,
                self._definitions,
                edited_documents,
                changes,
                deadline=began + LATE_REVIEW_SECONDS,
            )
            known = reviewer.slot.client
            if known is not None and known.alive and known.proved:
                reviewer.ready.set()
            start_wait = max(start_wait, _remaining_start_wait(reviewer.slot, found_server.server))
            reviews.append((reviewer, self._replace_task(reviewer.slot, reviewer.run())))
        await _wait_for_starts(reviews, min(seconds, start_wait))
        running = [task for reviewer, task in reviews if reviewer.ready.is_set()]
        if running:
            await asyncio.wait(running, timeout=max(began + seconds - time.monotonic(), 0.0))
        review = _combined_review([reviewer for reviewer, _ in reviews])
        if not all(task.done() for _, task in reviews):
            self._report_late_errors(reviews, late)
        return review

    def _is_running(self, found_server: FoundServer, private_globs: tuple[PathGlobs, ...]) -> bool:
        slot = LANGUAGE_THREAD.pool.slots.get((found_server, self._workspace, private_globs))
        return slot is not None and slot.client is not None and slot.client.alive

    def _edited_document(self, change: Change) -> EditedDocument | None:
        if change.after is None or (after := document_text(change.after.data)) is None:
            return None
        before = document_text(change.before.data) if change.before is not None else None
        return EditedDocument(
            change.path, self._document_files.uri(change.path), before, after, change.after.data
        )

    def _report_late_errors(
        self, reviews: Sequence[tuple[ServerChangeReview, "asyncio.Task[None]"]], late: LateReviewListener
    ) -> None:
        async def follow() -> None:
            await asyncio.wait([task for _, task in reviews])
            if not any(task.cancelled() for _, task in reviews):
                late(_combined_review([reviewer for reviewer, _ in reviews]))

        task = asyncio.create_task(follow())
        self._tasks[id(task)] = task
        task.add_done_callback(lambda each: self._tasks.pop(id(each), None))

    async def _ask_on_thread(
        self, question: LanguageQuestion, private_globs: tuple[PathGlobs, ...]
    ) -> LanguageAnswer:
        if not question.path:
            return await self._ask_running_servers(question)
        if why := self._finder.missing_server_sentence(question.path):
            raise Unavailable(why, hint=NO_SERVER_HINT)
        found_servers = self._finder.servers_of_file(question.path)
        slots = [self._slot_of_server(found_server, private_globs) for found_server in found_servers]
        if question.kind == "diagnostics":
            return await self._joined_answer_of_slots(slots, question)
        return await self._first_non_empty_answer(slots, question)

    async def _ask_running_servers(self, question: LanguageQuestion) -> LanguageAnswer:
        slots = [
            slot for slot in LANGUAGE_THREAD.pool.slots.values() if self in slot.owners and slot.client
        ]
        if not slots:
            raise Unavailable(
                "No language server is running yet.",
                hint="Set `path` to a file of the project to start one.",
            )
        return await self._joined_answer_of_slots(slots, question)

    async def _joined_answer_of_slots(
        self, slots: Sequence[ServerSlot], question: LanguageQuestion
    ) -> LanguageAnswer:
        answers = [await self._answer_from_slot(slot, question) for slot in slots]
        return _joined_answer([answer for answer in answers if answer])

    async def _first_non_empty_answer(
        self, slots: Sequence[ServerSlot], question: LanguageQuestion
    ) -> LanguageAnswer:
        """The first non-empty answer. Some servers have none: a linter, for example, finds no references."""
        empty_answer: LanguageAnswer | None = None
        for slot in slots:
            answer = await self._answer_from_slot(slot, question)
            if answer is not None and answer.tells:
                return answer
            empty_answer = empty_answer or answer
        if empty_answer is None:
            names = " and ".join(slot.name for slot in slots)
            raise Unavailable(f"{names} can't find {question.kind.replace('_', ' ')}.", hint=NO_SERVER_HINT)
        return empty_answer

    async def _answer_from_slot(
        self, slot: ServerSlot, question: LanguageQuestion
    ) -> LanguageAnswer | None:
        deadline = time.monotonic() + LANGUAGE_QUERY_SECONDS
        return await ServerQuery(slot, self._document_files, deadline).answer(question)


def _remaining_start_wait(slot: ServerSlot, server: LanguageServer) -> float:
    """Seconds that a check still waits for a server to start.

    All checks during a start share `start_seconds`, so that a slow start delays only the first.
    """
    if slot.start_requested is None:
        return server.start_seconds
    return max(slot.start_requested + server.start_seconds - time.monotonic(), 0.0)


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
        server = reviewer.slot.name
        reports += reviewer.reports
        if not reviewer.main_done:
            why = STILL_CHECKING if reviewer.ready.is_set() else "still starting"
            known = {report.path for report in reviewer.reports}
            reports += [
                DiagnosticReport(each.path, server, "unknown", why=why)
                for each in reviewer.edited
                if each.path not in known
            ]
        elif not reviewer.done:
            reports.append(DiagnosticReport("other files", server, "unknown", why=STILL_CHECKING))
    return DiagnosticReview(
        deltas=tuple(each for reviewer in reviewers for each in reviewer.deltas),
        elsewhere=tuple(each for reviewer in reviewers for each in reviewer.other_deltas),
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
