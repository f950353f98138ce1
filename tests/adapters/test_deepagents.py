"""A toolbox as the backend of Deep Agents: its own tools work in it, with the interrupts of LangGraph."""

import os
import runpy
from base64 import b64encode
from pathlib import Path

import pytest

if os.environ.get("HANDTOOLS_ADAPTER") != "deepagents":
    pytest.skip("needs Deep Agents", allow_module_level=True)

from deepagents import create_deep_agent
from deepagents.backends import CompositeBackend, StateBackend
from langchain_core.messages import ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from handtools import coding
from handtools.adapters.deepagents import ToolboxBackend
from tests.adapters.driver_langchain import scripted_model, thread
from tests.adapters.drivers import Wanted
from tests.adapters.new_process import ASK

pytestmark = pytest.mark.anyio
EXAMPLE = Path(__file__).parents[2] / "examples" / "deepagents" / "deepagents_agent.py"
PNG = b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\xff\xfe\x00"
WRITE = Wanted("write_file", {"file_path": "/made.txt", "content": "x\n"}, "call_1")
UNASKED = pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked about every command
RUN = Wanted("execute", {"command": "echo x >> made.txt"}, "call_1")


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    folder = tmp_path / "work"
    (folder / "src").mkdir(parents=True)
    (folder / "src" / "tea.py").write_text("kind = 'green'\nprint(kind)\n")
    return folder


def agent(box, *calls, tools=(), saver=None):
    model = scripted_model(*([call] for call in calls), "done")
    return create_deep_agent(model=model, tools=tools, backend=ToolboxBackend(box), checkpointer=saver)


def said(state):
    return [message.text for message in state["messages"] if isinstance(message, ToolMessage)]


CALLS = (
    Wanted("ls", {"path": "/"}, "call_1"),
    Wanted("read_file", {"file_path": "/src/tea.py"}, "call_2"),
    Wanted(
        "edit_file", {"file_path": "/src/tea.py", "old_string": "green", "new_string": "black"}, "call_3"
    ),
    Wanted("grep", {"pattern": "print(kind)", "path": "/src", "output_mode": "content"}, "call_4"),
    Wanted("glob", {"pattern": "*.py", "path": "/"}, "call_5"),
    Wanted("write_file", {"file_path": "/src/new/cup.txt", "content": "one\n"}, "call_6"),
    Wanted("execute", {"command": "python3 src/tea.py; exit 3"}, "call_7"),
    Wanted("delete", {"file_path": "/src/new"}, "call_8"),
)


@UNASKED
async def test_the_tools_of_an_agent_work_in_the_toolbox_and_all_of_it_can_be_undone(root):
    async with coding(root) as box:
        state = await agent(box, *CALLS).ainvoke({"messages": "go"})
        told = dict(zip((call.tool for call in CALLS), said(state), strict=True))
        assert state["messages"][-1].text == "done"
        assert "/src" in told["ls"]
        assert "kind = 'green'" in told["read_file"]
        assert "tea.py" in told["grep"]
        assert "2" in told["grep"]
        assert "/src/tea.py" in told["glob"]
        assert "black" in told["execute"]
        assert "3" in told["execute"]
        assert (root / "src" / "tea.py").read_text().startswith("kind = 'black'")
        assert not (root / "src" / "new").exists()
        recorded = [call.tool for call in reversed(box.workspace.journal.calls.page())]
        assert [name for name in recorded if name not in {"read", "list"}] == [
            "edit", "grep", "find", "write", "bash", "bash",
        ]  # fmt: skip
        names = {call.session for call in box.workspace.journal.calls.page() if call.tool == "edit"}
        for name in names:
            assert (await box.call("undo", {"scope": "session", "name": name})).ok
    assert (root / "src" / "tea.py").read_text().startswith("kind = 'green'")


