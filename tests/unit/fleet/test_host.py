import asyncio
import os
import threading
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from handtools.core.call import Call
from handtools.core.errors import Busy, HostError, NotFound, Stale, UsageError
from handtools.core.events import Event, Progressed
from handtools.fleet.fair_call_queue import TurnLimits
from handtools.fleet.fleet_toolbox import FleetToolbox
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.host_client import HostClient
from handtools.fleet.host_server import HostServer
from handtools.fleet.workspace_slots import HostLimits
from handtools.fleet.workspaces import WorkspaceStore
from handtools.runtime.policy import Policy

TOKENS = {"all": "", "red-token": "red", "blue-token": "blue"}
WAITING = "echo begun; sleep 600"


class Served:
    """A host with its server, and clients of it."""

    def __init__(self, host: WorkspaceHost, server: HostServer, template: str) -> None:
        self.host, self.server, self.template = host, server, template

    def client(self, token: str = "all") -> HostClient:
        return HostClient(self.server.address, token)

    async def box(self, client: HostClient | None = None) -> FleetToolbox:
        client = client or self.client()
        return FleetToolbox(client, await client.create(self.template))


@asynccontextmanager
async def served(store: WorkspaceStore, **limits: Any) -> AsyncIterator[Served]:
    host = WorkspaceHost(store, limits=HostLimits(**limits), policy=Policy(defaults={"run": "allow"}))
    server = HostServer(host, TOKENS)
    await server.start(f"unix:{store.folder}/socket")
    try:
        yield Served(host, server, store.templates.digests()[0])
    finally:
        await server.aclose()
        await host.aclose()


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def begun() -> tuple[Callable[[Event], None], threading.Event]:
    """A listener, and an event that is set when a command has printed something."""
    seen = threading.Event()

    def listen(event: Event) -> None:
        if isinstance(event, Progressed):
            seen.set()

    return listen, seen


async def started(box: FleetToolbox, call: Call) -> "asyncio.Task[Any]":
    """A call of a command that has begun to run."""
    listener, seen = begun()
    task = asyncio.create_task(box.call(call, listener=listener))
    assert await asyncio.to_thread(seen.wait, 60)
    return task


@pytest.mark.linux("bubblewrap", "supervisors")
async def test_a_fleet_toolbox_does_what_a_toolbox_does(files: WorkspaceStore) -> None:
    async with served(files) as fleet, await fleet.box() as box:
        root = files.files_folder(box.workspace_name)
        edited = await box.call(
            "edit", {"path": "a.txt", "old_string": "line 3\n", "new_string": "three\n"}
        )
        assert (edited.status, [each.path for each in edited.changes.touched]) == ("ok", ["a.txt"])
        ran = await box.call("bash", {"command": "grep -n three a.txt | tee found.txt"})
        assert "4:three" in ran.text
        assert (root / "found.txt").read_text() == "4:three\n"
        missing = await box.call("read", {"path": "nothing.txt"})
        assert missing.fault.code == "not_found"
        async with fleet.host.use_toolbox(box.workspace_name) as direct:
            assert box.definitions() == direct.definitions()
        await box.call("undo", {})
        assert not (root / "found.txt").exists()


@pytest.mark.linux("bubblewrap", "supervisors")
async def test_the_same_id_again_gets_the_recorded_result(files: WorkspaceStore) -> None:
    async with served(files) as fleet, await fleet.box() as box:
        call = Call(tool="bash", args={"command": "echo once >> log.txt"})
        await box.call(call)
        await box.call(call)
        assert (files.files_folder(box.workspace_name) / "log.txt").read_text() == "once\n"


@pytest.mark.linux("bubblewrap", "supervisors")
async def test_a_call_whose_connection_is_lost_runs_once_and_its_result_arrives(
    files: WorkspaceStore,
) -> None:
    async with served(files) as fleet, await fleet.box() as box:
        call = Call(tool="bash", args={"command": "echo begun; sleep 1; echo once >> log.txt"})
        task = await started(box, call)
        await fleet.server.aclose()
        await fleet.server.start(fleet.server.address)
        assert (await task).status == "ok"
        assert (files.files_folder(box.workspace_name) / "log.txt").read_text() == "once\n"


