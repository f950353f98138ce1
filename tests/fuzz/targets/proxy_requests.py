"""What a confined command asks the proxy for, HTTP or SOCKS: a host and a port that were judged, or a refusal."""

import asyncio

from handtools.host.sandbox.network_proxy import REQUEST_HEAD_BYTES, BadProxyRequest, read_proxy_request

SEEDS = [
    b"CONNECT example.org:443 HTTP/1.1\r\nProxy-Authorization: Basic dTpw\r\n\r\n",
    b"GET http://u@[::1]:80/a?b HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nConnection: y\r\n\r\nabc",
    b"\x05\x02\x00\x02\x01\x01u\x01p\x05\x01\x00\x03\x0bexample.org\x01\xbb",
    b"\x05\x01\x00\x05\x01\x00\x01\x7f\x00\x00\x01\x00\x50",
    b"\x05\x01\x00\x05\x01\x00\x04" + b"\0" * 16 + b"\x00\x50",
]
WORDS = ["CONNECT ", " HTTP/1.1\r\n", "http://", "\r\n\r\n", "Content-Length: ", "Transfer-Encoding: chunked", "Basic ", "[", "]",
         "@", "Proxy-Authorization: "]  # fmt: skip
PARSERS = ["handtools.host.sandbox.network_proxy"]
FOUND = {
    "brackets that hold no address ended in ValueError": b"GET http://u@:[:]81 HTTP/1.1\r\n\r\n",
    "a port of thousands of digits ended in ValueError": b"CONNECT a:" + b"9" * 5000 + b" HTTP/1.1\r\n\r\n",
    "a length of thousands of digits ended in ValueError": b"GET http://a/ HTTP/1.1\r\nContent-Length: "
    + b"9" * 5000
    + b"\r\n\r\n",
}


class Answers:
    """Only what a reader of requests asks of a writer."""

    def write(self, data):
        assert isinstance(data, bytes)

    async def drain(self):
        return None


def fuzz(data):
    try:
        wanted = asyncio.run(read(data))
    except (BadProxyRequest, asyncio.IncompleteReadError):
        return
    assert 0 <= wanted.port < 1 << 16
    assert isinstance(wanted.host, str)
    if wanted.kind == "request":
        # One request and no more: what would be a second one was judged by nobody.
        head, _, rest = wanted.head.partition(b"\r\n\r\n")
        assert not rest
        assert head.lower().count(b"\r\nhost:") == 1


async def read(data):
    stream = asyncio.StreamReader(limit=REQUEST_HEAD_BYTES)
    stream.feed_data(data)
    stream.feed_eof()
    return await read_proxy_request(stream, Answers())
