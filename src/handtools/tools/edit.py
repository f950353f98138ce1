"""Edit: replace one exact piece of text in one file."""

from pydantic import BaseModel, Field

from handtools.core.changes import Change, ChangeSet
from handtools.core.context import Context
from handtools.core.errors import InvalidInput, ManyMatches, NoMatch, TooLarge, WrongKind
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.text.diffing import first_changed_line, trim_indent, unified
from handtools.text.encoding import Unencodable, decode, displayed, is_binary
from handtools.text.lines import line_at

MAX_BYTES = 50_000_000
LISTED_PLACES = 20


class EditParams(BaseModel):
    """What the model sends."""

    path: str = Field(description="File to edit, relative to the workspace root.")
    old_string: str = Field(min_length=1, description="Text to replace: must occur exactly once.")
    new_string: str = Field(description="Text to put in its place.")
    replace_all: bool = Field(default=False, description="Replace every occurrence.")
    description: str = Field("", description="One line on what this is for.")


class EditDetails(BaseModel):
    """What programs get."""

    path: str
    replaced: int
    diff: str
    first_changed_line: int | None


@tool
async def edit(ctx: Context, params: EditParams) -> Result[EditDetails]:
    """Replace one exact piece of text."""
    before = await ctx.files.read(params.path)
    if is_binary(before):
        raise WrongKind(f"`{params.path}` is a binary file.", hint="Edit text files only.")
    if len(before) > MAX_BYTES:
        raise TooLarge(f"`{params.path}` has {len(before):,} bytes; the limit is {MAX_BYTES:,}.")
    source = decode(before)
    old, new = source.adopt(params.old_string), source.adopt(params.new_string)
    if old == new:
        raise InvalidInput("`old_string` and `new_string` are the same text.")
    places = _places(source.body, old)
    if not places:
        raise NoMatch(f"`old_string` does not occur in {params.path}.", hint="Read the file again.")
    if len(places) > 1 and not params.replace_all:
        lines = ", ".join(str(line_at(source.body, place)) for place in places[:LISTED_PLACES])
        hint = "Add lines around it, or set replace_all."
        raise ManyMatches(f"`old_string` occurs {len(places)} times, on lines {lines}.", hint=hint)

    body = source.body.replace(old, new)
    try:
        after = source.encode(body)
    except Unencodable as failure:
        raise InvalidInput(f"`new_string` does not fit the file's encoding: {failure}.") from failure
    change = Change.of(params.path, before=before, after=after)
    await ctx.files.apply(ChangeSet.of(change, note=params.description))
    details = EditDetails(
        path=params.path,
        replaced=len(places),
        diff=displayed(trim_indent(unified(params.path, source.body, body))),
        first_changed_line=first_changed_line(source.body, body),
    )
    return Result(f"Replaced {details.replaced} in {params.path}.\n{details.diff}", details)


def _places(text: str, old: str) -> list[int]:
    """Every offset, overlapping ones included: two readings are two places."""
    places = []
    at = text.find(old)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + 1)
    return places
