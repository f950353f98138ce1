"""A supervisor: a small process that starts one command after the other and outlives everything they start.

It is the subreaper of all their descendants, so none gets away; and when we are gone, however we went, it ends
them. It is a process of its own because being a subreaper concerns a whole process: the program that uses us may
have children of its own, and would be handed strangers.
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

from handtools.host.sandbox.orders import (
    CommandRefused,
    CommandReport,
    CommandStarted,
    StartOrder,
    SupervisorOrder,
)
from handtools.host.sandbox.processes import cgroups, pre_exec
from handtools.host.sandbox.processes.cgroups import Cgroup
from handtools.host.sandbox.processes.fd_messages import PeerGone, receive_message, send_message
from handtools.host.sandbox.processes.kill_tree import descendants, kill_descendants, running_pids
from handtools.host.sandbox.processes.resource_monitor import ExceededLimit, ResourceMonitor

EXIT_GRACE_SECONDS = 0.02
"""Seconds that processes get to follow the command's own end."""


@dataclass(slots=True)
class SupervisedCommand:
    """The command that runs now, and how it ended."""

    pid: int
    used: int | None
    """Memory in use before it began, where a group counts."""
    alone: bool
    """Whether the kernel ends everything in its process namespace with it."""
    watch: ResourceMonitor | None
    over: ExceededLimit = ""
    """The limit that it went beyond, and for which it was ended."""
    status: int | None = None
    peak: int = 0


@dataclass(slots=True)
class PreforkedChild:
    """A forked child that waits for its order."""

    pid: int
    line: socket.socket
    """Closes when it has executed; before that it says why it can't."""


@dataclass(slots=True)
class Supervisor:
    """Takes one order at a time."""

    line: socket.socket
    wake: int
    """Readable when a child has ended."""
    group: Cgroup
    others: int
    """Processes that this user had when we began: a limit on processes counts them all."""
    starved: int = 0
    child: SupervisedCommand | None = None
    next: PreforkedChild | None = None
    """Forked while there was nothing to do, so that no command waits for it."""

    def serve(self, owner: int) -> None:
        """Do what is ordered until the other side is gone."""
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
                    self.settle(gently=False)
            self._look()
            if self.line.fileno() in ready:
                message: SupervisorOrder
                message, fds = receive_message(self.line)
                if message["order"] == "start":
                    self.start(message, fds)
                elif self.child:
                    self.settle(gently=message["gently"])

    def _pause(self) -> float | None:
        """Milliseconds until there is something to do unasked; None when there is not."""
        watch = self.child.watch if self.child else None
        return max(watch.due - time.monotonic(), 0.0) * 1000 + 1 if watch else None

    def _look(self) -> None:
        child = self.child
        if child and child.watch and time.monotonic() >= child.watch.due:
            child.over = child.watch.look(lambda: running_pids(self.group))
            if child.over:
                self.settle(gently=False)

    def start(self, order: StartOrder, fds: list[int]) -> None:
        """Fork and execute; the answer is that it runs, or why it does not."""
        used = self.group.used()
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
            send_message(self.line, CommandRefused(refused=refusal))
        else:
            memory = None if "memory" in kept else most
            watch = ResourceMonitor.ordered(order, memory=memory)
            self.child = SupervisedCommand(apprentice.pid, used, order["alone"], watch)
            send_message(self.line, CommandStarted(pid=apprentice.pid))

    def _told(self, order: StartOrder, fds: list[int]) -> tuple[PreforkedChild, str]:
        """An apprentice that has executed the order, or why it could not; one that died waiting is replaced."""
        apprentice, self.next = self.next or _prefork(), None
        with apprentice.line as line:
            try:
                send_message(line, order, fds)
            except PeerGone:
                return self._told(order, fds)
            return apprentice, b"".join(iter(lambda: line.recv(4096), b"")).decode()

    def settle(self, *, gently: bool) -> None:
        """End all that is left of the command, then say how it went."""
        child = self.child
        assert child is not None
        left = 0 if gently or child.alone or child.over else self._left_behind()
        survivors = kill_descendants(self.group, self.reap, gently=gently)
        self.child = None
        starved, self.starved = self.starved, self.group.starved()
        report = CommandReport(
            status=child.status,
            peak=self._peak(child),
            left=left,
            starved=self.starved > starved,
            over=child.over,
            survivors=survivors,
        )
        send_message(self.line, report)

    def _peak(self, child: SupervisedCommand) -> int:
        """The most memory it used; 0 when that is not known."""
        peak = self.group.peak()
        if peak is not None and child.used is not None:
            return max(peak - child.used, 0)
        # A forked child begins with our own mark: below that it can't be told from us.
        own = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
        return child.peak if child.peak > own else 0

    def reap(self, wait: float) -> bool:
        """Take note of everything that ends within so many seconds; False when nothing is left."""
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
        """How many processes outlive the command; those that are just going do not count."""
        deadline = time.monotonic() + EXIT_GRACE_SECONDS
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
    """In the child: wait for an order and execute it, or say why not, and end."""
    try:
        pre_exec.start_own_session()
        order: StartOrder
        order, fds = receive_message(line)
        # Out of the way of the numbers that the command's own descriptors get.
        report = fcntl.fcntl(line, fcntl.F_DUPFD_CLOEXEC, max(order["fds"]) + 1)
        line.close()
        line = socket.socket(fileno=report)
        pre_exec.exec_order(order, dict(zip(order["fds"], fds, strict=True)))
    except BaseException as failure:
        with contextlib.suppress(OSError):
            line.send(f"{failure}"[:500].encode() or b"?")
        os._exit(127)
        raise


def _processes_of_user() -> int:
    me = os.getuid()
    count = 0
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError):
            count += name.isdigit() and os.stat(f"/proc/{name}").st_uid == me
    return count


def _owner_pidfd(owner: int) -> int:
    """Becomes readable when the owner has ended: a copy of its socket may live on in a child that it forked."""
    try:
        return os.pidfd_open(owner)
    except OSError:
        return -1


def main(line: str, owner: str) -> None:
    """Serve, and end what still runs."""
    pre_exec.become_subreaper()
    wake, waker = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    group = cgroups.create_cgroup()
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
