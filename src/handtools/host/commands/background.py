"""Background: commands that go on after their call; they end with us at the latest."""

import contextlib
import time
from dataclasses import dataclass, field
from pathlib import Path

import anyio
from anyio import to_thread

from handtools.core.call import Call
from handtools.core.command import Command, Exit, Job, Page, Ran, Settle
from handtools.core.errors import HandtoolsError, InvalidInput, NotFound, TooLarge
from handtools.host.commands.carrying import Carrier
from handtools.host.commands.exits import exit_of, notes_of, output_name, output_of
from handtools.host.commands.launching import Launch
from handtools.host.commands.processes.running import Ended, Running
from handtools.host.commands.session import Slip

MOST = 32
"""Jobs of one session that run at the same time."""
REMEMBERED = 64
"""Ended jobs that can still be asked about."""


@dataclass(slots=True)
class Task:
    """A command in the background, with all that is kept for it."""

    call: Call
    command: Command
    description: str
    slip: Slip
    carrier: Carrier
    settle: Settle
    id: str = ""
    running: Running = field(init=False)
    exit: Exit | None = None
    waiting: Ran | None = None
    """It has ended, and what it changed has not landed."""

    def start(self, launch: Launch, kept: Path) -> None:
        """Have it begin; raises when it can't be prepared."""
        self.running = Running(launch, kept, None, self.carrier.carry, self._ended)
        self.running.begun()

    def close(self) -> None:
        """Let go of everything."""
        self.running.close()
        self.slip.close()
        self.carrier.discard()

    def _ended(self, ended: Ended) -> None:
        """In the job's thread: note how it ended, and have what it changed landed."""
        delta = self.carrier.delta
        ran = Ran(
            exit=exit_of(ended, output_name(self.call), "", (*notes_of(ended), *self.carrier.notes)),
            delta=delta.changes,
            coverage=delta.coverage,
            omitted=delta.omitted,
            discard=self.carrier.discard,
        )
        end = ran.exit if ended.fault else self.settle(ran)
        self.exit, self.waiting = end or ran.exit, None if end else ran


class Background:
    """The jobs of one workspace, all sessions."""

    def __init__(self) -> None:
        self._jobs: dict[str, Task] = {}
        self._count = 0

    def check(self, session: str) -> None:
        """Raise when the session has too many jobs already."""
        alive = [k for k in self._of(session) if k.running.ended is None]
        if len(alive) >= MOST:
            raise TooLarge(f"{MOST} jobs are running.", hint="End one with `jobs` first.")

    async def start(self, task: Task, launch: Launch, kept: Path) -> Job:
        """Start a command, and look after it."""
        try:
            await to_thread.run_sync(task.start, launch, kept)
        except BaseException:
            task.close()
            raise
        self._count += 1
        task.id = f"job{self._count}"
        self._jobs[task.id] = task
        self._forget()
        return _shown(task)

    def settled(self, job_id: str, session: str, end: Exit) -> None:
        """What a job changed has landed, or never will."""
        kept = self._find(job_id, session)
        kept.exit, kept.waiting = end, None

    def listed(self, session: str) -> list[Job]:
        """The jobs of a session, newest first."""
        return [_shown(kept) for kept in reversed(self._of(session))]

    async def wait(self, job_id: str, session: str, timeout: float) -> Job:  # noqa: ASYNC109
        """One job, after waiting at most so long for its end."""
        kept = self._find(job_id, session)
        if timeout > 0:
            with anyio.move_on_after(timeout):
                await kept.running.wait()
        return _shown(kept)

    def page(self, job_id: str, session: str, start: int, size: int) -> Page:
        """A part of what a job printed."""
        data, begin = self._find(job_id, session).running.output.part(start, size)
        return Page(data, begin, begin + len(data))

    async def send(self, job_id: str, session: str, data: bytes) -> None:
        """Write to a job's input."""
        kept = self._find(job_id, session)
        if not await to_thread.run_sync(kept.running.send, data):
            raise InvalidInput(f"{job_id} takes no input now.", hint="Look at its output first.")

    async def kill(self, job_id: str, session: str) -> Job:
        """End a job; returns when its whole tree is gone."""
        kept = self._find(job_id, session)
        kept.running.end("killed")
        with anyio.CancelScope(shield=True):
            await kept.running.wait()
        return _shown(kept)

    def close(self) -> None:
        """End every job; what they changed lands like that of any other, unless it waits for a person's word."""
        for kept in self._jobs.values():
            kept.running.end("killed")
        for kept in self._jobs.values():
            with contextlib.suppress(HandtoolsError, OSError):
                kept.running.result()
            kept.close()
        self._jobs.clear()

    def _of(self, session: str) -> list[Task]:
        return [kept for kept in self._jobs.values() if kept.call.session == session]

    def _find(self, job_id: str, session: str) -> Task:
        kept = self._jobs.get(job_id)
        if kept is None or kept.call.session != session:
            known = ", ".join(kept.id for kept in self._of(session)) or "none"
            raise NotFound(f"There is no job `{job_id}`.", hint=f"Jobs: {known}.")
        return kept

    def _forget(self) -> None:
        over = [kept for kept in self._jobs.values() if kept.running.ended is not None][:-REMEMBERED]
        for kept in over:
            kept.close()
            del self._jobs[kept.id]


def _shown(kept: Task) -> Job:
    ended = kept.running.ended
    return Job(
        id=kept.id,
        script=kept.command.script,
        description=kept.description,
        seconds=ended.seconds if ended else time.monotonic() - kept.running.started,
        output=output_of(kept.running.output, output_name(kept.call)),
        exit=kept.exit if ended else None,
        call_id=kept.call.id,
        waiting=kept.waiting if ended else None,
        review=kept.command.review,
        terminal=kept.command.terminal,
    )
