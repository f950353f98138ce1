"""`handtools view` in a real browser: another process writes the journal, a person answers and undoes."""

import contextlib
import json
import signal
import subprocess
import urllib.error
import urllib.request
from urllib.parse import urlencode, urlsplit

import anyio
import pytest
from anyio import to_thread

from handtools.cli.watch_screen.watch_app import WatchApp
from handtools.core.call import Call
from handtools.record.session_feed import SessionFeed
from handtools.runtime.policy import Policy
from handtools.toolbox import BlockingToolbox, coding
from tests.e2e.cli.conftest import HANDTOOLS
from tests.e2e.cli.test_watch_screen import until, until_shown

HOSTILE = '</pre><img src="http://127.0.0.1:9/x" onerror=alert(1)><script>alert(2)</script>\x1b[2J\u202etxt'


@pytest.fixture
def agent(shell, monkeypatch):
    """The tools of an agent in this process; `.envrc` is asked about, and commands are not."""
    monkeypatch.setenv("HANDTOOLS_STATE", str(shell.state))
    tools = BlockingToolbox(coding(shell.folder, policy=Policy(defaults={"run": "allow"})))
    yield tools
    tools.close()


@pytest.fixture
def serve(shell):
    """Starts `handtools view`; gives its link, which works once."""
    with contextlib.ExitStack() as stack:

        def start(*options):
            process = subprocess.Popen(
                [HANDTOOLS, "view", "--json", *options], cwd=shell.folder, env=shell.environment,
                stdout=subprocess.PIPE, text=True,
            )  # fmt: skip
            stack.callback(_stop, process)
            return json.loads(process.stdout.readline())["url"]

        yield start


def _stop(process):
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 0
    process.stdout.close()


@pytest.fixture
def watch(browser, serve):
    """A page of a view of its own, which has begun to listen."""

    def open_page(**options):
        page = browser.open(**options)
        page.goto(serve())
        page.waitForSelector("#calls", {"state": "attached"})
        return page

    return open_page


def ask(agent, content="export A=1\n"):
    """A call that waits for a person."""
    result = agent.call(Call(tool="write", args={"path": ".envrc", "content": content}, session="tea"))
    assert result.status == "pending", result
    return result.request.call_id


def test_a_call_of_another_process_appears_and_undo_restores_the_file(agent, watch, shell):
    tea = shell.folder / "tea.txt"
    tea.write_text("green\n")
    page = watch()
    agent.call("bash", {"command": "rm tea.txt"})
    assert not tea.exists()
    page.waitForSelector("#calls>li:has-text('rm tea.txt')")
    page.click("#calls>li summary")
    page.click("button:text('Undo')")
    page.waitForSelector("#calls>li:has-text('ok undone')")
    assert tea.read_text() == "green\n"
    page.waitForSelector("button:text('Redo')")
    page.click("button:text('Redo')")
    page.waitForSelector("button:text('Undo')")
    assert not tea.exists()
    assert page.seen["errors"] == page.seen["dialogs"] == []


def test_a_question_is_allowed_in_the_browser(agent, watch, shell):
    page = watch()
    call_id = ask(agent)
    page.waitForSelector("article:has-text('.envrc')")
    assert "+export A=1" in page.innerText("article pre")
    assert page.title().startswith("(1) ")
    page.click("text=Allow once")
    page.waitForSelector("#status:has-text('You allowed the call')")
    page.waitForSelector("article", {"state": "detached"})
    assert (shell.folder / ".envrc").read_text() == "export A=1\n"
    page.click(f"[id='call-{call_id}'] summary")
    page.waitForSelector(f"[id='call-{call_id}'] ul:has-text('allowed once')")


async def test_a_question_says_when_the_agent_begins_to_wait_and_what_was_typed_stays(agent, watch):
    page = await to_thread.run_sync(watch)
    call = await to_thread.run_sync(ask, agent)

    async def wait():
        await agent.toolbox.answer_from_elsewhere(call)

    def typed():
        page.waitForSelector("article:has-text('.envrc')")
        page.fill("article input[name=message]", "typed")

    def shown():
        page.waitForSelector("article:has-text('the agent is waiting')")
        return page.evaluate("document.querySelector('article input[name=message]').value")

    await to_thread.run_sync(typed)
    async with anyio.create_task_group() as group:
        group.start_soon(wait)
        assert await to_thread.run_sync(shown) == "typed"
        group.cancel_scope.cancel()


def test_a_no_tells_the_agent_what_to_do_instead(agent, watch, shell):
    call_id = ask(agent)
    page = watch()
    page.fill("article input[name=message]", "Put it into config.toml.")
    page.click("text=Deny")
    page.waitForSelector(f"[id='call-{call_id}']:has-text('denied')")
    assert not (shell.folder / ".envrc").exists()
    again = agent.call(
        Call(id=call_id, tool="write", args={"path": ".envrc", "content": "export A=1\n"}, session="tea")
    )
    assert again.status == "denied"
    assert "Put it into config.toml." in again.text


