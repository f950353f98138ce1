"""Read: the lines of one text file, numbered."""

from pydantic import BaseModel, Field

from handtools.core.context import Context
from handtools.core.errors import InvalidInput, NotFound, WrongKind
from handtools.core.ports import FileFacts
from handtools.core.result import Result
from handtools.core.tool import tool
from handtools.text.clipping import clip_line
from handtools.text.encoding import decode, is_binary
from handtools.text.lines import bare, number, split
from handtools.text.paths import near

MAX_LINES = 2_000
MAX_BYTES = 50_000
MAX_LINE_CHARS = 2_000


class ReadParams(BaseModel):
    """What the model sends."""

    path: str = Field(description="File to read, relative to the workspace root.")
    start_line: int | None = Field(None, description="First line, from 1.")
    end_line: int | None = Field(None, description="Last line, included.")
    limit: int | None = Field(None, ge=1, description="At most this many lines.")


class ReadDetails(BaseModel):
    """What programs get."""

    path: str
    start_line: int
    end_line: int
    total_lines: int
    clipped: bool
    encoding: str


@tool(effects=("read",))
async def read(ctx: Context, params: ReadParams) -> Result[ReadDetails]:
    """Read a text file."""
    try:
        data = await ctx.files.read(params.path)
    except NotFound as missing:
        raise await _with_near_names(ctx, params.path, missing) from None
    if is_binary(data):
        hint = "Use a tool that understands its format."
        raise WrongKind(f"`{params.path}` is a binary file of {len(data):,} bytes.", hint=hint)

    source = decode(data)
    lines = split(source.body)
    first, last = _range(params, len(lines))
    shown = _fitting(_clipped(lines[first - 1 : last]))
    end = first + len(shown) - 1

    text = number(shown, first) if shown else "(The file is empty.)"
    if end < len(lines) or first > 1:
        text += f"\n(Showing lines {first}-{end} of {len(lines)} total."
        text += f" Use start_line={end + 1} to continue reading.)" if end < len(lines) else ")"
    details = ReadDetails(
        path=params.path,
        start_line=first,
        end_line=end,
        total_lines=len(lines),
        clipped=end < min(last, len(lines)),
        encoding=source.encoding,
    )
    return Result(text, details)


def _range(params: ReadParams, total: int) -> tuple[int, int]:
    first = max(params.start_line or 1, 1)
    last = total if params.end_line is None else min(params.end_line, total)
    last = min(last, first + min(params.limit or MAX_LINES, MAX_LINES) - 1)
    if first > max(total, 1):
        raise InvalidInput(f"`{params.path}` has {total} lines; start_line={first} is past its end.")
    if params.end_line is not None and params.end_line < first:
        raise InvalidInput(f"end_line={params.end_line} is before start_line={first}.")
    return first, last


def _clipped(lines: list[str]) -> list[str]:
    if max(map(len, lines), default=0) <= MAX_LINE_CHARS:
        return lines
    return [clip_line(bare(line), MAX_LINE_CHARS) if len(line) > MAX_LINE_CHARS else line for line in lines]


def _fitting(lines: list[str]) -> list[str]:
    """As many whole lines as fit the budget, one at least."""
    if len("".join(lines).encode("utf-8", "surrogatepass")) <= MAX_BYTES:
        return lines
    used = 0
    for index, line in enumerate(lines):
        used += len(line.encode("utf-8", "surrogatepass"))
        if used > MAX_BYTES and index:
            return lines[:index]
    return lines


async def _with_near_names(ctx: Context, path: str, missing: NotFound) -> NotFound:
    folder, _, name = path.rpartition("/")
    facts: FileFacts | None = await ctx.files.facts(folder or ".")
    if facts is None or facts.kind != "folder":
        return missing
    names = [entry.path.rpartition("/")[2] for entry in await ctx.files.names(folder or ".")]
    close = [f"{folder}/{found}" if folder else found for found in near(name, names)]
    return NotFound(missing.message, hint=f"Near it: {', '.join(close)}.") if close else missing
