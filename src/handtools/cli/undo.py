"""CLI commands `handtools undo` and `redo`: undo or redo the changes of a call, turn, session or path."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from handtools.cli import completed_values, options
from handtools.cli.open_workspace import WorkspaceJournal, open_toolbox_at
from handtools.cli.results import EXIT_FAILED, exit_code, print_result
from handtools.cli.terminal import (
    CliCommandError,
    print_diff,
    print_remark,
    shown_when_slow,
    stdout_console,
)
from handtools.core.undo import LAST_NAME, PERSON_AGENT_NAME, is_change_number, passed_over_text
from handtools.record.recorded_changes import change_name
from handtools.text.changed_files import ChangedFile, changed_files_text
from handtools.text.git_config import enclosing_git_folder
from handtools.text.visible_text import with_visible_characters

if TYPE_CHECKING:
    from collections.abc import Sequence

    from handtools.core.changes import TouchedPath
    from handtools.core.result import Result

UNDO_VERBS = {"created": "returned", "changed": "restored", "deleted": "removed"}

MAX_UNDONE_PATHS_LISTED = 40
"""If an undo touched more paths than this, only the number of paths in each folder is printed."""

CallIdArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="CHANGE",
        help="Number of a change, or a call's id [default: the last change].",
        autocompletion=completed_values.complete_call_ids,
    ),
]
TurnOption = Annotated[
    str | None, typer.Option(help="A turn of --session or of the last one; `last` is newest.")
]
SessionOption = Annotated[
    str | None,
    typer.Option(
        help="A whole session; `last` is the last agent's.",
        autocompletion=completed_values.complete_sessions,
    ),
]
PathOption = Annotated[
    str | None,
    typer.Option(
        "--path",
        help="The last change to this file.",
        autocompletion=completed_values.complete_changed_paths,
    ),
]
MergeOption = Annotated[bool, typer.Option("--merge", help="Merge with later changes to the same files.")]


class UndoCommandArguments(NamedTuple):
    """The options of `undo` and `redo` that select what to undo; None for those not given."""

    call_id: str | None
    turn: str | None
    session: str | None
    path: str | None


def undo(
    call_id: CallIdArgument = None,
    *,
    turn: TurnOption = None,
    session: SessionOption = None,
    path: PathOption = None,
    version: Annotated[
        int | None, typer.Option(help="With --path: restore this version (see `versions`).")
    ] = None,
    merge: MergeOption = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be undone; change nothing.")
    ] = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Undo the last change, or the one you name.

    A file that changed since then is left alone and listed; --merge undoes as much of it as possible.

    Example: handtools undo --path src/app.py --dry-run
    """
    if version is not None and path is None:
        raise typer.BadParameter("Only valid with --path.", param_hint="--version")
    arguments = UndoCommandArguments(call_id, turn, session, path)
    _revert(workspace, "undo", arguments, version, merge=merge, dry_run=dry_run, as_json=as_json)


def redo(
    call_id: CallIdArgument = None,
    *,
    turn: TurnOption = None,
    session: SessionOption = None,
    path: PathOption = None,
    merge: MergeOption = False,
    as_json: options.JsonOption = False,
    workspace: options.WorkspaceOption = options.CURRENT_FOLDER,
) -> None:
    """Redo the last undone change, or the one you name.

    Example: handtools redo --session last
    """
    arguments = UndoCommandArguments(call_id, turn, session, path)
    _revert(workspace, "redo", arguments, None, merge=merge, as_json=as_json)


def _revert(
    workspace: Path,
    action: str,
    arguments: UndoCommandArguments,
    version: int | None,
    *,
    merge: bool,
    as_json: bool,
    dry_run: bool = False,
) -> None:
    from handtools.core.call import Call

    # yes=True: the user who would be asked for approval has typed this command.
    with open_toolbox_at(workspace, yes=True) as (toolbox, record):
        scope, name = _scope_and_name(record, action, arguments)
        args = {
            "action": action,
            "scope": scope,
            "name": name,
            "merge": merge,
            "dry_run": dry_run,
        }
        call = Call(
            tool="undo",
            args=args | ({} if version is None else {"version": version}),
            agent=PERSON_AGENT_NAME,
        )
        with shown_when_slow("Undoing" if action == "undo" else "Redoing"):
            result = toolbox.call(call)
        kept = result.details.conflicts if result.ok else []
        if as_json or dry_run or not result.ok:
            print_result(result, call.id, record, as_json=as_json)
        else:
            _print_undone(result, record, action, versioned=version is not None)
    raise typer.Exit(EXIT_FAILED if kept else exit_code(result))


