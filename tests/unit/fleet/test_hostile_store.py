"""Somebody else can write to the object store: what they put there is refused, or stays in its workspace."""

import contextlib
import json
import os
import sqlite3
import stat
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from handtools.core.call import Call
from handtools.core.errors import NotFound, StorageFault
from handtools.fleet import workspace_log
from handtools.fleet.host import WorkspaceHost
from handtools.fleet.templates import TemplateStore, digest_of_folder
from handtools.fleet.workspace_log import LogStore, PathState, Segment
from handtools.fleet.workspaces import WorkspaceStore
from handtools.runtime.journal.database import write_copied_journal


async def call(host: WorkspaceHost, name: str, tool: str, **args: Any) -> Any:
    return await host.call(name, Call(tool=tool, args=args))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """A folder to make a template of."""
    folder = tmp_path / "source"
    (folder / "pkg").mkdir(parents=True)
    (folder / "pkg" / "b.txt").write_text("b\n")
    (folder / "run.sh").write_text("true\n")
    return folder


@pytest.fixture
def log(tmp_path: Path) -> LogStore:
    return LogStore(f"file://{tmp_path}/log")


Hosts = tuple[WorkspaceHost, WorkspaceHost]


@pytest.fixture
async def hosts(tmp_path: Path, log: LogStore) -> AsyncIterator[Hosts]:
    """Two hosts with disks of their own and one log."""
    made = (
        WorkspaceHost(WorkspaceStore(tmp_path / "one"), log=log),
        WorkspaceHost(WorkspaceStore(tmp_path / "two"), log=log),
    )
    yield made
    for host in made:
        await host.aclose()
        host.store.close_all()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder that no workspace may change or show."""
    folder = tmp_path / "outside"
    (folder / "sub").mkdir(parents=True)
    (folder / "victim").write_text("victim")
    for each in (folder, folder / "sub"):
        each.chmod(0o700)
    return folder


def unchanged(outside: Path) -> bool:
    modes = [stat.S_IMODE(each.stat().st_mode) for each in (outside, outside / "sub")]
    return (
        modes == [0o700, 0o700]
        and sorted(os.listdir(outside)) == ["sub", "victim"]
        and (outside / "victim").read_text() == "victim"
        and not os.listdir(outside / "sub")
    )


async def written(host: WorkspaceHost, source: Path, name: str = "w") -> str:
    made = await host.create(await host.add_template("folder", str(source)), name=name)
    assert (await call(host, made, "write", path="n.txt", content="1\n")).status == "ok"
    return made


def put(tmp_path: Path, key: str, data: bytes) -> Path:
    """Put an object into the store, whatever is there."""
    place = tmp_path / "log" / key
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(data)
    return place


HEADS = [
    b"",
    b"[]",
    b"{}",
    b"\xff",
    b"[" * 50_000,
    b"null",
    json.dumps(["../../x", "", "", 0]).encode(),
    json.dumps(["0" * 64, "", "../x", 0]).encode(),
    json.dumps(["0" * 64, "", "..", 0]).encode(),
    json.dumps(["0" * 64, "", "", -1]).encode(),
    json.dumps(["0" * 64, 5, "", 0]).encode(),
    json.dumps(["0" * 64, "", "", "0"]).encode(),
    json.dumps([["0" * 64], "", "", 0]).encode(),
    b" " * 100_000,
]


@pytest.mark.parametrize("head", HEADS)
async def test_a_forged_beginning_of_a_log_is_refused(
    tmp_path: Path, head: bytes, log: LogStore, hosts: Hosts
) -> None:
    _, host = hosts
    before = sorted(os.listdir(tmp_path))
    put(tmp_path, "workspaces/w/head", head)
    with pytest.raises(StorageFault):
        log.read_head("w")
    assert (await call(host, "w", "read", path="a")).fault.code == StorageFault.code
    assert sorted({*os.listdir(tmp_path)} - {"log"}) == [each for each in before if each != "log"]
    assert host.store.workspace_names() == []


@pytest.mark.parametrize("name", ["", "..", "../templates", "a/b", ".", "/etc", "a\n", "x" * 65])
def test_what_is_no_name_is_no_key(log: LogStore, name: str) -> None:
    for use in (log.read_head, log.list_log_objects, log.host_moved_to, log.mark_workspace_removed):
        with pytest.raises(NotFound):
            use(name)


def test_a_forged_host_is_not_told_to_clients(tmp_path: Path, log: LogStore) -> None:
    for host in (b"", b"../x", b"\xff", b"evil host", b"x" * 70_000):
        put(tmp_path, "workspaces/w/place-00000000", host)
        with pytest.raises(StorageFault):
            log.host_moved_to("w")
    put(tmp_path, "workspaces/w/place-00000000", b"h1")
    assert log.host_moved_to("w") == "h1"


def test_objects_of_other_names_are_no_part_of_a_log(tmp_path: Path, log: LogStore) -> None:
    for name in (
        "x.checkpoint",
        "0.checkpoint",
        "-0000001",
        "00000001.checkpoint.checkpoint",
        "1",
        "٠٠٠٠٠٠٠١",
    ):
        put(tmp_path, f"workspaces/w/{name}", b"x")
    put(tmp_path, "workspaces/.odd name/removed", b"x")
    assert (log.list_log_objects("w").segments, log.list_log_objects("w").checkpoints) == (
        frozenset(),
        frozenset(),
    )
    assert log.collect_garbage(min_age=0) == 0


def test_no_link_in_the_store_is_followed(
    tmp_path: Path, outside: Path, log: LogStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(workspace_log, "FIRST_PAUSE_SECONDS", 0.0)
    (tmp_path / "log" / "workspaces").mkdir(parents=True)
    (tmp_path / "log" / "workspaces" / "w").symlink_to(outside)
    (tmp_path / "log" / "templates").symlink_to(outside)
    place = put(tmp_path, "workspaces/v/head", b"")
    place.unlink()
    place.symlink_to(outside / "victim")
    for use in (
        lambda: log.append_segment("w", 0, b"segment"),
        lambda: log.mark_workspace_removed("w"),
        lambda: log.delete_segments("w", [0], 0),
        lambda: log.list_log_objects("w"),
        lambda: log.read_head("v"),
        lambda: log.fetch_template("0" * 64, TemplateStore(tmp_path / "templates")),
    ):
        with pytest.raises(StorageFault) as refused:
            use()
        assert "victim" not in str(refused.value.message)
    assert unchanged(outside)
    # The operator may name the folder of the store by way of a link.
    (tmp_path / "named").symlink_to(tmp_path / "real")
    (tmp_path / "real").mkdir()
    again = LogStore(f"file://{tmp_path}/named")
    again.append_segment("w", 0, b"segment")
    assert again.read_segment("w", 0) == b"segment"


def hostile_states(outside: Path) -> dict[str, list[PathState]]:
    target = os.fsencode(outside)
    link = PathState("l", "link", 0, target)
    return {
        "a link, then below it": [link, PathState("l/new", "file", 0o644, b"x")],
        "a link, then its mode": [link, PathState("l", "folder", 0o777)],
        "a folder, then a link": [PathState("l", "folder", 0o777), link],
        "folders below a link": [link, PathState("l/sub", "folder", 0o777)],
        "gone below a link": [link, PathState("l/victim", "gone")],
        "climbing": [PathState("../../../../outside/victim", "file", 0o644, b"x")],
        "absolute": [PathState(f"{outside}/victim", "file", 0o644, b"x")],
        "above": [PathState("..", "tree", 0o777)],
        "set-user-id": [PathState("s", "file", 0o6755, b"x"), PathState("t", "tree", 0o7777)],
    }


@pytest.mark.parametrize("which", list(hostile_states(Path("/"))))
@pytest.mark.parametrize("what", ["segment", "checkpoint", "base"])
async def test_no_stored_path_leads_out(
    tmp_path: Path, source: Path, outside: Path, log: LogStore, hosts: Hosts, which: str, what: str
) -> None:
    first, second = hosts
    name = await written(first, source)
    states = tuple(hostile_states(outside)[which])
    packed = Segment(None, b"", states, first.incarnation).pack()
    if what == "base":
        (name,) = await first.fork(name, names=["f"])
        (place,) = (tmp_path / "log" / "workspaces" / "w").glob("*.base")
        place.write_bytes(packed)
    elif what == "checkpoint":
        put(tmp_path, f"workspaces/{name}/00000001.checkpoint", packed)
    else:
        put(tmp_path, f"workspaces/{name}/00000001", packed)
    result = await call(second, name, "list")
    assert result.status == "ok" or result.fault.code == StorageFault.code
    assert unchanged(outside)
    if result.status == "ok":
        found = second.store.files_folder(name).rglob("*")
        assert not [each for each in found if each.lstat().st_mode & 0o6000]
    else:
        assert second.store.workspace_names() == [], "nobody finds half of it"


async def test_what_is_kept_beside_a_journal_is_not_the_journal(
    tmp_path: Path, source: Path, outside: Path, log: LogStore, hosts: Hosts
) -> None:
    first, second = hosts
    name = await written(first, source)
    target = os.fsencode(outside / "victim")
    for kept in ("journal.sqlite", "journal.sqlite-wal", "outputs", "vault", "../workspace.json"):
        packed = Segment(b"x", b"", (), "w", (PathState(kept, "link", 0, target),)).pack()
        put(tmp_path, f"workspaces/{name}/00000001", packed)
        assert (await call(second, name, "list")).fault.code == StorageFault.code
    assert unchanged(outside)


def forged(log: LogStore, name: str, place: Path, *statements: str) -> bytes:
    """The journal of a workspace as its log has it, with some rows changed."""
    stored = [segment for number in range(2) if (segment := log.read_segment(name, number))]
    write_copied_journal(str(place), [(step.database, step.log) for step in map(Segment.unpack, stored)])
    with contextlib.closing(sqlite3.connect(place)) as connection:
        for each in statements:
            assert connection.execute(each).rowcount > 0, each
        connection.commit()
        connection.execute("PRAGMA journal_mode=DELETE")
    return place.read_bytes()


FORGERIES = [
    "UPDATE touches SET path = '../../../../outside/victim'",
    "UPDATE touches SET path = '../../../../outside'",
    "UPDATE touches SET path = '..'",
    "UPDATE touches SET temporary = '../../../../outside/victim'",
    "UPDATE touches SET before_kind = 'file', before_ref = '../../../../../outside/victim', before_bytes = 6",
    "UPDATE touches SET after_kind = 'file', after_ref = '../../../../../outside/victim', after_bytes = 6",
    "UPDATE touches SET before_kind = 'folder', before_ref = '../../../../../outside', before_bytes = 6",
    "INSERT INTO backups VALUES ('../../../../../outside/victim', 0, 6, 1, '')",
]


@pytest.mark.parametrize("state", ["intent", "done"])
@pytest.mark.parametrize("statement", FORGERIES)
async def test_a_forged_record_makes_undo_and_recovery_touch_nothing_outside(
    tmp_path: Path, source: Path, outside: Path, log: LogStore, hosts: Hosts, statement: str, state: str
) -> None:
    first, second = hosts
    name = await written(first, source)
    await call(first, name, "edit", path="n.txt", old_string="1", new_string="2")
    await first.aclose()
    journal = tmp_path / "copy.sqlite"
    database = forged(log, name, journal, statement, f"UPDATE entries SET state = '{state}'")
    put(tmp_path, f"workspaces/{name}/00000002", Segment(database, b"", (), "w").pack())
    for tool, args in (
        ("undo", {}),
        ("write", {"path": "x.txt", "content": "x\n"}),
        ("undo", {}),
        ("bash", {"command": "rm -f n.txt; mkdir d; echo y > d/y"}),
    ):
        await second.call(name, Call(tool=tool, args=args))
    assert unchanged(outside)
    numbers = log.list_log_objects(name).segments
    assert max(numbers) > 2, "it was recovered"
    for number in numbers:
        found = Segment.unpack(log.read_segment(name, number) or b"")
        assert not [each for each in (*found.paths, *found.states) if b"victim" in each.data]


async def test_a_template_with_other_content_is_not_used(
    tmp_path: Path, source: Path, log: LogStore, hosts: Hosts
) -> None:
    first, second = hosts
    name = await written(first, source)
    digest = first.store.get_record(name).template
    (source / "run.sh").write_text("evil\n")
    other = await first.add_template("folder", str(source))
    swapped = (tmp_path / "log" / "templates" / other).read_bytes()
    right = (tmp_path / "log" / "templates" / digest).read_bytes()
    for data in (swapped, b"", right[:-5], zstandard.compress(b"x" * 2_000)):
        put(tmp_path, f"templates/{digest}", data)
        assert (await call(second, name, "list")).fault.code == StorageFault.code
        assert second.store.templates.digests() == []
    put(tmp_path, f"templates/{digest}", right)
    assert (await call(second, name, "list")).status == "ok"
    assert digest_of_folder(second.store.templates.get_template(digest).tree) == digest


async def test_an_object_that_is_too_large_is_not_read(
    tmp_path: Path, source: Path, log: LogStore, hosts: Hosts, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = hosts
    name = await written(first, source)
    monkeypatch.setattr(workspace_log, "MAX_SEGMENT_BYTES", 1 << 20)
    put(tmp_path, f"workspaces/{name}/00000001", bytes(2 << 20))
    result = await call(second, name, "list")
    assert result.fault.code == StorageFault.code, result.text
    assert "more than 1,048,576 bytes" in result.text


async def test_a_command_that_makes_a_folder_a_link_is_stored_and_comes_back(
    tmp_path: Path, source: Path, outside: Path, log: LogStore, hosts: Hosts
) -> None:
    first, second = hosts
    name = await written(first, source)
    for command in ("mkdir -p d/sub && echo x > d/sub/x && chmod -R 777 d", "rm -r d && ln -s pkg d"):
        ran = await call(first, name, "bash", command=command)
        assert ran.status == "ok", ran.text
    assert (await call(second, name, "list")).status == "ok"
    assert os.readlink(second.store.files_folder(name) / "d") == "pkg"
    assert digest_of_folder(second.store.files_folder(name)) == digest_of_folder(
        first.store.files_folder(name)
    )
