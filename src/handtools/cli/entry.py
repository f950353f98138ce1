"""Entry point of the `handtools` command.

`handtools mcp` starts at once, without importing typer; all else goes to `cli.main`.
"""

import os
import sys
from collections.abc import Sequence


def main() -> None:
    """Run the `handtools` command; exits with a message when the current folder has been deleted."""
    try:
        _run()
    except FileNotFoundError:
        if _is_here():
            raise
        sys.exit("handtools: the folder you are in is gone. Go to another: cd FOLDER")


def _is_here() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _run() -> None:
    """Start the stdio MCP server for a plain `handtools mcp [FOLDER]`, else run the typer command line.

    Exits with a message when typer or rich is not installed.
    """
    words = move_workspace_option(sys.argv[1:])
    if words[:1] == ["mcp"] and len(words) <= 2 and not any(word.startswith("-") for word in words):
        from handtools.mcp.stdio import serve_folder_over_stdio

        serve_folder_over_stdio(words[1] if len(words) > 1 else ".")
        return
    sys.argv[1:] = words
    try:
        from handtools.cli.main import main as run
    except ModuleNotFoundError as missing:
        if missing.name not in {"typer", "rich"}:
            raise
        sys.exit(f"handtools: the command line needs `{missing.name}`: pip install 'handtools-slim[cli]'")
    run()


def move_workspace_option(words: Sequence[str]) -> list[str]:
    """Move a `-C FOLDER` that stands before the command's name to after it, where the command parses it."""
    match words:
        case ["-C" | "--workspace", folder, "mcp", *rest]:
            return ["mcp", folder, *rest]
        case ["-C" | "--workspace", folder, command, *rest] if not command.startswith("-"):
            return [command, "-C", folder, *rest]
    return list(words)
