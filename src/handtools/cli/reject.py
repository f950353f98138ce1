"""The tool by which `handtools review` takes parts back: judged, recorded and undoable as any call, offered to no
model.
"""

from pydantic import BaseModel

from handtools.core.context import Context
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.core.undo_history import ReviewPoint
from handtools.text.changed_files import ChangedFile, changed_files_text

_VERBS = {"created": "brought back", "changed": "restored", "deleted": "removed"}


class RejectParams(BaseModel):
    """From where on, which parts of which files, and text that takes the place of some."""

    scope: str
    name: str
    parts: dict[str, list[str]]
    edited: dict[str, str] = {}


class KeptFile(BaseModel):
    """A file of which a part was kept, and why."""

    path: str
    reason: str


class RejectDetails(BaseModel):
    """What was taken back, and what was kept."""

    restored: list[str] = []
    kept: list[KeptFile] = []


@tool
async def review(ctx: Context, params: RejectParams) -> Result[RejectDetails]:
    """Take back parts of what was changed since a point."""
    point = ReviewPoint(params.scope, params.name)  # type: ignore[arg-type]
    done = await ctx.history.reject(point, params.parts, params.edited)
    told = changed_files_text([ChangedFile(_VERBS[each.action], each.path) for each in done.touched])
    kept = [KeptFile(path=each.path, reason=each.reason) for each in done.conflicts]
    text = [f"{told[:1].upper()}{told[1:]}." if told else "Nothing was taken back."]
    text += [f"Kept {each.path}: {each.reason}" for each in kept]
    return Result("\n".join(text), RejectDetails(restored=list(done.restored), kept=kept))
