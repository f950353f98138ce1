"""A supervisor: a small process that starts one command after another and outlives everything they start.

It is the subreaper of all their descendants, so none can escape. When our process exits, for whatever
reason, it kills them. It is a separate process because subreaper status applies to a whole process: a
program that embeds us may have its own children, and would inherit unrelated orphans.

The first command waits until it has started, so it imports little; `dataclasses` alone would take a third
of its imports' time.
"""

import contextlib
import fcntl
import gc
import os
import resource
import select
import signal
import socket
import time

from handtools.host.sandbox.processes import cgroups, pre_exec
from handtools.host.sandbox.processes.cgroups import Cgroup
from handtools.host.sandbox.processes.fd_messages import PeerGone, receive_message_and_fds, send_message
from handtools.host.sandbox.processes.kill_tree import descendants, kill_descendants, running_pids
from handtools.host.sandbox.processes.memory_and_disk_monitor import ExceededLimit, ResourceMonitor
from handtools.host.sandbox.supervisor_messages import (
    CommandEndReport,
    CommandStarted,
    NetworkOpened,
    NetworkOrder,
    RefusalAnswer,
    StartOrder,
    SupervisorOrder,
)

LEFTOVER_CHILD_GRACE_SECONDS = 0.02
"""Seconds that child processes get to exit by themselves after the command has exited."""


class SupervisedCommand:
    """The supervisor's running child process: its pid, its limits and, after its exit, its status."""

    def __init__(self, pid: int, used: int | None, monitor: ResourceMonitor | None, *, alone: bool) -> None:
        self.pid = pid
        self.used = used
        """Memory in bytes that the cgroup used before the command; None without a cgroup."""
        self.monitor = monitor
        self.alone = alone
        """Whether the command has its own pid namespace, which is destroyed when it exits."""
        self.over: ExceededLimit = ""
        """The limit that the command exceeded, so that it was killed; empty if none."""
        self.status: int | None = None
        self.peak = 0


class PreforkedChild:
    """A child forked in advance that waits for its order to exec."""

    def __init__(self, pid: int, line: socket.socket) -> None:
        self.pid = pid
        self.line = line
        """A socket that closes at exec; if the setup fails, the child sends the reason over it."""


class Supervisor:
    """The supervisor's main loop: starts one command at a time, monitors its limits, reports its exit."""

    def __init__(self, line: socket.socket, wake: int, cgroup: Cgroup, others: int) -> None:
        """`wake` is an fd that becomes readable when a child exits.

        `others` is how many processes this user had at the start, since the kernel's process limit counts
        them all.
        """
        self.line = line
        self.wake = wake
        self.cgroup = cgroup
        self.others = others
        self.starved = 0
        self.command: SupervisedCommand | None = None
        self.next_child: PreforkedChild | None = None
        """The child forked in advance for the next command."""

    def serve(self, owner: int) -> None:
        """Execute orders until the client closes the connection or the owner exits."""
        waiting = select.poll()
        for fd in (self.line.fileno(), self.wake, owner):
            if fd >= 0:
                waiting.register(fd, select.POLLIN)
        while True:
            if self.command is None and self.next_child is None:
                self.next_child = _prefork()
            ready = {fd for fd, _ in waiting.poll(self._poll_milliseconds())}
            if owner in ready:
                return
            if self.wake in ready:
                self.reap(0.0)
                if self.command and self.command.status is not None:
                    self.kill_rest_and_report(gently=False)
            self._check_limits()
            if self.line.fileno() in ready:
                message: SupervisorOrder
                message, fds = receive_message_and_fds(self.line)
                if message["order"] == "start":
                    self.start(message, fds)
                elif message["order"] == "network":
                    self.open_network(message, fds)
                elif self.command:
                    self.kill_rest_and_report(gently=message["gently"])

    def _poll_milliseconds(self) -> float | None:
        """Return the milliseconds until the next poll of limits; None if there is nothing to poll."""
        watch = self.command.monitor if self.command else None
        return max(watch.due - time.monotonic(), 0.0) * 1000 + 1 if watch else None

    def _check_limits(self) -> None:
        child = self.command
        if child and child.monitor and time.monotonic() >= child.monitor.due:
            child.over = child.monitor.look(lambda: running_pids(self.cgroup))
            if child.over:
                self.kill_rest_and_report(gently=False)

    def start(self, order: StartOrder, fds: list[int]) -> None:
        """Start a command; replies that it runs, or why it doesn't."""
        used = self.cgroup.memory_used()
        most = order["memory"] or order["usual_memory"]
        # The default limit is the same for every command, so that it is written only once.
        before = (used or 0) if order["memory"] else 0
        kept = self.cgroup.limit(memory=most, processes=order["processes"], used=before)
        limits = order["limits"]
        # Only if requested: a per-process limit breaks programs that reserve much memory and use little.
        if order["memory"] is not None and "memory" not in kept:
            limits["RLIMIT_DATA"] = order["memory"]
        if order["processes"] is not None and "processes" not in kept:
            limits["RLIMIT_NPROC"] = self.others + order["processes"]
        apprentice, refusal = self._exec_in_child(order, fds)
        for fd in fds:
            os.close(fd)
        if refusal:
            os.waitpid(apprentice.pid, 0)
            send_message(self.line, RefusalAnswer(refused=refusal))
        else:
            memory = None if "memory" in kept else most
            watch = ResourceMonitor.from_order(order, memory=memory)
            self.command = SupervisedCommand(apprentice.pid, used, watch, alone=order["alone"])
            send_message(self.line, CommandStarted(pid=apprentice.pid))

    def open_network(self, order: NetworkOrder, fds: list[int]) -> None:
        """Have a child create or join a network namespace; replies with the fds it opened, or the error."""
        apprentice, self.next_child = self.next_child or _prefork(), None
        opened: list[int] = []
        answer: NetworkOpened | RefusalAnswer
        with apprentice.line as line:
            try:
                send_message(line, order, fds)
                answer, opened = receive_message_and_fds(line)
            except PeerGone:
                answer = RefusalAnswer(refused="the process that should open it has exited")
        with contextlib.suppress(ChildProcessError):
            os.waitpid(apprentice.pid, 0)
        send_message(self.line, answer, opened)
        for fd in (*fds, *opened):
            os.close(fd)

    def _exec_in_child(self, order: StartOrder, fds: list[int]) -> tuple[PreforkedChild, str]:
        """Have the preforked child, or a new one if it is dead, exec the order.

        Returns the child, and why exec failed ("" if it succeeded).
        """
        apprentice, self.next_child = self.next_child or _prefork(), None
        with apprentice.line as line:
            try:
                send_message(line, order, fds)
            except PeerGone:
                return self._exec_in_child(order, fds)
            return apprentice, b"".join(iter(lambda: line.recv(4096), b"")).decode()

    def kill_rest_and_report(self, *, gently: bool) -> None:
        """Kill the command's remaining processes, then report how it ended."""
        child = self.command
        assert child is not None
        left = 0 if gently or child.alone or child.over else self._left_behind()
        survivors = kill_descendants(self.cgroup, self.reap, gently=gently)
        self.command = None
        starved, self.starved = self.starved, self.cgroup.starved()
        report = CommandEndReport(
            status=child.status,
            peak=self._peak(child),
            left=left,
            starved=self.starved > starved,
            over=child.over,
            survivors=survivors,
        )
        send_message(self.line, report)

    def _peak(self, command: SupervisedCommand) -> int:
        """Return the command's peak memory use in bytes; 0 if unknown."""
        peak = self.cgroup.peak()
        if peak is not None and command.used is not None:
            return max(peak - command.used, 0)
        # A forked child starts with our own maxrss, so a peak below that is unknown.
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return command.peak if command.peak > own else 0

    def reap(self, wait: float) -> bool:
        """Reap all children that exit within `wait` seconds; False if none are left."""
        if select.select([self.wake], [], [], wait)[0]:
            os.read(self.wake, 4096)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if not pid:
                    return True
                if self.command and pid == self.command.pid:
                    self.command.status, self.command.peak = status, usage.ru_maxrss * 1024
        return False

    def _left_behind(self) -> int:
        """Return how many processes outlive the command, after a short grace period."""
        deadline = time.monotonic() + LEFTOVER_CHILD_GRACE_SECONDS
        while self.reap(0.001) and time.monotonic() < deadline:
            pass
        return len(set(descendants(os.getpid())))