async def test_a_host_that_is_gone_is_said_to_be(files: WorkspaceStore) -> None:
    async with served(files) as fleet:
        client = HostClient(fleet.server.address, "all", attempts=2)
        box = await fleet.box(client)
        await fleet.server.aclose()
        with pytest.raises(HostError, match="Can't reach"):
            await box.call("now", {})


async def test_calls_in_order_come_back_in_order(files: WorkspaceStore) -> None:
    async with served(files) as fleet, await fleet.box() as box:
        calls = [
            Call(tool="write", args={"path": "n.txt", "content": "1\n"}),
            Call(tool="read", args={"path": "no.txt"}),
            Call(tool="read", args={"path": "n.txt"}),
        ]
        results = await box.call_in_order(calls)
        assert [result.status for result in results] == ["ok", "error", "ok"]
        assert "1" in results[2].text
        renamed = box.renamed(lambda name: f"ht_{name}")
        (again,) = await renamed.call_in_order([Call(tool="ht_read", args={"path": "n.txt"})])
        assert again.text == results[2].text


async def test_one_tenant_has_no_way_to_anothers_workspace(files: WorkspaceStore) -> None:
    async with served(files) as fleet:
        red, blue = fleet.client("red-token"), fleet.client("blue-token")
        box = await fleet.box(red)
        theirs = FleetToolbox(blue, box.workspace_name)
        refused = await theirs.call("read", {"path": "a.txt"})
        assert refused.fault.code == "not_found"
        for ask in (blue.diff, blue.fork, blue.remove, blue.merge):
            with pytest.raises(NotFound):
                await ask(box.workspace_name)
        with pytest.raises(NotFound):
            await theirs.waiting()
        assert (await blue.workspace_names(), await red.workspace_names()) == ([], [box.workspace_name])
        assert (await fleet.client().workspace_names()) == [box.workspace_name]


async def test_a_token_that_is_not_known_gets_nothing(files: WorkspaceStore) -> None:
    async with served(files) as fleet:
        for token in ("", "other", "al", "all "):
            with pytest.raises(UsageError, match="Unknown token"):
                await fleet.client(token).workspace_names()


async def test_a_host_that_is_full_says_busy_and_recovers(files: WorkspaceStore) -> None:
    limits = {"turns": TurnLimits(running=1, waiting=1)}
    async with served(files, **limits) as fleet, await fleet.box() as box:
        running = await started(box, Call(tool="bash", args={"command": WAITING}, id="running"))
        waiting = asyncio.create_task(box.call(Call(tool="now", args={}, id="waiting")))
        while not (await fleet.client().status()).waiting:
            await asyncio.sleep(0)
        shed = await box.call("now", {})
        assert (shed.fault.code, (await fleet.client().status()).shed) == ("busy", 1)
        box.cancel("running")
        assert (await running).status == "cancelled"
        assert (await waiting).status == "ok"
        assert (await box.call("now", {})).status == "ok"


async def test_ten_times_too_many_calls_are_shed_and_the_host_goes_on_as_before(
    files: WorkspaceStore,
) -> None:
    limits = {"turns": TurnLimits(running=2, waiting=4)}
    async with served(files, **limits) as fleet, await fleet.box() as box:
        # The first holds its turn until the others were told, however fast the machine is.
        running = [
            await started(box, Call(tool="bash", args={"command": WAITING}, id=f"running {number}"))
            for number in range(2)
        ]
        before = resident_bytes()
        sent = [
            asyncio.create_task(box.call(Call(tool="read", args={"path": "a.txt"}, id=f"{wave} {number}")))
            for wave in range(10)
            for number in range(60)
        ]
        waiting = set(sent)
        while len(waiting) > 4:
            done, waiting = await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
            assert {task.result().fault.code for task in done} == {"busy"}
        status = await fleet.client().status()
        assert (status.running, status.waiting, status.shed) == (2, 4, 596)
        assert resident_bytes() - before < 100 << 20
        for number in range(2):
            box.cancel(f"running {number}")
        assert [result.status for result in await asyncio.gather(*waiting)] == ["ok"] * 4
        assert [(await task).status for task in running] == ["cancelled"] * 2
        status = await fleet.client().status()
        assert (status.running, status.waiting) == (0, 0)
        assert (await box.call("read", {"path": "a.txt"})).status == "ok"


