"""What stands in the record for something that another process takes away while it is looked at."""

import os

from handtools.core.changes import Node
from handtools.host.files.folder_handle import FolderHandle
from handtools.host.files.folder_trees import TreeEntry
from handtools.host.sandbox.change_capture import NodeReader


def test_a_link_that_became_a_folder_meanwhile_is_like_nothing_that_can_be_there(tmp_path):
    os.symlink("target", tmp_path / "spot")
    found = os.lstat(tmp_path / "spot")
    (tmp_path / "spot").unlink()
    (tmp_path / "spot").mkdir()
    with FolderHandle.at(os.fspath(tmp_path)) as folder:
        node = NodeReader().node(TreeEntry("spot", folder, "spot", found), ref="old")
    assert node.kind == "link"
    assert not node.same(Node("link", b"target"))
    assert not node.same(Node("folder", mode=0o755))
