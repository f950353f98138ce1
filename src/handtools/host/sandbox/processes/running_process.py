"""A running command: its pipes or pseudo-terminal, and the thread that reads its output and kills it.

It is a thread instead of an asyncio task because a background job outlives the event loop that started it.
"""

import contextlib
import os
import secrets
import select
import signal
import threading
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from math import inf
from pathlib import Path
from typing import Any, cast

import anyio

from handtools.core.commands import CommandEnding, CommandExit, OutputProgress
from handtools.core.errors import HostError, ToolError
from handtools.host.sandbox.launch import (
    ConfinedLaunch,
    Launch,
    LaunchSupervisor,
    SupervisorPoolPort,
)
from handtools.host.sandbox.policy_paths import PrivateFileAlarm
from handtools.host.sandbox.processes import supervisor_client
from handtools.host.sandbox.processes.fd_messages import PeerGone, receive_message_and_fds
from handtools.host.sandbox.processes.kill_tree import kill_by_environment
from handtools.host.sandbox.processes.output_buffer import OutputBuffer, OutputEnds
from handtools.host.sandbox.processes.supervisor_client import (
    RUN_ID_VARIABLE,
    SUPERVISORS,
    extra_fds,
    start_order,
)
from handtools.host.sandbox.processes.unsupervised_process_groups import PROCESS_GROUPS
from handtools.host.sandbox.supervisor_messages import (
    CommandEndAnswer,
    CommandEndReport,
    CommandStarted,
    EndOrder,
    SupervisorAnswer,
)
from handtools.text.terminal_emulator import decode_output, plain_output

try:
    import fcntl
except ImportError:  # Windows, which doesn't support commands
    fcntl = None  # type: ignore[assignment]

PIPE_BYTES = 1 << 20
INPUT_TIMEOUT_SECONDS = 2.0
_F_SETPIPE_SZ = 1031


@dataclass(slots=True)
class StandardStreams:
    """The pipes or terminal of a command: our ends and the command's."""

    source: int
    """The fd from which the command's output is read."""
    error_source: int | None
    """The fd from which its stderr is read; None if that is part of the output."""
    sink: int | None
    """The fd to which its input is written; None without input."""
    theirs: tuple[int, ...]
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def sources(self) -> tuple[int, ...]:
        """The fds to read from: one, or two if the streams are separate."""
        return (self.source,) if self.error_source is None else (self.source, self.error_source)

    def send(self, data: bytes) -> bool:
        """Write to the command's input; False if it accepts none or doesn't read it in time."""
        deadline = time.monotonic() + INPUT_TIMEOUT_SECONDS
        view = memoryview(data)
        with self._lock:
            while view:
                if self.sink is None or time.monotonic() > deadline:
                    return False
                try:
                    view = view[os.write(self.sink, view) :]
                except BlockingIOError:
                    time.sleep(0.005)
                except OSError:
                    return False
        return True

    def close_input(self) -> None:
        """Close the command's input, so that it reads EOF."""
        with self._lock:
            if self.sink is not None and self.sink != self.source:
                os.close(self.sink)
            self.sink = None

    def close_theirs(self) -> None:
        """Close this process's copies of the command's ends, after the command has been started."""
        for fd in set(self.theirs):
            with contextlib.suppress(OSError):
                os.close(fd)
        self.theirs = ()

    def close(self) -> None:
        """Close our ends."""
        self.close_theirs()
        self.close_input()
        for fd in self.sources:
            os.close(fd)


def make_child_process_streams(launch: Launch) -> StandardStreams:
    """Create the pipes or pseudo-terminal for a launch."""
    if launch.terminal is not None:
        ours, theirs = os.openpty()
        os.set_blocking(ours, False)
        return StandardStreams(ours, None, ours, (theirs, theirs, theirs))
    source, printed = _output_pipe()
    error_source, errors = _output_pipe() if launch.separate_streams else (None, printed)
    if launch.input_open:
        reading, sink = os.pipe()
        os.set_blocking(sink, False)
        return StandardStreams(source, error_source, sink, (reading, printed, errors))
    nothing = os.open(os.devnull, os.O_RDONLY)
    return StandardStreams(source, error_source, None, (nothing, printed, errors))