@UNASKED
def test_a_blocking_agent_works_the_same_way(root):
    with_box = coding(root)
    state = agent(with_box, *CALLS).invoke({"messages": "go"})
    assert state["messages"][-1].text == "done"
    assert (root / "src" / "tea.py").read_text().startswith("kind = 'black'")
    assert "black" in said(state)[6]


@pytest.mark.parametrize("call", [WRITE, RUN], ids=["write", "execute"])
@pytest.mark.parametrize("yes", [True, False])
async def test_a_question_interrupts_the_graph_and_is_answered_to_another_toolbox(
    root, tmp_path, call, yes
):
    database = str(tmp_path / "checkpoints.sqlite")
    async with coding(root, policy=ASK) as box, AsyncSqliteSaver.from_conn_string(database) as saver:
        state = await agent(box, call, saver=saver).ainvoke({"messages": "go"}, thread("one"))
        [asked] = state["__interrupt__"]
        assert "made.txt" in asked.value["title"]
        assert not (root / "made.txt").exists()
    async with coding(root, policy=ASK) as box, AsyncSqliteSaver.from_conn_string(database) as saver:
        later = agent(box, saver=saver)
        state = await later.ainvoke(Command(resume={"allow": yes}), thread("one"))
        assert state["messages"][-1].text == "done"
        assert await box.waiting() == []
        assert len(box.workspace.journal.calls.page()) == 1
    assert (root / "made.txt").exists() is yes
    assert not yes or (root / "made.txt").read_text() == "x\n"


@UNASKED
async def test_a_tool_that_makes_the_same_call_twice_gets_two_answers_and_once_each_after_an_interrupt(
    root,
):
    async with coding(root, policy=ASK) as box, AsyncSqliteSaver.from_conn_string(":memory:") as saver:
        backend = ToolboxBackend(box)

        @tool
        async def count() -> str:
            """Count, and keep the second number."""
            first = await backend.aexecute("date +%N")
            second = await backend.aexecute("date +%N")
            await backend.awrite("/made.txt", f"{first.output} {second.output}")
            return "counted"

        counting = agent(box, Wanted("count", {}, "call_1"), tools=[count], saver=saver)
        await counting.ainvoke({"messages": "go"}, thread("one"))
        ran = len(box.workspace.journal.calls.page())
        await counting.ainvoke(Command(resume=True), thread("one"))
        assert len(box.workspace.journal.calls.page()) == ran == 3
    first, second = (root / "made.txt").read_text().split()
    assert first != second


async def test_a_file_that_changed_since_the_agent_read_it_is_left_alone(root):
    path = root / "src" / "tea.py"

    @tool
    async def meanwhile() -> str:
        """Let a person change the file."""
        path.write_text("kind = 'white'\n")
        return "changed"

    calls = (
        Wanted("read_file", {"file_path": "/src/tea.py"}, "call_1"),
        Wanted("meanwhile", {}, "call_2"),
        Wanted("write_file", {"file_path": "/src/tea.py", "content": "x\n"}, "call_3"),
    )
    async with coding(root) as box:
        state = await agent(box, *calls, tools=[meanwhile]).ainvoke({"messages": "go"}, thread("one"))
    assert "changed since you last saw it" in said(state)[-1]
    assert path.read_text() == "kind = 'white'\n"


@UNASKED
async def test_what_deep_agents_writes_for_itself_can_be_kept_elsewhere(root):
    async with coding(root) as box:
        backend = CompositeBackend(
            default=ToolboxBackend(box), routes={"/large_tool_results/": StateBackend()}
        )
        model = scripted_model([Wanted("execute", {"command": "seq 100000"}, "call_1")], [WRITE], "done")
        state = await create_deep_agent(model=model, backend=backend).ainvoke({"messages": "go"})
    assert state["messages"][-1].text == "done"
    assert sorted(path.name for path in root.iterdir()) == ["made.txt", "src"]


