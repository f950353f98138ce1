"""Task: work for another agent."""

import anyio
import pytest

from handtools.core.call import Call, CancelToken
from handtools.core.callbacks import Callbacks
from handtools.runtime.after_call import MAX_RESULT_TEXT_BYTES
from handtools.runtime.guards.callbacks import MAX_ERRAND_DEPTH
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import Rule
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.tools.find import find
from handtools.tools.grep import grep
from handtools.tools.task import task

ARGS = {"title": "Find it", "prompt": "Where is the tea?"}


def box(delegate=None, **options):
    callbacks = Callbacks(delegate=delegate) if delegate else None
    return memory_toolbox(tools=[task, grep, find], callbacks=callbacks, **options)


@pytest.mark.claim("task.report")
@pytest.mark.claim("task.prompt")
async def test_the_other_agent_gets_the_words_and_its_report_comes_back():
    errands = []

    async def work(errand):
        errands.append(errand)
        return "In the cupboard.\n"

    call = Call(tool="task", args=ARGS, session="s", metadata={"chat": 7})
    result = await box(work).call(call)
    assert result.text == "In the cupboard."
    (errand,) = errands
    assert (errand.title, errand.prompt) == ("Find it", "Where is the tea?")
    assert (errand.session, errand.parent, errand.depth) == ("s", call.id, 1)
    assert errand.metadata == {"chat": 7}


async def test_without_another_agent_it_is_not_offered():
    assert (await box().call("task", ARGS)).fault.code == "unknown_tool"


@pytest.mark.claim("grep.task")
@pytest.mark.claim("find.task")
@pytest.mark.parametrize("name", ["grep", "find"])
async def test_other_tools_speak_of_it_only_where_it_is_offered(name):
    async def work(errand):
        return ""

    def words(toolbox):
        return next(each.description for each in toolbox.definitions() if each.name == name)

    assert "`task`" in words(box(work))
    assert "`task`" not in words(box())
    assert "`task`" not in words(box(work, policy=Policy(block=("task",))))
    assert "<!--" not in words(box(work))


async def test_a_long_report_is_bounded_and_kept():
    async def work(errand):
        return "word " * 50_000

    toolbox = box(work)
    result = await toolbox.call("task", ARGS)
    assert len(result.text) < MAX_RESULT_TEXT_BYTES + 200
    assert result.spill is not None


async def test_an_agent_that_says_nothing_is_said_to_have_said_nothing():
    async def work(errand):
        return " "

    assert "without a report" in (await box(work).call("task", ARGS)).text


async def test_cancelling_the_call_reaches_the_other_agent():
    token, stopped = CancelToken(), []

    async def work(errand):
        token.cancel()
        try:
            await anyio.sleep_forever()
        except anyio.get_cancelled_exc_class():
            stopped.append(errand.title)
            raise

    result = await box(work).call("task", ARGS, cancel=token)
    assert result.status == "cancelled"
    assert stopped == ["Find it"]


async def test_a_failing_agent_is_an_honest_fault():
    async def work(errand):
        raise RuntimeError("out of tea")

    result = await box(work).call("task", ARGS)
    assert result.fault.code == "callback_failed"
    assert "RuntimeError: out of tea" in result.text


async def test_an_answer_that_is_no_text_is_a_fault():
    async def work(errand):
        return 7

    assert (await box(work).call("task", ARGS)).fault.code == "callback_failed"


@pytest.mark.parametrize("named", [True, False], ids=["parents named", "parents not named"])
async def test_errands_within_errands_come_to_an_end(named):
    depths = []

    async def work(errand):
        depths.append(errand.depth)
        inner = await toolbox.call(Call(tool="task", args=ARGS, parent=errand.parent if named else ""))
        return inner.text

    toolbox = box(work)
    result = await toolbox.call("task", ARGS)
    assert depths == list(range(1, MAX_ERRAND_DEPTH + 1))
    assert "yourself" in result.text


async def test_the_depth_is_known_to_an_agent_that_runs_elsewhere():
    async def work(errand):
        return f"{errand.depth}"

    toolbox = box(work)
    parent, depths = "", []
    for _ in range(MAX_ERRAND_DEPTH + 1):
        call = Call(tool="task", args=ARGS, parent=parent)
        depths.append((await toolbox.call(call)).text)
        parent = call.id
    assert depths[:MAX_ERRAND_DEPTH] == [str(depth) for depth in range(1, MAX_ERRAND_DEPTH + 1)]
    assert "the limit is" in depths[-1]


async def test_a_rule_can_forbid_it_and_rules_about_paths_do_not_speak_of_it():
    async def work(errand):
        return "done"

    no = Rule("alone", "deny", "Work alone.", effects=frozenset({"delegate"}))
    assert (await box(work, policy=Policy(rules=(no,))).call("task", ARGS)).status == "denied"
    assert (await box(work).call("task", ARGS | {"title": ".env"})).ok


async def test_asking_what_would_happen_starts_no_agent():
    started = []

    async def work(errand):
        started.append(errand)
        return ""

    assert (await box(work).why("task", ARGS)).rule == "default for delegate"
    assert started == []


async def test_an_answer_with_half_a_character_is_shown():
    async def work(errand):
        return "in \ud83d a.txt"

    assert (await box(work).call("task", ARGS)).text == "in \ufffd a.txt"
