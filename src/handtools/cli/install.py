"""`handtools install` and `uninstall`: put the server into a client's configuration, and take it out again."""

import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli import options
from handtools.cli.screen import Stopped, print_text, remark

if TYPE_CHECKING:
    from handtools.mcp.clients.known import Client, Launch


class ClientName(StrEnum):
    """The clients that are known."""

    claude = "claude"
    claude_desktop = "claude-desktop"
    cursor = "cursor"
    vscode = "vscode"
    zed = "zed"
    codex = "codex"
    goose = "goose"
    gemini = "gemini"
    windsurf = "windsurf"
    opencode = "opencode"


Named = Annotated[ClientName, typer.Argument(help="The program that shall use the tools.")]
Shown = Annotated[bool, typer.Option("--print", help="Only show what would be written, and where.")]


def install(client: Named, show: Shown = False, workspace: options.Workspace = options.HERE) -> None:
    """Put the MCP server of a folder into a client's configuration.

    Everything else in the file stays as it is, comments too; `uninstall` takes out exactly this.
    """
    known, file, text = _opened(client, workspace)
    changed = known.put(text, _launch(workspace))
    if show:
        remark(f"{file}:")
        print_text(changed)
        return
    _write(file, changed)
    remark(f"{known.title} starts handtools for {workspace.resolve()}: {file}", known.after)


def uninstall(client: Named, show: Shown = False, workspace: options.Workspace = options.HERE) -> None:
    """Take the MCP server out of a client's configuration."""
    known, file, text = _opened(client, workspace)
    changed = known.drop(text)
    if changed == text:
        step = f"Nothing was changed; `handtools install {client.value}` puts it there."
        raise Stopped(f"handtools is not in {file}.", step)
    if show:
        remark(f"{file}:")
        print_text(changed)
        return
    if changed.strip() in {"", "{}"}:
        with _writing(file):
            file.unlink()
        remark(f"{file} held nothing else, and is gone.")
        return
    _write(file, changed)
    remark(f"handtools is no longer in {file}.")


def _opened(name: str, workspace: Path) -> "tuple[Client, Path, str]":
    from handtools.mcp.clients.known import CLIENTS

    known = CLIENTS[name]
    file = known.file(workspace.resolve())
    try:
        return known, file, file.read_text("utf-8")
    except FileNotFoundError:
        return known, file, ""
    except (OSError, UnicodeDecodeError) as problem:
        raise Stopped(f"{file} can't be read: {problem}.", "Look at it, then try again.") from problem


def _launch(workspace: Path) -> "Launch":
    """The program by its full path: clients start it with a PATH of their own."""
    folder = str(workspace.resolve())
    beside = Path(sys.executable).with_name("handtools")
    found = str(beside) if beside.is_file() else shutil.which("handtools")
    if found is None or "/uv/archive" in found or "/.cache/uv/" in found:
        # Run by uvx, out of a folder that may be cleared at any time.
        return shutil.which("uvx") or "uvx", ["handtools", "mcp", folder]
    return found, ["mcp", folder]


def _write(file: Path, text: str) -> None:
    """All or nothing: a client never sees half a file."""
    with _writing(file):
        file.parent.mkdir(parents=True, exist_ok=True)
        target = file.resolve()
        beside = target.with_name(f".{target.name}.handtools")
        beside.write_text(text, "utf-8")
        if target.exists():
            shutil.copymode(target, beside)
        beside.replace(target)


@contextmanager
def _writing(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        step = "Make it writable, or change it by hand: --print shows what it is to hold."
        raise Stopped(f"{file} can't be written: {problem.strerror}.", step) from problem
