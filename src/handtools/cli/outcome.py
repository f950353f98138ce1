"""Outcomes: what came of a call, on the screen and as an exit code."""

from typing import TYPE_CHECKING, Any

from handtools.cli.screen import out, painted, print_json, print_text, remark, tell_failure, tell_waiting
from handtools.text.visible import visible

if TYPE_CHECKING:
    from handtools.cli.opening import Record
    from handtools.core.result import Result

FAILED, PENDING = 1, 3


def exit_code(result: "Result[Any]") -> int:
    """0 ok, 1 failed or denied, 3 waiting for an answer."""
    return {"ok": 0, "pending": PENDING}.get(result.status, FAILED)


def present(result: "Result[Any]", call_id: str, record: "Record", *, as_json: bool) -> None:
    """Show how a call ended, and what can be done next."""
    short = record.calls.short(call_id)
    if as_json:
        _print_outcome(result, call_id, short, record)
    elif result.status == "pending":
        _tell_pending(result, short, record)
    elif result.ok:
        print_blocks(result)
        if result.changes:
            remark(f"Call {short}. Take it back: {record.step('undo', short)}")
    else:
        fault = result.fault
        step = f"{record.step('show', short)} shows the call."
        tell_failure(fault.message if fault else result.text, (fault and fault.hint) or step)
        if result.changes:
            remark(f"Some changes had landed before. Take them back: {record.step('undo', short)}")


def print_blocks(result: "Result[Any]") -> None:
    """What the model reads; a diff in it is coloured for people."""
    from handtools.core.content import Text

    text, diff = result.text, diff_of(result.details)
    console = out()
    if diff and text.endswith(diff) and console.is_terminal:
        console.print(visible(text.removesuffix(diff)), end="", soft_wrap=True)
        console.print(painted(diff), end="", soft_wrap=True)
    elif text:
        print_text(text)
    for block in result.content:
        if not isinstance(block, Text):
            print_text(f"({type(block).__name__}, {block.media_type}, {len(block.data):,} bytes)")


def diff_of(details: Any) -> str:
    """The diff among a result's details, where it has one."""
    found = details.get("diff") if isinstance(details, dict) else getattr(details, "diff", "")
    return found if isinstance(found, str) else ""


def _print_outcome(result: "Result[Any]", call_id: str, short: str, record: "Record") -> None:
    from handtools.core.wire import result_to_json

    value: dict[str, Any] = {"call_id": call_id, **result_to_json(result)}
    if result.status == "pending":
        value["next"] = {word: record.step(word, short) for word in ("approve", "deny")}
    elif result.changes:
        value["next"] = {"undo": record.step("undo", short)}
    print_json(value)


def _tell_pending(result: "Result[Any]", short: str, record: "Record") -> None:
    asked = f" ({result.request.rule})" if result.request else ""
    step = f"{record.step('approve', short)}   or   {record.step('deny', short)}"
    tell_waiting(f"{result.text}{asked}", step)
