"""CLI commands `handtools install` and `uninstall`: add our MCP server to an AI client's config, or remove it.

ADR 130.
"""

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


ClientArgument = Annotated[ClientName, typer.Argument(help="The program that shall use the tools.")]
PrintOnlyOption = Annotated[bool, typer.Option("--print", help="Only show what to paste, and where.")]
DisableClientToolsOption = Annotated[
    bool | None,
    typer.Option(
        "--only-ours/--keep-theirs",
        help="Switch the client's own file and shell tools off, or leave them as they are; asked if not said.",
    ),
]
ReplaceOption = Annotated[
    bool, typer.Option("--replace", help="Take the place of an entry that is for another folder.")
]
OWN_TOOLS_NOTICE = "What {title} does with its own file and shell tools is neither confined nor recorded."
UVX_FOLDER = re.compile(r"/archive-v\d+/|/\.cache/uv/")
"""Where uvx keeps what it runs, in whichever cache folder."""
BY_HAND_STEP = "Change it by hand: --print shows what belongs there."


def install(  # noqa: PLR0917
    client: ClientArgument,
    show: PrintOnlyOption = False,
    only_ours: DisableClientToolsOption = None,
    replace: ReplaceOption = False,
    yes: options.YesOption = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Put the MCP server of a folder into a client's configuration.

    The change is shown, and written when you say so. Everything else in the file stays as it is, comments too.

    Example: handtools install claude --only-ours
    """
    from handtools.mcp.clients.client_setup import client_tools_are_disabled, conflicting_entry_folder

    known, folder = _known_client(client), workspace.resolve()
    launch = _launch_command(known, folder)
    if only_ours and not known.own_tools:
        step = f"{known.kept_tools} --keep-theirs goes on without."
        raise CliCommandError(f"handtools can't switch the own tools of {known.title} off.", step)
    if show:
        _show(known, folder, launch, only_ours=bool(only_ours), as_json=as_json)
        return
    with _reading():
        other = conflicting_entry_folder(known, folder, launch)
        if other is not None and not replace:
            what = f"{known.file(folder)} starts handtools for {other}."
            raise CliCommandError(what, f"--replace puts {folder} there instead; nothing was changed.")
        off = client_tools_are_disabled(known, folder) if only_ours is None else only_ours
        record = _install_record()
        changes = _planned_changes(known, folder, launch, record, only_ours=off)
    if not changes:
        print_remark(f"{known.title} is set up already: {known.file(folder)}")
    elif not _confirm_changes(changes, _question(changes), yes=yes, shown=not as_json):
        print_remark("Nothing was changed.")
        return
    if only_ours is None and not off and known.own_tools:
        changes = _offer_own_tools_off(known, folder, launch, record, changes, yes=yes)
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
    """Take the MCP server out of a client's configuration.

    The client's own tools are switched on again. Files are as they were before `install`; what was changed in them
    since stays. `--print` only shows the change.

    Example: handtools uninstall claude --print
    """
    from handtools.mcp.clients.client_setup import conflicting_entry_folder, plan_uninstall

    known, folder = _known_client(client), workspace.resolve()
    launch = _launch_command(known, folder)
    with _reading():
        other = conflicting_entry_folder(known, folder, launch)
        if other is not None and Path(other).is_absolute():
            step = f"Nothing was changed; `handtools uninstall {client.value} -C {other}` takes it out."
            raise CliCommandError(
                f"handtools is in {known.file(folder)} for {other}, not for {folder}.", step
            )
        record = _install_record()
        changes = plan_uninstall(known, folder, launch, record)
    if not changes:
        step = f"Nothing was changed; `handtools install {client.value}` puts it there."
        raise CliCommandError(f"handtools is not in {known.file(folder)}.", step)
    if show:
        if as_json:
            print_json({"client": client.value, "files": {str(each.file): each.after for each in changes}})
        else:
            _print_changes(changes)
        return
    if not _confirm_changes(changes, _question(changes), yes=yes, shown=not as_json):
        print_remark("Nothing was changed.")
        return
    for change in changes:
        _write_change(change, record)
        gone = "held nothing else, and is gone" if change.after is None else "is as it was before"
        print_remark(f"{change.file} {gone}.")
    if as_json:
        print_json({"client": client.value, "changed": [str(change.file) for change in changes]})


def _known_client(name: ClientName) -> "KnownClient":
    from handtools.mcp.clients.client_setup import KNOWN_CLIENTS

    return KNOWN_CLIENTS[name.value]


def _install_record() -> "InstallRecord":
    from handtools.host.home_folders import state_root
    from handtools.mcp.clients.config_edits import InstallRecord

    return InstallRecord(state_root())


def _launch_command(client: "KnownClient", folder: Path) -> "McpServerCommand":
    """The program and arguments with which a client starts our MCP server.

    A project's shared config gets the bare program name, a user's own config its full path, since clients have a
    PATH of their own.
    """
    words = ["mcp", client.folder or str(folder)]
    beside = Path(sys.executable).with_name("handtools")
    found = str(beside) if beside.is_file() else shutil.which("handtools")
    if found is None or UVX_FOLDER.search(found):
        # Run by uvx, out of a folder that may be cleared at any time.
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
        # A file of ours would take the place of what it brings along, and names no model.
        raise CliCommandError(
            f"Continue has no {file} yet.", "Start `cn` once, or write that file, then try again."
        )
    return plan_install(client, folder, launch, record, only_ours=only_ours)


def _offer_own_tools_off(
    client: "KnownClient",
    folder: Path,
    launch: "McpServerCommand",
    record: "InstallRecord",
    changes: "list[PlannedConfigChange]",
    *,
    yes: bool,
) -> "list[PlannedConfigChange]":
    """Ask whether the client's built-in file and shell tools shall be disabled as well.

    Returns the file changes that do so, or the given ones when the person says no or can't be asked.
    """
    from dataclasses import replace

    print_remark(OWN_TOOLS_NOTICE.format(title=client.title))
    if yes or not is_interactive():
        print_remark(f"--only-ours switches them off: handtools install {client.name} --only-ours")
        return changes
    with _reading():
        whole = _planned_changes(client, folder, launch, record, only_ours=True)
    agreed = {change.file: change.after for change in changes}
    more = [replace(change, before=agreed.get(change.file, change.before)) for change in whole]
    shown = [change for change in more if change.before != change.after]
    return whole if _confirm_changes(shown, "Switch them off?", yes=False) else changes


def _confirm_changes(
    changes: "Sequence[PlannedConfigChange]", question: str, *, yes: bool, shown: bool = True
) -> bool:
    """Print the config changes as diffs and ask for confirmation, which `yes` skips.

    Raises `CliCommandError` when nobody can be asked.
    """
    if shown:
        _print_changes(changes)
    if yes:
        return True
    if not is_interactive():
        step = "Add --yes to write this, or --print to see what to paste."
        raise CliCommandError("Nobody can be asked here, and nothing was changed.", step)
    return ask_yes_no(stderr_console(), question)


def _print_changes(changes: "Sequence[PlannedConfigChange]") -> None:
    from handtools.text.diffs.unified_diff import unified_diff

    for change in changes:
        print_diff(unified_diff(str(change.file).lstrip("/"), change.before, change.after))


def _show(
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


def _question(changes: "Sequence[PlannedConfigChange]") -> str:
    """Ask for the files by what becomes of them: those that held nothing but ours are deleted."""
    written = [str(change.file) for change in changes if change.after is not None]
    deleted = [str(change.file) for change in changes if change.after is None]
    verbs = {"write": written, "delete": deleted}
    asked = ", and ".join(f"{verb} {' and '.join(files)}" for verb, files in verbs.items() if files)
    return f"{asked[0].upper()}{asked[1:]}?"


def _print_installed(
    client: "KnownClient", folder: Path, launch: "McpServerCommand", *, only_ours: bool
) -> None:
    whose = (
        "a file that a team can commit" if client.scope == "project" else "your own file, for this machine"
    )
    print_remark(
        f"{client.title} starts handtools for {folder}: {client.file(folder)}, {whose}.", client.after
    )
    if only_ours:
        print_remark(
            f"Its own file and shell tools are off; `handtools uninstall {client.name}` switches them on."
        )
    if client.kept_tools and (only_ours or not client.own_tools):
        print_remark(client.kept_tools)
    if shutil.which(launch[0]) is None:
        print_remark(
            f"{launch[0]} is not on the PATH here: {client.title} finds it only if it is on its own."
        )


def _write_change(change: "PlannedConfigChange", record: "InstallRecord") -> None:
    """Write or delete one config file, by an atomic rename, and update the record that uninstall needs."""
    file, known = change.file, record.find(change.file)
    with _writing(file):
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
def _reading() -> Iterator[None]:
    from handtools.mcp.clients.client_setup import UnreadableClientConfig

    try:
        yield
    except UnreadableClientConfig as problem:
        raise CliCommandError(str(problem), BY_HAND_STEP) from problem
    except (OSError, UnicodeDecodeError) as problem:
        raise CliCommandError(
            f"The configuration can't be read: {problem}.", "Look at it, then try again."
        ) from problem


@contextmanager
def _writing(file: Path) -> Iterator[None]:
    try:
        yield
    except OSError as problem:
        step = "Make it writable, or change it by hand: --print shows what belongs there."
        raise CliCommandError(f"{file} can't be written: {problem.strerror}.", step) from problem
