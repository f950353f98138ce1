"""CLI command `handtools view`: show a workspace's calls live in a browser, to answer and undo them."""

import secrets
import signal
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from handtools.cli import options
from handtools.cli.terminal import CliCommandError, print_json, print_remark, refuse_agent_shell

if TYPE_CHECKING:
    from handtools.cli.view_server import ViewServer


def view(
    *,
    session: Annotated[str | None, typer.Option(help="Only this session.")] = None,
    port: Annotated[
        int, typer.Option(min=0, max=65_535, help="Port to listen on; 0 picks a free one.")
    ] = 0,
    address: Annotated[str, typer.Option(help="Loopback address [default: a random one].")] = "",
    no_browser: Annotated[
        bool, typer.Option("--no-browser", help="Print the link; don't open it.")
    ] = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Follow calls live in a browser; answer and undo them.

    The link works once, in one of your browsers on this machine. If none opens, paste the link into one.
    Ctrl-C stops the server.

    Example: handtools view --session default
    """
    import anyio

    from handtools.cli.open_workspace import WorkspaceJournal
    from handtools.cli.view_server import ViewServer
    from handtools.local_journal import open_local_journal
    from handtools.mcp.http_access import new_token
    from handtools.record.session_feed import SessionFeed

    refuse_agent_shell()
    listening = _listen_on_loopback(address, port)
    host = "{}:{}".format(*listening.getsockname())
    opened = open_local_journal(workspace)
    journal = WorkspaceJournal(workspace, opened.journal, opened.files)
    feed = SessionFeed(workspace)
    folder = workspace.resolve().name
    title = f"Session {session} in {folder}" if session else f"Calls in {folder}"
    token = new_token()
    server = ViewServer(feed, journal, title, host, token, session)
    link = f"http://{host}/?token={token}"
    try:
        if as_json:
            print_json({"url": link})
            sys.stdout.flush()
        else:
            print_remark(f"{title}: {link}", "The link works once. Ctrl-C stops.")
        with nullcontext() if no_browser or as_json else _write_redirect_page(opened.state, link) as page:
            anyio.run(_serve_until_stopped, server, listening, page)
    finally:
        feed.close()
        opened.journal.close()


def _listen_on_loopback(address: str, port: int) -> socket.socket:
    """Listen on a loopback address, a random one if none is given.

    Browsers send cookies to all ports of an address, so a server that an agent runs on 127.0.0.1 would
    receive our cookie.
    """
    import ipaddress

    own = f"127.{1 + secrets.randbelow(254)}.{secrets.randbelow(256)}.{1 + secrets.randbelow(254)}"
    chosen = address or own
    try:
        if not ipaddress.ip_address(chosen).is_loopback or ":" in chosen:
            raise CliCommandError(
                f"{chosen} is not a loopback address.", "Use an address that starts with 127."
            )
        return _open_listening_socket(chosen, port)
    except ValueError:
        raise CliCommandError(
            f"`{chosen}` is not an IP address.", "Use an address that starts with 127."
        ) from None
    except OSError as problem:
        if address or port:
            raise CliCommandError(
                f"Can't listen on {chosen}:{port}: {problem}.", "Choose another --port."
            ) from None
        # Some systems have only one loopback address.
        return _open_listening_socket("127.0.0.1", port)


def _open_listening_socket(address: str, port: int) -> socket.socket:
    listening = socket.socket()
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind((address, port))
        listening.listen()
    except OSError:
        listening.close()
        raise
    return listening


async def _serve_until_stopped(server: "ViewServer", listening: socket.socket, page: Path | None) -> None:
    import anyio
    from anyio import to_thread

    from handtools.host.programs import open_in_browser
    from handtools.mcp.http_access import REQUEST_HEADER_SECONDS, limited_server

    web = limited_server(server, "", 0, knows=server.has_cookie, header_seconds=REQUEST_HEADER_SECONDS)
    async with anyio.create_task_group() as group:
        group.start_soon(_stop_on_signal, web, server)
        if page is not None:
            group.start_soon(to_thread.run_sync, open_in_browser, page)
        await web.serve(sockets=[listening])
        group.cancel_scope.cancel()


@contextmanager
def _write_redirect_page(folder: Path, link: str) -> Iterator[Path]:
    """Write a private file that redirects a browser to the link; deleted at the end.

    The link can't be passed to the browser as an argument, because every user can list process arguments.
    """
    from handtools.cli.html_live_view import forwarding_page

    descriptor, name = tempfile.mkstemp(".html", "view-", folder)
    try:
        with open(descriptor, "w", encoding="utf-8") as file:
            file.write(forwarding_page(link))
        yield Path(name)
    finally:
        Path(name).unlink(missing_ok=True)


async def _stop_on_signal(web: Any, server: "ViewServer") -> None:
    import anyio

    with anyio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
        async for _ in signals:
            server.stopping = web.should_exit = True
