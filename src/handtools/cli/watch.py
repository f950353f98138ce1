"""CLI command `handtools watch`: a terminal UI to follow agents' calls, answer, cancel and undo them."""

import sys
from typing import Annotated

import typer

from handtools.cli import options
from handtools.cli.terminal import CliCommandError, refuse_agent_shell


def watch(
    session: Annotated[str | None, typer.Option(help="Only this session.")] = None,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Follow agents' calls live; answer, cancel and undo them.

    Run it in another terminal: it shows the calls of every client in this folder. While it is open, agents
    wait for your answer to their approval requests.

    Example: handtools watch --session default
    """
    try:
        from handtools.cli.watch_screen.watch_app import WatchApp
    except ModuleNotFoundError as missing:
        if missing.name != "textual":
            raise
        raise CliCommandError(
            "`handtools watch` needs `textual`.",
            "pip install 'handtools-slim[cli,watch]'; `handtools log --follow` works without it.",
        ) from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CliCommandError("Not a terminal.", "`handtools log --follow` prints calls as they end.")
    refuse_agent_shell()
    from handtools.record.session_feed import SessionFeed

    feed = SessionFeed(workspace)
    try:
        WatchApp(feed, session=session).run()
    finally:
        feed.close()