async def test_a_deadline_counts_the_time_in_the_queue_and_a_waiting_call_can_be_cancelled(
    files: WorkspaceStore,
) -> None:
    async with served(files, turns=TurnLimits(running=1)) as fleet, await fleet.box() as box:
        running = await started(box, Call(tool="bash", args={"command": WAITING}, id="running"))
        late = await box.call(Call(tool="now", args={}, deadline=0.05))
        assert late.fault.code == "timeout"
        waiting = asyncio.create_task(box.call(Call(tool="now", args={}, id="waiting")))
        while not (await fleet.client().status()).waiting:
            await asyncio.sleep(0)
        box.cancel("waiting")
        assert (await waiting).status == "cancelled"
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        # It ended on the host, too, or there would be no turn for so long.
        assert (await box.call(Call(tool="now", args={}, deadline=60))).status == "ok"


async def test_a_running_command_is_ended_at_its_deadline_and_its_turn_is_free(
    files: WorkspaceStore,
) -> None:
    async with served(files, turns=TurnLimits(running=1)) as fleet, await fleet.box() as box:
        late = await box.call(Call(tool="bash", args={"command": WAITING}, deadline=2.0))
        assert late.fault.code == "timeout"
        assert (await box.call("now", {})).status == "ok"


@pytest.mark.linux("overlay")  # a copy is there even when it is closed
async def test_workspaces_that_nobody_uses_are_closed_and_come_back(files: WorkspaceStore) -> None:
    async with served(files, open=2) as fleet:
        client = fleet.client()
        boxes = [await fleet.box(client) for _ in range(5)]
        for turn in range(2):
            for number, box in enumerate(boxes):
                wrote = await box.call("write", {"path": f"{turn}.txt", "content": f"{number}\n"})
                assert wrote.status == "ok"
                assert (await client.status()).open <= 2
        assert "3" in (await boxes[3].call("read", {"path": "0.txt"})).text
        closed = [
            box.workspace_name
            for box in boxes
            if not (files.files_folder(box.workspace_name) / "a.txt").exists()
        ]
        assert len(closed) >= 2


async def test_workspaces_that_are_made_ahead_are_closed_like_others(files: WorkspaceStore) -> None:
    async with served(files, open=2) as fleet, await fleet.box() as box:
        await box.client.fork(box.workspace_name, 4)
        names = [await box.client.create(fleet.template) for _ in range(4)]
        assert (await box.client.status()).open <= 2
        read = await FleetToolbox(box.client, names[0]).call("read", {"path": "a.txt"})
        assert read.status == "ok"


async def test_forks_without_number_are_refused_at_once(files: WorkspaceStore) -> None:
    async with served(files) as fleet, await fleet.box() as box:
        with pytest.raises(Busy):
            await box.client.request("fork", {"workspace": box.workspace_name, "count": 1 << 40})


async def test_slots_are_bounded_for_the_host_and_for_each_tenant(files: WorkspaceStore) -> None:
    async with served(files, slots=3, tenant_slots=2) as fleet:
        red, blue = fleet.client("red-token"), fleet.client("blue-token")
        first = await red.create(fleet.template)
        await red.fork(first)
        with pytest.raises(Busy, match="tenant"):
            await red.create(fleet.template)
        await blue.create(fleet.template)
        with pytest.raises(Busy, match="3 slots"):
            await blue.create(fleet.template)
        await red.remove(first)
        await blue.create(fleet.template)


async def test_forks_are_made_between_calls_and_the_best_is_promoted(files: WorkspaceStore) -> None:
    async with served(files) as fleet, await fleet.box() as box:
        client = box.client
        await box.call("write", {"path": "n.txt", "content": "before\n"})
        forks = [FleetToolbox(client, name) for name in await client.fork(box.workspace_name, 3)]
        for number, fork in enumerate(forks):
            edit = {"path": "n.txt", "old_string": "before", "new_string": f"fork {number}"}
            assert (await fork.call("edit", edit)).status == "ok"
        assert [each.path for each in await client.diff(forks[1].workspace_name)] == ["n.txt"]
        await client.promote(forks[1].workspace_name)
        assert "fork 1" in (await box.call("read", {"path": "n.txt"})).text
        with pytest.raises(Stale):
            await client.promote(forks[2].workspace_name)
        assert (await client.merge(forks[2].workspace_name)).conflicts == ("n.txt",)
        await box.call("undo", {})
        assert "before" in (await box.call("read", {"path": "n.txt"})).text


