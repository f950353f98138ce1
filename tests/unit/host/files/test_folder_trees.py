"""Copies of trees."""

import os

import pytest

from handtools.host.files.folder_handle import FolderHandle
from handtools.host.files.folder_trees import copy_tree
from handtools.host.files.kernel_leases import read_bytes_at


@pytest.mark.parametrize("most", [1, 700])
def test_a_copy_is_whole_though_the_system_writes_little_at_once(tmp_path, monkeypatch, most):
    content = bytes(range(256)) * 20
    (tmp_path / "old").mkdir()
    (tmp_path / "old" / "file").write_bytes(content)
    write = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, at: write(fd, data[:most], at))
    with FolderHandle.at(str(tmp_path)) as folder:
        copy_tree(folder, "old", folder, "new")
    assert (tmp_path / "new" / "file").read_bytes() == content


def test_a_range_is_read_whole_though_the_system_reads_little_at_once(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"0123456789")
    read = os.pread
    monkeypatch.setattr(os, "pread", lambda fd, size, at: read(fd, min(size, 3), at))
    with (tmp_path / "file").open("rb") as file:
        assert read_bytes_at(file.fileno(), 8, 1) == b"12345678"
        assert read_bytes_at(file.fileno(), 100, 4) == b"456789"
