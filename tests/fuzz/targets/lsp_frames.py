"""Messages of language servers: what we write is read again, and anything else is a message or `InvalidMessage`."""

import asyncio

from handtools.host.language.server_process import InvalidMessage, encode_message, read_message
from tests.fuzz.drawn_values import DrawnValues

SEEDS = [
    b'\x00Content-Length: 2\r\n\r\n{}Content-Type: x\r\ncontent-length: 17\r\n\r\n{"id":1,"a":null}',
    b"\x00Content-Length: 99\r\n\r\n[]",
    b"\x01\x00\x02id\xff",
]
WORDS = [
    "Content-Length: ",
    "\r\n\r\n",
    "\r\n",
    "jsonrpc",
    "id",
    "method",
    "params",
    "result",
    "error",
    "uri",
    "range",
]
PARSERS = ["handtools.host.language.server_process"]
FOUND = {
    "deep arrays ended in RecursionError": b"\x00Content-Length: 3000\r\n\r\n" + b"[" * 3000,
}


def fuzz(data):
    drawn = DrawnValues(data)
    if drawn.below(2):
        message = {"made": drawn.json(WORDS)}
        [read] = asyncio.run(messages(encode_message(message)))
        whole = "\\ud" not in ascii(message)  # half characters are replaced
        assert not whole or read == {"jsonrpc": "2.0", **message}
        return
    try:
        for message in asyncio.run(messages(drawn.rest())):
            assert isinstance(message, dict)
    except InvalidMessage as refused:
        assert str(refused)


async def messages(data):
    stream = asyncio.StreamReader()
    stream.feed_data(data)
    stream.feed_eof()
    found = []
    while (message := await read_message(stream)) is not None:
        found.append(message)
    return found