async def test_a_command_carries_no_mounts_of_other_workspaces(files: WorkspaceStore) -> None:
    # Not confined, so that it can tell what its own table of mounts is.
    host = WorkspaceHost(files, policy=Policy(defaults={"run": "allow"}), runner="plain")
    try:
        names = [await host.create(files.templates.digests()[0]) for _ in range(4)]
        for name in names:
            look = {"command": "cut -d' ' -f5 /proc/self/mountinfo; echo new > n.txt"}
            seen = (await host.call(name, Call(tool="bash", args=look))).text.split()
            roots = {str(files.files_folder(each)) for each in names}
            assert roots & set(seen) == (
                {str(files.files_folder(name))} if files.new_workspace_kind == "overlay" else set()
            )
            assert (files.files_folder(name) / "n.txt").read_text() == "new\n"
    finally:
        await host.aclose()
    assert str(files.folder) not in Path("/proc/self/mountinfo").read_text()


async def test_making_a_workspace_twice_under_one_name_makes_one(files: WorkspaceStore) -> None:
    async with served(files) as fleet:
        client = fleet.client()
        assert [await client.create(fleet.template, name="one") for _ in range(2)] == ["one", "one"]
        assert await client.workspace_names() == ["one"]


@pytest.mark.linux("bubblewrap", "supervisors")
async def test_a_workspace_over_its_quota_can_only_become_smaller(
    files: WorkspaceStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("handtools.fleet.host.QUOTA_SECONDS", 0.0)
    async with served(files) as fleet, await fleet.box() as box:
        await box.call("bash", {"command": "head -c 3000000 /dev/urandom > large.bin"})
        refused = await box.call("write", {"path": "n.txt", "content": "x\n"})
        assert refused.fault.code == "too_large"
        assert (await box.call("read", {"path": "a.txt"})).status == "ok"
        await box.call("bash", {"command": "rm large.bin"})
        assert (await box.call("write", {"path": "n.txt", "content": "x\n"})).status == "ok"


async def test_a_narrower_policy_comes_with_the_call(files: WorkspaceStore) -> None:
    async with served(files) as fleet, await fleet.box() as box:
        careful = box.under(Policy(tools="read_only"))
        assert "write" not in [each.name for each in careful.definitions()]
        assert (await careful.call("write", {"path": "n.txt", "content": "x\n"})).status == "error"
        assert (await careful.call("read", {"path": "a.txt"})).status == "ok"
        asked = box.under(Policy(defaults={"change": "ask"}))
        pending = await asked.call("write", {"path": "n.txt", "content": "x\n"})
        assert pending.status == "pending"
        assert len(await box.waiting()) == 1


async def test_a_host_begins_again_with_the_workspaces_of_its_folder(files: WorkspaceStore) -> None:
    async with served(files) as fleet:
        box = await fleet.box(fleet.client("red-token"))
        await box.call("write", {"path": "n.txt", "content": "kept\n"})
    async with served(WorkspaceStore(files.folder)) as fleet:
        again = FleetToolbox(fleet.client("red-token"), box.workspace_name)
        assert "kept" in (await again.call("read", {"path": "n.txt"})).text


async def test_garbage_on_the_wire_ends_that_connection_alone(
    files: WorkspaceStore, tmp_path: Path
) -> None:
    async with served(files) as fleet, await fleet.box() as box:
        for junk in (b"\xff" * 64, b"\0\0\0\x02[]", b"\0\0\0\x05{oops", b"\0\0\x20\0" + b"x" * 0x2000):
            reader, writer = await asyncio.open_unix_connection(f"{files.folder}/socket")
            writer.write(junk)
            assert await reader.read() == b""
            writer.close()
        assert (await box.call("now", {})).status == "ok"
