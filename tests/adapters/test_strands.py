"""What Strands alone has: its own signal for cancelling, and several agents in one session."""

import os

import anyio
import pytest

if os.environ.get("HANDTOOLS_ADAPTER") != "strands":
    pytest.skip("needs Strands", allow_module_level=True)

from handtools import coding
from handtools.core.events import Progressed
from tests.adapters.driver_strands import agent, said, session
from tests.adapters.drivers import Wanted
from tests.adapters.new_process import RUN

pytestmark = pytest.mark.anyio


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    return folder


async def test_the_agents_own_cancel_ends_a_running_command(root):
    def hear(event):
        if isinstance(event, Progressed) and "begun" in event.text:
            made.cancel()

    async with coding(root, policy=RUN, listeners=[hear]) as box:
        made = agent(box, session(), [Wanted("bash", {"command": "echo begun; sleep 500"}, "call_1")])
        with anyio.fail_after(100):
            done = await made.invoke_async("go")
    assert done.stop_reason == "cancelled"
    [command] = said(made.messages)
    assert command.error
    assert "cancelled" in command.text


async def test_agents_of_one_session_share_no_call(root, tmp_path):
    call = Wanted("bash", {"command": "echo x >> count.txt"}, "call_1")
    async with coding(root, policy=RUN) as box:
        for name in ("one", "two"):
            made = agent(box, session("both", str(tmp_path / "sessions")), [call], "done", agent_id=name)
            await made.invoke_async("go")
    assert (root / "count.txt").read_text() == "x\nx\n"
