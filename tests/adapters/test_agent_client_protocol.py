"""The tools in an editor: the protocol's own client and agent sides, connected by a pair of sockets."""

import asyncio
import socket
import sys
from contextlib import asynccontextmanager
from pathlib import Path

import acp
import pytest
from acp import schema
from acp.core import AgentSideConnection

from handtools import Policy, Rule
from handtools.adapters.agent_client_protocol import EditorSession

pytestmark = pytest.mark.anyio
ASK = Policy().with_rules([Rule("ask", "ask", "Look first.", effects=frozenset({"change"}))])
FS = schema.ClientCapabilities(fs=schema.FileSystemCapabilities(read_text_file=True, write_text_file=True))
EXAMPLE = Path(__file__).parents[2] / "examples" / "agent_client_protocol" / "editor_agent.py"
WAIT = 240.0
EDIT = ("edit", {"path": "a.txt", "old_string": "two", "new_string": "2"})


class Editor(acp.Client):
    """Has some texts open, which it does not save; other files it reads and creates on the disk."""

    def __init__(self, buffers=None, answer="once"):
        self.buffers, self.answer = dict(buffers or {}), answer
        self.asked, self.updates, self.questions = [], [], []
        self.updated = asyncio.Condition()
        self.after_read = lambda path: None
        self.refuses, self.holds = "", ""

    async def read_text_file(self, session_id, path, **_):
        self.asked.append(path)
        if self.holds and path.endswith(self.holds):
            await asyncio.Event().wait()
        text = self.buffers.get(path)
        if text is None and not Path(path).is_file():
            raise acp.RequestError.resource_not_found(path)
        text = Path(path).read_bytes().decode() if text is None else text
        self.after_read(path)
        return schema.ReadTextFileResponse(content=text)

    async def write_text_file(self, session_id, path, content, **_):
        if self.refuses and path.endswith(self.refuses):
            raise acp.RequestError.internal_error({"details": "read-only"})
        if path in self.buffers:
            self.buffers[path] = content
        else:
            Path(path).write_bytes(content.encode())

    async def request_permission(self, session_id, tool_call, options, **_):
        self.questions.append((tool_call, options))
        if self.answer == "cancelled":
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        chosen = schema.AllowedOutcome(outcome="selected", option_id=self.answer)
        return schema.RequestPermissionResponse(outcome=chosen)

    async def session_update(self, session_id, update, **_):
        async with self.updated:
            self.updates.append(update)
            self.updated.notify_all()

    async def sees(self, wanted):
        """Wait for an update that is as wanted."""
        async with asyncio.timeout(WAIT), self.updated:
            await self.updated.wait_for(lambda: any(map(wanted, self.updates)))

    def calls(self, tool):
        """The updates about the calls of a tool, the first with its title."""
        ids = [u.tool_call_id for u in self.updates if getattr(u, "title", "") and u.title.startswith(tool)]
        return [u for u in self.updates if getattr(u, "tool_call_id", "") in ids]


class Agent(acp.Agent):
    """Makes the calls that it is told in the prompt's place."""

    def __init__(self, *script, **options):
        self.script, self.options, self.results = list(script), options, []
        self.capabilities, self.session = None, None

    def on_connect(self, conn):
        self.client = conn

    async def initialize(self, protocol_version, client_capabilities=None, **_):
        self.capabilities = client_capabilities
        return schema.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd, additional_directories=None, **_):
        more = additional_directories or ()
        self.session = EditorSession(
            self.client, "s1", cwd, self.capabilities, additional_directories=more, **self.options
        )
        return schema.NewSessionResponse(session_id="s1")

    async def prompt(self, session_id, prompt, **_):
        for tool, args, *known in self.script:
            self.results.append(await self.session.call(tool, args, *known))
            if self.results[-1].status == "cancelled":
                return schema.PromptResponse(stop_reason="cancelled")
        return schema.PromptResponse(stop_reason="end_turn")

    async def cancel(self, session_id, **_):
        self.session.cancel()


