"""Cancelling: a caller that was not cancelled gets a result, whatever the code around us raises."""

import asyncio

import anyio
import pytest

from handtools.core.callbacks import Callbacks
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import Rule
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.tools.attach import attach
from handtools.tools.edit_agent import edit_agent
from handtools.tools.task import task

CALLS = {
    "attach": {"paths": ["a.txt"]},
    "task": {"title": "Find it", "prompt": "Where is it?"},
    "edit_agent": {"path": "a.txt", "instructions": "Do it."},
}
ASK = Policy(rules=(Rule("ask", "ask", "A test asks.", effects=frozenset({"deliver"})),))


async def raised(*_):
    raise asyncio.CancelledError


async def waited_for(*_):
    """What happens in practice: a task of the program's own was cancelled, and the callback awaits it."""
    theirs = asyncio.create_task(anyio.sleep_forever())
    theirs.cancel()
    await theirs


def box(act, **options):
    async def model(prompt):
        await act(prompt)
        yield "never"

    callbacks = Callbacks(deliver=act, delegate=act, model=model)
    return memory_toolbox(
        {"a.txt": b"one\n"}, tools=[attach, task, edit_agent], callbacks=callbacks, **options
    )


@pytest.mark.parametrize("stray", [raised, waited_for])
@pytest.mark.parametrize("tool", CALLS)
async def test_a_callback_that_was_cancelled_by_another_is_an_ordinary_failure(tool, stray):
    result = await box(stray).call(tool, CALLS[tool])
    assert (result.status, result.fault.code) == ("error", "callback_failed")
    assert result.fault.hint


@pytest.mark.parametrize("stray", [raised, waited_for])
async def test_an_approver_that_was_cancelled_by_another_is_an_ordinary_failure(stray):
    result = await box(raised, policy=ASK, approver=stray).call("attach", CALLS["attach"])
    assert (result.status, result.fault.code) == ("error", "internal")


@pytest.mark.parametrize("tool", CALLS)
async def test_a_caller_that_is_cancelled_stays_cancelled(tool):
    begun = anyio.Event()

    async def waiting(*_):
        begun.set()
        await anyio.sleep_forever()

    call = asyncio.create_task(box(waiting).call(tool, CALLS[tool]))
    await begun.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call


@pytest.mark.parametrize("tool", CALLS)
async def test_a_scope_around_the_call_ends_it(tool):
    with anyio.CancelScope() as scope:

        async def waiting(*_):
            scope.cancel()
            await anyio.sleep_forever()

        await box(waiting).call(tool, CALLS[tool])
    assert scope.cancelled_caught


async def test_a_call_made_while_cleaning_up_after_a_cancellation_gets_its_own_result():
    async def cleaning_up():
        try:
            await anyio.sleep_forever()
        except asyncio.CancelledError:
            return await box(raised).call("attach", CALLS["attach"])

    call = asyncio.create_task(cleaning_up())
    await anyio.lowlevel.checkpoint()
    call.cancel()
    assert (await call).fault.code == "callback_failed"
