"""Unified diffs of any two texts: what is printed is parsed, applied and taken back, by us and by GNU patch."""

import subprocess
import tempfile
import zlib
from pathlib import Path

from handtools.text.diffs.unified_diff import unified_diff
from handtools.text.patch_model import invert_patch
from handtools.tools.editing.hunk_placement import PatchedText, apply_hunks
from handtools.tools.editing.patch_parser import parse_patch
from tests.fuzz.drawn_values import texts_of

SEEDS = [
    b"a\nb\nc\nd\ne\nf\ng\nh\ni\xffa\nb\nc\nx\ne\nf\ng\nh\ni\n\xff",
    b"a\r\nb\r\n\xffa\r\nc\r\n\xff1",
    b"\xff\n\xff2",
    b"--- a\n+++ b\n@@ -1 +1 @@\n\xff-- a\n++ b\n\xff3",
]
WORDS = [
    "\n",
    "\r\n",
    "\r",
    "--- a/x\n",
    "+++ b/x\n",
    "@@ -1 +1 @@\n",
    "\\ No newline at end of file\n",
    "\n\n\n\n",
]
PARSERS = ["handtools.text"]
FOUND: dict[str, bytes] = {}
ONE_IN = 16
"""Starting a program takes as long as many inputs: so few are also given to GNU patch."""


def fuzz(data):
    before, after, more = texts_of(data, 3)
    diff = unified_diff("f", before, after, context=1 + len(more) % 4)
    assert bool(diff) == (before != after)
    if not diff:
        return
    [file] = parse_patch(diff)
    assert applied(before, file.hunks) == after
    assert applied(after, invert_patch(file).hunks) == before
    if zlib.crc32(data) % ONE_IN == 0:
        assert patched_by_gnu(before, diff) == after.encode("utf-8", "surrogateescape")


def applied(text, hunks):
    outcome = apply_hunks(text, hunks)
    assert isinstance(outcome, PatchedText), outcome
    return outcome.text


def patched_by_gnu(text, diff, *options):
    """The file after `patch`; None if it refuses."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "f")
        file.write_bytes(text.encode("utf-8", "surrogateescape"))
        done = subprocess.run(
            ["patch", "--binary", "-p1", "-s", "-f", "-E", "--no-backup-if-mismatch", "-r-", *options],
            input=diff.encode("utf-8", "surrogateescape"), cwd=folder, capture_output=True, check=False,
        )  # fmt: skip
        if done.returncode:
            return None
        return file.read_bytes() if file.exists() else b""