@UNASKED
async def test_a_path_outside_of_the_workspace_is_one_inside_or_refused(root, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    (root / "link").symlink_to(tmp_path)
    async with coding(root) as box:
        backend = ToolboxBackend(box)
        for path in (str(tmp_path / "secret.txt"), "/link/secret.txt", "/../secret.txt"):
            assert (await backend.aread(path)).error
            await backend.awrite(path, "x")
        assert (tmp_path / "secret.txt").read_text() == "secret"
        printed = (await backend.aexecute("pwd")).output.splitlines()[0]
        assert (await backend.aread(f"{printed}/src/tea.py")).file_data["content"].startswith("kind")


async def test_windows_of_a_text_have_the_numbers_of_their_lines(root):
    (root / "many.txt").write_text("".join(f"line {n}\n" for n in range(10)))
    (root / "empty.txt").touch()
    (root / "bytes.bin").write_bytes(PNG)
    async with coding(root) as box:
        backend = ToolboxBackend(box)
        part = await backend.aread("/many.txt", offset=3, limit=2)
        assert part.file_data["content"] == "line 3\nline 4\n"
        assert (part.start_line, part.end_line, part.next_offset, part.total_lines) == (4, 5, 5, 10)
        assert (await backend.aread("/many.txt", offset=8)).next_offset is None
        assert "only 10 lines" in (await backend.aread("/many.txt", offset=10)).error
        assert (await backend.aread("/many.txt", limit=0)).no_lines_requested
        assert (await backend.aread("/empty.txt")).file_data["content"] == ""
        assert (await backend.aread("/bytes.bin")).file_data == {
            "content": b64encode(PNG).decode(),
            "encoding": "base64",
        }
        assert (await backend.aread("/src")).error


async def test_files_are_uploaded_and_downloaded_as_they_are(root):
    async with coding(root) as box:
        backend = ToolboxBackend(box)
        up = await backend.aupload_files([("/in/data.bin", b"\xff\x00"), ("/src", b"x")])
        assert [one.error for one in up] == [None, "is_directory"]
        down = await backend.adownload_files(["/in/data.bin", "/src", "/missing"])
        assert [one.content for one in down] == [b"\xff\x00", None, None]
        assert [one.error for one in down] == [None, "is_directory", "file_not_found"]


async def test_matches_are_literal_and_counted(root):
    (root / "many.txt").write_text("a.b\naxb\n" * 300)
    async with coding(root) as box:
        backend = ToolboxBackend(box)
        found = await backend.agrep("a.b", "/", "*.txt")
        assert (len(found.matches), found.truncated) == (300, False)
        assert found.matches[0]["path"] == "/many.txt"
        some = await backend.agrep("a.b", max_count=5)
        assert (len(some.matches), some.truncated) == (5, True)
        assert (await backend.agrep("nowhere")).matches == []


@UNASKED
async def test_what_can_not_be_run_is_told(root):
    async with coding(root, policy=ASK) as box:
        backend = ToolboxBackend(box)
        waits = await backend.aexecute("touch made.txt")
        assert waits.exit_code == 126
        assert "Needs the user's approval" in waits.output
        assert (await backend.aexecute("sleep 600", timeout=1)).exit_code == 124
        assert (await backend.adelete("/")).error
        assert (await backend.adelete("/missing")).error == "The path does not exist."
    assert not (root / "made.txt").exists()


@UNASKED
@pytest.mark.parametrize("yes", [True, False])
async def test_the_example_mends_a_bug_and_asks_the_person(root, tmp_path, yes):
    edit = {"file_path": "/src/tea.py", "old_string": "green", "new_string": "black"}
    model = scripted_model(
        [Wanted("edit_file", edit, "call_1")],
        [Wanted("execute", {"command": "python3 src/tea.py > out.txt"}, "call_2")],
        "Done.",
    )
    asked = []
    mend = runpy.run_path(str(EXAMPLE))["mend"]
    said = await mend(
        root, model, lambda title, preview: asked.append(preview) or yes, tmp_path / "sessions.sqlite"
    )
    assert said == "Done."
    [preview] = asked
    assert "black" in preview
    assert (root / "out.txt").read_text() == ("black\n" if yes else "green\n")
