"""Tool `write`: creates or overwrites a whole file."""

from typing import Literal

from pydantic import BaseModel, Field
from pydantic.json_schema import SkipJsonSchema

from handtools.core.changes import Change, ChangeSet
from handtools.core.context import Context
from handtools.core.errors import (
    AlreadyExists,
    InvalidInput,
    NotFound,
    Stale,
    TooLarge,
    ToolError,
    WrongKind,
)
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.text.diffs.unified_diff import (
    dedent_diff_content,
    diff_without_carriage_returns,
    first_changed_line,
    unified_diff,
)
from handtools.text.encoding import Unencodable, decode, is_binary, without_surrogates
from handtools.text.line_end_settings import (
    is_root_editorconfig,
    line_end_of_editorconfig,
    line_end_of_git_attributes,
)
from handtools.text.lines import convert_line_ends, count_lines, uniform_ending
from handtools.text.truncation import ClippedText, clip_text

MAX_BYTES = 10_000_000
WRITTEN_DIFF_SHOWN_LINES = 60
_MAX_SETTINGS_BYTES = 100_000
_LINE_END_NAMES = {"\r\n": "CRLF", "\r": "CR"}


class WriteParams(BaseModel):
    """Arguments of the `write` tool."""

    path: str = Field(title="File to write, relative to the workspace root.")
    content: str = Field(title="The whole content.")
    # `either` is not in the schema: only dialects use it, for vendors' tools without modes.
    mode: Literal["create", "overwrite"] | SkipJsonSchema[Literal["either"]] = Field(
        "create", title="create: the file must not exist yet. overwrite: it must exist."
    )
    description: str = Field("", title="One line on the purpose.")


class WriteDetails(BaseModel):
    """Structured result of the `write` tool: the path, size and diff."""

    path: str
    created: bool
    bytes: int
    diff: str
    first_changed_line: int | None


@tool
async def write(ctx: Context, params: WriteParams) -> Result[WriteDetails]:
    """Write a whole file."""
    before, unseen = await _replaced_bytes_and_note(ctx, params)
    content, kept = await _with_line_ends(ctx, params, before)
    after = _encoded_content(params.path, content, before)
    if len(after) > MAX_BYTES:
        raise TooLarge(
            f"{len(after):,} bytes exceed the limit of {MAX_BYTES:,}.",
            hint="Write a part, then add the rest with `edit`.",
        )
    if before == after:
        raise InvalidInput(
            f"`{params.path}` already has exactly this content.", hint="There is nothing to do."
        )
    change = Change.of(params.path, before=before, after=after)
    await ctx.files.apply(ChangeSet.of(change, note=params.description))

    path = ctx.files.shown_path(params.path)
    was = None if before is None or is_binary(before) else decode(before).body
    details = WriteDetails(
        path=path,
        created=before is None,
        bytes=len(after),
        diff=without_surrogates(
            dedent_diff_content(diff_without_carriage_returns(unified_diff(path, was, content)))
        ),
        first_changed_line=first_changed_line(was or "", content),
    )
    verb = "Created" if details.created else "Replaced"
    return Result(f"{verb} {path} ({len(after):,} bytes{kept}).{unseen}", details)


async def _replaced_bytes_and_note(ctx: Context, params: WriteParams) -> tuple[bytes | None, str]:
    """Return the bytes to be replaced, and a note if the agent has not read them.

    For a new file, these are None and an empty string.
    """
    facts = await ctx.files.facts(params.path)
    if params.path.endswith("/") or (facts is not None and facts.kind == "folder"):
        hint = "Send the path of a file; missing parent folders are created."
        raise WrongKind(f"`{params.path}` is a folder.", hint=hint)
    if params.mode == "create" or (params.mode == "either" and facts is None):
        if facts is not None:
            hint = "Edit it, or write with mode=overwrite."
            raise AlreadyExists(f"`{params.path}` already exists.", hint=hint)
        return None, ""
    if facts is None:
        raise NotFound(f"`{params.path}` does not exist.", hint="Write it with mode=create.")
    seen = await ctx.files.last_read_bytes(params.path)
    before = await ctx.files.read(params.path)
    if seen is not None and seen != before:
        shown = _diff_since_read(params.path, seen, before)
        if not shown.clipped:
            await ctx.files.mark_shown(params.path, before)
        raise Stale(
            f"`{params.path}` changed since you last saw it.\n{shown.text}",
            hint="Read the file, include its changes and write again."
            if shown.clipped
            else "Include those changes and write again, or edit the file.",
        )
    unseen = "" if seen is not None or not before else _unseen_text_note(before)
    return before, unseen


