"""The record itself."""

import os
import sqlite3
import stat
import subprocess
import sys
import time
from contextlib import closing

import pytest

from handtools import Approval, Call, Change, ChangeSet, Reply, Result
from handtools.core.changes import Node
from handtools.core.files import PlannedWrite
from handtools.host.files.named_blobs import FolderBlobStore
from handtools.runtime.journal import CallRecord, Journal, RetentionLimits
from handtools.runtime.journal.blobs import compress_blob, decompress_blob
from handtools.runtime.journal.change_entries import Transaction
from handtools.runtime.journal.database import MAX_WAITING_RECORDS, JournalPosition, write_copied_journal
from handtools.testing.memory_toolbox import MemoryStore, memory_toolbox


def recorded(journal, number, **facts):
    call = Call(tool="read", args={"path": f"{number}"}, id=f"{number:04}", **facts)
    journal.calls.record(call, Result(f"result {number}", None), 0.0)


def test_the_log_pages_backwards_without_gaps_or_repeats():
    journal = Journal(":memory:", MemoryStore())
    for number in range(50):
        recorded(journal, number)
    seen, before = [], None
    while page := journal.calls.page(before=before, limit=7):
        seen += [call.id for call in page]
        before = page[-1].seq
    assert seen == [f"{number:04}" for number in reversed(range(50))]


def test_a_session_has_a_log_of_its_own():
    journal = Journal(":memory:", MemoryStore())
    recorded(journal, 1, session="a")
    recorded(journal, 2, session="b")
    assert [call.id for call in journal.calls.page(session="b")] == ["0002"]


def test_the_first_ending_of_an_id_stays():
    journal = Journal(":memory:", MemoryStore())
    call = Call(tool="read", args={}, id="x")
    journal.calls.record(call, Result("first", None), 0.0)
    journal.calls.record(call, Result("second", None), 0.0)
    assert journal.calls.recall("x")["content"] == [{"type": "text", "text": "first"}]


def test_a_large_preimage_goes_to_the_store_and_comes_back():
    import random

    store = MemoryStore()
    journal = Journal(":memory:", store)
    data = random.Random(1).randbytes(3 << 20)
    call = Call(tool="write", args={})
    from handtools.testing.memory_toolbox import memory_workspace

    changes = ChangeSet.of(Change.of("a", before=None, after=data))
    steps = memory_workspace().files.plan(changes)
    entry = journal.entries.intend(call, Transaction(changes), steps)
    assert len(store.names()) == 1
    [touch] = journal.entries.touches(entry)
    assert journal.entries.node(touch.after).data == data
    journal.entries.finish(entry)
    journal.retention.forget("a")
    assert store.names() == []


def test_packing_is_undone_exactly():
    for data in (b"", b"x", b"abc" * 1000, bytes(range(256)) * 9):
        assert decompress_blob(compress_blob(data), len(data)) == data
    assert len(compress_blob(b"abc" * 1000)) < 100


def test_the_record_is_readable_by_its_owner_only(tmp_path):
    state = tmp_path / "state"
    journal = Journal(str(state / "journal.sqlite"), FolderBlobStore(state / "blobs"))
    recorded(journal, 1)
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    journal.close()


def test_two_journals_on_one_file_see_each_other(tmp_path):
    one = Journal(str(tmp_path / "j.sqlite"), MemoryStore())
    other = Journal(str(tmp_path / "j.sqlite"), MemoryStore())
    recorded(one, 1)
    assert other.calls.find("0001").tool == "read"
    recorded(other, 2)
    assert [call.id for call in one.calls.page()] == ["0002", "0001"]
    one.close()
    other.close()


async def test_what_an_agent_saw_is_its_own():
    box = memory_toolbox({"a": b"seen"})
    await box.call(Call(tool="read", args={"path": "a"}, agent="one"))
    entries = box.workspace.journal.entries
    assert entries.seen_bytes(Call(tool="edit", args={}, agent="one"), "a") == b"seen"
    assert entries.seen_bytes(Call(tool="edit", args={}, agent="two"), "a") is None


def noted(journal, name, *, sights=None, session="default"):
    call = Call(tool="read", args={"path": name}, id=name, session=session)
    journal.later(CallRecord(call, Result(f"result {name}", None), 1.0, 2.0, sights or {}))


