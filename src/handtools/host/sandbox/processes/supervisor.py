"""A supervisor: a small process that starts one command after the other and outlives everything they start.

It is the subreaper of all their descendants, so none gets away; and when we are gone, however we went, it ends
them. It is a process of its own because being a subreaper concerns a whole process: the program that uses us may
have children of its own, and would be handed strangers. ADR 50, 67.
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
from dataclasses import dataclass

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
"""Seconds that child processes get to end by themselves after the command has."""


@dataclass(slots=True)
class SupervisedCommand:
    """The supervisor's running child process: its pid, its limits and, once it ended, its exit status."""

    pid: int
    used: int | None
    """Memory in bytes that the control group used before the command; None without a group."""
    alone: bool
    """Whether the command has its own pid namespace, which ends with it."""
    watch: ResourceMonitor | None
    over: ExceededLimit = ""
    """The limit that was exceeded, for which the command was killed."""
    status: int | None = None
    peak: int = 0


@dataclass(slots=True)
class PreforkedChild:
    """A child forked in advance that waits for its order to exec."""

    pid: int
    line: socket.socket
    """A socket that closes at exec; before that, the child sends why it failed."""


@dataclass(slots=True)
class Supervisor:
    """The loop of the supervisor process: starts one command at a time, watches its limits, reports its exit."""

    line: socket.socket
    wake: int
    """A descriptor that becomes readable when a child has ended."""
    group: Cgroup
    others: int
    """How many processes this user had at the start, since the kernel's process limit counts them all."""
    starved: int = 0
    child: SupervisedCommand | None = None
    next: PreforkedChild | None = None
    """The child forked in advance for the next command."""

    def serve(self, owner: int) -> None:
        """Carry out orders until the other side closes the connection or the owner has ended."""
        waiting = select.poll()
        for fd in (self.line.fileno(), self.wake, owner):
            if fd >= 0:
                waiting.register(fd, select.POLLIN)
        while True:
            if self.child is None and self.next is None:
                self.next = _prefork()
            ready = {fd for fd, _ in waiting.poll(self._pause())}
            if owner in ready:
                return
            if self.wake in ready:
                self.reap(0.0)
                if self.child and self.child.status is not None:
                    self.kill_rest_and_report(gently=False)
            self._look()
            if self.line.fileno() in ready:
                message: SupervisorOrder
                message, fds = receive_message_and_fds(self.line)
                if message["order"] == "start":
                    self.start(message, fds)
                elif message["order"] == "network":
                    self.open_network(message, fds)
                elif self.child:
                    self.kill_rest_and_report(gently=message["gently"])

    def _pause(self) -> float | None:
        """Milliseconds until the next poll of limits; None when nothing is to be polled."""
        watch = self.child.watch if self.child else None
        return max(watch.due - time.monotonic(), 0.0) * 1000 + 1 if watch else None

    def _look(self) -> None:
        child = self.child
        if child and child.watch and time.monotonic() >= child.watch.due:
            child.over = child.watch.look(lambda: running_pids(self.group))
            if child.over:
                self.kill_rest_and_report(gently=False)

    def start(self, order: StartOrder, fds: list[int]) -> None:
        """Fork and execute; the answer is that it runs, or why it does not."""
        used = self.group.memory_used()
        most = order["memory"] or order["usual_memory"]
        # The usual limit is the same for every command, so that it is written once.
        before = (used or 0) if order["memory"] else 0
        kept = self.group.limit(memory=most, processes=order["processes"], used=before)
        limits = order["limits"]
        # Only where it was asked for: a limit for each process ends programs that reserve much and use little.
        if order["memory"] is not None and "memory" not in kept:
            limits["RLIMIT_DATA"] = order["memory"]
        if order["processes"] is not None and "processes" not in kept:
            limits["RLIMIT_NPROC"] = self.others + order["processes"]
        apprentice, refusal = self._told(order, fds)
        for fd in fds:
            os.close(fd)
        if refusal:
            os.waitpid(apprentice.pid, 0)
            send_message(self.line, RefusalAnswer(refused=refusal))
        else:
            memory = None if "memory" in kept else most
            watch = ResourceMonitor.from_order(order, memory=memory)
            self.child = SupervisedCommand(apprentice.pid, used, order["alone"], watch)
            send_message(self.line, CommandStarted(pid=apprentice.pid))

    def open_network(self, order: NetworkOrder, fds: list[int]) -> None:
        """Have a child make or join a network namespace and pass on what it opened, or why it could not."""
        apprentice, self.next = self.next or _prefork(), None
        opened: list[int] = []
        answer: NetworkOpened | RefusalAnswer
        with apprentice.line as line:
            try:
                send_message(line, order, fds)
                answer, opened = receive_message_and_fds(line)
            except PeerGone:
                answer = RefusalAnswer(refused="the process that was to open it is gone")
        with contextlib.suppress(ChildProcessError):
            os.waitpid(apprentice.pid, 0)
        send_message(self.line, answer, opened)
        for fd in (*fds, *opened):
            os.close(fd)

    def _told(self, order: StartOrder, fds: list[int]) -> tuple[PreforkedChild, str]:
        """An apprentice that has executed the order, or why it could not; one that died waiting is replaced."""
        apprentice, self.next = self.next or _prefork(), None
        with apprentice.line as line:
            try:
                send_message(line, order, fds)
            except PeerGone:
                return self._told(order, fds)
            return apprentice, b"".join(iter(lambda: line.recv(4096), b"")).decode()

    def kill_rest_and_report(self, *, gently: bool) -> None:
        """Kill what is left of the command, then report how it ended."""
        child = self.child
        assert child is not None
        left = 0 if gently or child.alone or child.over else self._left_behind()
        survivors = kill_descendants(self.group, self.reap, gently=gently)
        self.child = None
        starved, self.starved = self.starved, self.group.starved()
        report = CommandEndReport(
            status=child.status,
            peak=self._peak(child),
            left=left,
            starved=self.starved > starved,
            over=child.over,
            survivors=survivors,
        )
        send_message(self.line, report)

    def _peak(self, child: SupervisedCommand) -> int:
        """The highest memory use of the command in bytes; 0 if unknown."""
        peak = self.group.peak()
        if peak is not None and child.used is not None:
            return max(peak - child.used, 0)
        # A forked child begins with our own mark: below that it can't be told from us.
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return child.peak if child.peak > own else 0

    def reap(self, wait: float) -> bool:
        """Reap all children that end within `wait` seconds; False when none are left."""
        if select.select([self.wake], [], [], wait)[0]:
            os.read(self.wake, 4096)
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status, usage = os.wait4(-1, os.WNOHANG)
                if not pid:
                    return True
                if self.child and pid == self.child.pid:
                    self.child.status, self.child.peak = status, usage.ru_maxrss * 1024
        return False

    def _left_behind(self) -> int:
        """How many processes outlive the command, after a moment to end by themselves."""
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
    """In the forked child: wait for an order and exec it, or send why that failed, and exit."""
    try:
        pre_exec.start_own_session()
        order: StartOrder | NetworkOrder
        order, fds = receive_message_and_fds(line)
        if order["order"] == "network":
            _answer_network_order(line, order, fds)
            os._exit(0)
        # Out of the way of the numbers that the command's own descriptors get.
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
    """In the forked child: open what is wanted and hand it to the supervisor."""
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
    """A pidfd that becomes readable when the owner has ended: its socket alone may live on in a forked child."""
    try:
        return os.pidfd_open(owner)
    except OSError:
        return -1


def main(line: str, owner: str) -> None:
    """Entry point of the supervisor process: serve orders, then kill what still runs."""
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
