"""Move the workspaces of a host to others while their callers go on. ADR 255.

Each is stored, closed, noted as another host's, and put together there. A call that came in between was not run,
and is told where to ask.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from handtools.core.errors import Busy, HandtoolsError, UsageError
from handtools.fleet.host_status import HostedWorkspace
from handtools.fleet.ray_fleet import Fleet
from handtools.fleet.workspace_slots import WorkspaceMoved

MOST_ROUNDS = 20
MOST_MOVES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class WorkspaceMove:
    """A workspace that went from one host to another."""

    workspace: str
    source: str
    target: str
    problem: str = ""
    """Why it stays where it was; empty when it went."""


async def drain_host(
    fleet: Fleet,
    host: str,
    *,
    job_seconds: float = 60.0,
    on_move: Callable[[WorkspaceMove], None] = lambda _: None,
) -> list[WorkspaceMove]:
    """Let a host take no new workspaces, and hand over those that it has; forks stay with their parents.

    A job that runs in one is waited for `job_seconds`, and ended then. Raises `UsageError` before anything is
    moved when the fleet stores no logs or has no other host, `Busy` when the others have no room.
    """
    if host not in fleet.hosts:
        raise UsageError(f"The fleet {fleet.name!r} has no host {host!r}: it has {', '.join(fleet.hosts)}.")
    source = fleet.client(host)
    if not (await source.status()).has_log:
        raise UsageError(
            f"The fleet {fleet.name!r} stores no logs: start it with a `log_url` to move workspaces."
        )
    room = await _free_slots(fleet, host)
    await source.ask("drain", {})
    moves: list[WorkspaceMove] = []
    failed: set[str] = set()
    turns = asyncio.Semaphore(MOST_MOVES_AT_ONCE)

    async def move(name: str, target: str) -> None:
        async with turns:
            done = await _moved(fleet, host, target, name, job_seconds)
        if done.problem:
            failed.add(name)
        moves.append(done)
        on_move(done)

    for _ in range(MOST_ROUNDS):
        # One that was only in its log may have been asked for meanwhile, and is here then.
        found = [each for each in await source.workspaces() if each.name not in failed]
        if not found:
            break
        await asyncio.gather(*(move(name, target) for name, target in _planned(found, room).items()))
    return moves


def _planned(found: Sequence[HostedWorkspace], room: dict[str, int]) -> dict[str, str]:
    """The target of each workspace: families stay together, the host with the most room first."""
    planned: dict[str, str] = {}
    for family in _families(found):
        target = max(room, key=lambda name: room[name])
        if room[target] < len(family):
            raise Busy(
                f"The other hosts have no room for the {len(family)} workspaces of {family[0]}.",
                hint="Start another host, or remove workspaces.",
            )
        room[target] -= len(family)
        planned |= dict.fromkeys(family, target)
    return planned


async def _moved(fleet: Fleet, host: str, target: str, name: str, job_seconds: float) -> WorkspaceMove:
    try:
        asked = {"moved": name, "to": target, "job_seconds": job_seconds}
        with contextlib.suppress(WorkspaceMoved):  # asked twice, since the first answer was lost
            await fleet.client(host).ask("hand_over", asked)
        await fleet.client(target).ask("adopt", {"moved": name})
    except HandtoolsError as problem:
        return WorkspaceMove(name, host, target, str(problem))
    return WorkspaceMove(name, host, target)


async def _free_slots(fleet: Fleet, host: str) -> dict[str, int]:
    room: dict[str, int] = {}
    for name, client in list(fleet.hosts.items()):
        if name != host and not (now := await client.status()).draining:
            room[name] = now.slots - now.workspaces
    if not room:
        raise UsageError(
            f"There is no other host for the workspaces of {host}. Next: start one with `Fleet.start`, or restart "
            "the host as it is, with calls that wait meanwhile"
        )
    return room


def _families(found: Sequence[HostedWorkspace]) -> list[list[str]]:
    """Workspaces with their forks, which can only be merged on one host; the eldest of each first."""
    parents = {each.name: each.parent for each in found}
    families: dict[str, list[str]] = {}
    for name in parents:
        eldest = name
        while parents.get(eldest) in parents:
            eldest = parents[eldest]
        families.setdefault(eldest, []).append(name)
    return [sorted(members, key=lambda name: name != eldest) for eldest, members in families.items()]
