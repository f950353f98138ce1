"""Reviewing what was changed: what is shown and whose it is, what is taken back, and what is refused."""

import pytest

from handtools import Call, Change, ChangeSet, Node, Policy, Reply, Result, Toolbox
from handtools.cli import reject
from handtools.core.commands import CommandExit, CommandOutput, FinishedCommand
from handtools.core.tool import tool
from handtools.core.undo import PERSON_AGENT_NAME, ReviewPoint
from handtools.runtime.review import EDITED_SINCE, ChangeReview, HeldReview
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.toolbox import CODING
from tests.unit.runtime.test_undo import by_hand, content, edited, undone

SESSION = ReviewPoint("session", "s")
LINES = b"".join(b"line %d\n" % number for number in range(1, 31))


def made(files):
    """A toolbox of somebody who says yes to what is asked."""

    async def yes(_):
        return Reply(allow=True)

    return memory_toolbox(files, tools=[*CODING, reject.review], approver=yes)


def reviewed(box, point=SESSION):
    return ChangeReview(box.workspace.journal, box.workspace.files, point)


def parts(box, path="a", point=SESSION):
    return reviewed(box, point).file(path).parts


async def wrote(box, path, text, *, mode="overwrite", session="s"):
    call = Call(tool="write", args={"path": path, "content": text, "mode": mode}, session=session)
    result = await box.call(call)
    assert result.ok, result.text
    return call.id


async def rejected(box, *chosen, path="a", texts=None, point=SESSION):
    """Take parts back as a person does; gives back the call and its result."""
    args = {"scope": point.scope, "name": point.name, "parts": {path: [part.id for part in chosen]}}
    call = Call(
        tool="review", args=args | {"edited": texts or {}}, agent=PERSON_AGENT_NAME, session="review"
    )
    return call.id, await box.call(call)


async def changed(box, *changes, session="s"):
    """Land changes as one call of an agent, as a command does."""

    @tool
    async def land(ctx, params: reject.RejectParams) -> Result[reject.RejectDetails]:
        await ctx.files.apply(ChangeSet.of(*changes))
        return Result("", reject.RejectDetails())

    call = Call(tool="land", args={"scope": "", "name": "", "parts": {}}, session=session)
    result = await Toolbox([land], workspace=box.workspace, policy=Policy(rules=())).call(call)
    assert result.ok, result.text
    return call.id


async def test_each_hunk_has_the_call_that_made_it():
    box = made({"a": LINES})
    first = await edited(box, "a", "line 2\n", "two\n")
    second = await edited(box, "a", "line 20\n", "twenty\n")
    assert [part.authors for part in parts(box)] == [(first,), (second,)]
    file = reviewed(box).file("a")
    assert "-line 20\n+twenty\n" in file.shown(file.parts[1:])


async def test_lines_that_two_calls_changed_have_both_and_lines_that_returned_have_nobody():
    box = made({"a": b"one\ntwo\n"})
    first = await edited(box, "a", "one", "1")
    second = await edited(box, "a", "two", "2")
    assert [set(part.authors) for part in parts(box)] == [{first, second}]
    await edited(box, "a", "2", "two")
    assert [part.authors for part in parts(box)] == [(first,)]
    await edited(box, "a", "1", "one")
    assert parts(box) == ()


async def test_one_hunk_is_taken_back_and_undo_returns_it():
    box = made({"a": LINES})
    await edited(box, "a", "line 2\n", "two\n")
    await edited(box, "a", "line 20\n", "twenty\n")
    both = content(box, "a")
    call, result = await rejected(box, parts(box)[0])
    assert result.details.restored == ["a"]
    assert content(box, "a") == LINES.replace(b"line 20\n", b"twenty\n")
    assert len(parts(box)) == 1
    assert (await undone(box, "call", call)).ok
    assert content(box, "a") == both
    assert len(parts(box)) == 2


async def test_taking_all_back_marks_the_calls_as_undone_and_undoing_that_brings_them_back():
    box = made({"a": LINES})
    edit = await edited(box, "a", "line 2\n", "two\n")
    call, _ = await rejected(box, *parts(box))
    entries = box.workspace.journal.entries
    assert content(box, "a") == LINES
    assert all(touch.reverted_by for touch in entries.selected("call", edit))
    await undone(box, "call", call)
    assert not any(touch.reverted_by for touch in entries.selected("call", edit))


