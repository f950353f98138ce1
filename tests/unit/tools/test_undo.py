"""Undo as a model calls it; the depths are in the runtime's tests."""

import re
from itertools import pairwise

import pytest

from handtools.core.call import Call
from handtools.core.changes import Change
from handtools.testing.memory_toolbox import memory_toolbox


async def changed(versions):
    box = memory_toolbox({"a": versions[0].encode()})
    for old, new in pairwise(versions):
        assert (await box.call("edit", {"path": "a", "old_string": old, "new_string": new})).ok
    return box


@pytest.mark.claim("undo.version")
async def test_any_recorded_version_can_be_brought_back():
    box = await changed(["one", "two", "three"])
    listed = await box.call("undo", {"name": "a", "action": "versions"})
    first = min(listed.details.versions)
    assert (await box.call("undo", {"name": "a", "version": first})).ok
    assert box.workspace.files.files["a"] == b"two"
    assert (await box.call("undo", {"name": "a", "version": 0})).ok
    assert box.workspace.files.files["a"] == b"one"


async def test_a_version_that_is_there_already_is_no_change():
    box = await changed(["one", "two"])
    listed = await box.call("undo", {"name": "a", "action": "versions"})
    [newest] = listed.details.versions
    result = await box.call("undo", {"name": "a", "version": newest})
    assert result.ok
    assert result.text == "Nothing was restored."
    assert box.workspace.files.files["a"] == b"two"


async def test_a_version_that_is_not_recorded_is_refused_with_the_ten_newest():
    box = await changed([f"state {number:02}" for number in range(14)])
    listed = await box.call("undo", {"name": "a", "action": "versions"})
    refused = await box.call("undo", {"name": "a", "version": 999})
    assert refused.fault.code == "not_found"
    newest = ", ".join(map(str, listed.details.versions[:10]))
    assert f"Use one of these versions: {newest}." in refused.text


@pytest.mark.claim("undo.conflict")
async def test_a_file_that_changed_since_is_kept_and_named():
    box = await changed(["one", "two"])
    [first] = [call.id for call in box.workspace.journal.calls.page()]
    await box.call("edit", {"path": "a", "old_string": "two", "new_string": "three"})
    result = await box.call("undo", {"scope": "call", "name": first})
    assert [kept.path for kept in result.details.conflicts] == ["a"]
    assert "Kept a" in result.text
    assert box.workspace.files.files["a"] == b"three"


@pytest.mark.claim("undo.redo")
async def test_an_undo_is_taken_back_by_redo():
    box = await changed(["one", "two"])
    await box.call("undo", {"name": "a"})
    assert box.workspace.files.files["a"] == b"one"
    await box.call("undo", {"name": "a", "action": "redo"})
    assert box.workspace.files.files["a"] == b"two"


async def test_a_redo_makes_a_change_again_that_a_person_had_reverted_before_its_undo():
    box = memory_toolbox({"a": b"x"})
    await edited(box, "a", "x", "xx")
    files = box.workspace.files
    files.perform(files.plan([Change.of("a", before=b"xx", after=b"x")]))
    assert (await undone(box)).text.startswith("Nothing was restored.")
    again = await undone(box, action="redo")
    assert again.text.startswith("Restored a.")
    assert box.workspace.files.files["a"] == b"xx"
    assert (await undone(box, action="redo")).fault.code == "nothing_to_undo"
    assert (await undone(box)).details.restored == ["a"]
    assert box.workspace.files.files["a"] == b"x"


async def test_an_undo_answers_with_a_short_diff_of_what_remains():
    box = memory_toolbox({"a": b"one\n"})
    await edited(box, "a", "one", "two")
    result = await undone(box)
    assert result.text == "Restored a.\n--- a/a\n+++ b/a\n@@ -1 +1 @@\n-two\n+one\n(Change 2.)"
    assert result.details.diff in result.text
    await box.call(Call(tool="write", args={"path": "new", "content": "x"}, session="s"))
    assert (await undone(box)).text == "Removed new.\n(Change 4.)"
    many = "".join(f"{number}\n" for number in range(500))
    await box.call(
        Call(tool="write", args={"path": "a", "content": many, "mode": "overwrite"}, session="s")
    )
    assert len((await undone(box)).text.splitlines()) < 40


async def test_versions_of_anything_but_a_path_are_refused():
    result = await memory_toolbox().call("undo", {"scope": "call", "name": "x", "version": 1})
    assert result.fault.code == "invalid_input"


async def edited(box, path, old, new, session="s"):
    args = {"path": path, "old_string": old, "new_string": new}
    result = await box.call(Call(tool="edit", args=args, session=session))
    assert result.ok, result.text
    return result


async def undone(box, session="s", **args):
    return await box.call(Call(tool="undo", args=args, session=session))


def number_in(result):
    return re.search(r"\(Change (\d+)\.\)", result.text)[1]


@pytest.mark.claim("undo.last")
async def test_the_last_change_of_this_session_is_taken_back():
    box = memory_toolbox({"a": b"one", "b": b"one"})
    await edited(box, "a", "one", "two")
    await edited(box, "b", "one", "two", session="another")
    assert (await undone(box, scope="last")).text.startswith("Restored a.")
    assert box.workspace.files.files == {"a": b"one", "b": b"two"}
    assert (await undone(box)).fault.code == "nothing_to_undo"
    assert (await undone(box, scope="last", action="redo")).text.startswith("Restored a.")
    assert box.workspace.files.files["a"] == b"two"


