"""Entry point of the `handtools` command.

`handtools mcp` starts without importing typer, to be fast; all other commands go to `cli.main`.
"""

import errno
import gc
import os
import sys
from collections.abc import Sequence

_WORKSPACE_OPTIONS = ("-C", "--workspace")


def main() -> None:
    """Run the `handtools` command.

    Exits with a message if the current folder was deleted or too many files are open.
    """
    try:
        _run()
    except FileNotFoundError:
        if _has_current_folder():
            raise
        sys.exit("handtools: the current folder was deleted. Change to another: cd FOLDER")
    except OSError as refused:
        if refused.errno not in {errno.EMFILE, errno.ENFILE}:
            raise
        sys.exit("handtools: too many open files. Raise the limit: ulimit -n 1024")


def _has_current_folder() -> bool:
    try:
        os.getcwd()
    except OSError:
        return False
    return True


def _run() -> None:
    """Start the stdio MCP server for `handtools mcp [FOLDER …]` without options, otherwise the typer CLI.

    Exits with a message if typer or rich is not installed.
    """
    if sys.argv[1:] == ["--version"]:
        from handtools import __version__
        from handtools.cli.terminal import print_text

        print_text(f"handtools {__version__}")
        return
    words = move_workspace_option(join_workspace_options(sys.argv[1:]))
    if words[:1] == ["mcp"] and not any(word.startswith("-") for word in words):
        from handtools.mcp.stdio import serve_folders_over_stdio

        serve_folders_over_stdio(words[1:] or ["."])
        return
    sys.argv[1:] = words
    # Scanning for garbage while modules are imported takes up to a third of a short command's time.
    gc.set_threshold(100_000)
    try:
        from handtools.cli.main import main as run
    except ModuleNotFoundError as missing:
        if missing.name not in {"typer", "rich"}:
            raise
        sys.exit(f"handtools: the command line needs `{missing.name}`: pip install 'handtools-slim[cli]'")
    run()


def join_workspace_options(words: Sequence[str]) -> list[str]:
    """Replace several `-C FOLDER` options with one that names the combined workspace of their folders.

    Options after the command's name override those before it. The new option comes first. For `mcp`, which
    takes folders as arguments, even a single option is moved there.
    """
    before: list[str] = []
    after: list[str] = []
    rest: list[str] = []
    waiting = list(words)
    while waiting:
        word = waiting.pop(0)
        folders = after if rest else before
        if word == "--":
            rest += [word, *waiting]
            break
        if word in _WORKSPACE_OPTIONS and waiting:
            folders.append(waiting.pop(0))
        elif word.startswith("--workspace="):
            folders.append(word.removeprefix("--workspace="))
        else:
            rest.append(word)
    named = after or before
    if len(before + after) < 2 and (not named or rest[:1] != ["mcp"]):
        return list(words)
    return ["-C", _combined_workspace_path(named), *rest]


def _combined_workspace_path(folders: list[str]) -> str:
    from handtools.core.errors import HandtoolsError
    from handtools.host.workspace_folders import combined_workspace

    try:
        return str(combined_workspace([os.path.expanduser(folder) for folder in folders]))
    except HandtoolsError as problem:
        sys.exit(f"handtools: {problem}")


def move_workspace_option(words: Sequence[str]) -> list[str]:
    """Move a leading `-C FOLDER` to after the command's name, where the command parses it."""
    match words:
        case ["-C" | "--workspace", folder, "mcp", *rest]:
            return ["mcp", folder, *rest]
        case ["-C" | "--workspace", folder, command, *rest] if not command.startswith("-"):
            return [command, "-C", folder, *rest]
    return list(words)
