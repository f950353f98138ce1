"""What is durable survives its host: the log in object storage is all that another one gets."""

from pathlib import Path

import pytest

from handtools.core.call import Call
from handtools.core.errors import NotFound, StorageFault
from handtools.fleet import workspace_log
from handtools.fleet.templates import digest_of_folder
from handtools.fleet.workspace_log import LogHead, LogStore, SegmentTaken
from tests.fleet.conftest import Hosts, call
from tests.fleet.s3_server import fsspec_options, s3_server


async def test_another_host_has_the_same_files_and_the_same_record(hosts: Hosts, source: Path) -> None:
    first, second = hosts(), hosts()
    name = await first.create(await first.add_template("folder", str(source)), name="w", tenant="red")
    made = Call(
        tool="bash",
        args={"command": "mkdir -p out/deep && echo hi > out/deep/x && rm -r pkg && ln -s a.txt l"},
    )
    ran = await first.call(name, made)
    assert ran.status == "ok", ran.text
    await call(first, name, "edit", path="a.txt", old_string="line 3\n", new_string="three\n")
    await call(
        first,
        name,
        "bash",
        command="chmod 600 a.txt; mkdir big; for i in $(seq 300); do echo $i > big/$i; done",
    )
    await call(
        first,
        name,
        "bash",
        command="head -c 3000000 /dev/zero | tr '\\0' x > large.txt; mv big/7 big/seven",
    )
    await call(first, name, "write", path="made/by/write.txt", content="w\n")
    await call(first, name, "undo")
    before = digest_of_folder(first.store.files_folder(name))

    again = await second.call(name, made, tenant="red")
    assert (again.status, again.text) == (ran.status, ran.text)
    assert digest_of_folder(second.store.files_folder(name)) == before
    # It goes on there as it would have gone on here, undo included.
    await call(second, name, "edit", path="a.txt", old_string="three\n", new_string="drei\n")
    assert (await call(second, name, "undo")).status == "ok"
    assert digest_of_folder(second.store.files_folder(name)) == before
    with pytest.raises(NotFound):
        await second.diff(name, tenant="blue")
    third = hosts()
    assert [each.path for each in await third.diff(name)] == [each.path for each in await second.diff(name)]
    assert digest_of_folder(third.store.files_folder(name)) == before
    # What was moved aside in place of a copy has come along: large files and whole folders are brought back, too.
    undone = await call(third, name, "undo")
    assert undone.status == "ok", undone.text


async def test_a_workspace_is_not_put_together_for_another_tenant(hosts: Hosts, source: Path) -> None:
    first, second = hosts(), hosts()
    name = await first.create(await first.add_template("folder", str(source)), name="w", tenant="red")
    with pytest.raises(NotFound):
        await second.diff(name, tenant="blue")
    assert second.store.workspace_names() == []
    assert (await second.call(name, Call(tool="now", args={}), tenant="red")).status == "ok"
    assert second.store.workspace_names() == [name]


async def test_a_fork_comes_back_with_what_it_began_with(hosts: Hosts, source: Path) -> None:
    first, second = hosts(), hosts()
    name = await first.create(await first.add_template("folder", str(source)), name="w")
    await call(first, name, "write", path="n.txt", content="before\n")
    (fork,) = await first.fork(name, names=["f"])
    await call(first, name, "write", path="later.txt", content="after the fork\n")
    await call(first, fork, "edit", path="n.txt", old_string="before", new_string="forked")
    (inner,) = await first.fork(fork, names=["g"])
    await call(first, inner, "write", path="inner.txt", content="inner\n")

    digests = {each: digest_of_folder(first.store.files_folder(each)) for each in (name, fork, inner)}
    await second.diff(inner)
    assert [each.path for each in await second.diff(fork)] == ["n.txt"]
    assert [each.path for each in await second.diff(inner)] == ["inner.txt"]
    await second.diff(name)
    assert {each: digest_of_folder(second.store.files_folder(each)) for each in digests} == digests
    done = await second.merge_or_promote_fork(inner)
    assert done.changed == ("inner.txt",)
    third = hosts()
    await third.diff(fork)
    assert (third.store.files_folder(fork) / "inner.txt").read_text() == "inner\n"


async def test_the_longest_names_come_back_too(hosts: Hosts, source: Path) -> None:
    first, second = hosts(), hosts()
    longest, fork = "w" * 64, "f" * 64
    name = await first.create(await first.add_template("folder", str(source)), name=longest)
    await call(first, name, "write", path="n.txt", content="before\n")
    await first.fork(name, names=[fork])
    for each in (name, fork):
        assert "before" in (await call(second, each, "read", path="n.txt")).text


