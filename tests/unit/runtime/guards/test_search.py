"""Guarded search: what is read around hits, and searches in stored outputs."""

import subprocess

import pytest
from pydantic import BaseModel

from handtools import Call, Context, Result, tool
from handtools.runtime.guards import search
from handtools.runtime.policy import DEFAULTS, Policy
from handtools.runtime.policy.rules import Rule
from handtools.testing.memory_toolbox import memory_toolbox
from handtools.toolbox import Toolbox, local_workspace
from handtools.tools.grep import grep

TWO = {"a": b"before a\nhit\n", "b": b"before b\nhit\n"}
SIZE = len(TWO["a"])


async def surroundings(limit, size, monkeypatch):
    monkeypatch.setattr(search, limit, size)
    text = (await memory_toolbox(TWO).call("grep", {"pattern": "hit", "context": 1})).text
    assert text.count("hit") == 2
    return [name for name in TWO if f"before {name}" in text]


@pytest.mark.parametrize(("room", "shown"), [(2 * SIZE, ["a", "b"]), (2 * SIZE - 1, ["a"]), (SIZE - 1, [])])
async def test_lines_around_hits_are_shown_as_far_as_their_files_fit_together(monkeypatch, room, shown):
    assert await surroundings("HIT_CONTEXT_TOTAL_BYTES", room, monkeypatch) == shown


@pytest.mark.parametrize(("most", "shown"), [(SIZE, ["a", "b"]), (SIZE - 1, [])])
async def test_of_a_very_large_file_only_the_hit_is_shown(monkeypatch, most, shown):
    assert await surroundings("HIT_CONTEXT_FILE_BYTES", most, monkeypatch) == shown


@pytest.mark.parametrize("verdict", ["ask", "deny"])
async def test_a_search_shows_only_what_may_be_read_where_reading_is_not_allowed_by_default(verdict):
    ours = Rule("ours", "allow", "Our part.", frozenset({"read"}), paths=("ours",), but=("ours/theirs",))
    policy = Policy(rules=(ours,), defaults=DEFAULTS | {"read": verdict}, unattended="deny")
    files = {"ours/a.txt": b"hit\n", "ours/theirs/b.txt": b"hit\n"}
    found = await memory_toolbox(files, policy=policy).call("grep", {"pattern": "hit", "path": "ours"})
    assert "ours/a.txt" in found.text
    assert "b.txt" not in found.text


MOST = 4 << 20


def padded(size):
    return b"before\nhit\n".ljust(size, b"x")


@pytest.mark.parametrize(("size", "is_shown"), [(MOST, True), (MOST + 1, False)])
async def test_four_megabytes_of_a_file_are_read_for_what_is_around_a_hit(size, is_shown):
    result = await memory_toolbox({"a": padded(size)}).call("grep", {"pattern": "hit", "context": 1})
    assert "2:hit" in result.text
    assert ("1-before" in result.text) == is_shown


async def test_sixty_four_megabytes_of_files_are_read_for_what_is_around_hits():
    files = {f"{number:02}": padded(MOST) for number in range(16)} | {"last": padded(20)}
    result = await memory_toolbox(files).call("grep", {"pattern": "hit", "context": 1})
    assert (result.text.count("2:hit"), result.text.count("1-before")) == (17, 16)


class NoParams(BaseModel):
    """Nothing is asked for."""


@tool(effects=("read",))
async def count(ctx: Context, params: NoParams) -> Result[NoParams]:
    """Count to 20,000."""
    return Result("\n".join(f"line {number}" for number in range(1, 20_001)), params)


@pytest.fixture
async def box(tmp_path):
    """Stored outputs in a repository that ignores them, by an ignore file that is a link."""
    root = tmp_path / "work"
    root.mkdir()
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "rules").write_text("*\n")
    (tmp_path / ".gitignore").symlink_to("rules")
    workspace = local_workspace(root, state=tmp_path / "state")
    async with Toolbox([count, grep], workspace=workspace) as toolbox:
        yield toolbox


async def counted(box, **args):
    path = (await box.call(Call(tool="count", args={}, id="c"))).spill.path
    return await box.call("grep", {"path": path, **args})


async def test_an_output_is_searched_whatever_the_project_ignores(box):
    found = await counted(box, pattern="line 1234$", context=1)
    assert [(hit.path, hit.line) for hit in found.details.hits] == [("output:c.txt", 1234)]
    assert "1233-line 1233" in found.text
    assert "link" not in found.text


async def test_matches_in_an_output_are_counted(box):
    found = await counted(box, pattern="line 7", mode="counts")
    assert "output:c.txt:1111" in found.text
