"""Commands without supervisors: a thread starts each command in its own process group and kills that group.

A supervisor needs Linux (subreaper, cgroups). Without one, a process that leaves its group survives, and
memory and the number of processes are not limited. We have run this only on Linux, with supervisors disabled.
"""

import contextlib
import errno
import os
import select
import shutil
import signal
import socket
import threading
import time
from collections.abc import Sequence

from handtools.host.programs import Process, Program, python_interpreter, start_program
from handtools.host.sandbox.processes.fd_messages import PeerGone, receive_message_and_fds, send_message
from handtools.host.sandbox.processes.kill_tree import KILL_TIMEOUT_SECONDS, TERM_GRACE_SECONDS
from handtools.host.sandbox.supervisor_messages import (
    CommandEndAnswer,
    CommandEndReport,
    CommandStarted,
    RefusalAnswer,
    StartOrder,
    SupervisorOrder,
)

_SHELL = Program("/bin/sh", "sh")
_FILE_SIZE_BLOCK_BYTES = 512
_POLL_SECONDS = 0.002
_BEGIN = 'exec "$@"'
# The first terminal that a session leader opens becomes its controlling terminal.
_BEGIN_AT_TERMINAL = 'terminal=$1; shift; exec "$@" <"$terminal" >"$terminal" 2>&1'
# A shell can't reset signals that were ignored when it started, but Python can. Python itself sets LC_CTYPE
# if there is no locale, so restore the given value.
_WITH_DEFAULT_SIGNALS = """
import os, signal, sys
for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
    signal.signal(number, signal.SIG_DFL)
os.environ.pop("LC_CTYPE", None)
if sys.argv[1]:
    os.environ["LC_CTYPE"] = sys.argv[1]
os.execv(sys.argv[2], sys.argv[3:])
"""
_ON_LINUX_ALONE = ("unshare", "mounts", "namespaces", "views", "user", "seccomp", "layers")


class ProcessGroupThread:
    """The handle of a thread that runs one command, used like a supervisor's handle."""

    def __init__(self) -> None:
        self.line, theirs = socket.socketpair()
        self._work = _ProcessGroup(theirs)
        self._thread = threading.Thread(target=self._work.serve, name="handtools-group", daemon=True)
        self._thread.start()

    def send_order(self, message: SupervisorOrder, fds: tuple[int, ...] = ()) -> None:
        """Send the thread a message; raises `PeerGone` if it has exited."""
        send_message(self.line, message, fds)

    def abandon(self) -> None:
        """Kill the group, because the thread doesn't respond."""
        self._work.signal_group(signal.SIGKILL)
        self.dismiss()

    def dismiss(self) -> None:
        """Close the connection, which kills the command, and wait for the thread."""
        self.line.close()
        self._thread.join(KILL_TIMEOUT_SECONDS)


class ProcessGroupThreads:
    """Starts a thread for each command."""

    def take(self) -> ProcessGroupThread:
        """Start a thread for one command."""
        return ProcessGroupThread()

    def give_back(self, group_thread: ProcessGroupThread) -> None:
        """Stop the command's thread: threads are not reused."""
        group_thread.dismiss()


PROCESS_GROUPS = ProcessGroupThreads()


