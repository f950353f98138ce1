"""Worker processes that parse untrusted files in forked children without network, with resource limits.

One fork server process is kept running, with the libraries loaded. Its children can't open sockets or write
files, and can only read program files; the kernel kills them when they use too much memory or time. Forking
takes milliseconds; starting Python takes a tenth of a second. Each task gets a new child, so that no task
can affect another. The source file parser is the exception: it keeps one child for the files of one
workspace. Results are data (JSON and bytes), never pickled objects.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from typing import IO, Any

from handtools.core import errors
from handtools.host import programs
from handtools.host.programs import trusted_import_path
from handtools.host.sandbox.processes.fd_messages import PeerGone, receive_message_and_fds, send_message

_MAX_AT_ONCE = 2
_IDLE_SECONDS = 300.0
_CHILD_IDLE_SECONDS = 15.0
"""How long a child waits for its next task."""
_MAX_OPEN_FILES = 64
_GRACE_SECONDS = 5.0
_STARTED, _DONE = b"s", b"d"
_RESULT_HEAD = struct.Struct("!I")
_TASK_ERRORS = {kind.__name__: kind for kind in (errors.WrongKind, errors.TooLarge, errors.InvalidInput)}
_READABLE_FOLDERS = (
    "/usr",
    "/lib",
    "/lib32",
    "/lib64",
    "/etc/fonts",
    "/etc/ld.so.cache",
    "/nix/store",
    "/gnu/store",
)


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The result of a worker's task: JSON values and byte strings."""

    value: Mapping[str, Any]
    blobs: tuple[bytes, ...] = ()


