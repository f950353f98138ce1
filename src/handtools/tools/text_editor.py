"""Tool `text_editor`: view, create, replace, insert and undo with Anthropic's text editor interface."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import BaseModel, Field

from handtools.core.changes import ChangeSet
from handtools.core.context import Context
from handtools.core.errors import AlreadyExists, InvalidInput, NothingToUndo, Stale, UsageError
from handtools.core.files import FileFacts
from handtools.core.result import Result
from handtools.core.tool import AnyTool, Tool, tool
from handtools.text import lines
from handtools.text.diffs.unified_diff import dedent_diff_content
from handtools.text.encoding import without_surrogates
from handtools.tools.editing.drafts import Draft, refusal_error
from handtools.tools.editing.edit_outcome import EditRefused
from handtools.tools.editing.non_fuzzy_edits import replace_verbatim

TextEditorEdition = Literal["text_editor_20250124", "text_editor_20250429", "text_editor_20250728"]

TREE_LEVELS = 2
EDIT_CONTEXT_LINES = 4
MAX_DETAILS_CONTENT_BYTES = 1 << 20
"""Largest file in bytes whose content is repeated in the details."""
_HIDDEN_FOLDERS = ("node_modules", "__pycache__")
_HINTS = {"ambiguous": "Add surrounding text to make it unique.", "empty": "To create a file, use create."}
_VIEW_FIRST_HINT = "View it, then use str_replace."


class TextEditorParams(BaseModel):
    """Arguments of the tool in the editions without `undo_edit`."""

    command: Literal["view", "create", "str_replace", "insert"] = Field(description="What to do.")
    path: str = Field(description="File, or folder to view.")
    view_range: list[int] | None = Field(
        None, min_length=2, max_length=2, description="view: first and last line; -1 is the end."
    )
    file_text: str | None = Field(None, description="create: the whole content.")
    old_str: str | None = Field(None, description="str_replace: text to replace, must occur once.")
    new_str: str | None = Field(None, description="str_replace: new text; none deletes it.")
    insert_line: int | None = Field(None, description="insert: after this line; 0 is the top.")
    insert_text: str | None = Field(None, description="insert: the text; `new_str` also works.")


class UndoingTextEditorParams(TextEditorParams):
    """Arguments of the tool in the edition with `undo_edit`."""

    command: Literal["view", "create", "str_replace", "insert", "undo_edit"] = Field(  # type: ignore[assignment]
        description="What to do."
    )


class TextEditorDetails(BaseModel):
    """Structured result of the text editor tool: path, diff and content."""

    command: str
    path: str
    diff: str = ""
    first_changed_line: int | None = None
    changes_made: bool = False
    file_content: str | None = None
    """Content of the file after the command, or the viewed lines; None for folders and very large files."""
    edited_at: datetime | None = None
    """For undo_edit: when the undone edit was made."""
    old_length: int | None = None
    new_length: int | None = None


_EDITIONS: dict[str, tuple[str, type[TextEditorParams]]] = {
    "text_editor_20250124": ("str_replace_editor", UndoingTextEditorParams),
    "text_editor_20250429": ("str_replace_based_edit_tool", TextEditorParams),
    "text_editor_20250728": ("str_replace_based_edit_tool", TextEditorParams),
}


def text_editor(
    edition: TextEditorEdition = "text_editor_20250728", *, max_characters: int | None = None
) -> Tool[Any, TextEditorDetails]:
    """Make the text editor tool of one published edition, under the name that the vendor's models know."""
    if edition not in _EDITIONS:
        raise UsageError(f"Unknown edition {edition!r}. Available: {', '.join(_EDITIONS)}.")
    if max_characters is not None and edition != "text_editor_20250728":
        raise UsageError(f"{edition} does not support max_characters.")

    @tool
    async def text_editor(ctx: Context, params: TextEditorParams) -> Result[TextEditorDetails]:
        """View, create and edit files."""
        if params.command == "view":
            return await _view_result(ctx, params, max_characters)
        if params.command == "create":
            return await _create_file(ctx, params)
        if params.command in ("str_replace", "insert"):
            return await _edit_file(ctx, params)
        return await _undo_edit(ctx, params)

    name, model = _EDITIONS[edition]
    return replace(text_editor, name=name, params=model, vendor_type=edition)


TEXT_EDITORS: dict[str, AnyTool] = {
    made.name: made for made in (text_editor("text_editor_20250124"), text_editor("text_editor_20250728"))
}
"""The newest edition of each name that the vendor's models know."""


async def _view_result(
    ctx: Context, params: TextEditorParams, most: int | None
) -> Result[TextEditorDetails]:
    details = TextEditorDetails(command=params.command, path=params.path)
    facts = await ctx.files.facts(params.path)
    if facts is not None and facts.kind == "folder":
        if params.view_range is not None:
            raise InvalidInput("`view_range` is for files; a folder has no lines.", hint="Leave it out.")
        rows = await _tree_rows(ctx, params.path, facts, TREE_LEVELS)
        head = f"Files and folders up to {TREE_LEVELS} levels deep in {params.path}, hidden ones left out:"
        return Result("\n".join([head, params.path, *rows]), details)
    draft = await Draft.read(ctx.files, params.path)
    rows = lines.split_lines(draft.body)
    first, last = _checked_view_range(params.view_range, len(rows))
    shown = rows[first - 1 : last]
    details.file_content = _content_for_details("".join(shown))
    text = lines.render_numbered_lines(shown, first) if rows else ""
    cut = most is not None and len(text) > most
    seen = [] if cut else None if len(shown) == len(rows) else [(first, last)]
    await ctx.files.mark_shown(params.path, draft.before or b"", seen)
    if most is not None and cut:
        note = f"\n(Cut after {most:,} of {len(text):,} characters: use `view_range` for the rest.)"
        text = text[:most] + note
    return Result(f"Here is {params.path} with line numbers:\n{text}\n", details)


