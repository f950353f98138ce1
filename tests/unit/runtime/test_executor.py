"""The life of one call: what the caller and the model see."""

import errno
import os
import threading
from functools import partial

import anyio
import pytest
from pydantic import BaseModel

from handtools import Call, CancelToken, Change, ChangeSet, Context, Policy, Reply, Result, Rule, tool
from handtools.core.errors import UsageError
from handtools.core.events import Event, Progressed, Settled, Started
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.toolbox import CODING, Toolbox, local_workspace

ASK_ALL = Policy(rules=(Rule("ask-all", "ask", "Look first.", effects=frozenset({"change"})),))


class NoteParams(BaseModel):
    text: str = ""


class NoteDetails(BaseModel):
    runs: int


class Counter:
    """Makes a tool that counts its runs and does what it is told."""

    def __init__(self) -> None:
        self.runs = 0
        self.started = anyio.Event()

    def tool(self, body):
        @tool(effects=("read",))
        async def note(ctx: Context, params: NoteParams) -> Result[NoteDetails]:
            """Count."""
            self.runs += 1
            self.started.set()
            text = await body(ctx, params)
            return Result(text or "done", NoteDetails(runs=self.runs))

        return note


def content(box: Toolbox, path: str) -> bytes:
    return box.workspace.files.read(path)


async def test_the_same_id_again_gives_the_recorded_result_and_runs_nothing():
    box = memory_toolbox({"a.txt": b"one"})
    call = Call(tool="edit", args={"path": "a.txt", "old_string": "one", "new_string": "one one"}, id="x1")
    first = await box.call(call)
    again = await box.call(call)
    assert first.ok
    assert again == first
    assert content(box, "a.txt") == b"one one"


async def test_the_same_id_with_other_words_is_refused():
    box = memory_toolbox({"a.txt": b"one"})
    await box.call(Call(tool="read", args={"path": "a.txt"}, id="x1"))
    other = await box.call(Call(tool="read", args={"path": "b.txt"}, id="x1"))
    assert other.fault.code == "invalid_input"
    assert "another call" in other.text


async def test_a_list_that_came_as_json_text_is_taken_for_what_it_is():
    box = memory_toolbox({"a.txt": b"one two\n"})
    edits = '[{"path": "a.txt", "old_string": "one", "new_string": "1"}]'
    assert (await box.call("multi_edit", {"edits": edits})).ok
    assert content(box, "a.txt") == b"1 two\n"
    refused = await box.call("multi_edit", {"edits": "not json"})
    assert refused.fault.code == "invalid_input"


async def test_a_path_is_answered_as_the_workspace_names_it():
    box = memory_toolbox({"d/a.txt": b"one\n"})
    done = await box.call("edit", {"path": "/workspace/./d//a.txt", "old_string": "one", "new_string": "1"})
    assert done.details.path == "d/a.txt"
    assert "--- a/d/a.txt" in done.text


async def test_the_same_id_while_it_runs_waits_for_the_same_result():
    counter = Counter()
    go = anyio.Event()

    async def body(ctx, params):
        await go.wait()

    box = memory_toolbox(tools=[counter.tool(body)])
    results = []

    async def one():
        results.append(await box.call(Call(tool="note", args={}, id="twin")))

    async with anyio.create_task_group() as group:
        group.start_soon(one)
        group.start_soon(one)
        await counter.started.wait()
        go.set()
    assert counter.runs == 1
    assert results[0] == results[1]


async def test_every_problem_with_the_arguments_is_named_at_once():
    box = memory_toolbox({"a": b""})
    result = await box.call("edit", {"pth": "a", "old_string": 3})
    assert result.status == "error"
    assert result.fault.code == "invalid_input"
    for words in (
        "`pth` is not a parameter; did you mean `path`?",
        "`path` is missing",
        "`old_string`",
        "takes:",
    ):
        assert words in result.text


async def test_arguments_that_are_still_text_are_a_mistake_of_the_caller():
    with pytest.raises(UsageError, match="parse the provider's JSON text first"):
        await memory_toolbox().call("read", '{"path": "a"}')


