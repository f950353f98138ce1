"""A language server as a process: what is sent is received, and nonsense is called so, within bounds."""

import asyncio
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools.host.language.server_process import (
    LSP_BODY_BYTES,
    InvalidMessage,
    encode_message,
    read_message,
)

values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**40), 2**40) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def read(data, most=10):
    async def main():
        stream = asyncio.StreamReader(1 << 16)
        stream.feed_data(data)
        stream.feed_eof()
        found = []
        while len(found) < most and (message := await read_message(stream)) is not None:
            found.append(message)
        return found

    return asyncio.run(main())


@given(st.lists(values, max_size=4))
def test_messages_come_out_as_they_went_in(params):
    sent = [{"method": "x", "params": each} for each in params]
    came = read(b"".join(map(encode_message, sent)))
    assert [{**each, "jsonrpc": "2.0"} for each in sent] == came


@given(st.binary(min_size=1, max_size=200))
def test_any_bytes_are_a_message_the_end_or_garbage(data):
    try:
        read(data)
    except InvalidMessage:
        return


@pytest.mark.parametrize(
    "data",
    [
        b"no header at all" * 10_000,
        b"Content-Length: x\r\n\r\n{}",
        b"Content-Length: 5\r\n\r\n{]}}}",
        b"Content-Length: 2\r\n\r\n[]",
        b"Content-Length: 50\r\n\r\n{}",
        b"Content-Length: %d\r\n\r\n" % (LSP_BODY_BYTES + 1),
        b"half a head",
    ],
)
def test_nonsense_is_called_so(data):
    with pytest.raises(InvalidMessage):
        read(data)


def test_a_text_that_quotes_bytes_that_are_no_character_is_sent_all_the_same():
    [came] = read(encode_message({"method": "x", "params": {"text": "é caf\udce9", "more": [1, None]}}))
    assert came["params"] == {"text": "é caf?", "more": [1, None]}


PROGRAM = """
import asyncio, atexit, threading
from handtools.host.language.server_process import run_in_thread

loop = asyncio.new_event_loop()
threading.Thread(target=loop.run_forever, daemon=True).start()
work = lambda: print("done")
atexit.register(lambda: asyncio.run_coroutine_threadsafe(run_in_thread(work), loop).result(10))
"""


def test_what_is_left_to_do_when_the_interpreter_ends_is_done():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    assert done.stdout == "done\n"
    assert not done.stderr