class _ProcessGroup:
    """The code in the thread: starts a command, waits for its exit or an end order, and reports."""

    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._process: Process | None = None

    def serve(self) -> None:
        with self._line, contextlib.suppress(PeerGone):
            order, fds = receive_message_and_fds(self._line)
            try:
                answer = self._run(order, fds)
            finally:
                for fd in fds:
                    os.close(fd)
            send_message(self._line, answer)

    def _run(self, order: StartOrder, fds: Sequence[int]) -> CommandEndAnswer:
        if order["landlock"] is not None or any(order[key] for key in _ON_LINUX_ALONE):  # type: ignore[literal-required]
            return RefusalAnswer(refused="it needs a supervisor, which this system doesn't support")
        name = order["argv"][0]
        # Otherwise the shell would print the error as if it were the command's output.
        if "/" not in name and not shutil.which(name, path=order["env"].get("PATH", os.defpath)):
            return RefusalAnswer(refused=f"{name}: {os.strerror(errno.ENOENT)}")
        try:
            self._process = _start(order, fds)
        except OSError as error:
            return RefusalAnswer(refused=f"{error.filename or order['argv'][0]}: {error.strerror}")
        try:
            send_message(self._line, CommandStarted(pid=self._process.pid))
            self._wait_for_end_or_order(self._process)
        finally:
            left = self.signal_group(signal.SIGKILL)
            code = self._process.wait()
        return CommandEndReport(
            status=code << 8 if code >= 0 else -code,
            peak=0,
            left=int(left),
            starved=False,
            over="",
            survivors=0,
        )

    def _wait_for_end_or_order(self, process: Process) -> None:
        ended, ending = os.pipe()
        waiter = threading.Thread(target=_close_at_end, args=(process, ending), daemon=True)
        waiter.start()
        try:
            if ended not in select.select([self._line.fileno(), ended], [], [])[0]:
                receive_message_and_fds(self._line)  # can only be an end order
                self.signal_group(signal.SIGTERM)
                self.signal_group(signal.SIGCONT)
                deadline = time.monotonic() + TERM_GRACE_SECONDS
                while process.returncode is None and time.monotonic() < deadline:
                    select.select([ended], [], [], _POLL_SECONDS)
        finally:
            self.signal_group(signal.SIGKILL)
            waiter.join()
            os.close(ended)

    def signal_group(self, number: signal.Signals) -> bool:
        """Signal every process of the group; False if there are none."""
        if self._process is None:
            return False
        try:
            os.killpg(self._process.pid, number)
        except (
            ProcessLookupError,
            PermissionError,
        ):  # macOS raises PermissionError for a group that has just exited
            return False
        return True


def _start(order: StartOrder, fds: Sequence[int]) -> Process:
    limits = [
        f"ulimit -{letter} {limit} 2>/dev/null"
        for letter, limit in (
            ("c", order["limits"].get("RLIMIT_CORE", 0)),
            ("n", order["limits"].get("RLIMIT_NOFILE")),
            ("f", _size_in_blocks(order["limits"].get("RLIMIT_FSIZE"))),
        )
        if limit is not None
    ]
    terminal: tuple[str, ...] = ()
    if order["terminal"] is not None:
        import termios  # not on Windows

        rows, columns = order["terminal"]
        termios.tcsetwinsize(fds[0], (rows, columns))
        terminal = (os.ttyname(fds[0]),)
    script = "; ".join([*limits, _BEGIN_AT_TERMINAL if terminal else _BEGIN])
    program, words = _SHELL, ["-c", script, "handtools", *terminal, *order["argv"]]
    if _ignores_signals():
        ctype = order["env"].get("LC_CTYPE", "")
        words = ["-I", "-S", "-c", _WITH_DEFAULT_SIGNALS, ctype, _SHELL.file, _SHELL.name, *words]
        program = python_interpreter()
    # Fds other than the standard three are open in this process under the numbers the command expects.
    return start_program(
        program,
        words,
        cwd=order["cwd"],
        env=order["env"],
        stdin=fds[0],
        stdout=fds[1],
        stderr=fds[2],
        pass_fds=order["fds"][3:],
        own_session=True,
    )


def _ignores_signals() -> bool:
    """Whether this process ignores signals, as under `nohup`: its commands would then ignore them too.

    SIGPIPE and SIGXFSZ are ignored by Python itself, which restores them when it starts a program.
    """
    others = signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}
    return any(signal.getsignal(number) == signal.SIG_IGN for number in others)


def _size_in_blocks(size: int | None) -> int | None:
    return None if size is None else max(size // _FILE_SIZE_BLOCK_BYTES, 1)


def _close_at_end(process: Process, pipe: int) -> None:
    process.wait()
    os.close(pipe)