async def test_a_host_that_was_overtaken_lets_go(hosts: Hosts, source: Path) -> None:
    first, second = hosts(), hosts()
    name = await first.create(await first.add_template("folder", str(source)), name="w")
    await call(first, name, "write", path="n.txt", content="1\n")
    await call(second, name, "write", path="second.txt", content="2\n")
    late = await call(first, name, "write", path="first.txt", content="late\n")
    assert late.fault.code == "unknown_outcome"
    # It comes back as the log says, without what was never stored.
    assert (await call(first, name, "read", path="second.txt")).status == "ok"
    assert not (first.store.files_folder(name) / "first.txt").exists()


async def test_an_unknown_outcome_is_said_and_stays_the_last_word(hosts: Hosts, source: Path) -> None:
    first, second = hosts(), hosts()
    name = await first.create(await first.add_template("folder", str(source)), name="w")
    lost = Call(tool="bash", args={"command": "echo x >> log.txt"})
    for _ in range(2):
        unknown = await second.call(name, lost, sent_to=first.incarnation)
        assert unknown.fault.code == "unknown_outcome"
    assert not (second.store.files_folder(name) / "log.txt").exists()
    # A look, and what its caller says may be repeated, is run.
    look = Call(tool="read", args={"path": "a.txt"})
    assert (await second.call(name, look, sent_to=first.incarnation)).status == "ok"
    repeated = Call(tool="bash", args={"command": "echo x >> log.txt"}, metadata={"retryable": True})
    assert (await second.call(name, repeated, sent_to=first.incarnation)).status == "ok"
    assert (second.store.files_folder(name) / "log.txt").read_text() == "x\n"


async def test_a_host_begins_again_from_the_log_and_not_from_what_it_left_on_disk(
    hosts: Hosts, source: Path
) -> None:
    first = hosts()
    name = await first.create(await first.add_template("folder", str(source)), name="w")
    await call(first, name, "write", path="n.txt", content="1\n")
    (first.store.files_folder(name) / "n.txt").write_text("never promised\n")
    await first.aclose()
    again = hosts(first.store.folder)
    assert "1" in (await call(again, name, "read", path="n.txt")).text
    await again.remove(name)
    with pytest.raises(NotFound):
        await again.diff(name)


async def test_what_a_killed_host_had_begun_to_make_is_in_nobodys_way(hosts: Hosts, source: Path) -> None:
    first, second = hosts(), hosts()
    name = await first.create(await first.add_template("folder", str(source)), name="w")
    (fork,) = await first.fork(name, names=["f"])
    for left in (name, fork, f"{fork}.base"):
        (second.store.folder / "workspaces" / left / "root").mkdir(parents=True)
    assert (await call(second, name, "read", path="a.txt")).status == "ok"
    assert (await call(second, fork, "read", path="a.txt")).status == "ok"


async def test_a_store_that_fails_costs_no_call_and_none_runs_twice(
    hosts: Hosts, source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = hosts(), hosts()
    name = await first.create(await first.add_template("folder", str(source)), name="w")
    await call(first, name, "write", path="n.txt", content="1\n")
    monkeypatch.setattr(workspace_log, "FIRST_PAUSE_SECONDS", 0.001)
    appended = Call(tool="bash", args={"command": "echo once >> log.txt"})
    create = LogStore._create_object

    def refused(_self: LogStore, _path: str, _data: bytes) -> None:
        raise TimeoutError

    monkeypatch.setattr(LogStore, "_create_object", refused)
    assert (await first.call(name, appended)).fault.code == StorageFault.code

    def stored_and_lost(self: LogStore, path: str, data: bytes) -> None:
        create(self, path, data)
        raise TimeoutError

    monkeypatch.setattr(LogStore, "_create_object", stored_and_lost)
    assert (await first.call(name, appended)).status == "ok"
    monkeypatch.setattr(LogStore, "_create_object", create)
    await call(first, name, "write", path="last.txt", content="3\n")
    before = digest_of_folder(first.store.files_folder(name))
    assert (await second.call(name, appended)).status == "ok"
    assert digest_of_folder(second.store.files_folder(name)) == before
    assert (second.store.files_folder(name) / "log.txt").read_text() == "once\n"


def test_a_segment_is_written_once(log: LogStore) -> None:
    log.create_log("w", LogHead("t"))
    log.create_log("w", LogHead("t"))
    with pytest.raises(SegmentTaken):
        log.create_log("w", LogHead("other"))
    log.append_segment("w", 0, b"one")
    log.append_segment("w", 0, b"one")  # the same again, as when an answer was lost
    with pytest.raises(SegmentTaken):
        log.append_segment("w", 0, b"two")
    assert (log.read_segment("w", 0), log.read_segment("w", 1)) == (b"one", None)


def test_an_object_is_read_with_one_request(tmp_path: Path) -> None:
    with s3_server(tmp_path) as port:
        log = LogStore("s3://fleet/one", **fsspec_options(port))
        log.append_segment("w", 0, b"segment")
        assert log.read_segment("w", 0) == b"segment"
    lines = (tmp_path / "s3.log").read_text("utf-8").splitlines()
    asked = [line for line in lines if "/00000000" in line and "PUT" not in line]
    assert len(asked) == 1, asked
