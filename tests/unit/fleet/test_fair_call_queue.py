import asyncio

import pytest

from handtools.core.call import CancelToken
from handtools.core.errors import Busy, Cancelled, TimedOut
from handtools.fleet.fair_call_queue import FairCallQueue, TurnLimits


class Work:
    """Calls that hold their turns until they are let go."""

    def __init__(self, **limits: int) -> None:
        self.turns = FairCallQueue(TurnLimits(**limits))
        self.begun: list[str] = []
        self._doors: dict[str, asyncio.Event] = {}

    def start(
        self, tenant: str, *, seconds: float | None = None, cancel: CancelToken | None = None
    ) -> "asyncio.Task[None]":
        name = f"{tenant}{sum(each[0] == tenant for each in self._doors) + 1}"
        door = self._doors[name] = asyncio.Event()

        async def run() -> None:
            async with self.turns.hold_turn(tenant, "w", seconds, cancel or CancelToken()):
                self.begun.append(name)
                await door.wait()

        return asyncio.create_task(run())

    async def end(self, name: str) -> None:
        self._doors[name].set()
        await rest()


async def rest() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_tenants_get_turns_in_rotation_however_many_calls_one_has() -> None:
    work = Work(running=1)
    tasks = [work.start(tenant) for tenant in ("a", "a", "a", "b", "c")]
    await rest()
    for _ in range(5):
        await work.end(work.begun[-1])
    await asyncio.gather(*tasks)
    assert work.begun == ["a1", "a2", "b1", "c1", "a3"]
    assert (work.turns.running, work.turns.waiting) == (0, 0)


async def test_who_finds_the_queue_full_is_told_at_once() -> None:
    work = Work(running=1, waiting=2)
    tasks = [work.start("a") for _ in range(3)]
    await rest()
    with pytest.raises(Busy, match="2 calls are already waiting"):
        await work.start("b")
    assert work.turns.shed == 1
    for name in ("a1", "a2", "a3"):
        await work.end(name)
    await asyncio.gather(*tasks)


async def test_a_tenant_at_its_limit_waits_while_others_run() -> None:
    work = Work(running=3, tenant_running=1)
    tasks = [work.start(tenant) for tenant in ("a", "a", "b")]
    await rest()
    assert work.begun == ["a1", "b1"]
    await work.end("a1")
    assert work.begun == ["a1", "b1", "a2"]
    for name in ("a2", "b1"):
        await work.end(name)
    await asyncio.gather(*tasks)


async def test_a_call_that_gives_up_while_it_waits_costs_nobody_a_turn() -> None:
    work = Work(running=1)
    first = work.start("a")
    await rest()
    token = CancelToken()
    late, stopped, dropped, last = (
        work.start("a", seconds=0.01),
        work.start("a", cancel=token),
        work.start("a"),
        work.start("a"),
    )
    await rest()
    token.cancel()
    dropped.cancel()
    with pytest.raises(TimedOut):
        await late
    with pytest.raises(Cancelled):
        await stopped
    await work.end("a1")
    await first
    assert work.begun == ["a1", "a5"]
    await work.end("a5")
    await last
    assert (work.turns.running, work.turns.waiting) == (0, 0)
