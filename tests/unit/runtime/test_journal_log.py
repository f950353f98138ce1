"""What the record answers when it is asked: calls, sessions, questions, held commands, versions of a file."""

from dataclasses import replace

import pytest

from handtools import Approval, Call, Change, ChangeSet, Reply, Result
from handtools.core.changes import BackupRef, Node, TouchedPath
from handtools.core.commands import CommandExit, CommandOutput, FinishedCommand
from handtools.core.errors import UsageError
from handtools.core.files import PlannedWrite
from handtools.runtime.journal import CallRecord, Journal
from handtools.runtime.journal.change_entries import Transaction
from handtools.testing.memory_toolbox import MemoryStore


def new_journal():
    return Journal(":memory:", MemoryStore())


def recorded(journal, call_id, *, started=1.0, ended=2.0, status="ok", **facts):
    call = Call(**{"tool": "read", "args": {}, "id": call_id, **facts})
    journal.calls.record(call, Result(f"result of {call_id}", None, status=status), started, ended)
    return call


def changed(journal, call, *changes, finished=True, **facts):
    """Records what a call changed; gives the entry."""
    transaction = Transaction(ChangeSet.of(*changes), **facts)
    ordinal = len(journal.entries.of_call(call.id))
    steps = [PlannedWrite(change, "") for change in changes]
    entry = journal.entries.intend(call, transaction, steps, ordinal=ordinal)
    if finished:
        journal.entries.finish(entry)
    return entry


def written(path, text="new", before=None):
    return Change(path, before and Node("file", before.encode()), Node("file", text.encode()))


def test_an_id_finds_its_call_and_the_start_of_one_does_not():
    journal = new_journal()
    for call_id in ("ab", "abcd", "abce", "zz"):
        recorded(journal, call_id, turn="t", agent="me", parent="p", args={"path": "é"})
    found = journal.calls.find("zz")
    assert (found.id, found.session, found.turn, found.agent, found.parent) == (
        "zz", "default", "t", "me", "p",
    )  # fmt: skip
    assert (found.tool, found.args, found.started, found.ended) == ("read", {"path": "é"}, 1.0, 2.0)
    assert (found.status, found.code) == ("ok", "")
    assert journal.calls.find("z") is None
    assert journal.calls.find("ab").id == "ab"
    assert journal.calls.find("abc") is None
    assert journal.calls.find("x") is None


def test_no_more_ids_are_offered_for_a_start_than_asked_for():
    journal = new_journal()
    for number in range(7):
        recorded(journal, f"a{number}")
    assert journal.calls.ids_with_prefix("a") == ["a0", "a1", "a2", "a3", "a4"]
    assert journal.calls.ids_with_prefix("a", 2) == ["a0", "a1"]


def test_a_short_id_is_as_long_as_it_must_be_to_be_the_only_one():
    journal = new_journal()
    for call_id in ("aaaaaaaaaa", "aaaaaaaabb", "bbbbbbbbbb", "short"):
        recorded(journal, call_id)
    assert journal.calls.short("aaaaaaaaaa") == "aaaaaaaaa"
    assert journal.calls.short("aaaaaaaabb") == "aaaaaaaab"
    assert journal.calls.short("bbbbbbbbbb") == "bbbbbbb"
    assert journal.calls.short("bbbbbbbbbb", least=2) == "bb"
    assert journal.calls.short("short") == "short"


def test_a_short_id_is_never_a_number_because_that_names_a_change():
    journal = new_journal()
    recorded(journal, "12345678ab")
    assert journal.calls.short("12345678ab") == "12345678a"
    assert journal.calls_named("12345678a") == ["12345678ab"]


def test_a_number_names_a_change_and_is_never_the_start_of_an_id():
    journal = new_journal()
    call = Call(tool="write", args={}, id="9123456789abcdef")
    assert changed(journal, call, written("f")) == 1
    journal.calls.record(call, Result("done", None), 0.0)
    for number in ("9", "#9", "9123", "91234567"):
        assert journal.calls_named(number) == []
    for name in ("1", "#1", "9123456789a", call.id):
        assert journal.calls_named(name) == [call.id]


