"""The example of a loop without an SDK: a bug is found, mended, tested and taken back."""

import runpy
from pathlib import Path

import pytest

from handtools import Policy, Rule, coding

EXAMPLE = Path(__file__).parents[2] / "examples" / "plain_loop" / "plain_loop.py"
MENDED = {"path": "sums.py", "old_string": "a - b", "new_string": "a + b"}
STEPS = (
    ("grep", {"pattern": "def add"}),
    ("edit", MENDED),
    ("bash", {"command": "python3 -c 'import sums; assert sums.add(1, 2) == 3'"}),
    ("undo", {"name": "sums.py"}),
)
ASK_EDITS = Policy(
    rules=(Rule("look", "ask", "Look first.", effects=frozenset({"change"}), paths=("sums.py",)),)
)


@pytest.fixture
def root(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "sums.py").write_text("def add(a, b):\n    return a - b\n")
    return folder


def scripted(steps):
    left = iter(enumerate(steps))

    async def speak(messages, tools):
        number, step = next(left, (0, None))
        if step is None:
            return {"role": "assistant", "content": "done"}
        name, args = step
        assert name in {one["name"] for one in tools}
        return {"role": "assistant", "calls": [{"id": f"call_{number}", "name": name, "args": args}]}

    return speak


async def run(root, steps, person):
    loop = runpy.run_path(str(EXAMPLE))["run"]
    async with coding(root, policy=ASK_EDITS) as box:
        messages = await loop(box, scripted(steps), person, "Mend add.", "one")
        assert await box.waiting() == []
    return [message for message in messages if message["role"] == "tool"]


async def test_the_loop_does_a_task_and_asks_the_person(root):
    asked = []
    answers = await run(root, STEPS, lambda title, preview: asked.append(preview) or True)
    assert [answer["ok"] for answer in answers] == [True] * 4
    assert "Exit code 0" in answers[2]["content"]
    assert len(asked) == 2
    assert "return a + b" in asked[0]
    assert (root / "sums.py").read_text() == "def add(a, b):\n    return a - b\n"


async def test_a_no_reaches_the_model_and_the_loop_goes_on(root):
    [edited, _] = await run(root, [("edit", MENDED), ("now", {})], lambda *_: False)
    assert not edited["ok"]
    assert "denied" in edited["content"]
    assert (root / "sums.py").read_text() == "def add(a, b):\n    return a - b\n"
