"""A handle of a folder leads to what is in it, and to nothing else."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from handtools.host.files.folder_handle import FolderHandle, open_inner_folder
from handtools.host.files.folder_trees import SubfolderCache, copy_tree, remove_tree

USES: list[Callable[[FolderHandle, str], Any]] = [
    FolderHandle.child,
    FolderHandle.stat,
    FolderHandle.open_file,
    FolderHandle.unlink,
    FolderHandle.remove_folder,
    FolderHandle.create_folder,
    FolderHandle.link_target,
    remove_tree,
    lambda folder, name: folder.create_file(name, 0o600),
    lambda folder, name: folder.create_link(name, b"x"),
    lambda folder, name: folder.set_mode(name, 0o777),
    lambda folder, name: folder.replace("mine", name),
    lambda folder, name: copy_tree(folder, name, folder, "copy"),
]


@pytest.fixture
def inner(tmp_path: Path) -> Path:
    folder = tmp_path / "inner"
    (folder / "sub").mkdir(parents=True)
    (folder / "mine").write_text("mine")
    (tmp_path / "victim").mkdir(0o700)
    (tmp_path / "victim" / "file").write_text("theirs")
    return folder


@pytest.mark.parametrize("use", USES)
@pytest.mark.parametrize("name", ["..", "../victim", "sub/../../victim", "", "/etc", "sub/x"])
def test_no_operation_takes_a_name_that_leads_elsewhere(
    inner: Path, use: Callable[[FolderHandle, str], Any], name: str
) -> None:
    with FolderHandle.at(str(inner)) as folder, pytest.raises(OSError, match="Not the name"):
        use(folder, name)
    assert sorted(os.listdir(inner)) == ["mine", "sub"]
    assert (inner.parent / "victim" / "file").read_text() == "theirs"
    assert (inner.parent / "victim").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    "path", ["..", "../victim", "sub/../../victim", "sub/..", "/etc", "sub//x", "./sub"]
)
def test_no_folder_is_opened_by_a_path_that_is_not_plain(inner: Path, path: str) -> None:
    with FolderHandle.at(str(inner)) as folder, pytest.raises(OSError, match="Not a plain path"):
        open_inner_folder(folder, path)


@pytest.mark.parametrize("path", ["..", "../victim", "sub/../../victim", "sub/.."])
def test_a_walk_does_not_climb(inner: Path, path: str) -> None:
    with (
        FolderHandle.at(str(inner)) as folder,
        SubfolderCache(folder) as subtree,
        pytest.raises(OSError, match="Not the name"),
    ):
        subtree.folder(path)
