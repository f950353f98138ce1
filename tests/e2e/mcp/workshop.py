"""A server with tools that are easy to watch: `python workshop.py FOLDER [unattended=deny]`."""

import sys
from dataclasses import replace
from pathlib import Path

import anyio
from pydantic import BaseModel, Field

from handtools import Context, Image, Policy, Result, Toolbox, local_workspace, tool
from handtools.mcp.stdio import serve_stdio
from handtools.runtime.policy import DEFAULTS
from handtools.toolbox import CODING

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c63f8ffff3f0005fe02fe"
    "a7356b810000000049454e44ae426082"
)


class Nothing(BaseModel):
    """No parameters."""


class Marked(BaseModel):
    path: str = Field(description="Where a line is added for every time the tool really runs.")
    seconds: float = Field(0.0, description="How long it then takes.")


class Many(BaseModel):
    steps: int = Field(3, description="How often it reports.")


class Large(BaseModel):
    bytes: int = Field(1_000_000, description="How much it says.")


class Odd(BaseModel):
    said: str


@tool(effects=("read",))
async def noop(ctx: Context, params: Nothing) -> Result[Nothing]:
    """Do nothing."""
    return Result("Nothing was done.", Nothing())


@tool(effects=("read",), paths=lambda params: [])
async def mark(ctx: Context, params: Marked) -> Result[Nothing]:
    """Leave a mark, then take a while."""
    with Path(params.path).open("a") as file:
        file.write("ran\n")
    await anyio.sleep(params.seconds)
    return Result("marked", Nothing())


@tool(effects=("read",))
async def steps(ctx: Context, params: Many) -> Result[Nothing]:
    """Report progress, the last of it just before the end."""
    for number in range(params.steps):
        ctx.progress(f"step {number}")
    return Result("all steps done", Nothing())


@tool(effects=("read",))
async def picture(ctx: Context, params: Nothing) -> Result[Nothing]:
    """Show a picture."""
    return Result(Image(PIXEL, "image/png"), Nothing())


@tool(effects=("read",))
async def large(ctx: Context, params: Large) -> Result[Nothing]:
    """Say a lot."""
    line = "0123456789" * 9 + "\n"
    return Result(line * (params.bytes // len(line)), Nothing())


@tool(effects=("read",))
async def broken(ctx: Context, params: Nothing) -> Result[Nothing]:
    """Fail as a tool with a bug fails."""
    raise RuntimeError("a bug in a tool")


@tool(effects=("read",))
async def odd(ctx: Context, params: Nothing) -> Result[Odd]:
    """Say what no JSON can carry."""
    return Result("lone \udce9 surrogate", Odd(said="lone \udce9 surrogate"))


WATCHED = (noop, mark, steps, picture, large, broken, odd)


def workshop(folder: Path, **policy: object) -> Toolbox:
    """The watched tools beside the coding ones."""
    return Toolbox(
        [*CODING, *WATCHED],
        workspace=local_workspace(folder),
        policy=replace(Policy(defaults=DEFAULTS | {"run": "allow"}), **policy),
    )


if __name__ == "__main__":
    root = Path(sys.argv[1])
    serve_stdio(workshop(root, **dict(word.split("=") for word in sys.argv[2:])), root)
