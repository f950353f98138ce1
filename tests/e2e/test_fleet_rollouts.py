"""The example of an environment with reset, step and fork finds both bugs, one fork at a time."""

import runpy
from pathlib import Path

from handtools import Policy
from handtools.fleet.fleets_for_batches import open_local_fleet

EXAMPLE = Path(__file__).parents[1].parent / "examples" / "fleet_rollouts" / "rollouts.py"


async def test_the_greedy_search_over_forks_finds_both_bugs(tmp_path):
    example = runpy.run_path(str(EXAMPLE))
    assert await example["main"](tmp_path) == [0.25, 0.75, 1.0]
    assert not (tmp_path / "workspaces").exists()


async def test_a_step_in_a_fork_changes_no_other_state(tmp_path):
    example = runpy.run_path(str(EXAMPLE))
    source = tmp_path / "source"
    source.mkdir()
    (source / "module.py").write_text(example["MODULE"])
    (source / "tests.py").write_text(example["TESTS"])
    async with open_local_fleet(tmp_path / "workspaces", policy=Policy(unattended="deny")) as fleet:
        template = await fleet.add_template("folder", str(source))
        state = await example["Environment"].reset(fleet, template)
        one, two = await state.fork(2)
        right = next(each for each in example["ACTIONS"] if each[1:] == (" / ", "mean") and "*" in each[0])
        before = state.reward
        assert await one.step(right) > before
        assert (await two.look(), await state.look()) == (before, before)
