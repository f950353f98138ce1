"""Nasty trees of processes, ended one way or another, whatever runs them."""

import os

import anyio

from bench.kill import TREES, alive
from bench.kill import one as kill_one


async def nothing_survives(commands, tree, ending, *, seconds):
    """Run a tree to its end, and look for what is left of it."""
    token = f"6{os.getpid():06d}{abs(hash((tree, ending))) % 10**6:06d}"
    with anyio.fail_after(seconds):
        ended = await kill_one(commands, TREES[tree], ending, token)
    assert ended.trees or ending != "cancel"
    assert alive(token) == []
