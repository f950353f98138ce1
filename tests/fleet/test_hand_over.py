"""Workspaces go from one host to another while they are used; hosts share nothing but the log."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from handtools.core.call import Call
from handtools.core.errors import Busy, NotFound, StorageFault, UsageError
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.workspace_log import LogStore
from handtools.fleet.workspace_slots import WorkspaceMoved
from handtools.fleet.workspaces import WorkspaceStore
from handtools.runtime.policy import Policy


class Pair:
    """Two hosts of a fleet, and a workspace on the first."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.h0, self.h1 = self.host("h0"), self.host("h1")
        self.template = ""

    def host(self, name: str) -> WorkspaceHost:
        return WorkspaceHost(
            WorkspaceStore(self.folder / name),
            log=LogStore(f"file://{self.folder}/log"),
            name=name,
            policy=Policy(defaults={"run": "allow"}),
        )

    async def restarted(self, host: WorkspaceHost) -> WorkspaceHost:
        await host.aclose()
        return self.host(host.name)


@pytest.fixture
async def pair(tmp_path: Path, source: Path) -> AsyncIterator[Pair]:
    made = Pair(tmp_path)
    for host in (made.h0, made.h1):
        made.template = await host.add_template("folder", str(source))
    await made.h0.create(made.template, name="h0-w", tenant="red")
    yield made
    for host in (made.h0, made.h1):
        await host.aclose()


async def run(host: WorkspaceHost, command: str, name: str = "h0-w", **more: Any) -> Any:
    return await host.call(name, Call(tool="bash", args={"command": command}, **more))


async def test_a_workspace_goes_on_elsewhere_with_files_record_and_undo(pair: Pair) -> None:
    done = Call(tool="bash", args={"command": "echo one >> log.txt"})
    first = await pair.h0.call("h0-w", done)
    await pair.h0.hand_over_workspace("h0-w", "h1")
    with pytest.raises(WorkspaceMoved) as moved:
        await run(pair.h0, "echo lost >> log.txt")
    assert (moved.value.host, moved.value.incarnation) == ("h1", pair.h0.incarnation)
    assert (await pair.h1.call("h0-w", done)).text == first.text
    assert (await run(pair.h1, "echo two >> log.txt; cat log.txt")).text.startswith("one\ntwo\n")
    assert (await pair.h1.call("h0-w", Call(tool="undo", args={}))).status == "ok"
    assert (await run(pair.h1, "cat log.txt")).text.startswith("one\n")
    assert pair.h0.workspace_names() == [] and pair.h1.workspace_names() == ["h0-w"]


async def test_it_comes_back_and_a_new_start_of_a_host_knows_where_all_are(pair: Pair) -> None:
    await run(pair.h0, "echo one > a.txt")
    await pair.h0.hand_over_workspace("h0-w", "h1")
    pair.h0 = await pair.restarted(pair.h0)
    with pytest.raises(WorkspaceMoved):
        await run(pair.h0, "true")
    await pair.h1.recover_handed_over_workspace("h0-w")
    await run(pair.h1, "echo two > a.txt")
    await pair.h1.hand_over_workspace("h0-w", "h0")
    with pytest.raises(WorkspaceMoved):
        await run(pair.h1, "true")
    assert (await run(pair.h0, "cat a.txt")).text.startswith("two\n")


async def test_a_call_that_runs_is_waited_for_and_one_that_comes_then_is_not_run(pair: Pair) -> None:
    begun = asyncio.Event()
    loop = asyncio.get_running_loop()
    call = Call(tool="bash", args={"command": "echo begun; sleep 2; echo ran > ran.txt"})
    running = asyncio.create_task(
        pair.h0.call("h0-w", call, listener=lambda _: loop.call_soon_threadsafe(begun.set))
    )
    await begun.wait()
    moving = asyncio.create_task(pair.h0.hand_over_workspace("h0-w", "h1"))
    await asyncio.sleep(0)  # it waits for the call from here on
    late = asyncio.create_task(run(pair.h0, "echo late > late.txt"))
    assert (await running).status == "ok"
    await moving
    with pytest.raises(WorkspaceMoved):
        await late
    listed = (await run(pair.h1, "ls")).text.split()
    assert "ran.txt" in listed and "late.txt" not in listed


async def test_forks_are_where_their_parent_is_whatever_their_name_says(pair: Pair) -> None:
    await run(pair.h0, "echo one > a.txt")
    await pair.h0.hand_over_workspace("h0-w", "h1")
    await pair.h1.fork("h0-w", names=["h0-f"])
    await run(pair.h1, "echo fork > f.txt", "h0-f")
    # The host in its name would else take it away from the one that has it.
    with pytest.raises(WorkspaceMoved):
        await run(pair.h0, "true", "h0-f")
    assert (await pair.h1.merge_or_promote_fork("h0-f")).changed == ("f.txt",)


async def test_what_cannot_be_stored_stays_where_it_is(pair: Pair, monkeypatch: pytest.MonkeyPatch) -> None:
    await run(pair.h0, "echo one > a.txt")

    def fails(*_: object) -> None:
        raise StorageFault("The object store can't be used.", hint="Later.")

    with monkeypatch.context() as patched:
        patched.setattr(LogStore, "append_segment", fails)
        assert (await run(pair.h0, "echo two > a.txt")).fault.code == "storage"
        assert pair.h0.status().unstored_seconds > 0
        with pytest.raises(StorageFault):
            await pair.h0.hand_over_workspace("h0-w", "h1")
        assert pair.h0.workspace_names() == ["h0-w"]
    await pair.h0.hand_over_workspace("h0-w", "h1")
    assert (await run(pair.h1, "cat a.txt")).text.startswith("two\n")


async def test_only_its_tenant_is_told_where_a_workspace_went(pair: Pair) -> None:
    await pair.h0.hand_over_workspace("h0-w", "h1")
    with pytest.raises(WorkspaceMoved):
        await pair.h0.diff("h0-w", tenant="red")
    with pytest.raises(NotFound):
        await pair.h0.diff("h0-w", tenant="blue")


async def test_a_drained_host_takes_no_workspace_and_a_host_without_a_log_moves_none(
    pair: Pair, tmp_path: Path
) -> None:
    await pair.h0.refuse_new_workspaces()
    with pytest.raises(Busy, match="drained"):
        await pair.h0.create(pair.template)
    alone = WorkspaceHost(WorkspaceStore(tmp_path / "alone"), name="h2")
    with pytest.raises(UsageError, match="log_url"):
        await alone.hand_over_workspace("h2-w", "h0")
    await alone.aclose()
