"""The record itself."""

import gc
import os
import random
import sqlite3
import stat
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from contextlib import closing
from dataclasses import astuple, replace
from pathlib import Path

import pytest

from handtools import Approval, Call, Change, ChangeSet, Reply, Result
from handtools.core.call import output_file_name
from handtools.core.changes import BackupRef, Node, sha256_hex
from handtools.core.commands import CommandExit, CommandOutput, FinishedCommand
from handtools.core.errors import HostError, JournalDamaged
from handtools.core.files import PlannedWrite
from handtools.host.files.backups import UPPER_LAYER_NAME, FolderBackups
from handtools.host.files.folder_blob_store import FolderBlobStore
from handtools.runtime.journal import CallRecord, Journal, RetentionLimits, database
from handtools.runtime.journal.blobs import compress_blob, decompress_blob
from handtools.runtime.journal.change_entries import Transaction
from handtools.runtime.journal.database import CHECKPOINT_WRITES, JournalPosition, write_copied_journal
from handtools.testing.memory_toolbox import MemoryStore, memory_toolbox


def recorded(journal, number, **facts):
    call = Call(tool="read", args={"path": f"{number}"}, id=f"{number:04}", **facts)
    journal.calls.record(call, Result(f"result {number}", None), 0.0)


def closed_after_one_call(folder):
    path = folder / "j.sqlite"
    journal = Journal(str(path), MemoryStore())
    recorded(journal, 1)
    journal.close()
    return path, journal


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
    store = MemoryStore()
    journal = Journal(":memory:", store)
    some = random.Random(1).randbytes(1 << 20)
    versions = [some[1:], some, some + b"and a little more"]
    for number, data in enumerate(versions):
        changed(journal, f"{number}", Change("a", None, Node("file", data)))
        assert len(store.names()) == number
    changed(journal, "edit", Change("a", Node("file", some), Node("file", versions[2] + b"!")))
    for number, data in enumerate(versions):
        assert [change.after.data for change in journal.entries.changes_of_call(f"{number}")] == [data]
    [edit] = journal.entries.changes_of_call("edit")
    assert edit.after.data == versions[2] + b"!"
    journal.retention.forget("a")
    assert store.names() == []


def test_packing_is_undone_exactly():
    for data in (b"", b"x", b"abc" * 1000, bytes(range(256)) * 9):
        assert decompress_blob(compress_blob(data)) == data
    assert len(compress_blob(b"abc" * 1000)) < 100
    assert [len(compress_blob(b"a" * size)) < size for size in (255, 256)] == [False, True]
    with pytest.raises(HostError, match="damaged and can't be restored"):
        decompress_blob(b"zno frame")


def test_the_record_is_readable_by_its_owner_only(tmp_path):
    state = tmp_path / "state"
    journal = Journal(str(state / "journal.sqlite"), FolderBlobStore(state / "blobs"))
    recorded(journal, 1)
    assert stat.S_IMODE(state.stat().st_mode) == 0o700
    journal.close()


def test_two_journals_on_one_file_see_each_other(tmp_path):
    one = Journal(str(tmp_path / "j.sqlite"), MemoryStore())
    other = Journal(one.path, MemoryStore())
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


def noted(journal, name, *, read_nodes=None, session="default"):
    call = Call(tool="read", args={"path": name}, id=name, session=session)
    journal.record_later(CallRecord(call, Result(f"result {name}", None), 1.0, 2.0, read_nodes or {}))


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
    noted(journal, "a", read_nodes={"f": Node("file", b"as it was")}, session="one")
    assert journal.entries.seen_bytes(Call(tool="edit", args={}, session="one"), "f") == b"as it was"
    assert journal.entries.seen_bytes(Call(tool="edit", args={}, session="two"), "f") is None
    journal.calls.page()
    assert journal.entries.seen_bytes(Call(tool="edit", args={}, session="one"), "f") == b"as it was"


def test_what_was_read_last_is_what_an_agent_saw():
    journal = Journal(":memory:", MemoryStore())
    for name, data in (("a", b"one"), ("b", b"one"), ("c", b"two")):
        noted(journal, name, read_nodes={"f": Node("file", data)})
        journal.calls.page()
    assert journal.entries.seen_bytes(Call(tool="edit", args={}), "f") == b"two"


def test_a_record_is_written_in_a_moment_though_nobody_asks(tmp_path):
    path = tmp_path / "j.sqlite"
    journal, other = Journal(str(path), MemoryStore()), Journal(str(path), MemoryStore())
    noted(journal, "a")
    give_up = time.monotonic() + 30
    while other.calls.find("a") is None:
        assert time.monotonic() < give_up
    journal.close()
    other.close()


def test_not_more_than_256_records_wait(tmp_path, monkeypatch):
    monkeypatch.setattr(database, "WRITE_DELAY_SECONDS", 60.0)  # on a busy machine the thread comes between
    path = tmp_path / "j.sqlite"
    journal, other = Journal(str(path), MemoryStore()), Journal(str(path), MemoryStore())
    for number in range(256):
        noted(journal, f"{number}")
    assert len(other.calls.page(limit=300)) == 256
    journal.close()
    other.close()


def test_records_of_8_mebibytes_that_were_read_do_not_wait(tmp_path):
    path = tmp_path / "j.sqlite"
    journal, other = Journal(str(path), MemoryStore()), Journal(str(path), MemoryStore())
    assert other.calls.page() == []
    noted(journal, "a", read_nodes={f"{number}": Node("file", bytes(1 << 20)) for number in range(8)})
    assert [call.id for call in other.calls.page()] == ["a"]
    journal.close()
    other.close()


def journal_threads():
    return {thread for thread in threading.enumerate() if thread.name == "handtools-journal"}


def test_one_thread_writes_all_that_waits():
    journal, before = Journal(":memory:", MemoryStore()), journal_threads()
    for number in range(20):
        noted(journal, f"{number}")
    assert len(journal_threads() - before) <= 1


def test_a_journal_that_is_not_used_any_more_is_not_held_for_the_exit():
    journal, before = Journal(":memory:", MemoryStore()), journal_threads()
    noted(journal, "a")
    for thread in journal_threads() - before:
        thread.join(30)
    left = weakref.ref(journal)
    del journal
    gc.collect()
    assert left() is None


