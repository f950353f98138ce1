"""Print a call's result in the terminal with a next command, and map its status to an exit code."""

from typing import TYPE_CHECKING, Any

from handtools.cli.terminal import (
    coloured_diff,
    pass_on_text,
    print_failure,
    print_json,
    print_pending_call,
    print_remark,
    print_text,
    stdout_console,
)
from handtools.text.visible_text import with_visible_characters

if TYPE_CHECKING:
    from handtools.cli.open_workspace import WorkspaceJournal
    from handtools.cli.streamed_output import CommandOutputPrinter
    from handtools.core.changes import RecordedChanges
    from handtools.core.result import Result

EXIT_FAILED, EXIT_PENDING = 1, 3


def exit_code(result: "Result[Any]") -> int:
    """The exit code for a result, by its status in the log: 0 ok, 3 waiting for approval, otherwise 1."""
    from handtools.core.result import logged_status

    return {"ok": 0, "pending": EXIT_PENDING}.get(logged_status(result)[0], EXIT_FAILED)


def print_result(
    result: "Result[Any]",
    call_id: str,
    journal: "WorkspaceJournal",
    *,
    as_json: bool,
    streamed: "CommandOutputPrinter | None" = None,
) -> None:
    """Print a call's result, failure or pending approval as text or JSON, with the command to run next.

    If part of the output was `streamed` already, only the rest is printed.
    """
    short = journal.calls.short(call_id)
    if as_json:
        _print_json_result(result, call_id, short, journal)
    elif result.status == "pending":
        _print_pending(result, short, journal)
    elif result.ok:
        print_content(result, streamed)
        if result.changes:
            print_remark(f"To undo it: {_undo_command(result.changes, journal)}")
    else:
        fault = result.fault
        step = f"{journal.suggested_command('show', short)} shows the call."
        print_failure(fault.message if fault else result.text, (fault and fault.hint) or step)
        if result.changes:
            print_remark(
                f"Some changes were applied. To undo them: {_undo_command(result.changes, journal)}"
            )


def print_content(result: "Result[Any]", streamed: "CommandOutputPrinter | None" = None) -> None:
    """Print a result's text to stdout, with its diff coloured on a terminal.

    Images and documents are listed by type and size.
    """
    from handtools.core.result import Text

    text = streamed.rest(result) if streamed else result.text
    diff = diff_in_details(result.details)
    console = stdout_console()
    if diff and text.endswith(diff) and console.is_terminal:
        console.print(with_visible_characters(text.removesuffix(diff)), end="", soft_wrap=True)
        console.print(coloured_diff(diff), end="", soft_wrap=True)
    elif text:
        pass_on_text(text)
    for block in result.content:
        if not isinstance(block, Text):
            print_text(f"({type(block).__name__}, {block.media_type}, {len(block.data):,} bytes)")


def diff_in_details(details: Any) -> str:
    """The `diff` field of a result's details (a dict or a model); empty if there is none."""
    found = details.get("diff") if isinstance(details, dict) else getattr(details, "diff", "")
    return found if isinstance(found, str) else ""


def _print_json_result(
    result: "Result[Any]", call_id: str, short: str, journal: "WorkspaceJournal"
) -> None:
    from handtools.core.result import logged_status, result_to_json

    value: dict[str, Any] = {
        "call_id": call_id,
        **result_to_json(result),
        "status": logged_status(result)[0],
    }
    if result.status == "pending":
        value["next"] = {word: journal.suggested_command(word, short) for word in ("approve", "deny")}
    elif result.changes:
        value["next"] = {"undo": _undo_command(result.changes, journal)}
    print_json(value)


def _undo_command(changes: "RecordedChanges", journal: "WorkspaceJournal") -> str:
    return journal.suggested_command("undo", str(changes.entry))


def _print_pending(result: "Result[Any]", short: str, journal: "WorkspaceJournal") -> None:
    step = (
        f"{journal.suggested_command('approve', short)}   or   {journal.suggested_command('deny', short)}"
    )
    print_pending_call(result.text, step)