def _output_pipe() -> tuple[int, int]:
    """Return a large pipe: our non-blocking read end and the write end."""
    source, printed = os.pipe()
    with contextlib.suppress(OSError):  # the user's limit on pipe memory may be reached
        fcntl.fcntl(source, _F_SETPIPE_SZ, PIPE_BYTES)
    os.set_blocking(source, False)
    return source, printed


ShowOutput = Callable[[OutputProgress], None]
LaunchStage = Callable[[Launch], AbstractContextManager[ConfinedLaunch]]
"""A context manager that prepares a launch (capture, proxy, sandbox) and cleans up after its exit."""

OUTPUT_READ_BYTES = 256 << 10
SHOW_INTERVAL_SECONDS = 0.1
SHOWN_TAIL_BYTES = 4 << 10
MAX_WAIT_SECONDS = 3600.0
"""The longest wait for a process without output, whose deadline may be infinite."""
PROCESS_START_TIMEOUT_SECONDS = 120.0
SUPERVISOR_END_TIMEOUT_SECONDS = 8.0
"""Seconds after which an unresponsive supervisor is killed."""
_EXCEEDED_NOTES = {
    "memory": "Killed: its processes exceeded the memory limit. Do less at once, or use fewer workers.",
    "bytes": "Killed: it wrote more to the workspace than allowed. Write less, or in several commands.",
    "files": "Killed: it created too many files in the workspace. Create fewer, or in several commands.",
    "scratch": "Killed: it wrote more to $HOME, /tmp or package caches than allowed. Delete what you don't "
    "need there.",
}


