"""`handtools serve`: the tools for clients that come over HTTP."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli import options
from handtools.cli.mcp import PolicyOption, Preset, PresetOption, UnattendedOption
from handtools.cli.screen import Stopped, remark

if TYPE_CHECKING:
    from handtools.mcp.grants import Grants

VARIABLE = "HANDTOOLS_TOKEN"


def serve(
    *,
    http: Annotated[str, typer.Option("--http", metavar="[HOST:]PORT", help="Where to listen.")] = "8765",
    tokens: Annotated[
        Path | None, typer.Option(help="A file of tokens, each with its workspace and policy.")
    ] = None,
    preset: PresetOption = Preset.coding,
    policy: PolicyOption = None,
    unattended: UnattendedOption = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="A name by which clients may call this server.")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="The origin of a web page that may call.")
    ] = None,
    grace: Annotated[float, typer.Option(help="Seconds that running calls get when it is stopped.")] = 30.0,
    stateless: Annotated[
        bool, typer.Option("--stateless", help="Keep no sessions: any replica can answer.")
    ] = False,
    workspace: options.Workspace = options.HERE,
) -> None:
    """Serve the tools over MCP on HTTP.

    Every request needs a bearer token: one from --tokens, or the one in HANDTOOLS_TOKEN, or one that is made
    up now and shown.
    """
    from handtools.mcp.grants import read_grants
    from handtools.mcp.http import Place, serve_http

    host, port = _address(http)
    place = Place(
        host=host,
        port=port,
        names=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()),
        grace=grace,
        stateless=stateless,
    )
    grants = read_grants(tokens) if tokens else _one(workspace, preset, policy, unattended)
    remark(f"Serving {len(grants.all)} workspace(s) on http://{host}:{port}/mcp; Ctrl-C stops.")
    serve_http(grants, place)


def _address(words: str) -> tuple[str, int]:
    host, _, port = words.rpartition(":")
    if not port.isdigit():
        raise Stopped(f"`{words}` is no address.", "Say a port, or HOST:PORT.")
    return host.strip("[]") or "127.0.0.1", int(port)


def _one(workspace: Path, preset: str, policy: Path | None, unattended: str | None) -> "Grants":
    from handtools.mcp.grants import Grant, Grants, digest_of, strong
    from handtools.mcp.http import new_token

    token = os.environ.get(VARIABLE, "")
    if token:
        strong(token, f"The token in {VARIABLE}")
    else:
        token = new_token()
        remark(f"Token for this run: {token}")
    return Grants(
        [
            Grant(
                name="default",
                sha256=digest_of(token),
                workspace=workspace,
                preset=preset,
                policy=policy,
                unattended=unattended,
            )
        ]
    )
