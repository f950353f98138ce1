from pathlib import Path

import pytest

from handtools.fleet.workspaces import WorkspaceQuota, WorkspaceStore


@pytest.fixture
def files(tmp_path: Path) -> WorkspaceStore:
    """A store with one template, whose digest is its only one."""
    source = tmp_path / "source"
    (source / "pkg").mkdir(parents=True)
    (source / "a.txt").write_text("".join(f"line {number}\n" for number in range(20)))
    (source / "pkg" / "b.txt").write_text("b\n")
    store = WorkspaceStore(tmp_path / "fleet", quota=WorkspaceQuota(bytes=1 << 20))
    store.templates.add_folder(source)
    return store