def test_the_write_ahead_log_begins_anew_after_many_writes(tmp_path):
    journal = Journal(str(tmp_path / "j.sqlite"), MemoryStore())
    sizes = []
    for _ in range(3):
        for _ in range(CHECKPOINT_WRITES):
            journal.callback_runs.note_delegation("call", 1)
        sizes.append((tmp_path / "j.sqlite-wal").stat().st_size)
    assert sizes[2] < 2 * sizes[0]
    journal.close()


def test_a_damaged_journal_is_set_aside_and_that_is_said(tmp_path):
    path = tmp_path / "j.sqlite"
    path.write_bytes(b"no database" * 100)
    journal = Journal(str(path), MemoryStore())
    recorded(journal, 1)
    assert "was damaged" in journal.healed
    assert [call.id for call in journal.calls.page()] == ["0001"]
    assert len(list(tmp_path.glob("*.damaged-*"))) == 1
    journal.close()


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
        "Journal(sys.argv[1], MemoryStore()).record_later(note)\n"
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
    assert "1 calls could not be logged" in caplog.text


def test_a_callback_that_a_call_has_run_is_known_to_all_that_share_the_journal(tmp_path):
    first, second = (Journal(str(tmp_path / "journal.sqlite"), MemoryStore()) for _ in range(2))
    assert second.callback_runs.result("call", "send") is None
    assert first.callback_runs.begin("call", "send")
    assert not second.callback_runs.begin("call", "send")
    assert second.callback_runs.result("call", "send") is None
    first.callback_runs.finish("call", "send", "it is there")
    assert second.callback_runs.result("call", "send") == "it is there"
    assert second.callback_runs.begin("call", "send to another")
    assert second.callback_runs.begin("another call", "send")
    first.close()
    second.close()


def test_the_depth_of_a_delegation_is_known_to_all_that_share_the_journal(tmp_path):
    first, second = (Journal(str(tmp_path / "journal.sqlite"), MemoryStore()) for _ in range(2))
    assert second.callback_runs.delegation_depth("call") == 0
    first.callback_runs.note_delegation("call", 2)
    first.callback_runs.note_delegation("call", 3)
    assert second.callback_runs.delegation_depth("call") == 3
    assert second.callback_runs.delegation_depth("another call") == 0
    first.close()
    second.close()


def test_a_hunk_is_accepted_in_its_own_file_only():
    entries = Journal(":memory:", MemoryStore()).entries
    entries.accept_hunk("a\udcff", "1")
    entries.accept_hunk("a\udcff", "1")
    assert entries.is_hunk_accepted("a\udcff", "1")
    assert not entries.is_hunk_accepted("a\udcff", "2")
    assert not entries.is_hunk_accepted("b", "1")


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
    printed(journal, "typed", "nothing of it", {"command": f"echo {SECRET}"})
    printed(journal, "other", "all is well", {"command": "cat conf/.env.example conf/.envx"})
    for name, data in {"long.log": f"x\n{SECRET}\n", "cat.txt": "whole", "other.log": "fine"}.items():
        outputs.put(data.encode(), name=name)
    now = f'{SECRET}\nNAME="a \\\\ b" and more\n'.encode()
    gone = journal.retention.forget("conf/.env", now=now, output_store=outputs)
    assert gone.calls == ("cat", "long", "named", "quoted", "typed", "value")
    assert outputs.names() == ["other.log"]
    for name in ("cat", "value", "quoted", "named", "typed"):
        assert "forgotten on request" in str(journal.calls.recall(name))
        assert journal.calls.find(name).args == {}
    assert "all is well" in str(journal.calls.recall("other"))


def test_forgetting_a_file_forgets_the_outputs_of_calls_with_odd_ids():
    journal, outputs = Journal(":memory:", MemoryStore()), MemoryStore()
    printed(journal, "functions.bash:0", "of it", {"command": "cat conf/.env"})
    printed(journal, "functions.bash:1", "of another")
    names = [output_file_name(f"functions.bash:{number}", ".log") for number in range(2)]
    for name in names:
        outputs.put(b"whole", name=name)
    assert journal.retention.forget("conf/.env", output_store=outputs).calls == ("functions.bash:0",)
    assert outputs.names() == names[1:]


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
    again = Call(tool="bash", args={"command": "y"}, id="asked again")
    journal.calls.record(again, Result("waiting", None, status="pending"), 0.0)
    journal.calls.suspend(again, replace(approval, call_id=again.id))
    gone = journal.retention.forget("a", now=SECRET.encode())
    assert gone.calls == ("asked", "asked again")
    assert journal.calls.waiting() == []
    assert journal.calls.answered_questions("asked") == []


def changed(journal, call_id, change, **facts):
    """Records a change of a call; gives its entry."""
    call = Call(tool="write", args={}, id=call_id)
    transaction = Transaction(ChangeSet.of(change), **facts)
    ordinal = len(journal.entries.of_call(call_id))
    entry = journal.entries.intend(call, transaction, [PlannedWrite(change, "")], ordinal=ordinal)
    journal.entries.finish(entry)
    return entry


def test_forgetting_says_where_else_the_same_bytes_are_kept():
    journal = Journal(":memory:", MemoryStore())
    for name in ("a", "b"):
        changed(journal, name, Change(name, None, Node("file", SECRET.encode())))
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
        assert not copy.is_empty
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
    changed(journal, "old", Change("a", None, Node("file", b"one")))
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
    assert mine.calls_named("x") == mine.calls_named(call.id) == [call.id]
    assert yours.calls_named("x") == []
    assert not yours.calls.has(call.id)
    assert yours.calls.page() == []
    assert mine.own_id("new") != yours.own_id("new")
    assert journal.own_id("new") == "new"
    assert mine.own_id("new") == "fc06e557dcc63facbda7e44416ae1e77"  # as earlier versions have stored it
    assert journal.owned(call).owner == "me"


