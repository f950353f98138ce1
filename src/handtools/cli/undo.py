"""`handtools undo` and `redo`: take changes back, and bring them back again."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from handtools.cli import options
from handtools.cli.opening import Record, toolbox_at
from handtools.cli.outcome import FAILED, exit_code, present
from handtools.cli.screen import Stopped, out, print_json, remark
from handtools.text.visible import visible

if TYPE_CHECKING:
    from handtools.core.history import UndoScope
    from handtools.core.result import Result
    from handtools.runtime.journal.calls import Author

PERSON = "person"
"""The agent under which the log shows what people do themselves."""
LAST = "last"
VERBS = {"created": "returned", "changed": "restored", "deleted": "removed"}

Name = Annotated[
    str | None,
    typer.Argument(metavar="ID", help="A call id or the start of one; else the newest change."),
]
Turn = Annotated[
    str | None, typer.Option(help="A turn (of --session, or of the newest change's); `last` is the newest.")
]
Session = Annotated[str | None, typer.Option(help="A whole session; `last` is the newest.")]
PathName = Annotated[str | None, typer.Option("--path", help="The last change of this file.")]
Merge = Annotated[bool, typer.Option("--merge", help="Merge where a file changed since.")]


class Given(NamedTuple):
    """What a person named; None where they did not."""

    call_id: str | None
    turn: str | None
    session: str | None
    path: str | None


@dataclass(frozen=True, slots=True)
class Words:
    """What to take back, as the undo tool is told and as a person repeats it."""

    scope: "UndoScope"
    name: str
    typed: tuple[str, ...]


def undo(
    call_id: Name = None,
    *,
    turn: Turn = None,
    session: Session = None,
    path: PathName = None,
    version: Annotated[
        int | None, typer.Option(help="With --path: back to this version; `handtools versions` lists them.")
    ] = None,
    merge: Merge = False,
    as_json: options.AsJson = False,
    workspace: options.Workspace = options.HERE,
) -> None:
    """Take back the newest change, or what you name.

    A file that changed since is kept as it is, and named; --merge takes back what it can of it.
    """
    if version is not None and path is None:
        raise typer.BadParameter("It belongs to --path.", param_hint="--version")
    given = Given(call_id, turn, session, path)
    _revert(workspace, "undo", given, version, merge=merge, as_json=as_json)


def redo(
    call_id: Name = None,
    *,
    turn: Turn = None,
    session: Session = None,
    path: PathName = None,
    merge: Merge = False,
    as_json: options.AsJson = False,
    workspace: options.Workspace = options.HERE,
) -> None:
    """Bring back what the newest undo took, or what you name."""
    given = Given(call_id, turn, session, path)
    _revert(workspace, "redo", given, None, merge=merge, as_json=as_json)


def _revert(
    workspace: Path,
    action: str,
    given: Given,
    version: int | None,
    *,
    merge: bool,
    as_json: bool,
) -> None:
    from handtools.core.call import Call

    # The person who types this is the one who would be asked.
    with toolbox_at(workspace, yes=True) as (toolbox, record):
        words = _words(record, action, given)
        args = {"action": action, "scope": words.scope, "name": words.name, "merge": merge}
        call = Call(
            tool="undo", args=args | ({} if version is None else {"version": version}), agent=PERSON
        )
        result = toolbox.call(call)
        kept = result.details.conflicts if result.ok else []
        if as_json or not result.ok:
            _print_plain(result, call.id, record, words, as_json=as_json)
        else:
            _tell(result, record, action, words, versioned=version is not None)
    raise typer.Exit(FAILED if kept else exit_code(result))


def _words(record: Record, action: str, given: Given) -> Words:
    """One scope from what was typed; the newest change when nothing was."""
    name, turn, session, path = given
    if sum(word is not None for word in (name, turn or session, path)) > 1:
        raise typer.BadParameter("Name one thing: an ID, --turn, --session or --path.")
    if path is not None:
        return Words("path", path, ("--path", path))
    if name is not None:
        call_id = _call_named(record, action, name)
        return Words("call", call_id, (record.calls.short(call_id),))
    newest = record.calls.newest_change() if action == "undo" else record.calls.newest_undone()
    if turn is None and session not in {None, LAST}:
        return Words("session", str(session), ("--session", str(session)))
    if newest is None:
        step = f"`{record.step('log')}` lists the calls."
        raise Stopped(f"There is no change to {action}.", step)
    return _newest(record, newest, turn, session)


def _newest(record: Record, newest: "Author", turn: str | None, session: str | None) -> Words:
    """The words for the newest change: its call, its turn or its session."""
    within = newest.session if session in {None, LAST} else str(session)
    if turn is not None:
        turn = newest.turn if turn == LAST else turn
        return Words("turn", f"{within}/{turn}", ("--turn", turn, "--session", within))
    if session is not None:
        return Words("session", within, ("--session", within))
    return Words("call", newest.call_id, (record.calls.short(newest.call_id),))


def _call_named(record: Record, action: str, name: str) -> str:
    try:
        return record.named(name)
    except Stopped as unknown:
        if record.calls.starting(name):
            raise
        step = f"{unknown.step} For a file: `{record.step(action, '--path', name)}`."
        raise Stopped(str(unknown), step) from None


def _tell(result: "Result[Any]", record: Record, action: str, words: Words, *, versioned: bool) -> None:
    from rich.text import Text

    for touched in result.changes.touched if result.changes else ():
        verb = VERBS[touched.action]
        out().print(Text.assemble((f"{verb:<9}", "green"), visible(touched.path)), soft_wrap=True)
    conflicts = result.details.conflicts
    for kept in conflicts:
        told = visible(f"{kept.path}: {kept.reason}")
        out().print(Text.assemble(("kept     ", "yellow"), told), soft_wrap=True)
    if not (result.details.restored or conflicts):
        remark("Everything was so already; nothing was written.")
    if any(kept.mergeable for kept in conflicts):
        remark(f"To merge instead: {record.step(action, *words.typed, '--merge')}")
    elif conflicts:
        remark(f"To see earlier versions: {record.step('versions', conflicts[0].path)}")
    if result.details.restored:
        # A restored version is a change of its own: undo takes it back.
        other = "undo" if versioned or action == "redo" else "redo"
        remark(f"To {other} this: {record.step(other, *words.typed)}")


def _print_plain(
    result: "Result[Any]", call_id: str, record: Record, words: Words, *, as_json: bool
) -> None:
    from handtools.core.wire import result_to_json

    if not as_json:
        present(result, call_id, record, as_json=False)
        return
    about = {"call_id": call_id, "scope": words.scope, "name": words.name}
    print_json(about | result_to_json(result))
