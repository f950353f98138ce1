"""Calls in a LangGraph task: approval requests interrupt the task, and rerunning it repeats no calls."""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from langgraph.config import get_config
from langgraph.types import interrupt

from handtools.adapters.provider_calls import build_provider_call, call_and_ask_approval, question_to_json
from handtools.core.approval import Approval
from handtools.core.result import Result
from handtools.toolbox import Toolbox

_MADE: ContextVar[dict[str, int]] = ContextVar("handtools_calls_made")


def call_counts_by_task() -> dict[str, int]:
    """Return how many calls each task has made in its current run; an interrupted task starts again at 0.

    The counts are in a context variable of the task, so call this before switching to another thread.
    """
    made = _MADE.get(None)
    if made is None:
        made = {}
        _MADE.set(made)
    return made


def session_of_graph_thread() -> str:
    """Return the session for the running graph thread; what was read and approved is tracked by session."""
    return str(_configurable_values().get("thread_id") or "") or "default"


async def call_in_task(toolbox: Toolbox, tool: str, args: Mapping[str, Any]) -> Result[Any]:
    """Make a call for the running task, identified by its number in the task: LangGraph passes no call id.

    Outside a graph nothing can be interrupted, so a call that needs approval returns a pending result.
    """
    configured = _configurable_values()
    if not configured:
        return await toolbox.call(tool, args)
    task, made = str(configured.get("checkpoint_ns") or ""), call_counts_by_task()
    made[task] = number = made.get(task, 0) + 1
    call = build_provider_call(tool, args, f"{task}#{number}", str(configured.get("thread_id") or ""))
    return await call_and_ask_approval(toolbox, call, reply_after_interrupt)


def _configurable_values() -> Mapping[str, Any]:
    try:
        return get_config().get("configurable") or {}
    except RuntimeError:
        return {}  # Outside a graph.


async def reply_after_interrupt(approval: Approval) -> Any:
    """Interrupt the graph with the approval request; when the task is rerun, return the reply."""
    return interrupt(question_to_json(approval))