async def test_an_unknown_tool_names_the_near_one():
    result = await memory_toolbox().call("edti", {})
    assert result.fault.code == "unknown_tool"
    assert "edit" in result.text


async def test_a_machine_that_refuses_in_the_middle_of_a_call_is_no_bug(caplog):
    counter = Counter()

    async def body(ctx, params):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    refused = await memory_toolbox(tools=[counter.tool(body)]).call("note", {"text": "x"})
    assert refused.fault.code == "storage"
    assert "Too many open files" in refused.text
    assert "ulimit -n" in refused.text
    assert "check whether the call already changed something" in refused.text
    assert "Traceback" not in caplog.text


async def test_a_bug_in_a_tool_is_a_result_and_the_next_call_works(caplog):
    counter = Counter()

    async def body(ctx, params):
        if params.text == "bad":
            raise ZeroDivisionError("oh")

    box = memory_toolbox(tools=[counter.tool(body)])
    bad = await box.call("note", {"text": "bad"})
    assert bad.fault.code == "internal"
    assert "ZeroDivisionError" in bad.text
    assert "Traceback" in caplog.text
    assert (await box.call("note", {"text": "good"})).ok


async def test_a_denied_change_leaves_the_file_alone():
    policy = Policy(rules=(Rule("no", "deny", "Not here.", effects=frozenset({"change"})),))
    box = memory_toolbox({"a": b"x"}, policy=policy)
    result = await box.call("edit", {"path": "a", "old_string": "x", "new_string": "y"})
    assert result.status == "denied"
    assert "no" in result.text
    assert content(box, "a") == b"x"


async def test_nothing_is_made_before_a_person_said_yes():
    seen = []

    async def ask(approval):
        seen.append((approval, box.workspace.files.facts("new")))
        return Reply(allow=False, message="Put it elsewhere.")

    box = memory_toolbox({}, policy=ASK_ALL, approver=ask)
    result = await box.call("write", {"path": "new/deep/a.txt", "content": "hi"})
    assert result.status == "denied"
    assert "Put it elsewhere." in result.text
    [(approval, folder)] = seen
    assert folder is None
    assert "+hi" in approval.preview
    assert "ask-all" in approval.rule
    assert box.workspace.files.facts("new") is None


async def test_not_now_is_pending_and_resume_runs_it_with_a_grant_for_exactly_that():
    box = memory_toolbox({"a": b"x"}, policy=ASK_ALL)
    call = Call(tool="edit", args={"path": "a", "old_string": "x", "new_string": "y"}, id="c1")
    pending = await box.call(call)
    assert pending.status == "pending"
    assert pending.request.fingerprint
    assert content(box, "a") == b"x"
    assert [approval.call_id for approval in await box.waiting()] == ["c1"]
    assert (await box.call(call)).status == "pending"

    done = await box.resume("c1", Reply(allow=True))
    assert done.ok
    assert content(box, "a") == b"y"
    assert await box.waiting() == []
    assert (await box.resume("c1", Reply(allow=True))) == done


async def test_resume_asks_again_when_the_effect_came_out_different():
    box = memory_toolbox({"a": b"x\n"}, policy=ASK_ALL)
    first = await box.call(
        Call(tool="edit", args={"path": "a", "old_string": "x", "new_string": "y"}, id="c1")
    )
    box.workspace.files.perform(box.workspace.files.plan([change("a", b"x\n", b"x and more\n")]))
    second = await box.resume("c1", Reply(allow=True))
    assert second.status == "pending"
    assert second.request.fingerprint != first.request.fingerprint
    assert content(box, "a") == b"x and more\n"


