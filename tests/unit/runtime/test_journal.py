"""The record itself."""

import stat

from handtools import Call, Change, Result
from handtools.host.store import FolderStore
from handtools.runtime.journal import Journal
from handtools.runtime.journal.blobs import pack, unpack
from handtools.testing.fakes import MemoryStore, memory_toolbox


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
    from handtools.testing.fakes import memory_workspace

    steps = memory_workspace().files.plan([Change.of("a", before=None, after=data)])
    entry = journal.entries.intend(call, steps)
    assert len(store.names()) == 1
    [touch] = journal.entries.touches(entry)
    assert journal.entries.node(touch.after).data == data
    journal.entries.finish(entry)
    journal.retention.forget("a")
    assert store.names() == []


def test_packing_is_undone_exactly():
    for data in (b"", b"x", b"abc" * 1000, bytes(range(256)) * 9):
        assert unpack(pack(data), len(data)) == data
    assert len(pack(b"abc" * 1000)) < 100


def test_the_record_is_readable_by_its_owner_only(tmp_path):
    state = tmp_path / "state"
    journal = Journal(str(state / "journal.sqlite"), FolderStore(state / "blobs"))
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