def _unseen_text_note(before: bytes) -> str:
    what = f"{len(before):,} bytes" if is_binary(before) else f"{count_lines(decode(before).body):,} lines"
    return f" You had not read the {what} that you replaced; `undo` restores them."


def _diff_since_read(path: str, seen: bytes, before: bytes) -> ClippedText:
    """Return the diff of a file that was changed since the agent saw it; empty if it is binary."""
    binary = is_binary(seen) or is_binary(before)
    was, now = ("" if binary else decode(data).body for data in (seen, before))
    diff = without_surrogates(diff_without_carriage_returns(unified_diff(path, was, now)))
    return clip_text(
        diff, max_lines=WRITTEN_DIFF_SHOWN_LINES, max_bytes=WRITTEN_DIFF_SHOWN_LINES * 100, keep="head"
    )


async def _with_line_ends(ctx: Context, params: WriteParams, before: bytes | None) -> tuple[str, str]:
    """Give the content the line endings of the file that it replaces, or that the project sets for a new one.

    Return it with a note if they are not line feeds. Content with carriage returns stays as it is.
    """
    if "\n" not in params.content or "\r" in params.content:
        return params.content, ""
    if before is None:
        end = await _line_end_for_new_file(ctx, ctx.files.shown_path(params.path))
    else:
        end = None if is_binary(before) else uniform_ending(decode(before).body)
    if end in (None, "\n"):
        return params.content, ""
    return convert_line_ends(params.content, end), f", {_LINE_END_NAMES[end]} line endings"


async def _line_end_for_new_file(ctx: Context, path: str) -> str | None:
    """Return the line ending that `.gitattributes` files set for a path, or `.editorconfig` files."""
    by_editorconfig, above_counts = None, True
    folder, _, name = path.rpartition("/")
    while True:
        attributes = await _text_if_there(ctx, f"{folder}/.gitattributes" if folder else ".gitattributes")
        if end := line_end_of_git_attributes(attributes, name):
            return end
        if above_counts:
            settings = await _text_if_there(ctx, f"{folder}/.editorconfig" if folder else ".editorconfig")
            by_editorconfig = by_editorconfig or line_end_of_editorconfig(settings, name)
            above_counts = not is_root_editorconfig(settings)
        if not folder:
            return by_editorconfig
        folder, _, last = folder.rpartition("/")
        name = f"{last}/{name}"


async def _text_if_there(ctx: Context, path: str) -> str:
    try:
        return decode(await ctx.files.read(path, size=_MAX_SETTINGS_BYTES)).body
    except ToolError:
        return ""


def _encoded_content(path: str, content: str, before: bytes | None) -> bytes:
    """Encode the text in the encoding of the file that it replaces; raises if that is not possible."""
    try:
        if before is not None and not is_binary(before):
            source = decode(before)
            # The encoder adds the file's BOM, so drop one in the content.
            return source.encode(content.removeprefix("\ufeff") if source.bom else content)
        return content.encode()
    except (Unencodable, UnicodeEncodeError) as failure:
        hint = "Use characters that the file's encoding supports, or convert the file to UTF-8 first."
        raise InvalidInput(f"The content can't be written to `{path}`: {failure}.", hint=hint) from failure
