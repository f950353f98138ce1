"""Stubs with canned answers: commands, language servers and web, without a process or a network."""

# ruff: noqa: ARG002 — a fake takes what the port gives

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from anyio import to_thread

from handtools.core.call import Call

# ruff: noqa: ARG001, ARG002 — a fake takes what the port gives
from handtools.core.changes import ChangeSet
from handtools.core.commands import (
    Command,
    CommandExit,
    CommandOutput,
    FinishedCommand,
    InheritedShellState,
    Job,
    JobEndHandler,
    OutputPage,
    OutputProgress,
    ProgressListener,
)
from handtools.core.errors import NotFound, ToolError, Unavailable, Unreachable
from handtools.core.language import (
    NO_SERVER_HINT,
    Diagnostic,
    DiagnosticReport,
    DiagnosticReview,
    KnownServer,
    LanguageAnswer,
    LanguageOperation,
    LanguageQuestion,
    LateReviewListener,
    diagnostic_delta,
)
from handtools.core.web import (
    HostIsListed,
    PageForm,
    RenderedPage,
    SearchEngine,
    WebQuery,
    WebRequest,
    WebResponse,
    WebSearchHit,
    WebSearchHits,
)
from handtools.host.web.page_text import rendered_page
from handtools.text.web.url import parse_url

STUB_HEAD_BYTES = 32 << 10

Reaction = Callable[[bytes], bytes]
"""What a job prints when it is sent something."""


@dataclass(frozen=True, slots=True)
class CannedOutput:
    """What a script comes to."""

    output: bytes = b""
    code: int | None = 0
    signal: int | None = None
    cwd: str = "."
    notes: tuple[str, ...] = ()
    reaction: Reaction = lambda _: b""


@dataclass(slots=True)
class _StartedJob:
    call: Call
    command: Command
    description: str
    answer: CannedOutput
    printed: bytes
    settle: JobEndHandler
    exit: CommandExit | None = None
    waiting: FinishedCommand | None = None


@dataclass(slots=True)
class MemoryCommands:
    """The HostCommands port over a dict of answers; jobs run until they are killed."""

    answers: Mapping[str, CannedOutput] = field(default_factory=dict)
    confined: bool = True
    boundary: str = "Nothing is run at all."
    missing: str = ""
    ran: list[Command] = field(default_factory=list)
    """Every command that came through, in order."""
    left: dict[str, InheritedShellState] = field(default_factory=dict)
    """By session, what a command of it begins with."""
    _jobs: dict[str, _StartedJob] = field(default_factory=dict)

    async def run(
        self,
        command: Command,
        *,
        call: Call,
        show: ProgressListener,
        private: Sequence[str],
        read_only: Sequence[str],
    ) -> FinishedCommand:
        """Give the answer of a script."""
        answer = self._answer(command)
        show(OutputProgress(answer.output.decode(errors="replace"), len(answer.output), 1, clipped=False))
        return FinishedCommand(exit=_exit(answer, answer.output, call.id))

    async def start(
        self,
        command: Command,
        *,
        call: Call,
        description: str,
        private: Sequence[str],
        read_only: Sequence[str],
        show: ProgressListener,
        settle: JobEndHandler,
    ) -> Job:
        """A job that has printed its answer and waits."""
        answer = self._answer(command)
        name = f"job{len(self._jobs) + 1}"
        self._jobs[name] = _StartedJob(call, command, description, answer, answer.output, settle)
        return self._shown(name)

    async def jobs(self, session: str) -> list[Job]:
        """Newest first."""
        found = [name for name, job in self._jobs.items() if job.call.session == session]
        return [self._shown(name) for name in reversed(found)]

    async def job(self, job_id: str, session: str, *, timeout: float) -> Job:  # noqa: ASYNC109
        """One job, without waiting."""
        self._find(job_id, session)
        return self._shown(job_id)

    async def page(self, job_id: str, session: str, start: int, size: int) -> OutputPage:
        """A part of what it printed."""
        data = self._find(job_id, session).printed[start : start + size]
        return OutputPage(data, start, start + len(data))

    async def send(self, job_id: str, session: str, data: bytes) -> None:
        """Let it react."""
        job = self._find(job_id, session)
        job.printed += job.answer.reaction(data)

    async def kill(self, job_id: str, session: str) -> Job:
        """It ends."""
        job = self._find(job_id, session)
        killed = CannedOutput(code=None, signal=9)
        if job.exit is None:
            job.exit = _exit(killed, job.printed, job.call.id, ended="killed")
            ran = FinishedCommand(exit=job.exit)
            end = await to_thread.run_sync(job.settle, ran)
            job.exit, job.waiting = end or job.exit, None if end else ran
        return self._shown(job_id)

    def inherited(self, session: str) -> InheritedShellState:
        """As it was put down."""
        return self.left.get(session, InheritedShellState())

    def settled(self, job_id: str, session: str, end: CommandExit) -> None:
        """It is."""
        job = self._find(job_id, session)
        job.exit, job.waiting = end, None

    def close(self) -> None:
        """All jobs are gone."""
        self._jobs.clear()

    def _answer(self, command: Command) -> CannedOutput:
        self.ran.append(command)
        return self.answers.get(command.script, CannedOutput(b"no answer\n", 127))

    def _find(self, job_id: str, session: str) -> _StartedJob:
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


def _exit(answer: CannedOutput, output: bytes, name: str, *, ended: str = "exited") -> CommandExit:
    return CommandExit(
        code=answer.code,
        signal=answer.signal,
        ended="killed" if ended == "killed" else "exited",
        seconds=1.0,
        output=_output(output, name),
        cwd=answer.cwd,
        notes=answer.notes,
    )


