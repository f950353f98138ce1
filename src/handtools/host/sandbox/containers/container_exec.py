"""Run one command with `docker exec`: its bash wrapper, output frames, passed fds and termination.

A thread does this and replies with the same messages as a supervisor.
"""

import contextlib
import os
import secrets
import select
import shlex
import signal
import socket
import stat
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from handtools.core.errors import HostError
from handtools.host.files import syscalls
from handtools.host.sandbox.containers.container_pool import (
    CONTAINER_FD_FOLDER,
    Container,
    ContainerPool,
    ContainerSpec,
)
from handtools.host.sandbox.containers.docker_connection import docker_errors
from handtools.host.sandbox.processes.fd_messages import PeerGone, receive_message_and_fds, send_message
from handtools.host.sandbox.processes.kill_tree import KILL_TIMEOUT_SECONDS, TERM_GRACE_SECONDS
from handtools.host.sandbox.processes.memory_and_disk_monitor import ExceededLimit, ResourceMonitor
from handtools.host.sandbox.supervisor_messages import (
    CommandEndAnswer,
    CommandEndReport,
    CommandStarted,
    RefusalAnswer,
    StartOrder,
    SupervisorOrder,
)

_OWN_PROCESSES = 2
"""How many processes of a container don't belong to the command: its init process and the wrapper."""
# The wrapper traps signals sent to all processes so that it outlives the command, which gets default
# handlers. Its `left` line reports how many other processes were left and killed: `kill -9 -1` is atomic,
# even if processes keep forking.
_RUN_SCRIPT = f"""trap : HUP INT QUIT TERM
"$@" 2>&1
code=$?
set -- /proc/[0-9]*
if [ $# -gt {_OWN_PROCESSES} ]; then sleep 0.02; set -- /proc/[0-9]*; kill -9 -1; fi
echo "left $(($# - {_OWN_PROCESSES}))" >&2
exit $code"""


def mask_check_script(spec: ContainerSpec, word: str) -> str:
    """Return shell code that prints `word` and exits if a mask over a private or read-only path is missing.

    The kernel drops a mount when the file below it is replaced on the host, as editors do when saving.
    """
    private = [f"[ -r {shlex.quote(path)} ]" for path in (*spec.private_files, *spec.private_folders)]
    sockets = [f"[ -S {shlex.quote(path)} ]" for path in spec.private_files]
    written = [f"[ -w {shlex.quote(path)} ]" for path in spec.read_only]
    tests = " || ".join([*private, *sockets, *written])
    return f"if {tests}; then printf %s {word} >&2; exit 1; fi" if tests else ""


def wrapped_argv(
    argv: Sequence[str],
    slips: Mapping[int, str],
    *,
    checks: str,
    limits: Mapping[str, int],
    terminal: Sequence[int] | None,
) -> list[str]:
    """Return a command's argv inside its bash wrapper; `slips` maps fd numbers to file names."""
    lines = [checks, f"ulimit -c {limits.get('RLIMIT_CORE', 0)}"]
    if "RLIMIT_FSIZE" in limits:
        lines.append(f"ulimit -f {limits['RLIMIT_FSIZE'] >> 10}")
    if terminal:
        lines += [f"stty rows {terminal[0]} cols {terminal[1]}", "exec 2>/dev/null"]
    lines += [f"exec {number}<>{CONTAINER_FD_FOLDER}/{name}" for number, name in slips.items()]
    return [
        "bash",
        "--noprofile",
        "--norc",
        "-p",
        "-c",
        "\n".join([*lines, _RUN_SCRIPT]),
        "handtools",
        *argv,
    ]


_FRAME_HEADER_BYTES = 8
_STDOUT = 1
_STDERR_TAIL_BYTES = 4096


@dataclass(slots=True)
class DockerStreamDecoder:
    """Decodes the stream of `docker exec`: yields stdout and collects the wrapper's stderr."""

    whole: bool = False
    """Whether the stream is output without frames, as with a terminal."""
    word: bytes = b""
    """The word that the wrapper prints if it refuses to start the command."""
    refused: bool = False
    """Whether the wrapper has refused to start the command."""
    _begun: bool = False
    _kind: int = 0
    _missing: int = 0
    _head: bytearray = field(default_factory=bytearray)
    _said: bytearray = field(default_factory=bytearray)

    def decode_chunk(self, data: bytes) -> Iterator[memoryview | bytes]:
        """Decode the next bytes of the stream and yield the command's output in them."""
        if self.whole:
            if not self._begun:
                self.refused = self._is_word(data)
            self._begun = self._begun or bool(data)
            yield b"" if self.refused else data
            return
        rest = memoryview(data)
        while rest:
            if not self._missing:
                need = _FRAME_HEADER_BYTES - len(self._head)
                self._head += rest[:need]
                rest = rest[need:]
                if len(self._head) == _FRAME_HEADER_BYTES:
                    self._kind, self._missing = self._head[0], int.from_bytes(self._head[4:], "big")
                    self._head.clear()
                continue
            part, rest = rest[: self._missing], rest[self._missing :]
            self._missing -= len(part)
            if self._kind == _STDOUT:
                yield part
            else:
                self._said += part
                self.refused = self.refused or self._is_word(self._said)
                del self._said[:-_STDERR_TAIL_BYTES]

    def _is_word(self, said: bytes | bytearray) -> bool:
        return bool(self.word) and said.startswith(self.word)

    @property
    def left_process_count(self) -> int | None:
        """How many processes the command left running; None if the wrapper has not reported it."""
        words = bytes(self._said).split()
        last = words[-2:]
        return int(last[1]) if len(last) == 2 and last[0] == b"left" and last[1].isdigit() else None