def test_what_an_agent_read_long_ago_is_dropped_with_its_bytes():
    journal = Journal(":memory:", MemoryStore())
    noted(journal, "a", read_nodes={"f": Node("file", b"as it was")})
    assert journal.retention.kept_bytes() > 0
    assert journal.retention.prune(RetentionLimits(max_age=-3600)) > 0
    assert journal.retention.kept_bytes() == 0


def test_what_a_prune_would_drop_is_counted_before():
    journal = Journal(":memory:", MemoryStore())
    changed(journal, "old", Change("a", None, Node("file", b"one")))
    recorded(journal, 1)
    kept = journal.retention.kept_bytes()
    assert astuple(journal.retention.prunable(RetentionLimits(max_age=3600))) == (0, 0, 0, 0)
    old = journal.retention.prunable(RetentionLimits(max_age=-3600, max_bytes=1))
    assert (old.entries, old.calls, old.bytes, old.excess_bytes) == (1, 1, kept, kept - 1)


def edited(journal, path, size, changed_bytes):
    """A change of some bytes in the middle of a file that can't be compressed; gives what it keeps."""
    kept, some = journal.retention.kept_bytes(), random.Random(path)
    before = some.randbytes(size)
    middle = slice((size - changed_bytes) // 2, (size + changed_bytes) // 2)
    after = before[: middle.start] + some.randbytes(changed_bytes) + before[middle.stop :]
    changed(journal, path, Change(path, Node("file", before), Node("file", after)))
    return journal.retention.kept_bytes() - kept


def test_where_less_than_a_quarter_of_a_file_changed_only_that_is_kept_beside_the_old_bytes():
    journal = Journal(":memory:", MemoryStore())
    assert edited(journal, "a", 10_000, 2_400) < 12_600
    assert edited(journal, "b", 10_000, 2_600) > 20_000
    assert edited(journal, "c", 10_000, 2_500) < 12_700
    assert edited(journal, "d", 256, 10) < 400
    assert edited(journal, "e", 255, 10) > 500


def test_forgetting_a_file_costs_no_room_for_others():
    journal = Journal(":memory:", MemoryStore())
    kept = edited(journal, "a", 10_000, 100)
    edited(journal, "b", 10_000, 100)
    journal.retention.forget("b")
    assert journal.retention.kept_bytes() == kept


def test_what_a_call_left_at_a_path_is_known_and_what_an_undo_or_a_scan_left_is_not():
    journal = Journal(":memory:", MemoryStore())
    one, two = Node("file", b"one"), Node("file", b"two")
    assert journal.entries.left_at("f") is None
    changed(journal, "made", Change("f", None, one))
    assert journal.entries.left_at("f").digest == one.digest
    changed(journal, "undo", Change("f", one, two), kind="undo")
    assert journal.entries.left_at("f") is None
    changed(journal, "found", Change("f", two, one), coverage="scan")
    assert journal.entries.left_at("f") is None


def test_a_folder_that_came_as_a_whole_stays_one_among_the_paths_changed_since():
    journal = Journal(":memory:", MemoryStore())
    first = changed(journal, "first", Change("old", None, Node("file", b"")))
    whole = Node("folder", held=BackupRef("item/tree", "stat:1", 10))
    changed(journal, "back", Change("tree", None, whole))
    newest = changed(
        journal, "mode", Change("tree", Node("folder", mode=0o755), Node("folder", mode=0o700))
    )
    assert journal.entries.paths_since(first) == (newest, {"tree": True})
    assert journal.entries.paths_since(newest) == (newest, {})


def test_the_start_of_an_id_finds_the_calls_that_begin_with_it():
    journal = Journal(":memory:", MemoryStore())
    for number in (11, 12, 20):
        recorded(journal, number)
    assert journal.calls.ids_with_prefix("001") == ["0011", "0012"]
    assert journal.calls.ids_with_prefix("0011") == ["0011"]
    assert journal.calls.ids_with_prefix("1") == []


def test_an_owner_sees_and_cancels_its_own_running_calls_only(tmp_path):
    journal = Journal(str(tmp_path / "j.sqlite"), MemoryStore())
    cancelled = threading.Event()
    call = Call(tool="bash", args={}, id="long", owner="me")
    journal.own_running.begin(call, cancelled.set)
    mine, yours = journal.owned_by("me"), journal.owned_by("you")
    give_up = time.monotonic() + 30
    while not mine.running.listed():
        assert time.monotonic() < give_up
    assert yours.running.listed() == []
    assert not yours.running.request_cancel("long", "you")
    assert mine.running.request_cancel("long", "me")
    assert cancelled.wait(30)
    journal.own_running.end("long")
    journal.close()
    assert not list(tmp_path.glob("*-wal"))


def test_forgetting_a_file_of_a_folder_that_was_moved_as_a_whole_erases_its_backup(tmp_path):
    backups = FolderBackups(tmp_path)
    item = backups.create_item()
    secret, other = (item.path / name for name in ("top/sub/.env", "top/sub/other"))
    secret.parent.mkdir(parents=True)
    for file in (secret, other):
        file.write_text(SECRET)
    journal = Journal(":memory:", MemoryStore(), backups)
    whole = Node("folder", held=BackupRef(f"{item.name}/top", "stat:1", 10))
    changed(journal, "moved", Change("top", whole, None))
    with secret.open() as kept:
        journal.retention.forget("top/sub/.env")
        assert SECRET not in kept.read()
    assert not secret.exists()
    assert other.exists()


def test_a_closed_journal_opens_again_at_its_next_use(tmp_path):
    journal = Journal(str(tmp_path / "j.sqlite"), MemoryStore())
    recorded(journal, 1)
    journal.close()
    recorded(journal, 2)
    assert [call.id for call in journal.calls.page()] == ["0002", "0001"]
    journal.close()
    assert not list(tmp_path.glob("*-wal"))
    of_memory = Journal(":memory:", MemoryStore())
    recorded(of_memory, 1)
    of_memory.close()
    assert of_memory.calls.page() == []


def test_pruning_by_size_drops_the_oldest_and_no_more_than_it_must():
    journal = Journal(":memory:", MemoryStore())
    sizes = [edited(journal, name, 1_000, 900) for name in ("a", "b", "c")]
    freed = journal.retention.prune(RetentionLimits(max_bytes=sum(sizes) - 1))
    assert freed == sizes[0]
    assert [bool(journal.entries.of_call(name)) for name in ("a", "b", "c")] == [False, True, True]
    assert journal.retention.prune(RetentionLimits(max_bytes=sum(sizes[1:]))) == 0
    assert journal.retention.prune(RetentionLimits(max_bytes=sizes[2])) == sizes[1]
    assert journal.entries.of_call("c")


def test_pruning_by_size_drops_all_that_is_too_old_as_well():
    journal = Journal(":memory:", MemoryStore())
    sizes = [edited(journal, name, 1_000, 900) for name in ("a", "b", "c")]
    limits = RetentionLimits(max_bytes=sum(sizes) - 1, max_age=-3600)
    assert journal.retention.prune(limits) == sum(sizes)


@pytest.mark.parametrize("way", ["prune", "forget"])
def test_a_backup_goes_with_the_change_that_it_was_kept_for(tmp_path, way):
    backups = FolderBackups(tmp_path)
    item = backups.create_item()
    (item.path / "f").write_bytes(b"large")
    journal = Journal(":memory:", MemoryStore(), backups)
    held = Node("file", b"", None, BackupRef(f"{item.name}/f", "stat:1", 5))
    changed(journal, "rm", Change("f", held, None))
    assert journal.retention.kept_bytes() == 5
    if way == "prune":
        assert journal.retention.prune(RetentionLimits(max_age=-3600)) == 5
    else:
        journal.retention.forget("f")
    assert journal.retention.kept_bytes() == 0
    assert not (item.path / "f").exists()


def test_a_journal_cut_short_after_it_was_closed_is_noticed_by_the_same_process(tmp_path):
    path, journal = closed_after_one_call(tmp_path)
    os.truncate(path, path.stat().st_size - 4096)
    recorded(journal, 2)
    assert "shorter than it should be" in journal.healed
    assert [call.id for call in journal.calls.page()] == ["0002"]
    journal.close()


def test_a_journal_whose_folder_can_not_be_made_says_why(tmp_path):
    (tmp_path / "file").write_bytes(b"")
    journal = Journal(str(tmp_path / "file" / "j.sqlite"), MemoryStore())
    with pytest.raises(HostError, match=r"can't be used: File exists\.$"):
        recorded(journal, 1)


MARK = Approval(call_id="c", title="t", preview="", rule="r", fingerprint="f", remembered="")


def mark_once(journal):
    """Write a row into each table of what a call or a review has done once."""
    journal.callback_runs.begin("c", "send")
    journal.callback_runs.finish("c", "send", "done")
    journal.callback_runs.note_delegation("c", 1)
    journal.shown_guidance.mark_shown(Call(tool="read", args={}, session="s"), "AGENTS.md")
    journal.entries.accept_hunk("a", "1")
    journal.calls.note_answer(MARK, Reply(allow=True))


def is_marked(journal):
    return (
        journal.callback_runs.result("c", "send") == "done",
        journal.callback_runs.delegation_depth("c") == 1,
        journal.entries.is_hunk_accepted("a", "1"),
        len(journal.calls.answered_questions("c")) == 1,
    )


def test_what_is_as_old_as_it_may_be_is_kept_and_older_is_dropped(monkeypatch):
    day, now = 86_400.0, [0.0]
    monkeypatch.setattr(time, "time", lambda: now[0])
    journal = Journal(":memory:", MemoryStore())
    changed(journal, "old", Change("a", None, Node("file", b"one")))
    call = Call(tool="read", args={}, id="read")
    journal.calls.record(call, Result("x", None), 0.0, 0.0)
    mark_once(journal)
    journal.entries.record_reads(call, {"f": Node("file", b"as it was")})

    def kept():
        return (
            bool(journal.entries.of_call("old")),
            journal.calls.has("read"),
            is_marked(journal),
            journal.entries.seen_bytes(call, "f"),
        )

    now[0] = 90 * day
    limits = RetentionLimits()
    assert astuple(journal.retention.prunable(limits)) == (0, 0, 0, 0)
    assert journal.retention.prune(limits) == 0
    assert kept() == (True, True, (True, True, True, True), b"as it was")
    now[0] += 1
    old = journal.retention.prunable(limits)
    assert (old.entries, old.calls) == (1, 1)
    assert journal.retention.prune(limits) > old.bytes > 0
    assert kept() == (False, False, (False, False, False, False), None)
    assert journal.shown_guidance.mark_shown(Call(tool="read", args={}, session="s"), "AGENTS.md")


def test_two_gibibytes_are_kept_unless_told_otherwise():
    journal = Journal(":memory:", MemoryStore())
    held = Node("folder", held=BackupRef("item/tree", "stat:1", (2 << 30) + 5))
    changed(journal, "rm", Change("tree", held, None))
    assert journal.retention.prunable(RetentionLimits()).excess_bytes == 5


def numbers_given(journal, name):
    """Record a call with one change; return the numbers of the call, the change and the version."""
    entry = changed(journal, name, Change(name, None, Node("file", b"one")))
    journal.calls.record(Call(tool="write", args={}, id=name), Result("x", None), 0.0)
    [touch] = journal.entries.touches(entry)
    return (journal.calls.newest_seq(), entry, touch.id)


def test_numbers_go_on_where_they_were_when_everything_was_pruned(tmp_path):
    everything = RetentionLimits(max_age=-3600)
    for number in (1, 2, 3):
        journal = Journal(str(tmp_path / "j.sqlite"), MemoryStore())
        assert numbers_given(journal, f"{number}") == (number, number, number)
        journal.retention.prune(everything)
        journal.retention.prune(everything)
        assert journal.calls.page() == []
        assert journal.calls_named(f"{number}") == []
        journal.close()


def test_the_number_of_a_forgotten_version_is_not_given_again():
    journal = Journal(":memory:", MemoryStore())
    numbers_given(journal, "a")
    journal.retention.forget("a")
    assert numbers_given(journal, "b") == (2, 2, 2)
    assert journal.entries.find_touch(1) is None


def test_nothing_is_left_of_a_change_and_its_undo_when_they_were_pruned(tmp_path):
    path = tmp_path / "j.sqlite"
    journal, node = Journal(str(path), MemoryStore()), Node("file", b"one")
    [touch] = journal.entries.touches(changed(journal, "old", Change("a", None, node)))
    changed(journal, "undo", Change("a", node, None), kind="undo", reverts=(touch.id,))
    journal.retention.prune(RetentionLimits(max_age=-3600))
    journal.close()
    with closing(sqlite3.connect(path)) as database:
        for table in ("entries", "touches", "reversals", "blobs"):
            assert database.execute(f"SELECT count(*) FROM {table}").fetchone() == (0,), table


def test_a_file_that_was_forgotten_is_remembered_again_when_it_is_read_again():
    journal, call = Journal(":memory:", MemoryStore()), Call(tool="read", args={})
    read_nodes = {"f": Node("file", b"as it is")}
    journal.entries.record_reads(call, read_nodes)
    journal.retention.forget("f")
    assert journal.entries.seen_bytes(call, "f") is None
    journal.entries.record_reads(call, read_nodes)
    assert journal.entries.seen_bytes(call, "f") == b"as it is"


def test_of_what_failed_halfway_nothing_is_recorded_and_all_that_follows_is(tmp_path):
    journal = Journal(str(tmp_path / "j.sqlite"), MemoryStore())
    with pytest.raises(KeyboardInterrupt), journal.together():
        recorded(journal, 1)
        raise KeyboardInterrupt
    assert journal.calls.page() == []
    recorded(journal, 2)
    other = Journal(str(tmp_path / "j.sqlite"), MemoryStore())
    assert [call.id for call in other.calls.page()] == ["0002"]
    journal.close()
    other.close()


@pytest.mark.parametrize("version", [2, 6, 999])
def test_a_journal_of_another_schema_version_is_left_alone_and_that_is_said(tmp_path, version):
    path, journal = closed_after_one_call(tmp_path)
    with closing(sqlite3.connect(path)) as other:
        other.execute(f"PRAGMA user_version = {version}")
    with pytest.raises(
        HostError,
        match=f"has schema version {version}, but this handtools uses version 1. Use the handtools that wrote it",
    ):
        recorded(journal, 2)
    assert journal.healed == ""
    with closing(sqlite3.connect(path)) as other:
        assert other.execute("SELECT count(*) FROM calls").fetchone() == (1,)


def test_a_database_of_another_program_is_left_alone(tmp_path):
    path = tmp_path / "j.sqlite"
    with closing(sqlite3.connect(path)) as foreign:
        foreign.execute("CREATE TABLE theirs (x)")
        foreign.execute("PRAGMA user_version = 1")
    journal = Journal(str(path), MemoryStore())
    with pytest.raises(HostError, match=r"can't be used: no such table: calls\.$"):
        recorded(journal, 1)
    assert journal.healed == ""
    assert not list(tmp_path.glob("*.damaged-*"))


def damage(path, table):
    """Overwrites the first page of a table or an index."""
    with closing(sqlite3.connect(path)) as database:
        [size] = database.execute("PRAGMA page_size").fetchone()
        [page] = database.execute("SELECT rootpage FROM sqlite_master WHERE name = ?", (table,)).fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(b"x" * size)


def test_damage_that_only_some_calls_meet_is_told_and_costs_the_others_nothing(tmp_path):
    path, journal = closed_after_one_call(tmp_path)
    damage(path, "sqlite_autoindex_pending_commands_1")
    with pytest.raises(JournalDamaged, match="is damaged, or its disk could not read it"):
        journal.pending_commands.find("x")
    with pytest.raises(JournalDamaged), journal.together():
        recorded(journal, 2)
        journal.pending_commands.find("x")
    recorded(journal, 3)
    assert [call.id for call in journal.calls.page()] == ["0003", "0001"]
    journal.close()


@pytest.mark.parametrize("table", ["calls", "entries", "touches", "blobs", "sqlite_sequence"])
def test_a_journal_in_which_nothing_more_can_be_recorded_is_set_aside_at_the_next_start(tmp_path, table):
    path, journal = closed_after_one_call(tmp_path)
    damage(path, table)
    recorded(journal, 2)
    assert "was damaged" in journal.healed
    assert [call.id for call in journal.calls.page()] == ["0002"]
    journal.close()


def test_a_journal_waits_half_a_minute_for_one_that_writes(tmp_path):
    journal = Journal(str(tmp_path / "j.sqlite"), MemoryStore())
    with journal.together() as connection:
        assert connection.execute("PRAGMA busy_timeout").fetchone() == (30_000,)
    journal.close()


def test_without_its_log_the_whole_journal_is_copied(tmp_path):
    journal = Journal(str(tmp_path / "journal.sqlite"), MemoryStore())
    recorded(journal, 1)
    first = journal.copied_since(JournalPosition())
    (tmp_path / "journal.sqlite-wal").unlink()
    copy = journal.copied_since(first.position)
    assert (copy.position, copy.log) == (JournalPosition(), b"")
    assert copy.database == (tmp_path / "journal.sqlite").read_bytes()
    journal.close()


def test_copies_go_on_after_the_journal_was_closed(tmp_path):
    journal = Journal(str(tmp_path / "journal.sqlite"), MemoryStore())
    recorded(journal, 1)
    first = journal.copied_since(JournalPosition())
    journal.close()
    recorded(journal, 2)
    second = journal.copied_since(first.position)
    assert second.database is not None
    journal.close()
    path = str(tmp_path / "other" / "journal.sqlite")
    write_copied_journal(path, [(each.database, each.log) for each in (first, second)])
    other = Journal(path, MemoryStore())
    assert [call.id for call in other.calls.page()] == ["0002", "0001"]
    other.close()


def test_bytes_that_are_in_the_backups_and_in_the_journal_go_from_both():
    journal = Journal(":memory:", MemoryStore())
    for data in (b"some", b""):
        held = Node("file", data, None, BackupRef(f"item/{len(data)}", sha256_hex(data), len(data)))
        changed(journal, "x", Change(f"{len(data)}", held, None))
    back = [change.before for change in journal.entries.changes_of_call("x")]
    assert [(node.data, node.held.bytes) for node in back] == [(b"some", 4), (b"", 0)]
    assert journal.retention.prune(RetentionLimits(max_age=-3600)) > 0
    assert journal.retention.kept_bytes() == 0


def test_a_change_that_could_not_be_closed_is_settled_by_whoever_calls_next():
    journal = Journal(":memory:", MemoryStore())
    mine, yours = journal.owned_by("me"), journal.owned_by("you")
    mine.entries.unsettled.add(7)
    assert journal.entries.unsettled == yours.entries.unsettled == {7}


def test_more_than_a_batch_of_old_changes_is_dropped_at_once():
    journal = Journal(":memory:", MemoryStore())
    for number in range(501):
        changed(journal, f"{number}", Change(f"{number}", None, Node("file", b"one")))
    journal.retention.prune(RetentionLimits(max_age=-3600))
    assert journal.entries.selected("session", "default") == []
    assert journal.retention.kept_bytes() == 0


def test_forgetting_a_file_forgets_the_changes_of_a_command_that_wait_for_an_answer(tmp_path):
    backups = FolderBackups(tmp_path)
    item = backups.create_item()
    secret = item.path / UPPER_LAYER_NAME / "conf"
    secret.parent.mkdir()
    secret.write_text(SECRET)
    journal = Journal(":memory:", MemoryStore(), backups)
    made = Node("file", b"", None, BackupRef(f"{item.name}/{UPPER_LAYER_NAME}/conf", "stat:1", 10))
    said = CommandOutput(head=b"", tail=b"", bytes=0, lines=0)
    ran = FinishedCommand(exit=CommandExit(code=0, output=said), delta=(Change("conf", None, made),))
    journal.pending_commands.keep("held", ran)
    printed(journal, "held", "waits", {"command": "make conf"})
    journal.retention.forget("conf")
    assert journal.pending_commands.find("held") is None
    assert not secret.exists()


def test_a_checkpoint_that_stopped_halfway_is_no_damage(tmp_path):
    path = tmp_path / "j.sqlite"
    journal = Journal(str(path), MemoryStore())
    for number in range(3):
        recorded(journal, number)
    log = (tmp_path / "j.sqlite-wal").read_bytes()
    journal.close()
    whole, halfway = path.read_bytes(), tmp_path / "halfway.sqlite"
    halfway.write_bytes(whole[: len(whole) // 2])
    (tmp_path / "halfway.sqlite-wal").write_bytes(log)
    again = Journal(str(halfway), MemoryStore())
    assert [call.id for call in again.calls.page()] == ["0002", "0001", "0000"]
    assert again.healed == ""
    again.close()


@pytest.mark.parametrize("is_cut", [True, False], ids=["a log that is cut", "an older log behind it"])
@pytest.mark.parametrize("pages", [2, 12])
def test_a_log_without_all_that_a_cut_journal_lacks_is_no_help(tmp_path, pages, is_cut):
    path = tmp_path / "j.sqlite"
    journal = Journal(str(path), MemoryStore())
    recorded(journal, 1)
    log = (tmp_path / "j.sqlite-wal").read_bytes()
    journal.close()
    os.truncate(path, 3 * 4096)
    end = 32 + pages * (24 + 4096)
    behind = b"" if is_cut else log[end:].replace(log[16:24], bytes(8))
    (tmp_path / "j.sqlite-wal").write_bytes(log[:end] + behind)
    recorded(journal, 2)
    assert "shorter than it should be" in journal.healed
    [kept] = tmp_path.glob("j.sqlite.damaged-*-wal")
    assert kept.read_bytes() == log[:end] + behind
    journal.close()


def copied(journal, copies, position):
    copy = journal.copied_since(position)
    copies.append((copy.database, copy.log))
    return copy.position


def calls_in_copies(folder, copies):
    write_copied_journal(str(folder / "copy" / "journal.sqlite"), copies)
    copy = Journal(str(folder / "copy" / "journal.sqlite"), MemoryStore())
    found = [call.id for call in copy.calls.page()]
    copy.close()
    return found


def test_a_log_that_began_anew_is_copied_from_its_beginning_to_its_newest_record(tmp_path):
    path = tmp_path / "journal.sqlite"
    journal, copies = Journal(str(path), MemoryStore()), []
    for number in range(9):
        recorded(journal, number)
    position = copied(journal, copies, JournalPosition())
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA wal_checkpoint(RESTART)")
    for number in (10, 11):
        recorded(journal, number)
        position = copied(journal, copies, position)
    journal.close()
    assert [database is not None for database, _ in copies] == [True, True, False]
    assert calls_in_copies(tmp_path, copies)[:3] == ["0011", "0010", "0008"]


def test_what_was_taken_back_before_it_was_recorded_is_not_copied(tmp_path):
    """More than SQLite holds in memory: it is in the log, and is written over."""
    journal, copies = Journal(str(tmp_path / "journal.sqlite"), MemoryStore()), []
    recorded(journal, 1)
    with pytest.raises(KeyboardInterrupt), journal.together():
        for number in range(12):
            journal.callback_runs.begin("call", f"{number}" * (1 << 20))
        raise KeyboardInterrupt
    position = copied(journal, copies, JournalPosition())
    recorded(journal, 2)
    copied(journal, copies, position)
    journal.close()
    assert calls_in_copies(tmp_path, copies) == ["0002", "0001"]


@pytest.mark.skipif(sys.platform == "win32", reason="machine: no limit of handles")
@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_journal_that_lacks_handles_says_what_to_raise(tmp_path, left):
    import resource

    journal = Journal(str(tmp_path / "j.sqlite"), MemoryStore())
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = [os.open(os.devnull, os.O_RDONLY) for _ in range(left + 1)]
    for handle in free:
        os.close(handle)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free[-1], limits[1]))
    try:
        with pytest.raises(HostError, match=r"Too many open files\. Raise the limit of open files"):
            recorded(journal, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    recorded(journal, 2)
    journal.close()


@pytest.mark.parametrize(
    "node",
    [
        Node("file", b"one"),
        Node("folder", b"packed", None, BackupRef("item/tree", sha256_hex(b"packed"), 10)),
    ],
)
def test_bytes_that_were_pruned_are_not_taken_for_empty_ones(node):
    journal = Journal(":memory:", MemoryStore())
    [touch] = journal.entries.touches(changed(journal, "rm", Change("x", node, None)))
    assert journal.entries.node(touch.before) == node
    journal.retention.prune(RetentionLimits(max_age=-3600))
    with pytest.raises(KeyError):
        journal.entries.node(touch.before)


def test_what_a_large_file_had_in_it_is_known_by_its_digest():
    journal = Journal(":memory:", MemoryStore())
    large = Node("file", b"large", None, BackupRef("item/f", "stat:1", 5))
    change = Change("f", large, None)
    changed(journal, "rm", change)
    journal.contents.queue_digests([PlannedWrite(change, "")])
    [back] = journal.entries.changes_of_call("rm")
    assert (back.before.data, back.before.held.content) == (b"", sha256_hex(b"large"))


@pytest.mark.parametrize("length", [1, 17, 50, 99, 100, 101, 4095, 4097])
def test_a_journal_of_which_little_is_left_is_set_aside_and_that_is_said(tmp_path, length):
    path, journal = closed_after_one_call(tmp_path)
    os.truncate(path, length)
    recorded(journal, 2)
    assert "was damaged" in journal.healed
    assert [file.stat().st_size for file in tmp_path.glob("*.damaged-*")] == [length]
    assert [call.id for call in journal.calls.page()] == ["0002"]
    journal.close()


def test_a_header_that_says_nonsense_is_damage(tmp_path):
    path, journal = closed_after_one_call(tmp_path)
    whole = path.read_bytes()
    path.write_bytes(whole[:16] + bytes(2) + whole[18:])
    recorded(journal, 2)
    assert "was damaged" in journal.healed
    journal.close()


def test_a_journal_is_read_while_another_process_writes(tmp_path):
    path = str(tmp_path / "j.sqlite")
    writer, reader = Journal(path, MemoryStore()), Journal(path, MemoryStore())
    recorded(writer, 1)
    with writer.together():
        recorded(writer, 2)
        assert [call.id for call in reader.calls.page()] == ["0001"]
    assert [call.id for call in reader.calls.page()] == ["0002", "0001"]
    writer.close()
    reader.close()


@pytest.mark.skipif(not hasattr(os, "seteuid") or os.geteuid() != 0, reason="machine: not root")
def test_a_journal_that_could_only_be_read_is_written_when_it_can_be():
    with tempfile.TemporaryDirectory() as above:
        folder = Path(above)
        folder.chmod(0o755)
        crashed = Journal(str(folder / "crashed.sqlite"), MemoryStore())
        recorded(crashed, 1)
        for suffix in ("", "-wal", "-shm"):
            file = folder / f"j.sqlite{suffix}"
            file.write_bytes((folder / f"crashed.sqlite{suffix}").read_bytes())
            file.chmod(0o644)
        crashed.close()
        journal = Journal(str(folder / "j.sqlite"), MemoryStore())
        os.seteuid(65534)
        try:
            assert [call.id for call in journal.calls.page()] == ["0001"]
            with pytest.raises(HostError, match="readonly"):
                recorded(journal, 2)
            assert [call.id for call in journal.calls.page()] == ["0001"]
        finally:
            os.seteuid(0)
        recorded(journal, 3)
        assert [call.id for call in journal.calls.page()] == ["0003", "0001"]
        journal.close()


def test_what_could_not_be_read_once_is_read_again_at_the_next_use(tmp_path):
    path, journal = closed_after_one_call(tmp_path)
    whole = path.read_bytes()
    damage(path, "sqlite_autoindex_pending_commands_1")
    with pytest.raises(JournalDamaged):
        journal.pending_commands.find("x")
    with path.open("r+b") as file:
        file.write(whole)
    assert journal.pending_commands.find("x") is None
    journal.close()


def test_a_mistake_of_ours_is_not_called_damage_and_records_nothing():
    journal = Journal(":memory:", MemoryStore())
    call, change = Call(tool="write", args={}, id="x"), Change("f", None, Node("file", b"one"))
    with pytest.raises(sqlite3.IntegrityError):
        journal.entries.intend(call, Transaction(ChangeSet.of(change)), [PlannedWrite(change, None)])
    assert journal.entries.of_call("x") == []


def test_a_rerun_does_not_repeat_a_recorded_entry():
    journal = Journal(":memory:", MemoryStore())
    call, change = Call(tool="write", args={}, id="x"), Change("f", None, Node("file", b"one"))
    again = (call, Transaction(ChangeSet.of(change)), [PlannedWrite(change, "")])
    first = journal.entries.intend(*again, ordinal=0)
    assert journal.entries.intend(*again, ordinal=0) is None
    second = journal.entries.intend(*again, ordinal=1)
    assert [entry.id for entry in journal.entries.of_call("x")] == [first, second]


def test_a_journal_that_was_closed_has_the_digests_of_large_files(tmp_path):
    path = str(tmp_path / "j.sqlite")
    journal = Journal(path, MemoryStore())
    change = Change("f", Node("file", b"large", None, BackupRef("item/f", "stat:1", 5)), None)
    changed(journal, "rm", change)
    journal.contents.queue_digests([PlannedWrite(change, "")])
    journal.close()
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("SELECT content FROM backups").fetchall() == [(sha256_hex(b"large"),)]


def test_a_copy_is_for_its_owner_alone_and_is_written_over_an_older_one(tmp_path):
    journal, copies = Journal(str(tmp_path / "journal.sqlite"), MemoryStore()), []
    path = tmp_path / "new" / "folder" / "journal.sqlite"
    position = JournalPosition()
    for number in range(2):
        recorded(journal, number)
        position = copied(journal, copies, position)
        write_copied_journal(str(path), copies)
    journal.close()
    modes = [file.stat().st_mode & 0o777 for file in (path.parent, *path.parent.iterdir())]
    assert modes == [0o700, 0o600, 0o600]
    copy = Journal(str(path), MemoryStore())
    assert [call.id for call in copy.calls.page()] == ["0001", "0000"]
    copy.close()


def test_what_is_forgotten_is_in_no_file_of_the_journal_any_more(tmp_path):
    journal = Journal(str(tmp_path / "j.sqlite"), MemoryStore())
    changed(journal, "in the file", Change("a", None, Node("file", SECRET.encode())))
    journal.close()
    changed(journal, "in the log", Change("a", None, Node("file", SECRET.encode() + b"!")))
    assert [SECRET.encode() in file.read_bytes() for file in sorted(tmp_path.iterdir())] == [
        True,
        False,
        True,
    ]
    with journal.together() as connection:
        connection.execute("PRAGMA secure_delete = OFF")  # as SQLite is unless a system builds it otherwise
    journal.retention.forget("a")
    assert not any(SECRET.encode() in file.read_bytes() for file in tmp_path.iterdir())
    journal.close()


def test_a_disk_that_refuses_one_read_costs_no_journal(tmp_path, monkeypatch):
    path, _ = closed_after_one_call(tmp_path)
    connect, refusals = sqlite3.connect, [sqlite3.DatabaseError("file is not a database")]

    def refuse_once(*args, **options):
        if refusals:
            raise refusals.pop()
        return connect(*args, **options)

    monkeypatch.setattr(sqlite3, "connect", refuse_once)
    journal = Journal(str(path), MemoryStore())
    assert [call.id for call in journal.calls.page()] == ["0001"]
    assert (refusals, journal.healed) == ([], "")
    journal.close()


def test_a_transaction_that_can_not_be_taken_back_swallows_nothing_of_what_follows(tmp_path):
    def refuse(action, what, *_):
        is_rollback = (action, what) == (sqlite3.SQLITE_TRANSACTION, "ROLLBACK")
        return sqlite3.SQLITE_DENY if is_rollback else sqlite3.SQLITE_OK

    journal = Journal(str(tmp_path / "j.sqlite"), MemoryStore())
    with pytest.raises(KeyboardInterrupt), journal.together() as connection:
        recorded(journal, 1)
        connection.set_authorizer(refuse)
        raise KeyboardInterrupt
    recorded(journal, 2)
    other = Journal(journal.path, MemoryStore())
    assert [call.id for call in other.calls.page()] == ["0002"]
    journal.close()
    other.close()


def test_the_folders_above_a_journal_are_made(tmp_path):
    journal = Journal(str(tmp_path / "some" / "state" / "j.sqlite"), MemoryStore())
    recorded(journal, 1)
    assert journal.calls.has("0001")
    journal.close()


def test_a_cut_journal_is_noticed_also_after_it_could_not_be_opened(tmp_path):
    path, journal = closed_after_one_call(tmp_path)
    for version in (999, 1):
        with closing(sqlite3.connect(path)) as newer:
            newer.execute(f"PRAGMA user_version = {version}")
        if version == 999:
            with pytest.raises(HostError, match="has schema version 999"):
                recorded(journal, 2)
    os.truncate(path, path.stat().st_size - 4096)
    recorded(journal, 3)
    assert "shorter than it should be" in journal.healed
    journal.close()


@pytest.mark.parametrize("length", [1, 50, 99])
def test_a_journal_cut_within_its_header_is_kept_and_said_to_be_damaged(tmp_path, length):
    path, journal = closed_after_one_call(tmp_path)
    os.truncate(path, length)
    recorded(journal, 2)
    assert "its header is incomplete" in journal.healed
    [kept] = tmp_path.glob("j.sqlite.damaged-*")
    assert kept.stat().st_size == length
    journal.close()


def test_a_file_that_is_no_journal_is_kept_and_said_to_be_damaged(tmp_path):
    path = tmp_path / "j.sqlite"
    path.write_bytes(b"no database " * 1000)
    journal = Journal(str(path), MemoryStore())
    recorded(journal, 1)
    assert journal.healed.startswith("The journal was damaged (")
    [kept] = tmp_path.glob("j.sqlite.damaged-*")
    assert kept.read_bytes() == b"no database " * 1000
    journal.close()


def test_a_journal_is_copied_after_something_was_forgotten_and_its_log_emptied(tmp_path):
    journal, copies = Journal(str(tmp_path / "j.sqlite"), MemoryStore()), []
    recorded(journal, 1)
    journal.retention.forget("a")
    assert (tmp_path / "j.sqlite-wal").stat().st_size == 0
    position = copied(journal, copies, JournalPosition())
    recorded(journal, 2)
    copied(journal, copies, position)
    journal.close()
    assert calls_in_copies(tmp_path, copies) == ["0002", "0001"]


def test_a_record_of_which_a_part_was_written_is_not_copied(tmp_path):
    journal, copies = Journal(str(tmp_path / "j.sqlite"), MemoryStore()), []
    recorded(journal, 1)
    log = tmp_path / "j.sqlite-wal"
    # As a process leaves it that is killed while it writes: the last frame, but for its end.
    last = log.read_bytes()[-(24 + 4096) :]
    with log.open("ab") as file:
        file.write(last[:-1])
    position = copied(journal, copies, JournalPosition())
    recorded(journal, 2)
    copied(journal, copies, position)
    journal.close()
    assert calls_in_copies(tmp_path, copies) == ["0002", "0001"]


def test_what_agents_only_read_makes_room_before_a_change_can_not_be_undone_any_more():
    journal, call = Journal(":memory:", MemoryStore()), Call(tool="read", args={})
    changed(journal, "old", Change("a", None, Node("file", b"one")))
    needed = journal.retention.kept_bytes()
    chance = random.Random(1)
    reads = [Node("file", chance.randbytes(1000)) for _ in range(3)]
    for number, node in enumerate([*reads, Node("file", b"one")]):
        journal.entries.record_reads(call, {f"{number}": node})
    each = (journal.retention.kept_bytes() - needed) // 3
    assert journal.retention.prune(RetentionLimits(max_bytes=needed + each)) == 2 * each
    assert [journal.entries.seen_bytes(call, f"{number}") for number in range(4)] == [
        None,
        None,
        reads[2].data,
        b"one",
    ]
    assert journal.retention.prune(RetentionLimits(max_bytes=needed)) == each
    assert [change.after.data for change in journal.entries.changes_of_call("old")] == [b"one"]
    assert journal.entries.seen_bytes(call, "3") == b"one"
