"""Rollouts for reinforcement learning: an environment with reset, step and fork, and a greedy search over it."""

import asyncio
import sys
from pathlib import Path

from handtools import Policy
from handtools.fleet.fleets_for_batches import open_local_fleet

MODULE = """def mean(numbers):
    return sum(numbers) * len(numbers)


def spread(numbers):
    return max(numbers) + min(numbers)
"""
TESTS = """from module import mean, spread
passed = [mean([4]) == 4, mean([2, 4]) == 3, spread([5]) == 0, spread([9, 2]) == 7]
print(sum(passed) / len(passed))
"""
ACTIONS = [(f" {old} ", f" {new} ", name) for name in ("mean", "spread") for old in "*+" for new in "-/"]
FORKS = 8


class Environment:
    """A state is a workspace; its reward is the share of tests that pass in it."""

    def __init__(self, fleet, toolbox):
        self.fleet, self.toolbox, self.reward = fleet, toolbox, 0.0

    @classmethod
    async def reset(cls, fleet, template):
        """Begin an episode in a new workspace."""
        made = cls(fleet, await fleet.create(template))
        await made.look()
        return made

    async def step(self, action):
        """Do an action, here an edit of a function; returns the reward of the state after it."""
        old, new, name = action
        text = (await self.toolbox.call("bash", {"command": "cat module.py"})).text.rpartition("Exit code")[
            0
        ]
        before, head, body = text.partition(f"def {name}")
        changed = before + head + body.replace(old, new, 1)
        await self.toolbox.call("write", {"path": "module.py", "content": changed, "mode": "overwrite"})
        return await self.look()

    async def look(self):
        """Run the tests."""
        ran = await self.toolbox.call("bash", {"command": "python3 -B tests.py"})
        self.reward = float(ran.text.split()[0]) if ran.details["code"] == 0 else 0.0
        return self.reward

    async def fork(self, count):
        """States that begin as this one is; each goes on by itself."""
        forks = await self.fleet.fork(self.toolbox.workspace_name, count)
        return [Environment(self.fleet, toolbox) for toolbox in forks]

    async def close(self):
        """Remove the workspace."""
        await self.toolbox.client.remove(self.toolbox.workspace_name)


async def greedy(fleet, template, *, most_steps=4):
    """Try every action in a fork of its own, go on with the best; returns the rewards along the way."""
    state = await Environment.reset(fleet, template)
    rewards = [state.reward]
    while state.reward < 1 and len(rewards) <= most_steps:
        forks = await state.fork(FORKS)
        await asyncio.gather(*(fork.step(action) for fork, action in zip(forks, ACTIONS, strict=True)))
        best = max(forks, key=lambda fork: fork.reward)
        for other in (state, *forks):
            if other is not best:
                await other.close()
        state = best
        rewards.append(state.reward)
    await state.close()
    return rewards


async def main(folder):
    """Search in workspaces below a folder."""
    source = Path(folder) / "source"
    source.mkdir(parents=True)
    (source / "module.py").write_text(MODULE)
    (source / "tests.py").write_text(TESTS)
    async with open_local_fleet(Path(folder) / "workspaces", policy=Policy(unattended="deny")) as fleet:
        rewards = await greedy(fleet, await fleet.add_template("folder", str(source)))
    print("rewards:", *rewards)
    return rewards


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
