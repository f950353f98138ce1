"""Taking things back."""

import sqlite3
from contextlib import closing

from pydantic import BaseModel

from handtools import Call, Change, Node, Result, Toolbox, tool
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.toolbox import CODING, local_workspace


async def edited(box, path, old, new, *, call_id=None, session="s", turn="t"):
    args = {"path": path, "old_string": old, "new_string": new}
    call = Call(tool="edit", args=args, session=session, turn=turn, **({"id": call_id} if call_id else {}))
    result = await box.call(call)
    assert result.ok, result.text
    return call.id


async def undone(box, scope, name, **more):
    return await box.call("undo", {"scope": scope, "name": name, **more})


def content(box, path):
    node = box.workspace.files.node(path)
    return None if node is None else node.data


def by_hand(box, path, after):
    before = content(box, path)
    box.workspace.files.perform(box.workspace.files.plan([Change.of(path, before=before, after=after)]))


async def test_a_call_is_taken_back_and_brought_back_again():
    box = memory_toolbox({"a": b"one\n"})
    call = await edited(box, "a", "one", "two")
    assert (await undone(box, "call", call)).details.restored == ["a"]
    assert content(box, "a") == b"one\n"
    assert (await undone(box, "call", call, action="redo")).ok
    assert content(box, "a") == b"two\n"
    assert (await undone(box, "call", call)).ok
    assert content(box, "a") == b"one\n"


async def test_undoing_twice_says_that_it_is_undone_already():
    box = memory_toolbox({"a": b"one\n"})
    call = await edited(box, "a", "one", "two")
    await undone(box, "call", call)
    again = await undone(box, "call", call)
    assert again.fault.code == "nothing_to_undo"
    assert "already" in again.text


async def test_an_undo_call_can_itself_be_undone_by_its_id():
    box = memory_toolbox({"a": b"one\n"})
    call = await edited(box, "a", "one", "two")
    undo = Call(tool="undo", args={"scope": "call", "name": call})
    await box.call(undo)
    await undone(box, "call", undo.id)
    assert content(box, "a") == b"two\n"


async def test_undoing_a_creation_deletes_the_file_and_the_folders_it_made():
    box = memory_toolbox({"keep": b""})
    call = Call(tool="write", args={"path": "x/y/new.txt", "content": "hi"})
    assert (await box.call(call)).ok
    await undone(box, "call", call.id)
    assert box.workspace.files.facts("x") is None
    await undone(box, "call", call.id, action="redo")
    assert content(box, "x/y/new.txt") == b"hi"


async def test_a_folder_that_someone_else_uses_is_kept():
    box = memory_toolbox()
    call = Call(tool="write", args={"path": "x/new.txt", "content": "hi"})
    await box.call(call)
    by_hand(box, "x/mine.txt", b"mine")
    result = await undone(box, "call", call.id)
    assert content(box, "x/new.txt") is None
    assert content(box, "x/mine.txt") == b"mine"
    assert "no longer empty" in result.text


async def test_a_created_file_that_changed_since_is_kept():
    box = memory_toolbox()
    call = Call(tool="write", args={"path": "new.txt", "content": "hi"})
    await box.call(call)
    by_hand(box, "new.txt", b"hi, and a person's words")
    result = await undone(box, "call", call.id)
    assert [kept.path for kept in result.details.conflicts] == ["new.txt"]
    assert content(box, "new.txt") == b"hi, and a person's words"


async def test_what_a_person_took_back_already_is_no_conflict():
    box = memory_toolbox()
    call = Call(tool="write", args={"path": "new/x.txt", "content": "hi"})
    await box.call(call)
    box.workspace.files.perform(
        box.workspace.files.plan(
            [
                Change("new/x.txt", Node("file", b"hi"), None),
                Change("new", Node("folder"), None),
            ]
        )
    )
    result = await undone(box, "call", call.id)
    assert result.ok
    assert result.details.conflicts == []
    assert (await undone(box, "call", call.id)).fault.code == "nothing_to_undo"


