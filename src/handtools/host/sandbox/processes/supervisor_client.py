"""The client of supervisors: a pool that starts and reuses them, and conversion of launches to orders."""

import atexit
import contextlib
import os
import socket
import sys
import threading
from collections.abc import Sequence
from dataclasses import dataclass

from handtools.core.errors import HostError
from handtools.host.programs import Process, start_python, wait_or_kill
from handtools.host.sandbox.default_limits import DEFAULT_OPEN_FILES, default_memory_bytes
from handtools.host.sandbox.launch import ConfinedLaunch, Mount
from handtools.host.sandbox.overlay.overlay_mount import overlay_mount
from handtools.host.sandbox.processes import cgroups
from handtools.host.sandbox.processes.fd_messages import PeerGone, receive_message_and_fds, send_message
from handtools.host.sandbox.supervisor_messages import (
    NetworkOpened,
    NetworkOrder,
    RefusalAnswer,
    StartOrder,
    SupervisorOrder,
)

IDLE_SUPERVISORS = 2
"""How many idle supervisors are kept."""
_SUPERVISOR_EXIT_SECONDS = 10.0
_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
_PRIVATE_MOUNTS = Mount("none", "/", flags=0x4000 | 0x40000)  # MS_REC | MS_PRIVATE


@dataclass(slots=True)
class SupervisorHandle:
    """A running supervisor process and the socket to it."""

    line: socket.socket
    process: Process
    folders: list[str]
    """The folders of the supervisor's cgroup, which contains everything it starts."""

    def send_order(self, message: SupervisorOrder, fds: tuple[int, ...] = ()) -> None:
        """Send the supervisor a message; raises `PeerGone` if it has exited."""
        send_message(self.line, message, fds)

    def abandon(self) -> None:
        """Kill an unresponsive supervisor and all processes in its cgroup."""
        self.process.kill()
        self.dismiss()
        for folder in self.folders:
            cgroups.kill_cgroup(folder)

    def dismiss(self) -> None:
        """Close the connection: the supervisor kills its command and exits."""
        self.line.close()
        wait_or_kill(self.process, _SUPERVISOR_EXIT_SECONDS)


class SupervisorPool:
    """Starts supervisors and reuses idle ones, for all workspaces of this process."""

    def __init__(self) -> None:
        self._idle: list[SupervisorHandle] = []
        self._lock = threading.Lock()
        self._owner = 0

    def take(self) -> SupervisorHandle:
        """Take an idle supervisor or start one."""
        with self._lock:
            self._drop_our_parents()
            while self._idle:
                hired = self._idle.pop()
                if hired.process.poll() is None:
                    return hired
                hired.dismiss()
        return _start_supervisor()

    def start_ahead(self) -> None:
        """Start an idle supervisor before it is needed; concurrent `take` calls wait for it."""
        with self._lock:
            self._drop_our_parents()
            self._idle = self._idle or [_start_supervisor()]

    def _drop_our_parents(self) -> None:
        """Forget idle supervisors after a fork: they belong to our parent."""
        if self._owner != os.getpid():
            self._idle, self._owner = [], os.getpid()
            atexit.register(self.close)

    def give_back(self, supervisor: SupervisorHandle) -> None:
        """Return a supervisor to the pool after its command has ended."""
        with self._lock:
            if len(self._idle) < IDLE_SUPERVISORS:
                self._idle.append(supervisor)
                return
        supervisor.dismiss()

    def close(self) -> None:
        """Stop all idle supervisors."""
        with self._lock:
            idle, self._idle = self._idle, []
            if self._owner != os.getpid():
                return
        for hired in idle:
            with contextlib.suppress(PeerGone):
                hired.dismiss()


SUPERVISORS = SupervisorPool()


def has_supervisors() -> bool:
    """Whether commands have supervisors here: they need Linux."""
    return sys.platform.startswith("linux")


