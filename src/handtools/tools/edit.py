"""Tool `edit`: replaces one piece of text in one file."""

from pydantic import BaseModel, Field

from handtools.core.changes import ChangeSet
from handtools.core.context import Context
from handtools.core.errors import NotFound
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.text.diffs.unified_diff import dedent_diff_content
from handtools.tools.editing.drafts import (
    Draft,
    already_applied_text,
    match_note,
    refusal_naming_removing_call,
)
from handtools.tools.editing.edit_outcome import AlreadyApplied, EditRefused, MatchTier


class EditParams(BaseModel):
    """Arguments of the `edit` tool."""

    path: str = Field(title="File to edit, relative to the workspace root.")
    old_string: str = Field(title="Text to replace; must be in the file once.")
    new_string: str = Field(title="Replacement text.")
    replace_all: bool = Field(default=False, title="Replace every exact occurrence.")
    description: str = Field("", title="One line on the purpose.")


class EditDetails(BaseModel):
    """Structured result of the `edit` tool: the diff and how the text was matched."""

    path: str
    replaced: int
    tier: MatchTier | None
    """How the old text was matched; None if there was nothing to replace."""
    notes: list[str]
    diff: str
    first_changed_line: int | None
    old_length: int
    """Length of `old_string` in characters."""
    new_length: int


@tool
async def edit(ctx: Context, params: EditParams) -> Result[EditDetails]:
    """Replace one piece of text."""
    try:
        draft = await Draft.read(ctx.files, params.path)
    except NotFound as missing:
        if params.old_string:
            raise
        raise NotFound(missing.message, hint="Create it with `write`.") from None
    outcome = await draft.replace_old_text(
        ctx.files, params.old_string, params.new_string, every=params.replace_all
    )
    if isinstance(outcome, EditRefused):
        raise await refusal_naming_removing_call(
            ctx.history, draft, outcome, params.old_string, params.new_string
        )
    if isinstance(outcome, AlreadyApplied):
        return _already_applied_result(draft, outcome, params)
    await ctx.files.apply(ChangeSet.of(draft.change(), note=params.description))

    diff = draft.diff()
    details = EditDetails(
        path=draft.path,
        replaced=outcome.count,
        tier=outcome.tier,
        notes=list(outcome.notes),
        diff=dedent_diff_content(diff),
        first_changed_line=draft.first_changed_line,
        old_length=len(params.old_string),
        new_length=len(params.new_string),
    )
    return Result(f"Replaced {outcome.count} in {draft.path}.{match_note(outcome)}\n{diff}", details)


def _already_applied_result(
    draft: Draft, already_applied: AlreadyApplied, params: EditParams
) -> Result[EditDetails]:
    details = EditDetails(
        path=draft.path,
        replaced=0,
        tier=None,
        notes=[],
        diff="",
        first_changed_line=None,
        old_length=len(params.old_string),
        new_length=len(params.new_string),
    )
    return Result(f"{draft.path}: {already_applied_text(already_applied)}", details)
