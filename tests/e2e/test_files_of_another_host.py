"""Files that an embedding program brings, such as an editor's buffers: every tool sees those, and not the disk."""

import tempfile

import pytest

from handtools import Toolbox, local_workspace
from handtools.core.changes import Change, Node
from handtools.core.search import SearchScope
from handtools.host.search.copied_files_search import CopiedFilesSearch
from handtools.testing.memory_files_and_search import MemoryFiles
from handtools.toolbox import CODING

BUFFERS = {"src/app.py": b"unsaved = 1\n", "notes.md": b"nothing\n", ".env": b"KEY=secret-of-the-person\n"}


@pytest.fixture
def box(tmp_path, monkeypatch):
    (tmp_path / "copies").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "copies"))
    root = tmp_path / "work"
    (root / "src").mkdir(parents=True)
    (root / "src" / "app.py").write_text("saved = 1\n")
    (root / "only_on_disk.py").write_text("unsaved = 2\n")
    workspace = local_workspace(root, files=MemoryFiles(BUFFERS), state=tmp_path / "state")
    return Toolbox(CODING, workspace=workspace)


async def test_searches_and_lists_tell_what_reading_tells(box):
    assert "unsaved = 1" in (await box.call("read", {"path": "src/app.py"})).text
    hits = await box.call("grep", {"pattern": "saved"})
    assert "src/app.py" in hits.text
    assert "1:unsaved = 1" in hits.text
    assert "only_on_disk" not in hits.text
    assert "only_on_disk" not in (await box.call("find", {"pattern": "*.py"})).text
    listed = (await box.call("list", {})).text
    assert "notes.md" in listed
    assert "only_on_disk" not in listed


async def test_a_search_sees_the_edit_before_it(box):
    await box.call("grep", {"pattern": "unsaved"})
    await box.call("edit", {"path": "src/app.py", "old_string": "unsaved", "new_string": "renamed"})
    assert "renamed = 1" in (await box.call("grep", {"pattern": "renamed"})).text
    assert "No matches" in (await box.call("grep", {"pattern": "unsaved"})).text
    await box.call("undo", {"scope": "path", "name": "src/app.py"})
    assert "unsaved = 1" in (await box.call("grep", {"pattern": "unsaved"})).text


async def test_private_files_are_not_copied_for_a_search(box, tmp_path):
    await box.call("grep", {"pattern": "secret", "include_ignored": True})
    copies = [path for path in (tmp_path / "copies").rglob("*") if path.is_file()]
    assert "app.py" in {path.name for path in copies}
    assert not any(b"secret-of-the-person" in path.read_bytes() for path in copies)


async def test_the_copy_follows_a_file_that_becomes_a_folder_and_back(tmp_path):
    files = MemoryFiles({"a": b"x\n"})
    search = CopiedFilesSearch(files, tmp_path)
    assert await names(search) == ["a"]
    files.perform(files.plan([Change("a", Node("file", b"x\n"), None)]))
    files.perform(
        files.plan([Change("a", None, Node("folder")), Change("a/b", None, Node("file", b"y\n"))])
    )
    assert await names(search) == ["a/b"]


async def names(search: CopiedFilesSearch) -> list[str]:
    found = await search.paths(SearchScope(), wanted="file", most=9, admit=lambda paths: paths)
    return [entry.path for entry in found.found]
