"""Guarded paths: what is opened is what was judged, also when a link is swapped in between."""

import os
from dataclasses import replace

import pytest
from pydantic import BaseModel

from handtools import Call, Change, ChangeSet, Context, Node, Result, tool
from handtools.core.approval import Reply
from handtools.core.callbacks import Callbacks
from handtools.core.errors import NotFound, SymlinkInPath, TimedOut
from handtools.core.events import Changed
from handtools.host.files.local_files import LocalFiles
from handtools.runtime.guards.files import (
    MAX_PATH_OPEN_TRIES,
    UNTHREADED_READ_BYTES,
    retry_while_links_change,
)
from handtools.testing.memory_files_and_search import MemoryFiles, MemorySearch
from handtools.testing.memory_toolbox import memory_toolbox, memory_workspace
from handtools.toolbox import EVERYTHING, Toolbox, local_workspace
from handtools.tools.attach import attach
from handtools.tools.read import read

SECRET = "TOKEN=very-secret"


class SwappedFiles(LocalFiles):
    """Files of a folder in which another program swaps two names right after a path was located."""

    def __init__(self, root, one, other, times):
        super().__init__(root)
        self._names = (root / one, root / other)
        self._times = times

    def locate(self, path):
        located = super().locate(path)
        if self._times:
            self._times -= 1
            self.swap()
        return located

    def swap(self):
        one, other = self._names
        between = one.with_name("between")
        os.rename(one, between)
        os.rename(other, one)
        os.rename(between, other)


@pytest.fixture
def root(tmp_path):
    root = tmp_path / "work"
    (root / "d").mkdir(parents=True)
    (root / ".ssh").mkdir()
    (root / ".vscode").mkdir()
    (root / "d" / "f").write_text("open\n")
    for path in (".env", ".ssh/f", ".vscode/f"):
        (root / path).write_text(f"{SECRET}\n")
    (root / "pub").write_text("public\n")
    (root / "pub-link").symlink_to(".env")
    (root / "d-link").symlink_to(".ssh")
    (root / "e-link").symlink_to(".vscode")
    return root


async def delivered(attachment):
    return f"delivered {attachment.data!r}"


def box(root, tmp_path, one, other, times=1, asked=None):
    async def no(approval):
        asked.append(approval)
        return Reply(False)

    files = SwappedFiles(root, one, other, times)
    workspace = local_workspace(root, files=files, state=tmp_path / "state")
    approver = None if asked is None else no
    return Toolbox(
        EVERYTHING, workspace=workspace, approver=approver, callbacks=Callbacks(deliver=delivered)
    )


@pytest.mark.parametrize("times", [1, 2, 7, 1_000])
@pytest.mark.parametrize(("path", "names"), [("pub", ("pub", "pub-link")), ("d/f", ("d", "d-link"))])
@pytest.mark.parametrize("tool", ["read", "attach", "grep", "list", "find"])
async def test_no_tool_shows_what_is_behind_a_link_that_was_swapped_in(
    root, tmp_path, tool, path, names, times
):
    args = {
        "grep": {"pattern": "TOKEN", "path": path, "hidden": True},
        "list": {"path": path.partition("/")[0]},
        "find": {"pattern": "*", "path": path.partition("/")[0]},
        "attach": {"paths": [path]},
    }.get(tool, {"path": path})
    async with box(root, tmp_path, *names, times) as toolbox:
        result = await toolbox.call(tool, args)
    assert SECRET not in result.text
    assert result.fault is None or result.fault.code != "internal", result.text


class BlinkingFiles(SwappedFiles):
    """The same, but the link is gone again by the time anybody looks where the path leads."""

    swapped = False

    def locate(self, path):
        if self.swapped:
            self.swap()
        located = LocalFiles.locate(self, path)
        self.swapped = self._times > 0
        self._times -= 1
        if self.swapped:
            self.swap()
        return located


