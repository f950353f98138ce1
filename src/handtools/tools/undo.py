"""Tool `undo`: undoes recorded changes of calls, or restores a file to a recorded version."""

import re
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from handtools.core.context import Context
from handtools.core.errors import InvalidInput
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.core.undo_history import UndoOutcome, UndoScope
from handtools.text.changed_files import ChangedFile, changed_files_text

MOST_LISTED_CONFLICTS = 20
_CHANGE_NUMBER = re.compile(r"#?\d+")
_VERBS = {"created": "brought back", "changed": "restored", "deleted": "removed"}
_PLANS = {"created": "bring back", "changed": "restore", "deleted": "remove"}


class UndoParams(BaseModel):
    """What the model sends."""

    # The number of a change comes as a number, too.
    model_config = ConfigDict(coerce_numbers_to_str=True)

    scope: Literal["last", "call", "turn", "session", "path"] | None = Field(
        None,
        title="What to take back; without it `name` is a path, and without that the last change.",
        description="Without it: path if there is a name, else last.",
    )
    name: str = Field("", description="Number or id of a call, session/turn, session or path.")
    since: str = Field("", title="Instead: this change and all that its session did after it.")
    dry_run: bool = Field(default=False, title="Only say what it would do.")
    version: int | None = Field(
        None,
        title="With scope=path: back to this version; 0 is the original.",
        description="0 is the original.",
    )
    action: Literal["undo", "redo", "versions"] = Field("undo", title="versions lists those of a path.")
    merge: bool = Field(
        default=False,
        title="Where a file changed since, merge instead of keeping it as it is.",
        description="Where a file changed since.",
    )


class ConflictingFile(BaseModel):
    """A path that was left as it is."""

    path: str
    reason: str
    mergeable: bool


class UndoDetails(BaseModel):
    """Structured result of the `undo` tool: restored paths, conflicts or versions."""

    action: Literal["undo", "redo", "versions"] = "undo"
    dry_run: bool = False
    restored: list[str] = []
    removed: list[str] = []
    """Those of `restored` that are not there any more, because a call had created them."""
    conflicts: list[ConflictingFile] = []
    versions: list[int] = []

    @property
    def failed(self) -> bool:
        """Whether nothing was taken back because every file changed since."""
        return bool(self.conflicts) and not self.restored

    @property
    def outcome(self) -> str:
        """What the log says: `redo`, `dry run`, `conflicts`."""
        words = [
            "redo" * (self.action == "redo"),
            "dry run" * self.dry_run,
            "conflicts" * bool(self.conflicts),
        ]
        return " ".join(filter(None, words))


@tool
async def undo(ctx: Context, params: UndoParams) -> Result[UndoDetails]:
    """Take back recorded changes."""
    scope, name = _target(params)
    if not params.scope and scope == "path" and await _is_change_number(ctx, params):
        scope = "call"
    if scope != "path" and (params.version is not None or params.action == "versions"):
        raise InvalidInput("Versions belong to a path.", hint="Set scope=path and name to the path.")
    if params.action == "versions":
        return await _versions(ctx, name)
    if params.version is not None:
        undone = await ctx.history.restore(name, params.version, dry_run=params.dry_run)
    elif params.action == "redo":
        undone = await ctx.history.redo(scope, name, merge=params.merge, dry_run=params.dry_run)
    else:
        undone = await ctx.history.undo(scope, name, merge=params.merge, dry_run=params.dry_run)
    conflicts = [
        ConflictingFile(path=kept.path, reason=kept.reason, mergeable=kept.merged is not None)
        for kept in undone.conflicts
    ]
    details = UndoDetails(
        action=params.action,
        dry_run=params.dry_run,
        restored=list(undone.restored),
        removed=[each.path for each in undone.touched if each.action == "deleted"],
        conflicts=conflicts,
    )
    return Result(_told(undone, dry_run=params.dry_run), details)


def _target(params: UndoParams) -> tuple[UndoScope, str]:
    """Return scope and name of what is to be taken back; raises if both are not clear."""
    if params.since:
        if params.name or params.scope:
            raise InvalidInput("`since` stands alone.", hint="Leave out `scope` and `name`.")
        return "since", params.since
    scope = params.scope or ("path" if params.name else "last")
    if scope != "last" and not params.name:
        raise InvalidInput(f"scope={scope} needs a `name`.", hint="Name it, or use scope=last.")
    return scope, params.name


async def _is_change_number(ctx: Context, params: UndoParams) -> bool:
    """Return whether a name without a scope is a number that an answer showed, and no path of these digits."""
    if (
        params.version is not None
        or params.action == "versions"
        or not _CHANGE_NUMBER.fullmatch(params.name)
    ):
        return False
    return await ctx.files.facts(params.name) is None and not await ctx.history.versions(params.name)


async def _versions(ctx: Context, path: str) -> Result[UndoDetails]:
    found = await ctx.history.versions(path)
    rows = [f"{v.number}: {v.action} by {v.tool or 'an interrupted call'} ({v.call_id})" for v in found]
    rows.append("0: before the first recorded change" if found else f"No change of {path} is recorded.")
    return Result("\n".join(rows), UndoDetails(versions=[v.number for v in found]))


def _told(undone: UndoOutcome, *, dry_run: bool) -> str:
    verbs = _PLANS if dry_run else _VERBS
    text = changed_files_text([ChangedFile(verbs[each.action], each.path) for each in undone.touched])
    if dry_run:
        rows = [f"It would {text}." if text else "It would change nothing."]
    else:
        rows = [f"{text[0].upper()}{text[1:]}." if text else "Nothing was restored."]
    for conflict in undone.conflicts[:MOST_LISTED_CONFLICTS]:
        more = " Call again with merge=true to merge." if conflict.merged is not None else ""
        rows.append(f"{'It would keep' if dry_run else 'Kept'} {conflict.path}: {conflict.reason}{more}")
    if len(undone.conflicts) > MOST_LISTED_CONFLICTS:
        rows.append(f"{len(undone.conflicts) - MOST_LISTED_CONFLICTS:,} more are kept.")
    if any(conflict.merged is None for conflict in undone.conflicts):
        rows.append(
            "A file that can't be merged can be brought back whole: scope=path with action=versions lists its "
            "versions, version=N restores one, and undo takes that back."
        )
    return "\n".join(rows)