async def test_an_edited_file_that_is_gone_is_said_to_be_deleted():
    box = memory_toolbox({"a": b"one\n"})
    call = await edited(box, "a", "one", "two")
    by_hand(box, "a", None)
    result = await undone(box, "call", call)
    assert [kept.path for kept in result.details.conflicts] == ["a"]
    assert "It was deleted since then." in result.text
    assert content(box, "a") is None


async def test_a_file_that_changed_elsewhere_is_a_conflict_and_can_be_merged():
    box = memory_toolbox({"a": b"".join(b"line %d\n" % index for index in range(9))})
    call = await edited(box, "a", "line 1\n", "LINE 1\n")
    by_hand(box, "a", content(box, "a").replace(b"line 7\n", b"mine 7\n"))
    kept = await undone(box, "call", call)
    assert [kept.path for kept in kept.details.conflicts] == ["a"]
    assert "merge=true" in kept.text
    assert b"LINE 1\n" in content(box, "a")
    merged = await undone(box, "call", call, merge=True)
    assert merged.details.restored == ["a"]
    assert content(box, "a") == b"".join(b"line %d\n" % i for i in range(9)).replace(b"line 7", b"mine 7")


async def test_a_change_in_the_same_place_is_kept_even_with_merge():
    box = memory_toolbox({"a": b"x\n"})
    call = await edited(box, "a", "x", "y")
    by_hand(box, "a", b"mine\n")
    result = await undone(box, "call", call, merge=True)
    assert [kept.path for kept in result.details.conflicts] == ["a"]
    assert "It changed since then, in the same place." in result.text
    assert content(box, "a") == b"mine\n"


async def test_a_turn_and_a_session_go_back_as_one():
    box = memory_toolbox({"a": b"1\n", "b": b"1\n"})
    await edited(box, "a", "1", "2", turn="t1")
    await edited(box, "a", "2", "3", turn="t2")
    await edited(box, "b", "1", "9", turn="t2")
    await edited(box, "b", "9", "8", session="other")
    await undone(box, "turn", "s/t2")
    assert content(box, "a") == b"2\n"
    assert content(box, "b") == b"8\n"
    await undone(box, "session", "s")
    assert content(box, "a") == b"1\n"


async def test_a_path_goes_back_step_by_step_and_to_any_version():
    box = memory_toolbox({"a": b"v0"})
    for number in range(5):
        await edited(box, "a", f"v{number}", f"v{number + 1}")
    await undone(box, "path", "a")
    await undone(box, "path", "a")
    assert content(box, "a") == b"v3"
    listed = await box.call("undo", {"name": "a", "action": "versions"})
    oldest = min(listed.details.versions)
    await undone(box, "path", "a", version=oldest)
    assert content(box, "a") == b"v1"
    await undone(box, "path", "a", version=0)
    assert content(box, "a") == b"v0"
    assert (await undone(box, "path", "a", version=999)).fault.code == "not_found"


async def test_a_middle_call_is_taken_back_when_later_calls_left_its_paths_alone():
    box = memory_toolbox({"a": b"1", "b": b"1"})
    first = await edited(box, "a", "1", "2")
    await edited(box, "b", "1", "2")
    await undone(box, "call", first)
    assert (content(box, "a"), content(box, "b")) == (b"1", b"2")


async def test_an_unknown_name_says_so_with_a_next_step():
    result = await undone(memory_toolbox(), "call", "nope")
    assert result.fault.code == "nothing_to_undo"
    assert "the number of a change" in result.text


async def test_forgotten_bytes_are_gone_and_undo_says_so():
    box = memory_toolbox({"a": b"secret one"})
    call = await edited(box, "a", "one", "two")
    assert box.workspace.journal.retention.kept_bytes() > 0
    box.workspace.journal.retention.forget("a")
    assert box.workspace.journal.retention.kept_bytes() == 0
    assert (await undone(box, "call", call)).fault.code == "nothing_to_undo"
    assert content(box, "a") == b"secret two"
    assert "forgotten" in (await box.call(Call(tool="edit", args={}, id=call))).text