def test_the_start_of_an_id_needs_four_characters_and_may_fit_several():
    journal = new_journal()
    for call_id in ("abcd1", "abcd2", "ab"):
        recorded(journal, call_id)
    assert journal.calls_named("abc") == []
    assert journal.calls_named("abcd") == ["abcd1", "abcd2"]
    assert journal.calls_named("ab") == ["ab"]


def test_a_search_of_the_log_takes_its_text_as_it_stands():
    journal = new_journal()
    recorded(journal, "one", tool="bash", args={"command": "echo 100%"})
    recorded(journal, "two", tool="bash", args={"command": "echo 100 a_b"}, agent="helper")
    changed(journal, recorded(journal, "three", tool="write"), written("src/main.py"))

    def ids(text):
        return [call.id for call in journal.calls.page(matching=text)]

    assert ids("100%") == ["one"]
    assert ids("a_b") == ["two"]
    assert ids("h_lper") == []
    assert ids("HELPER") == ["two"]
    assert ids("main.p") == ["three"]
    assert ids('"') == []
    assert ids("") == ["three", "two", "one"]


def test_a_page_of_the_log_begins_and_ends_where_asked():
    journal = new_journal()
    for number in range(30):
        recorded(journal, f"{number:02}", session="even" if number % 2 == 0 else "odd")
    assert len(journal.calls.page()) == 20
    newest = journal.calls.newest_seq()
    assert [call.id for call in journal.calls.page(after=newest - 2)] == ["29", "28"]
    assert [call.id for call in journal.calls.page(before=newest, after=newest - 3)] == ["28", "27"]
    assert [call.id for call in journal.calls.page(session="odd", limit=2)] == ["29", "27"]
    assert [call.id for call in journal.calls.listed(["03", "17", "none"])] == ["17", "03"]
    assert journal.calls.count_since(journal.calls.find("25")) == 2


def test_the_newest_call_of_an_empty_log_is_number_0():
    journal = new_journal()
    assert journal.calls.newest_seq() == 0
    recorded(journal, "a")
    assert journal.calls.newest_seq() == 1


def test_sessions_are_listed_with_their_calls_agents_and_what_stands():
    journal = new_journal()
    first = recorded(journal, "a", session="one", agent="x", started=1.0, ended=3.0)
    recorded(journal, "b", session="two", started=4.0, ended=5.0)
    recorded(journal, "c", session="one", started=6.0, ended=9.0)
    changed(journal, first, written("f"), written("g"))
    assert journal.calls.session_names() == ["one", "two"]
    assert journal.calls.session_names(1) == ["one"]
    one, two = journal.calls.sessions()
    assert (one.name, one.calls, one.started, one.ended, one.agents, one.standing) == (
        "one", 2, 1.0, 9.0, "x", 2,
    )  # fmt: skip
    assert (two.name, two.agents, two.standing) == ("two", "", 0)
    assert [session.name for session in journal.calls.sessions(1)] == ["one"]


def test_many_sessions_are_listed_as_far_as_a_screen_goes():
    journal = new_journal()
    for number in range(102):
        recorded(journal, f"{number}", session=f"{number}")
    assert len(journal.calls.sessions()) == 20
    assert len(journal.calls.session_names()) == 100


def test_the_use_of_tools_counts_calls_failures_and_seconds():
    journal = new_journal()
    recorded(journal, "a", tool="bash", started=1.0, ended=4.0)
    recorded(journal, "b", tool="bash", started=4.0, ended=3.0, status="error")
    recorded(journal, "c", tool="read")
    used = [(use.tool, use.calls, use.not_ok, use.seconds) for use in journal.calls.use_of_tools()]
    assert used == [("bash", 2, 1, 3.0), ("read", 1, 0, 1.0)]


def test_the_result_of_a_cancelled_call_gives_way_to_a_later_one():
    journal = new_journal()
    call = recorded(journal, "x", status="cancelled", ended=2.0)
    journal.calls.record(call, Result("done", None), 1.0, 7.0)
    assert journal.calls.recall("x")["content"] == [{"type": "text", "text": "done"}]
    assert (journal.calls.find("x").status, journal.calls.find("x").ended) == ("ok", 7.0)