@asynccontextmanager
async def connected(editor, agent, root, capabilities=FS, more=None):
    ours, theirs = socket.socketpair()
    (reader, writer), (other_reader, other_writer) = [
        await asyncio.open_connection(sock=each) for each in (ours, theirs)
    ]
    served = AgentSideConnection(agent, writer, reader)
    client = acp.connect_to_agent(editor, other_writer, other_reader)
    try:
        await client.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=capabilities)
        await client.new_session(cwd=str(root), additional_directories=more, mcp_servers=[])
        yield client
    finally:
        await agent.session.toolbox.aclose()
        await client.close()
        await served.close()


async def run(editor, agent, root, capabilities=FS, **options):
    async with connected(editor, agent, root, capabilities, **options) as client:
        async with asyncio.timeout(WAIT):
            await client.prompt(session_id="s1", prompt=[acp.text_block("Go.")])
    return agent.results


@pytest.fixture
def root(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("one\ntwo\n")
    return folder


@pytest.fixture
def unsaved(root) -> dict[str, str]:
    return {str(root / "a.txt"): "one\ntwo\nnot saved\n"}


async def test_an_edit_sees_the_unsaved_text_and_changes_the_buffer_and_undo_takes_it_back(root, unsaved):
    editor = Editor(unsaved)
    script = [("read", {"path": "a.txt"}), ("edit", {**EDIT[1], "old_string": "not saved"}), ("undo", {})]
    read, edit, undo = await run(editor, Agent(*script[:2]), root) + [None]
    assert "not saved" in read.text
    assert edit.ok, edit.text
    assert editor.buffers[str(root / "a.txt")] == "one\ntwo\n2\n"
    assert (root / "a.txt").read_text() == "one\ntwo\n"
    again = Editor(editor.buffers)
    (undo,) = await run(again, Agent(("undo", {"name": "a.txt"})), root)
    assert undo.ok, undo.text
    assert again.buffers == unsaved
    assert (root / "a.txt").read_text() == "one\ntwo\n"


async def test_a_search_finds_unsaved_text_that_nobody_read_before_and_not_what_was_replaced(root, unsaved):
    unsaved = {str(root / "a.txt"): "one\nthree\n"}
    found, gone = await run(
        Editor(unsaved), Agent(("grep", {"pattern": "three"}), ("grep", {"pattern": "two"})), root
    )
    assert "2:three" in found.text
    assert "No matches" in gone.text


async def test_what_the_person_types_meanwhile_is_not_overwritten(root, unsaved):
    editor = Editor(unsaved)
    path = str(root / "a.txt")

    def type_once(_):
        editor.buffers[path] = "typed meanwhile\n"

    editor.after_read = type_once
    (result,) = await run(editor, Agent(EDIT), root)
    assert result.fault.code == "stale"
    assert editor.buffers[path] == "typed meanwhile\n"


async def test_a_new_file_is_the_editors_to_create_and_undo_removes_it(root):
    editor = Editor({})
    script = [
        ("write", {"path": "src/new.py", "content": "x = 1\n"}, "w"),
        ("undo", {"name": "src/new.py"}),
    ]
    made, undone = await run(editor, Agent(*script), root)
    assert made.ok
    assert str(root / "src/new.py") in editor.asked  # whether an unsaved text is there
    assert undone.ok, undone.text
    assert not (root / "src").exists()


async def test_two_files_are_changed_or_none(root, unsaved):
    (root / "b.txt").write_text("b\n")
    editor = Editor(unsaved)
    editor.refuses = "b.txt"
    patch = (
        "*** Begin Patch\n*** Update File: a.txt\n-one\n+1\n*** Add File: n.txt\n+new\n"
        "*** Update File: b.txt\n-b\n+B\n*** End Patch\n"
    )
    (result,) = await run(editor, Agent(("patch", {"patch": patch})), root)
    assert result.fault.code == "storage"
    assert "b.txt" in result.text
    assert editor.buffers == unsaved
    assert (root / "b.txt").read_text() == "b\n"
    assert not (root / "n.txt").exists()


@pytest.mark.parametrize(("answer", "asked"), [("once", 2), ("session", 1), ("project", 1)])
async def test_yes_once_is_asked_again_and_always_is_remembered(root, unsaved, answer, asked):
    editor = Editor(unsaved, answer)
    second = ("edit", {"path": "a.txt", "old_string": "one", "new_string": "1"})
    results = await run(editor, Agent(EDIT, second, policy=ASK), root)
    assert [result.status for result in results] == ["ok", "ok"]
    assert len(editor.questions) == asked
    tool_call, options = editor.questions[0]
    assert [option.kind for option in options] == [
        "allow_once",
        "allow_always",
        "allow_always",
        "reject_once",
    ]
    assert "+2" in tool_call.content[0].content.text
    other = Editor(editor.buffers, answer)
    third = ("edit", {"path": "a.txt", "old_string": "not", "new_string": "never"})
    agent = Agent(third, policy=ASK)
    await run(other, agent, root)
    # The same session id: only what holds once is asked again.
    assert len(other.questions) == (1 if answer == "once" else 0)


@pytest.mark.parametrize(("answer", "status"), [("reject", "denied"), ("cancelled", "cancelled")])
async def test_no_and_cancelled_change_nothing_and_leave_nothing_waiting(root, unsaved, answer, status):
    editor, agent = Editor(unsaved, answer), Agent(EDIT, policy=ASK)
    async with connected(editor, agent, root) as client:
        said = await client.prompt(session_id="s1", prompt=[acp.text_block("Go.")])
        assert await agent.session.toolbox.waiting() == []
    assert agent.results[0].status == status
    assert said.stop_reason == ("cancelled" if answer == "cancelled" else "end_turn")
    assert editor.buffers == unsaved
    assert editor.calls("edit")[-1].status == "failed"


async def test_an_editor_that_cannot_ask_leaves_the_call_pending(root, unsaved):
    class Mute(Editor):
        async def request_permission(self, *args, **_):
            raise acp.RequestError.method_not_found("session/request_permission")

    (result,) = await run(Mute(unsaved), Agent(EDIT, policy=ASK), root)
    assert result.status == "pending"
    assert "approval" in result.text


async def test_the_editor_is_told_kind_place_status_and_diff(root, unsaved):
    editor = Editor(unsaved)
    script = [("read", {"path": "a.txt"}), ("grep", {"pattern": "o"}), EDIT, ("think", {"thought": "Hm."})]
    await run(editor, Agent(*script, ("read", {"path": "none.txt"})), root)
    kinds = {tool: editor.calls(tool)[0].kind for tool in ("read", "grep", "edit", "think")}
    assert kinds == {"read": "read", "grep": "search", "edit": "edit", "think": "think"}
    begun, ended = editor.calls("edit")
    assert (begun.title, begun.status, ended.status) == ("edit a.txt", "in_progress", "completed")
    assert begun.raw_input == EDIT[1]
    assert begun.locations[0].path == str(root / "a.txt")
    diff = ended.content[0]
    assert (diff.type, diff.path) == ("diff", str(root / "a.txt"))
    assert (diff.old_text, diff.new_text) == ("one\ntwo\nnot saved\n", "one\n2\nnot saved\n")
    assert ended.locations[0].line == 2
    assert editor.calls("read none.txt")[-1].status == "failed"


async def test_a_command_runs_on_the_disk_and_its_output_is_shown_while_it_runs(root, unsaved):
    editor = Editor(unsaved)
    agent = Agent(("bash", {"command": "echo begun; sed -i s/one/1/ a.txt; cat go"}))
    (root / "go").write_text("end\n")
    (result,) = await run(editor, agent, root)
    assert result.ok, result.text
    begun, *_, ended = editor.calls("bash")
    assert (begun.kind, ended.status) == ("execute", "completed")
    assert str(root / "a.txt") in [place.path for place in ended.locations]
    assert (root / "a.txt").read_text() == "1\ntwo\n"
    assert editor.buffers == unsaved


async def test_cancelling_the_session_ends_a_command_which_was_shown_running(root):
    editor, agent = Editor(), Agent(("bash", {"command": "echo begun; sleep 600"}))
    async with connected(editor, agent, root) as client, asyncio.timeout(WAIT):
        turn = asyncio.ensure_future(client.prompt(session_id="s1", prompt=[acp.text_block("Go.")]))
        await editor.sees(lambda u: getattr(u, "content", None) and "begun" in str(u.content))
        await client.cancel(session_id="s1")
        ended = await turn
        assert ended.stop_reason == "cancelled", agent.results
    assert editor.calls("bash")[-1].status == "failed"


async def test_cancelling_does_not_wait_for_an_editor_that_does_not_answer(root, unsaved):
    editor, agent = Editor(unsaved), Agent(("read", {"path": "a.txt"}))
    editor.holds = "a.txt"
    async with connected(editor, agent, root) as client, asyncio.timeout(WAIT):
        turn = asyncio.ensure_future(client.prompt(session_id="s1", prompt=[acp.text_block("Go.")]))
        await editor.sees(lambda u: getattr(u, "status", "") == "in_progress")
        while not editor.asked:
            await asyncio.sleep(0)
        await client.cancel(session_id="s1")
        ended = await turn
        assert ended.stop_reason == "cancelled", agent.results


async def test_without_the_file_capability_the_files_are_those_on_disk(root, unsaved):
    editor = Editor(unsaved)
    no_files = schema.ClientCapabilities()
    (result,) = await run(editor, Agent(EDIT), root, no_files)
    assert result.ok
    assert (root / "a.txt").read_text() == "one\n2\n"
    assert (editor.asked, editor.buffers) == ([], unsaved)


@pytest.mark.parametrize("path", ["../out.txt", "/etc/hostname", ".env", "no.txt"])
async def test_the_editor_is_not_asked_for_what_no_rule_lets_be_read(root, tmp_path, path):
    (tmp_path / "out.txt").write_text("out\n")
    (root / ".env").write_text("KEY=secret\n")
    (root / "no.txt").write_text("no\n")
    deny = Policy().with_rules([Rule("no", "deny", "Not yours.", paths=("no.txt",))])
    editor = Editor({str(root / path): "unsaved\n"})
    script = [
        ("read", {"path": path}),
        ("write", {"path": path, "content": "x\n"}),
        ("grep", {"pattern": "unsaved|secret|no", "include_ignored": True}),
    ]
    read, write, grep = await run(editor, Agent(*script, policy=deny), root)
    assert not read.ok
    assert not write.ok
    assert "unsaved" not in grep.text
    assert "secret" not in grep.text
    assert not [asked for asked in editor.asked if asked.endswith(path.removeprefix("../"))]


async def test_several_folders_have_the_editors_paths(root, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    (other / "b.txt").write_text("b\n")
    editor = Editor({str(other / "b.txt"): "unsaved b\n"})
    edit = ("edit", {"path": "other/b.txt", "old_string": "unsaved", "new_string": "changed"})
    found, edited = await run(
        editor, Agent(("grep", {"pattern": "unsaved"}), edit), root, more=[str(other)]
    )
    assert "other/b.txt" in found.text
    assert edited.ok, edited.text
    assert editor.buffers == {str(other / "b.txt"): "changed b\n"}


async def test_the_same_call_of_a_provider_runs_once(root, unsaved):
    editor = Editor(unsaved)
    first, second = await run(editor, Agent((*EDIT, "toolu_1"), (*EDIT, "toolu_1")), root)
    assert first.ok
    assert second.text == first.text


async def test_the_example_edits_an_unsaved_text_in_another_process(root, monkeypatch):
    editor = Editor({str(root / "a.txt"): "one\ntwo TODO\n"})
    env = {"HANDTOOLS_STATE": str(root.parent / "state"), "HOME": str(root.parent)}
    async with acp.spawn_agent_process(editor, sys.executable, str(EXAMPLE), env=env) as (client, _):
        await client.initialize(protocol_version=acp.PROTOCOL_VERSION, client_capabilities=FS)
        session = await client.new_session(cwd=str(root), mcp_servers=[])
        async with asyncio.timeout(WAIT):
            said = await client.prompt(
                session_id=session.session_id, prompt=[acp.text_block("Finish the TODO.")]
            )
    assert said.stop_reason == "end_turn"
    assert editor.buffers == {str(root / "a.txt"): "one\ntwo done\n"}
    assert (root / "a.txt").read_text() == "one\ntwo\n"
