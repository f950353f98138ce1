"""What a crash leaves, and what the next start makes of it."""

import sqlite3

import pytest

from handtools import Call, Change, ChangeSet
from handtools.runtime.journal.change_entries import Transaction
from handtools.runtime.journaled_transactions import commit_transaction, recover_transactions
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.toolbox import CODING, Toolbox, local_workspace
from tests.unit.runtime.test_undo import by_hand


def interrupted(box, changes, landed):
    """The state that a kill leaves after `landed` of the steps: an intent without a done."""
    files, entries = box.workspace.files, box.workspace.journal.entries
    steps = files.plan(changes)
    call = Call(tool="edit", args={})
    entries.intend(call, Transaction(ChangeSet(tuple(changes))), steps)
    files.perform(steps[:landed])
    return call.id


CHANGES = [
    Change.of("a", before=b"a1", after=b"a2"),
    Change.of("new", before=None, after=b"n2"),
    Change.of("gone", before=b"g1", after=None),
]


def contents(box):
    nodes = {path: box.workspace.files.node(path) for path in ("a", "new", "gone")}
    return {path: node.data for path, node in nodes.items() if node is not None}


OLD = {"a": b"a1", "gone": b"g1"}
NEW = {"a": b"a2", "new": b"n2"}


@pytest.mark.parametrize(("landed", "expected"), [(0, OLD), (1, OLD), (2, OLD), (3, NEW)])
async def test_a_change_set_that_was_cut_short_is_whole_or_not_there_after_the_next_start(landed, expected):
    box = memory_toolbox(OLD)
    interrupted(box, CHANGES, landed)
    await box.call("think", {"thought": "the first call of the next process"})
    assert contents(box) == expected
    assert box.workspace.journal.entries.open() == []


async def test_an_interrupted_call_that_landed_can_be_undone():
    box = memory_toolbox(OLD)
    call_id = interrupted(box, CHANGES, 3)
    await box.call("undo", {"scope": "call", "name": call_id})
    assert contents(box) == OLD


async def test_an_intent_of_a_live_call_is_left_alone():
    box = memory_toolbox(OLD)
    interrupted(box, CHANGES, 1)
    async with box.workspace.locks.hold(["a"], timeout=30):
        assert await recover_transactions(box.workspace) == []
        assert len(box.workspace.journal.entries.open()) == 1
    assert len(await recover_transactions(box.workspace)) == 1


async def test_a_call_id_that_landed_before_a_crash_does_not_land_twice():
    box = memory_toolbox({"a": b"x"})
    call = Call(tool="edit", args={"path": "a", "old_string": "x", "new_string": "y x"}, id="once")
    changes = ChangeSet.of(Change.of("a", before=b"x", after=b"y x"))
    steps = box.workspace.files.plan(changes)
    box.workspace.journal.entries.intend(call, Transaction(changes), steps)
    box.workspace.files.perform(steps)
    again = await box.call(call)
    assert again.ok
    assert again.changes is None
    assert box.workspace.files.read("a") == b"y x"


async def test_what_can_be_neither_finished_nor_taken_back_is_named_once_and_stops_no_call(tmp_path):
    """Someone put a link in the way since: nothing behind it is ours to touch."""
    root = tmp_path / "work"
    (root / "d").mkdir(parents=True)
    (root / "d" / "f").write_text("old")
    box = Toolbox(CODING, workspace=local_workspace(root, state=tmp_path / "state"))
    interrupted(box, [Change.of("d/f", before=b"old", after=b"new")], 0)
    (root / "d").rename(root / "e")
    (root / "d").symlink_to("e")
    (told,) = await recover_transactions(box.workspace)
    assert "`d/f`" in told
    assert await recover_transactions(box.workspace) == []
    assert (await box.call("read", {"path": "e/f"})).ok
    assert (root / "e" / "f").read_text() == "old"


async def test_what_a_command_had_done_is_not_taken_back_where_it_could_not_be_recorded():
    box = memory_toolbox(NEW)
    journal, call = box.workspace.journal, Call(tool="bash", args={})
    with journal.together() as connection:
        connection.execute(
            "CREATE TRIGGER refused BEFORE UPDATE OF state ON entries BEGIN SELECT RAISE(ABORT, 'full'); END"
        )
    done = Transaction(ChangeSet(tuple(CHANGES)), coverage="scan", happened=True)
    with pytest.raises(sqlite3.IntegrityError, match="full"):
        commit_transaction(box.workspace, call, done, ordinal=0)
    with journal.together() as connection:
        connection.execute("DROP TRIGGER refused")
    by_hand(box, "a", b"a3")
    await box.call("think", {"thought": "the next call"})
    assert contents(box) == NEW | {"a": b"a3"}
    commit_transaction(box.workspace, call, done, ordinal=0)
    assert [entry.state for entry in journal.entries.of_call(call.id)] == ["done"]