def open_network(order: NetworkOrder, namespaces: Sequence[int] = ()) -> tuple[list[int], list[int]]:
    """Have a supervisor's child execute a network order; returns the namespaces it created and its sockets.

    Only a single-threaded process can enter another user namespace, so this process can't do it itself.
    """
    hired = SUPERVISORS.take()
    try:
        hired.send_order(order, tuple(namespaces))
        answer: NetworkOpened | RefusalAnswer
        answer, fds = receive_message_and_fds(hired.line)
    except PeerGone:
        hired.abandon()
        raise HostError("The supervisor exited while opening a network namespace.") from None
    SUPERVISORS.give_back(hired)
    if "refused" in answer:
        raise HostError(f"Can't use a network namespace here: {answer['refused']}.")
    return fds[: answer["namespaces"]], fds[answer["namespaces"] :]


def _start_supervisor() -> SupervisorHandle:
    ours, theirs = socket.socketpair()
    try:
        process = start_python(
            "handtools.host.sandbox.processes.supervisor",
            [str(theirs.fileno()), str(os.getpid())],
            pass_fds=(theirs.fileno(),),
        )
    except OSError as error:
        ours.close()
        raise HostError(f"Can't start a supervisor for commands: {error}.") from error
    finally:
        theirs.close()
    try:
        hello, _ = receive_message_and_fds(ours)
    except PeerGone:
        ours.close()
        raise HostError(f"The supervisor for commands exited with status {process.wait()}.") from None
    return SupervisorHandle(ours, process, hello["folders"])


RUN_ID_VARIABLE = "HANDTOOLS_RUN"
"""Environment variable in every command, used to find its processes if the supervisor was killed."""


def start_order(confined: ConfinedLaunch, mark: str) -> StartOrder:
    """Return the order for a supervisor; three standard fds are sent with it, then the extra ones."""
    launch, resources, command_limits = confined.launch, confined.resources, confined.limits
    limits: dict[str, int] = {
        "RLIMIT_CORE": 0,
        "RLIMIT_NOFILE": command_limits.open_files or DEFAULT_OPEN_FILES,
    }
    if command_limits.written_bytes is not None:
        limits["RLIMIT_FSIZE"] = command_limits.written_bytes
    mounts = [*map(overlay_mount, resources.overlays), *confined.mounts]
    # Without root, mounting an overlay needs a new user namespace, unless the session's is joined.
    own_user = bool(resources.overlays) and os.geteuid() != 0
    joins_user = len(resources.namespaces) > 1
    unshare = (_CLONE_NEWNS if mounts else 0) | (_CLONE_NEWUSER if own_user and not joins_user else 0)
    return StartOrder(
        order="start",
        argv=list(confined.argv),
        env={**confined.env, RUN_ID_VARIABLE: mark},
        cwd=launch.cwd,
        fds=[0, 1, 2, *extra_fds(confined)],
        terminal=launch.terminal,
        controls_terminal=confined.controls_terminal,
        limits=limits,
        memory=command_limits.memory_bytes,
        usual_memory=default_memory_bytes(),
        processes=command_limits.processes,
        unshare=unshare,
        identity=(os.geteuid(), os.getegid()) if own_user else None,
        namespaces=resources.namespaces,
        mounts=[
            (m.source, m.target, m.kind, m.flags, m.options)
            for m in ((_PRIVATE_MOUNTS, *mounts) if mounts else ())
        ],
        mounts_left=launch.mounts_left if mounts else "",
        views=[
            (layer.view_socket, layer.mounted_at)
            for layer in resources.overlays
            if layer.view_socket is not None
        ],
        user=confined.user,
        landlock=confined.landlock,
        seccomp=confined.seccomp.hex(),
        alone=confined.alone,
        layers=[
            (layer.upper, layer.mounted_at, layer.most_bytes, layer.most_files)
            for layer in resources.overlays
        ],
        scratch=resources.session_folders.quotas if resources.session_folders else (),
        places=confined.places,
    )


def extra_fds(confined: ConfinedLaunch) -> tuple[int, ...]:
    """Return the fds of a launch other than its standard streams."""
    views = (layer.view_socket for layer in confined.resources.overlays if layer.view_socket is not None)
    return (*confined.launch.pass_fds, *confined.runner_fds, *confined.resources.namespaces, *views)
