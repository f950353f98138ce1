"""Test stubs with canned responses for the commands, language and web ports."""

# ruff: noqa: ARG001, ARG002 — a stub has the port's parameters, even if it does not use them

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

from anyio import to_thread

from handtools.core.call import Call
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
    PathPredicate,
    ProgressListener,
    PublishedPort,
    matches_no_path,
)
from handtools.core.errors import InvalidInput, NotFound, ToolError, Unavailable, Unreachable
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
from handtools.text.search.glob import PathGlobs
from handtools.text.web.url import parse_url

STUB_OUTPUT_HEAD_BYTES = 32 << 10

JobInputResponder = Callable[[bytes], bytes]
"""Function that gets the input sent to a stub job and returns the output that the job then prints."""


@dataclass(frozen=True, slots=True)
class CannedOutput:
    """How a script behaves in the stub: output, exit code or signal, final folder and response to input."""

    output: bytes = b""
    code: int | None = 0
    signal: int | None = None
    cwd: str = "."
    notes: tuple[str, ...] = ()
    reaction: JobInputResponder = lambda _: b""
    ports: tuple[int, ...] = ()
    """Ports on which a job listens while it runs."""


@dataclass(slots=True)
class _StartedJob:
    call: Call
    command: Command
    description: str
    output: CannedOutput
    printed: bytes
    settle: JobEndHandler
    exit: CommandExit | None = None
    finished: FinishedCommand | None = None
    published: dict[int, PublishedPort] = field(default_factory=dict)

    @property
    def ports(self) -> tuple[int, ...]:
        return () if self.exit else self.output.ports


