"""Records as ripgrep prints them, of any line and path, overlong ones too: hits with their spans inside of the text."""

import base64
import io
import json
from unittest.mock import patch

from handtools.host.search import ripgrep_process
from handtools.host.search.ripgrep_process import (
    MATCH_RECORD,
    hits_of_record,
    iter_records,
    line_bytes_of_record,
    parse_ripgrep_record,
    path_of_record,
)
from tests.fuzz.drawn_values import DrawnValues

SHORT_RECORD_BYTES = 512
"""A record of more than a MB is shortened: here from so many bytes on, so that a small input gets there."""
SEEDS = [
    b"\x01\x02\x05src/a.py\xffdef f(x): return x\n",
    b"\x01\x00\x03\xe9\xffcaf\xc3\xa9 \xe2\x82\xac\r\n",
    b"\x01\x01\x02b\xff\xe9\xe8latin\rtwo\r\xff",
    b"\x01\x01\x02b\xff" + b"long " * 150 + b"\n",
    b'\x00{"type":"match","data":{"path":{"text":"a"},"lines":{"text":"b"},"line_number":1}}\n',
]
WORDS = [
    '{"type":"match"',
    '"path":{"text":"',
    '"bytes":"',
    '"},"line_number":1',
    "\\u00e9",
    '\\"',
    "\n",
    "\r",
]
PARSERS = ["handtools.host.search.ripgrep_process", "handtools.text.encoding"]
FOUND = {
    "a part of a line was taken for another encoding than the line, and a hit ended before it began": (
        b'\x01\x05\x02\xff\xe3a\xc5\xdf\x8bnf\x00\xf7\x00\x00"},"line_numbe\n'
    ),
}


def fuzz(data):
    with patch.object(ripgrep_process, "RIPGREP_RECORD_BYTES", SHORT_RECORD_BYTES):
        check(data)


def check(data):
    drawn = DrawnValues(data)
    if drawn.below(2) == 0:
        for _ in iter_records(io.BytesIO(drawn.rest())):
            pass
        return
    start, length = drawn.below(256), drawn.below(64)
    path = drawn.text().encode("utf-8", "surrogateescape")
    line = drawn.rest()
    found = {"start": min(start, len(line)), "end": min(start + length, len(line))}
    told = {
        "path": said(path), "lines": said(line), "line_number": 7, "absolute_offset": 3,
        "submatches": [{"match": said(line[found["start"] : found["end"]]), **found}],
    }  # fmt: skip
    record = (
        json.dumps({"type": "match", "data": told}, ensure_ascii=False, separators=(",", ":")).encode()
        + b"\n"
    )
    for each in iter_records(io.BytesIO(record)):
        assert each.startswith(MATCH_RECORD)
        read = parse_ripgrep_record(each)
        if "cut" not in read:
            assert line_bytes_of_record(read) == line
        assert path_of_record(read).encode("utf-8", "surrogateescape") == path.removeprefix(b"./")
        for hit in hits_of_record("p", read):
            assert hit.line >= 7
            assert all(0 <= first <= last <= len(hit.text) for first, last in hit.spans)


def said(data):
    """Text where it is UTF-8, else base64, as ripgrep does."""
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(data).decode()}
