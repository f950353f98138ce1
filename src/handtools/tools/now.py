"""Tool `now`: returns the date and time."""

from datetime import UTC, datetime
from typing import Literal

from pydantic import BaseModel, Field

from handtools.core.context import Context
from handtools.core.result import Result
from handtools.core.tool import tool


class NowParams(BaseModel):
    """Arguments of the `now` tool."""

    zone: Literal["local", "utc"] = Field("local", title="Time zone to use.")


class NowDetails(BaseModel):
    """Structured result of the `now` tool: the time in ISO format and as Unix timestamp."""

    iso: str
    timestamp: float


@tool(effects=())
async def now(ctx: Context, params: NowParams) -> Result[NowDetails]:
    """Return the date and time."""
    moment = ctx.clock()
    if params.zone == "utc":
        moment = datetime.fromtimestamp(moment.timestamp(), UTC)
    iso = moment.isoformat(timespec="seconds")
    return Result(f"{iso} ({moment:%A})", NowDetails(iso=iso, timestamp=moment.timestamp()))
