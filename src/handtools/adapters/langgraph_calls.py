"""Calls in a task of LangGraph: questions interrupt it, and when it runs again each call is still made once.

ADR 190, 219.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any

from langgraph.config import get_config
from langgraph.types import interrupt

from handtools.adapters.provider_calls import call_with_questions, provider_call, question_to_json
from handtools.core.approval import Approval
from handtools.core.result import Result
from handtools.toolbox import Toolbox

_MADE: ContextVar[dict[str, int]] = ContextVar("handtools_calls_made")


def calls_made() -> dict[str, int]:
    """Return how many calls each task has made in the present run of it; an interrupted task begins again.

    A task has a context of its own: a call from another thread needs this called before it goes there.
    """
    made = _MADE.get(None)
    if made is None:
        made = {}
        _MADE.set(made)
    return made


def session_of_thread() -> str:
    """Return the session of the graph's thread that runs: what its agent has seen and was allowed."""
    return str(_configured().get("thread_id") or "") or "default"


async def call_in_task(toolbox: Toolbox, tool: str, args: Mapping[str, Any]) -> Result[Any]:
    """Make a call for the task that runs, which is given no id: its number in the task stands for one.

    Outside of a graph nothing can be interrupted, and a call that asks comes back as pending.
    """
    configured = _configured()
    if not configured:
        return await toolbox.call(tool, args)
    task, made = str(configured.get("checkpoint_ns") or ""), calls_made()
    made[task] = number = made.get(task, 0) + 1
    call = provider_call(tool, args, f"{task}#{number}", str(configured.get("thread_id") or ""))
    return await call_with_questions(toolbox, call, interrupt_with_question)


def _configured() -> Mapping[str, Any]:
    try:
        return get_config().get("configurable") or {}
    except RuntimeError:
        return {}  # Outside of a graph.


async def interrupt_with_question(approval: Approval) -> Any:
    """Interrupt the graph with the question; it comes here again from the start, with the answer."""
    return interrupt(question_to_json(approval))
