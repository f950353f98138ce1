"""Where an SDK pauses a call only once: a second question of it is told to the model, and nothing has landed."""

import os
from importlib import import_module

import pytest

from handtools import Policy, Rule, coding
from tests.adapters.drivers import Wanted

NAME = os.environ["HANDTOOLS_ADAPTER"]
if NAME not in {"google_adk", "openai_agents"}:
    pytest.skip("pauses as often as a call asks", allow_module_level=True)

pytestmark = pytest.mark.anyio
ASK_TWICE = Policy(rules=(Rule("ask", "ask", "Look first.", effects=frozenset({"run", "change"})),))


@pytest.mark.linux("overlay")  # else what a command has changed can't be held back
async def test_a_second_question_of_one_call_is_told_to_the_model(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    root = tmp_path / "work"
    root.mkdir()
    driver = import_module(f"tests.adapters.driver_{NAME}").Driver()
    async with coding(root, policy=ASK_TWICE) as box:
        paused, question = await driver.ask(box, Wanted("bash", {"command": "echo x > made.txt"}, "call_1"))
        assert "run" in question["title"]
        [said] = await driver.answer(box, paused, allow=True)
        assert said.error
        assert "Needs the user's approval" in said.text
        [left] = await box.waiting()
        assert "made.txt" in left.title
    assert not (root / "made.txt").exists()
