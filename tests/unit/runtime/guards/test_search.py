"""Guarded search: what is read around hits, and searches in stored outputs."""

import os
import subprocess
from dataclasses import replace

import pytest
from pydantic import BaseModel

from handtools import Call, Change, Context, Reply, Result, tool
from handtools.runtime.guards import search
from handtools.runtime.policy import DEFAULTS, Policy
from handtools.runtime.policy.rules import Rule
from handtools.testing.memory_files_and_search import MemorySearch
from handtools.testing.memory_toolbox import memory_toolbox, memory_workspace
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


OURS = {"ours/a.txt": b"hit\n", "ours/b.txt": b"hit\n"}
ASK_ABOUT_ALL = Rule("each", "ask", "Each by itself.", frozenset({"read"}))
ASK_ABOUT_ONE = replace(ASK_ABOUT_ALL, paths=("ours/b.txt",))


@pytest.mark.parametrize(("rule", "shown"), [(ASK_ABOUT_ALL, []), (ASK_ABOUT_ONE, ["ours/a.txt"])])
async def test_a_person_who_lets_a_search_begin_has_not_allowed_every_file_in_it(rule, shown):
    async def yes(_):
        return Reply(allow=True)

    box = memory_toolbox(OURS, policy=Policy(rules=(rule,)), approver=yes)
    found = await box.call("grep", {"pattern": "hit", "path": "ours"})
    assert [path for path in OURS if path in found.text] == shown
    assert f"{2 - len(shown)} path" in found.text
    assert "the user's approval by name: left out." in found.text


async def test_a_file_that_a_person_lets_be_searched_is_searched_and_no_other():
    async def yes(_):
        return Reply(allow=True)

    box = memory_toolbox(OURS, policy=Policy(rules=(ASK_ABOUT_ALL,)), approver=yes)
    found = await box.call("grep", {"pattern": "hit", "path": "ours/b.txt", "context": 1})
    assert [hit.path for hit in found.details.hits] == ["ours/b.txt"]
    assert "left out" not in found.text


async def test_a_folder_of_which_nothing_may_be_shown_is_not_said_to_be_empty():
    async def yes(_):
        return Reply(allow=True)

    box = memory_toolbox(OURS, policy=Policy(rules=(ASK_ABOUT_ALL,)), approver=yes)
    listed = await box.call("list", {"path": "ours"})
    assert listed.text == "(Nothing is shown. 2 paths need the user's approval by name: left out.)"


SEARCHES = [("grep", {"pattern": "hit"}), ("find", {"pattern": "*"}), ("list", {})]


@pytest.mark.parametrize(("verdict", "status"), [("deny", "denied"), ("ask", "pending")])
@pytest.mark.parametrize(("tool", "args"), SEARCHES)
async def test_no_search_begins_at_the_top_where_reading_is_not_allowed(tool, args, verdict, status):
    box = memory_toolbox(OURS, policy=Policy(defaults=DEFAULTS | {"read": verdict}))
    result = await box.call(tool, args)
    assert result.status == status
    assert "a.txt" not in result.text


@pytest.mark.parametrize(
    "rule",
    [
        Rule("locked", "deny", "Ours.", frozenset({"change"}), paths=("ours/a.txt",)),
        Rule("unread", "deny", "Ours.", frozenset({"read"}), paths=("ours/a.txt",), tools=("read",)),
        Rule("secret", "deny", "Ours.", frozenset({"read"}), paths=("ours/**",), but=("ours/a.txt",)),
        Rule("secret", "deny", "Ours.", frozenset({"read"}), paths=("a.txt",), but=("ours/**",)),
    ],
    ids=["about changes", "about another tool", "with an exception", "with an exception for a folder"],
)
async def test_a_search_finds_what_a_rule_does_not_keep_from_it(rule):
    found = await memory_toolbox(OURS, policy=Policy(rules=(rule,))).call("grep", {"pattern": "hit"})
    assert "ours/a.txt" in found.text


@pytest.mark.parametrize(("tool", "args"), SEARCHES)
async def test_a_file_of_an_excluded_name_is_not_found_though_the_name_was_written_as_that_of_a_folder(
    tool, args
):
    box = memory_toolbox({"build": b"hit\n", "a": b"hit\n"}, policy=Policy(excluded=("build/",)))
    assert "build" not in (await box.call(tool, args)).text


@pytest.mark.parametrize(("tool", "args"), SEARCHES)
async def test_one_file_can_be_searched_but_has_no_paths_below_it(tool, args):
    result = await memory_toolbox(OURS).call(tool, {**args, "path": "ours/a.txt"})
    if tool == "grep":
        assert "hit" in result.text
    else:
        assert "`ours/a.txt` is not a folder. Use the folder that contains it." in result.text


async def test_nothing_is_searched_in_a_pipe(tmp_path):
    root = tmp_path / "work"
    root.mkdir()
    os.mkfifo(root / "pipe")
    async with Toolbox([grep], workspace=local_workspace(root, state=tmp_path / "state")) as toolbox:
        result = await toolbox.call("grep", {"pattern": "hit", "path": "pipe"})
    assert "`pipe` is a pipe, a socket or a device." in result.text


class LateSearch(MemorySearch):
    """A search after which the first file with a hit is gone."""

    async def hits(self, patterns, scope, **given):
        found = await super().hits(patterns, scope, **given)
        gone = Change.of("a", before=TWO["a"], after=None)
        self._files.perform(self._files.plan([gone]))
        return found


async def test_a_file_that_is_gone_since_has_its_hit_shown_without_lines_around_it():
    workspace = memory_workspace(TWO)
    box = Toolbox([grep], workspace=replace(workspace, search=LateSearch(workspace.files)))
    result = await box.call("grep", {"pattern": "hit", "context": 1})
    assert result.text.count("hit") == 2
    assert [name for name in TWO if f"before {name}" in result.text] == ["b"]


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


@pytest.mark.parametrize(("most", "is_shown"), [(1 << 20, True), (1_000, False)])
async def test_the_beginning_of_an_output_is_shown_around_a_hit_if_the_output_is_not_very_large(
    box, monkeypatch, most, is_shown
):
    monkeypatch.setattr(search, "HIT_CONTEXT_FILE_BYTES", most)
    found = await counted(box, pattern="line 2$", context=1)
    assert "2:line 2" in found.text
    assert ("1-line 1\n" in found.text) == is_shown
