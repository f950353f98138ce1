"""CLI command `handtools watch`: a screen that shows agents at work, takes answers and undoes."""

import sys
from typing import Annotated

import typer

from handtools.cli import options
from handtools.cli.terminal import CliCommandError, refuse_agent_shell


def watch(
    session: Annotated[str | None, typer.Option(help="Only this session.")] = None,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Watch agents at work: see calls, answer, cancel, undo.

    It shows every client that works in this folder, from another terminal. While it is open, agents that ask wait
    for your answer.

    Example: handtools watch --session default
    """
    try:
        from handtools.cli.watch_screen.watch_app import WatchApp
    except ModuleNotFoundError as missing:
        if missing.name != "textual":
            raise
        raise CliCommandError(
            "The screen needs `textual`.",
            "pip install 'handtools-slim[cli,watch]'; `handtools log --follow` works without.",
        ) from None
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise CliCommandError("This is no terminal.", "`handtools log --follow` prints calls as they end.")
    refuse_agent_shell()
    from handtools.session_feed import SessionFeed

    feed = SessionFeed(workspace)
    try:
        WatchApp(feed, session=session).run()
    finally:
        feed.close()
