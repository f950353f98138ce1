"""Tool `undo`: undoes recorded changes of calls, or restores a file to a recorded version."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from handtools.core.context import Context
from handtools.core.errors import InvalidInput
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.core.undo import LAST_NAME, UndoOutcome, UndoScope, is_change_number, passed_over_text
from handtools.text.changed_files import ChangedFile, changed_files_text

MAX_LISTED_CONFLICTS = 20
_VERBS = {"created": "recreated", "changed": "restored", "deleted": "removed"}
_PLANS = {"created": "recreate", "changed": "restore", "deleted": "remove"}


class UndoParams(BaseModel):
    """Arguments of the `undo` tool."""

    # Models sometimes send change numbers as integers.
    model_config = ConfigDict(coerce_numbers_to_str=True)

    scope: Literal["last", "call", "turn", "session", "path"] | None = Field(
        None,
        title="What to undo. Default: path if there is a name, otherwise the last change.",
        description="Default: path if there is a name, or last.",
    )
    name: str = Field(
        "", description="Change number, turn, session or path. Default: this session, or its last."
    )
    since: str = Field("", title="Instead: undo this change and all later ones of its session.")
    dry_run: bool = Field(default=False, title="Only show what it would do.")
    version: int | None = Field(
        None,
        title="With scope=path: restore this version; 0 is the original.",
        description="0 is the original.",
    )
    action: Literal["undo", "redo", "versions"] = Field("undo", title="versions lists a path's versions.")
    merge: bool = Field(
        default=False,
        title="Merge files that changed since, instead of keeping them as they are.",
        description="Merge files that changed since.",
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
    """Paths in `restored` that were removed, because the undone call had created them."""
    conflicts: list[ConflictingFile] = []
    versions: list[int] = []
    passed_over: list[int] = []
    """Newer changes of commands that only touched ignored files, which were not undone."""
    scope: str = ""
    name: str = ""
    """What was undone: a change by its number, a turn, a session or a path."""
    diff: str = ""
    """The beginning of the diff that the undo made."""

    @property
    def failed(self) -> bool:
        """Whether nothing was undone because every file has changed since."""
        return bool(self.conflicts) and not self.restored

    @property
    def outcome(self) -> str:
        """Outcome for the log: `redo`, `dry run`, `conflicts`."""
        words = [
            "redo" * (self.action == "redo"),
            "dry run" * self.dry_run,
            "conflicts" * bool(self.conflicts),
        ]
        return " ".join(filter(None, words))


@tool
async def undo(ctx: Context, params: UndoParams) -> Result[UndoDetails]:
    """Undo recorded changes."""
    scope, name = _scope_and_name(params)
    if not params.scope and scope == "path" and await _is_change_number(ctx, params):
        scope = "call"
    if scope != "path" and (params.version is not None or params.action == "versions"):
        raise InvalidInput("Only a path has versions.", hint="Set scope=path and name to the path.")
    if params.action == "versions":
        return await _versions_result(ctx, name)
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
        passed_over=list(undone.passed_over),
        scope=undone.scope,
        name=undone.name,
        diff=undone.diff,
    )
    return Result(_result_text(undone, dry_run=params.dry_run), details)


def _scope_and_name(params: UndoParams) -> tuple[UndoScope, str]:
    """Return the scope and name of the changes to undo; raises if the arguments don't fit together."""
    if params.since:
        if params.name or params.scope:
            raise InvalidInput("`since` can't be combined.", hint="Leave out `scope` and `name`.")
        return "since", params.since
    scope = params.scope or ("path" if params.name not in ("", LAST_NAME) else "last")
    if scope == "path" and not params.name:
        raise InvalidInput("scope=path needs a `name`.", hint="Send the path, or use scope=last.")
    return scope, params.name


async def _is_change_number(ctx: Context, params: UndoParams) -> bool:
    """Whether a name without a scope is the number of a change, and not an existing path."""
    if params.version is not None or params.action == "versions" or not is_change_number(params.name):
        return False
    return await ctx.files.facts(params.name) is None and not await ctx.history.versions(params.name)


async def _versions_result(ctx: Context, path: str) -> Result[UndoDetails]:
    found = await ctx.history.versions(path)
    rows = [f"{v.number}: {v.action} by {v.tool or 'an interrupted call'} ({v.call_id})" for v in found]
    rows.append("0: before the first recorded change" if found else f"No recorded changes of {path}.")
    return Result("\n".join(rows), UndoDetails(versions=[v.number for v in found]))


def _result_text(undone: UndoOutcome, *, dry_run: bool) -> str:
    verbs = _PLANS if dry_run else _VERBS
    text = changed_files_text([ChangedFile(verbs[each.action], each.path) for each in undone.touched])
    if dry_run:
        rows = [f"It would {text}." if text else "It would change nothing."]
    else:
        rows = [f"{text[0].upper()}{text[1:]}." if text else "Nothing was restored."]
    if undone.passed_over:
        rows.append(passed_over_text(undone.passed_over))
    for conflict in undone.conflicts[:MAX_LISTED_CONFLICTS]:
        more = " Call again with merge=true to merge." if conflict.merged is not None else ""
        rows.append(f"{'It would keep' if dry_run else 'Kept'} {conflict.path}: {conflict.reason}{more}")
    if len(undone.conflicts) > MAX_LISTED_CONFLICTS:
        rows.append(f"{len(undone.conflicts) - MAX_LISTED_CONFLICTS:,} more files are kept.")
    if any(conflict.merged is None for conflict in undone.conflicts):
        rows.append(
            "To restore a file that can't be merged, list its versions with scope=path, action=versions, "
            "then send version=N. That can be undone, too."
        )
    return "\n".join([*rows, undone.diff] if undone.diff else rows)