async def test_what_a_person_edits_elsewhere_is_not_shown_and_kept():
    box = made({"a": LINES})
    await edited(box, "a", "line 2\n", "two\n")
    by_hand(box, "a", content(box, "a").replace(b"line 10\n", b"mine\n"))
    await edited(box, "a", "line 20\n", "twenty\n")
    by_hand(box, "a", content(box, "a").replace(b"line 29\n", b""))
    assert len(parts(box)) == 2
    _, result = await rejected(box, *parts(box))
    assert not result.details.kept
    assert content(box, "a") == LINES.replace(b"line 10\n", b"mine\n").replace(b"line 29\n", b"")


async def test_what_a_person_edits_in_the_same_place_is_refused_and_the_rest_is_taken_back():
    box = made({"a": LINES})
    await edited(box, "a", "line 2\n", "two\n")
    await edited(box, "a", "line 20\n", "twenty\nand one\n")
    by_hand(box, "a", content(box, "a").replace(b"and one\n", b"and mine\n"))
    free, mixed = parts(box)
    assert (free.refusal, mixed.refusal) == ("", EDITED_SINCE)
    _, result = await rejected(box, free, mixed)
    assert [kept.reason for kept in result.details.kept] == [EDITED_SINCE]
    assert b"line 2\n" in content(box, "a")
    assert b"twenty\nand mine\n" in content(box, "a")


async def test_what_another_session_did_is_folded_into_the_base():
    box = made({"a": LINES})
    mine = await edited(box, "a", "line 2\n", "two\n")
    await edited(box, "a", "line 20\n", "twenty\n", session="other")
    assert [part.authors for part in parts(box)] == [(mine,)]
    await rejected(box, *parts(box))
    assert content(box, "a") == LINES.replace(b"line 20\n", b"twenty\n")


async def test_a_decision_about_something_else_than_what_is_there_is_refused():
    box = made({"a": LINES})
    await edited(box, "a", "line 2\n", "two\n")
    seen = parts(box)
    await edited(box, "a", "two\n", "zwei\n")
    _, result = await rejected(box, *seen)
    assert "changed after it was shown" in result.details.kept[0].reason
    assert b"zwei" in content(box, "a")


async def test_other_text_takes_the_place_of_a_hunk_also_of_a_mixed_one():
    box = made({"a": b"one\ntwo\nthree\n"})
    await edited(box, "a", "two", "zwei")
    by_hand(box, "a", b"one\nzwei!\nthree\n")
    await edited(box, "a", "zwei!", "deux")
    (part,) = parts(box)
    await rejected(box, part, texts={part.id: "dos\n"})
    assert content(box, "a") == b"one\ndos\nthree\n"


async def test_changes_from_a_call_on_are_reviewed():
    box = made({"a": LINES})
    await edited(box, "a", "line 2\n", "two\n")
    second = await edited(box, "a", "line 20\n", "twenty\n")
    point = ReviewPoint("since", second)
    assert [part.authors for part in parts(box, point=point)] == [(second,)]
    await rejected(box, *parts(box, point=point), point=point)
    assert content(box, "a") == LINES.replace(b"line 2\n", b"two\n")


async def test_changes_of_all_sessions_from_a_time_on_are_reviewed():
    box = made({"a": LINES})
    first = await edited(box, "a", "line 2\n", "two\n")
    other = await edited(box, "a", "line 20\n", "twenty\n", session="other")
    entries = box.workspace.journal.entries
    at = entries.made_at(entries.of_call(other)[0].id)
    assert [part.authors for part in parts(box, point=ReviewPoint("time", "0.0"))] == [(first,), (other,)]
    assert [part.authors for part in parts(box, point=ReviewPoint("time", str(at)))] == [(other,)]


async def test_a_file_that_was_created_goes_with_the_folders_made_for_it():
    box = made({"keep": b""})
    await wrote(box, "x/y/new", "one\n", mode="create")
    (part,) = parts(box, "x/y/new")
    assert part.kind == "created"
    call, result = await rejected(box, part, path="x/y/new")
    assert result.ok, result.text
    assert box.workspace.files.facts("x") is None
    await undone(box, "call", call)
    assert content(box, "x/y/new") == b"one\n"


