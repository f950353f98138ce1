"""Tool `patch`: adds, changes, moves and deletes files with a patch, all or nothing."""

from collections.abc import Iterable

from pydantic import BaseModel, Field

from handtools.core.context import Context
from handtools.core.errors import InvalidInput, TooLarge, ToolError
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.text.diffs.unified_diff import count_changed_lines, dedent_diff_content
from handtools.text.patch_model import FilePatch, MalformedPatch, invert_patch
from handtools.tools.editing.drafts import Draft, DraftSet, refusal_error
from handtools.tools.editing.hunk_placement import MAX_HUNK_DRIFT, HunkMisfit, apply_hunks
from handtools.tools.editing.patch_parser import parse_patch

MAX_PATCH_CHARS = 4_000_000
DRIFT_LINES = MAX_HUNK_DRIFT
_SIGNS = {"add": "A", "update": "M", "delete": "D", "move": "R"}


class PatchParams(BaseModel):
    """Arguments of the `patch` tool."""

    patch: str = Field(title="`*** Begin Patch` … `*** End Patch`, or a unified diff.")
    reverse: bool = Field(default=False, title="Apply the patch in reverse, to revert it.")
    description: str = Field("", title="One line on the purpose.")


class PatchedFile(BaseModel):
    """Result for one file."""

    path: str
    action: str
    origin: str | None
    added: int
    removed: int
    first_changed_line: int | None


class PatchDetails(BaseModel):
    """Structured result of the `patch` tool: the patched files with their diffs."""

    files: list[PatchedFile]
    notes: list[str]
    diff: str


def _paths_to_lock(params: PatchParams) -> Iterable[str]:
    """List the paths that the patch names, to lock them; empty if it can't be parsed."""
    try:
        return {path for file in _parse_file_patches(params) for path in file.paths}
    except ToolError:
        return ()


@tool(paths=_paths_to_lock)
async def patch(ctx: Context, params: PatchParams) -> Result[PatchDetails]:
    """Apply a patch."""
    drafts = DraftSet(ctx.files)
    files: list[PatchedFile] = []
    notes: list[str] = []
    there = False
    for file in _parse_file_patches(params):
        try:
            draft, said, had = await _apply_file_patch(drafts, file)
        except ToolError as failure:
            raise type(failure)(f"Nothing was written. {failure.message}", hint=failure.hint) from None
        files.append(_file_details(draft, file))
        notes += [f"{file.path}: {note}." for note in said]
        there = there or had
    if not drafts.is_changed and not there:
        hint = "Mark changed lines with `-` and `+`; a hunk with only context lines locates the next hunk."
        raise InvalidInput("The patch changes nothing.", hint=hint)
    if drafts.is_changed:
        await ctx.files.apply(drafts.changes(params.description))

    rows = [f"{_SIGNS[file.action]} {file.path} (+{file.added} -{file.removed})" for file in files]
    head = f"Files patched: {len(files)}." if drafts.is_changed else "Nothing to do: already applied."
    text = "\n".join([head, *rows, *notes])
    return Result(text, PatchDetails(files=files, notes=notes, diff=dedent_diff_content(drafts.diff())))


def _parse_file_patches(params: PatchParams) -> list[FilePatch]:
    if len(params.patch) > MAX_PATCH_CHARS:
        message = f"The patch has {len(params.patch):,} characters; the limit is {MAX_PATCH_CHARS:,}."
        raise TooLarge(message, hint="Send it in parts.")
    try:
        files = parse_patch(params.patch)
    except MalformedPatch as failure:
        raise InvalidInput(str(failure), hint="Correct the patch and send all of it.") from failure
    if not params.reverse:
        return files
    silent = [file.path for file in files if file.action == "delete" and not file.hunks]
    if silent:
        hint = "Revert the call with `undo` instead."
        raise InvalidInput(f"The patch does not contain the old content of {silent[0]}.", hint=hint)
    return [invert_patch(file) for file in reversed(files)]


async def _apply_file_patch(drafts: DraftSet, file: FilePatch) -> tuple[Draft, tuple[str, ...], bool]:
    """Apply the patch of one file to the drafts.

    Return the draft, notes on inexact matches, and whether part of the patch had been applied already.
    """
    if file.action == "add" and (draft := await _draft_if_added_before(drafts, file)) is not None:
        return draft, ("nothing to do: the file already exists with this content",), True
    if file.action == "add":
        draft = await drafts.create(file.path, "")
    elif file.action == "delete":
        draft = await drafts.remove(file.path)
    elif file.origin is not None:
        draft = await drafts.move(file.origin, file.path, keep=file.keeps_origin)
    else:
        draft = await drafts.open(file.path)
    patched = apply_hunks(draft.body, file.hunks)
    if isinstance(patched, HunkMisfit):
        where = f"{file.origin or file.path}, hunk {patched.hunk} of {len(file.hunks)}: "
        raise refusal_error(patched.refused, where, old="the old text", new="the new text")
    if file.action == "delete" and file.hunks and patched.text:
        raise InvalidInput(f"{file.path} contains more than the patch deletes.", hint="Read it again.")
    draft.put("" if file.action == "delete" else patched.text)
    if file.executable is not None:
        draft.mode = await _mode_after_patch(drafts, draft, executable=file.executable)
    return draft, patched.notes, patched.there > 0


async def _draft_if_added_before(drafts: DraftSet, file: FilePatch) -> Draft | None:
    """Return the draft of an added file if it already exists with the same content, otherwise None."""
    added = apply_hunks("", file.hunks)
    if isinstance(added, HunkMisfit) or await drafts.files.facts(file.path) is None:
        return None
    draft = await Draft.read(drafts.files, file.path, text_only=False)
    return await drafts.open(file.path) if draft.body == added.text != "" else None


async def _mode_after_patch(drafts: DraftSet, draft: Draft, *, executable: bool) -> int | None:
    """Return the file's mode with execute permission for everyone who can read it, or for no one.

    For a new file, None stands for the default mode.
    """
    facts = await drafts.files.facts(draft.origin or draft.path)
    if facts is None:
        return 0o755 if executable else None
    return facts.mode | (facts.mode & 0o444) >> 2 if executable else facts.mode & ~0o111


def _file_details(draft: Draft, file: FilePatch) -> PatchedFile:
    before = "" if file.action == "add" else draft.source_text.body
    added, removed = count_changed_lines(before, draft.body)
    return PatchedFile(
        path=draft.path,
        action="move" if file.origin and not file.keeps_origin else file.action,
        origin=file.origin,
        added=added,
        removed=removed,
        first_changed_line=draft.first_changed_line,
    )