def test_a_record_that_waits_is_found_by_its_id_and_in_the_log():
    journal = Journal(":memory:", MemoryStore())
    noted(journal, "a")
    assert journal.calls.recall("a")["content"] == [{"type": "text", "text": "result a"}]
    noted(journal, "b")
    assert [call.id for call in journal.calls.page()] == ["b", "a"]


def test_records_that_wait_come_before_what_is_written_after_them():
    journal = Journal(":memory:", MemoryStore())
    noted(journal, "first")
    recorded(journal, 2)
    assert [call.id for call in journal.calls.page()] == ["0002", "first"]


def test_a_record_that_waits_keeps_its_times():
    journal = Journal(":memory:", MemoryStore())
    noted(journal, "a")
    assert (journal.calls.find("a").started, journal.calls.find("a").ended) == (1.0, 2.0)


def test_a_sight_that_waits_is_known_to_its_session():
    journal = Journal(":memory:", MemoryStore())
    noted(journal, "a", sights={"f": Node("file", b"as it was")}, session="one")
    assert journal.entries.seen_bytes(Call(tool="edit", args={}, session="one"), "f") == b"as it was"
    assert journal.entries.seen_bytes(Call(tool="edit", args={}, session="two"), "f") is None
    journal.calls.page()
    assert journal.entries.seen_bytes(Call(tool="edit", args={}, session="one"), "f") == b"as it was"


def test_a_record_is_written_in_a_moment_though_nobody_asks(tmp_path):
    path = tmp_path / "j.sqlite"
    journal, other = Journal(str(path), MemoryStore()), Journal(str(path), MemoryStore())
    noted(journal, "a")
    give_up = time.monotonic() + 30
    while other.calls.find("a") is None:
        assert time.monotonic() < give_up
    journal.close()
    other.close()


def test_not_more_than_so_many_records_wait(tmp_path):
    path = tmp_path / "j.sqlite"
    journal, other = Journal(str(path), MemoryStore()), Journal(str(path), MemoryStore())
    for number in range(MAX_WAITING_RECORDS):
        noted(journal, f"{number}")
    assert (
        other.calls.count_since(other.calls.page(limit=MAX_WAITING_RECORDS)[-1]) == MAX_WAITING_RECORDS - 1
    )
    journal.close()
    other.close()


def test_closing_writes_what_waits(tmp_path):
    path = tmp_path / "j.sqlite"
    journal = Journal(str(path), MemoryStore())
    noted(journal, "a")
    journal.close()
    other = Journal(str(path), MemoryStore())
    assert other.calls.find("a") is not None
    other.close()


def test_a_process_that_ends_in_order_has_written_what_waits(tmp_path):
    script = (
        "import sys; from handtools import Call, Result\n"
        "from handtools.runtime.journal import Journal, CallRecord\n"
        "from handtools.testing.memory_toolbox import MemoryStore\n"
        "note = CallRecord(Call(tool='read', args={}, id='a'), Result('x', None), 1.0, 2.0, {})\n"
        "Journal(sys.argv[1], MemoryStore()).later(note)\n"
    )
    path = str(tmp_path / "j.sqlite")
    subprocess.run([sys.executable, "-c", script, path], check=True)
    journal = Journal(path, MemoryStore())
    assert journal.calls.find("a") is not None
    journal.close()


def test_records_that_can_not_be_written_are_said_and_cost_nobody_a_call(tmp_path, caplog):
    path = tmp_path / "j.sqlite"
    with closing(sqlite3.connect(path)) as newer:
        newer.execute("PRAGMA user_version = 999")
    journal = Journal(str(path), MemoryStore())
    noted(journal, "a")
    journal.close()
    assert "1 calls are not in the log" in caplog.text


def test_a_journal_of_the_version_before_is_brought_up_to_date(tmp_path):
    path = str(tmp_path / "journal.sqlite")
    old = Journal(path, MemoryStore())
    old.calls.record(Call(tool="read", args={}, id="x"), Result("one", None), 0.0)
    old.close()
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript(
            "DROP TABLE once; DROP TABLE running; DROP TABLE answers; DROP TABLE attendance;"
            "ALTER TABLE refs DROP COLUMN content; ALTER TABLE calls DROP COLUMN owner;"
            "ALTER TABLE entries DROP COLUMN owner; ALTER TABLE approvals DROP COLUMN owner;"
            "PRAGMA user_version = 1;"
        )
    new = Journal(path, MemoryStore())
    assert new.once.begin("scope", "name")
    assert not new.once.begin("scope", "name")
    assert new.calls.recall("x") is not None
    new.close()