def _scope_and_name(
    journal: WorkspaceJournal, action: str, arguments: UndoCommandArguments
) -> tuple[str, str]:
    """Turn the given options into scope and name for the undo tool; without options, the last change.

    Raises `BadParameter` for options that exclude each other, `CliCommandError` for an unknown call.
    """
    name, turn, session, path = arguments
    if sum(word is not None for word in (name, turn or session, path)) > 1:
        raise typer.BadParameter("Give only one of CHANGE, --turn, --session and --path.")
    if path is not None:
        return "path", path
    if turn is not None:
        return "turn", f"{session or LAST_NAME}/{turn}"
    if session is not None:
        return "session", session
    if name is None or name == LAST_NAME:
        return "last", ""
    return "call", change_name(journal, _find_named_call_id(journal, action, name))


def _words_naming(scope: str, name: str) -> tuple[str, ...]:
    """The command-line arguments that name the same changes again."""
    if scope == "call":
        return (name,)
    if scope == "turn":
        session, _, turn = name.rpartition("/")
        return ("--turn", turn, "--session", session)
    return (f"--{scope}", name)


def _find_named_call_id(journal: WorkspaceJournal, action: str, name: str) -> str:
    try:
        return journal.find_call_id(name)
    except CliCommandError as unknown:
        if journal.journal.calls_named(name) or is_change_number(name):
            raise
        step = f"{unknown.step} For a file: `{journal.suggested_command(action, '--path', name)}`."
        raise CliCommandError(str(unknown), step) from None


def _print_undone(
    result: "Result[Any]", journal: WorkspaceJournal, action: str, *, versioned: bool
) -> None:
    from rich.text import Text

    words = _words_naming(result.details.scope, result.details.name)

    print_touched(result.changes.touched if result.changes else ())
    if result.details.diff:
        print_diff(result.details.diff)
    conflicts = result.details.conflicts
    for kept in conflicts[:MAX_UNDONE_PATHS_LISTED]:
        told = with_visible_characters(f"{kept.path}: {kept.reason}")
        stdout_console().print(Text.assemble(("kept     ", "yellow"), told), soft_wrap=True)
    if len(conflicts) > MAX_UNDONE_PATHS_LISTED:
        stdout_console().print(
            f"kept     {len(conflicts) - MAX_UNDONE_PATHS_LISTED:,} more; --json lists them all"
        )
    if not (result.details.restored or conflicts):
        print_remark("Everything is already in that state; nothing was written.")
    if result.details.passed_over:
        print_remark(passed_over_text(result.details.passed_over))
    if any(kept.mergeable for kept in conflicts):
        print_remark(f"To merge instead: {journal.suggested_command(action, *words, '--merge')}")
    elif conflicts:
        print_remark(f"To see earlier versions: {journal.suggested_command('versions', conflicts[0].path)}")
    if result.details.restored:
        # Restoring a version is recorded as a change, so undo reverts it.
        other = "undo" if versioned or action == "redo" else "redo"
        print_remark(f"To {other} this: {journal.suggested_command(other, *words)}")


def print_touched(touched: "Sequence[TouchedPath]") -> None:
    """Print what an undo did to each path, or to each folder if there are many paths."""
    from rich.text import Text

    every = [ChangedFile(UNDO_VERBS[each.action], each.path) for each in touched]
    done = [each for each in every if not enclosing_git_folder(each.path)]
    if git := changed_files_text([each for each in every if enclosing_git_folder(each.path)]):
        stdout_console().print(
            Text.assemble(("restored ", "green"), with_visible_characters(git)), soft_wrap=True
        )
    for verb, path in done if len(done) <= MAX_UNDONE_PATHS_LISTED else ():
        stdout_console().print(
            Text.assemble((f"{verb:<9}", "green"), with_visible_characters(path)), soft_wrap=True
        )
    if len(done) > MAX_UNDONE_PATHS_LISTED:
        told = with_visible_characters(changed_files_text(done))
        stdout_console().print(f"{len(done):,} paths: {told}", soft_wrap=True)
