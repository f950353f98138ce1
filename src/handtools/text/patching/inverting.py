"""Inverting: the patch that takes a patch back."""

from typing import assert_never

from handtools.text.patching.forms import FilePatch, Hunk, Row, Sign, as_rows

_OPPOSITE: dict[Sign, Sign] = {" ": " ", "-": "+", "+": "-"}


def invert(patch: FilePatch, content: str | None = None) -> FilePatch:
    """Turn a patch around; `content` is what a deleted file held, where the patch does not say it."""
    growth = 0
    hunks = []
    for hunk in patch.hunks:
        hunks.append(_inverted(hunk, growth))
        growth += hunk.growth
    if patch.action == "add":
        return FilePatch(
            action="delete", path=patch.path, hunks=tuple(hunks), was_executable=patch.executable
        )
    if patch.action == "delete":
        if not hunks and content:
            hunks = [Hunk(as_rows(content, "+"), 0)]
        return FilePatch(action="add", path=patch.path, hunks=tuple(hunks), executable=patch.was_executable)
    if patch.action == "update":
        if patch.keeps_origin:
            return FilePatch(action="delete", path=patch.path)
        return FilePatch(
            action="update",
            path=patch.origin or patch.path,
            origin=patch.path if patch.origin else None,
            hunks=tuple(hunks),
            executable=patch.was_executable,
            was_executable=patch.executable,
        )
    assert_never(patch.action)


def _inverted(hunk: Hunk, growth: int) -> Hunk:
    rows = tuple(Row(_OPPOSITE[row.sign], row.text, row.ended) for row in hunk.rows)
    line = None
    if hunk.line is not None:
        # A side without lines is named by the line before it.
        start = hunk.line if hunk.old else hunk.line + 1
        line = start + growth - (not hunk.new)
    return Hunk(rows, line, hunk.scopes, hunk.at_end)
