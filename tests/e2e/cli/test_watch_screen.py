"""`handtools watch` as a person uses it: keys are typed and the screen is read, beside an agent at work."""

import os
import re
import subprocess
import sys
import time
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest

from handtools.cli.watch_screen.dialogs import ApprovalDialog, ConfirmDialog
from handtools.cli.watch_screen.timeline import MAX_ROWS
from handtools.cli.watch_screen.watch_app import WatchApp
from handtools.core.call import Call
from handtools.core.result import Result
from handtools.record.session_feed import SessionFeed
from handtools.runtime.policy import Policy
from handtools.toolbox import CODING, Toolbox, local_workspace
from tests.e2e.cli.conftest import HANDTOOLS

PATIENCE = 60.0
SMALL, LARGE = (80, 24), (200, 60)
IMAGES = Path(__file__).parents[3] / "docs" / "how-to" / "images"
PICTURES = os.environ.get("HANDTOOLS_PICTURES") == "1"
"""Whether the pictures of the documentation are written anew."""


class Folder:
    """A folder with an agent in it, and a record of its own."""

    def __init__(self, base):
        self.root, self.state = base / "project", base / "state"
        self.root.mkdir()
        workspace = local_workspace(self.root, state=self.state)
        policy = Policy(unattended="ask", defaults={"run": "allow"})
        self.agent = Toolbox(CODING, workspace=workspace, policy=policy)

    async def call(self, tool, call_id, session="one", **args):
        return await self.agent.call(Call(tool=tool, args=args, id=call_id, session=session, agent="agent"))

    async def ask(self, call_id="question", path=".envrc"):
        """A call that waits, as a server that has a watcher lets it wait; gives back its result at last."""
        result = await self.call("write", call_id, path=path, content="export TOKEN=1\n")
        assert result.status == "pending"
        reply = await self.agent.answer_from_elsewhere(call_id)
        return await self.agent.resume(call_id, reply)

    def text(self, path):
        file = self.root / path
        return file.read_text() if file.exists() else None


@pytest.fixture
async def folder(tmp_path):
    made = Folder(tmp_path)
    yield made
    await made.agent.aclose()


@asynccontextmanager
async def watching(folder, size=SMALL, **options):
    """An open screen."""
    feed = SessionFeed(folder.root, folder.state)
    app = WatchApp(feed, **options)
    try:
        async with app.run_test(size=size, notifications=True) as pilot:
            yield app, pilot
    finally:
        feed.close()


