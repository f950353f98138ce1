"""Every implementation of a port, to be held to one contract."""

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from handtools.core.changes import Node
from handtools.core.files import HostFiles
from handtools.host.files import syscalls
from handtools.host.files.backups import FolderBackups
from handtools.host.files.local_files import LocalFiles
from handtools.testing.memory_files_and_search import MEMORY_ROOT, MemoryFiles

MakeFiles = Callable[[Mapping[str, bytes | Node]], HostFiles]
LOCAL = ["kernel", "walk", "old kernel", "no handles"]
LARGE = ["large", "large, old kernel"]
"""As if every file were large: none is copied, each is moved aside as it is."""


def lay_out(root: Path, content: Mapping[str, bytes | Node]) -> None:
    """Put a tree on disk without our code."""
    for path, given in content.items():
        node = Node("file", given) if isinstance(given, bytes) else given
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if node.kind == "link":
            place.symlink_to(node.data.decode())
        elif node.kind == "folder":
            place.mkdir(exist_ok=True)
        else:
            place.write_bytes(node.data)
        if node.mode is not None:
            place.chmod(node.mode)


def forget_calls(patch: pytest.MonkeyPatch, *, handles: bool) -> None:
    """Make the machine one that has none of the calls beyond Python's own."""
    patch.setattr(syscalls, "_load_syscalls", lambda: None)
    patch.setattr(syscalls, "has_openat2", lambda: False)
    patch.setattr(syscalls, "can_reopen_path_handles", lambda: False)
    patch.setattr(syscalls, "try_read_lease", lambda fd: "unavailable")
    patch.setattr(syscalls, "HAS_DIR_FD", handles)


@pytest.fixture(params=[*LOCAL, *LARGE, "memory"])
def make_files(request, tmp_path, monkeypatch) -> MakeFiles:
    """Build a workspace that holds some files."""
    if request.param == "memory":
        return MemoryFiles
    if request.param in {"old kernel", "no handles", "large, old kernel"}:
        forget_calls(monkeypatch, handles=request.param != "no handles")
    root = tmp_path / "workspace"
    root.mkdir()

    def make(content):
        lay_out(root, content)
        if request.param in LARGE:
            return LocalFiles(root, vault=FolderBackups(tmp_path / "vault"), large_bytes=0)
        return LocalFiles(root, kernel=request.param == "kernel")

    return make


@pytest.fixture
def absolute(make_files, tmp_path) -> str:
    """What an absolute path below the workspace starts with."""
    return MEMORY_ROOT if make_files is MemoryFiles else str(tmp_path / "workspace")
