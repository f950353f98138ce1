"""Parsing: a patch in any format that models write."""

from handtools.text.patching import diffs, envelopes
from handtools.text.patching.forms import FilePatch, Malformed

_FENCE = "```"


def parse(text: str) -> list[FilePatch]:
    """Read `*** Begin Patch` or a unified diff; raises `Malformed`."""
    rows = text.split("\n")
    while rows and rows[-1] in ("", "\r"):
        rows.pop()
    # A transport that turned line ends did so everywhere; otherwise a carriage return is the file's own.
    if rows and all(row.endswith("\r") for row in rows[:-1]) and len(rows) > 1:
        rows = [row.removesuffix("\r") for row in rows]
    first = next((row.strip() for row in rows if row.strip()), "")
    if first.startswith(_FENCE) and rows and rows[-1].strip() == _FENCE:
        start = next(index for index, row in enumerate(rows) if row.strip())
        # What was cut away still counts, so that a message names the right line.
        rows = [""] * (start + 1) + rows[start + 1 : -1]
    files = envelopes.read(rows) if envelopes.opens(rows) else diffs.read(rows)
    if not files:
        raise Malformed(1, "it names no file. Begin with `*** Begin Patch` or `diff --git`.")
    return files
