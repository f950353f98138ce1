"""A desk: what a workspace has under way with language servers, on their thread."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from handtools.core.changes import Change, ChangeSet
from handtools.core.errors import Unavailable
from handtools.core.language import OTHERWISE, Answer, Late, Question, Review, Verdict
from handtools.host.commands.launching import Runner
from handtools.host.language.asking import Asker
from handtools.host.language.child import NotStarted
from handtools.host.language.client import Client
from handtools.host.language.finding import UNCONFINED, Finder, Spoken
from handtools.host.language.freshness import CHECKING, prove
from handtools.host.language.launching import launch, started
from handtools.host.language.pool import Baseline, NotReady, Seat
from handtools.host.language.reviewing import Edited, Findings, Reviewer
from handtools.host.language.texts import Texts, text_of
from handtools.host.language.thread import THREAD
from handtools.host.programs import outside

LATE_SECONDS = 60.0
"""How long servers may go on after the call has its answer."""
ASK_SECONDS = 20.0


class Desk:
    """Methods without an underscore are called from anywhere, the others on the thread of the servers."""

    def __init__(self, workspace: str, finder: Finder, cache: Path, runner: Callable[[], Runner]) -> None:
        self._workspace = workspace
        self._finder = finder
        self._cache = cache
        self._runner = runner
        self._texts = Texts(workspace)
        self._behind: dict[int, asyncio.Task[None]] = {}
        """What a seat still does for an earlier call; a newer one is more important."""

    def warm(self, path: str, private: tuple[str, ...]) -> None:
        """Have servers know a file; returns at once."""
        THREAD.submit(self._warm(path, private))

    async def review(
        self, changes: ChangeSet, private: tuple[str, ...], seconds: float, late: Late
    ) -> Review:
        """What servers prove about a change in time."""
        return await THREAD.run(self._review(changes.changes, private, seconds, late))

    async def ask(self, question: Question, private: tuple[str, ...]) -> Answer:
        """What a server answers."""
        return await THREAD.run(self._ask(question, private))

    def close(self) -> None:
        """Let go of servers that nobody else uses; returns when they are gone."""
        THREAD.submit(self._close()).result(LATE_SECONDS)

    async def _close(self) -> None:
        for task in self._behind.values():
            task.cancel()
        await THREAD.pool.let_go(self)

    def _seat(self, spoken: Spoken, private: tuple[str, ...]) -> Seat:
        key = (spoken.server.name, spoken.program, spoken.root, self._workspace, private)
        starting = partial(self._start, spoken, private)
        return THREAD.pool.seat(key, spoken.server.name, starting, self)

    async def _start(self, spoken: Spoken, private: tuple[str, ...]) -> Client:
        loop = asyncio.get_running_loop()
        ready = await loop.run_in_executor(None, launch, spoken, self._workspace, self._cache, private)
        runner = await loop.run_in_executor(None, self._runner)
        if not runner.confined and (
            spoken.server.runs_code or not outside(spoken.program, self._workspace)
        ):
            raise NotStarted(UNCONFINED)
        return await started(spoken, ready, runner)

    def _alone(self, seat: Seat, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Do something at a seat in place of what it still did for others."""
        former = self._behind.get(id(seat))
        if former is not None and not former.done():
            former.cancel()
        task = self._behind[id(seat)] = asyncio.create_task(work)
        return task

    async def _warm(self, path: str, private: tuple[str, ...]) -> None:
        for spoken in self._finder.spoken(path):
            seat = self._seat(spoken, private)
            former = self._behind.get(id(seat))
            if former is None or former.done():
                self._alone(seat, self._look(path, seat))

    async def _look(self, path: str, seat: Seat) -> None:
        uri, deadline = self._texts.uri(path), time.monotonic() + LATE_SECONDS
        stamp, text = self._texts.stamp(path), text_of(self._texts.read(path))
        if text is None or stamp is None or (seat.client and seat.stamps.get(uri) == stamp):
            return
        async with seat.lock:
            try:
                client = await THREAD.pool.client(seat, deadline)
            except NotReady:
                return  # whoever needs it will hear of it
            verdict = await prove(client, client.tell(uri, text), path, deadline)
            if verdict.standing != "unknown":
                seat.stamps[uri] = stamp
                seat.keep(uri, Baseline(text, verdict.errors))

    async def _review(
        self, changes: Sequence[Change], private: tuple[str, ...], seconds: float, late: Late
    ) -> Review:
        began = time.monotonic()
        groups: dict[Spoken, list[Edited]] = {}
        for change in changes:
            if (edited := self._edited(change)) is not None:
                for spoken in self._finder.spoken(change.path):
                    groups.setdefault(spoken, []).append(edited)
        work: list[tuple[Reviewer, asyncio.Task[None]]] = []
        for spoken, files in groups.items():
            reviewer = Reviewer(
                seat=self._seat(spoken, private),
                pool=THREAD.pool,
                texts=self._texts,
                edited=files,
                changes=changes,
                findings=Findings(spoken.server.name),
                ready=asyncio.Event(),
                deadline=began + LATE_SECONDS,
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
        review = _combined([reviewer for reviewer, _ in work])
        if not all(task.done() for _, task in work):
            self._follow(work, late)
        return review

    def _edited(self, change: Change) -> Edited | None:
        if change.after is None or (after := text_of(change.after.data)) is None:
            return None
        before = text_of(change.before.data) if change.before is not None else None
        return Edited(change.path, self._texts.uri(change.path), before, after, change.after.data)

    def _follow(self, work: Sequence[tuple[Reviewer, "asyncio.Task[None]"]], late: Late) -> None:
        async def follow() -> None:
            await asyncio.wait([task for _, task in work])
            if not any(task.cancelled() for _, task in work):
                late(_combined([reviewer for reviewer, _ in work]))

        task = asyncio.create_task(follow())
        self._behind[id(task)] = task
        task.add_done_callback(lambda each: self._behind.pop(id(each), None))

    async def _ask(self, question: Question, private: tuple[str, ...]) -> Answer:
        if not question.path:
            return await self._ask_project(question)
        if why := self._finder.missing(question.path):
            raise Unavailable(why, hint=OTHERWISE)
        spoken = self._finder.spoken(question.path)
        answers = [await self._asked(each, question, private) for each in spoken]
        return answers[0] if question.kind != "diagnostics" else _joined(answers)

    async def _ask_project(self, question: Question) -> Answer:
        seats = [seat for seat in THREAD.pool.seats.values() if self in seat.owners and seat.client]
        if not seats:
            raise Unavailable(
                "No language server runs yet.",
                hint="Name a file of the project in `path`, so that one starts.",
            )
        answers = []
        for seat in seats:
            asker = Asker(seat, THREAD.pool, self._texts, time.monotonic() + ASK_SECONDS)
            answers.append(await asker.answer(question))
        return _joined(answers)

    async def _asked(self, spoken: Spoken, question: Question, private: tuple[str, ...]) -> Answer:
        asker = Asker(self._seat(spoken, private), THREAD.pool, self._texts, time.monotonic() + ASK_SECONDS)
        return await asker.answer(question)


async def _wait_for_starts(work: Sequence[tuple[Reviewer, "asyncio.Task[None]"]], seconds: float) -> None:
    """Wait until each server runs or has failed to, within its time."""

    async def until(reviewer: Reviewer, task: "asyncio.Task[None]") -> None:
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


def _combined(reviewers: Sequence[Reviewer]) -> Review:
    """What all servers have said by now; who has not is named."""
    verdicts: list[Verdict] = []
    for reviewer in reviewers:
        found = reviewer.findings
        verdicts += found.verdicts
        if not found.main_done:
            why = CHECKING if reviewer.ready.is_set() else "still starting"
            known = {verdict.path for verdict in found.verdicts}
            verdicts += [
                Verdict(each.path, found.server, "unknown", why=why)
                for each in reviewer.edited
                if each.path not in known
            ]
        elif not found.done:
            verdicts.append(Verdict("other files", found.server, "unknown", why=CHECKING))
    return Review(
        deltas=tuple(each for reviewer in reviewers for each in reviewer.findings.deltas),
        elsewhere=tuple(each for reviewer in reviewers for each in reviewer.findings.elsewhere),
        verdicts=tuple(verdicts),
    )


def _joined(answers: Sequence[Answer]) -> Answer:
    return Answer(
        server=", ".join(dict.fromkeys(answer.server for answer in answers)),
        places=tuple(place for answer in answers for place in answer.places),
        verdicts=tuple(verdict for answer in answers for verdict in answer.verdicts),
        notes=tuple(note for answer in answers for note in answer.notes),
    )
