"""What another process sees of an agent at work, and what it can do about it."""

import os
import threading
import time

import anyio
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handtools.core.approval import Reply
from handtools.core.call import Call
from handtools.core.errors import HandtoolsError
from handtools.core.result import Result
from handtools.record.session_feed import FeedCursor, SessionFeed
from handtools.runtime.journal.running_calls import STALE_SECONDS
from handtools.runtime.policy import Policy
from handtools.toolbox import CODING, Toolbox, local_workspace

PATIENCE = 60.0


class Bench:
    """A folder with an agent's toolbox, and any number of feeds on it, each with a connection of its own."""

    def __init__(self, folder, **policy):
        self.root, self.state = folder / "work", folder / "state"
        self.root.mkdir()
        workspace = local_workspace(self.root, state=self.state)
        self.toolbox = Toolbox(CODING, workspace=workspace, policy=Policy(**policy))
        self.feeds = []

    def feed(self):
        feed = SessionFeed(self.root, self.state)
        self.feeds.append(feed)
        return feed

    async def write(self, path, content="x\n", **facts):
        return await self.toolbox.call(Call(tool="write", args={"path": path, "content": content}, **facts))

    def text(self, path):
        file = self.root / path
        return file.read_text() if file.exists() else None

    def close(self):
        for feed in self.feeds:
            feed.close()
        self.toolbox.workspace.journal.close()


@pytest.fixture
def bench(tmp_path):
    made = Bench(tmp_path, unattended="ask")
    yield made
    made.close()


async def until(what, *values):
    """What a function gives, as soon as that is anything."""
    with anyio.fail_after(PATIENCE):
        while not (found := await anyio.to_thread.run_sync(what, *values)):
            os.sched_yield()
    return found


async def asking(bench, call_id="q", path=".envrc"):
    result = await bench.write(path, "export A=1\n", id=call_id)
    assert result.status == "pending"
    return result


async def test_a_call_that_ended_is_news_once(bench):
    feed = bench.feed()
    before = feed.current_cursor()
    await bench.write("a.txt", id="one")
    news = feed.news_since(before)
    assert [(call.id, call.state, call.changed_text) for call in news.calls] == [("one", "done", "+a.txt")]
    assert news.calls[0].tokens > 0
    assert feed.news_since(news.cursor).calls == ()


async def test_the_journal_says_cheaply_that_nothing_was_written(bench):
    feed = bench.feed()
    await bench.write("a.txt")
    assert feed.is_journal_changed()
    assert not feed.is_journal_changed()
    await bench.write("b.txt")
    assert feed.is_journal_changed()


async def test_a_feed_is_quiet_until_another_process_writes(bench):
    feed = bench.feed()
    await bench.write("a.txt")
    assert not feed.is_quiet(), "nothing was read yet"
    settle(feed)
    assert feed.is_quiet()
    await bench.write("b.txt")
    assert not feed.is_quiet()
    assert feed.is_journal_changed()


async def test_a_feed_that_was_written_within_this_clock_tick_is_not_quiet(bench):
    feed = bench.feed()
    await bench.write("a.txt")
    settle(feed)
    log = f"{feed._journal.path}-wal"
    os.utime(log, ns=(time.time_ns() + 10**9,) * 2)
    feed.is_journal_changed()
    assert not feed.is_quiet(), "the next write could leave the same time"


def settle(feed):
    """Read a feed, as if the last write was some time ago."""
    feed.record_user_watching()
    os.utime(f"{feed._journal.path}-wal", ns=(0, 0))
    feed.is_journal_changed()