def test_what_happens_once_is_known_to_all_that_share_the_journal(tmp_path):
    first, second = (Journal(str(tmp_path / "journal.sqlite"), MemoryStore()) for _ in range(2))
    assert second.once.value("call", "send") is None
    assert first.once.begin("call", "send")
    assert not second.once.begin("call", "send")
    assert second.once.value("call", "send") == ""
    first.once.end("call", "send", "it is there")
    assert second.once.value("call", "send") == "it is there"
    first.once.drop("call", "send")
    assert second.once.begin("call", "send")
    first.close()
    second.close()


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_the_record_is_for_its_owner_alone_whatever_the_umask(tmp_path, umask):
    path = tmp_path / "journal.sqlite"
    before = os.umask(umask)
    try:
        journal = Journal(str(path), FolderBlobStore(tmp_path / "blobs"))
        journal.calls.record(Call(tool="read", args={}, id="x"), Result("one", None), 0.0)
        modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir() if file.is_file()}
        journal.close()
    finally:
        os.umask(before)
    assert modes == dict.fromkeys(("journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm"), 0o600)


def test_a_record_that_others_could_read_is_closed_to_them_when_it_is_opened(tmp_path):
    path = tmp_path / "journal.sqlite"
    one = Journal(str(path), MemoryStore())
    one.calls.record(Call(tool="read", args={}, id="x"), Result("one", None), 0.0)
    for suffix in ("", "-wal", "-shm"):
        path.with_name(path.name + suffix).chmod(0o644)
    other = Journal(str(path), MemoryStore())
    assert other.calls.recall("x") is not None
    assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
    one.close()
    other.close()


SECRET = "API_KEY=0123456789abcdef-secret"


def printed(journal, name, said, args=None):
    call = Call(tool="bash", args=args or {"command": "true"}, id=name)
    journal.calls.record(call, Result(said, None), 0.0)


def test_forgetting_a_file_forgets_what_calls_printed_of_it():
    journal, outputs = Journal(":memory:", MemoryStore()), MemoryStore()
    printed(journal, "cat", f"first\n{SECRET}\nlast")
    printed(journal, "value", "the key is 0123456789abcdef-secret")
    printed(journal, "quoted", 'said "so":\n' + 'NAME="a \\\\ b" and more')
    printed(journal, "named", "nothing of it", {"command": "wc -l conf/.env"})
    printed(journal, "other", "all is well", {"command": "cat conf/.env.example conf/.envx"})
    for name, data in {"long.log": f"x\n{SECRET}\n", "cat.txt": "whole", "other.log": "fine"}.items():
        outputs.put(data.encode(), name=name)
    now = f'{SECRET}\nNAME="a \\\\ b" and more\n'.encode()
    gone = journal.retention.forget("conf/.env", now=now, outputs=outputs)
    assert gone.calls == ("cat", "long", "named", "quoted", "value")
    assert outputs.names() == ["other.log"]
    for name in ("cat", "value", "quoted", "named"):
        assert "forgotten on request" in str(journal.calls.recall(name))
        assert journal.calls.find(name).args == {}
    assert "all is well" in str(journal.calls.recall("other"))


def test_forgetting_a_file_forgets_the_question_about_it():
    journal = Journal(":memory:", MemoryStore())
    call = Call(tool="bash", args={"command": "x"}, id="asked")
    approval = Approval(
        call_id="asked", title="t", preview=f"+{SECRET}", rule="r", fingerprint="f", remembered="x"
    )
    journal.calls.suspend(call, approval)
    journal.calls.record(call, Result("waiting", None, status="pending", request=approval), 0.0)
    journal.calls.note_answer(approval, Reply(allow=True))
    assert [asked.title for asked in journal.calls.answered_questions("asked")] == ["t"]
    assert journal.retention.forget("a", now=SECRET.encode()).calls == ("asked",)
    assert journal.calls.waiting() == []
    assert journal.calls.answered_questions("asked") == []


