"""Runs a call in a vendor's format as calls of our tools."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

from handtools.core.approval import Reply
from handtools.core.call import Call, derived_call_id
from handtools.core.changes import merge_recorded_changes
from handtools.core.dialects.dialect_tool import DialectTool, OurCalls
from handtools.core.errors import ToolError
from handtools.core.result import Result
from handtools.runtime.arguments import validate_arguments
from handtools.runtime.executor import result_of_error

RunCall = Callable[[Call, Reply | None], Awaitable[Result[Any]]]


def calls_of_ours(dialect_tool: DialectTool, call: Call) -> OurCalls:
    """Validate a call's arguments against the vendor's schema and return the equivalent calls."""
    given = validate_arguments(dialect_tool, call.args)
    return dialect_tool.calls(given.model_dump(by_alias=True, exclude_unset=True))


def call_of_ours(call: Call, number: int, wanted: tuple[str, dict[str, Any]]) -> Call:
    """Return one of our calls for a vendor's call; the first has the same id, the others have derived ids."""
    tool, args = wanted
    return replace(call, tool=tool, args=args, id=derived_call_id(call.id, number) if number else call.id)


async def call_in_dialect(
    dialect_tool: DialectTool,
    call: Call,
    run: RunCall,
    *,
    reply: Reply | None,
    settled: Callable[[str], bool],
) -> Result[Any]:
    """Run our calls for a vendor's call and return the result in the vendor's format.

    Stops at a call that is pending approval; running the vendor's call again with the same id resumes there.
    `reply` goes only to the first of our calls that has not ended yet.
    """
    results: list[Result[Any]] = []
    try:
        calls = calls_of_ours(dialect_tool, call)
        wanted = next(calls)
        while True:
            ours = call_of_ours(call, len(results), wanted)
            answer = None if reply is None or settled(ours.id) else reply
            results.append(await run(ours, answer))
            if results[-1].status in {"pending", "cancelled"}:
                return _with_changes(results[-1], results)
            reply = None if answer else reply
            wanted = calls.send(results[-1])
    except StopIteration as end:
        return _with_changes(end.value, results)
    except ToolError as failure:
        return result_of_error(failure)


def _with_changes(result: Result[Any], results: list[Result[Any]]) -> Result[Any]:
    changes = [each.changes for each in results if each.changes is not None]
    return result.with_fields(changes=merge_recorded_changes(changes)) if len(results) > 1 else result
