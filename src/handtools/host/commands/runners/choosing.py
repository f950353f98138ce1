"""Choosing: the strongest runner that works here, and why not a stronger one."""

import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from handtools.core.errors import HostError
from handtools.host.commands.launching import Launch, Runner
from handtools.host.commands.runners.bubblewrap import BubblewrapRunner
from handtools.host.commands.runners.container import ContainerRunner
from handtools.host.commands.runners.landlock import LandlockRunner
from handtools.host.commands.runners.plain import PlainRunner


@dataclass(frozen=True, slots=True)
class Passed:
    """A runner that was not taken, and why."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class Choice:
    """The runner that was taken, and the stronger ones that were not."""

    runner: Runner
    passed: tuple[Passed, ...] = ()

    @property
    def reason(self) -> str:
        """In one line, for a person."""
        if not self.passed:
            return f"{self.runner.name}: the strongest there is."
        skipped = " ".join(f"Not {each.name}: {each.reason}" for each in self.passed)
        return f"{self.runner.name}: the strongest that works here. {skipped}"


def ladder(root: str | os.PathLike[str] = "") -> tuple[Runner, ...]:
    """Every runner that shows this machine's own programs, strongest first; none of those in the workspace."""
    return (BubblewrapRunner(root), LandlockRunner(root), PlainRunner())


def named(name: str, root: str | os.PathLike[str] = "") -> Runner:
    """A runner by name. A container is taken only so: it has other programs; `container:IMAGE` says which."""
    kind, _, image = name.partition(":")
    if kind == ContainerRunner.name:
        return ContainerRunner(image=image)
    for runner in ladder(root):
        if runner.name == name:
            return runner
    known = ", ".join([*(runner.name for runner in ladder()), ContainerRunner.name])
    raise HostError(f"There is no runner called {name}; there are {known}.")


def choose(
    runners: Sequence[Runner] | None = None, *, wanted: str = "", root: str | os.PathLike[str] = ""
) -> Choice:
    """The first that works; a wanted one is taken or refused, never replaced by a weaker one."""
    if runners is None:
        rungs: Sequence[Runner] = (named(wanted, root),) if wanted else ladder(root)
    else:
        rungs = [runner for runner in runners if wanted in {"", runner.name}]
        if not rungs:
            raise HostError(f"There is no runner called {wanted}.")
    passed: list[Passed] = []
    for runner in rungs:
        problem = runner.available()
        if not problem:
            return Choice(runner, tuple(passed))
        passed.append(Passed(runner.name, problem))
    raise HostError(" ".join(f"{each.name}: {each.reason}" for each in passed))


@contextlib.contextmanager
def confining(runner: Runner, launch: Launch) -> Iterator[Launch]:
    """The confined launch; descriptors that the runner made for it are closed afterwards."""
    ready = runner.confine(launch)
    try:
        yield ready
    finally:
        for fd in {*ready.pass_fds, ready.landlock} - {*launch.pass_fds, launch.landlock}:
            if fd is not None:
                os.close(fd)
