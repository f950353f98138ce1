"""Real changes, as `git diff` and as `*** Begin Patch` write them, through the whole tool and back again."""

import random

import pytest

from handtools import Toolbox
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.text.diffs.unified_diff import unified_diff
from tests.e2e.patch_making import change, git_diff, sources, vendor

CHANGES = 300
STRIDE = 30
"""Changes in one test: enough tests to share among workers, few enough to start quickly."""
SEEDS = range(0, CHANGES, STRIDE)


async def patched(box: Toolbox, patch: str, **options: bool) -> dict[str, bytes]:
    result = await box.call("patch", {"patch": patch, **options})
    assert result.ok, f"{result.text}\n{patch}"
    return box.workspace.files.files


@pytest.mark.parametrize("first", SEEDS)
async def test_what_git_writes_applies_and_inverts_to_the_identical_tree(first, tmp_path):
    for seed in range(first, first + STRIDE):
        before, after = change(random.Random(seed))
        diff = git_diff(before, after, tmp_path / str(seed))
        box = memory_toolbox(before)
        assert await patched(box, diff) == after, seed
        assert await patched(box, diff, reverse=True) == before, seed


@pytest.mark.parametrize("first", SEEDS)
async def test_the_vendor_format_applies_and_its_inverse_gives_the_identical_tree(first):
    seed, done = first * 1000, 0
    while done < STRIDE:
        seed += 1
        before, after = change(random.Random(seed))
        there, back = vendor(before, after), vendor(after, before)
        if there is None or back is None:
            continue  # a final line end that comes or goes, or text that is everywhere twice
        box = memory_toolbox(before)
        assert await patched(box, there) == after, seed
        assert await patched(box, back) == before, seed
        done += 1


@pytest.mark.parametrize("drift", [0, 1, 2, 3, 4, 5, 9])
async def test_a_hunk_applies_at_any_distance_if_its_lines_occur_once(drift):
    chance = random.Random(drift)
    for _ in range(20):
        name, text = chance.choice([source for source in sources() if source[1].count("\n") > 30])
        rows = text.split("\n")
        rows = [f"{row}\n" for row in rows[:-1]] + rows[-1:]
        at = chance.randrange(8, len(rows) - 4)
        diff = unified_diff(name, text, "".join([*rows[:at], "changed\n", *rows[at + 1 :]]))
        above = [f"# moved {n}\n" for n in range(drift)]
        box = memory_toolbox({name: "".join([*above, *rows]).encode()})
        result = await box.call("patch", {"patch": diff})
        wanted = [*above, *rows]
        if result.ok or drift <= 3:
            assert result.ok, result.text
            wanted[at + drift] = "changed\n"
        else:
            context = "".join(row[1:] for row in diff.splitlines(keepends=True)[3:] if row[0] in " -")
            assert text.count(context) > 1 or not any(map(str.isalnum, context)), result.text
        assert box.workspace.files.files[name] == "".join(wanted).encode()
