"""The pool: how many servers there are, for how long, and what comes of one that ends."""

import time
from dataclasses import dataclass, field

import pytest

from handtools.host.language.server_pool import RESTART_DELAYS, ServerNotReady, ServerPool
from handtools.host.language.server_process import ServerLost

pytestmark = pytest.mark.anyio


@dataclass
class Process:
    size: int = 100

    def memory_bytes(self):
        return self.size


@dataclass
class Running:
    """What the pool sees of a server."""

    process: Process = field(default_factory=Process)
    alive: bool = True
    fault: str = ""

    async def stop(self, why="it was stopped"):
        self.alive = False


async def started(pool, name, *, owner="me"):
    async def start():
        return Running()

    slot = pool.slot((name,), name, start, owner)
    await pool.client(slot, time.monotonic() + 60)
    return slot


def running(pool):
    return [slot.name for slot in pool.slots.values() if slot.client is not None and slot.client.alive]


async def test_there_are_never_more_than_so_many_and_the_oldest_goes():
    pool = ServerPool(most=2)
    for name in ("a", "b", "c"):
        await started(pool, name)
    assert running(pool) == ["b", "c"]
    await pool.close()
    assert running(pool) == []


async def test_what_is_lost_to_the_end_is_not_started_again():
    pool = ServerPool()
    slot = await started(pool, "a")
    await pool.close()
    with pytest.raises(ServerNotReady, match="it was stopped"):
        await pool.client(slot, time.monotonic() + 60)
    assert slot.client is None


async def test_what_is_idle_is_ended():
    pool = ServerPool(idle_seconds=60.0)
    old, _ = await started(pool, "old"), await started(pool, "new")
    old.used -= 61
    await pool.tidy()
    assert running(pool) == ["new"]
    await pool.close()


async def test_too_much_memory_ends_what_was_used_longest_ago_until_it_fits():
    pool = ServerPool(memory_bytes=250)
    for name in ("a", "b", "c"):
        await started(pool, name)
    await pool.tidy()
    assert running(pool) == ["b", "c"]
    await pool.close()


async def test_a_server_is_kept_until_its_last_owner_lets_go():
    pool = ServerPool()
    await started(pool, "a", owner="me")
    await started(pool, "a", owner="you")
    await pool.release_owner("me")
    assert running(pool) == ["a"]
    await pool.release_owner("you")
    assert running(pool) == []
    assert pool.slots == {}
    await pool.close()


async def test_one_that_does_not_start_is_tried_again_later_each_time_and_then_parked():
    pool = ServerPool()
    tries = []

    async def start():
        tries.append(1)
        raise ServerLost("no such program")

    slot = pool.slot(("bad",), "bad", start, "me")
    pauses = []
    for _ in range(len(RESTART_DELAYS) + 1):
        slot.again_at = 0.0
        with pytest.raises(ServerNotReady, match="no such program"):
            await pool.client(slot, time.monotonic() + 60)
        pauses.append(round(slot.again_at - time.monotonic()))
    assert pauses == [0, 1, 4, 300]
    assert len(tries) == 4
    with pytest.raises(ServerNotReady, match="disabled for some minutes"):
        await pool.client(slot, time.monotonic() + 60)
    assert len(tries) == 4
    await pool.close()


async def test_one_that_ended_is_started_again_at_once():
    pool = ServerPool()
    slot = await started(pool, "a")
    slot.client.alive, slot.client.fault = False, "it exited"
    again = await pool.client(slot, time.monotonic() + 60)
    assert again.alive
    await pool.close()