@dataclass(slots=True)
class MemoryCommands:
    """Stub of the commands port with canned output for each script; jobs run until killed."""

    outputs: Mapping[str, CannedOutput] = field(default_factory=dict)
    confined: bool = True
    boundary: str = "No command is really run."
    missing: str = ""
    taken: frozenset[int] = frozenset()
    """Host ports that count as in use, so that other ports are published instead."""
    commands: list[Command] = field(default_factory=list)
    """All commands that were started, in order."""
    shell_states: dict[str, InheritedShellState] = field(default_factory=dict)
    """By session, the shell state that its commands start with."""
    home_files: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """By session, the paths of settings in its commands' home folder."""
    _jobs: dict[str, _StartedJob] = field(default_factory=dict)

    async def run(
        self,
        command: Command,
        *,
        call: Call,
        show: ProgressListener,
        private_globs: Sequence[PathGlobs],
        read_only_globs: Sequence[PathGlobs],
        is_open: PathPredicate = matches_no_path,
    ) -> FinishedCommand:
        """Return the canned result of the script."""
        answer = self._record_command_and_get_output(command)
        show(OutputProgress(answer.output.decode(errors="replace"), len(answer.output), 1, clipped=False))
        return FinishedCommand(exit=_command_exit_of_canned_output(answer, answer.output, call.id))

    async def start(
        self,
        command: Command,
        *,
        call: Call,
        description: str,
        private_globs: Sequence[PathGlobs],
        read_only_globs: Sequence[PathGlobs],
        is_open: PathPredicate = matches_no_path,
        show: ProgressListener,
        settle: JobEndHandler,
    ) -> Job:
        """Start a stub job that has printed its canned output and keeps running."""
        answer = self._record_command_and_get_output(command)
        name = f"job{len(self._jobs) + 1}"
        self._jobs[name] = _StartedJob(call, command, description, answer, answer.output, settle)
        return self._job_snapshot(name)

    async def jobs(self, session: str) -> list[Job]:
        found = [name for name, job in self._jobs.items() if job.call.session == session]
        return [self._job_snapshot(name) for name in reversed(found)]

    async def job(self, job_id: str, session: str, *, timeout: float) -> Job:  # noqa: ASYNC109
        self._find_job(job_id, session)
        return self._job_snapshot(job_id)

    async def page(self, job_id: str, session: str, start: int, size: int) -> OutputPage:
        data = self._find_job(job_id, session).printed[start : start + size]
        return OutputPage(data, start, start + len(data))

    async def send(self, job_id: str, session: str, data: bytes) -> None:
        """Send input to a stub job and append its canned response to the output."""
        job = self._find_job(job_id, session)
        job.printed += job.output.reaction(data)

    async def kill(self, job_id: str, session: str) -> Job:
        """Mark a stub job as killed and return it."""
        job = self._find_job(job_id, session)
        output = CannedOutput(code=None, signal=9)
        if job.exit is None:
            job.exit = _command_exit_of_canned_output(output, job.printed, job.call.id, ended="killed")
            finished = FinishedCommand(exit=job.exit)
            end = await to_thread.run_sync(job.settle, finished)
            job.exit, job.finished = end or job.exit, None if end else finished
            job.published.clear()
        return self._job_snapshot(job_id)

    async def publishable(self, job_id: str, session: str, port: int) -> PublishedPort:
        """Return the host port for a stub job's port: the next one that is not taken."""
        job = self._find_job(job_id, session)
        if port not in job.ports:
            raise InvalidInput(f"{job_id} does not listen on port {port}.", hint="Check its output.")
        outside = next(each for each in range(port, port + 100) if each not in self.taken)
        return job.published.get(port, PublishedPort(port, outside))

    async def publish(self, job_id: str, session: str, port: PublishedPort) -> Job:
        """Mark a stub job's port as published, without listening on it."""
        self._find_job(job_id, session).published[port.port] = port
        return self._job_snapshot(job_id)

    async def unpublish(self, job_id: str, session: str, port: int | None) -> Job:
        job = self._find_job(job_id, session)
        job.published = {} if port is None else {n: at for n, at in job.published.items() if n != port}
        return self._job_snapshot(job_id)

    def inherited_shell_state(self, session: str) -> InheritedShellState:
        """Return the shell state that the test set for the session."""
        return self.shell_states.get(session, InheritedShellState())

    def settings_left_in_home(self, session: str) -> tuple[str, ...]:
        """Return the paths that the test set for the session."""
        return self.home_files.get(session, ())

    def record_job_result(self, job_id: str, session: str, command_exit: CommandExit) -> None:
        job = self._find_job(job_id, session)
        job.exit, job.finished = command_exit, None

    def close(self) -> None:
        """Delete all stub jobs."""
        self._jobs.clear()

    def _record_command_and_get_output(self, command: Command) -> CannedOutput:
        self.commands.append(command)
        return self.outputs.get(command.script, CannedOutput(b"no canned output\n", 127))

    def _find_job(self, job_id: str, session: str) -> _StartedJob:
        job = self._jobs.get(job_id)
        if job is None or job.call.session != session:
            raise NotFound(f"There is no job `{job_id}`.", hint="`action=list` lists the jobs.")
        return job

    def _job_snapshot(self, name: str) -> Job:
        job = self._jobs[name]
        return Job(
            id=name,
            script=job.command.script,
            description=job.description,
            seconds=1.0,
            output=_command_output(job.printed, job.call.id),
            exit=job.exit,
            call_id=job.call.id,
            waiting=job.finished,
            review=job.command.review,
            terminal=job.command.terminal,
            ports=job.ports,
            published=tuple(job.published.values()),
        )


def _command_exit_of_canned_output(
    canned_output: CannedOutput, output: bytes, name: str, *, ended: str = "exited"
) -> CommandExit:
    return CommandExit(
        code=canned_output.code,
        signal=canned_output.signal,
        ended="killed" if ended == "killed" else "exited",
        seconds=1.0,
        output=_command_output(output, name),
        cwd=canned_output.cwd,
        notes=canned_output.notes,
    )


def _command_output(data: bytes, name: str) -> CommandOutput:
    head, rest = data[:STUB_OUTPUT_HEAD_BYTES], data[STUB_OUTPUT_HEAD_BYTES:]
    return CommandOutput(
        head=head,
        tail=rest[-STUB_OUTPUT_HEAD_BYTES:],
        bytes=len(data),
        lines=data.count(b"\n") + (data[-1:] not in {b"", b"\n"}),
        kept=f"{name}.log" if rest else "",
    )


StubErrorFinder = Callable[[str, str], Sequence[tuple[int, str]]]
"""Function that gets a path and its text, and returns errors as (line, message)."""
STUB_INSTALL_COMMAND = "pip install example-server"


def find_errors_in_marked_lines(path: str, body: str) -> list[tuple[int, str]]:
    """Return an error for each line that contains `ERROR `, with the rest of the line as message."""
    rows = enumerate(body.splitlines(), 1)
    return [(line, row.partition("ERROR ")[2]) for line, row in rows if "ERROR " in row]