def _output(data: bytes, name: str) -> CommandOutput:
    head, rest = data[:STUB_HEAD_BYTES], data[STUB_HEAD_BYTES:]
    return CommandOutput(
        head=head,
        tail=rest[-STUB_HEAD_BYTES:],
        bytes=len(data),
        lines=data.count(b"\n") + (data[-1:] not in {b"", b"\n"}),
        kept=f"{name}.log" if rest else "",
    )


ErrorCheck = Callable[[str, str], Sequence[tuple[int, str]]]
"""The lines and messages of the errors in a text, by its path and its body."""
INSTALL_COMMAND = "pip install example-server"


def errors_marked(path: str, body: str) -> list[tuple[int, str]]:
    """An error for each line that says ERROR and what it is."""
    rows = enumerate(body.splitlines(), 1)
    return [(line, row.partition("ERROR ")[2]) for line, row in rows if "ERROR " in row]


@dataclass(slots=True)
class MemoryLanguage:
    """The HostLanguage port over a function from text to errors."""

    check: ErrorCheck = errors_marked
    suffix: str = ".py"
    unknown: str = ""
    """Why nothing can be proved; empty when everything is."""
    answers: dict[LanguageOperation, LanguageAnswer] = field(default_factory=dict)
    warmed: list[str] = field(default_factory=list)
    private: list[tuple[str, ...]] = field(default_factory=list)
    """The globs that came with each question."""

    def speaks(self, path: str) -> bool:
        """By the suffix."""
        return path.endswith(self.suffix)

    def missing(self, path: str) -> str:
        """Which command would help."""
        return "" if self.speaks(path) else f"No server for `{path}`; install one: `{INSTALL_COMMAND}`."

    def warm(self, path: str, *, private: Sequence[str]) -> None:
        """Noted."""
        self.warmed.append(path)

    async def review(
        self,
        changes: ChangeSet,
        *,
        private: Sequence[str],
        timeout: float,  # noqa: ASYNC109
        late: LateReviewListener,
    ) -> DiagnosticReview:
        """The errors before and after, told apart."""
        self.private.append(tuple(private))
        spoken = [change for change in changes if self.speaks(change.path) and change.after is not None]
        if self.unknown:
            return DiagnosticReview(
                verdicts=tuple(
                    DiagnosticReport(each.path, "memory", "unknown", why=self.unknown) for each in spoken
                )
            )
        deltas, verdicts = [], []
        for change in spoken:
            before = change.before.data.decode() if change.before else ""
            after = change.after.data.decode() if change.after else ""
            now = self._errors(change.path, after)
            deltas.append(
                diagnostic_delta(change.path, before, after, self._errors(change.path, before), now)
            )
            verdicts.append(DiagnosticReport(change.path, "memory", "fresh", now))
        return DiagnosticReview(deltas=tuple(deltas), verdicts=tuple(verdicts))

    async def ask(self, question: LanguageQuestion, *, private: Sequence[str]) -> LanguageAnswer:
        """The answer to a kind of question."""
        self.private.append(tuple(private))
        if question.kind not in self.answers:
            raise Unavailable(f"`{question.kind}` has no answer here.", hint=NO_SERVER_HINT)
        return self.answers[question.kind]

    def speakers(self) -> list[KnownServer]:
        """Itself."""
        return [KnownServer("memory", ("python",), "memory", "1", INSTALL_COMMAND)]

    def close(self) -> None:
        """Nothing to let go of."""

    def _errors(self, path: str, body: str) -> tuple[Diagnostic, ...]:
        return tuple(Diagnostic(path, line, 0, message) for line, message in self.check(path, body))


@dataclass(frozen=True, slots=True, kw_only=True)
class CannedPage:
    """What an address answers."""

    data: bytes = b""
    media_type: str = "text/html"
    charset: str = ""
    status: int = 200
    location: str = ""
    retry_after: float | None = None


@dataclass(slots=True)
class MemoryWeb:
    """The HostWeb port over a dict of answers; nothing is kept, so every visit is counted."""

    sites: Mapping[str, CannedPage] = field(default_factory=dict)
    found: tuple[WebSearchHit, ...] | ToolError = ()
    """What the engine finds, or how it fails."""
    missing: str = ""
    engine: SearchEngine | None = field(
        default_factory=lambda: SearchEngine("memory", parse_url("https://engine.example"))
    )
    visited: list[str] = field(default_factory=list)
    """Every address that was asked, in order."""

    async def visit(self, request: WebRequest, *, opens: HostIsListed) -> WebResponse:
        """Give the answer of an address."""
        url = str(request.url)
        self.visited.append(url)
        site = self.sites.get(url)
        if site is None:
            hint = "Check the name, or try another source."
            raise Unreachable(f"{request.url.host} can't be found: there is no such name.", hint=hint)
        return WebResponse(
            url=request.url,
            status=site.status,
            media_type=site.media_type,
            charset=site.charset,
            location=site.location,
            retry_after=site.retry_after,
            data=site.data,
            received_bytes=len(site.data),
        )

    async def render(self, answer: WebResponse, form: PageForm) -> RenderedPage:
        """A page as text."""
        return await rendered_page(answer, form)

    async def search(self, query: WebQuery, *, opens: HostIsListed) -> WebSearchHits:
        """What there is."""
        self.visited.append(f"search {query.text}")
        if isinstance(self.found, ToolError):
            raise self.found
        return WebSearchHits(engine="memory", findings=self.found[: query.most])
