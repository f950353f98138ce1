"""Move the workspaces of a host to other hosts while clients keep using them.

Each workspace is stored, closed, assigned to another host and recovered there. A call that the old host
receives after that is not run; the client gets the name of the new host.
"""

import asyncio
import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from handtools.core.errors import Busy, HandtoolsError, UsageError
from handtools.fleet.host_status import HostedWorkspace
from handtools.fleet.ray_fleet import Fleet
from handtools.fleet.workspace_slots import WorkspaceMoved

MAX_ROUNDS = 20
MAX_MOVES_AT_ONCE = 8


@dataclass(frozen=True, slots=True)
class WorkspaceMove:
    """The move of a workspace from one host to another."""

    workspace: str
    source: str
    target: str
    problem: str = ""
    """Why the workspace could not be moved; empty if it was moved."""


async def drain_host(
    fleet: Fleet,
    host: str,
    *,
    job_seconds: float = 60.0,
    on_move: Callable[[WorkspaceMove], None] = lambda _: None,
) -> list[WorkspaceMove]:
    """Stop a host from accepting new workspaces and move the ones it has. Forks stay with their parents.

    A running background job has `job_seconds` to finish before it is killed. Raises `UsageError` before
    moving anything if the fleet stores no logs or has no other host, and `Busy` if the other hosts have too
    few free slots.
    """
    if host not in fleet.hosts:
        raise UsageError(f"Fleet {fleet.name!r} has no host {host!r}. It has: {', '.join(fleet.hosts)}.")
    source = fleet.client_by_host_name(host)
    if not (await source.status()).has_log:
        raise UsageError(
            f"Fleet {fleet.name!r} stores no logs. Start it with a `log_url` to move workspaces."
        )
    room = await _free_slots_by_host(fleet, host)
    await source.request("drain", {})
    moves: list[WorkspaceMove] = []
    failed: set[str] = set()
    turns = asyncio.Semaphore(MAX_MOVES_AT_ONCE)

    async def move(name: str, target: str) -> None:
        async with turns:
            done = await _move_workspace(fleet, host, target, name, job_seconds)
        if done.problem:
            failed.add(name)
        moves.append(done)
        on_move(done)

    for _ in range(MAX_ROUNDS):
        # A request may have recovered another workspace from its log onto this host in the meantime.
        found = [each for each in await source.list_workspaces() if each.name not in failed]
        if not found:
            break
        await asyncio.gather(
            *(move(name, target) for name, target in _target_host_by_workspace(found, room).items())
        )
    return moves


def _target_host_by_workspace(
    hosted_workspaces: Sequence[HostedWorkspace], room: dict[str, int]
) -> dict[str, str]:
    """Choose a target host for each workspace: the one with the most free slots for it and all its forks."""
    planned: dict[str, str] = {}
    for family in _fork_families(hosted_workspaces):
        target = max(room, key=lambda name: room[name])
        if room[target] < len(family):
            raise Busy(
                f"No other host has {len(family)} free slots for {family[0]} and its forks.",
                hint="Start another host, or remove workspaces.",
            )
        room[target] -= len(family)
        planned |= dict.fromkeys(family, target)
    return planned


async def _move_workspace(
    fleet: Fleet, host: str, target: str, name: str, job_seconds: float
) -> WorkspaceMove:
    try:
        asked = {"moved": name, "to": target, "job_seconds": job_seconds}
        with contextlib.suppress(WorkspaceMoved):  # raised for a request repeated after a lost response
            await fleet.client_by_host_name(host).request("hand_over", asked)
        await fleet.client_by_host_name(target).request("adopt", {"moved": name})
    except HandtoolsError as problem:
        return WorkspaceMove(name, host, target, str(problem))
    return WorkspaceMove(name, host, target)


async def _free_slots_by_host(fleet: Fleet, host: str) -> dict[str, int]:
    room: dict[str, int] = {}
    for name, client in list(fleet.hosts.items()):
        if name != host and not (now := await client.status()).draining:
            room[name] = now.slots - now.workspaces
    if not room:
        raise UsageError(
            f"There is no other host for the workspaces of {host}. Next: start one with `Fleet.start`, or "
            "restart the host without draining it; calls wait until it is back"
        )
    return room


def _fork_families(hosted_workspaces: Sequence[HostedWorkspace]) -> list[list[str]]:
    """Group workspaces with their forks, which can be merged only on the same host. Each root comes first."""
    parents = {each.name: each.parent for each in hosted_workspaces}
    families: dict[str, list[str]] = {}
    for name in parents:
        eldest = name
        while parents.get(eldest) in parents:
            eldest = parents[eldest]
        families.setdefault(eldest, []).append(name)
    return [sorted(members, key=lambda name: name != eldest) for eldest, members in families.items()]
