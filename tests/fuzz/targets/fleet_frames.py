"""Messages between hosts and their clients: the same however they are cut, and a connection that ends at nonsense."""

import asyncio

from handtools.core.errors import HostError
from handtools.fleet.frames import FrameConnection, encode_frame, parse_address
from tests.fuzz.drawn_values import DrawnValues, text_of

SEEDS = [
    b"\x00" + encode_frame({"a": 1}) + encode_frame({"token": "x"}), b"\x00\x00\x00\x00\x02[]", b"\x01\x02id\xff",
    b"\x02tcp:a:1", b"\x02unix:/x",
]  # fmt: skip
WORDS = ["id", "method", "token", "workspace", "tcp:", "unix:", ":80", "\x00\x00\x00"]
PARSERS = ["handtools.fleet.frames"]
FOUND = {
    "deep arrays ended in RecursionError": b"\x00\x00\x00\x0b\xb8" + b"[" * 3000,
    "a digit that is no number ended in ValueError": b"\x02tcp:a:\xc2\xb2",
}


class Wire(asyncio.Transport):
    """Only what a connection asks of its transport."""

    closed = False

    def close(self):
        self.closed = True

    def is_closing(self):
        return self.closed


class Hearing(FrameConnection):
    def __init__(self, pieces):
        super().__init__()
        self.heard = []
        self.connection_made(Wire())
        for piece in pieces:
            if not self.transport.is_closing():
                self.data_received(piece)

    def handle_message(self, message):
        self.heard.append(message)


def fuzz(data):
    drawn = DrawnValues(data)
    kind = drawn.below(3)
    if kind == 2:
        try:
            parse_address(text_of(drawn.rest()))
        except HostError:
            return
        return
    messages = [{"made": drawn.json(WORDS)} for _ in range(2)] if kind else []
    sent = b"".join(map(encode_frame, messages)) if kind else drawn.rest()
    whole = Hearing([sent])
    step = 1 + len(data) % 5
    cut = Hearing([sent[at : at + step] for at in range(0, len(sent), step)])
    assert cut.heard == whole.heard
    assert cut.transport.closed == whole.transport.closed
    assert not kind or whole.heard == messages