def _prefork() -> PreforkedChild:
    ours, theirs = socket.socketpair()
    pid = os.fork()
    if pid == 0:
        ours.close()
        _wait_and_exec(theirs)
    theirs.close()
    return PreforkedChild(pid, ours)


def _wait_and_exec(line: socket.socket) -> None:
    """In the forked child: wait for an order and exec it; on failure, send the reason and exit."""
    try:
        pre_exec.start_own_session()
        order: StartOrder | NetworkOrder
        order, fds = receive_message_and_fds(line)
        if order["order"] == "network":
            _answer_network_order(line, order, fds)
            os._exit(0)
        # Move the socket above the fd numbers that the command's fds will get.
        report = fcntl.fcntl(line, fcntl.F_DUPFD_CLOEXEC, max(order["fds"]) + 1)
        line.close()
        line = socket.socket(fileno=report)
        pre_exec.set_up_and_exec(order, dict(zip(order["fds"], fds, strict=True)))
    except BaseException as failure:
        with contextlib.suppress(OSError):
            line.send(f"{failure}"[:500].encode() or b"?")
        os._exit(127)
        raise


def _answer_network_order(line: socket.socket, order: NetworkOrder, fds: list[int]) -> None:
    """In the forked child: open the requested namespaces and sockets and send them to the supervisor."""
    try:
        made, sockets = pre_exec.open_network(order, fds)
    except OSError as failure:
        send_message(line, RefusalAnswer(refused=f"{failure}"))
    else:
        send_message(line, NetworkOpened(namespaces=len(made)), (*made, *sockets))


def _processes_of_user() -> int:
    me = os.getuid()
    count = 0
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            count += name.isdigit() and os.stat(f"/proc/{name}").st_uid == me
    return count


def _owner_pidfd(owner: int) -> int:
    """Return a pidfd that is readable when the owner exits: its socket may stay open in a forked child."""
    try:
        return os.pidfd_open(owner)
    except OSError:
        return -1


def main(line: str, owner: str) -> None:
    """Entry point of the supervisor process: serves orders, then kills all remaining processes."""
    pre_exec.become_subreaper()
    wake, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    group = cgroups.create_and_join_cgroup()
    gc.disable()
    gc.freeze()
    supervisor = Supervisor(
        socket.socket(fileno=int(line)), wake, group, 0 if group else _processes_of_user()
    )
    try:
        with contextlib.suppress(PeerGone):
            send_message(supervisor.line, {"folders": group.folders})
            supervisor.serve(_owner_pidfd(int(owner)))
    finally:
        kill_descendants(group, supervisor.reap, gently=False)
        group.remove()