async def test_the_answers_to_a_call_that_asks_twice_add_up():
    class PairParams(BaseModel):
        first: str
        second: str

    @tool
    async def touch_both(ctx: Context, params: PairParams) -> Result[NoteDetails]:
        """Look at one file, then at another."""
        data = await ctx.files.read(params.first) + await ctx.files.read(params.second)
        return Result(data.decode(), NoteDetails(runs=1))

    ask_reads = Policy(rules=(Rule("ask-reads", "ask", "Look first.", effects=frozenset({"read"})),))
    box = memory_toolbox({"a": b"A", "b": b"B"}, tools=[touch_both], policy=ask_reads)
    call = Call(tool="touch_both", args={"first": "a", "second": "b"}, id="two")
    assert (await box.call(call)).request.preview == "a"
    assert (await box.resume("two", Reply(allow=True))).request.preview == "b"
    assert (await box.resume("two", Reply(allow=True))).text == "AB"


async def test_a_no_to_a_pending_call_is_recorded_with_the_reason():
    box = memory_toolbox({"a": b"x"}, policy=ASK_ALL)
    await box.call(Call(tool="edit", args={"path": "a", "old_string": "x", "new_string": "y"}, id="c1"))
    no = await box.resume("c1", Reply(allow=False, message="Use b instead."))
    assert no.status == "denied"
    assert "Use b instead." in no.text
    assert await box.waiting() == []


@pytest.mark.parametrize(
    ("remember", "same_session", "other_session"),
    [("once", 2, 3), ("session", 1, 2), ("project", 1, 1)],
)
async def test_a_yes_is_remembered_as_far_as_it_was_given(remember, same_session, other_session):
    asked = []

    async def ask(approval):
        asked.append(approval)
        return Reply(allow=True, remember=remember)

    box = memory_toolbox({"a": b"1"}, policy=ASK_ALL, approver=ask)
    for old, new, session in (("1", "2", "s"), ("2", "3", "s"), ("3", "4", "t")):
        args = {"path": "a", "old_string": old, "new_string": new}
        assert (await box.call(Call(tool="edit", args=args, session=session))).ok
        if new == "3":
            assert len(asked) == same_session
    assert len(asked) == other_session


async def test_a_remembered_yes_never_opens_what_is_denied():
    async def ask(approval):
        return Reply(allow=True, remember="project")

    deny = Rule("never", "deny", "No.", effects=frozenset({"change"}), paths=("secret/",))
    box = memory_toolbox({}, policy=ASK_ALL.with_rules([deny]), approver=ask)
    assert (await box.call("write", {"path": "ok/a", "content": "x"})).ok
    assert (await box.call("write", {"path": "secret/a", "content": "x"})).status == "denied"


async def test_a_call_cancelled_before_it_starts_does_nothing():
    box = memory_toolbox({"a": b"x"})
    token = CancelToken()
    token.cancel()
    result = await box.call("edit", {"path": "a", "old_string": "x", "new_string": "y"}, cancel=token)
    assert result.status == "cancelled"
    assert content(box, "a") == b"x"


async def test_a_running_call_is_cancelled_by_id_from_another_thread():
    counter = Counter()

    async def body(ctx, params):
        await anyio.sleep_forever()

    box = memory_toolbox(tools=[counter.tool(body)])
    results = []
    async with anyio.create_task_group() as group:

        async def run():
            results.append(await box.call(Call(tool="note", args={}, id="long")))

        group.start_soon(run)
        await counter.started.wait()
        stopped = await anyio.to_thread.run_sync(box.cancel, "long")
    assert stopped
    assert results[0].status == "cancelled"
    assert not box.cancel("long")


async def test_cancelling_the_task_of_a_call_records_it_as_cancelled():
    counter = Counter()

    async def body(ctx, params):
        await anyio.sleep_forever()

    box = memory_toolbox(tools=[counter.tool(body)])
    async with anyio.create_task_group() as group:
        group.start_soon(box.call, Call(tool="note", args={}, id="gone"))
        await counter.started.wait()
        group.cancel_scope.cancel()
    assert box.workspace.journal.calls.find("gone").status == "cancelled"


async def test_a_call_past_its_deadline_ends_as_timeout():
    counter = Counter()

    async def body(ctx, params):
        await anyio.sleep_forever()

    box = memory_toolbox(tools=[counter.tool(body)])
    result = await box.call(Call(tool="note", args={}, deadline=0.01))
    assert result.status == "timeout"
    assert "0.01 s" in result.text


