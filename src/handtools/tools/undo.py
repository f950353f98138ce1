"""Tool `undo`: undoes recorded changes of calls, or restores a file to a recorded version."""

from typing import Literal

from pydantic import BaseModel, Field

from handtools.core.context import Context
from handtools.core.errors import InvalidInput
from handtools.core.history import UndoOutcome
from handtools.core.result import Result
from handtools.core.tool import tool


class UndoParams(BaseModel):
    """What the model sends."""

    scope: Literal["call", "turn", "session", "path"] = Field(
        "path", description="What to take back: one call, a turn, a session, or the last change of a path."
    )
    name: str = Field(description="The call id, `session/turn`, session or path.")
    version: int | None = Field(
        None, description="With scope=path: back to this version; 0 is the original."
    )
    action: Literal["undo", "redo", "versions"] = Field(
        "undo", description="versions lists those of a path."
    )
    merge: bool = Field(
        default=False, description="Where a file changed since, merge instead of keeping it as it is."
    )


class ConflictingFile(BaseModel):
    """A path that was left as it is."""

    path: str
    reason: str
    mergeable: bool


class UndoDetails(BaseModel):
    """Structured result of the `undo` tool: restored paths, conflicts or versions."""

    restored: list[str] = []
    conflicts: list[ConflictingFile] = []
    versions: list[int] = []


@tool
async def undo(ctx: Context, params: UndoParams) -> Result[UndoDetails]:
    """Take back recorded changes."""
    if params.scope != "path" and (params.version is not None or params.action == "versions"):
        raise InvalidInput("Versions belong to a path.", hint="Set scope=path and name to the path.")
    if params.action == "versions":
        return await _versions(ctx, params.name)
    if params.version is not None:
        undone = await ctx.history.restore(params.name, params.version)
    elif params.action == "redo":
        undone = await ctx.history.redo(params.scope, params.name, merge=params.merge)
    else:
        undone = await ctx.history.undo(params.scope, params.name, merge=params.merge)
    conflicts = [
        ConflictingFile(path=kept.path, reason=kept.reason, mergeable=kept.merged is not None)
        for kept in undone.conflicts
    ]
    return Result(_told(undone), UndoDetails(restored=list(undone.restored), conflicts=conflicts))


async def _versions(ctx: Context, path: str) -> Result[UndoDetails]:
    found = await ctx.history.versions(path)
    rows = [f"{v.number}: {v.action} by {v.tool or 'an interrupted call'} ({v.call_id})" for v in found]
    rows.append("0: before the first recorded change" if found else f"No change of {path} is recorded.")
    return Result("\n".join(rows), UndoDetails(versions=[v.number for v in found]))


def _told(undone: UndoOutcome) -> str:
    rows = [f"Restored {path}." for path in undone.restored] or ["Nothing was restored."]
    for conflict in undone.conflicts:
        more = " Call again with merge=true to merge." if conflict.merged is not None else ""
        rows.append(f"Kept {conflict.path}: {conflict.reason}{more}")
    if any(conflict.merged is None for conflict in undone.conflicts):
        rows.append(
            "A file that can't be merged can be brought back whole: scope=path with action=versions lists its "
            "versions, version=N restores one, and undo takes that back."
        )
    return "\n".join(rows)