async def _tree_rows(ctx: Context, shown: str, folder_facts: FileFacts, levels: int) -> list[str]:
    rows = []
    for facts in await ctx.files.names(folder_facts.path):
        name = facts.path.rpartition("/")[2]
        if name.startswith(".") or name in _HIDDEN_FOLDERS:
            continue
        path = f"{shown.rstrip('/')}/{name}"
        rows.append(f"{path}/" if facts.kind == "folder" else path)
        if facts.kind == "folder" and levels > 1:
            rows += await _tree_rows(ctx, path, facts, levels - 1)
    return rows


def _checked_view_range(given: list[int] | None, total: int) -> tuple[int, int]:
    if given is None:
        return 1, total
    first, last = given
    if not 1 <= first <= max(total, 1):
        raise InvalidInput(f"Invalid `view_range` {given}.", hint=f"Start in [1, {max(total, 1)}].")
    if last != -1 and not first <= last <= total:
        raise InvalidInput(f"Invalid `view_range` {given}.", hint=f"End at -1 or in [{first}, {total}].")
    return first, total if last == -1 else last


async def _create_file(ctx: Context, params: TextEditorParams) -> Result[TextEditorDetails]:
    if params.file_text is None:
        raise InvalidInput("Parameter `file_text` is required for command: create.", hint="Send it too.")
    if await ctx.files.facts(params.path) is not None:
        message = f"File already exists at: {params.path}. `create` does not overwrite."
        raise AlreadyExists(message, hint="Use str_replace or insert.")
    return await _apply_draft(
        ctx, params, Draft.for_new_file(params.path, params.file_text), "File created at"
    )


async def _edit_file(ctx: Context, params: TextEditorParams) -> Result[TextEditorDetails]:
    draft = await Draft.read(ctx.files, params.path)
    _insert_text(draft, params) if params.command == "insert" else _replace_text(draft, params)
    return await _apply_draft(ctx, params, draft, "Edited")


def _replace_text(draft: Draft, params: TextEditorParams) -> None:
    if params.old_str is None:
        raise InvalidInput("Parameter `old_str` is required for command: str_replace.", hint="Send it too.")
    outcome = replace_verbatim(draft.body, params.old_str, params.new_str or "")
    if isinstance(outcome, EditRefused):
        outcome = replace(outcome, hint=_HINTS.get(outcome.code, outcome.hint))
        raise refusal_error(outcome, "No replacement was performed. ", old="old_str", new="new_str")
    draft.put(outcome.text)


def _insert_text(draft: Draft, params: TextEditorParams) -> None:
    text = params.new_str if params.insert_text is None else params.insert_text
    if params.insert_line is None or text is None:
        message = "Parameters `insert_line` and `insert_text` are required for command: insert."
        raise InvalidInput(message, hint="Send both.")
    total = lines.count_lines(draft.body)
    if not 0 <= params.insert_line <= total:
        raise InvalidInput(f"Invalid `insert_line` {params.insert_line}.", hint=f"Stay in [0, {total}].")
    draft.insert(params.insert_line + 1, text)


async def _undo_edit(ctx: Context, params: TextEditorParams) -> Result[TextEditorDetails]:
    try:
        undone = await ctx.history.undo("path", params.path)
    except NothingToUndo:
        raise NothingToUndo(f"No edit history found for {params.path}.", hint=_VIEW_FIRST_HINT) from None
    if undone.conflicts:
        raise Stale(f"{params.path} was not restored: {undone.conflicts[0].reason}", hint=_VIEW_FIRST_HINT)
    at = None if undone.changed_at is None else datetime.fromtimestamp(undone.changed_at, UTC)
    details = TextEditorDetails(command=params.command, path=params.path, changes_made=True, edited_at=at)
    when = f" It was made at {at:%Y-%m-%d %H:%M:%S} UTC." if at else ""
    if await ctx.files.facts(params.path) is None:
        return Result(f"Last edit to {params.path} undone: it had created the file.{when}", details)
    body = (await Draft.read(ctx.files, params.path)).body
    details.file_content = _content_for_details(body)
    rows = lines.render_numbered_lines(lines.split_lines(body), 1)
    return Result(f"Last edit to {params.path} undone.{when} With line numbers:\n{rows}\n", details)


async def _apply_draft(
    ctx: Context, params: TextEditorParams, draft: Draft, verb: str
) -> Result[TextEditorDetails]:
    await ctx.files.apply(ChangeSet.of(draft.change()))
    line = draft.first_changed_line
    text = f"{verb}: {params.path}"
    if params.command != "create" and line is not None:
        rows, first = lines.split_lines(draft.body), max(line - EDIT_CONTEXT_LINES, 1)
        height = draft.diff().count("\n+")
        shown = lines.render_numbered_lines(rows[first - 1 : line + height + EDIT_CONTEXT_LINES - 1], first)
        text = f"{text}\nThe lines around the change:\n{shown}\n"
    new = params.file_text if params.command == "create" else params.insert_text or params.new_str
    details = TextEditorDetails(
        command=params.command,
        path=params.path,
        diff=dedent_diff_content(draft.diff()),
        first_changed_line=line,
        changes_made=True,
        file_content=_content_for_details(draft.body),
        old_length=len(params.old_str or ""),
        new_length=len(new or ""),
    )
    return Result(text, details)


def _content_for_details(body: str) -> str | None:
    return without_surrogates(body) if len(body) <= MAX_DETAILS_CONTENT_BYTES else None
