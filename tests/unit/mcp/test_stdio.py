"""What goes out over the pipe once the client was greeted."""

import pytest
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCRequest, JSONRPCResponse

from handtools.mcp.stdio import StdoutMessages, _WriteFlow

pytestmark = pytest.mark.anyio


class Written(list):
    """A pipe that keeps what is written."""

    write = list.append

    def is_closing(self):
        return False


async def test_an_answer_that_was_given_is_kept_back_and_a_request_of_that_number_is_not():
    written = Written()
    outgoing = StdoutMessages(written, _WriteFlow(), {1})
    for message in (
        JSONRPCRequest(jsonrpc="2.0", id=1, method="roots/list"),
        JSONRPCResponse(jsonrpc="2.0", id=1, result={"greeting": True}),
        JSONRPCResponse(jsonrpc="2.0", id=1, result={"later": True}),
    ):
        await outgoing.send(SessionMessage(message))
    assert [b"roots/list" in line for line in written] == [True, False]
    assert b"later" in written[1]
