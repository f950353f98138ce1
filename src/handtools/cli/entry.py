"""The first lines of the command: the MCP server is started without loading what only people need."""

import os
import sys
from collections.abc import Sequence


def main() -> None:
    """Run what was typed, unless that needs a folder that is gone."""
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
    """`handtools mcp [FOLDER]` goes by the shortest way, as clients start it."""
    words = with_folder(sys.argv[1:])
    if words[:1] == ["mcp"] and len(words) <= 2 and not any(word.startswith("-") for word in words):
        from handtools.mcp.stdio import serve_folder

        serve_folder(words[1] if len(words) > 1 else ".")
        return
    sys.argv[1:] = words
    try:
        from handtools.cli.main import main as run
    except ModuleNotFoundError as missing:
        if missing.name not in {"typer", "rich"}:
            raise
        sys.exit(f"handtools: the command line needs `{missing.name}`: pip install 'handtools-slim[cli]'")
    run()


def with_folder(words: Sequence[str]) -> list[str]:
    """`-C FOLDER COMMAND …` as the command itself has it: what it says of a folder comes later, and counts."""
    match words:
        case ["-C" | "--workspace", folder, "mcp", *rest]:
            return ["mcp", folder, *rest]
        case ["-C" | "--workspace", folder, command, *rest] if not command.startswith("-"):
            return [command, "-C", folder, *rest]
    return list(words)