@pytest.mark.parametrize(("times", "shown"), [(1, True), (9, True), (1_000, False)])
@pytest.mark.parametrize(("tool", "args"), [("read", {"path": "d/f"}), ("attach", {"paths": ["d/f"]})])
async def test_a_link_that_is_gone_again_costs_another_look_until_there_are_too_many(
    root, tmp_path, tool, args, times, shown
):
    files = BlinkingFiles(root, "d", "d-link", times)
    workspace = local_workspace(root, files=files, state=tmp_path / "state")
    async with Toolbox(EVERYTHING, workspace=workspace, callbacks=Callbacks(deliver=delivered)) as toolbox:
        result = await toolbox.call(tool, args)
    assert ("open" in result.text) == shown
    assert shown or result.fault.code == "stale"
    assert SECRET not in result.text


@pytest.mark.parametrize("changes", [0, MAX_PATH_OPEN_TRIES - 1, MAX_PATH_OPEN_TRIES])
def test_a_path_is_tried_as_often_as_the_limit_says(changes):
    tries = []

    def look():
        tries.append(1)
        if len(tries) <= changes:
            raise SymlinkInPath("A link appeared.", hint="Try again.")
        return "found"

    if changes < MAX_PATH_OPEN_TRIES:
        assert retry_while_links_change(look) == "found"
        assert len(tries) == changes + 1
    else:
        with pytest.raises(SymlinkInPath):
            retry_while_links_change(look)
        assert len(tries) == MAX_PATH_OPEN_TRIES


@pytest.mark.parametrize("times", [1, 2, 3, 4, 5, 6])
async def test_no_write_lands_behind_a_link_that_was_swapped_in(root, tmp_path, times):
    (root / "e").mkdir()
    asked = []
    async with box(root, tmp_path, "e", "e-link", times, asked) as toolbox:
        await toolbox.call("write", {"path": "e/new.json", "content": "x"})
    assert not (root / ".vscode" / "new.json").exists()


async def test_a_write_through_a_link_is_judged_by_where_it_leads(root, tmp_path):
    asked = []
    async with box(root, tmp_path, "pub", "pub-link", 0, asked) as toolbox:
        result = await toolbox.call("write", {"path": "e-link/new.json", "content": "x"})
    assert result.status == "denied"
    assert [approval.preview.count(".vscode/new.json") > 0 for approval in asked] == [True]


@pytest.mark.parametrize("path", ["pub-link", "d-link/f"])
@pytest.mark.parametrize("tool", ["read", "attach", "grep"])
async def test_a_link_to_something_private_is_private(root, tmp_path, tool, path):
    async with box(root, tmp_path, "pub", "pub-link", 0) as toolbox:
        args = {"attach": {"paths": [path]}, "grep": {"path": path, "pattern": "TOKEN"}}
        result = await toolbox.call(tool, args.get(tool, {"path": path}))
    assert result.status == "denied"


async def test_what_makes_a_repository_is_asked_about_whichever_tool_makes_it(root, tmp_path):
    asked = []
    async with box(root, tmp_path, "pub", "pub-link", 0, asked) as toolbox:
        assert (await toolbox.call("write", {"path": "commondir", "content": "d\n"})).ok
        result = await toolbox.call("write", {"path": "HEAD", "content": "ref: refs/heads/x\n"})
    assert result.status == "denied"
    assert not (root / "HEAD").exists()


class PartParams(BaseModel):
    path: str = "f"
    start: int = 0
    size: int | None = None


@tool(effects=("read",))
async def part(ctx: Context, params: PartParams) -> Result[PartParams]:
    """Read a part of a file."""
    data = await ctx.files.read(params.path, start=params.start, size=params.size)
    return Result(f"<{data.decode()}>", params)


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ({}, "abcdef"),
        ({"size": 4}, "abcd"),
        ({"start": 1}, "bcdef"),
        ({"start": 2}, "cdef"),
        ({"start": 2, "size": 3}, "cde"),
        ({"start": 6}, ""),
    ],
)
async def test_a_tool_that_reads_a_part_of_a_file_has_that_part(wanted, text):
    box = memory_toolbox({"f": b"abcdef"}, tools=[part])
    assert (await box.call("part", wanted)).text == f"<{text}>"


@pytest.mark.parametrize("size", [None, UNTHREADED_READ_BYTES, UNTHREADED_READ_BYTES + 5])
async def test_a_large_file_is_read_as_far_as_it_was_asked_for(size):
    whole = b"x" * (UNTHREADED_READ_BYTES + 10)
    had = []

    @tool(effects=("read",))
    async def measure(ctx: Context, params: PartParams) -> Result[PartParams]:
        """Read it."""
        had.append(await ctx.files.read(params.path, size=params.size))
        return Result("done", params)

    assert (await memory_toolbox({"f": whole}, tools=[measure]).call("measure", {"size": size})).ok
    assert had == [whole[:size]]


