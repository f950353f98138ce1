"""Where a path leads, and what is said of one that leads nowhere good."""

import errno
import os

import pytest

from handtools.core.errors import InvalidInput, OutsideWorkspace, SymlinkInPath
from handtools.host.files.folder_handle import FolderHandle
from handtools.host.files.path_resolution import WorkspaceRoot, symlink_in_path_error
from handtools.host.workspace_folders import combined_workspace


@pytest.fixture(params=[True, False], ids=["kernel", "by name"])
def root(request, tmp_path):
    return WorkspaceRoot(tmp_path, kernel=request.param)


@pytest.fixture
def several(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    for name in ("api", "web"):
        (tmp_path / name).mkdir()
    return WorkspaceRoot(combined_workspace([tmp_path / "api", tmp_path / "web"]), kernel=True)


def test_a_name_that_can_not_be_one_on_the_disk_is_refused(root):
    with pytest.raises(OutsideWorkspace):
        root.relative_located_path("a\ud800")
    assert root.relative_located_path("é\udcff") == "é\udcff"


def test_a_chain_of_forty_links_is_followed_and_a_longer_one_refused(root, tmp_path):
    (tmp_path / "end").write_bytes(b"")
    (tmp_path / "1").symlink_to("end")
    for number in range(2, 42):
        (tmp_path / f"{number}").symlink_to(f"{number - 1}")
    assert root.locate("40") == "end"
    with pytest.raises(OSError, match="too many symlinks") as refused:
        root.locate("41")
    assert refused.value.errno == errno.ELOOP


def test_absolute_links_and_links_that_climb_end_inside(root, tmp_path):
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "up").symlink_to("../d/./e//")
    (tmp_path / "top").symlink_to(tmp_path)
    (tmp_path / "far").symlink_to(tmp_path / "d" / "up")
    assert root.locate("d/up/new") == "d/e/new"
    assert root.locate("top/d") == "d"
    assert root.locate("top") == ""
    assert root.locate("far/x/y") == "d/e/x/y"
    (tmp_path / "d" / "e" / "away").symlink_to(tmp_path / "d")
    assert root.locate("d/e/away/new") == "d/new"


@pytest.mark.linux("folder handles")
def test_a_link_behind_a_path_that_is_longer_than_the_kernel_takes_is_followed(root, tmp_path):
    deep = "/".join(["d" * 250] * 17)
    here = os.open(tmp_path, os.O_RDONLY)
    for name in deep.split("/"):
        os.mkdir(name, dir_fd=here)
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.symlink("end", "link", dir_fd=here)
    os.close(here)
    assert root.locate(f"{deep}/link") == f"{deep}/end"


def test_locating_leaves_no_handle_open(root, tmp_path):
    (tmp_path / "d" / "e").mkdir(parents=True)
    (tmp_path / "d" / "e" / "away").symlink_to(tmp_path / "d")
    free = _next_handle()
    for path in ("d/e/new", "d/e/away/new", "d/none/new"):
        root.locate(path)
        assert _next_handle() == free


def _next_handle():
    handle = os.open(os.devnull, os.O_RDONLY)
    os.close(handle)
    return handle


def test_a_link_that_leads_out_is_refused(root, tmp_path):
    (tmp_path / "out").symlink_to("/etc")
    (tmp_path / "above").symlink_to("../..")
    (tmp_path / "gone").symlink_to("none/../x")
    for name in ("out", "out/passwd", "above"):
        with pytest.raises(OSError) as refused:
            root.locate(name)
        assert refused.value.errno == errno.EXDEV
    with pytest.raises(FileNotFoundError):
        root.locate("gone")


def test_a_link_into_another_folder_of_the_workspace_has_the_path_there(several, tmp_path):
    (tmp_path / "web" / "page").mkdir()
    (tmp_path / "api" / "whole").symlink_to(tmp_path / "web")
    (tmp_path / "api" / "climbs").symlink_to("../web/page")
    assert several.locate("api/whole") == "web"
    assert several.locate("api/whole/page/new") == "web/page/new"
    assert several.locate("api/climbs/new") == "web/page/new"
    assert several.relative(str(tmp_path / "web" / "page")) == "web/page"
    assert several.relative(str(tmp_path / "web")) == "web"
    (tmp_path / "api" / "dots").symlink_to(f"{tmp_path}/web/./none/../page")
    (tmp_path / "web" / "none").mkdir()
    assert several.locate("api/dots") == "web/page"
    (tmp_path / "api" / "twice").symlink_to(f"../../././{tmp_path.name}/web")
    assert several.locate("api/twice/new") == "web/new"
    (tmp_path / "webs").mkdir()
    (tmp_path / "api" / "beside").symlink_to("../webs")
    with pytest.raises(OSError, match="above"):
        several.locate("api/beside")


def test_links_in_a_circle_between_folders_are_refused(several, tmp_path):
    (tmp_path / "api" / "round").symlink_to(tmp_path / "web" / "round")
    (tmp_path / "web" / "round").symlink_to(tmp_path / "api" / "round")
    with pytest.raises(OSError, match="too many symlinks") as refused:
        several.locate("api/round")
    assert refused.value.errno == errno.ELOOP


@pytest.mark.parametrize("swaps", [1, 32, 33])
def test_a_folder_that_becomes_a_link_on_the_way_is_followed_as_one(tmp_path, monkeypatch, swaps):
    """Somebody swaps it between our look and our step: so often in a row is it looked at again, then refused."""
    root = WorkspaceRoot(tmp_path, kernel=False)
    (tmp_path / "real" / "x").mkdir(parents=True)
    (tmp_path / "d").mkdir()
    step = FolderHandle.child
    left = [swaps]

    def swapped_meanwhile(folder, name, **flags):
        if name != "d" or not left[0]:
            return step(folder, name, **flags)
        left[0] -= 1
        (tmp_path / "d").rmdir()
        (tmp_path / "d").symlink_to("real")
        try:
            return step(folder, name, **flags)
        finally:
            if left[0]:
                (tmp_path / "d").unlink()
                (tmp_path / "d").mkdir()

    monkeypatch.setattr(FolderHandle, "child", swapped_meanwhile)
    if swaps <= 32:
        assert root.locate("d/x/new") == "real/x/new"
    else:
        with pytest.raises(NotADirectoryError):
            root.locate("d/x/new")


def test_a_change_outside_of_several_folders_is_refused_with_their_names(several):
    several.check_changeable("api/new")
    with pytest.raises(InvalidInput, match="`api` is a workspace folder"):
        several.check_changeable("api")
    with pytest.raises(InvalidInput) as refused:
        several.check_changeable("x" * 300)
    assert str(refused.value).startswith(f"`{'x' * 200}` is not in any workspace folder")
    assert "`api`, `web`" in str(refused.value)


def test_a_long_path_is_shown_in_part(root):
    with pytest.raises(OutsideWorkspace) as refused:
        root.relative("/" + "x" * 300)
    assert f"`/{'x' * 199}`" in str(refused.value)
    assert f"`{'x' * 200}`" in str(symlink_in_path_error("x" * 300))


def test_a_link_in_the_way_of_a_located_path_is_refused(root, tmp_path):
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "f").write_bytes(b"12")
    os.symlink("d", tmp_path / "link")
    os.symlink("d/f", tmp_path / "file")
    assert root.stat("d/f").st_size == 2
    for name in ("link/f", "file"):
        with pytest.raises(SymlinkInPath, match="A symlink has appeared in the path"):
            root.stat(name)
        with pytest.raises(SymlinkInPath, match="A symlink has appeared in the path"):
            root.stat_and_open_path(name)
