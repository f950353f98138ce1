"""Tool `attach`: gives workspace files to the person, through the embedding program's `deliver` callback.

ADR 96.
"""

from pydantic import BaseModel, Field

from handtools.core.callbacks import Attachment
from handtools.core.context import Context
from handtools.core.errors import CallbackFailed, Denied, InvalidInput, NotFound, TooLarge, WrongKind
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.text.media_type_sniffing import MediumKind, medium_kind_of, sniff_media_type

MAX_MB = 50
MAX_FILES = 10


class AttachParams(BaseModel):
    """What the model sends."""

    paths: list[str] = Field(min_length=1, max_length=MAX_FILES, description="Files to give to the person.")
    title: str = Field(
        "", max_length=200, description="What it is, in a few words; else the name of the file."
    )
    description: str = Field("", max_length=1_000, description="What to know about it.")


class Attached(BaseModel):
    """A file that the person has got."""

    path: str
    title: str
    kind: MediumKind
    media_type: str
    bytes: int
    receipt: str


class AttachDetails(BaseModel):
    """Structured result of the `attach` tool: the delivered files."""

    attached: list[Attached]


@tool(effects=("read", "deliver"), paths=lambda _: (), needs="deliver")
async def attach(ctx: Context, params: AttachParams) -> Result[AttachDetails]:
    """Give files to the person."""
    assert ctx.callbacks.deliver is not None, "not offered without it"
    # All are read before the first leaves: what can't be delivered is found out while nothing has happened.
    waiting = await _attachments(ctx, params)
    attached: list[Attached] = []
    for one in waiting:
        try:
            receipt = await ctx.callbacks.deliver(one)
        except (CallbackFailed, Denied) as failure:
            raise type(failure)(f"{_so_far(attached)}{failure.message}", hint=failure.hint) from failure
        attached.append(_attached(one, receipt))
    return Result("\n".join(map(_row, attached)), AttachDetails(attached=attached))


async def _attachments(ctx: Context, params: AttachParams) -> list[Attachment]:
    room, found = MAX_MB << 20, []
    for path in dict.fromkeys(params.paths):
        facts = await ctx.files.facts(path)
        if facts is None:
            raise NotFound(f"There is no `{path}`.", hint="Find it first; nothing was delivered.")
        if facts.kind != "file":
            raise WrongKind(
                f"`{path}` is no file.", hint="Pack a folder into an archive; nothing was delivered."
            )
        if facts.bytes > room:
            hint = "Give fewer or smaller files, or pack them; nothing was delivered."
            raise TooLarge(f"With `{path}` it would be more than {MAX_MB} MB.", hint=hint)
        data = await ctx.files.read(path)
        if not data:
            raise InvalidInput(f"`{path}` is empty.", hint="Nothing was delivered.")
        room -= len(data)
        found.append(_attachment(ctx.files.shown_path(path), data, params))
    return found


def _attachment(path: str, data: bytes, params: AttachParams) -> Attachment:
    kind, name = sniff_media_type(path, data), _name(path)
    return Attachment(
        name=name,
        path=path,
        data=data,
        kind=medium_kind_of(kind),
        media_type=kind,
        title=params.title or name,
        description=params.description,
    )


def _name(path: str) -> str:
    return path.rpartition("/")[2].removeprefix("output:")


def _attached(one: Attachment, receipt: str) -> Attached:
    return Attached(
        path=one.path,
        title=one.title,
        kind=one.kind,
        media_type=one.media_type,
        bytes=len(one.data),
        receipt=receipt,
    )


def _row(one: Attached) -> str:
    said = f": {one.receipt}" if one.receipt else "."
    title = "" if one.title == _name(one.path) else f' as "{one.title}"'
    return f"Delivered `{one.path}`{title} ({one.kind}, {one.media_type}, {one.bytes:,} bytes){said}"


def _so_far(attached: list[Attached]) -> str:
    return "".join(f"{_row(one)}\n" for one in attached)
