"""Tool `edit_agent`: a model supplied by the embedding program edits one file by written instructions."""

from collections.abc import Iterable
from typing import Literal

from pydantic import BaseModel, Field

from handtools.core.context import Context
from handtools.core.errors import AlreadyExists, NotFound
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.text.diffs.unified_diff import dedent_diff_content
from handtools.text.lines import count_lines, split_lines
from handtools.text.numbered_page import ReadBudget
from handtools.tools.editing.drafts import Draft
from handtools.tools.editing.edit_agent_conversation import MAX_WHOLE_FILE_LINES, EditAgentSession
from handtools.tools.reading.file_outline import render_outline
from handtools.tools.reading.file_view import flatten_outline

OUTLINE_BUDGET = ReadBudget(400, 24_000)


class EditAgentParams(BaseModel):
    """Arguments of the `edit_agent` tool."""

    path: str = Field(description="File to edit, relative to the workspace root.")
    instructions: str = Field(min_length=1, max_length=20_000, description="What to change; be specific.")
    mode: Literal["edit", "create", "overwrite"] = Field(
        "edit",
        description="edit: the file must exist. create: it must not. overwrite: replace an existing file.",
    )
    description: str = Field("", description="One line on the purpose.")


class EditAgentDetails(BaseModel):
    """Structured result of the `edit_agent` tool: the diff, the number of edits and of rounds."""

    path: str
    created: bool
    edits: int
    questions: int
    diff: str
    first_changed_line: int | None


def _paths_to_lock_at_start(_: EditAgentParams) -> Iterable[str]:
    """Lock no paths at the start: the model may take minutes, so the file is locked only to be written."""
    return ()


@tool(paths=_paths_to_lock_at_start, needs="model")
async def edit_agent(ctx: Context, params: EditAgentParams) -> Result[EditAgentDetails]:
    """Have a model make the edits."""
    assert ctx.callbacks.model is not None, "not offered without a model"
    draft = await _read_draft(ctx, params)
    outline = await _outline_text(ctx, draft) if count_lines(draft.body) > MAX_WHOLE_FILE_LINES else ""
    session = EditAgentSession(ctx.callbacks.model, draft, params.instructions, ctx.progress, outline)
    await session.run_rounds()
    await session.land(ctx.files, params.description or params.instructions[:200])

    diff = session.draft.diff()
    details = EditAgentDetails(
        path=session.draft.path,
        created=session.draft.before is None,
        edits=len(session.pairs),
        questions=session.rounds,
        diff=dedent_diff_content(diff),
        first_changed_line=session.draft.first_changed_line,
    )
    there = f" Already applied: {session.there}." if session.there else ""
    return Result(f"Edits applied to {session.draft.path}: {len(session.pairs)}.{there}\n{diff}", details)


async def _read_draft(ctx: Context, params: EditAgentParams) -> Draft:
    """Read the file to edit."""
    facts = await ctx.files.facts(params.path)
    if params.mode == "create":
        if facts is not None:
            raise AlreadyExists(f"`{params.path}` already exists.", hint="Use mode=edit or mode=overwrite.")
        return Draft.for_new_file(params.path)
    if facts is None:
        raise NotFound(f"`{params.path}` does not exist.", hint="To create it, use mode=create.")
    draft = await Draft.read(ctx.files, params.path)
    if params.mode == "overwrite":
        draft.put("")
    return draft


async def _outline_text(ctx: Context, draft: Draft) -> str:
    found = await ctx.syntax.outline(draft.path, draft.before or b"")
    return (
        render_outline(split_lines(draft.body), flatten_outline(found), OUTLINE_BUDGET).text
        if found
        else ""
    )