async def test_pages_are_the_whole_log_newest_first(bench):
    feed = bench.feed()
    for number in range(7):
        await bench.write(f"{number}.txt", id=f"call{number}")
    pages, before = [], None
    while page := feed.recorded_calls_page(before=before, limit=3):
        pages.append([call.id for call in page])
        before = page[-1].seq
    assert pages == [["call6", "call5", "call4"], ["call3", "call2", "call1"], ["call0"]]


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("ümlaut", "b"),
        ("DENIED", "c"),
        ("100%", "d"),
        ("src/deep", "a"),
        ("write", "dcba"),
        ("no_such", ""),
    ],
)
async def test_calls_are_found_by_what_they_say_and_change(bench, wanted, found):
    await bench.write("src/deep.txt", id="a")
    await bench.write("b.txt", "ümlaut", id="b")
    await asking(bench, "c")
    await bench.toolbox.resume("c", Reply(allow=False))
    await bench.write("d.txt", "100% or 100_", id="d")
    assert "".join(call.id for call in bench.feed().recorded_calls_page(matching=wanted)) == found


async def test_a_page_is_of_one_session(bench):
    await bench.write("a.txt", id="a", session="one")
    await bench.write("b.txt", id="b", session="two")
    await bench.write("c.txt", id="c", session="one")
    feed = bench.feed()
    assert [call.id for call in feed.recorded_calls_page(session="one")] == ["c", "a"]
    assert feed.sessions() == ["one", "two"]


@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_a_running_command_is_seen_with_its_output_and_cancelled_from_elsewhere(bench):
    feed = bench.feed()
    before, results = feed.current_cursor(), []
    call = Call(tool="bash", args={"command": "echo first; tail -f /dev/null"}, id="run")
    async with anyio.create_task_group() as group:

        async def run():
            results.append(await bench.toolbox.call(call))

        group.start_soon(run)
        await until(lambda: (found := feed.call_details("run")) and "first" in found.answer)
        news = feed.news_since(before)
        assert [(call.id, call.state) for call in news.running_calls] == [("run", "running")]
        assert feed.request_cancel("run")
    assert results[0].status == "cancelled"
    after = feed.news_since(news.cursor)
    assert after.running_calls == ()
    assert [(call.id, call.state) for call in after.calls] == [("run", "cancelled")]
    assert not feed.request_cancel("nobody")


async def test_a_call_that_is_over_at_once_is_never_written_as_running(bench):
    await bench.write("a.txt")
    assert bench.feed().current_cursor().unsettled == frozenset()
    assert bench.toolbox.workspace.journal.running.listed() == []


async def test_a_question_is_shown_with_all_that_an_answer_means(bench):
    await asking(bench)
    (asked,) = bench.feed().news_since(FeedCursor()).pending
    assert ".envrc" in asked.approval.title
    assert "export A=1" in asked.approval.preview
    assert asked.approval.rule
    assert asked.approval.remembered.startswith("change .envrc")
    assert not asked.is_awaited


async def test_an_answer_that_nobody_waits_for_runs_the_call_here(bench):
    await asking(bench)
    outcome = await anyio.to_thread.run_sync(bench.feed().answer_pending_call, "q", Reply(allow=True))
    assert outcome.by == "here"
    assert bench.text(".envrc") == "export A=1\n"


async def test_a_denial_carries_its_sentence_to_the_model(bench):
    await asking(bench)
    feed = bench.feed()
    await anyio.to_thread.run_sync(
        feed.answer_pending_call, "q", Reply(allow=False, message="Use the settings page.")
    )
    assert bench.text(".envrc") is None
    recorded = await bench.toolbox.call(
        Call(tool="write", args={"path": ".envrc", "content": "export A=1\n"}, id="q")
    )
    assert "Use the settings page." in recorded.text


async def test_an_agent_that_waits_goes_on_with_an_answer_from_elsewhere(bench):
    asked, feed, results = await asking(bench), bench.feed(), []

    async def agent():
        reply = await bench.toolbox.answer_from_elsewhere("q")
        results.append(await bench.toolbox.resume("q", reply))

    async with anyio.create_task_group() as group:
        group.start_soon(agent)
        await until(lambda: feed.news_since(FeedCursor()).pending[0].is_awaited)
        reply = Reply(allow=True, fingerprint=asked.request.fingerprint)
        outcome = await anyio.to_thread.run_sync(feed.answer_pending_call, "q", reply)
    assert outcome.by == "agent"
    assert results[0].ok
    assert bench.text(".envrc") == "export A=1\n"
    assert feed.news_since(FeedCursor()).pending == ()


