"""Choose the strongest runner that works on this machine, and say why stronger ones were skipped."""

import contextlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handtools.core.commands import CommandNetwork
from handtools.core.errors import HostError
from handtools.host.sandbox.launch import Launch, Runner
from handtools.host.sandbox.processes import supervisor_client
from handtools.host.sandbox.runners.bubblewrap import BubblewrapRunner
from handtools.host.sandbox.runners.container import ContainerRunner
from handtools.host.sandbox.runners.landlock import LandlockRunner
from handtools.host.sandbox.runners.seatbelt import SeatbeltRunner


class UnconfinedRunner:
    """The runner that confines nothing: commands have all rights of the user."""

    name = "plain"
    confined = False
    keeps_scratch = False
    can_mount_overlay = True
    session_network_modes: frozenset[CommandNetwork] = frozenset({"listed"})

    @property
    def boundary(self) -> str:
        """That there is none, and how a command ends."""
        ends = "It is ended completely, and limited."
        if not supervisor_client.has_supervisors():
            ends = "Its process group is ended with it."
        return f"No boundary: a command can do whatever this user can. {ends}"

    def unavailable_reason(self) -> str:
        """Always empty: running commands unconfined works on every machine."""
        return ""

    def confine(self, launch: Launch) -> Launch:
        """Return the launch unchanged."""
        return launch


@dataclass(frozen=True, slots=True)
class SkippedRunner:
    """A runner that was not chosen, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunnerChoice:
    """The chosen runner, and the stronger ones that were skipped."""

    runner: Runner
    passed: tuple[SkippedRunner, ...] = ()

    @property
    def reason(self) -> str:
        """One line for the user about the chosen runner and why stronger ones were skipped."""
        if not self.passed:
            return f"{self.runner.name}: the strongest there is."
        skipped = " ".join(f"Not {each.name}: {each.reason}" for each in self.passed)
        return f"{self.runner.name}: the strongest that works here. {skipped}"


def runners_by_strength(root: str | os.PathLike[str] = "") -> tuple[Runner, ...]:
    """All runners that use this machine's own programs, strongest first; no helper is taken from the workspace."""
    if not supervisor_client.has_supervisors():
        others = (SeatbeltRunner(root),) if sys.platform == "darwin" else ()
        return (ContainerRunner(), *others, UnconfinedRunner())
    return (BubblewrapRunner(root), LandlockRunner(root), UnconfinedRunner())


def runner_named(name: str, root: str | os.PathLike[str] = "") -> Runner:
    """A runner by its name. Containers are used only when named, as `container` or `container:IMAGE`."""
    kind, _, image = name.partition(":")
    if kind == ContainerRunner.name:
        return ContainerRunner(image=image)
    for runner in runners_by_strength(root):
        if runner.name == name:
            return runner
    known = dict.fromkeys([*(runner.name for runner in runners_by_strength()), ContainerRunner.name])
    raise HostError(f"There is no runner called {name}; there are {', '.join(known)}.")


def choose_runner(
    runners: Sequence[Runner] | None = None, *, wanted: str = "", root: str | os.PathLike[str] = ""
) -> RunnerChoice:
    """The first runner that works. A `wanted` one is used or refused, never replaced by a weaker one."""
    if runners is None:
        rungs: Sequence[Runner] = (runner_named(wanted, root),) if wanted else runners_by_strength(root)
    else:
        rungs = [runner for runner in runners if wanted in {"", runner.name}]
        if not rungs:
            raise HostError(f"There is no runner called {wanted}.")
    passed: list[SkippedRunner] = []
    for runner in rungs:
        problem = runner.unavailable_reason()
        if not problem:
            return RunnerChoice(runner, tuple(passed))
        passed.append(SkippedRunner(runner.name, problem))
    raise HostError(" ".join(f"{each.name}: {each.reason}" for each in passed))


@contextlib.contextmanager
def confined_launch(runner: Runner, launch: Launch) -> Iterator[Launch]:
    """Context manager: the confined launch; what the runner opened for it is closed afterwards."""
    ready = runner.confine(launch)
    try:
        yield ready
    finally:
        if ready.private_file_alarm is not None:
            ready.private_file_alarm.close()
        for fd in {*ready.pass_fds, ready.landlock} - {*launch.pass_fds, launch.landlock}:
            if fd is not None:
                os.close(fd)