async def test_a_slow_and_a_failing_listener_cost_the_call_nothing_and_hear_everything_in_order():
    counter = Counter()
    release = threading.Event()
    heard: list[Event] = []

    def slow(event: Event) -> None:
        release.wait(30)
        heard.append(event)

    def failing(event: Event) -> None:
        raise RuntimeError("listener bug")

    async def body(ctx, params):
        for index in range(1_000):
            ctx.progress(f"step {index}")

    box = memory_toolbox(tools=[counter.tool(body)], listeners=[failing, slow])
    result = await box.call("note", {})
    assert result.ok
    assert heard == []
    release.set()
    await box.aclose()
    assert isinstance(heard[0], Started)
    assert isinstance(heard[-1], Settled)
    steps = [event.text for event in heard if isinstance(event, Progressed)]
    assert steps[0] == "step 0"
    assert steps[-1] == "step 999"
    assert len(steps) < 300


async def test_long_output_is_cut_and_the_whole_can_be_read_by_page():
    counter = Counter()

    async def body(ctx, params):
        return "\n".join(f"line {index}" for index in range(1, 20_001))

    box = memory_toolbox(tools=[counter.tool(body), *CODING])
    result = await box.call("note", {})
    assert len(result.text) < 70_000
    assert "line 1\n" in result.text
    assert result.text.rstrip(")").count("line 20000") == 1
    assert result.spill.lines == 20_000
    page = await box.call("read", {"path": result.spill.path, "start_line": 10_000, "limit": 2})
    assert "line 10000" in page.text
    refused = await box.call("write", {"path": result.spill.path, "content": "", "mode": "overwrite"})
    assert refused.fault.code == "wrong_kind"


@pytest.mark.parametrize("call_id", ["functions.note:0", ".hidden", "a/b", "é", "x" * 300])
async def test_long_output_is_kept_whatever_id_the_caller_gave(tmp_path, call_id):
    async def body(ctx, params):
        return "\n".join(f"line {index}" for index in range(1, 20_001))

    (tmp_path / "work").mkdir()
    workspace = local_workspace(tmp_path / "work", state=tmp_path / "state")
    async with Toolbox([Counter().tool(body), *CODING], workspace=workspace) as box:
        result = await box.call(Call(tool="note", args={}, id=call_id))
        found = await box.call("grep", {"path": result.spill.path, "pattern": "line 12345$"})
    assert "12345:line 12345" in found.text


async def test_the_same_failing_call_gets_a_note_and_then_a_stop():
    box = memory_toolbox({"a": b"x"})
    args = {"path": "a", "old_string": "nope", "new_string": "y"}
    texts = [(await box.call("edit", args)).text for _ in range(7)]
    assert "failed 3 times" not in texts[1]
    assert "failed 3 times" in texts[2]
    assert "not run again" in texts[6]
    assert (await box.call("edit", args | {"old_string": "x"})).ok


async def test_two_agents_on_one_workspace_have_their_own_policies():
    box = memory_toolbox({"a": b"x"})
    reader = box.under(Policy(tools="read_only"))
    assert (await reader.call("read", {"path": "a"})).ok
    refused = await reader.call("edit", {"path": "a", "old_string": "x", "new_string": "y"})
    assert refused.fault.code == "unknown_tool"
    assert "edit" not in [definition.name for definition in reader.definitions()]
    assert (await box.call("edit", {"path": "a", "old_string": "x", "new_string": "y"})).ok


async def test_why_names_the_rule_and_changes_nothing():
    box = memory_toolbox({"a": b"x", ".env": b"KEY=1"}, policy=ASK_ALL.with_rules(Policy().rules))
    ask = await box.why("edit", {"path": "a", "old_string": "x", "new_string": "y"})
    assert (ask.verdict, ask.rule) == ("ask", "ask-all")
    assert (await box.why("read", {"path": ".env"})).rule == "private"
    assert (await box.why("read", {"path": "a"})).verdict == "allow"
    assert (await box.why("nonsense", {})).verdict == "deny"
    assert (await box.why("edit", {"path": 3})).verdict == "deny"
    assert content(box, "a") == b"x"
    assert box.workspace.journal.calls.page() == []