@dataclass(slots=True)
class MemoryLanguage:
    """Stub of the language port, which finds errors with the function `check`."""

    check: StubErrorFinder = find_errors_in_marked_lines
    suffix: str = ".py"
    unknown: str = ""
    """If not empty, all reports have the status `unknown`, and this is the reason."""
    answers: dict[LanguageOperation, LanguageAnswer] = field(default_factory=dict)
    warmed: list[str] = field(default_factory=list)
    private_globs: list[tuple[PathGlobs, ...]] = field(default_factory=list)
    """The private globs passed with each question."""

    def speaks(self, path: str) -> bool:
        """Whether the file has the stub's suffix."""
        return path.endswith(self.suffix)

    def missing_server_sentence(self, path: str) -> str:
        """Return a sentence with the install command; empty if the file has the stub's suffix."""
        return (
            "" if self.speaks(path) else f"No server for `{path}`; install one: `{STUB_INSTALL_COMMAND}`."
        )

    def warm(self, path: str, *, private_globs: Sequence[PathGlobs]) -> None:
        """Record that the server of a file was asked to start."""
        self.warmed.append(path)

    async def review(
        self,
        changes: ChangeSet,
        *,
        ignored: Collection[str],
        private_globs: Sequence[PathGlobs],
        timeout: float,  # noqa: ASYNC109
        late: LateReviewListener,
    ) -> DiagnosticReview:
        """Return the errors in the changed files, compared with those before the change."""
        self.private_globs.append(tuple(private_globs))
        spoken = [
            change
            for change in changes
            if self.speaks(change.path) and change.after is not None and change.path not in ignored
        ]
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
            now = self._diagnostics_of_file(change.path, after)
            deltas.append(
                diagnostic_delta(
                    change.path, before, after, self._diagnostics_of_file(change.path, before), now
                )
            )
            verdicts.append(DiagnosticReport(change.path, "memory", "fresh", now))
        return DiagnosticReview(deltas=tuple(deltas), verdicts=tuple(verdicts))

    async def ask(
        self, question: LanguageQuestion, *, private_globs: Sequence[PathGlobs]
    ) -> LanguageAnswer:
        """Return the canned answer for the operation."""
        self.private_globs.append(tuple(private_globs))
        if question.kind not in self.answers:
            raise Unavailable(f"No canned answer for `{question.kind}`.", hint=NO_SERVER_HINT)
        return self.answers[question.kind]

    def known_servers(self) -> list[KnownServer]:
        """Return one fake language server, for Python."""
        return [KnownServer("memory", ("python",), "memory", "1", STUB_INSTALL_COMMAND)]

    def close(self) -> None:
        """Do nothing."""

    def _diagnostics_of_file(self, path: str, body: str) -> tuple[Diagnostic, ...]:
        return tuple(Diagnostic(path, line, 0, message) for line, message in self.check(path, body))


@dataclass(frozen=True, slots=True, kw_only=True)
class CannedPage:
    """Canned HTTP response for a URL, for the web stub."""

    data: bytes = b""
    media_type: str = "text/html"
    charset: str = ""
    status: int = 200
    location: str = ""
    retry_after: float | None = None


@dataclass(slots=True)
class MemoryWeb:
    """Stub of the web port with canned responses by URL, without a cache."""

    pages: Mapping[str, CannedPage] = field(default_factory=dict)
    found: tuple[WebSearchHit, ...] | ToolError = ()
    """Canned search hits, or the error to raise."""
    missing: str = ""
    engine: SearchEngine | None = field(
        default_factory=lambda: SearchEngine("memory", parse_url("https://engine.example"))
    )
    visited: list[str] = field(default_factory=list)
    """All requested URLs, in order."""

    async def fetch_response(self, request: WebRequest, *, opens: HostIsListed) -> WebResponse:
        """Return the canned response for the URL; raises `Unreachable` if there is none."""
        url = str(request.url)
        self.visited.append(url)
        site = self.pages.get(url)
        if site is None:
            hint = "Check the name, or try another source."
            raise Unreachable(f"Can't resolve {request.url.host}: unknown host name.", hint=hint)
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

    async def render(self, response: WebResponse, form: PageForm) -> RenderedPage:
        return await rendered_page(response, form)

    async def search(self, query: WebQuery, *, opens: HostIsListed) -> WebSearchHits:
        """Return the canned search hits, or raise the canned error."""
        self.visited.append(f"search {query.text}")
        if isinstance(self.found, ToolError):
            raise self.found
        return WebSearchHits(engine="memory", findings=self.found[: query.most])