async def test_an_agent_does_not_wait_for_an_answer_that_was_given_just_before(bench):
    await asking(bench)
    feed = bench.feed()
    await anyio.to_thread.run_sync(feed.answer_pending_call, "q", Reply(allow=True))
    feed.record_user_watching()
    with anyio.fail_after(PATIENCE):
        assert await bench.toolbox.answer_from_elsewhere("q", only_if_watched=True) is None
        assert await bench.toolbox.answer_from_elsewhere("q") is None
    assert bench.text(".envrc") == "export A=1\n"


async def test_of_two_answers_the_first_counts_and_the_second_is_told(bench):
    await asking(bench)
    outcomes, start = {}, threading.Barrier(2)
    replies = {"yes": Reply(allow=True), "no": Reply(allow=False, message="No.")}

    def answer(name, feed):
        start.wait(PATIENCE)
        outcomes[name] = feed.answer_pending_call("q", replies[name])

    threads = [threading.Thread(target=answer, args=(name, bench.feed())) for name in replies]
    for thread in threads:
        thread.start()
    await anyio.to_thread.run_sync(lambda: [thread.join() for thread in threads])
    (won,) = [name for name, outcome in outcomes.items() if outcome.by == "here"]
    (lost,) = [name for name in replies if name != won]
    assert outcomes[lost].by == "another"
    assert outcomes[lost].reply.allow == replies[won].allow
    assert bench.text(".envrc") == ("export A=1\n" if won == "yes" else None)


async def test_a_toolbox_that_answers_second_gets_what_came_of_the_first(bench):
    asked = await asking(bench)
    first = Reply(allow=False, message="Not that.", fingerprint=asked.request.fingerprint)
    feed, results = bench.feed(), []
    feed._journal.answers.claim("q", first)

    async def second():
        results.append(await bench.toolbox.resume("q", Reply(allow=True)))

    async with anyio.create_task_group() as group:
        group.start_soon(second)
        await anyio.to_thread.run_sync(feed.answer_pending_call, "q", first)
    assert results[0].status == "denied"
    assert bench.text(".envrc") is None


async def test_an_answer_whose_process_died_counts_no_more(bench, monkeypatch):
    await asking(bench)
    dead = bench.feed()
    dead._journal.answers.claim("q", Reply(allow=False))
    feed = bench.feed()
    assert feed.answer_pending_call("q", Reply(allow=True)).by == "another"
    assert feed.news_since(FeedCursor()).pending == ()
    later = time.time() + 2 * STALE_SECONDS
    monkeypatch.setattr(time, "time", lambda: later)
    assert len(feed.news_since(FeedCursor()).pending) == 1
    assert (await anyio.to_thread.run_sync(feed.answer_pending_call, "q", Reply(allow=True))).by == "here"


async def test_an_answer_to_a_question_that_has_changed_is_refused(bench):
    await asking(bench)
    with pytest.raises(HandtoolsError, match="changed"):
        bench.feed().answer_pending_call("q", Reply(allow=True, fingerprint="another"))


async def test_an_agent_waits_only_while_somebody_watches(bench):
    await asking(bench)
    assert await bench.toolbox.answer_from_elsewhere("q", only_if_watched=True) is None
    feed, results = bench.feed(), []
    feed.record_user_watching()

    async def agent():
        results.append(await bench.toolbox.answer_from_elsewhere("q", only_if_watched=True))

    async with anyio.create_task_group() as group:
        group.start_soon(agent)
        await until(lambda: feed.news_since(FeedCursor()).pending[0].is_awaited)
        feed.close()
    assert results == [None]
    assert not bench.feed().news_since(FeedCursor()).pending[0].is_awaited