async def test_a_question_is_in_the_browser_and_on_the_screen_and_the_answer_of_one_is_seen_in_the_other(
    agent, watch, shell
):
    page = await to_thread.run_sync(watch)
    feed = SessionFeed(shell.folder)
    app = WatchApp(feed)
    try:
        async with app.run_test(size=(80, 24)) as pilot:
            await to_thread.run_sync(ask, agent)
            await to_thread.run_sync(page.waitForSelector, "article:has-text('.envrc')")
            await until_shown(app, pilot, "1 call needs your approval")
            await to_thread.run_sync(page.click, "text=Deny")
            await until_shown(app, pilot, "no approval requests")
            await to_thread.run_sync(ask, agent, "export B=1\n")
            await until_shown(app, pilot, "1 call needs your approval")
            await pilot.press("a")
            await until_shown(app, pilot, "+export B=1")
            await pilot.press("y")
            await until(pilot, (shell.folder / ".envrc").exists)
            await to_thread.run_sync(page.waitForSelector, "article", {"state": "detached"})
    finally:
        feed.close()


def test_of_two_viewers_the_first_answer_counts(agent, watch, shell):
    first, second = watch(), watch()
    ask(agent)
    for page in (first, second):
        page.waitForSelector("article")
    # The second one sends what its page shows, whatever came since.
    second.evaluate("form = document.querySelector('article form').cloneNode(true)")
    first.click("text=Deny")
    first.waitForSelector("#status:has-text('You denied the call')")
    second.waitForSelector("article", {"state": "detached"})
    second.evaluate("questions.after(form)")
    second.click("main>form >> text=Allow once")
    second.waitForSelector("#status:has-text('The call was already denied elsewhere')")
    assert not (shell.folder / ".envrc").exists()


def test_it_works_without_scripts(agent, watch, shell):
    (shell.folder / "tea.txt").write_text("green\n")
    agent.call("bash", {"command": "echo black > tea.txt"})
    ask(agent)
    page = watch(scripts=False)
    page.click("text=Allow once")
    assert "You allowed the call" in page.innerText("main")
    page.click("text=Back to the calls")
    page.click("#calls>li:has-text('tea.txt') summary")
    page.click("#calls>li:has-text('tea.txt') button:text('Undo')")
    assert "tea.txt" in page.innerText("main")
    assert (shell.folder / "tea.txt").read_text() == "green\n"
    assert (shell.folder / ".envrc").exists()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_hostile_content_is_text_and_nothing_is_to_mend(agent, watch, shell, dark):
    (shell.folder / "x.txt").write_text(HOSTILE)
    agent.call("bash", {"command": f"cat x.txt # {HOSTILE[:40]}"})
    agent.call("bash", {"command": "exit 3"})
    ask(agent, HOSTILE)
    page = watch(dark=dark, width=420)
    agent.call("read", {"path": "x.txt"})
    page.waitForSelector("#calls>li:nth-child(4)")
    page.evaluate("document.querySelectorAll('details').forEach(each => each.open = true)")
    assert page.overflow() == 0
    assert page.axe() == []
    assert page.evaluate("document.images.length") == 0
    own = urlsplit(page.url()).netloc
    assert {urlsplit(each).netloc for each in page.seen["requests"]} == {own}
    assert page.seen["dialogs"] == page.seen["errors"] == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_picture_of_the_view(agent, watch, picture, dark):
    agent.call(Call(tool="write", args={"path": "tea.py", "content": "LEAVES = 'green'\n"}, session="tea"))
    edit = {"path": "tea.py", "old_string": "green", "new_string": "black"}
    agent.call(Call(tool="edit", args=edit, session="tea"))
    agent.call(Call(tool="bash", args={"command": "rm -rf *.py"}, session="tea"))
    agent.call(Call(tool="bash", args={"command": "python3 tea.py"}, session="tea"))
    ask(agent, "export POT=warm\n")
    page = watch(dark=dark)
    page.click("#calls>li:has-text('rm -rf') summary")
    picture(page, f"view-{'dark' if dark else 'light'}")


def request(url, method="GET", **headers):
    sent = urllib.request.Request(url, method=method, data=b"" if method == "POST" else None)
    for name, value in headers.items():
        sent.add_header(name.replace("_", "-"), value)
    try:
        with urllib.request.urlopen(sent, timeout=60) as answer:
            return answer.status, answer.headers
    except urllib.error.HTTPError as refused:
        with refused:
            return refused.code, refused.headers


def test_who_has_no_token_or_comes_from_elsewhere_is_refused(agent, serve, shell):
    call_id = ask(agent)
    link = serve()
    base = link.partition("?")[0]
    host = urlsplit(link).netloc
    assert not host.startswith("127.0.0.1:"), "cookies would go to every server on it"
    for path in ("", "events", "?token=", "?token=guess"):
        assert request(base + path)[0] == 401
    status, headers = request(link)
    assert status == 200
    cookie = headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert request(link)[0] == 401, "the link works once"
    own = {"cookie": cookie.partition(";")[0]}
    assert request(base, **own)[0] == 200
    assert request(base, host="evil.example", **own)[0] == 421
    assert request(base, sec_fetch_site="same-site", **own)[0] == 403
    answer = f"{base}answer?{urlencode({'call': call_id, 'answer': 'once'})}"
    for origin in (
        {},
        {"origin": "http://evil.example"},
        {"origin": "http://127.0.0.1:3000"},
        {"origin": "null"},
    ):
        assert request(answer, "POST", **own, **origin)[0] == 403
    assert request(f"{base}undo", "POST", origin=f"http://{host}")[0] == 401
    assert request(f"{base}undo", "PUT", **own)[0] == 404
    assert "frame-ancestors 'none'" in headers["content-security-policy"]
    assert not (shell.folder / ".envrc").exists()