@pytest.mark.linux("mount table")  # else a path is located in a thread, as on a network's file system
async def test_calls_that_come_together_take_their_turns_in_the_order_in_which_they_came(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a").write_text("step 0\n")
    results = {}
    async with (
        Toolbox(CODING, workspace=local_workspace(tmp_path / "work", state=tmp_path / "state")) as box,
        anyio.create_task_group() as group,
    ):

        async def step(number):
            args = {"path": "a", "old_string": f"step {number}", "new_string": f"step {number + 1}"}
            results[number] = await box.call("edit", args)

        # Only the first call of all does something before its turn.
        await box.call("read", {"path": "a"})
        for number in range(12):
            group.start_soon(step, number)
            await anyio.lowlevel.checkpoint()
    assert [results[number].text for number in range(12) if not results[number].ok] == []
    assert (tmp_path / "work/a").read_text() == "step 12\n"


async def test_parallel_edits_of_one_file_all_land():
    box = memory_toolbox({"a": b"".join(b"line %d\n" % index for index in range(20))})
    results = []

    async def one(index):
        args = {"path": "a", "old_string": f"line {index}\n", "new_string": f"LINE {index}\n"}
        results.append(await box.call("edit", args))

    async with anyio.create_task_group() as group:
        for index in range(20):
            group.start_soon(one, index)
    assert all(result.ok for result in results)
    assert content(box, "a") == b"".join(b"LINE %d\n" % index for index in range(20))


def change(path, before, after):
    from handtools import Change

    return Change.of(path, before=before, after=after)


async def test_a_look_is_not_run_again_under_the_same_id_while_its_record_waits():
    counter = Counter()

    async def nothing(ctx, params):
        return "looked"

    box = memory_toolbox({}, tools=[counter.tool(nothing)])
    call = Call(tool="note", args={"text": "one"}, id="x1")
    first = await box.call(call)
    assert await box.call(call) == first
    assert counter.runs == 1
    refused = await box.call(Call(tool="note", args={"text": "other"}, id="x1"))
    assert refused.fault.code == "invalid_input"


async def test_why_knows_what_a_person_said_yes_to_for_good():
    async def yes(approval):
        return Reply(allow=True, remember="project")

    box = memory_toolbox({"a.txt": b"one"}, policy=ASK_ALL, approver=yes)
    args = {"path": "a.txt", "old_string": "one", "new_string": "two"}
    assert (await box.why("edit", args)).verdict == "ask"
    assert (await box.call("edit", args)).ok
    decision = await box.why("edit", args | {"old_string": "two", "new_string": "three"})
    assert (decision.verdict, decision.rule) == ("allow", "remembered")


@pytest.mark.parametrize("tool", ["read", "edit", "write"])
async def test_an_empty_path_is_an_error_where_one_must_be_named(tool):
    more = {"edit": {"old_string": "a", "new_string": "b"}, "write": {"content": "x"}}
    refused = await memory_toolbox({"a.txt": b"a"}).call(tool, {"path": "", **more.get(tool, {})})
    assert refused.fault.code == "invalid_input"
    assert "`path` is empty." in refused.text


async def test_the_callers_own_facts_reach_events_and_questions_and_survive_a_restart():
    heard: list[Event] = []
    box = memory_toolbox({"a.txt": b"one"}, policy=ASK_ALL, listeners=[heard.append])
    facts = {"chat": 7, "user": {"id": "u1"}}
    args = {"path": "a.txt", "old_string": "one", "new_string": "two"}
    asked = await box.call(Call(tool="edit", args=args, metadata=facts))
    assert asked.request.metadata == facts
    assert [approval.metadata for approval in await box.waiting()] == [facts]
    done = await box.resume(asked.request.call_id, Reply(allow=True))
    assert done.ok
    await box.aclose()
    ends = [event.call.metadata for event in heard if isinstance(event, Started | Settled)]
    assert ends == [facts] * 4


@pytest.mark.parametrize(
    "wrong",
    [{"metadata": {"x": object()}}, {"env": {"A B": "x"}}, {"env": {"A": "x\0"}}, {"env": {"": "x"}}],
)
def test_facts_and_variables_that_can_not_be_handed_on_are_refused(wrong):
    with pytest.raises(UsageError):
        Call(tool="read", args={}, **wrong)


async def test_a_listener_of_one_call_hears_of_that_call_alone():
    counter, heard, others = Counter(), [], []

    async def body(ctx, params):
        ctx.progress(params.text)

    box = memory_toolbox(tools=[counter.tool(body)], listeners=[others.append])
    await box.call("note", {"text": "before"})
    await box.call("note", {"text": "mine"}, listener=heard.append)
    await box.call("note", {"text": "after"})
    await box.aclose()
    assert [type(event).__name__ for event in heard] == ["Started", "Progressed", "Settled"]
    assert heard[1].text == "mine"
    assert len(others) == 9


WRITE = {"path": "a", "content": "x"}


async def test_an_answer_in_hand_is_taken_for_the_question_and_for_no_second_one():
    box = memory_toolbox(policy=ASK_ALL)
    done = await box.call(Call(tool="write", args=WRITE, id="one"), reply=Reply(True))
    assert done.ok
    assert content(box, "a") == b"x"
    assert await box.waiting() == []
    other = await box.call("write", {"path": "b", "content": "x"}, reply=Reply(True, fingerprint="another"))
    assert other.status == "pending"


async def test_an_answer_in_hand_answers_the_call_that_waits_already():
    box = memory_toolbox(policy=ASK_ALL)
    call = Call(tool="write", args=WRITE, id="one")
    assert (await box.call(call)).status == "pending"
    assert (await box.call(call, reply=Reply(True))).ok
    assert await box.waiting() == []
    no = Call(tool="write", args={"path": "b", "content": "x"}, id="two")
    assert (await box.call(no)).status == "pending"
    assert (await box.call(no, reply=Reply(False, message="Not there."))).status == "denied"
    assert await box.waiting() == []


async def test_a_withdrawn_question_no_longer_waits_and_the_same_id_asks_again():
    box = memory_toolbox(policy=ASK_ALL)
    call = Call(tool="write", args=WRITE, id="one")
    await box.call(call)
    assert await box.withdraw("one")
    assert await box.waiting() == []
    assert not await box.withdraw("one")
    assert box.workspace.journal.calls.find("one").status == "cancelled"
    assert (await box.call(call)).status == "pending"
    assert (await box.resume("one", Reply(True))).ok


class Gate:
    """A tool that asks, and then waits until it is told to go on."""

    def __init__(self) -> None:
        self.reached, self.go, self.runs = anyio.Event(), anyio.Event(), 0

    def toolbox(self) -> Toolbox:
        @tool(effects=("change",))
        async def hold(ctx: Context, params: NoteParams) -> Result[NoteDetails]:
            """Change, slowly."""
            await ctx.files.apply(ChangeSet.of(Change.of("a", before=None, after=b"x")))
            self.runs += 1
            self.reached.set()
            await self.go.wait()
            return Result("held", NoteDetails(runs=self.runs))

        return memory_toolbox(tools=[hold], policy=ASK_ALL)


async def test_a_resumed_call_is_cancelled_by_its_id():
    gate, results = Gate(), []
    box = gate.toolbox()
    assert (await box.call(Call(tool="hold", args={}, id="one"))).status == "pending"

    async def answer():
        results.append(await box.resume("one", Reply(True)))

    async with anyio.create_task_group() as group:
        group.start_soon(answer)
        await gate.reached.wait()
        assert box.cancel("one")
    assert results[0].status == "cancelled"


async def test_two_answers_at_once_run_the_call_once():
    gate, results = Gate(), []
    box = gate.toolbox()
    await box.call(Call(tool="hold", args={}, id="one"))

    async def answer():
        results.append(await box.resume("one", Reply(True)))

    async with anyio.create_task_group() as group:
        group.start_soon(answer)
        group.start_soon(answer)
        await gate.reached.wait()
        gate.go.set()
    assert gate.runs == 1
    assert [each.status for each in results] == ["ok", "ok"]


async def test_a_cancelled_call_that_changed_nothing_runs_when_it_is_asked_for_again():
    counter, blocked = Counter(), anyio.Event()

    async def body(ctx, params):
        if counter.runs == 1:
            blocked.set()
            await anyio.sleep_forever()

    box = memory_toolbox(tools=[counter.tool(body)])
    call = Call(tool="note", args={}, id="again")
    async with anyio.create_task_group() as group:
        group.start_soon(box.call, call)
        await blocked.wait()
        group.cancel_scope.cancel()
    again = await box.call(call)
    assert again.ok
    assert await box.call(call) == again
    assert counter.runs == 2


async def test_a_cancelled_call_that_changed_something_is_not_run_again():
    gate = Gate()
    box = gate.toolbox()
    call = Call(tool="hold", args={}, id="one")
    async with anyio.create_task_group() as group:
        group.start_soon(partial(box.call, call, reply=Reply(True)))
        await gate.reached.wait()
        group.cancel_scope.cancel()
    assert (await box.call(call)).status == "cancelled"
    assert gate.runs == 1


async def test_a_waiter_that_is_cancelled_leaves_the_call_that_it_waited_for():
    counter, go, results = Counter(), anyio.Event(), []

    async def body(ctx, params):
        await go.wait()

    box = memory_toolbox(tools=[counter.tool(body)])
    call = Call(tool="note", args={}, id="shared")

    async def first():
        results.append(await box.call(call))

    async with anyio.create_task_group() as group:
        group.start_soon(first)
        await counter.started.wait()
        with anyio.move_on_after(0):
            await box.call(call)
        go.set()
    assert results[0].ok
    assert counter.runs == 1


def noted_facts(box, columns="meta, verdict, rule"):
    with box.workspace.journal._database.reading() as connection:
        return connection.execute(f"SELECT {columns} FROM calls ORDER BY seq").fetchall()


async def test_the_journal_has_the_metadata_of_a_call_and_the_strictest_decision_on_it():
    box = memory_toolbox({"a": b"one"}, policy=ASK_ALL)
    await box.call("read", {"path": "a"})
    args = {"path": "a", "old_string": "one", "new_string": "two"}
    asked = Call(tool="edit", args=args, id="asked", metadata={"provider_id": "p1"})
    assert (await box.call(asked)).status == "pending"
    assert noted_facts(box) == [
        ("{}", "allow", "default for read"),
        ('{"provider_id": "p1"}', "ask", "ask-all"),
    ]
    await box.resume("asked", Reply(allow=False))
    assert noted_facts(box, "status, verdict, rule")[1] == ("denied", "ask", "ask-all")


async def test_a_call_that_was_denied_by_a_rule_is_recorded_with_that_rule():
    closed = Policy(rules=(Rule("closed", "deny", "No.", paths=("a",)),))
    box = memory_toolbox({"a": b"one"}, policy=closed)
    await box.call("write", {"path": "a", "content": "x"})
    assert noted_facts(box, "status, verdict, rule") == [("denied", "deny", "closed")]


async def test_the_journal_has_the_modification_time_of_what_a_change_replaced(tmp_path):
    work = tmp_path / "work"
    work.mkdir()
    (work / "a").write_text("one")
    os.utime(work / "a", (1_000.5, 1_000.5))
    async with Toolbox(CODING, workspace=local_workspace(work, state=tmp_path / "state")) as box:
        assert (await box.call("edit", {"path": "a", "old_string": "one", "new_string": "two"})).ok
        assert (await box.call("write", {"path": "new", "content": "x"})).ok
        with box.workspace.journal._database.reading() as connection:
            rows = connection.execute("SELECT path, before_mtime FROM touches ORDER BY id").fetchall()
    assert rows == [("a", 1_000.5), ("new", None)]
