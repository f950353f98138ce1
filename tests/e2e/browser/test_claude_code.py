"""Claude Code with a scripted model under an asking policy: what it asks is answered in the browser."""

import contextlib
import json
import os
import signal
import subprocess

import pytest

from handtools.record.session_feed import SessionFeed
from tests.e2e.clients.agents.claude_code import ClaudeCode
from tests.e2e.clients.client import HANDTOOLS, Place
from tests.e2e.clients.processes import wait
from tests.e2e.clients.scripted_model import ScriptedModel, Step
from tests.e2e.clients.session import lay, text

POLICY = """\
[[rule]]
name = "changes"
verdict = "ask"
reason = "A person looks at changes."
effects = ["change", "run"]
"""
BREW = {"path": "src/tea.py", "old_string": 'brew("green", 3)', "new_string": 'brew("black", 4)'}
ENDS_SECONDS = 120


@pytest.fixture
def place(tmp_path):
    found = Place(tmp_path)
    lay(found)
    (tmp_path / "policy.toml").write_text(POLICY)
    return found


@contextlib.contextmanager
def running(command, **options):
    with subprocess.Popen(command, start_new_session=True, **options) as process:
        try:
            yield process
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_what_claude_code_asks_is_answered_in_the_browser_and_the_model_goes_on(
    browser, place, monkeypatch
):
    monkeypatch.setenv("HANDTOOLS_STATE", place.own_env["HANDTOOLS_STATE"])
    client = ClaudeCode()
    if not client.folder.exists():
        pytest.skip("Claude Code is missing: run .ci/coding-clients")
    steps = [
        Step("edit", BREW),
        Step("bash", {"command": "rm -rf src"}),
        Step("bash", {"command": "python3 src/tea.py"}),
        Step("read", {"path": "src/tea.py"}),
    ]
    model = ScriptedModel(steps, client.prefix)
    view = [HANDTOOLS, "view", "--json", "-C", str(place.work)]
    with (
        model.serve(),
        running(view, env=place.env | place.own_env, stdout=subprocess.PIPE, text=True) as server,
        (place.root / "printed").open("wb") as printed,
    ):
        page = browser.open()
        page.goto(json.loads(server.stdout.readline())["url"])
        page.waitForSelector("main[data-events]", {"state": "attached"})
        words, env = client.launch(place, model.url)
        # Nobody is at the client, which closes its own form; the person is at the browser.
        place.write(".claude/settings.json", {})
        started = [*client.command, *words]
        options = {"stdin": subprocess.DEVNULL, "stdout": printed, "stderr": printed}
        with (
            contextlib.closing(SessionFeed(place.work)) as feed,
            running(started, env=place.env | env, cwd=place.work, **options) as agent,
        ):
            awaited(feed, agent, page, "src/tea.py")
            page.click("article >> text=Allow once")
            page.waitForSelector("#status:has-text('You allowed the call; the agent continues')")
            awaited(feed, agent, page, "rm -rf src")
            page.fill("article input[name=message]", "Keep the sources.")
            page.click("article >> text=Deny")
            page.waitForSelector("#status:has-text('You denied the call; the agent continues')")
            awaited(feed, agent, page, "python3 src/tea.py")
            page.click("article >> text=Allow once")
            page.waitForSelector("#status:has-text('You allowed the call; the agent continues')")
            assert wait(lambda: len(model.returned) == len(steps), ENDS_SECONDS, agent), (
                f"{model.report()}\n{(place.root / 'printed').read_text()}"
            )
        _, refused, ran, read = model.returned
        assert "Keep the sources." in text(refused)
        assert "black tea after 4 minutes" in text(ran)
        assert 'brew("black", 4)' in text(read)
        page.click("#calls>li:has-text('edit') summary")
        page.click("#calls>li:has-text('edit') button:text('Undo')")
        page.waitForSelector("#calls>li:has-text('edit'):has-text('undone')")
        assert 'brew("green", 3)' in (place.work / "src/tea.py").read_text()


def awaited(feed, agent, page, about):
    """Return when the question is on the page and the agent waits for its answer.

    The client closes its own form first, and the question is on the page before. So the journal is asked: who
    answers earlier runs the call here, and the words on the page are those of the moment when it was drawn.
    """

    def is_awaited():
        pending = feed.news_since(feed.current_cursor()).pending
        return any(asked.is_awaited and about in json.dumps(dict(asked.args)) for asked in pending)

    assert wait(is_awaited, ENDS_SECONDS, agent), f"nobody waits for an answer about {about}"
    page.waitForSelector(f"article:has-text('{about}')")
