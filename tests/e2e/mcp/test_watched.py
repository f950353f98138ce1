"""A client's call asks, a person who watches from another process answers, and the model goes on."""

import select
import time
from functools import partial

import anyio
import pytest
from mcp_types import ElicitResult

from handtools.core.approval import Reply
from handtools.record.session_feed import FeedCursor, SessionFeed
from tests.e2e.cli.conftest import HANDTOOLS
from tests.e2e.mcp.conftest import CURRENT, OLDER, text

pytestmark = pytest.mark.anyio
MAX_WATCHED_SECONDS = 60.0
ASKING = {"path": ".envrc", "content": "export A=1\n"}


@pytest.fixture
def feed(folder):
    opened = SessionFeed(folder)
    yield opened
    opened.close()


def answered(feed, reply, *, at_once=False):
    """Watch until a call waits for its answer, and give it; `at_once` as soon as there is a question."""
    ends = time.monotonic() + MAX_WATCHED_SECONDS
    while time.monotonic() < ends:
        feed.record_user_watching()
        pending = feed.news_since(FeedCursor()).pending
        if pending and (at_once or pending[0].is_awaited):
            return feed.answer_pending_call(pending[0].approval.call_id, reply)
        select.select([], [], [], 0 if at_once else 0.02)
    pytest.fail("no call is waiting")


async def called_while_watched(client, feed, reply, **options):
    """What the client gets of a call that asks, and what became of the watcher's answer."""
    results = []
    feed.record_user_watching()
    with anyio.fail_after(120):
        async with anyio.create_task_group() as group:

            async def call():
                results.append(await client.call_tool("write", ASKING))

            group.start_soon(call)
            outcome = await anyio.to_thread.run_sync(partial(answered, feed, reply, **options))
    return results[0], outcome


async def test_a_call_waits_for_who_watches_and_the_model_goes_on(on_stdio, era, folder, feed):
    async with on_stdio(era, "unattended=ask") as client:
        result, outcome = await called_while_watched(client, feed, Reply(allow=True))
    assert outcome.by == "agent"
    assert not result.is_error, text(result)
    assert (folder / ".envrc").read_text() == "export A=1\n"


async def test_an_answer_counts_whether_the_agent_waits_already_or_not(on_stdio, era, folder, feed):
    async with on_stdio(era, "unattended=ask") as client:
        result, _ = await called_while_watched(client, feed, Reply(allow=True), at_once=True)
    assert not result.is_error, text(result)
    assert (folder / ".envrc").read_text() == "export A=1\n"


async def test_the_sentence_of_a_no_is_what_the_model_reads(on_stdio, folder, feed):
    async with on_stdio(CURRENT, "unattended=ask") as client:
        result, _ = await called_while_watched(
            client, feed, Reply(allow=False, message="Use settings.toml.")
        )
    assert result.is_error
    assert "Use settings.toml." in text(result)
    assert not (folder / ".envrc").exists()


async def test_who_watches_may_answer_before_the_clients_own_form_is_filled(on_stdio, folder, feed):
    async def never(_context, _params):
        await anyio.sleep_forever()
        return ElicitResult(action="cancel")

    async with on_stdio(OLDER, elicitation_callback=never) as client:
        result, outcome = await called_while_watched(client, feed, Reply(allow=True))
    assert outcome.by == "agent"
    assert not result.is_error, text(result)
    assert (folder / ".envrc").read_text() == "export A=1\n"


async def test_who_watches_answers_after_the_client_closed_its_form(on_stdio, folder, feed):
    async def close(_context, _params):
        return ElicitResult(action="cancel")

    async with on_stdio(CURRENT, elicitation_callback=close) as client:
        result, outcome = await called_while_watched(client, feed, Reply(allow=True))
    assert outcome.by == "agent"
    assert not result.is_error, text(result)
    assert (folder / ".envrc").read_text() == "export A=1\n"


async def test_when_nobody_watches_any_more_the_model_is_told_that_it_waits(on_stdio, folder, feed):
    results = []
    feed.record_user_watching()
    with anyio.fail_after(120):
        async with on_stdio(CURRENT, "unattended=ask") as client, anyio.create_task_group() as group:

            async def call():
                results.append(await client.call_tool("write", ASKING))

            group.start_soon(call)
            await anyio.to_thread.run_sync(until_awaited, feed)
            feed.close()
    assert "handtools approve" in text(results[0])
    assert not (folder / ".envrc").exists()


def attending(feed, results):
    """Watch until the client has its result, or for a minute."""
    ends = time.monotonic() + MAX_WATCHED_SECONDS
    while not results and time.monotonic() < ends:
        feed.record_user_watching()
        select.select([], [], [], 0.1)


def until_awaited(feed):
    """Watch until a call waits for an answer, or for a minute."""
    ends = time.monotonic() + MAX_WATCHED_SECONDS
    while not (pending := feed.news_since(FeedCursor()).pending) or not pending[0].is_awaited:
        assert time.monotonic() < ends, "no call is waiting"
        feed.record_user_watching()
        select.select([], [], [], 0.02)


async def test_handtools_approve_leaves_the_call_to_the_agent_that_waits(on_stdio, folder, feed):
    results = []
    feed.record_user_watching()
    with anyio.fail_after(120):
        async with on_stdio(CURRENT, "unattended=ask") as client, anyio.create_task_group() as group:

            async def call():
                results.append(await client.call_tool("write", ASKING))

            group.start_soon(call)
            await anyio.to_thread.run_sync(until_awaited, feed)
            group.start_soon(anyio.to_thread.run_sync, attending, feed, results)
            approved = await anyio.run_process(
                [HANDTOOLS, "approve", "--yes", "-C", str(folder)], check=False
            )
    assert approved.returncode == 0, approved.stderr
    assert b"Created .envrc" in approved.stdout
    assert not results[0].is_error, text(results[0])
