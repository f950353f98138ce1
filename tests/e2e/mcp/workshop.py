"""A server with tools that are easy to watch: `python workshop.py FOLDER [unattended=deny]`.

`python workshop.py remote URL TOKEN [PORT]` serves what another one has on HTTP: on stdio, or on a port.
"""

import json
import sys
import zlib
from dataclasses import replace
from pathlib import Path

import anyio
from pydantic import BaseModel, Field

from handtools import Context, Image, Policy, Result, Toolbox, local_workspace, tool
from handtools.mcp.http_access import token_digest
from handtools.mcp.http_server import HttpConfig, McpHttpApp, TokenGrant, TokenGrants, run_http_server
from handtools.mcp.remote_toolbox import RemoteToolbox
from handtools.mcp.stdio import serve_remote_over_stdio, serve_stdio
from handtools.runtime.policy import DEFAULTS
from handtools.toolbox import CODING


def _chunk(kind: bytes, held: bytes) -> bytes:
    return len(held).to_bytes(4) + kind + held + zlib.crc32(kind + held).to_bytes(4)


PIXEL = b"".join(
    [
        b"\x89PNG\r\n\x1a\n",
        _chunk(b"IHDR", bytes([0, 0, 0, 1, 0, 0, 0, 1, 8, 2, 0, 0, 0])),
        _chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")),
        _chunk(b"IEND", b""),
    ]
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
    with anyio.move_on_after(params.seconds):
        await anyio.Event().wait()
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


def serve(port: int, tokens: dict[str, Path], **options: object) -> None:
    """One HTTP server over several folders; without other names, they are those of the folders."""
    names = {token: options.get("owners", {}).get(token, folder.name) for token, folder in tokens.items()}
    grants = [
        TokenGrant(
            name=names[token], sha256=token_digest(token), workspace=folder, **options.get(names[token], {})
        )
        for token, folder in tokens.items()
    ]
    place = HttpConfig(
        port=port,
        header_seconds=1.0,
        body_seconds=1.0,
        grace=float(options.get("grace", 5.0)),
        stateless=bool(options.get("stateless")),
    )
    boxes = {grant.name: workshop(grant.workspace, excluded=tuple(grant.excluded)) for grant in grants}
    site = McpHttpApp(TokenGrants(grants), place, boxes)
    anyio.run(run_http_server, site)


async def serve_remote(url: str, token: str, port: int) -> None:
    """The tools of another server on a port here, with the same token."""
    grant = TokenGrant(name="there", sha256=token_digest(token), workspace=Path("/nowhere"))
    async with RemoteToolbox(url, token) as toolbox:
        site = McpHttpApp(TokenGrants([grant]), HttpConfig(port=port, grace=5.0), {"there": toolbox})
        await run_http_server(site)


if __name__ == "__main__":
    if sys.argv[1] == "remote":
        url, token, *port = sys.argv[2:]
        if port:
            anyio.run(serve_remote, url, token, int(port[0]))
        else:
            serve_remote_over_stdio(lambda: RemoteToolbox(url, token))
    elif sys.argv[1] == "http":
        plan = json.loads(sys.argv[2])
        serve(plan["port"], {t: Path(f) for t, f in plan["tokens"].items()}, **plan.get("options", {}))
    else:
        root = Path(sys.argv[1])
        serve_stdio(workshop(root, **dict(word.split("=") for word in sys.argv[2:])), root)
