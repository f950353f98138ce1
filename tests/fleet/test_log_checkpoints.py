"""A log stays short however many calls there were, and what it lost with that is nothing."""

import asyncio
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from handtools.core.call import Call
from handtools.fleet import workspace_recovery
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.host_server import HostMethods
from handtools.fleet.templates import digest_of_folder
from handtools.fleet.workspace_log import LogStore
from handtools.fleet.workspaces import WorkspaceStore
from tests.fleet.conftest import Hosts, call


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workspace_recovery, "CHECKPOINT_SEGMENTS", 4)
    monkeypatch.setattr(workspace_recovery, "MAX_SEGMENTS", 8)


async def written(host: WorkspaceHost, name: str, numbers: Iterable[int]) -> list[Call]:
    calls = [Call(tool="write", args={"path": f"{n}.txt", "content": f"{n}\n"}) for n in numbers]
    for each in calls:
        assert (await host.call(name, each)).status == "ok"
    return calls


async def test_a_shortened_log_has_all_files_all_results_and_undo(
    hosts: Hosts, log: LogStore, source: Path
) -> None:
    first, second = hosts(), hosts()
    name = await first.create(await first.add_template("folder", str(source)), name="w")
    before = digest_of_folder(first.store.files_folder(name))
    removed = await call(first, name, "bash", command="rm -r pkg; head -c 3000000 /dev/urandom > large")
    assert removed.status == "ok", removed.text
    long = await call(first, name, "bash", command="seq 100000")
    calls = await written(first, name, range(20))
    left = digest_of_folder(first.store.files_folder(name))
    assert len(log.list_log_objects(name).segments) <= 8

    assert "99999" in (await call(second, name, "read", path=long.details.output_path, offset=99999)).text
    assert digest_of_folder(second.store.files_folder(name)) == left
    for each in calls:
        assert (await second.call(name, each, sent_to=first.incarnation)).status == "ok"
    for _ in range(len(calls) + 1):
        undone = await call(second, name, "undo")
        assert undone.status == "ok", undone.text
    assert digest_of_folder(second.store.files_folder(name)) == before


async def test_a_host_that_was_overtaken_long_ago_can_store_nothing(
    hosts: Hosts, log: LogStore, source: Path
) -> None:
    first, second = hosts(), hosts()
    name = await first.create(await first.add_template("folder", str(source)), name="w")
    await written(first, name, range(2))
    assert (await call(second, name, "read", path="1.txt")).status == "ok"
    # It looked, and that is enough: who had the workspace before has it no more.
    late = await call(first, name, "write", path="late.txt", content="late\n")
    assert late.fault.code == "unknown_outcome"
    third = hosts()
    await call(third, name, "read", path="1.txt")
    await written(third, name, range(2, 30))
    assert len(log.list_log_objects(name).segments) < 20
    late = await call(second, name, "write", path="late.txt", content="late\n")
    assert late.fault.code == "unknown_outcome"
    fourth = hosts()
    await call(fourth, name, "read", path="1.txt")
    assert digest_of_folder(fourth.store.files_folder(name)) == digest_of_folder(
        third.store.files_folder(name)
    )


class InterruptedLog(LogStore):
    """A store in which something happens after segments were read, and before their reader goes on."""

    then: Callable[[], object] | None = None

    def read_segments(self, name: str, numbers: Iterable[int]) -> list[bytes | None]:
        found = super().read_segments(name, numbers)
        if self.then is not None:
            then, self.then = self.then, None
            then()
        return found


async def test_a_log_that_is_shortened_while_it_is_read_is_read_again(tmp_path: Path, source: Path) -> None:
    url = f"file://{tmp_path}/shared"
    store, slow = LogStore(url), InterruptedLog(url)
    first = WorkspaceHost(WorkspaceStore(tmp_path / "first"), log=store)
    second = WorkspaceHost(WorkspaceStore(tmp_path / "second"), log=slow)
    try:
        name = await first.create(await first.add_template("folder", str(source)), name="w")
        await written(first, name, range(2))
        loop = asyncio.get_running_loop()
        # Enough for a checkpoint: the number behind what was read is free then, as its segment was deleted.
        more = written(first, name, range(2, 5))
        slow.then = lambda: asyncio.run_coroutine_threadsafe(more, loop).result(60)
        assert "4" in (await call(second, name, "read", path="4.txt")).text
        assert digest_of_folder(second.store.files_folder(name)) == digest_of_folder(
            first.store.files_folder(name)
        )
        late = await call(first, name, "write", path="late.txt", content="late\n")
        assert late.fault.code == "unknown_outcome"
    finally:
        first.store.close_all()
        second.store.close_all()