def test_forgetting_says_where_else_the_same_bytes_are_kept():
    journal = Journal(":memory:", MemoryStore())
    for name in ("a", "b"):
        change = Change(name, None, Node("file", SECRET.encode()))
        journal.entries.finish(
            journal.entries.intend(
                Call(tool="write", args={}, id=name),
                Transaction(ChangeSet.of(change)),
                [PlannedWrite(change, "")],
            )
        )
    gone = journal.retention.forget("a")
    assert (gone.copies, gone.calls) == (("b",), ("a",))


def test_of_a_long_file_some_lines_are_looked_for_and_that_is_said():
    journal = Journal(":memory:", MemoryStore())
    now = "".join(f"line number {number}\n" for number in range(5_000)).encode()
    assert journal.retention.forget("a", now=now).sampled
    assert not journal.retention.forget("a", now=b"line number 1\n").sampled


def test_what_is_recorded_stays_when_another_process_closes_the_journal(tmp_path):
    """A second connection of this process, opened and closed, costs the first one none of its locks."""
    path = str(tmp_path / "journal.sqlite")
    journal, beside = Journal(path, MemoryStore()), Journal(path, MemoryStore())
    recorded(journal, 1)
    assert [call.id for call in journal.calls.page()] == ["0001"]
    beside.calls.page()
    beside.close()
    visit = (
        "from handtools.runtime.journal.database import Database\n"
        f"database = Database({path!r}, lambda _: None)\n"
        "print(*database.peek('SELECT count(*) FROM calls', ()))\ndatabase.close()"
    )

    def calls_elsewhere():
        return subprocess.run([sys.executable, "-c", visit], check=True, capture_output=True).stdout

    assert calls_elsewhere() == b"1\n"
    recorded(journal, 2)
    assert [call.id for call in journal.calls.page()] == ["0002", "0001"]
    assert calls_elsewhere() == b"2\n"
    journal.close()


def test_a_journal_is_put_together_from_copies_made_one_after_the_other(tmp_path):
    journal = Journal(str(tmp_path / "journal.sqlite"), MemoryStore())
    copies, position = [], JournalPosition()
    for number in range(3):
        recorded(journal, number)
        copy = journal.copied_since(position)
        copies.append((copy.database, copy.log))
        position = copy.position
    assert journal.copied_since(position).is_empty
    journal.close()
    assert [database is not None for database, _ in copies] == [True, False, False]
    path = str(tmp_path / "other" / "journal.sqlite")
    write_copied_journal(path, copies)
    other = Journal(path, MemoryStore())
    assert [call.id for call in other.calls.page()] == ["0002", "0001", "0000"]
    other.close()


def test_what_is_older_than_it_may_be_is_dropped_with_its_calls():
    journal = Journal(":memory:", MemoryStore())
    change = Change("a", None, Node("file", b"one"))
    call = Call(tool="write", args={}, id="old")
    journal.entries.finish(
        journal.entries.intend(call, Transaction(ChangeSet.of(change)), [PlannedWrite(change, "")])
    )
    recorded(journal, 1)
    assert journal.retention.prune(RetentionLimits(max_age=3600)) == 0
    assert len(journal.entries.of_call("old")) == 1
    assert journal.retention.prune(RetentionLimits(max_age=-3600)) > 0
    assert journal.calls.page() == []
    assert journal.entries.of_call("old") == []


def test_an_owner_finds_calls_by_the_ids_that_it_gave_them_and_by_no_others():
    journal = Journal(":memory:", MemoryStore())
    mine, yours = journal.owned_by("me"), journal.owned_by("you")
    call = mine.owned(Call(tool="read", args={}, id=mine.own_id("x")))
    mine.calls.record(call, Result("mine", None), 0.0)
    assert call.owner == "me"
    assert mine.calls.has(mine.call_named("x"))
    assert mine.call_named(call.id) == call.id
    assert not yours.calls.has(yours.call_named("x"))
    assert mine.own_id("new") != yours.own_id("new")
    assert journal.own_id("new") == "new"
    assert journal.owned(call).owner == "me"