def test_of_a_call_that_was_never_made_there_is_no_result():
    journal = new_journal()
    assert journal.calls.recall("x") is None
    assert not journal.calls.has("x")


def test_a_call_that_waits_to_be_written_is_there_by_its_id():
    journal = new_journal()
    call = Call(tool="read", args={}, id="a")
    journal.record_later(CallRecord(call, Result("x", None), 1.0, 2.0, {}))
    assert journal.calls.has("a")


def asked(call, **facts):
    about = {"title": "t", "preview": "p", "rule": "r", "fingerprint": "f", "remembered": "x"}
    return Approval(**{"call_id": call.id, **about, **facts})


def test_a_question_waits_with_its_call_until_the_call_ends():
    journal = new_journal()
    one, two = (Call(tool="bash", args={"command": name}, id=name) for name in ("one", "two"))
    journal.calls.suspend(one, asked(one, title="first"), {"b", "a"})
    journal.calls.suspend(two, asked(two, title="second"))
    pending = journal.calls.suspended("one")
    assert (pending.call, pending.approval, pending.granted) == (
        one, asked(one, title="first"), {"a", "b"},
    )  # fmt: skip
    assert [approval.title for approval in journal.calls.waiting()] == ["first", "second"]
    assert [(each.call, each.approval.title) for each in journal.calls.waiting_calls()] == [
        (one, "first"),
        (two, "second"),
    ]
    journal.calls.record(one, Result("not yet", None, status="pending", request=asked(one)), 0.0)
    assert journal.calls.suspended("one") is not None
    journal.calls.record(one, Result("done", None), 0.0)
    assert journal.calls.suspended("one") is None
    assert [approval.title for approval in journal.calls.waiting()] == ["second"]


def test_answers_to_questions_are_listed_in_the_order_they_were_given():
    journal = new_journal()
    call = Call(tool="bash", args={}, id="x")
    no = Reply(allow=False, message="not today")
    journal.calls.note_answer(asked(call, fingerprint="z", title="first"), Reply(allow=True))
    journal.calls.note_answer(asked(call, fingerprint="a", title="second", rule="other"), no)
    answers = journal.calls.answered_questions("x")
    assert [(each.title, each.rule, each.reply) for each in answers] == [
        ("first", "r", Reply(allow=True)),
        ("second", "other", no),
    ]
    assert journal.calls.answered_questions("y") == []


def test_a_grant_covers_its_session_or_the_project_of_its_owner():
    journal = new_journal()
    call = Call(tool="bash", args={}, session="one", owner="me")
    other_session, other_owner = replace(call, session="two"), replace(call, owner="you")
    journal.calls.grant(call, "git push", lasts="session")
    journal.calls.grant(call, "ls", lasts="project")
    granted = journal.calls.granted
    assert granted(call, "git push")
    assert not granted(other_session, "git push")
    assert granted(call, "ls")
    assert granted(other_session, "ls")
    assert not granted(other_owner, "ls")
    assert not granted(call, "rm")


def test_a_grant_that_was_revoked_or_has_ended_covers_nothing_until_it_is_given_again():
    journal, call = new_journal(), Call(tool="bash", args={}, session="one")
    journal.calls.grant(call, "ls", lasts="project")
    journal.calls.grant(call, "ls", lasts="project")
    for column in ("revoked_at", "ends"):
        with journal.together() as connection:
            assert (
                connection.execute(f"UPDATE grants SET {column} = 1 WHERE revoked_at IS NULL").rowcount == 1
            )
        assert not journal.calls.granted(call, "ls")
        journal.calls.grant(call, "ls", lasts="project")
        assert journal.calls.granted(call, "ls")


def test_guidance_is_shown_once_to_an_agent_of_a_session_and_an_unnamed_session_ends_with_the_process(
    tmp_path,
):
    first, second = (Journal(str(tmp_path / "j.sqlite"), MemoryStore()) for _ in range(2))
    named = Call(tool="read", args={}, session="one")
    unnamed = Call(tool="read", args={})
    assert first.shown_guidance.mark_shown(named, "AGENTS.md")
    assert not first.shown_guidance.mark_shown(named, "AGENTS.md")
    assert first.shown_guidance.mark_shown(replace(named, agent="helper"), "AGENTS.md")
    assert not second.shown_guidance.mark_shown(named, "AGENTS.md")
    assert first.shown_guidance.mark_shown(unnamed, "AGENTS.md")
    assert not first.shown_guidance.mark_shown(unnamed, "AGENTS.md")
    assert second.shown_guidance.mark_shown(unnamed, "AGENTS.md")
    first.close()
    second.close()


