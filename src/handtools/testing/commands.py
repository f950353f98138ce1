"""Commands that run nothing: each script has its answer. For testing tools without a process."""

# ruff: noqa: ARG002 — a fake takes what the port gives

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from anyio import to_thread

from handtools.core.call import Call
from handtools.core.command import Command, Exit, Inherited, Job, Output, Page, Ran, Settle, Show, Shown
from handtools.core.errors import NotFound

HEAD_BYTES = 32 << 10

Reaction = Callable[[bytes], bytes]
"""What a job prints when it is sent something."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a script comes to."""

    output: bytes = b""
    code: int | None = 0
    signal: int | None = None
    cwd: str = "."
    notes: tuple[str, ...] = ()
    reaction: Reaction = lambda _: b""


@dataclass(slots=True)
class _Started:
    call: Call
    command: Command
    description: str
    answer: Answer
    printed: bytes
    settle: Settle
    exit: Exit | None = None
    waiting: Ran | None = None


@dataclass(slots=True)
class MemoryCommands:
    """The HostCommands port over a dict of answers; jobs run until they are killed."""

    answers: Mapping[str, Answer] = field(default_factory=dict)
    confined: bool = True
    boundary: str = "Nothing is run at all."
    missing: str = ""
    ran: list[Command] = field(default_factory=list)
    """Every command that came through, in order."""
    left: dict[str, Inherited] = field(default_factory=dict)
    """By session, what a command of it begins with."""
    _jobs: dict[str, _Started] = field(default_factory=dict)

    async def run(
        self, command: Command, *, call: Call, show: Show, private: Sequence[str], read_only: Sequence[str]
    ) -> Ran:
        """Give the answer of a script."""
        answer = self._answer(command)
        show(Shown(answer.output.decode(errors="replace"), len(answer.output), 1, clipped=False))
        return Ran(exit=_exit(answer, answer.output, call.id))

    async def start(
        self,
        command: Command,
        *,
        call: Call,
        description: str,
        private: Sequence[str],
        read_only: Sequence[str],
        show: Show,
        settle: Settle,
    ) -> Job:
        """A job that has printed its answer and waits."""
        answer = self._answer(command)
        name = f"job{len(self._jobs) + 1}"
        self._jobs[name] = _Started(call, command, description, answer, answer.output, settle)
        return self._shown(name)

    async def jobs(self, session: str) -> list[Job]:
        """Newest first."""
        found = [name for name, job in self._jobs.items() if job.call.session == session]
        return [self._shown(name) for name in reversed(found)]

    async def job(self, job_id: str, session: str, *, timeout: float) -> Job:  # noqa: ASYNC109
        """One job, without waiting."""
        self._find(job_id, session)
        return self._shown(job_id)

    async def page(self, job_id: str, session: str, start: int, size: int) -> Page:
        """A part of what it printed."""
        data = self._find(job_id, session).printed[start : start + size]
        return Page(data, start, start + len(data))

    async def send(self, job_id: str, session: str, data: bytes) -> None:
        """Let it react."""
        job = self._find(job_id, session)
        job.printed += job.answer.reaction(data)

    async def kill(self, job_id: str, session: str) -> Job:
        """It ends."""
        job = self._find(job_id, session)
        killed = Answer(code=None, signal=9)
        if job.exit is None:
            job.exit = _exit(killed, job.printed, job.call.id, ended="killed")
            ran = Ran(exit=job.exit)
            end = await to_thread.run_sync(job.settle, ran)
            job.exit, job.waiting = end or job.exit, None if end else ran
        return self._shown(job_id)

    def inherited(self, session: str) -> Inherited:
        """As it was put down."""
        return self.left.get(session, Inherited())

    def settled(self, job_id: str, session: str, end: Exit) -> None:
        """It is."""
        job = self._find(job_id, session)
        job.exit, job.waiting = end, None

    def close(self) -> None:
        """All jobs are gone."""
        self._jobs.clear()

    def _answer(self, command: Command) -> Answer:
        self.ran.append(command)
        return self.answers.get(command.script, Answer(b"no answer\n", 127))

    def _find(self, job_id: str, session: str) -> _Started:
        job = self._jobs.get(job_id)
        if job is None or job.call.session != session:
            raise NotFound(f"There is no job `{job_id}`.", hint="`action=list` names the jobs.")
        return job

    def _shown(self, name: str) -> Job:
        job = self._jobs[name]
        return Job(
            id=name,
            script=job.command.script,
            description=job.description,
            seconds=1.0,
            output=_output(job.printed, job.call.id),
            exit=job.exit,
            call_id=job.call.id,
            waiting=job.waiting,
            terminal=job.command.terminal,
        )


def _exit(answer: Answer, output: bytes, name: str, *, ended: str = "exited") -> Exit:
    return Exit(
        code=answer.code,
        signal=answer.signal,
        ended="killed" if ended == "killed" else "exited",
        seconds=1.0,
        output=_output(output, name),
        cwd=answer.cwd,
        notes=answer.notes,
    )


def _output(data: bytes, name: str) -> Output:
    head, rest = data[:HEAD_BYTES], data[HEAD_BYTES:]
    return Output(
        head=head,
        tail=rest[-HEAD_BYTES:],
        bytes=len(data),
        lines=data.count(b"\n") + (data[-1:] not in {b"", b"\n"}),
        kept=f"{name}.log" if rest else "",
    )