FD_FILE_BYTES = 16 << 20
_NEW_FILE_FLAGS = os.O_RDWR | os.O_CREAT | os.O_EXCL | syscalls.OPEN_FLAGS | syscalls.NO_FOLLOW


@contextlib.contextmanager
def files_for_descriptors(
    container: Container, numbers: Sequence[int], fds: Sequence[int]
) -> Iterator[dict[int, str]]:
    """Context manager: creates a file in the container for each fd to pass, and copies it back to `fds`.

    The files stay open here, so if the command replaces one, the replacement is not read.
    """
    names = {number: secrets.token_hex(8) for number in numbers}
    held = [os.open(name, _NEW_FILE_FLAGS, 0o600, dir_fd=container.slips) for name in names.values()]
    try:
        for file, fd in zip(held, fds, strict=True):
            if os.geteuid() == 0:
                os.chown(file, *container.spec.user)
            _copy_file(fd, file)
        yield names
        for file, fd in zip(held, fds, strict=True):
            _copy_file(file, fd)
    finally:
        for file in held:
            os.close(file)
        for name in names.values():
            with contextlib.suppress(OSError):
                os.unlink(name, dir_fd=container.slips)


def _copy_file(source: int, target: int) -> None:
    """Copy all bytes of one open file to another without changing their file offsets."""
    at = 0
    while at < FD_FILE_BYTES and (part := os.pread(source, 1 << 20, at)):
        at += os.pwrite(target, part, at)


_POLL_SECONDS = 0.001


def kill_all_in_container(container: Container, *, gently: bool) -> int:
    """Kill all processes of a container's command; returns how many could not be killed.

    A container runs one command at a time, so all processes in it belong to that command. The engine has no
    API for this, so we kill by pid. If the pids aren't visible from here, the container must be removed.
    """
    if gently:
        _signal_all(container.others(), signal.SIGTERM, signal.SIGCONT)
        _wait_until_empty(container, TERM_GRACE_SECONDS)
    deadline = time.monotonic() + KILL_TIMEOUT_SECONDS
    while (found := container.others()) and time.monotonic() < deadline:
        _signal_all(found, signal.SIGKILL)
        time.sleep(_POLL_SECONDS)
    return len(found)


def _wait_until_empty(container: Container, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while container.others() and time.monotonic() < deadline:
        time.sleep(_POLL_SECONDS)


def _signal_all(pids: Iterable[int], *numbers: signal.Signals) -> None:
    for pid in pids:
        for number in numbers:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)


STREAM_READ_BYTES = 256 << 10
PROCESS_LOOKUP_DELAY_SECONDS = 0.05
"""Seconds after which a running command's process is looked up, to detect its exit through a pidfd too."""
INSPECT_INTERVAL_SECONDS = 1.0
"""How often, in seconds, we ask the engine whether a command has exited if its process isn't visible."""
DRAIN_SECONDS = 0.02
EXIT_CODE_SECONDS = 2.0


class ContainerExecThread:
    """The handle of a thread that runs one command in a container, used like a supervisor's handle."""

    def __init__(self, containers: ContainerPool, spec: ContainerSpec) -> None:
        self.line, theirs = socket.socketpair()
        self._bout = _ContainerExec(containers, spec, theirs)
        self._thread = threading.Thread(target=self._bout.serve, name="handtools-container", daemon=True)
        self._thread.start()

    def send_order(self, message: SupervisorOrder, fds: tuple[int, ...] = ()) -> None:
        """Send the thread a message; raises `PeerGone` if it has exited."""
        send_message(self.line, message, fds)

    def abandon(self) -> None:
        """Remove the container and everything in it, because the thread doesn't respond."""
        self._bout.remove_own_container()
        self.dismiss()

    def dismiss(self) -> None:
        """Close the connection and join the thread."""
        self.line.close()
        self._thread.join(EXIT_CODE_SECONDS)