def test_a_held_command_comes_back_as_it_was_until_it_is_dropped():
    journal = new_journal()
    moved = Node("file", b"\x00\xff", 0o600, BackupRef("item/f", "stat:1", 2))
    said = CommandOutput(head=b"\xffhead", tail=b"tail\x00", bytes=10, lines=2)
    ran = FinishedCommand(
        exit=CommandExit(code=3, output=said, streams=(said, replace(said, tail=b"")), notes=("said",)),
        delta=(Change("f", moved, Node("link", b"there")), Change("g", None, Node("folder"))),
        coverage="overlay",
        omitted=("big",),
    )
    journal.pending_commands.keep("x", ran)
    journal.pending_commands.keep("y", FinishedCommand(exit=ran.exit))
    held = journal.pending_commands.find("x")
    assert (held.exit, held.delta, held.coverage, held.omitted) == (
        ran.exit, ran.delta, "overlay", ("big",),
    )  # fmt: skip
    assert journal.pending_commands.find("y").delta is None
    assert journal.pending_commands.find("z") is None
    assert journal.pending_commands.backup_items() == {"item"}
    assert journal.pending_commands.drop("x") == ["item"]
    assert journal.pending_commands.drop("x") == []
    assert journal.pending_commands.find("x") is None
    assert journal.pending_commands.backup_items() == set()


def test_the_versions_of_a_path_tell_what_was_done_by_which_tool_and_how_large_it_was_then():
    journal = new_journal()
    made = recorded(journal, "made", tool="write")
    first = changed(journal, made, written("f", "1234"))
    changed(journal, Call(tool="edit", args={}, id="unlogged"), written("f", "12", "1234"))
    changed(journal, recorded(journal, "rm", tool="bash"), Change("f", Node("file", b"12"), None))
    changed(journal, recorded(journal, "unfinished"), written("f"), finished=False)
    versions = journal.entries.versions("f")
    assert [(each.call_id, each.tool, each.action, each.bytes) for each in versions] == [
        ("rm", "bash", "deleted", None),
        ("unlogged", "", "changed", 2),
        ("made", "write", "created", 4),
    ]
    assert versions[2].at == journal.entries.made_at(first) > 1e9
    assert [each.call_id for each in journal.entries.versions("f", 1)] == ["rm"]
    assert journal.entries.find_touch(versions[1].number).after.digest == Node("file", b"12").digest
    assert journal.entries.find_touch(99) is None
    assert journal.entries.first("f").id == versions[2].number
    assert journal.entries.first("none") is None
    closed = Change("d", Node("folder", mode=0o755), Node("folder", mode=0o700))
    changed(journal, Call(tool="bash", args={}, id="chmod"), closed)
    assert [(each.action, each.bytes) for each in journal.entries.versions("d")] == [("changed", None)]
    for number in range(48):
        changed(journal, Call(tool="edit", args={}, id=f"{number}"), written("f"))
    assert len(journal.entries.versions("f")) == 50
    assert len(journal.entries.versions("f", 99)) == 51


def test_what_a_call_changed_is_counted_with_folders_only_where_nothing_else_changed():
    journal = new_journal()
    folder = Change("d", None, Node("folder"))
    files = Call(tool="bash", args={}, id="files")
    entry = changed(journal, files, folder, written("d/a"), written("d/b", before="old"), written("d/c"))
    counted = journal.entries.counted("files", most=2)
    assert (counted.count, counted.undone) == (3, "no")
    assert counted.first == (TouchedPath("d/a", "created"), TouchedPath("d/b", "changed"))
    changed(journal, Call(tool="bash", args={}, id="folders"), folder)
    alone = journal.entries.counted("folders", most=2)
    assert (alone.count, alone.first) == (1, (TouchedPath("d", "created"),))
    nothing = journal.entries.counted("none", most=2)
    assert (nothing.count, nothing.undone, nothing.first) == (0, "no", ())
    touches = [touch.id for touch in journal.entries.touches(entry)]
    undo = Call(tool="undo", args={}, id="undo")
    back = Change("d/a", Node("file", b"new"), None)
    changed(journal, undo, back, kind="undo", reverts=(touches[1],))
    assert journal.entries.counted("files", most=2).undone == "partly"
    changed(journal, undo, back, kind="undo", reverts=tuple(touches))
    assert journal.entries.counted("files", most=2).undone == "yes"


