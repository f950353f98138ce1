"""A toolbox as Pydantic AI's workspace: the SDK's own rules for backends, and what a toolbox adds to them."""

import os
import runpy
from importlib.util import find_spec
from pathlib import Path

import pytest

if os.environ.get("HANDTOOLS_ADAPTER") != "pydantic_ai":
    pytest.skip("needs Pydantic AI", allow_module_level=True)

if find_spec("pydantic_ai.workspaces") is None:
    pytest.skip("this version has no workspaces", allow_module_level=True)

from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.workspaces import Workspace, WorkspaceOutputLimitError
from pydantic_ai.workspaces.conformance import WorkspaceBackendSuite

from handtools import Policy, Reply, coding
from handtools.adapters.pydantic_ai_workspace import ToolboxWorkspace
from tests.adapters.new_process import ASK, RUN
from tests.adapters.test_contract import Sleeper

pytestmark = pytest.mark.anyio
EXAMPLE = Path(__file__).parents[2] / "examples" / "pydantic_ai" / "workspace_agent.py"


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


@pytest.mark.suite_of_an_sdk
class TestRules(WorkspaceBackendSuite):
    """The SDK's suite. Two of its rules are not ours: what a command starts ends with it, and what it writes lands
    when it has ended, so that both can be undone.
    """

    @pytest.fixture
    async def backend(self, root):
        async with coding(root, policy=RUN, separate_streams=True) as box:
            yield ToolboxWorkspace(box)

    @pytest.fixture
    def can_detect_exit_with_inherited_output_pipes(self):
        return False

    async def test_cancellation_stops_foreground_work(self, root):
        sleeper = Sleeper()
        async with coding(root, policy=RUN, listeners=[sleeper.hear]) as box:
            backend = ToolboxWorkspace(box)
            await sleeper.cancel_while_it_sleeps(lambda: backend.run(sleeper.command, shell=True))
        assert not sleeper.processes()


async def test_what_a_workspace_did_is_recorded_and_can_be_undone(root):
    (root / "old.txt").write_text("old\n")
    async with coding(root, policy=RUN) as box:
        workspace = Workspace(ToolboxWorkspace(box))
        await workspace.write_bytes("made/data.bin", b"\xff\x00")
        await workspace.run("echo x > by_command.txt", shell=True)
        await workspace.remove("old.txt")
        assert {call.tool for call in box.workspace.journal.calls.page()} == {"bash", "write"}
        assert (await box.call("undo", {"scope": "session", "name": "default"})).ok
    assert [path.name for path in root.iterdir()] == ["old.txt"]
    assert (root / "old.txt").read_text() == "old\n"


async def test_files_are_read_and_written_where_no_command_may_run(root):
    async with coding(root, policy=Policy(defaults={"run": "deny"})) as box:
        workspace = Workspace(ToolboxWorkspace(box))
        await workspace.write_bytes("made.txt", b"x")
        assert await workspace.read_bytes(f"{root}/made.txt") == b"x"
        assert await workspace.realpath("made.txt") == f"{root}/made.txt"


async def test_a_pipe_is_no_file_to_read(root):
    os.mkfifo(root / "pipe")
    async with coding(root) as box:
        with pytest.raises(OSError, match="pipe"):
            await ToolboxWorkspace(box).read_bytes(f"{root}/pipe")


async def test_nothing_outside_of_the_workspace_is_read_or_written(root, tmp_path):
    (tmp_path / "secret.txt").write_text("secret")
    async with coding(root) as box:
        workspace = Workspace(ToolboxWorkspace(box))
        for path in (str(tmp_path / "secret.txt"), "../secret.txt", f"{root}2/secret.txt"):
            with pytest.raises(PermissionError):
                await workspace.read_bytes(path)
            with pytest.raises(PermissionError):
                await workspace.write_bytes(path, b"x")
            with pytest.raises(PermissionError):
                await workspace.realpath(path)
            assert not await workspace.exists(path)
        (root / "link").symlink_to(tmp_path)
        with pytest.raises(PermissionError):
            await workspace.realpath("link/secret.txt")
    assert (tmp_path / "secret.txt").read_text() == "secret"


async def test_a_change_that_needs_approval_is_asked_by_the_approver_or_refused(root):
    async def yes(approval):
        return Reply("made.txt" in approval.title)

    async with coding(root, policy=ASK) as box:
        with pytest.raises(PermissionError, match="approval"):
            await ToolboxWorkspace(box).write_bytes(str(root / "made.txt"), b"x")
        assert not (root / "made.txt").exists()
    async with coding(root, policy=ASK, approver=yes) as box:
        await ToolboxWorkspace(box).write_bytes(str(root / "made.txt"), b"x")
    assert (root / "made.txt").read_bytes() == b"x"


async def test_a_long_output_is_whole_and_with_streams_apart_it_is_refused(root):
    script = "head -c 2000000 /dev/zero | tr '\\0' x"
    async with coding(root, policy=RUN) as box:
        done = await ToolboxWorkspace(box).run(script, shell=True)
        assert len(done.stdout) == 2_000_000
    async with coding(root, policy=RUN, separate_streams=True) as box:
        with pytest.raises(WorkspaceOutputLimitError) as told:
            await ToolboxWorkspace(box).run(script, shell=True)
        assert told.value.stdout.startswith("xxx")


async def test_polling_for_a_file_is_never_refused_as_a_repetition(root):
    async with coding(root) as box:
        workspace = Workspace(ToolboxWorkspace(box))
        for _ in range(12):
            assert not await workspace.exists("later.txt")
            with pytest.raises(FileNotFoundError):
                await workspace.read_bytes("later.txt")


@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_the_example_s_tools_work_in_the_toolbox_and_are_taken_back(root):
    def model(messages, _info):
        if len(messages) == 1:
            return ModelResponse([ToolCallPart("sort_lines", {"path": "tea.txt"}, "call_1")])
        return ModelResponse([TextPart(messages[-1].parts[0].content)])

    (root / "tea.txt").write_text("oolong\ngreen\n")
    work = runpy.run_path(str(EXAMPLE))["work"]
    assert await work(root, FunctionModel(model), "Sort the teas.") == "2 tea.txt\n"
    assert (root / "tea.txt").read_text() == "green\noolong\n"
    async with coding(root) as box:
        assert (await box.call("undo")).ok
    assert (root / "tea.txt").read_text() == "oolong\ngreen\n"
