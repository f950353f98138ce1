"""Tool `attach`: sends workspace files to the user, through the embedding program's `deliver` callback."""

from pydantic import BaseModel, Field

from handtools.core.callbacks import Attachment
from handtools.core.context import Context
from handtools.core.errors import CallbackFailed, Denied, InvalidInput, NotFound, TooLarge, WrongKind
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.text.media_type_sniffing import MediumKind, medium_kind_of_media_type, sniff_media_type

MAX_MB = 50
MAX_FILES = 10


class AttachParams(BaseModel):
    """Arguments of the `attach` tool."""

    paths: list[str] = Field(min_length=1, max_length=MAX_FILES, description="Files to send to the user.")
    title: str = Field("", max_length=200, description="A few words; defaults to the file name.")
    description: str = Field("", max_length=1_000, description="What the user should know.")


class Attached(BaseModel):
    """A delivered file."""

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
    """Send files to the user."""
    assert ctx.callbacks.deliver is not None, "not offered without the callback"
    # Read all files before sending the first, so that nothing is sent if one can't be delivered.
    waiting = await _read_attachments(ctx, params)
    attached: list[Attached] = []
    for one in waiting:
        try:
            receipt = await ctx.callbacks.deliver(one)
        except (CallbackFailed, Denied) as failure:
            raise type(failure)(
                f"{_delivered_rows(attached)}{failure.message}", hint=failure.hint
            ) from failure
        attached.append(_details_of_attachment(one, receipt))
    return Result("\n".join(map(_delivered_row, attached)), AttachDetails(attached=attached))


async def _read_attachments(ctx: Context, params: AttachParams) -> list[Attachment]:
    room, found = MAX_MB << 20, []
    for path in dict.fromkeys(params.paths):
        facts = await ctx.files.facts(path)
        if facts is None:
            raise NotFound(f"`{path}` does not exist.", hint="Find it first; nothing was delivered.")
        if facts.kind != "file":
            raise WrongKind(
                f"`{path}` is not a file.", hint="Pack a folder into an archive; nothing was delivered."
            )
        if facts.bytes > room:
            hint = "Send fewer or smaller files, or an archive; nothing was delivered."
            raise TooLarge(f"With `{path}` the total would exceed {MAX_MB} MB.", hint=hint)
        data = await ctx.files.read(path)
        if not data:
            raise InvalidInput(f"`{path}` is empty.", hint="Nothing was delivered.")
        room -= len(data)
        found.append(_make_attachment(ctx.files.shown_path(path), data, params))
    return found


def _make_attachment(path: str, data: bytes, params: AttachParams) -> Attachment:
    kind, name = sniff_media_type(path, data), _file_name(path)
    return Attachment(
        name=name,
        path=path,
        data=data,
        kind=medium_kind_of_media_type(kind),
        media_type=kind,
        title=params.title or name,
        description=params.description,
    )


def _file_name(path: str) -> str:
    return path.rpartition("/")[2].removeprefix("output:")


def _details_of_attachment(attachment: Attachment, receipt: str) -> Attached:
    return Attached(
        path=attachment.path,
        title=attachment.title,
        kind=attachment.kind,
        media_type=attachment.media_type,
        bytes=len(attachment.data),
        receipt=receipt,
    )


def _delivered_row(attached: Attached) -> str:
    said = f": {attached.receipt}" if attached.receipt else "."
    title = "" if attached.title == _file_name(attached.path) else f' as "{attached.title}"'
    facts = f"{attached.kind}, {attached.media_type}, {attached.bytes:,} bytes"
    return f"Delivered `{attached.path}`{title} ({facts}){said}"


def _delivered_rows(attached: list[Attached]) -> str:
    return "".join(f"{_delivered_row(one)}\n" for one in attached)