def test_an_entry_knows_its_call_kind_and_time_and_one_that_is_gone_nothing():
    journal = new_journal()
    entries = journal.entries
    assert entries.newest_finished() == 0
    entry = changed(journal, Call(tool="write", args={}, id="x"), written("f"))
    assert (entries.call_of(entry), entries.kind(entry)) == ("x", "change")
    assert (entries.call_of(99), entries.kind(99), entries.made_at(99)) == ("", None, 0.0)
    assert entries.own_call_of_entry(entry) == "x"
    assert entries.own_call_of_entry(99) == ""
    assert (entries.has_only_finished_entries, entries.newest_finished()) == (True, entry)
    waiting = changed(journal, Call(tool="write", args={}, id="y"), written("g"), finished=False)
    assert (entries.has_only_finished_entries, entries.newest_finished()) == (False, waiting - 1)
    assert [each.call_id for each in entries.open()] == ["y"]
    entries.void(waiting)
    assert (entries.has_only_finished_entries, entries.newest_finished()) == (True, waiting)
    assert entries.selected("call", "y") == []


def test_a_call_that_runs_again_does_not_record_its_change_twice():
    journal = new_journal()
    call, change = Call(tool="write", args={}, id="x"), written("f")
    transaction, steps = Transaction(ChangeSet.of(change)), [PlannedWrite(change, "")]
    assert journal.entries.intend(call, transaction, steps) is not None
    assert journal.entries.intend(call, transaction, steps) is None
    assert journal.entries.intend(call, transaction, steps, ordinal=1) is not None
    assert len(journal.entries.of_call("x")) == 2


def test_changes_are_selected_by_turn_session_path_and_since_a_call_newest_first():
    journal = new_journal()
    for number, (session, turn) in enumerate([("a/b", "1"), ("a/b", "2"), ("c", "2"), ("a/b", "2")]):
        call = Call(tool="write", args={}, id=f"{number}", session=session, turn=turn)
        changed(journal, call, written(f"f{number}"))

    def paths(scope, name):
        return [touch.path for touch in journal.entries.selected(scope, name)]

    assert paths("turn", "a/b/2") == ["f3", "f1"]
    assert paths("session", "a/b") == ["f3", "f1", "f0"]
    assert paths("since", "1") == ["f3", "f1"]
    assert paths("call", "2") == ["f2"]
    assert paths("path", "f2") == ["f2"]
    assert [touch.path for touch in journal.entries.made_since(0.0)] == ["f3", "f2", "f1", "f0"]
    assert journal.entries.made_since(1e11) == []
    assert [touch.path for touch in journal.entries.first_touches("0", 5)] == ["f0"]
    with pytest.raises(UsageError, match="resolved to a call before"):
        paths("last", "")


def test_what_can_be_undone_next_and_redone_next_is_found_by_its_session():
    journal = new_journal()
    assert journal.calls.newest_change() is None
    assert journal.calls.newest_undone() is None
    for name in ("one", "two"):
        call = Call(tool="write", args={}, id=name, session=name, turn="t")
        entry = changed(journal, call, written(name))
    assert journal.calls.newest_change() == ("two", "two", "t")
    assert journal.calls.newest_change("one") == ("one", "one", "t")
    [touch] = journal.entries.touches(entry)
    undo = Call(tool="undo", args={}, id="undo", session="two")
    undone = changed(
        journal, undo, Change("two", Node("file", b"new"), None), kind="undo", reverts=(touch.id,)
    )
    assert journal.calls.newest_change() == ("one", "one", "t")
    assert journal.calls.newest_change("two") is None
    assert journal.calls.newest_undone() == ("two", "two", "t")
    assert journal.calls.newest_undone("one") is None
    assert journal.entries.calls_undone_or_redone(entry) == {"two"}
    assert journal.entries.calls_undone_or_redone(undone) == set()
    redo = Call(tool="undo", args={}, id="redo", session="two")
    [taken] = journal.entries.touches(undone)
    changed(journal, redo, written("two"), kind="redo", reverts=(taken.id,))
    assert journal.calls.newest_undone() is None
    assert journal.calls.newest_change() == ("two", "two", "t")
    assert journal.entries.calls_undone_or_redone(undone) == {"two", "undo"}


