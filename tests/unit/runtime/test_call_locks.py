"""Turns by key."""

import anyio
from anyio.lowlevel import checkpoint

from handtools.runtime.call_locks import CallLocks


async def settle_down():
    for _ in range(10):
        await checkpoint()


class Log:
    def __init__(self):
        self.scheduler = CallLocks()
        self.running = []
        self.ended = []
        self.gates = {}

    async def hold(self, name, keys, *, exclusive):
        self.gates[name] = anyio.Event()
        async with self.scheduler.turn(keys, exclusive=exclusive):
            self.running.append(name)
            await self.gates[name].wait()
            self.running.remove(name)
            self.ended.append(name)


async def test_reads_run_together_and_a_write_waits_for_them_and_for_its_turn():
    log = Log()
    async with anyio.create_task_group() as group:
        for name, exclusive in (("r1", False), ("r2", False), ("w", True), ("r3", False)):
            group.start_soon(lambda n=name, e=exclusive: log.hold(n, ["a"], exclusive=e))
            await settle_down()
        assert log.running == ["r1", "r2"]
        log.gates["r1"].set()
        log.gates["r2"].set()
        await settle_down()
        assert log.running == ["w"]
        log.gates["w"].set()
        await settle_down()
        assert log.running == ["r3"]
        log.gates["r3"].set()


async def test_writes_of_other_paths_do_not_wait():
    log = Log()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: log.hold("w1", ["a"], exclusive=True))
        group.start_soon(lambda: log.hold("w2", ["b"], exclusive=True))
        await settle_down()
        assert sorted(log.running) == ["w1", "w2"]
        for gate in log.gates.values():
            gate.set()


async def test_crossing_sets_of_keys_never_deadlock():
    scheduler = CallLocks()
    done = []

    async def work(index):
        keys = ["a", "b", "c"][index % 3 :] + ["a", "b", "c"][: index % 3]
        async with scheduler.turn(keys[:2], exclusive=True):
            await checkpoint()
            done.append(index)

    with anyio.fail_after(60):
        async with anyio.create_task_group() as group:
            for index in range(60):
                group.start_soon(work, index)
    assert len(done) == 60


async def test_a_waiter_that_gives_up_lets_the_next_one_pass():
    log = Log()
    async with anyio.create_task_group() as group:
        group.start_soon(lambda: log.hold("r1", ["a"], exclusive=False))
        await settle_down()
        with anyio.move_on_after(0.01):
            await log.hold("w", ["a"], exclusive=True)
        group.start_soon(lambda: log.hold("r2", ["a"], exclusive=False))
        await settle_down()
        assert log.running == ["r1", "r2"]
        log.gates["r1"].set()
        log.gates["r2"].set()
