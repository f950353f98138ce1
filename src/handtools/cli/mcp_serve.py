"""CLI commands `handtools mcp` and `serve`: run the MCP server over stdio, or over HTTP with bearer tokens."""

import os
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli import options
from handtools.cli.terminal import CliCommandError, print_remark

if TYPE_CHECKING:
    from handtools.mcp.http_server import TokenGrants


class PresetName(StrEnum):
    """Values of `--preset`: the sets of tools that an MCP server can offer."""

    reading = "reading"
    coding = "coding"
    everything = "everything"


class UnattendedVerdict(StrEnum):
    """Values of `--unattended`: what happens to a call that needs approval when the client can't ask anyone."""

    ask = "ask"
    deny = "deny"
    allow = "allow"


PresetOption = Annotated[
    PresetName | None,
    typer.Option(help="Which tools are offered, else those of the configuration: coding."),
]
UnattendedOption = Annotated[
    UnattendedVerdict | None,
    typer.Option(help="When the client can't ask: ask leaves the call to `handtools approve`."),
]
PolicyOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="What may be done, instead of what your configuration says."),
]
BlockedToolsOption = Annotated[
    list[str] | None, typer.Option("--block", help="A tool that is never offered.")
]

SamplingOption = Annotated[
    bool, typer.Option("--sampling", help="Let `edit_agent` use a model that the client lends.")
]


def mcp(
    folders: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FOLDER]...", help="The folder the tools work in, or several."),
    ] = None,
    *,
    preset: PresetOption = None,
    policy: PolicyOption = None,
    unattended: UnattendedOption = None,
    block: BlockedToolsOption = None,
    runner: options.RunnerOption = "",
    sampling: SamplingOption = False,
) -> None:
    """Serve the tools over MCP on stdin and stdout.

    This is what `handtools install CLIENT` puts into a client's configuration.
    """
    from handtools.mcp.stdio import serve_folders_over_stdio

    serve_folders_over_stdio(
        folders or ["."],
        preset=preset,
        policy=policy,
        unattended=unattended,
        block=block or (),
        runner=runner,
        sampling=sampling,
    )


TOKEN_VARIABLE = "HANDTOOLS_TOKEN"  # noqa: S105


def serve(
    *,
    http: Annotated[str, typer.Option("--http", metavar="[HOST:]PORT", help="Where to listen.")] = "8765",
    tokens: Annotated[
        Path | None, typer.Option(help="A file of tokens, each with its workspace and policy.")
    ] = None,
    preset: PresetOption = None,
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
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Serve the tools over MCP on HTTP.

    Every request needs a bearer token: one from --tokens, or the one in HANDTOOLS_TOKEN, or one that is made
    up now and shown.
    """
    from handtools.mcp.http_server import HttpConfig, read_grants, serve_http

    host, port = _parse_address(http)
    place = HttpConfig(
        host=host,
        port=port,
        names=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()),
        grace=grace,
        stateless=stateless,
    )
    grants = read_grants(tokens) if tokens else _single_grant(workspace, preset, policy, unattended)
    print_remark(f"Serving {len(grants.all)} workspace(s) on http://{host}:{port}/mcp; Ctrl-C stops.")
    serve_http(grants, place)


def _parse_address(words: str) -> tuple[str, int]:
    host, _, port = words.rpartition(":")
    if not port.isdigit():
        raise CliCommandError(f"`{words}` is no address.", "Say a port, or HOST:PORT.")
    return host.strip("[]") or "127.0.0.1", int(port)


def _single_grant(
    workspace: Path, preset: str | None, policy: Path | None, unattended: str | None
) -> "TokenGrants":
    from handtools.mcp.http_access import new_token, token_digest
    from handtools.mcp.http_server import TokenGrant, TokenGrants, require_strong_token

    token = os.environ.get(TOKEN_VARIABLE, "")
    if token:
        require_strong_token(token, f"The token in {TOKEN_VARIABLE}")
    else:
        token = new_token()
        print_remark(f"Token for this run: {token}")
    return TokenGrants(
        [
            TokenGrant(
                name="default",
                sha256=token_digest(token),
                workspace=workspace,
                preset=preset,
                policy=policy,
                unattended=unattended,
            )
        ]
    )
