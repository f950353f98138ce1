"""CLI commands `handtools install` and `uninstall`: add or remove our MCP server in a client's config."""

import re
import shutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from handtools.cli import options
from handtools.cli.terminal import (
    CliCommandError,
    ask_yes_no,
    is_interactive,
    print_diff,
    print_json,
    print_remark,
    print_text,
    stderr_console,
)

if TYPE_CHECKING:
    from handtools.mcp.clients.client_setup import KnownClient, McpServerCommand, PlannedConfigChange
    from handtools.mcp.clients.config_edits import InstallRecord


class ClientName(StrEnum):
    """Names of the AI clients (Claude Code, Cursor, VS Code …) that `handtools install` can set up."""

    claude = "claude"
    claude_desktop = "claude-desktop"
    cursor = "cursor"
    vscode = "vscode"
    zed = "zed"
    codex = "codex"
    goose = "goose"
    gemini = "gemini"
    qwen = "qwen"
    windsurf = "windsurf"
    opencode = "opencode"
    kilo = "kilo"
    crush = "crush"
    continue_ = "continue"
    cline = "cline"
    copilot = "copilot"


ClientArgument = Annotated[ClientName, typer.Argument(help="AI client to set up.")]
PrintOnlyOption = Annotated[bool, typer.Option("--print", help="Show the change; write nothing.")]
DisableClientToolsOption = Annotated[
    bool | None,
    typer.Option(
        "--only-ours/--keep-theirs",
        help="Disable the client's own file and shell tools, or keep them.",
    ),
]
ReplaceOption = Annotated[bool, typer.Option("--replace", help="Replace an entry for another folder.")]
OWN_TOOLS_NOTICE = "Calls of {title}'s own file and shell tools are neither sandboxed nor logged."
UVX_FOLDER = re.compile(r"/archive-v\d+/|/\.cache/uv/")
"""Folders in which uvx caches the programs it runs."""
BY_HAND_STEP = "Edit it by hand: --print shows what to add."