class RunningProcess:
    """A started launch, managed by a thread. All methods may be called from any thread."""

    def __init__(
        self,
        launch: Launch,
        kept: Path,
        show: ShowOutput | None,
        stage: LaunchStage,
        on_exit: Callable[[CommandExit], None] = lambda _: None,
    ) -> None:
        self.output = OutputBuffer(kept, launch.limits.output_bytes)
        self.started = time.monotonic()
        self.pid: int | None = None
        """The process id on this machine once it runs; None in a container."""
        self._launch = launch
        self._mark = secrets.token_hex(8)
        self._show = show
        self._stage = stage
        self._on_exit = on_exit
        self._how: CommandEnding = "exited"
        self._wake, self._waker = os.pipe()
        self._done, self._closer = os.pipe()
        self._lock = threading.Lock()
        self._begun = threading.Event()
        self._wanted: CommandEnding | None = None
        self._ended: CommandExit | None = None
        self._failure: BaseException | None = None
        self._alarm: PrivateFileAlarm | None = None
        self._pipes = make_child_process_streams(launch)
        apart = self._pipes.sources if self._pipes.error_source is not None else ()
        self._streams = {source: OutputEnds() for source in apart}
        self._thread = threading.Thread(target=self._run_in_thread, name="handtools-command", daemon=True)
        self._thread.start()

    @property
    def ended(self) -> CommandExit | None:
        """The result, once the process has ended; None before."""
        return self._ended

    def wait_until_started(self) -> None:
        """Block until the process runs; raises if its setup failed."""
        self._begun.wait()
        if self._failure is not None:
            self.result()

    def end(self, how: CommandEnding) -> None:
        """Request that the process be killed, for a reason such as a timeout; returns immediately."""
        with self._lock:
            if self._ended is None and self._wanted is None:
                self._wanted = how
                os.write(self._waker, b"x")

    def send(self, data: bytes) -> bool:
        """Write to the process's input; False if it accepts none."""
        return self._pipes.send(data)

    async def wait(self) -> CommandExit:
        """Wait for the process to end and return its result; if cancelled, the process keeps running."""
        await anyio.wait_readable(self._done)
        return self.result()

    def result(self) -> CommandExit:
        """Block until the process has ended and return its result."""
        self._thread.join()
        if self._ended is not None:
            return self._ended
        if isinstance(self._failure, (ToolError, HostError, OSError)):
            raise self._failure
        raise HostError(f"The command failed unexpectedly: {self._failure}.") from self._failure

    def close(self) -> None:
        """Close the fds that were needed only for waiting."""
        for fd in (self._done, self._wake, self._waker):
            with contextlib.suppress(OSError):
                os.close(fd)

    def _run_in_thread(self) -> None:
        try:
            with self._stage(self._launch) as confined:
                ended = self._run_confined(confined)
                if ended.ended == "cancelled":
                    raise _Cancelled(ended)
            self._on_exit(ended)
        except _Cancelled as cancelled:
            self._ended = cancelled.command_exit
        except (ToolError, HostError, OSError) as failure:
            self._failure = failure
        except BaseException as failure:
            self._failure = failure
            raise
        else:
            self._ended = ended
        finally:
            self._begun.set()
            self._pipes.close()
            os.close(self._closer)

    def _run_confined(self, confined: ConfinedLaunch) -> CommandExit:
        pool: SupervisorPoolPort = SUPERVISORS if supervisor_client.has_supervisors() else PROCESS_GROUPS
        crew = confined.pool or pool
        self._alarm = confined.private_file_alarm
        hired: Any = crew.take()
        try:
            answer = self._run_with_supervisor(hired, confined)
        except PeerGone:
            answer = self._kill_without_supervisor(hired)
        else:
            crew.give_back(hired)
        self._drain()
        exposed = self._is_exposed()
        if not exposed and self._alarm is not None and self._alarm.exposed_at_end:
            # We don't know when the file was created, so all output may contain its content.
            for output in (self.output, *self._streams.values()):
                output.withhold()
        self.output.close()
        return self._command_exit(answer)

    def _run_with_supervisor(
        self, supervisor: LaunchSupervisor, confined: ConfinedLaunch
    ) -> CommandEndAnswer:
        """Start the command, read its output until it ends, and return the supervisor's report."""
        supervisor.send_order(
            start_order(confined, self._mark), (*self._pipes.theirs, *extra_fds(confined))
        )
        line = supervisor.line.fileno()
        waiting = select.poll()
        for fd in (line, *self._pipes.sources, self._wake, *([self._alarm.fd] if self._alarm else [])):
            waiting.register(fd, select.POLLIN)
        shown = time.monotonic()
        # The timeout starts when the command runs: its container may have to be created first.
        deadline = shown + PROCESS_START_TIMEOUT_SECONDS
        while True:
            ready = {fd for fd, _ in waiting.poll(self._poll_milliseconds(shown, deadline))}
            self._take_ready(ready, waiting)
            if self._alarm is not None and self._alarm.fd in ready:
                os.eventfd_read(self._alarm.fd)
                self._is_exposed()
            now = time.monotonic()
            if line in ready:
                answer: SupervisorAnswer = receive_message_and_fds(supervisor.line)[0]
                if "pid" not in answer:
                    return answer
                self.pid = cast("CommandStarted", answer)["pid"] if confined.pool is None else None
                self._begun.set()
                self._pipes.close_theirs()
                deadline = now + confined.limits.seconds
            if self._wake in ready or now >= deadline:
                self._how = self._wanted or "timeout"
                supervisor.send_order(EndOrder(order="end", gently=True))
                return self._wait_for_end_report(supervisor)
            if self._show and now - shown >= SHOW_INTERVAL_SECONDS and self.output.bytes:
                shown = now
                self._show_progress(self._show)

    def _wait_for_end_report(self, supervisor: LaunchSupervisor) -> CommandEndAnswer:
        """Wait for the report of a supervisor that is killing the command, while draining the pipes."""
        waiting = select.poll()
        for fd in (supervisor.line.fileno(), *self._pipes.sources):
            waiting.register(fd, select.POLLIN)
        deadline = time.monotonic() + SUPERVISOR_END_TIMEOUT_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            ready = {fd for fd, _ in waiting.poll(left * 1000)}
            if supervisor.line.fileno() in ready:
                answer: SupervisorAnswer = receive_message_and_fds(supervisor.line)[0]
                if "pid" not in answer:
                    return answer
            self._take_ready(ready, waiting)
        raise PeerGone

    def _kill_without_supervisor(self, supervisor: LaunchSupervisor) -> CommandEndReport:
        """Handle a dead or stuck supervisor: its child dies with it; others are found by environment."""
        supervisor.abandon()
        self._how = self._wanted or "killed"
        survivors = kill_by_environment(f"{RUN_ID_VARIABLE}={self._mark}")
        return CommandEndReport(
            status=signal.SIGKILL, peak=0, left=0, survivors=survivors, starved=False, over=""
        )

    def _poll_milliseconds(self, shown: float, deadline: float) -> float:
        """Return the milliseconds until there is output to show, or until the deadline."""
        until = min(deadline, shown + SHOW_INTERVAL_SECONDS if self._show and self.output.bytes else inf)
        return min(max(until - time.monotonic(), 0.0), MAX_WAIT_SECONDS) * 1000 + 1

    def _take_ready(self, ready: set[int], waiting: "select.poll") -> None:
        """Read from the sources that are ready, and unregister those at EOF."""
        for source in self._pipes.sources:
            if source in ready and not self._read_output(source):
                waiting.unregister(source)

    def _read_output(self, source: int) -> bool:
        """Read available output; False at EOF."""
        try:
            data = os.read(source, OUTPUT_READ_BYTES)
        except BlockingIOError:
            return True
        except OSError:  # the other end of the terminal is closed
            return False
        # Check after the read: a private file whose content is in this output was created before it.
        if data and not self._is_exposed():
            self.output.feed(data)
            if source in self._streams:
                self._streams[source].feed(data)
        return bool(data)

    def _is_exposed(self) -> bool:
        """Whether the process could read a private file created while it ran; if so, it is killed."""
        if self._alarm is None or not self._alarm.exposed_paths():
            return False
        self.end("killed")
        return True

    def _drain(self) -> None:
        """Read the output that is still in the pipes, without waiting for more."""
        before = -1
        while before != self.output.bytes:
            before = self.output.bytes
            for source in self._pipes.sources:
                self._read_output(source)

    def _show_progress(self, show: ShowOutput) -> None:
        output = self.output.snapshot()
        newest = (output.tail or output.head)[-SHOWN_TAIL_BYTES:]
        text = plain_output(decode_output(newest, starts=len(newest) < SHOWN_TAIL_BYTES, ends=False))
        clipped = output.bytes > SHOWN_TAIL_BYTES
        show(OutputProgress(text, output.bytes, output.lines, clipped=clipped, kept=output.kept))

    def _command_exit(self, answer: CommandEndAnswer) -> CommandExit:
        seconds, output = time.monotonic() - self.started, self.output.snapshot()
        if "refused" in answer:
            return CommandExit(code=127, seconds=seconds, output=output, fault=answer["refused"])
        code = os.waitstatus_to_exitcode(answer["status"] or 0)
        limited = answer["over"] or (answer["starved"] and code) or -code == signal.SIGXFSZ
        return CommandExit(
            code=code if code >= 0 else None,
            signal=-code if code < 0 else None,
            ended="limit" if limited and self._how == "exited" else self._how,
            seconds=seconds,
            peak_bytes=answer["peak"] or None,
            output=output,
            streams=tuple(stream.snapshot() for stream in self._streams.values()),
            notes=_end_notes(answer, self.output.fault),
            left=answer["left"],
        )


