"""What is recorded as JSON is read again as it was: calls, results, changes, folders, segments of a fleet's log."""

import contextlib
import json
import struct

import zstandard

from handtools import Call, Result
from handtools.core.call import call_from_json, call_to_json
from handtools.core.changes import BackupRef, Change, FolderItem, Node, pack_folder, unpack_folder
from handtools.core.errors import StorageFault
from handtools.core.result import Document, Image, Text, result_from_json, result_to_json
from handtools.fleet.workspace_log import PathState, Segment
from handtools.runtime.journal.calls import _change_from_json, _change_to_json
from handtools.runtime.journal.database import path_from_column, path_to_column
from handtools.text.encoding import without_surrogates
from handtools.text.paths import path_from_printable, path_to_printable
from tests.fuzz.drawn_values import DrawnValues

SEEDS = [b"\x00\x01\x02abc\xff\x01d\xff\xe9\xff\x03\x04xyz", b"\x05\x05\x02\x01q\xff" * 6]
WORDS = ["args", "path", "text", "\u2028", "\\u", "%", "output:"]
PARSERS = [
    "handtools.core",
    "handtools.runtime.journal.calls",
    "handtools.fleet.workspace_log",
    "handtools.text.paths",
]
FOUND: dict[str, bytes] = {}


def fuzz(data):
    drawn = DrawnValues(data)
    made = drawn.json(WORDS)
    # Names with half of a surrogate pair are refused before anything is recorded.
    chosen, turn = (without_surrogates(drawn.text()) for _ in range(2))
    call = Call(tool="x", args={"a": made}, id=chosen or "i", turn=turn)
    assert call_from_json(again(call_to_json(call))) == call
    kinds = [Text, lambda text: Image(text.encode("utf-8", "surrogatepass"), "image/png"),
             lambda text: Document(text.encode("utf-8", "surrogatepass"), "a/b", text)]  # fmt: skip
    blocks = [drawn.pick(kinds)(drawn.text()) for _ in range(drawn.below(3))]
    result = Result(blocks, made, status=drawn.pick(["ok", "error", "pending"]))
    assert result_from_json(again(result_to_json(result))) == result
    change = Change(drawn.text(), node(drawn), node(drawn))
    assert _change_from_json(again(_change_to_json(change))) == change
    items = [
        FolderItem(drawn.text(), "file", drawn.below(256), drawn.text(), drawn.below(99)) for _ in range(2)
    ]
    assert sorted(unpack_folder(pack_folder(items))) == sorted(items)
    path = drawn.text().lstrip("/")  # paths are relative
    assert path_from_column(path_to_column(path)) == path
    assert path_from_printable(path_to_printable(path)) == path
    states = tuple(PathState(f"a/x{without_surrogates(drawn.text()).replace(chr(0), '')}".rstrip("/."), "file",
                             drawn.below(256), drawn.text().encode("utf-8", "surrogateescape"))
                   for _ in range(drawn.below(3)))  # fmt: skip
    segment = Segment(drawn.pick([None, b"whole"]), b"log", states, drawn.text())
    if all({"", ".", ".."}.isdisjoint(each.path.split("/")) for each in states):
        assert Segment.unpack(segment.pack()) == segment
    head = json.dumps(drawn.json(["writer", "whole", "fence", "paths", "kept", "sizes", "file"])).encode()
    with contextlib.suppress(StorageFault):
        Segment.unpack(
            zstandard.compress(
                struct.pack(">I", len(head)) + head + drawn.text().encode("utf-8", "replace")
            )
        )


def node(drawn):
    if drawn.below(3) == 0:
        return None
    held = BackupRef(drawn.text(), drawn.text(), drawn.below(256)) if drawn.below(2) else None
    return Node(
        drawn.pick(["file", "link", "folder"]), drawn.text().encode("utf-8", "surrogateescape"), 0o644, held
    )


def again(value):
    return json.loads(json.dumps(value))
