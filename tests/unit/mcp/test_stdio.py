"""What is told to the client at once, and what goes out over the pipe once it was greeted."""

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from handtools.cli.init import CommandsAnswer, NotifyAnswer, init
from handtools.mcp.stdio import _may_change_tools
from handtools.mcp.stdio_session import SdkOutput


def test_what_init_writes_keeps_nobody_waiting_for_the_list_of_tools(tmp_path, monkeypatch):
    file = tmp_path / "config.toml"
    monkeypatch.setenv("HANDTOOLS_CONFIG", str(file))
    init(CommandsAnswer.allow, ["docs.python.org"], NotifyAnswer.desktop)
    assert "tools" in file.read_text()
    assert not _may_change_tools(tmp_path / "work")


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ('block = ["bash"]\n', True),
        ('hosts = []\n  "tools"="read_only"\n', True),
        ('preset\t= "reading"', True),
        ("'allow' = ['read']", True),
        ('# tools = "none"\nreadable = ["~/devtools"]\n[[rule]]\nverdict = "allow"\n', False),
    ],
)
def test_a_configuration_is_looked_into_only_where_it_may_change_the_tools(
    text, changed, tmp_path, monkeypatch
):
    file = tmp_path / "config.toml"
    file.write_text(text)
    monkeypatch.setenv("HANDTOOLS_CONFIG", str(file))
    assert _may_change_tools(tmp_path / "work") is changed


class Written(list):
    """A pipe that keeps what is written."""

    write = list.append

    async def wait_for_room(self):
        pass


@pytest.mark.anyio
async def test_an_answer_that_was_given_is_kept_back_and_a_request_of_that_number_is_not():
    written = Written()
    outgoing = SdkOutput(written, {1})
    for message in (
        JSONRPCRequest(jsonrpc="2.0", id=1, method="roots/list"),
        JSONRPCResponse(jsonrpc="2.0", id=1, result={"greeting": True}),
        JSONRPCResponse(jsonrpc="2.0", id=1, result={"later": True}),
    ):
        await outgoing.send(SessionMessage(message))
    assert [b"roots/list" in line for line in written] == [True, False]
    assert b"later" in written[1]
