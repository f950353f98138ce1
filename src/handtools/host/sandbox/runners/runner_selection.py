"""Choose the strongest runner that works on this machine, and report why stronger ones were skipped."""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from handtools.core.commands import CommandNetwork
from handtools.core.errors import HostError
from handtools.host.sandbox.launch import NO_RESOURCES, ConfinedLaunch, Launch, LaunchResources, Runner
from handtools.host.sandbox.processes import supervisor_client
from handtools.host.sandbox.runners.bubblewrap import BubblewrapRunner
from handtools.host.sandbox.runners.container import ContainerRunner
from handtools.host.sandbox.runners.landlock import LandlockRunner
from handtools.host.sandbox.runners.seatbelt import SeatbeltRunner


class UnconfinedRunner:
    """The runner without a sandbox: commands have all of the user's permissions."""

    name = "plain"
    confined = False
    keeps_scratch = False
    can_mount_overlay = True
    session_network_modes: frozenset[CommandNetwork] = frozenset({"listed"})

    @property
    def boundary(self) -> str:
        """Describe that there is no boundary, and how commands are killed."""
        ends = "All its processes are killed at its end, and its resources are limited."
        if not supervisor_client.has_supervisors():
            ends = "Its process group is killed at its end."
        return f"No sandbox: a command can do everything this user can do. {ends}"

    def unavailable_reason(self) -> str:
        """Return "": unconfined commands work on every machine."""
        return ""

    def confine(self, launch: Launch, resources: LaunchResources = NO_RESOURCES) -> ConfinedLaunch:
        """Return the launch as it is."""
        return ConfinedLaunch(
            launch=launch, resources=resources, argv=launch.argv, env=launch.env, limits=launch.limits
        )


@dataclass(frozen=True, slots=True)
class SkippedRunner:
    """A runner that was not chosen, and the reason."""

    name: str
    reason: str


@dataclass(frozen=True, slots=True)
class RunnerChoice:
    """The chosen runner, and the stronger ones that were skipped."""

    runner: Runner
    skipped_runners: tuple[SkippedRunner, ...] = ()

    @property
    def reason(self) -> str:
        """One line for the user about the chosen runner and why stronger ones were skipped."""
        if not self.skipped_runners:
            return f"{self.runner.name}: the strongest runner."
        skipped = " ".join(f"Not {each.name}: {each.reason}" for each in self.skipped_runners)
        return f"{self.runner.name}: the strongest runner that works here. {skipped}"


def runners_by_strength(root: str | os.PathLike[str] = "") -> tuple[Runner, ...]:
    """Return the runners to try on this machine, strongest first; they use no programs in the workspace."""
    if not supervisor_client.has_supervisors():
        others = (SeatbeltRunner(root),) if sys.platform == "darwin" else ()
        return (ContainerRunner(), *others, UnconfinedRunner())
    return (BubblewrapRunner(root), LandlockRunner(root), UnconfinedRunner())


def runner_named(name: str, root: str | os.PathLike[str] = "") -> Runner:
    """Return a runner by name. On Linux, containers must be named: `container` or `container:IMAGE`."""
    kind, _, image = name.partition(":")
    if kind == ContainerRunner.name:
        return ContainerRunner(image=image)
    for runner in runners_by_strength(root):
        if runner.name == name:
            return runner
    known = dict.fromkeys([*(runner.name for runner in runners_by_strength()), ContainerRunner.name])
    raise HostError(f"There is no runner called {name}. Available: {', '.join(known)}.")


def choose_runner(
    runners: Sequence[Runner] | None = None, *, wanted: str = "", root: str | os.PathLike[str] = ""
) -> RunnerChoice:
    """Return the first runner that works; a `wanted` runner is never replaced by a weaker one."""
    if runners is None:
        runners_tried: Sequence[Runner] = (
            (runner_named(wanted, root),) if wanted else runners_by_strength(root)
        )
    else:
        runners_tried = [runner for runner in runners if wanted in {"", runner.name}]
        if not runners_tried:
            raise HostError(f"There is no runner called {wanted}.")
    skipped_runners: list[SkippedRunner] = []
    for runner in runners_tried:
        problem = runner.unavailable_reason()
        if not problem:
            return RunnerChoice(runner, tuple(skipped_runners))
        skipped_runners.append(SkippedRunner(runner.name, problem))
    raise HostError(" ".join(f"{each.name}: {each.reason}" for each in skipped_runners))