async def test_a_file_whose_bytes_are_lost_is_kept_and_the_others_go_back(tmp_path):
    for name in ("a", "b", "c"):
        (tmp_path / name).write_bytes(name.encode() * 4000)
    box = Toolbox(CODING, workspace=local_workspace(tmp_path, state=tmp_path / "state"))
    old = {name: Node("file", (tmp_path / name).read_bytes()) for name in ("a", "b", "c")}
    patch = "".join(f"*** Delete File: {name}\n" for name in old)
    call = Call(tool="patch", args={"patch": f"*** Begin Patch\n{patch}*** End Patch"})
    assert (await box.call(call)).ok
    with closing(sqlite3.connect(tmp_path / "state" / "journal.sqlite")) as record, record:
        record.execute("DELETE FROM blobs WHERE digest = ?", (old["b"].digest,))
    result = await undone(box, "call", call.id)
    assert result.details.restored == ["a", "c"]
    assert [(kept.path, "no longer stored" in kept.reason) for kept in result.details.conflicts] == [
        ("b", True)
    ]
    assert {name for name in old if (tmp_path / name).exists()} == {"a", "c"}
    assert (tmp_path / "c").read_bytes() == old["c"].data
    box.workspace.journal.close()


async def test_retention_drops_the_oldest_first_and_keeps_the_rest_undoable():
    from handtools.runtime.journal import RetentionLimits

    box = memory_toolbox({"a": b"0" * 10})
    calls = [await edited(box, "a", f"{n}" * 10, f"{n + 1}" * 10) for n in range(8)]
    total = box.workspace.journal.retention.kept_bytes()
    box.workspace.journal.retention.prune(RetentionLimits(max_bytes=total // 2))
    assert 0 < box.workspace.journal.retention.kept_bytes() <= total // 2
    assert (await undone(box, "call", calls[-1])).ok
    assert content(box, "a") == b"7" * 10


async def test_undoing_a_creation_by_its_path_takes_the_folders_that_it_made():
    box = memory_toolbox({"old/keep": b""})
    await box.call("write", {"path": "old/x/y/new.txt", "content": "hi"})
    assert (await undone(box, "path", "old/x/y/new.txt")).details.conflicts == []
    assert box.workspace.files.facts("old/x") is None
    assert box.workspace.files.facts("old") is not None
    await undone(box, "path", "old/x/y/new.txt", action="redo")
    assert content(box, "old/x/y/new.txt") == b"hi"
    await undone(box, "path", "old/x/y/new.txt", version=0)
    assert box.workspace.files.facts("old/x") is None
    await undone(box, "path", "old/x/y/new.txt", action="redo")
    assert content(box, "old/x/y/new.txt") == b"hi"


async def test_a_path_may_be_named_by_a_link_that_leads_to_it():
    box = memory_toolbox({"d/a": b"one\n"})
    box.workspace.files.perform(box.workspace.files.plan([Change("l", None, Node("link", b"d"))]))
    await edited(box, "d/a", "one", "two")
    assert (await undone(box, "path", "l/a")).ok
    assert content(box, "d/a") == b"one\n"
    assert (await undone(box, "path", "l/a", action="redo")).ok
    assert content(box, "d/a") == b"two\n"


async def test_folders_that_hold_something_else_stay_without_a_word():
    box = memory_toolbox()
    first, second = ({"path": f"x/y/{name}", "old_string": "", "new_string": name} for name in "ab")
    assert (await box.call("multi_edit", {"edits": [first, second]})).ok
    result = await undone(box, "path", "x/y/a")
    assert result.text.startswith("Removed x/y/a.\n(Change ")
    assert content(box, "x/y/b") == b"b"
    await undone(box, "path", "x/y/b")
    assert box.workspace.files.facts("x") is None


async def test_redo_goes_on_step_by_step_and_stops_at_the_last_change():
    box = memory_toolbox({"a": b"v0"})
    for number in range(4):
        await edited(box, "a", f"v{number}", f"v{number + 1}")
    for left in (b"v3", b"v2", b"v1"):
        await undone(box, "path", "a")
        assert content(box, "a") == left
    for left in (b"v2", b"v3", b"v4"):
        await undone(box, "path", "a", action="redo")
        assert content(box, "a") == left
    for _ in range(2):
        again = await undone(box, "path", "a", action="redo")
        assert again.fault.code == "nothing_to_undo"
        assert content(box, "a") == b"v4"
    await undone(box, "path", "a")
    assert content(box, "a") == b"v3"


async def test_a_version_that_was_brought_back_is_not_brought_back_by_a_second_redo():
    box = memory_toolbox({"a": b"v0"})
    await edited(box, "a", "v0", "v1")
    await undone(box, "path", "a", version=0)
    assert (await undone(box, "path", "a", action="redo")).ok
    assert (await undone(box, "path", "a", action="redo")).fault.code == "nothing_to_undo"
    assert content(box, "a") == b"v1"


async def test_a_version_whose_return_was_undone_comes_back_by_redo():
    box = memory_toolbox({"a": b"v0"})
    await edited(box, "a", "v0", "v1")
    await undone(box, "path", "a", version=0)
    await undone(box, "path", "a")
    assert content(box, "a") == b"v1"
    assert (await undone(box, "path", "a", action="redo")).ok
    assert content(box, "a") == b"v0"


async def test_a_version_that_was_brought_back_is_taken_back_by_redo():
    box = memory_toolbox({"a": b"v0"})
    for number in range(3):
        await edited(box, "a", f"v{number}", f"v{number + 1}")
    await undone(box, "path", "a", version=0)
    assert content(box, "a") == b"v0"
    assert (await undone(box, "path", "a", action="redo")).ok
    assert content(box, "a") == b"v3"
    await undone(box, "path", "a")
    assert content(box, "a") == b"v2"


async def test_a_redo_that_only_tells_does_nothing():
    box = memory_toolbox({"a": b"one"})
    call = await edited(box, "a", "one", "two")
    await undone(box, "call", call)
    told = await undone(box, "call", call, action="redo", dry_run=True)
    assert told.text.startswith("It would restore a.")
    assert content(box, "a") == b"one"
    assert (await undone(box, "call", call, action="redo")).ok
    assert content(box, "a") == b"two"


async def test_a_version_that_is_only_told_is_not_brought_back():
    box = memory_toolbox({"a": b"one"})
    await edited(box, "a", "one", "two")
    told = await undone(box, "path", "a", version=0, dry_run=True)
    assert told.text.startswith("It would restore a.")
    assert content(box, "a") == b"two"


async def test_a_file_that_changed_since_its_undo_is_kept_by_redo_unless_it_is_merged():
    box = memory_toolbox({"a": b"one\n\n\n\n\nlast\n"})
    call = await edited(box, "a", "one", "two")
    await undone(box, "call", call)
    by_hand(box, "a", b"one\n\n\n\n\nmine\n")
    kept = await undone(box, "call", call, action="redo")
    assert [(each.path, each.mergeable) for each in kept.details.conflicts] == [("a", True)]
    assert content(box, "a") == b"one\n\n\n\n\nmine\n"
    assert (await undone(box, "call", call, action="redo", merge=True)).details.restored == ["a"]
    assert content(box, "a") == b"two\n\n\n\n\nmine\n"


async def test_what_was_not_undone_is_not_redone():
    box = memory_toolbox({"a": b"one", "b": b"one"})
    first = await edited(box, "a", "one", "two")
    second = await edited(box, "b", "one", "two")
    taken = Call(tool="undo", args={"scope": "call", "name": first})
    await box.call(taken)
    for scope, name in (("call", second), ("call", taken.id), ("path", "b")):
        refused = await undone(box, scope, name, action="redo")
        assert refused.fault.code == "nothing_to_undo"
        assert f"No change of {scope} `{name}` was undone." in refused.text
    assert (content(box, "a"), content(box, "b")) == (b"one", b"two")


async def test_a_session_without_a_change_has_nothing_to_undo_and_nothing_to_redo():
    box = memory_toolbox({"a": b"one"})
    await edited(box, "a", "one", "two", session="another")
    for action in ("undo", "redo"):
        refused = await box.call("undo", {"action": action})
        assert f"This session has no change to {action}." in refused.text


async def looked_for(box, text):
    refused = await box.call("edit", {"path": "a", "old_string": text, "new_string": "x"})
    assert refused.fault.code == "no_match"
    return refused.text


async def test_text_that_is_gone_is_traced_to_the_call_that_removed_it():
    box = memory_toolbox({"other": b"1"})
    await box.call(Call(tool="write", args={"path": "a", "content": "apples\npears\n"}, session="default"))
    first = await edited(box, "a", "apples", "plums", session="default")
    assert (
        f"This text was in the file until edit replaced it (the last call, {first})."
        in await looked_for(box, "apples")
    )
    second = await edited(box, "a", "pears", "grapes", session="default")
    assert second in await looked_for(box, "pears")
    traced = await looked_for(box, "apples\npears")
    assert first in traced
    assert "calls ago" in traced
    assert "until" not in await looked_for(box, "cherries in the file of nobody")


async def test_text_among_binary_bytes_is_traced_to_nobody():
    binary = b"apples of \0\xff\xfe bytes"
    box = memory_toolbox({"a": binary})
    patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch"
    assert (await box.call("patch", {"patch": patch})).ok
    assert (await box.call("write", {"path": "a", "content": "pears\n"})).ok
    assert "until" not in await looked_for(box, "apples of")


async def test_text_of_a_file_that_was_deleted_is_traced_to_that():
    box = memory_toolbox({"a": b"apples\n"})
    patch = "*** Begin Patch\n*** Delete File: a\n*** End Patch"
    assert (await box.call("patch", {"patch": patch})).ok
    assert (await box.call("write", {"path": "a", "content": "pears\n"})).ok
    assert "until patch replaced it" in await looked_for(box, "apples")


async def test_text_is_traced_through_the_last_twenty_changes_of_a_file():
    box = memory_toolbox({"a": b"apples\nstate 00\n"})
    await edited(box, "a", "apples", "plums")
    for number in range(19):
        await edited(box, "a", f"state {number:02}", f"state {number + 1:02}")
    assert "until edit replaced it" in await looked_for(box, "apples")
    await edited(box, "a", "plums", "grapes")
    assert "until" not in await looked_for(box, "apples")


class Nothing(BaseModel):
    """What a tool takes or gives that needs no more."""


async def test_a_tool_of_ones_own_undoes_redoes_and_restores_what_it_names():
    one, two = b"one\n\n\n\nend\n", b"two\n\n\n\nend\n"
    seen = []

    @tool
    async def back_and_forth(ctx, params: Nothing) -> Result[Nothing]:
        for revert in (
            lambda: ctx.history.undo("path", "a"),
            lambda: ctx.history.redo("path", "a"),
            lambda: ctx.history.restore("a", 0),
            lambda: ctx.history.undo("path", "a"),
        ):
            assert (await revert()).restored == ("a",)
            seen.append(await ctx.files.read("a"))
        by_hand(box, "a", two.replace(b"end", b"END"))
        seen.extend(each.reason for each in (await ctx.history.redo("path", "a")).conflicts)
        return Result("", Nothing())

    box = memory_toolbox({"a": one}, tools=[*CODING, back_and_forth])
    await edited(box, "a", "one", "two")
    result = await box.call("back_and_forth", {})
    assert result.ok, result.text
    assert seen == [one, two, one, two, "It changed since then; the changes can be merged."]