@pytest.mark.claim("undo.number")
async def test_a_change_is_undone_by_the_number_in_its_answer():
    box = memory_toolbox({"a": b"one", "b": b"one"})
    first = await edited(box, "a", "one", "two")
    await edited(box, "b", "one", "two")
    number = number_in(first)
    assert (await undone(box, scope="call", name=int(number))).details.restored == ["a"]
    assert box.workspace.files.files == {"a": b"one", "b": b"two"}
    assert (await undone(box, scope="call", name=f"#{number}", action="redo")).ok
    assert box.workspace.files.files["a"] == b"two"


async def test_a_number_alone_is_a_change_unless_a_path_has_that_name():
    box = memory_toolbox({"a": b"one"})
    number = number_in(await edited(box, "a", "one", "two"))
    assert (await undone(box, name=number)).details.restored == ["a"]
    assert (await undone(box, name=f"#{number}", action="redo")).details.restored == ["a"]
    await box.call(Call(tool="write", args={"path": number, "content": "new"}, session="s"))
    assert (await undone(box, name=number)).details.removed == [number]
    assert box.workspace.files.files == {"a": b"two"}
    assert (await undone(box, name=number, action="redo")).details.restored == [number]


async def test_a_number_that_no_change_has_is_said_to_be_unknown():
    box = memory_toolbox({"a": b"one"})
    await edited(box, "a", "one", "two")
    result = await undone(box, name="99")
    assert not result.ok
    assert "99" in result.text
    assert box.workspace.files.files == {"a": b"two"}


async def test_a_call_is_undone_by_the_start_of_its_id():
    box = memory_toolbox({"a": b"one"})
    call = Call(tool="edit", args={"path": "a", "old_string": "one", "new_string": "two"})
    assert (await box.call(call)).ok
    assert (await undone(box, scope="call", name=call.id[:24])).details.restored == ["a"]


@pytest.mark.claim("undo.since")
async def test_everything_since_a_change_is_taken_back_and_nothing_of_other_sessions():
    box = memory_toolbox({"a": b"one", "b": b"one", "c": b"one"})
    await edited(box, "a", "one", "two")
    since = number_in(await edited(box, "a", "two", "three"))
    await edited(box, "b", "one", "two")
    await edited(box, "c", "one", "two", session="another")
    assert sorted((await undone(box, since=since)).details.restored) == ["a", "b"]
    assert box.workspace.files.files == {"a": b"two", "b": b"one", "c": b"two"}
    assert (await undone(box, since=since, name="a")).fault.code == "invalid_input"


@pytest.mark.claim("undo.dry_run")
async def test_a_dry_run_tells_what_would_be_done_and_does_nothing():
    box = memory_toolbox({"a": b"one", "c": b"one"})
    await box.call(Call(tool="write", args={"path": "new", "content": "x"}, session="s"))
    await edited(box, "a", "one", "two")
    await edited(box, "c", "one", "two")
    await edited(box, "c", "two", "three", session="another")
    before = dict(box.workspace.files.files)
    told = await undone(box, scope="session", name="s", dry_run=True)
    assert told.text.startswith("It would remove new; restore a.\nIt would keep c: It changed since")
    assert told.details.removed == ["new"]
    assert told.changes is None
    assert box.workspace.files.files == before


async def test_a_file_that_is_gone_after_an_undo_is_said_to_be_removed():
    box = memory_toolbox({"old": b"x"})
    await box.call("write", {"path": "new", "content": "x"})
    result = await box.call("undo", {"name": "new"})
    assert result.text.startswith("Removed new.")
    patch = "*** Begin Patch\n*** Delete File: old\n*** End Patch"
    assert (await box.call("patch", {"patch": patch})).ok
    assert (await box.call("undo", {"name": "old"})).text.startswith("Recreated old.")


async def test_the_log_tells_a_redo_and_an_undo_that_kept_every_file():
    box = await changed(["one", "two"])
    [first] = [call.id for call in box.workspace.journal.calls.page()]
    await box.call("undo", {"name": "a"})
    await box.call("undo", {"name": "a", "action": "redo"})
    await box.call("edit", {"path": "a", "old_string": "two", "new_string": "three"})
    await box.call("undo", {"scope": "call", "name": first})
    logged = [(call.tool, call.status, call.code) for call in box.workspace.journal.calls.page()]
    assert logged == [
        ("undo", "failed", "conflicts"),
        ("edit", "ok", ""),
        ("undo", "ok", "redo"),
        ("undo", "ok", ""),
        ("edit", "ok", ""),
    ]


async def test_only_a_path_must_be_named():
    assert (await undone(memory_toolbox(), scope="path")).fault.code == "invalid_input"


@pytest.mark.parametrize("name", ["", "last"])
@pytest.mark.parametrize(
    ("scope", "left"),
    [
        ("call", {"a": b"two", "b": b"one", "c": b"two"}),
        ("turn", {"a": b"two", "b": b"one", "c": b"two"}),
        ("session", {"a": b"one", "b": b"one", "c": b"two"}),
    ],
)
async def test_without_a_name_the_last_one_of_this_session_is_meant(scope, name, left):
    box = memory_toolbox({"a": b"one", "b": b"one", "c": b"one"})
    for path, session, turn in (("a", "s", "1"), ("b", "s", "2"), ("c", "another", "1")):
        args = {"path": path, "old_string": "one", "new_string": "two"}
        assert (await box.call(Call(tool="edit", args=args, session=session, turn=turn))).ok
    assert (await undone(box, scope=scope, name=name)).ok
    assert box.workspace.files.files == left


async def test_a_turn_without_a_session_is_one_of_this_session():
    box = memory_toolbox({"a": b"one"})
    args = {"path": "a", "old_string": "one", "new_string": "two"}
    await box.call(Call(tool="edit", args=args, session="s", turn="7"))
    result = await undone(box, scope="turn", name="7")
    assert (result.details.scope, result.details.name, result.details.restored) == ("turn", "s/7", ["a"])