def _end_notes(report: CommandEndReport, output_fault: str) -> tuple[str, ...]:
    """Return notes for the model about surviving processes, exceeded limits and output that was not saved."""
    notes = []
    if report["survivors"]:
        notes.append(
            f"{report['survivors']} of its processes could not be killed: another user's, or stuck."
        )
    if report["over"]:
        notes.append(_EXCEEDED_NOTES[report["over"]])
    if report["starved"]:
        notes.append(
            "The kernel killed one of its processes (out of memory). Do less at once, or use fewer workers."
        )
    if output_fault:
        notes.append(f"The output could not be saved in full: {output_fault}.")
    return tuple(notes)


class _Cancelled(Exception):
    """Raised inside the stages of a cancelled command, so that its changes are not captured."""

    def __init__(self, command_exit: CommandExit) -> None:
        super().__init__()
        self.command_exit = command_exit


async def run_process(
    launch: Launch, kept: Path, show: ShowOutput | None, stage: LaunchStage
) -> CommandExit:
    """Run a launch to completion and return its result; if cancelled, kill all its processes first."""
    running = RunningProcess(launch, kept, show, stage)
    try:
        return await running.wait()
    except BaseException:
        running.end("cancelled")
        with anyio.CancelScope(shield=True):
            await running.wait()
        raise
    finally:
        running.close()