async def test_undo_and_redo_say_first_what_they_would_do(bench):
    await bench.write("a.txt", "one\n", id="a")
    feed = bench.feed()
    before = feed.current_cursor()

    def revert(action, dry_run):
        return feed.undo_or_redo_call(action, "a", dry_run=dry_run)

    planned = await anyio.to_thread.run_sync(revert, "undo", True)
    assert planned.restored == ("a.txt",)
    assert planned.text == "It would\n  remove a.txt"
    assert [call.tool for call in feed.recorded_calls_page()] == ["write"]
    assert bench.text("a.txt") == "one\n"
    assert (await anyio.to_thread.run_sync(revert, "undo", False)).ok
    assert bench.text("a.txt") is None
    news = feed.news_since(before)
    assert {call.id: call.undone for call in news.calls}["a"] == "yes"
    assert (await anyio.to_thread.run_sync(revert, "redo", False)).ok
    assert bench.text("a.txt") == "one\n"
    assert {call.id: call.undone for call in feed.news_since(news.cursor).calls}["a"] == "no"


async def test_a_file_that_changed_since_is_kept_and_named(bench):
    await bench.write("a.txt", "one\n", id="a")
    (bench.root / "a.txt").write_text("mine\n")
    kept = await anyio.to_thread.run_sync(
        lambda: bench.feed().undo_or_redo_call("undo", "a", dry_run=False)
    )
    assert (kept.ok, kept.kept) == (False, ("a.txt",))
    assert bench.text("a.txt") == "mine\n"


async def test_details_have_the_diff_once(bench):
    await bench.write("a.txt", "one\n", id="a")
    await bench.toolbox.call(
        Call(tool="edit", args={"path": "a.txt", "old_string": "one", "new_string": "two"}, id="b")
    )
    details = bench.feed().call_details("b")
    assert "-one\n+two" in details.diff
    assert "+two" not in details.answer
    assert details.args["old_string"] == "one"
    assert bench.feed().call_details("nothing") is None


STEPS = st.lists(st.sampled_from(["write", "ask", "yes", "no", "undo", "redo", "look"]), max_size=12)


@given(STEPS)
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_news_put_onto_an_old_page_make_the_page_of_now(tmp_path_factory, steps):
    async def play():
        bench = Bench(tmp_path_factory.mktemp("feed"), unattended="ask")
        feed = bench.feed()
        cursor, known, made = feed.current_cursor(), {}, 0

        def take():
            nonlocal cursor
            news = feed.news_since(cursor)
            cursor = news.cursor
            known.update({call.id: call for call in news.calls})

        for step in steps:
            changed = [
                call for call in feed.recorded_calls_page() if call.tool == "write" and call.changed_count
            ]
            waiting = feed.news_since(FeedCursor()).pending
            if step == "look":
                take()
            elif step in {"write", "ask"}:
                made += 1
                path = ".envrc" if step == "ask" else f"{made}.txt"
                await bench.write(path, f"{made}\n", id=f"call{made}")
            elif step in {"yes", "no"} and waiting:
                await bench.toolbox.resume(waiting[0].approval.call_id, Reply(allow=step == "yes"))
            elif step in {"undo", "redo"} and changed:
                args = {"action": step, "scope": "call", "name": changed[0].id}
                await bench.toolbox.call(Call(tool="undo", args=args), reply=Reply(allow=True))
        # Else the agent's process may write a record that waits in it between the two looks.
        bench.toolbox.workspace.journal.close()
        take()
        shown = {call.id: call for call in feed.recorded_calls_page(limit=100)}
        bench.close()
        assert known == shown

    anyio.run(play)


async def test_a_call_of_another_status_is_shown_as_failed(bench):
    journal = bench.toolbox.workspace.journal
    journal.calls.record(Call(tool="x", args={}, id="x"), replace_status(Result("", None), "timeout"), 0.0)
    (call,) = bench.feed().recorded_calls_page()
    assert (call.state, call.status) == ("failed", "timeout")


def replace_status(result, status):
    return result.with_fields(status=status)