class LostSearch(MemorySearch):
    """A search that finds nothing in the time that it is given."""

    def __init__(self):
        super().__init__(MemoryFiles())
        self.given = []

    async def paths(self, scope, **_):
        self.given.append(scope.timeout)
        raise TimedOut("The search took too long.", hint="Search less.")


async def test_a_missing_file_is_looked_for_elsewhere_once_and_for_two_seconds_at_most():
    search = LostSearch()
    box = Toolbox([read], workspace=replace(memory_workspace({"a/b": b""}), search=search))
    result = await box.call("read", {"path": "lost.py"})
    assert result.fault.code == "not_found"
    assert search.given == [2.0]


@pytest.mark.parametrize(
    ("tool", "args"), [("read", {"path": "output:x"}), ("attach", {"paths": ["output:x"]})]
)
async def test_an_output_that_is_gone_is_said_to_be_gone(tool, args):
    box = memory_toolbox(tools=EVERYTHING, callbacks=Callbacks(deliver=delivered))
    result = await box.call(tool, args)
    assert result.fault.code == "not_found"
    assert "no longer stored" in result.text


@tool(effects=("read",), paths=lambda _: ("../outside", "src/setings.py"))
async def miss(ctx: Context, params: PartParams) -> Result[PartParams]:
    """Find nothing."""
    raise NotFound("Neither is there.", hint="Look elsewhere.")


async def test_near_names_are_told_though_another_path_of_the_call_leads_out():
    result = await memory_toolbox({"src/settings.py": b""}, tools=[miss]).call("miss", {})
    assert result.fault.code == "not_found"
    assert "Did you mean src/settings.py? Look elsewhere." in result.text


async def test_near_names_are_looked_up_for_two_missing_paths_of_a_call():
    names = ("one.py", "two.py", "three.py")

    @tool(effects=("read",), paths=lambda _: [f"a/{name}" for name in names])
    async def miss_three(ctx: Context, params: PartParams) -> Result[PartParams]:
        """Find nothing."""
        raise NotFound("None is there.", hint="Look elsewhere.")

    box = memory_toolbox({f"b/{name}": b"" for name in names}, tools=[miss_three])
    text = (await box.call("miss_three", {})).text
    assert "Did you mean b/one.py? Did you mean b/two.py? Look elsewhere." in text


@pytest.mark.parametrize("is_shown", [True, False])
async def test_only_what_was_shown_is_known_and_not_what_was_read(is_shown):
    @tool(effects=("read",))
    async def look(ctx: Context, params: PartParams) -> Result[PartParams]:
        """Read a file."""
        data = await ctx.files.read(params.path)
        if is_shown:
            await ctx.files.mark_shown(params.path, data)
        return Result("looked", params)

    @tool(effects=("read",))
    async def recall(ctx: Context, params: PartParams) -> Result[PartParams]:
        """Tell what was last read."""
        return Result(f"{await ctx.files.last_read_bytes(params.path)}", params)

    box = memory_toolbox({"f": b"abcdef"}, tools=[look, recall])
    assert (await box.call("look", {})).ok
    assert (await box.call("recall", {})).text == ("b'abcdef'" if is_shown else "None")


class LookParams(BaseModel):
    path: str


@tool(effects=("read",), paths=lambda _: ())
async def stat(ctx: Context, params: LookParams) -> Result[LookParams]:
    """Tell what is at a path."""
    facts = await ctx.files.facts(params.path)
    return Result(f"{facts.kind} {facts.bytes} {facts.mode:o} {facts.modified}", params)


@tool(effects=("read",), paths=lambda _: ())
async def entries(ctx: Context, params: LookParams) -> Result[LookParams]:
    """Tell what is in a folder, and what is near a path."""
    names = [facts.path for facts in await ctx.files.names(params.path)]
    return Result(f"{names} {await ctx.files.missing_path_hint(params.path)!r}", params)


