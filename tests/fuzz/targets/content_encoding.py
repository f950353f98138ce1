"""Bodies of web answers in their encodings: unpacked within the limit, or refused."""

import gzip
import zlib

import brotli
import zstandard

from handtools.core.errors import ToolError
from handtools.host.web.http_client import decoded_body, zstd_end
from tests.fuzz.drawn_values import DrawnValues

PLAIN = b"hello " * 20
ENCODINGS = ["gzip", "deflate", "zstd", "br", "gzip, br", "identity", "x-gzip", "zstd,zstd", "", "x"]
MAX_BYTES = 100_000
SEEDS = [
    b"\x00" + gzip.compress(PLAIN, mtime=0),
    b"\x01" + zlib.compress(PLAIN),
    b"\x02" + zstandard.compress(PLAIN),
    b"\x03" + brotli.compress(PLAIN),
    b"\x00" + gzip.compress(bytes(300_000), mtime=0),
]
WORDS = ["\x1f", "(\xb5/\xfd", "P*M\x18"]
PARSERS = ["handtools.host.web.http_client"]
FOUND: dict[str, bytes] = {}


def fuzz(data):
    drawn = DrawnValues(data)
    encoding, body = drawn.pick(ENCODINGS), drawn.rest()
    zstd_end(body)
    try:
        assert len(decoded_body(body, encoding, MAX_BYTES)) <= MAX_BYTES or encoding in {"identity", ""}
    except ToolError as refused:
        assert str(refused)
