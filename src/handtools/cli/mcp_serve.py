"""CLI commands `handtools mcp` and `serve`: run an MCP server over stdio or over HTTP with tokens."""

import os
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli import options
from handtools.cli.terminal import CliCommandError, print_json, print_remark

if TYPE_CHECKING:
    from handtools.mcp.http_server import TokenGrants


class PresetName(StrEnum):
    """Values of `--preset`: the tool sets that an MCP server can offer."""

    reading = "reading"
    coding = "coding"
    everything = "everything"


class UnattendedVerdict(StrEnum):
    """Values of `--unattended`: what happens to calls that need approval if the client can't ask the user."""

    ask = "ask"
    deny = "deny"
    allow = "allow"


PresetOption = Annotated[
    PresetName | None,
    typer.Option(help="Tool preset [default: from config, or coding]."),
]
UnattendedOption = Annotated[
    UnattendedVerdict | None,
    typer.Option(help="If the client can't ask: ask waits for `approve`."),
]
PolicyOption = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Policy file to use instead of your configuration's."),
]
BlockedToolsOption = Annotated[
    list[str] | None, typer.Option("--block", help="Tool to leave out (repeatable).")
]

SamplingOption = Annotated[
    bool, typer.Option("--sampling", help="Let `edit_agent` use the client's model.")
]


def mcp(
    folders: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FOLDER]...", help="Workspace folders."),
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

    `handtools install CLIENT` adds this command to a client's configuration.

    Example: handtools mcp ~/project --preset reading
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
    http: Annotated[
        str, typer.Option("--http", metavar="[HOST:]PORT", help="Address to listen on.")
    ] = "8765",
    tokens: Annotated[
        Path | None, typer.Option(help="File of tokens, each with a workspace and policy.")
    ] = None,
    preset: PresetOption = None,
    policy: PolicyOption = None,
    unattended: UnattendedOption = None,
    allow_host: Annotated[
        list[str] | None, typer.Option(help="Host name that clients may use (repeatable).")
    ] = None,
    allow_origin: Annotated[
        list[str] | None, typer.Option(help="Origin of a web page that may call (repeatable).")
    ] = None,
    grace: Annotated[float, typer.Option(help="Seconds to let running calls finish on shutdown.")] = 30.0,
    stateless: Annotated[
        bool, typer.Option("--stateless", help="Keep no sessions, so any replica can answer.")
    ] = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Serve the tools over MCP on HTTP.

    Every request needs a bearer token: one from --tokens, or the one in HANDTOOLS_TOKEN. Without either, a
    token is generated and printed.

    Example: handtools serve --http 8765 --preset reading
    """
    from handtools.mcp.http_server import HttpConfig, read_grants, serve_http

    host, port = _parse_address(http)
    http_config = HttpConfig(
        host=host,
        port=port,
        names=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()),
        grace=grace,
        stateless=stateless,
    )
    token = "" if tokens else _token_from_environment_or_new(shown=not as_json)
    grants = (
        read_grants(tokens)
        if tokens
        else _grants_of_single_token(workspace, token, preset, policy, unattended)
    )
    if as_json:
        # Print only a generated token; the user already knows the others.
        made_up = {} if tokens or os.environ.get(TOKEN_VARIABLE) else {"token": token}
        print_json({"url": f"http://{host}:{port}/mcp", "workspaces": len(grants.all), **made_up})
        sys.stdout.flush()
    print_remark(f"Serving {len(grants.all)} workspace(s) on http://{host}:{port}/mcp; Ctrl-C stops.")
    serve_http(grants, http_config)


def _parse_address(words: str) -> tuple[str, int]:
    host, _, port = words.rpartition(":")
    if not port.isdigit():
        raise CliCommandError(f"`{words}` is not a valid address.", "Use PORT or HOST:PORT.")
    return host.strip("[]") or "127.0.0.1", int(port)


def _token_from_environment_or_new(*, shown: bool) -> str:
    """The token from the environment, or a new one."""
    from handtools.mcp.http_access import new_token
    from handtools.mcp.http_server import require_strong_token

    token = os.environ.get(TOKEN_VARIABLE, "")
    if token:
        require_strong_token(token, f"The token in {TOKEN_VARIABLE}")
        return token
    token = new_token()
    if shown:
        print_remark(f"Token for this run: {token}")
    return token


def _grants_of_single_token(
    workspace: Path, token: str, preset: str | None, policy: Path | None, unattended: str | None
) -> "TokenGrants":
    from handtools.mcp.http_access import token_digest
    from handtools.mcp.http_server import TokenGrant, TokenGrants

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