@pytest.mark.parametrize("tool", ["stat", "entries"])
async def test_not_even_the_facts_of_what_a_rule_hides_are_told(tool):
    box = memory_toolbox({".ssh/id_rsa": b"x"}, tools=[stat, entries])
    result = await box.call(tool, {"path": ".ssh"})
    assert result.status == "denied"


async def test_an_output_is_a_private_file_of_no_known_time_with_nothing_in_or_near_it():
    box = memory_toolbox(tools=[stat, entries])
    box.workspace.output_store.put(b"12345", name="x.txt")
    assert (await box.call("stat", {"path": "output:x.txt"})).text == "file 5 600 0.0"
    assert (await box.call("entries", {"path": "output:x.txt"})).text == "[] ''"


async def test_an_output_is_shown_by_its_name_whatever_the_workspace_has_under_it():
    async def deliver(attachment):
        return f"delivered {attachment.path}: {attachment.data!r}"

    files = {"output:x.txt": Node("link", b"mine"), "mine": b"other"}
    box = memory_toolbox(files, tools=[attach], callbacks=Callbacks(deliver=deliver))
    box.workspace.output_store.put(b"12345", name="x.txt")
    result = await box.call("attach", {"paths": ["output:x.txt"]})
    assert "delivered output:x.txt: b'12345'" in result.text


@pytest.mark.parametrize("path", ["skill:", "skill:/leaf.md"])
async def test_a_path_of_no_skill_says_how_one_is_written(path):
    result = await memory_toolbox().call("read", {"path": path})
    assert f"`{path}` has no skill name. Use `skill:NAME/path`." in result.text


@pytest.mark.parametrize(
    ("files", "lost", "told"),
    [
        (["a/x.py", "b/x.py", "c/x.py", "d/x.py"], "x.py", 3),
        (["a/x.py"], "x.py", 1),
        (["a/x.py"], "[a-z].py", 0),
        (["a/x.py"], "*.py", 0),
    ],
    ids=["four of its name", "one of its name", "letters of a glob", "stars of a glob"],
)
async def test_a_missing_file_is_told_once_with_up_to_three_others_of_its_very_name(files, lost, told):
    result = await memory_toolbox(dict.fromkeys(files, b"")).call("read", {"path": f"src/{lost}"})
    assert result.fault.code == "not_found"
    assert result.text.count("Did you mean") == (1 if told else 0)
    assert sum(path in result.text for path in files) == told


@tool(effects=("change",), paths=lambda params: (params.path,))
async def put(ctx: Context, params: LookParams) -> Result[LookParams]:
    """Make a file, and tell what was recorded."""
    done = await ctx.files.apply(ChangeSet.of(Change.of(params.path, before=None, after=b"new")))
    return Result(" ".join(f"{touched.path} {touched.action}" for touched in done.touched), params)


@pytest.mark.parametrize("path", ["d/new", ".vscode/new"], ids=["plain", "asked about"])
async def test_a_change_is_announced_and_its_record_is_handed_to_the_tool(path):
    async def yes(_):
        return Reply(True)

    events = []
    async with memory_toolbox({"d/f": b""}, tools=[put], approver=yes, listeners=[events.append]) as box:
        result = await box.call(Call(tool="put", args={"path": path}, id="c"))
    assert f"{path} created" in result.text
    assert [event for event in events if isinstance(event, Changed)] == [Changed("c", result.changes)]


async def test_a_link_in_the_place_of_head_makes_a_repository_as_a_file_does():
    asked = []

    async def no(approval):
        asked.append(approval.rule)
        return Reply(False)

    box = memory_toolbox({"HEAD": Node("link", b"elsewhere"), "elsewhere": b""}, approver=no)
    result = await box.call("write", {"path": "config", "content": "[core]\n"})
    assert result.status == "denied"
    assert ["git would treat as a repository" in rule for rule in asked] == [True]


async def test_a_hard_link_that_is_removed_changes_nothing_for_the_others(root, tmp_path):
    os.link(root / "d" / "f", root / "same")
    async with box(root, tmp_path, "pub", "pub-link", 0) as toolbox:
        patch = "*** Begin Patch\n*** Delete File: same\n*** End Patch\n"
        result = await toolbox.call("patch", {"patch": patch})
    assert result.ok
    assert "hard link" not in result.text
    assert (root / "d" / "f").read_text() == "open\n"
