"""The tool with which `handtools review` reverts rejected changes.

Like any call, it is subject to the policy, recorded and undoable. It is never offered to a model.
"""

from pydantic import BaseModel

from handtools.core.context import Context
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.core.undo import ReviewPoint
from handtools.text.changed_files import ChangedFile, changed_files_text

_VERBS = {"created": "recreated", "changed": "restored", "deleted": "removed"}


class RejectParams(BaseModel):
    """The starting point, the rejected parts of each file, and replacement text for some parts."""

    scope: str
    name: str
    parts: dict[str, list[str]]
    edited: dict[str, str] = {}


class KeptFile(BaseModel):
    """A file that could not be reverted in full, and why."""

    path: str
    reason: str


class RejectDetails(BaseModel):
    """The reverted files, and the files that were kept."""

    restored: list[str] = []
    kept: list[KeptFile] = []


@tool
async def review(ctx: Context, params: RejectParams) -> Result[RejectDetails]:
    """Revert parts of the changes since a point."""
    point = ReviewPoint(params.scope, params.name)  # type: ignore[arg-type]
    done = await ctx.history.reject(point, params.parts, params.edited)
    told = changed_files_text([ChangedFile(_VERBS[each.action], each.path) for each in done.touched])
    kept = [KeptFile(path=each.path, reason=each.reason) for each in done.conflicts]
    text = [f"{told[:1].upper()}{told[1:]}." if told else "Nothing was reverted."]
    text += [f"Kept {each.path}: {each.reason}" for each in kept]
    return Result("\n".join(text), RejectDetails(restored=list(done.restored), kept=kept))