@dataclass(frozen=True, slots=True)
class ContainerExecThreads:
    """Starts threads that run commands in containers with the same spec."""

    containers: ContainerPool
    spec: ContainerSpec

    def take(self) -> ContainerExecThread:
        """Start a thread for one command; the container comes from the pool."""
        return ContainerExecThread(self.containers, self.spec)

    def give_back(self, exec_thread: ContainerExecThread) -> None:
        """Stop the command's thread: threads are not reused."""
        exec_thread.dismiss()


@dataclass(slots=True)
class _ContainerExec:
    """The code that runs in the thread: runs one command in one container and reports how it ended."""

    containers: ContainerPool
    spec: ContainerSpec
    line: socket.socket
    container: Container | None = None
    order: StartOrder = field(init=False)
    fds: list[int] = field(default_factory=list)
    decoder: DockerStreamDecoder = field(default_factory=DockerStreamDecoder)
    exec_id: str = ""
    again: bool = False
    told: bool = False
    over: ExceededLimit = ""
    process: int = -1
    """A pidfd of the command's first process; -1 until it has been looked up."""

    def serve(self) -> None:
        """Wait for the start order, run the command, and report how it ended."""
        with self.line, contextlib.suppress(PeerGone):
            self.order, self.fds = receive_message_and_fds(self.line)
            try:
                answer: CommandEndAnswer = self._run()
            except HostError as error:
                answer = RefusalAnswer(refused=str(error).removesuffix("."))
            finally:
                self._close()
            send_message(self.line, answer)

    def remove_own_container(self) -> None:
        """Remove the container, which kills the command."""
        if self.container is not None:
            self.containers.remove(self.container)

    def _run(self) -> CommandEndReport:
        """Run the command; retry in a new container if the pooled one died or a mask mount was lost."""
        try:
            answer = self._run_in(self.containers.take(self.spec))
        except HostError:
            if self.exec_id:
                raise
            answer = None
        self.again = True
        answer = answer or self._run_in(self.containers.make(self.spec))
        assert answer is not None
        return answer

    def _run_in(self, container: Container) -> CommandEndReport | None:
        """Run the command in a container; None if the wrapper refused to start it."""
        self.container, clean = container, False
        self.decoder = DockerStreamDecoder(
            whole=self.order["terminal"] is not None, word=secrets.token_hex(8).encode()
        )
        try:
            with files_for_descriptors(container, self.order["fds"][3:], self.fds[3:]) as names:
                used, starved = container.cgroup.memory_used(), container.cgroup.starved()
                container.cgroup.limit(memory=None, processes=None, used=0)  # resets the peak
                if self.order["mounts"]:
                    container.lay(self.order["mounts"])
                with self._start(container, names) as stream:
                    asked = self._relay_until_end(stream) == "end"
                    survivors = self._kill_and_drain(container, stream, gently=asked)
            if self.order["mounts"]:
                container.lift()
            code = self._exit_code()
            peak = container.cgroup.peak() if os.geteuid() == 0 else None
            sure = container.has_visible_processes or self.decoder.left_process_count is not None
            clean = sure and not survivors and not self.decoder.refused and container.alive
        finally:
            self.containers.give_back(container, clean=clean)
        if self.decoder.refused and not self.again:
            return None
        return CommandEndReport(
            status=self._wait_status(code),
            peak=max(peak - used, 0) if peak and used is not None else 0,
            left=self.decoder.left_process_count or 0,
            starved=container.cgroup.starved() > starved,
            survivors=survivors,
            over=self.over,
        )

    def _start(self, container: Container, names: dict[int, str]) -> socket.socket:
        order, terminal = self.order, self.order["terminal"]
        user, group = self.spec.user
        takes_input = _has_input(self.fds[0])
        if terminal:
            _set_raw(self.fds[0])
        with docker_errors():
            made = self.containers.engine.client.api.exec_create(
                container.id,
                wrapped_argv(
                    order["argv"],
                    names,
                    checks=mask_check_script(self.spec, self.decoder.word.decode()),
                    limits=order["limits"],
                    terminal=terminal,
                ),
                stdin=takes_input,
                tty=terminal is not None,
                environment=order["env"],
                workdir=order["cwd"],
                user=f"{user}:{group}",
            )
        self.exec_id = made["Id"]
        body = {"Detach": False, "Tty": terminal is not None}
        stream, first = self.containers.engine.stream(f"/exec/{self.exec_id}/start", body)
        if not self.told:
            self.told = True
            send_message(self.line, CommandStarted(pid=0))
        self._write(first)
        return stream

    def _relay_until_end(self, stream: socket.socket) -> str:
        """Relay input and output until the command exits (returns "exit") or must be killed ("end")."""
        waiting = select.poll()
        for fd in (
            stream.fileno(),
            self.line.fileno(),
            *([self.fds[0]] if _has_input(self.fds[0]) else []),
        ):
            waiting.register(fd, select.POLLIN)
        watch = ResourceMonitor.from_order(self.order, memory=None)
        ask = time.monotonic() + PROCESS_LOOKUP_DELAY_SECONDS
        while True:
            until = min(ask, watch.due) if watch else ask
            ready = {fd for fd, _ in waiting.poll(max(until - time.monotonic(), 0) * 1000 + 1)}
            now = time.monotonic()
            if watch and now >= watch.due and self.container:
                self.over = watch.look(self.container.others)
            if self.line.fileno() in ready or self.over:
                return "end"
            if stream.fileno() in ready and not self._relay_output(stream):
                return "exit"
            if self.fds[0] in ready and not self._relay_input(stream):
                waiting.unregister(self.fds[0])
            if self.process in ready or (now >= ask and self._has_exited(waiting)):
                return "exit"
            if now >= ask:
                ask = now + INSPECT_INTERVAL_SECONDS

    def _has_exited(self, waiting: "select.poll") -> bool:
        """Whether the command has exited according to the engine; otherwise starts polling its pidfd."""
        if self.process >= 0:
            return False
        facts = self._exec_state()
        # Without pidfds, or if the engine runs on another machine, the engine is queried again.
        with contextlib.suppress(OSError, AttributeError):
            self.process = os.pidfd_open(facts["Pid"])
            waiting.register(self.process, select.POLLIN)
        return facts["ExitCode"] is not None and not facts["Running"]

    def _kill_and_drain(self, container: Container, stream: socket.socket, *, gently: bool) -> int:
        """Kill the remaining processes, read the rest of the output, and return how many survived."""
        survivors = kill_all_in_container(container, gently=gently)
        if not container.has_visible_processes and (gently or self.decoder.left_process_count is None):
            self.containers.kill(container)
        deadline = time.monotonic() + KILL_TIMEOUT_SECONDS
        while not self._drain_until_eof(stream, DRAIN_SECONDS):
            # The command may have started only after the first kill.
            survivors = kill_all_in_container(container, gently=False)
            if time.monotonic() > deadline:
                self.containers.kill(container)
                return survivors
        return survivors

    def _relay_output(self, stream: socket.socket) -> bool:
        """Relay the command's output to the reader; False at EOF."""
        data = stream.recv(STREAM_READ_BYTES)
        self._write(data)
        return bool(data)

    def _write(self, data: bytes) -> None:
        for part in self.decoder.decode_chunk(data):
            view = memoryview(part)
            while view:
                view = view[os.write(self.fds[1], view) :]

    def _relay_input(self, stream: socket.socket) -> bool:
        """Relay input to the command; False at EOF."""
        try:
            data = os.read(self.fds[0], STREAM_READ_BYTES)
        except OSError:
            data = b""
        if data:
            stream.sendall(data)
        else:
            stream.shutdown(socket.SHUT_WR)
        return bool(data)

    def _drain_until_eof(self, stream: socket.socket, seconds: float) -> bool:
        """Read until the end of the stream; False if it doesn't come within `seconds`."""
        stream.settimeout(seconds)
        try:
            while self._relay_output(stream):
                pass
        except TimeoutError:
            return False
        except OSError:
            return True
        return True

    def _exec_state(self) -> dict[str, Any]:
        with docker_errors():
            facts: dict[str, Any] = self.containers.engine.client.api.exec_inspect(self.exec_id)
        return facts

    def _exit_code(self) -> int:
        """Return the command's exit code, which the engine may report shortly after the stream ends."""
        deadline = time.monotonic() + EXIT_CODE_SECONDS
        code = None
        with contextlib.suppress(HostError):  # it may have been removed with its container
            while (code := self._exec_state()["ExitCode"]) is None and time.monotonic() < deadline:
                time.sleep(0.002)
        return 128 + signal.SIGKILL if code is None else int(code)

    def _wait_status(self, code: int) -> int:
        """Convert the exit code to a wait status: bash reports a signal as 128 plus its number."""
        killed = self.decoder.left_process_count is None and not self.decoder.whole
        by_signal = code - 128 if code > 128 and (killed or code - 128 == signal.SIGXFSZ) else 0
        return by_signal or code << 8

    def _close(self) -> None:
        if self.process >= 0:
            os.close(self.process)
        for fd in set(self.fds):
            with contextlib.suppress(OSError):
                os.close(fd)


def _set_raw(fd: int) -> None:
    """Set a terminal to raw mode, since the terminal inside the container does the line editing."""
    import tty  # not on Windows

    tty.setraw(fd)


def _has_input(fd: int) -> bool:
    """Whether an fd is a pipe or a terminal from which the command's input can be read."""
    return stat.S_ISFIFO(os.fstat(fd).st_mode) or os.isatty(fd)
