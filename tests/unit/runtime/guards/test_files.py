"""Guarded paths: what is opened is what was judged, also when a link is swapped in between."""

import os

import pytest

from handtools.core.approval import Reply
from handtools.core.callbacks import Callbacks
from handtools.host.files.local_files import LocalFiles
from handtools.toolbox import EVERYTHING, Toolbox, local_workspace

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


def box(root, tmp_path, one, other, times=1, asked=None):
    async def no(approval):
        asked.append(approval)
        return Reply(False)

    files = SwappedFiles(root, one, other, times)
    workspace = local_workspace(root, files=files, state=tmp_path / "state")

    async def deliver(attachment):
        return f"delivered {attachment.data!r}"

    approver = None if asked is None else no
    return Toolbox(EVERYTHING, workspace=workspace, approver=approver, callbacks=Callbacks(deliver=deliver))


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
async def test_a_link_that_is_gone_again_costs_another_look_until_there_are_too_many(
    root, tmp_path, times, shown
):
    files = BlinkingFiles(root, "d", "d-link", times)
    workspace = local_workspace(root, files=files, state=tmp_path / "state")
    async with Toolbox(EVERYTHING, workspace=workspace) as toolbox:
        result = await toolbox.call("read", {"path": "d/f"})
    assert ("open" in result.text) == shown
    assert shown or result.fault.code == "stale"
    assert SECRET not in result.text


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