def install(  # noqa: PLR0917
    client: ClientArgument,
    show: PrintOnlyOption = False,
    only_ours: DisableClientToolsOption = None,
    replace: ReplaceOption = False,
    yes: options.YesOption = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Add the MCP server for a folder to a client's configuration.

    Shows the change and asks before writing it. Everything else in the file is kept, including comments.

    Example: handtools install claude --only-ours
    """
    from handtools.mcp.clients.client_setup import client_tools_are_disabled, conflicting_entry_folder

    known, folder = _require_known_client(client), workspace.resolve()
    launch = _launch_command(known, folder)
    if only_ours and not known.own_tools:
        step = f"{known.kept_tools} To keep them, pass --keep-theirs."
        raise CliCommandError(f"handtools can't disable the built-in tools of {known.title}.", step)
    if show:
        _print_config_to_add(known, folder, launch, only_ours=bool(only_ours), as_json=as_json)
        return
    with _convert_read_errors():
        other = conflicting_entry_folder(known, folder, launch)
        if other is not None and not replace:
            what = f"{known.file(folder)} starts handtools for {other}."
            raise CliCommandError(what, f"Nothing was changed. To use {folder} instead, pass --replace.")
        off = client_tools_are_disabled(known, folder) if only_ours is None else only_ours
        record = _open_install_record()
        changes = _planned_changes(known, folder, launch, record, only_ours=off)
    if not changes:
        print_remark(f"{known.title} is already set up: {known.file(folder)}")
    elif not _confirm_changes(changes, _confirmation_question(changes), yes=yes, shown=not as_json):
        print_remark("Nothing was changed.")
        return
    if only_ours is None and not off and known.own_tools:
        changes = _changes_that_also_disable_own_tools(known, folder, launch, record, changes, yes=yes)
    for change in changes:
        _write_change(change, record)
    if as_json:
        print_json({"client": client.value, "changed": [str(change.file) for change in changes]})
        return
    _print_installed(known, folder, launch, only_ours=client_tools_are_disabled(known, folder))


def uninstall(
    client: ClientArgument,
    show: PrintOnlyOption = False,
    yes: options.YesOption = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Remove the MCP server from a client's configuration.

    Enables the client's own tools again. Files are restored to their state before `install`; other changes
    made since then are kept. `--print` only shows the change.

    Example: handtools uninstall claude --print
    """
    from handtools.mcp.clients.client_setup import conflicting_entry_folder, plan_uninstall

    known, folder = _require_known_client(client), workspace.resolve()
    launch = _launch_command(known, folder)
    with _convert_read_errors():
        other = conflicting_entry_folder(known, folder, launch)
        if other is not None and Path(other).is_absolute():
            step = f"Nothing was changed. To remove it: handtools uninstall {client.value} -C {other}"
            raise CliCommandError(
                f"handtools is set up in {known.file(folder)} for {other}, not for {folder}.", step
            )
        record = _open_install_record()
        changes = plan_uninstall(known, folder, launch, record)
    if not changes:
        step = f"Nothing was changed. To set it up: handtools install {client.value}"
        raise CliCommandError(f"handtools is not set up in {known.file(folder)}.", step)
    if show:
        if as_json:
            print_json({"client": client.value, "files": {str(each.file): each.after for each in changes}})
        else:
            _print_changes(changes)
        return
    if not _confirm_changes(changes, _confirmation_question(changes), yes=yes, shown=not as_json):
        print_remark("Nothing was changed.")
        return
    for change in changes:
        _write_change(change, record)
        gone = "was deleted: it had no other contents" if change.after is None else "was restored"
        print_remark(f"{change.file} {gone}.")
    if as_json:
        print_json({"client": client.value, "changed": [str(change.file) for change in changes]})


def _require_known_client(name: ClientName) -> "KnownClient":
    from handtools.mcp.clients.client_setup import KNOWN_CLIENTS

    return KNOWN_CLIENTS[name.value]


def _open_install_record() -> "InstallRecord":
    from handtools.host.home_folders import state_root
    from handtools.mcp.clients.config_edits import InstallRecord

    return InstallRecord(state_root())


def _launch_command(client: "KnownClient", folder: Path) -> "McpServerCommand":
    """The program and arguments with which a client starts our MCP server.

    A project's shared config gets the bare program name. A user's own config gets its full path, because a
    client's PATH may differ.
    """
    words = ["mcp", client.folder or str(folder)]
    beside = Path(sys.executable).with_name("handtools")
    found = str(beside) if beside.is_file() else shutil.which("handtools")
    if found is None or UVX_FOLDER.search(found):
        # Run by uvx, whose cache may be cleared at any time.
        program, words = shutil.which("uvx") or "uvx", ["handtools", *words]
    else:
        program = found
    return (Path(program).name if client.scope == "project" else program), words


def _planned_changes(
    client: "KnownClient",
    folder: Path,
    launch: "McpServerCommand",
    record: "InstallRecord",
    *,
    only_ours: bool,
) -> "list[PlannedConfigChange]":
    from handtools.mcp.clients.client_setup import plan_install

    file = client.file(folder)
    if client.name == "continue" and not file.exists():
        # A new file would replace Continue's default configuration, and it would name no model.
        raise CliCommandError(
            f"Continue has no {file} yet.", "Start `cn` once, or write that file, then try again."
        )
    return plan_install(client, folder, launch, record, only_ours=only_ours)


def _changes_that_also_disable_own_tools(
    client: "KnownClient",
    folder: Path,
    launch: "McpServerCommand",
    record: "InstallRecord",
    changes: "list[PlannedConfigChange]",
    *,
    yes: bool,
) -> "list[PlannedConfigChange]":
    """Ask whether to disable the client's built-in file and shell tools as well.

    Returns the config changes that also disable them, or `changes` if the user declines or can't be asked.
    """
    from dataclasses import replace

    print_remark(OWN_TOOLS_NOTICE.format(title=client.title))
    if yes or not is_interactive():
        print_remark(f"To disable them: handtools install {client.name} --only-ours")
        return changes
    with _convert_read_errors():
        whole = _planned_changes(client, folder, launch, record, only_ours=True)
    agreed = {change.file: change.after for change in changes}
    more = [replace(change, before=agreed.get(change.file, change.before)) for change in whole]
    shown = [change for change in more if change.before != change.after]
    return whole if _confirm_changes(shown, "Disable them?", yes=False) else changes


def _confirm_changes(
    changes: "Sequence[PlannedConfigChange]", question: str, *, yes: bool, shown: bool = True
) -> bool:
    """Print the config changes as diffs and ask for confirmation, which `yes` skips.

    Raises `CliCommandError` if there is no terminal.
    """
    if shown:
        _print_changes(changes)
    if yes:
        return True
    if not is_interactive():
        step = "Add --yes to write this, or --print to see what to paste."
        raise CliCommandError("No terminal to confirm on; nothing was changed.", step)
    return ask_yes_no(stderr_console(), question)


def _print_changes(changes: "Sequence[PlannedConfigChange]") -> None:
    from handtools.text.diffs.unified_diff import unified_diff

    for change in changes:
        print_diff(unified_diff(str(change.file).lstrip("/"), change.before, change.after))


def _print_config_to_add(
    client: "KnownClient", folder: Path, launch: "McpServerCommand", *, only_ours: bool, as_json: bool
) -> None:
    from handtools.mcp.clients.client_setup import install_config_edits
    from handtools.mcp.clients.config_edits import apply_edits

    planned = install_config_edits(client, folder, launch, only_ours=only_ours)
    if as_json:
        files = {str(file): apply_edits(shape, "", edits)[0] for file, (shape, edits) in planned.items()}
        print_json({"client": client.name, "files": files})
        return
    for file, (shape, edits) in planned.items():
        print_remark(f"{file}:")
        print_text(apply_edits(shape, "", edits)[0])


def _confirmation_question(changes: "Sequence[PlannedConfigChange]") -> str:
    """The confirmation question, which lists the files to write and the files to delete."""
    written = [str(change.file) for change in changes if change.after is not None]
    deleted = [str(change.file) for change in changes if change.after is None]
    verbs = {"write": written, "delete": deleted}
    asked = ", and ".join(f"{verb} {' and '.join(files)}" for verb, files in verbs.items() if files)
    return f"{asked[0].upper()}{asked[1:]}?"


def _print_installed(
    client: "KnownClient", folder: Path, launch: "McpServerCommand", *, only_ours: bool
) -> None:
    whose = "which a team can commit" if client.scope == "project" else "your own file on this machine"
    print_remark(
        f"{client.title} starts handtools for {folder}: {client.file(folder)}, {whose}.", client.after
    )
    if only_ours:
        print_remark(
            f"Its own file and shell tools are disabled; `handtools uninstall {client.name}` enables them."
        )
    if client.kept_tools and (only_ours or not client.own_tools):
        print_remark(client.kept_tools)
    if shutil.which(launch[0]) is None:
        print_remark(f"{launch[0]} is not on the PATH here; {client.title} finds it only on its own PATH.")


def _write_change(change: "PlannedConfigChange", record: "InstallRecord") -> None:
    """Write one config file by atomic rename, or delete it, and record what `uninstall` needs."""
    file, known = change.file, record.find(change.file)
    with _convert_write_errors(file):
        if change.after is None:
            file.unlink()
            if known is not None and known.made_folder and not any(file.parent.iterdir()):
                file.parent.rmdir()
        else:
            file.parent.mkdir(parents=True, exist_ok=True)
            target = file.resolve()
            beside = target.with_name(f".{target.name}.handtools")
            beside.write_bytes(change.after.encode())
            if target.exists():
                shutil.copymode(target, beside)
            beside.replace(target)
        record.keep(file, change.installed)


@contextmanager
def _convert_read_errors() -> Iterator[None]:
    from handtools.mcp.clients.client_setup import UnreadableClientConfig

    try:
        yield
    except UnreadableClientConfig as problem:
        raise CliCommandError(str(problem), BY_HAND_STEP) from problem
    except (OSError, UnicodeDecodeError) as problem:
        raise CliCommandError(
            f"Can't read the configuration: {problem}.", "Fix it, then try again."
        ) from problem


@contextmanager
def _convert_write_errors(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        step = "Make it writable, or edit it by hand: --print shows what to add."
        raise CliCommandError(f"Can't write {file}: {problem.strerror}.", step) from problem
