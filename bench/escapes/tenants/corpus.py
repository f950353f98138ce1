"""Every attempt of the corpus across two tenants of one host: how many got something of the other's."""

import argparse
import asyncio
import sys
import time
from collections.abc import Iterator

from bench.escapes.host.attempts import attempt, known
from bench.escapes.scripts import Script, below
from bench.escapes.tenants.requests import requested
from bench.escapes.tenants.tenant_place import new_tenant_place
from bench.escapes.tenants.two_tenants import two_tenants
from bench.figures import Figure

FAMILY = "tenants"
OWN = "tenants/attempts"
ROUNDS = ("attempts", "heldout_first", "heldout_second")
OF_THE_SYSTEM = frozenset({"path/lock"})
"""What succeeds on files of the system that every command may read, such as a lock; no tenant's things."""
QUICK_STEP = 24
QUICK_HOST_SIDE = (
    "links/link_out_of_the_workspace",
    "links/link_made_by_a_command",
    "git/bare_at_the_root",
)
QUICK_SECONDS = 12.0
"""In CI no attempt is begun after so long."""


def figures(options: argparse.Namespace) -> Iterator[Figure]:
    """One row for scripts, one for requests; the goal is that none got through."""
    chosen = scripts()
    if options.quick:
        chosen = [*below(OWN)[::3], *chosen[::QUICK_STEP]]
    if not options.attack:
        yield from asyncio.run(_figures(chosen, options))
    yield _host_side(options)


def _host_side(options: argparse.Namespace) -> Figure:
    """The attacks on what our own process does, in a workspace of layers beside the other tenant's."""
    through: dict[str, list[str]] = {}
    deadline = time.monotonic() + QUICK_SECONDS / 2
    for each in known():
        if options.attack and not any(each.title.startswith(word) for word in options.attack):
            continue
        if options.quick and (each.title not in QUICK_HOST_SIDE or time.monotonic() > deadline):
            continue
        through[each.title] = attempt(each.attack, new_tenant_place)
        _tell(each.title, through[each.title], options)
    return _figure("attacks on the host side", through)


def scripts() -> list[Script]:
    """Those about tenants, then the corpus; without those about a person's terminal, as a host has none."""
    return [each for folder in (OWN, *ROUNDS) for each in below(folder) if not each.terminal]


async def _figures(chosen: list[Script], options: argparse.Namespace) -> list[Figure]:
    async with two_tenants() as both:
        told = [_figure("requests", {name: found async for name, found in requested(both)})]
        deadline = time.monotonic() + QUICK_SECONDS
        through: dict[str, list[str]] = {}
        for script in chosen:
            if options.quick and time.monotonic() > deadline:
                break
            through[script.title] = await both.attempt(script)
            if options.told:
                print(
                    f"tenants: {script.title:<36} {'; '.join(through[script.title]) or 'stopped'}",
                    file=sys.stderr,
                )
        of_the_system = {title: through.pop(title) for title in OF_THE_SYSTEM & through.keys()}
        told.append(_figure("scripts", through))
        if of_the_system:
            got, name = sum(map(bool, of_the_system.values())), ", ".join(sorted(of_the_system))
            told.append(
                Figure(name=f"tenants: got through to the system, known: {name}", value=got, unit="")
            )
    return told


def _tell(title: str, verdicts: list[str], options: argparse.Namespace) -> None:
    if options.told:
        print(f"tenants: {title:<56} {'; '.join(verdicts) or 'stopped'}", file=sys.stderr, flush=True)


def _figure(kind: str, through: dict[str, list[str]]) -> Figure:
    for title, verdicts in through.items():
        if verdicts:
            print(f"tenants: {title} got through: {'; '.join(verdicts)}", file=sys.stderr)
    got = sum(map(bool, through.values()))
    return Figure(
        name=f"tenants: {kind} that got something of another's, of {len(through)}",
        value=got,
        unit="",
        goal=0,
    )