def test_names_that_are_not_unicode_come_back_from_the_record():
    journal = new_journal()
    odd = "odd\udcff"
    call = Call(tool="write", args={}, id="x")
    changed(journal, call, written(odd))
    assert [touch.path for touch in journal.entries.selected("call", "x")] == [odd]
    assert journal.entries.counted("x", most=1).first == (TouchedPath(odd, "created"),)
    assert journal.entries.left_at(odd).digest == Node("file", b"new").digest
    assert journal.entries.paths_since(0)[1] == {odd: False}


def test_a_backup_that_a_change_left_is_found_by_path_and_mark():
    journal = new_journal()
    held = Node("file", b"", None, BackupRef("item/f", "stat:1", 10))
    entry = changed(journal, Call(tool="bash", args={}, id="x"), Change("f", held, None))
    assert journal.entries.refs_since(0) == ["item/f"]
    assert journal.entries.refs_since(entry) == []
    assert journal.entries.ref_left("f", "stat:1") is None
    changed(journal, Call(tool="undo", args={}, id="y"), Change("f", None, held), kind="undo")
    assert journal.entries.ref_left("f", "stat:1") == "item/f"
    assert journal.entries.ref_left("f", "stat:2") is None
    assert journal.entries.ref_left("g", "stat:1") is None
    [version] = journal.entries.versions("f", 1)
    assert version.bytes == 10
    assert journal.refs.items() == {"item"}
    [change] = journal.entries.changes_of_call("x")
    assert (change.before.held.ref, change.before.held.bytes, change.after) == ("item/f", 10, None)


def test_a_file_that_is_too_large_to_keep_is_not_remembered_as_read():
    journal = new_journal()
    call = Call(tool="read", args={}, id="a")
    whole, larger = bytes(1 << 20), bytes((1 << 20) + 1)
    journal.entries.record_reads(call, {"f": Node("file", whole)})
    assert journal.entries.seen_bytes(call, "f") == whole
    journal.record_later(CallRecord(call, Result("x", None), 1.0, 2.0, {"f": Node("file", whole)}))
    assert journal.entries.seen_bytes(call, "f") == whole
    journal.calls.page()
    journal.record_later(CallRecord(call, Result("x", None), 1.0, 2.0, {"f": Node("file", larger)}))
    assert journal.entries.seen_bytes(call, "f") is None
    journal.calls.page()
    assert journal.entries.seen_bytes(call, "f") is None
    assert journal.retention.kept_bytes() == 0


def test_a_change_has_a_number_that_names_its_call():
    journal = new_journal()
    mine = journal.owned_by("me")
    call = mine.owned(Call(tool="write", args={}, id=mine.own_id("x")))
    entry = changed(mine, call, written("f"))
    mine.calls.record(call, Result("done", None), 0.0)
    for name in (str(entry), f"#{entry}", call.id[:24], "x"):
        assert mine.calls_named(name) == [call.id]
    assert journal.owned_by("you").calls_named(f"#{entry}") == []
    for unknown in ("#99", "", "none"):
        assert mine.calls_named(unknown) == []


def test_an_answer_counts_for_the_question_that_was_asked_and_not_for_the_next_one():
    journal = new_journal()
    call = Call(tool="bash", args={}, id="x")
    journal.calls.suspend(call, asked(call, title="first"))
    first = journal.answers.claim("x", Reply(allow=True)).kind
    assert journal.answers.answered() == {"x"}
    journal.calls.suspend(call, asked(call, title="second"))
    assert journal.answers.answered() == set()
    assert journal.answers.claim("x", Reply(allow=False)).kind == first