async def test_a_file_that_was_created_and_then_edited_by_a_person_is_kept():
    box = made({})
    await wrote(box, "a", "one\n", mode="create")
    by_hand(box, "a", b"one\nmine\n")
    (part,) = parts(box)
    _, result = await rejected(box, part)
    assert (part.refusal, content(box, "a")) == (EDITED_SINCE, b"one\nmine\n")
    assert result.details.kept


async def test_a_file_that_was_deleted_returns_with_its_mode():
    box = made({"a": b"one\n"})
    await changed(box, Change("a", Node("file", b"one\n", 0o755), None))
    (part,) = parts(box)
    assert (part.kind, reviewed(box).file("a").shown([part])) == ("deleted", "@@ -1 +0,0 @@\n-one\n")
    await rejected(box, part)
    assert content(box, "a") == b"one\n"


@pytest.mark.parametrize("data", [b"\0\1\2", b"a\0b" * 100], ids=["few", "many"])
async def test_what_is_no_text_is_decided_on_as_a_whole(data):
    box = made({"a": b"\0before"})
    await changed(box, Change.of("a", before=b"\0before", after=data))
    (part,) = parts(box)
    assert part.kind == "replaced"
    await rejected(box, part)
    assert content(box, "a") == b"\0before"


async def test_a_person_who_replaced_what_is_no_text_has_the_last_word():
    box = made({"a": b"\0before"})
    await changed(box, Change.of("a", before=b"\0before", after=b"\0agent"))
    by_hand(box, "a", b"\0mine")
    assert parts(box) == ()


async def test_a_mode_is_a_part_of_its_own():
    box = made({"a": LINES})
    await edited(box, "a", "line 2\n", "two\n")
    now = content(box, "a")
    mode = box.workspace.files.node("a").mode
    await changed(box, Change("a", Node("file", now, mode), Node("file", now, 0o755)))
    hunk, bits = parts(box)
    assert (hunk.kind, bits.kind) == ("hunk", "mode")
    await rejected(box, bits)
    assert (box.workspace.files.node("a").mode, content(box, "a")) == (mode, now)
    assert [part.kind for part in parts(box)] == ["hunk"]


async def test_what_a_person_undid_is_not_shown_and_what_is_redone_is():
    box = made({"a": LINES, "b": b""})
    call = await edited(box, "a", "line 2\n", "two\n")
    new = await wrote(box, "new", "x\n", mode="create")
    person = {"agent": PERSON_AGENT_NAME, "session": "default"}
    for name in (call, new):
        await box.call(Call(tool="undo", args={"scope": "call", "name": name}, **person))
    assert (parts(box), parts(box, "new")) == ((), ())
    for name in (call, new):
        args = {"scope": "call", "name": name, "action": "redo"}
        await box.call(Call(tool="undo", args=args, **person))
    assert [part.authors for part in parts(box)] == [(call,)]
    assert [part.kind for part in parts(box, "new")] == ["created"]


async def test_gits_own_files_are_only_counted():
    box = made({"a": LINES})
    await edited(box, "a", "line 2\n", "two\n")
    await changed(box, Change.of(".git/objects/ab/cd", before=None, after=b"x"))
    review = reviewed(box)
    assert (review.paths, review.git_paths > 0) == (["a"], True)


def held(*changes):
    end = CommandExit(code=0, output=CommandOutput(head=b"", tail=b"", bytes=0, lines=0))
    return FinishedCommand(exit=end, delta=tuple(changes), coverage="overlay")


def test_parts_of_what_a_command_would_change_are_left_out_before_it_lands():
    box = made({"a": LINES, "gone/x": b"x"})
    after = LINES.replace(b"line 2\n", b"two\n").replace(b"line 20\n", b"twenty\n")
    ran = held(
        Change.of("a", before=LINES, after=after),
        Change("new", None, Node("folder")),
        Change.of("new/b", before=None, after=b"b"),
        Change.of("gone/x", before=b"x", after=None),
        Change("gone", Node("folder"), None),
    )
    review = HeldReview("call", ran, box.workspace.files)
    assert review.paths == ["a", "gone/x", "new/b"]
    first = review.file("a").parts[0]
    going = review.file("gone/x").parts[0]
    left = review.without({"a": [first.id], "gone/x": [going.id]}, {})
    by_path = {change.path: change for change in left.delta}
    assert by_path["a"].after.data == LINES.replace(b"line 20\n", b"twenty\n")
    assert set(by_path) == {"a", "new", "new/b"}
    assert "a (in part)" in left.exit.notes[-1]