async def test_a_fork_keeps_what_it_began_with_when_its_parents_log_is_shortened_or_gone(
    hosts: Hosts, log: LogStore, source: Path
) -> None:
    first, second = hosts(), hosts()
    name = await first.create(await first.add_template("folder", str(source)), name="w")
    await written(first, name, range(3))
    await call(first, name, "edit", path="a.txt", old_string="line 3\n", new_string="three\n")
    (fork,) = await first.fork(name, names=["f"])
    await written(first, name, range(10, 30))
    # The fork puts back what the template has, which no difference from the template shows.
    await call(first, fork, "edit", path="a.txt", old_string="three\n", new_string="line 3\n")
    await call(first, fork, "bash", command="rm 1.txt")
    await written(first, fork, range(40, 60))
    left = digest_of_folder(first.store.files_folder(fork))
    await first.remove(name)
    assert log.collect_garbage(min_age=0) == 0, "the fork needs it"
    # Asked for once more, as after a lost answer, it is the same fork.
    await second.diff(fork)
    assert digest_of_folder(second.store.files_folder(fork)) == left
    await second.remove(fork)
    assert log.collect_garbage() == 0, "not before a day is over"
    assert log.collect_garbage(min_age=0) == 2
    assert log.read_head(name) is log.read_head(fork) is None


def removed_days_ago(folder: Path, name: str) -> None:
    """Let a workspace have been removed two days ago, as far as its log tells."""
    then = time.time() - 2 * 86400
    os.utime(folder / "workspaces" / name / "removed", (then, then))


async def test_a_host_deletes_the_logs_that_nobody_needs_and_no_others(
    tmp_path: Path, source: Path
) -> None:
    log = LogStore(f"file://{tmp_path}/log")
    first, second = (WorkspaceHost(WorkspaceStore(tmp_path / each), log=log) for each in ("one", "two"))
    try:
        template = await first.add_template("folder", str(source))
        for name in ("gone", "parent", "late", "kept"):
            await first.create(template, name=name)
            await written(first, name, range(6))
        (fork,) = await first.fork("parent", names=["fork"])
        await written(first, fork, range(10, 13))
        left = {each: digest_of_folder(first.store.files_folder(each)) for each in (fork, "kept")}
        for name in ("gone", "parent", "late"):
            await first.remove(name)
        for name in ("gone", "parent"):
            removed_days_ago(tmp_path / "log", name)
        # The first host has looked when it began; that day is over.
        while not (days := list((tmp_path / "log").glob("collections/2*"))):
            await asyncio.sleep(0)
        for day in days:
            day.rename(day.with_name("2020-01-01"))
        # Another host begins to work, and with that to look.
        assert (await call(second, "kept", "read", path="1.txt")).status == "ok"
        while log.list_log_objects("gone").is_ended:
            await asyncio.sleep(0)
        assert log.read_head("gone") is None and not any((tmp_path / "log/workspaces/gone").iterdir())
        assert log.list_log_objects("parent").is_ended and log.read_head("parent"), (
            "the fork begins with it"
        )
        assert log.list_log_objects("late").is_ended and log.read_head("late"), "a day is not over"
        await second.diff(fork)
        assert {each: digest_of_folder(second.store.files_folder(each)) for each in left} == left
        # It is done for today, whoever asks; the next day's is not in the way.
        removed_days_ago(tmp_path / "log", "late")
        assert log.collect_daily_garbage() is None
        assert log.read_head("late")
        assert len(list((tmp_path / "log" / "collections").iterdir())) == 1
    finally:
        for host in (first, second):
            await host.aclose()
            host.store.close_all()


async def test_who_asks_for_a_workspace_again_gets_the_one_with_its_calls(
    hosts: Hosts, source: Path
) -> None:
    first, second = hosts(), hosts()
    template = await first.add_template("folder", str(source))
    name = await first.create(template, name="w")
    (fork,) = await first.fork(name, names=["f"])
    await written(first, name, range(2))
    await written(first, fork, range(2, 4))
    assert await second.create(template, name="w") == name
    assert (second.store.files_folder(name) / "1.txt").exists()
    assert await second.fork(name, names=["f", "g"]) == ["f", "g"]
    assert (second.store.files_folder("f") / "3.txt").exists()
    assert not (second.store.files_folder("f") / "1.txt").exists()
    assert (second.store.files_folder("g") / "1.txt").exists()


async def test_what_a_person_allowed_is_stored(tmp_path: Path, source: Path) -> None:
    log = LogStore(f"file://{tmp_path}/log")
    first, second = (WorkspaceHost(WorkspaceStore(tmp_path / each), log=log) for each in ("one", "two"))
    try:
        name = await first.create(await first.add_template("folder", str(source)), name="w")
        asked = Call(tool="write", args={"path": ".envrc", "content": "x\n"})
        pending = await first.call(name, asked)
        assert pending.status == "pending"
        answer = {"id": asked.id, "allow": True, "remember": "", "message": "", "fingerprint": ""}
        await HostMethods(first).resume({"workspace": name, **answer})
        assert (await second.call(name, asked)).status == "ok"
        assert (second.store.files_folder(name) / ".envrc").read_text() == "x\n"
    finally:
        first.store.close_all()
        second.store.close_all()