def screen_text(app):
    """What is on the screen, line by line."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def until(pilot, condition):
    """Let the application work until a condition holds."""
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, screen_text(pilot.app)
        await pilot.pause()


async def until_shown(app, pilot, *words):
    await until(pilot, lambda: all(word in screen_text(app) for word in words))


def draw(app, name):
    """Write a picture for the documentation, if they are wanted."""
    if PICTURES:
        IMAGES.mkdir(exist_ok=True)
        picture = app.export_screenshot(title="handtools watch")
        # Nothing is to be fetched from anywhere: the reader's own font does.
        picture = re.sub(r"@font-face \{.*?\}\s*", "", picture, flags=re.DOTALL)
        picture = re.sub(r"<!--.*?-->\s*", "", picture, flags=re.DOTALL)
        (IMAGES / f"{name}.svg").write_text(picture, "utf-8")


async def some_work(folder):
    await folder.call("write", "aaa1", path="src/greeting.py", content="def greet():\n    return 'hello'\n")
    await folder.call("write", "aaa2", path="src/farewell.py", content="BYE = 'bye'\n")
    await folder.call("read", "aaa3", path="src/greeting.py")
    await folder.call(
        "edit", "aaa4", path="src/greeting.py", old_string="return 'hello'", new_string="return 'good day'"
    )
    await folder.call("bash", "aaa5", session="two", command="grep -rn nowhere src")


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
async def test_calls_appear_as_they_are_made_with_what_they_changed(folder, size):
    async with watching(folder, size) as (app, pilot):
        await until_shown(app, pilot, "No calls yet", "no approval requests")
        await some_work(folder)
        await until_shown(app, pilot, "~src/greeting.py", "✗", "failed exit 1", "+src/farewell.py")
        await pilot.press("down")
        await until_shown(app, pilot, "-    return 'hello'", "+    return 'good day'")
        lines = screen_text(app).split("\n")
        assert len(lines) == size[1]
        assert all(word in lines[-1] for word in ("Answer", "Undo", "Redo", "Cancel", "Search", "Quit"))
        assert "TOOK" in lines[0]
        draw(app, f"watch-{size[0]}x{size[1]}")


@pytest.mark.parametrize("size", [SMALL, LARGE], ids=["80x24", "200x60"])
async def test_a_question_is_answered_and_the_agent_goes_on(folder, size):
    results = []
    async with watching(folder, size) as (app, pilot), anyio.create_task_group() as group:

        async def agent():
            results.append(await folder.ask())

        group.start_soon(agent)
        await until_shown(app, pilot, "1 call needs your approval", "write wants to change .envrc")
        await until(pilot, lambda: app.pending[0].is_awaited)
        await pilot.press("a")
        await until_shown(
            app, pilot, "asked by:", "+export TOKEN=1", "would store", "change .envrc (protected)"
        )
        await until_shown(
            app, pilot, "The agent is waiting", "Yes, once", "Yes, this session", "No …", "Later"
        )
        draw(app, f"watch-question-{size[0]}x{size[1]}")
        await pilot.press("y")
        await until(pilot, lambda: results)
        await until_shown(app, pilot, "no approval requests")
    assert results[0].ok
    assert folder.text(".envrc") == "export TOKEN=1\n"


async def test_no_is_said_with_a_sentence_that_the_model_reads(folder):
    results = []
    async with watching(folder) as (app, pilot), anyio.create_task_group() as group:

        async def agent():
            results.append(await folder.ask())

        group.start_soon(agent)
        await until(pilot, lambda: app.pending and app.pending[0].is_awaited)
        await pilot.press("a", "n")
        await until_shown(app, pilot, "instead?")
        await pilot.press(*"Use settings.toml.", "enter")
        await until(pilot, lambda: results)
    assert results[0].status == "denied"
    assert "Use settings.toml." in results[0].text
    assert folder.text(".envrc") is None


async def test_a_question_can_be_left_for_later(folder):
    await folder.call("write", "question", path=".envrc", content="x\n")
    async with watching(folder) as (app, pilot):
        await until_shown(app, pilot, "1 call needs your approval")
        await pilot.press("a")
        await until(pilot, lambda: isinstance(app.screen, ApprovalDialog))
        await pilot.press("n", "escape", "escape")
        await until(pilot, lambda: not isinstance(app.screen, ApprovalDialog))
        await until_shown(app, pilot, "1 call needs your approval")
    assert folder.text(".envrc") is None


async def test_an_agent_that_went_on_is_answered_too(folder):
    await folder.call("write", "question", path=".envrc", content="x\n")
    async with watching(folder) as (app, pilot):
        await until_shown(app, pilot, "1 call needs your approval")
        await pilot.press("a")
        await until_shown(app, pilot, "The agent is no longer waiting")
        await pilot.press("s")
        await until_shown(app, pilot, "+.envrc", "no approval requests")
    assert folder.text(".envrc") == "x\n"
    again = await folder.call("write", "more", path=".envrc", content="y\n", mode="overwrite")
    assert again.ok, "the session remembers it"


async def test_of_two_who_watch_the_first_answer_counts(folder):
    results, told = [], []
    async with (
        watching(folder) as (first, first_pilot),
        watching(folder) as (second, second_pilot),
        anyio.create_task_group() as group,
    ):

        async def agent():
            results.append(await folder.ask())

        group.start_soon(agent)
        # A message goes after some seconds, which is soon on a busy machine.
        second.notify = lambda message, **_: told.append(message)
        for app, pilot in ((first, first_pilot), (second, second_pilot)):
            await until(pilot, lambda app=app: app.pending and app.pending[0].is_awaited)
            await pilot.press("a")
            await until(pilot, lambda app=app: isinstance(app.screen, ApprovalDialog))
        await first_pilot.press("y")
        await until(second_pilot, lambda: not isinstance(second.screen, ApprovalDialog))
        await until_shown(second, second_pilot, "no approval requests")
    assert any("answered elsewhere" in message for message in told)
    assert results[0].ok


async def test_undo_says_what_it_would_do_then_does_it_and_redo_too(folder):
    await some_work(folder)
    async with watching(folder) as (app, pilot):
        await until_shown(app, pilot, "~src/greeting.py")
        await pilot.press("down", "u")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await until_shown(app, pilot, "It would", "restore src/greeting.py")
        draw(app, "watch-undo-80x24")
        assert "good day" in folder.text("src/greeting.py")
        await pilot.press("y")
        await until_shown(app, pilot, "undone ~src/greeting.py")
        assert "hello" in folder.text("src/greeting.py")
        await until(pilot, lambda: app._focused_timeline().selected.undone == "yes")
        await pilot.press("r")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("y")
        await until(pilot, lambda: app._focused_timeline().selected.undone == "no")
        assert "good day" in folder.text("src/greeting.py")


async def test_undo_is_left_at_no(folder):
    await some_work(folder)
    async with watching(folder) as (app, pilot):
        await until_shown(app, pilot, "~src/greeting.py")
        await pilot.press("down", "u")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("escape")
        await until(pilot, lambda: not isinstance(app.screen, ConfirmDialog))
    assert "good day" in folder.text("src/greeting.py")


async def test_search_shows_what_matches_and_escape_shows_all(folder):
    await some_work(folder)
    async with watching(folder) as (app, pilot):
        await until_shown(app, pilot, "+src/farewell.py")
        await pilot.press("slash", *"farewell", "enter")
        await until(pilot, lambda: [call.id for call in app._focused_timeline().rows] == ["aaa2"])
        await until_shown(app, pilot, "only “farewell”")
        await pilot.press("escape")
        await until(pilot, lambda: len(app._focused_timeline().rows) == 5)


RUNNING = "for n in 1 2 3 4 5 6; do echo test $n ... ok; done; tail -f /dev/null"


async def test_a_running_command_shows_its_output_as_it_comes_and_is_cancelled(folder):
    results = []
    async with watching(folder, LARGE) as (app, pilot), anyio.create_task_group() as group:

        async def agent():
            results.append(await folder.call("bash", "runs", command=RUNNING))

        group.start_soon(agent)
        await until(pilot, lambda: "OUTPUT SO FAR\ntest 1 ... ok\ntest 2 ... ok" in app._details.text)
        await until_shown(app, pilot, "▶", "84 bytes · for n in")
        draw(app, "watch-running-200x60")
        await pilot.press("x")
        await until(pilot, lambda: isinstance(app.screen, ConfirmDialog))
        await pilot.press("y")
        await until(pilot, lambda: results)
        await until_shown(app, pilot, "■", "cancelled")
    assert results[0].status == "cancelled"


async def test_sessions_stand_side_by_side_and_one_is_chosen(folder):
    await some_work(folder)
    async with watching(folder, LARGE) as (app, pilot):
        await until_shown(app, pilot, "~src/greeting.py")
        await pilot.press("v")
        await until_shown(app, pilot, "in session two", "in session one")
        draw(app, "watch-sessions-200x60")
        first, second = (column.timeline for column in app._columns)
        assert {call.session for call in first.rows} == {"two"}
        assert {call.session for call in second.rows} == {"one"}
        await pilot.press("v")
        await until(pilot, lambda: len(app._columns) == 1)
        await pilot.press("s", "down", "down", "enter")
        await until(pilot, lambda: {call.session for call in app._focused_timeline().rows} == {"one"})


async def test_the_mouse_works(folder):
    await some_work(folder)
    async with watching(folder) as (app, pilot):
        await until(pilot, lambda: len(app._focused_timeline().rows) == 5)
        await pilot.click("Timeline", offset=(10, 3))
        await until(pilot, lambda: app._focused_timeline().selected.id == "aaa2")


HOSTILE = "\x1b]0;owned\x07\x1b[2J\u202etxt.exe\u2066\x00[bold red]markup[/] " + "x" * 100_000


async def test_hostile_content_is_shown_harmless_everywhere(folder):
    await folder.call(HOSTILE, "bad1", session=HOSTILE[:200], path=HOSTILE)
    await folder.call("write", "bad2", path="a.txt", content=f"{HOSTILE}\n" * 3)
    await folder.call("write", "bad3", path=".envrc", content=f"{HOSTILE}\n")
    async with watching(folder, LARGE) as (app, pilot):
        seen = []
        await until_shown(app, pilot, "1 call needs your approval")
        for keys in (["down"], ["down"], ["a"], ["escape", "s"], ["escape", "v"], ["end", "u"]):
            await pilot.press(*keys)
            await pilot.pause(0.2)
            seen.append(screen_text(app))
    for text in seen:
        assert not set(text) & set("\x1b\x07\x00\u202e\u2066")
    assert any("␛]0;owned" in text for text in seen)
    assert any("[bold red]markup[/]" in text for text in seen), "it is text, and no markup of ours"


def many_calls(folder, count):
    """A long record: calls by our own journal, then copies of them by SQL, which is quick."""
    journal = folder.agent.workspace.journal
    with journal.together():
        for number in range(1_000):
            call = Call(
                tool="read",
                args={"path": f"src/module_{number}.py"},
                id=f"{number:04}",
                session=f"s{number % 7}",
            )
            journal.calls.record(call, Result("line of code\n" * 20, None), 1e9 + number)
    with journal._database.writing() as connection:
        columns = "session, turn, agent, parent, tool, args, started, ended, status, code, result, owner"
        for copy in range(1, count // 1_000):
            connection.execute(
                f"INSERT INTO calls (id, {columns}) SELECT id || '-' || ?, {columns} FROM calls WHERE seq <= 1000",
                (copy,),
            )


async def test_a_record_of_100_000_calls_opens_at_once_and_moves_quickly(folder):
    many_calls(folder, 100_000)
    began = time.perf_counter()
    async with watching(folder, LARGE) as (app, pilot):
        timeline = app._focused_timeline()
        await until(pilot, lambda: len(timeline.rows) >= 50)
        opened = time.perf_counter() - began
        for _ in range(15):
            held = timeline.recorded[-1].seq
            await pilot.press("end")
            await until(pilot, lambda held=held: timeline.recorded[-1].seq < held)
        assert len(timeline.rows) <= MAX_ROWS
        moved = []
        for _ in range(20):
            at = time.perf_counter()
            timeline.action_move(-1)
            screen_text(app)
            moved.append(time.perf_counter() - at)
        redrawn = sorted(moved)[len(moved) // 2]
        await pilot.press("home")
        await until(pilot, lambda: timeline.is_live)
        await folder.call("write", "new", path="a.txt", content="x\n")
        await until(pilot, lambda: timeline.recorded[0].id == "new")
    print(f"opened in {opened:.3f} s, a redraw in {redrawn * 1000:.1f} ms")
    feed = SessionFeed(folder.root, folder.state)
    costs = {}
    for name, read in (
        ("page", lambda: feed.recorded_calls_page(limit=100)),
        ("news", lambda: feed.news_since(feed.current_cursor())),
    ):
        taken = []
        for _ in range(5):
            at = time.thread_time()
            read()
            taken.append(time.thread_time() - at)
        costs[name] = sorted(taken)[2] * 1000
    feed.close()
    print(f"processor time: a page {costs['page']:.1f} ms, news {costs['news']:.1f} ms")
    # A bound for a busy machine; the figure is in the documentation.
    assert opened < 15
    assert redrawn < 1


def test_without_textual_it_says_what_to_install(shell):
    script = (
        "import sys; sys.modules['textual'] = None; sys.argv = ['handtools', 'watch']\n"
        "from handtools.cli.main import main; main()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=shell.folder,
        env=shell.environment,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 1
    assert "pip install 'handtools-slim[cli,watch]'" in done.stderr


def test_without_a_terminal_it_names_what_works_there(shell):
    ran = shell.run("watch")
    assert ran.code == 1
    assert "handtools log --follow" in ran.err


def tmux(socket, *words):
    return subprocess.run(
        ["tmux", "-L", socket, *words], capture_output=True, text=True, check=True, timeout=PATIENCE
    ).stdout


def test_in_a_real_terminal_a_change_is_seen_and_undone(shell, tmp_path):
    socket = f"handtools-{os.getpid()}"
    shell.write("notes.txt", "first\n")
    started = [f"HANDTOOLS_STATE={shell.state}", str(HANDTOOLS), "watch", "-C", str(shell.folder)]
    tmux(socket, "-f", "/dev/null", "new-session", "-d", "-s", "w", "-x", "80", "-y", "24", "env", *started)
    try:
        until_on_terminal(socket, "+notes.txt")
        tmux(socket, "send-keys", "-t", "w", "u")
        until_on_terminal(socket, "remove notes.txt")
        tmux(socket, "send-keys", "-t", "w", "y")
        until_on_terminal(socket, "undone +notes.txt")
        assert shell.text("notes.txt") is None
        tmux(socket, "send-keys", "-t", "w", "q")
    finally:
        subprocess.run(["tmux", "-L", socket, "kill-server"], capture_output=True)


def until_on_terminal(socket, wanted):
    end = time.monotonic() + PATIENCE
    while wanted not in (shown := tmux(socket, "capture-pane", "-p", "-t", "w")):
        assert time.monotonic() < end, shown
        os.sched_yield()
