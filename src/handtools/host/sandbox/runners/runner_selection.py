"""Picks the strongest runner that works here, and says why not a stronger one. The weakest confines nothing."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handtools.core.errors import HostError
from handtools.host.sandbox.launch import Launch, Runner
from handtools.host.sandbox.runners.bubblewrap import BubblewrapRunner
from handtools.host.sandbox.runners.container import ContainerRunner
from handtools.host.sandbox.runners.landlock import LandlockRunner


class PlainRunner:
    """The command runs as the user, with everything the user may do."""

    name = "plain"
    boundary = "No boundary: a command can do whatever this user can. It is ended completely, and limited."
    confined = False

    def unavailable_reason(self) -> str:
        """It works everywhere that processes do."""
        return ""

    def confine(self, launch: Launch) -> Launch:
        """As it is."""
        return launch


@dataclass(frozen=True, slots=True)
class SkippedRunner:
    """A runner that was not taken, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunnerChoice:
    """The runner that was taken, and the stronger ones that were not."""

    runner: Runner
    passed: tuple[SkippedRunner, ...] = ()

    @property
    def reason(self) -> str:
        """In one line, for a person."""
        if not self.passed:
            return f"{self.runner.name}: the strongest there is."
        skipped = " ".join(f"Not {each.name}: {each.reason}" for each in self.passed)
        return f"{self.runner.name}: the strongest that works here. {skipped}"


def runners_by_strength(root: str | os.PathLike[str] = "") -> tuple[Runner, ...]:
    """Every runner that shows this machine's own programs, strongest first; none of those in the workspace."""
    return (BubblewrapRunner(root), LandlockRunner(root), PlainRunner())


def runner_named(name: str, root: str | os.PathLike[str] = "") -> Runner:
    """A runner by name. A container is taken only so: it has other programs; `container:IMAGE` says which."""
    kind, _, image = name.partition(":")
    if kind == ContainerRunner.name:
        return ContainerRunner(image=image)
    for runner in runners_by_strength(root):
        if runner.name == name:
            return runner
    known = ", ".join([*(runner.name for runner in runners_by_strength()), ContainerRunner.name])
    raise HostError(f"There is no runner called {name}; there are {known}.")


def choose_runner(
    runners: Sequence[Runner] | None = None, *, wanted: str = "", root: str | os.PathLike[str] = ""
) -> RunnerChoice:
    """The first that works; a wanted one is taken or refused, never replaced by a weaker one."""
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
    """The confined launch; descriptors that the runner made for it are closed afterwards."""
    ready = runner.confine(launch)
    try:
        yield ready
    finally:
        for fd in {*ready.pass_fds, ready.landlock} - {*launch.pass_fds, launch.landlock}:
            if fd is not None:
                os.close(fd)