Task = Callable[[Mapping[str, Any], bytes], TaskResult]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerTask:
    """A function, by module and name, that a worker calls with JSON values and bytes."""

    module: str
    function: str
    """The function's name. It takes a mapping and bytes and returns a `TaskResult`."""
    libraries: tuple[str, ...] = ()
    """Modules imported once before the first fork. Missing modules are ignored."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerLimits:
    """Time, memory and output limits of one task."""

    seconds: float = 20.0
    """CPU time of a task. Its wall-clock time may be longer if the machine is busy."""
    memory_bytes: int = 2 << 30
    output_bytes: int = 64 << 20

    @property
    def wait_seconds(self) -> float:
        """How long the caller waits for a task."""
        return 2 * self.seconds + _GRACE_SECONDS

    @property
    def child_seconds(self) -> float:
        """The maximum lifetime of a child."""
        return 2 * self.wait_seconds + _CHILD_IDLE_SECONDS

    def __str__(self) -> str:
        return f"{self.seconds:g} s or {self.memory_bytes >> 20:,} MB"


DEFAULT_LIMITS = WorkerLimits()


class TaskFailed(Exception):
    """Raised when a task was killed because it exceeded a limit, or crashed in a library."""


def workers_of_workspace(root: str | os.PathLike[str], limits: WorkerLimits = DEFAULT_LIMITS) -> "Workers":
    """Return the workers for a workspace, shared by all workspaces with the same import path and limits."""
    return _shared_workers(tuple(trusted_import_path(root)), limits)


@cache
def _shared_workers(path: tuple[str, ...], limits: WorkerLimits) -> "Workers":
    return Workers(path, limits)


class Workers:
    """A fork server process and the socket to it; started on first use."""

    def __init__(self, path: Sequence[str], limits: WorkerLimits = DEFAULT_LIMITS) -> None:
        """`path` is the import path of the workers."""
        self.path = path
        self.limits = limits
        self._line: socket.socket | None = None
        self._process: programs.Process | None = None
        self._owner = 0
        self._lock = threading.Lock()
        self.turns = threading.BoundedSemaphore(_MAX_AT_ONCE)
        """Acquired while a task runs, to limit how many run at once."""

    def call(self, task: WorkerTask, arguments: Mapping[str, Any], data: bytes) -> TaskResult:
        """Run a task in a new child and return its result. Blocks, so call it in a thread.

        Raises the task's `ToolError`, or `TaskFailed`.
        """
        with self.turns:
            if not hasattr(os, "fork"):
                return _run_in_own_process(self, task, arguments, data)
            with contextlib.closing(self.open_child(task)) as child:
                return child.call(arguments, data)

    def open_child(self, task: WorkerTask) -> "WorkerChild":
        """Fork a child that can run a task repeatedly until it is closed; only on systems with fork.

        The caller must have acquired `turns`.
        """
        for _ in range(2):
            ours, theirs = socket.socketpair()
            ours.settimeout(self.limits.wait_seconds)
            with theirs, contextlib.suppress(PeerGone):
                self._request_fork(task, theirs)
            with contextlib.suppress(OSError):
                if ours.recv(len(_STARTED)) == _STARTED:
                    return WorkerChild(ours, self.limits)
            ours.close()
            self.close()  # the server reached its idle timeout and exited; start another
        raise errors.HostError("Can't start the worker process that parses files.")

    def close(self) -> None:
        """Stop the fork server; the next task starts another."""
        with self._lock:
            self._stop_server()

    def _stop_server(self) -> None:
        line, self._line = self._line, None
        process, self._process = self._process, None
        if line is not None:
            line.close()
        if process is not None and self._owner == os.getpid():  # after a fork it belongs to our parent
            programs.wait_or_kill(process, _GRACE_SECONDS)

    def _request_fork(self, task: WorkerTask, child_line: socket.socket) -> None:
        """Tell the fork server to fork a child for a task, starting the server if necessary."""
        message = {"module": task.module, "function": task.function, "libraries": task.libraries}
        with self._lock:
            if self._line is not None and self._owner == os.getpid():
                with contextlib.suppress(PeerGone):
                    send_message(self._line, message, (child_line.fileno(),))
                    return
            self._stop_server()
            send_message(self._start_server(), message, (child_line.fileno(),))

    def _start_server(self) -> socket.socket:
        self._line, theirs = socket.socketpair()
        with theirs:
            self._process = programs.start_python(
                __name__,
                [str(theirs.fileno()), json.dumps(self.path), json.dumps(asdict(self.limits))],
                pass_fds=(theirs.fileno(),),
            )
        if self._owner != os.getpid():
            self._owner = os.getpid()
            atexit.register(self.close)
        return self._line


class WorkerChild:
    """A forked child that runs tasks one after another until one fails."""

    def __init__(self, line: socket.socket, limits: WorkerLimits) -> None:
        self._line = line
        self._limits = limits
        self._usable_until = time.monotonic() + limits.child_seconds - limits.wait_seconds

    @property
    def is_usable(self) -> bool:
        """Whether it can run another task: it has not exited, and enough of its lifetime is left."""
        if self._line.fileno() < 0 or time.monotonic() > self._usable_until:
            return False
        # A child sends nothing unprompted, so a readable socket means it has exited.
        return not select.select([self._line], [], [], 0)[0]

    def call(self, arguments: Mapping[str, Any], data: bytes) -> TaskResult:
        """Run the task once and return its result. Raises like `Workers.call`; a failed child is closed."""
        with programs.anonymous_file() as given, programs.anonymous_file() as result:
            given.write(data)
            given.seek(0)
            with contextlib.suppress(OSError, PeerGone):
                send_message(self._line, dict(arguments), (given.fileno(), result.fileno()))
                if self._line.recv(len(_DONE)) == _DONE:
                    return _read_result(result, self._limits.output_bytes)
        self.close()
        raise TaskFailed(f"parsing took more than {self._limits}, or the parser crashed")

    def close(self) -> None:
        """Close the connection, which makes the child exit."""
        self._line.close()


def _run_in_own_process(
    workers: Workers, task: WorkerTask, arguments: Mapping[str, Any], data: bytes
) -> TaskResult:
    """Run a task in a new process, on systems without fork."""
    words = [json.dumps(workers.path), task.module, task.function, json.dumps(dict(arguments))]
    line = programs.python_arguments(__name__, "work_alone", words)
    bounds = programs.ProgramLimits(**asdict(workers.limits))
    with programs.anonymous_file() as given, programs.anonymous_file() as result:
        given.write(data)
        given.seek(0)
        try:
            done = programs.run_program(programs.python_interpreter(), line, bounds, env={}, stdin=given)
        except programs.ProgramTimeout as failure:
            raise TaskFailed(f"parsing took more than {workers.limits}") from failure
        if done.code:
            raise TaskFailed("the parser crashed")
        result.write(done.output)
        return _read_result(result, workers.limits.output_bytes)


def _read_result(result: IO[bytes], most: int) -> TaskResult:
    """Parse and validate the result of an untrusted child; raises `TaskFailed` if it is malformed."""
    result.seek(0)
    whole = result.read(most)
    try:
        (size,) = _RESULT_HEAD.unpack_from(whole)
        said = json.loads(whole[_RESULT_HEAD.size : _RESULT_HEAD.size + size])
        if said["error"]:
            raise _TASK_ERRORS[said["error"]](str(said["message"]), hint=str(said["hint"]))
        blobs, at = [], _RESULT_HEAD.size + size
        for length in said["blobs"]:
            blobs.append(whole[at : at + int(length)])
            at += int(length)
        return TaskResult(dict(said["value"]), tuple(blobs))
    except (struct.error, ValueError, LookupError, TypeError) as failure:
        raise TaskFailed("the parser returned a malformed result") from failure


# The code below runs in the fork server process and its children.


@dataclass(slots=True)
class _ForkServer:
    line: socket.socket
    wake: int
    limits: WorkerLimits
    restrict: Callable[[], None]
    children: dict[int, float]
    """The deadline of each child, by pid."""
    loaded: set[str]

    def serve(self) -> None:
        """Fork children until the client closes the connection or the idle timeout passes."""
        waiting = select.poll()
        waiting.register(self.line, select.POLLIN)
        waiting.register(self.wake, select.POLLIN)
        while True:
            idle = not self.children
            ready = {fd for fd, _ in waiting.poll(self._seconds_until_deadline() * 1000)}
            if idle and not ready:
                return
            if self.wake in ready:
                os.read(self.wake, 4096)
            self._reap()
            if self.line.fileno() in ready:
                message, fds = receive_message_and_fds(self.line)
                self._import_libraries(message["libraries"])
                with socket.socket(fileno=fds[0]) as child_line:
                    pid = self._fork(message, child_line)
                self.children[pid] = time.monotonic() + self.limits.child_seconds

    def _seconds_until_deadline(self) -> float:
        if not self.children:
            return _IDLE_SECONDS
        return max(min(self.children.values()) - time.monotonic(), 0.0) + 0.001

    def _reap(self) -> None:
        for pid, deadline in list(self.children.items()):
            if time.monotonic() >= deadline:
                os.kill(pid, signal.SIGKILL)
            if os.waitpid(pid, os.WNOHANG)[0]:
                del self.children[pid]

    def _import_libraries(self, libraries: Iterable[str]) -> None:
        for name in libraries:
            if name not in self.loaded:
                self.loaded.add(name)
                with contextlib.suppress(ImportError):
                    importlib.import_module(name)
                gc.freeze()

    def _fork(self, message: Mapping[str, Any], line: socket.socket) -> int:
        work = getattr(importlib.import_module(message["module"]), message["function"])
        with contextlib.suppress(BrokenPipeError):  # the client no longer waits for it
            line.sendall(_STARTED)
        pid = os.fork()
        if pid:
            return pid
        code = 1
        try:
            self.line.close()
            self.restrict()
            _run_tasks(line, work, self.limits.seconds)
            code = 0
        finally:
            os._exit(code)


def _run_tasks(line: socket.socket, work: Task, seconds: float) -> None:
    """Run tasks until the client closes the connection or sends nothing for a while."""
    line.settimeout(_CHILD_IDLE_SECONDS)
    with contextlib.suppress(PeerGone):
        while True:
            arguments, (given, result) = receive_message_and_fds(line)
            with open(given, "rb") as file, open(result, "wb") as made:
                # SIGPROF has no handler here, so the kernel kills the process when the timer expires.
                signal.setitimer(signal.ITIMER_PROF, seconds)
                made.write(_encoded_result(work, arguments, file.read()))
                signal.setitimer(signal.ITIMER_PROF, 0)
            line.sendall(_DONE)


def main(line: str, path: str, limits: str) -> None:
    """Entry point of the fork server process."""
    sys.path += json.loads(path)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    wake, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    worker_limits = WorkerLimits(**json.loads(limits))
    restrict = _restriction_function(json.loads(path), worker_limits)
    server = _ForkServer(socket.socket(fileno=int(line)), wake, worker_limits, restrict, {}, set())
    try:
        with contextlib.suppress(PeerGone):
            server.serve()
    finally:
        for pid in server.children:
            os.kill(pid, signal.SIGKILL)


def work_alone(path: str, module: str, function: str, arguments: str) -> None:
    """Entry point of a process for one task: reads data from stdin, writes the result to stdout."""
    sys.path += json.loads(path)
    work = getattr(importlib.import_module(module), function)
    sys.stdout.buffer.write(_encoded_result(work, json.loads(arguments), sys.stdin.buffer.read()))


def _encoded_result(work: Task, arguments: Mapping[str, Any], data: bytes) -> bytes:
    said: dict[str, Any] = {"error": ""}
    blobs: tuple[bytes, ...] = ()
    try:
        made = work(arguments, data)
        blobs = made.blobs
        said |= {"value": made.value, "blobs": [len(each) for each in blobs]}
    except errors.ToolError as error:
        said |= {"error": type(error).__name__, "message": error.message, "hint": error.hint}
    head = json.dumps(said).encode()
    return b"".join((_RESULT_HEAD.pack(len(head)), head, *blobs))


def _restriction_function(path: Sequence[str], worker_limits: WorkerLimits) -> Callable[[], None]:
    """Return a function that a child calls to restrict itself before it reads untrusted data."""
    import resource

    limits = {
        resource.RLIMIT_AS: worker_limits.memory_bytes,
        resource.RLIMIT_CPU: int(worker_limits.child_seconds) + 1,
        resource.RLIMIT_FSIZE: worker_limits.output_bytes,
        resource.RLIMIT_NOFILE: _MAX_OPEN_FILES,
        resource.RLIMIT_CORE: 0,
    }
    confine = _confinement_function(path) if sys.platform.startswith("linux") else lambda: None

    def restrict() -> None:
        for number, most in limits.items():
            _, hard = resource.getrlimit(number)
            least = most if hard == resource.RLIM_INFINITY else min(most, hard)
            with contextlib.suppress(ValueError, OSError):  # not every system supports every limit
                resource.setrlimit(number, (least, least))
        confine()

    return restrict


def _confinement_function(path: Sequence[str]) -> Callable[[], None]:
    """Return a function that denies this process sockets and all files except programs, if the kernel can."""
    from handtools.host.sandbox.processes import pre_exec
    from handtools.host.sandbox.runners import landlock_ruleset as landlock
    from handtools.host.sandbox.runners import seccomp

    filtered = landlock.landlock_syscall_filter("none") if seccomp.architecture_known() else b""
    rules = None
    if landlock.landlock_abi() >= 1:
        readable = (*_READABLE_FOLDERS, *path, sys.base_prefix, os.devnull)
        rules = landlock.create_ruleset([(each, landlock.READ_ACCESS) for each in readable], network=False)
    return lambda: pre_exec.restrict_self(rules, filtered)
