"""Tool `multi_edit`: several text edits, in one or more files, applied together or not at all."""

from collections.abc import Iterable

from pydantic import BaseModel, ConfigDict, Field

from handtools.core.context import Context
from handtools.core.errors import InvalidInput, NotFound, ToolError
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.text import lines
from handtools.text.diffs.unified_diff import dedent_diff_content
from handtools.tools.editing.drafts import Draft, DraftSet, match_note, refusal_error
from handtools.tools.editing.edit_outcome import AlreadyApplied, EditRefused

MAX_EDITS = 200


class SingleEdit(BaseModel):
    """One of the edits."""

    model_config = ConfigDict(extra="forbid")

    path: str | None = Field(None, description="If not the call's.")
    old_string: str = Field(
        "", title="Text to replace, once in the file. Empty in its first edit: create the file."
    )
    new_string: str = Field(title="Replacement text.")
    replace_all: bool = Field(default=False, title="Replace every exact occurrence.")
    insert_line: int | None = Field(
        None, ge=1, title="Instead of replacing: new_string becomes this line (1 to lines + 1)."
    )


class MultiEditParams(BaseModel):
    """Arguments of the `multi_edit` tool."""

    path: str | None = Field(None, title="File to edit, relative to the workspace root.")
    edits: list[SingleEdit] = Field(
        min_length=1, max_length=MAX_EDITS, title="Edits, each applied to the result of the previous ones."
    )
    description: str = Field("", title="One line on the purpose.")


class MultiEditFile(BaseModel):
    """Result for one file."""

    path: str
    created: bool
    edits: int
    diff: str
    first_changed_line: int | None


class MultiEditDetails(BaseModel):
    """Structured result of the `multi_edit` tool: the files with their diffs."""

    files: list[MultiEditFile]
    notes: list[str]


def _paths_to_lock(params: MultiEditParams) -> Iterable[str]:
    """List the paths of all edits, to lock them."""
    return {path for path in (params.path, *(edit.path for edit in params.edits)) if path}


@tool(paths=_paths_to_lock)
async def multi_edit(ctx: Context, params: MultiEditParams) -> Result[MultiEditDetails]:
    """Make several edits at once."""
    draft_set = DraftSet(ctx.files)
    edited: dict[str, int] = {}
    notes, there = [], 0
    for number, single in enumerate(params.edits, 1):
        path = single.path or params.path
        if path is None:
            raise InvalidInput(f"Edit {number} has no file.", hint="Set `path` in the edit or in the call.")
        where = f"Nothing was written. Edit {number} of {len(params.edits)} ({path}): "
        draft, said, made = await _apply_edit(draft_set, single, path, where)
        edited[draft.path] = edited.get(draft.path, 0) + made
        there += not made
        notes += [f"Edit {number}:{said}"] if said else []
    if draft_set.is_changed or not there:
        await ctx.files.apply(draft_set.changes(params.description))

    drafts = draft_set.drafts.values()
    details = MultiEditDetails(
        files=[_file_details(draft, edited[draft.path]) for draft in drafts], notes=notes
    )
    head = f"Edits applied: {len(params.edits) - there}, in {', '.join(draft.path for draft in drafts)}."
    return Result("\n".join([head, *notes, draft_set.diff()]), details)


async def _apply_edit(
    drafts: DraftSet, single: SingleEdit, path: str, where: str
) -> tuple[Draft, str, bool]:
    """Apply one edit to its draft; return the draft, a note on the match, and whether anything changed."""
    try:
        facts = None if single.old_string else await drafts.files.facts(path)
        if single.insert_line is None and not single.old_string and (facts is None or facts.bytes):
            return await drafts.create(path, single.new_string), "", True
        draft = await drafts.open(path)
    except NotFound as missing:
        hint = "To create it, let its first edit have an empty old_string."
        raise NotFound(where + missing.message, hint=hint) from None
    except ToolError as failure:
        raise type(failure)(where + failure.message, hint=failure.hint) from None
    if single.insert_line is not None:
        _insert_text(draft, single, where)
        return draft, "", True
    outcome = await draft.replace_old_text(
        drafts.files, single.old_string, single.new_string, every=single.replace_all
    )
    if isinstance(outcome, EditRefused):
        raise refusal_error(outcome, where, has_replace_all=True)
    return draft, match_note(outcome), not isinstance(outcome, AlreadyApplied)


def _insert_text(draft: Draft, single: SingleEdit, where: str) -> None:
    if single.old_string or single.replace_all:
        raise InvalidInput(f"{where}`insert_line` can't replace text.", hint="Leave out old_string.")
    total = lines.count_lines(draft.body)
    if single.insert_line is None or single.insert_line > total + 1:
        raise InvalidInput(f"{where}the file has {total} lines.", hint=f"Insert at 1 to {total + 1}.")
    draft.insert(single.insert_line, single.new_string)


def _file_details(draft: Draft, edits: int) -> MultiEditFile:
    return MultiEditFile(
        path=draft.path,
        created=draft.before is None,
        edits=edits,
        diff=dedent_diff_content(draft.diff()),
        first_changed_line=draft.first_changed_line,
    )
