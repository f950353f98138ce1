"""Background: commands that go on after their call; they end with us at the latest."""

import time
from contextlib import ExitStack
from dataclasses import dataclass

import anyio
from anyio import to_thread

from handtools.core.call import Call
from handtools.core.command import Command, Job, Page
from handtools.core.errors import InvalidInput, NotFound, TooLarge
from handtools.host.commands.exits import exit_of, notes_of, output_name, output_of
from handtools.host.commands.processes.running import Running

MOST = 32
"""Jobs of one session that run at the same time."""
REMEMBERED = 64
"""Ended jobs that can still be asked about."""


@dataclass(slots=True)
class _Kept:
    id: str
    call: Call
    command: Command
    description: str
    running: Running
    held: ExitStack
    """What is to be closed when it is over."""


class Background:
    """The jobs of one workspace, all sessions."""

    def __init__(self) -> None:
        self._jobs: dict[str, _Kept] = {}
        self._count = 0

    def check(self, session: str) -> None:
        """Raise when the session has too many jobs already."""
        alive = [k for k in self._of(session) if k.running.ended is None]
        if len(alive) >= MOST:
            raise TooLarge(f"{MOST} jobs are running.", hint="End one with `jobs` first.")

    def add(self, call: Call, command: Command, description: str, running: Running, held: ExitStack) -> Job:
        """Take over a running command."""
        self._count += 1
        kept = _Kept(f"job{self._count}", call, command, description, running, held)
        self._jobs[kept.id] = kept
        self._forget()
        return _shown(kept)

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
        """End every job."""
        for kept in self._jobs.values():
            kept.running.end("killed")
        for kept in self._jobs.values():
            kept.running.result()
            kept.running.close()
            kept.held.close()
        self._jobs.clear()

    def _of(self, session: str) -> list[_Kept]:
        return [kept for kept in self._jobs.values() if kept.call.session == session]

    def _find(self, job_id: str, session: str) -> _Kept:
        kept = self._jobs.get(job_id)
        if kept is None or kept.call.session != session:
            known = ", ".join(kept.id for kept in self._of(session)) or "none"
            raise NotFound(f"There is no job `{job_id}`.", hint=f"Jobs: {known}.")
        return kept

    def _forget(self) -> None:
        over = [kept for kept in self._jobs.values() if kept.running.ended is not None][:-REMEMBERED]
        for kept in over:
            kept.running.close()
            kept.held.close()
            del self._jobs[kept.id]


def _shown(kept: _Kept) -> Job:
    ended = kept.running.ended
    seconds = ended.seconds if ended else time.monotonic() - kept.running.started
    return Job(
        id=kept.id,
        script=kept.command.script,
        description=kept.description,
        seconds=seconds,
        output=output_of(kept.running.output, output_name(kept.call)),
        exit=exit_of(ended, output_name(kept.call), "", notes_of(ended)) if ended else None,
        terminal=kept.command.terminal,
    )
