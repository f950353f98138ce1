"""A folder that an editor has open: tools read and change what it shows, saved or not."""

from pathlib import Path

import pytest

from handtools import Toolbox, local_workspace
from handtools.core.call import Call
from handtools.core.changes import Change, ChangeSet, Node
from handtools.core.errors import StorageFault
from handtools.host.files.editor_files import MAX_BUFFER_BYTES
from handtools.runtime.journal.change_entries import Transaction
from handtools.toolbox import CODING


class Editor:
    """Keeps what it is told to write without saving it, except for files that are not there yet.

    `normal` is an editor that keeps byte order mark and line ends apart from the text, as most do.
    """

    def __init__(self, root: Path, unsaved: dict[str, str], *, normal: bool = False) -> None:
        self.root, self.texts, self.normal = root, dict(unsaved), normal
        self.asked: list[str] = []
        self.refuses: set[str] = set()

    def read(self, path: str) -> str | None:
        self.asked.append(path)
        if path in self.texts:
            return self.texts[path]
        if not (self.root / path).is_file():
            return None
        text = (self.root / path).read_bytes().decode()
        return text.removeprefix("\ufeff").replace("\r\n", "\n") if self.normal else text

    def write(self, path: str, text: str) -> None:
        if path in self.refuses:
            raise StorageFault(f"The editor did not write `{path}`.")
        if (self.root / path).exists():
            self.texts[path] = text
        else:
            (self.root / path).write_text(text)


@pytest.fixture
def root(tmp_path) -> Path:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "app.py").write_text("saved = 1\n")
    return folder


def opened(root: Path, unsaved: dict[str, str] | None = None, **options) -> tuple[Editor, Toolbox]:
    editor = Editor(root, unsaved or {}, **options)
    workspace = local_workspace(root, buffers=editor, state=root.parent / "state")
    return editor, Toolbox(CODING, workspace=workspace)


async def test_an_edit_and_its_undo_are_made_in_the_editor_and_not_on_the_disk(root):
    editor, box = opened(root, {"app.py": "unsaved = 1\n"})
    edit = {"path": "app.py", "old_string": "unsaved = 1", "new_string": "edited = 2"}
    assert (await box.call("edit", edit)).ok
    assert editor.texts == {"app.py": "edited = 2\n"}
    assert "edited = 2" in (await box.call("grep", {"pattern": "edited"})).text
    assert (await box.call("undo", {"name": "app.py"})).ok
    assert editor.texts == {"app.py": "unsaved = 1\n"}
    assert (root / "app.py").read_text() == "saved = 1\n"


async def test_an_editor_that_keeps_line_ends_apart_gets_its_own_form_and_the_record_the_files(root):
    (root / "dos.txt").write_bytes(b"\xef\xbb\xbfone\r\ntwo\r\n")
    editor, box = opened(root, normal=True)
    result = await box.call("edit", {"path": "dos.txt", "old_string": "two", "new_string": "2"})
    assert result.ok, result.text
    assert editor.texts == {"dos.txt": "one\n2\n"}
    assert box.workspace.files.read("dos.txt") == b"\xef\xbb\xbfone\r\n2\r\n"
    assert (await box.call("undo", {"name": "dos.txt"})).ok
    assert editor.texts == {"dos.txt": "one\ntwo\n"}
    assert box.workspace.files.read("dos.txt") == b"\xef\xbb\xbfone\r\ntwo\r\n"


async def test_only_utf8_text_of_moderate_size_is_the_editors(root):
    (root / "latin.txt").write_bytes("größe = 1\n".encode("latin-1"))
    (root / "picture.bin").write_bytes(b"\0\1\2")
    (root / "large.txt").write_text("x = 1\n" * (MAX_BUFFER_BYTES // 6 + 1) + "end\n")
    editor, box = opened(root)
    for path, old in (("latin.txt", "1"), ("large.txt", "end")):
        result = await box.call("edit", {"path": path, "old_string": old, "new_string": "2"})
        assert result.ok, result.text
    await box.call("read", {"path": "picture.bin"})
    await box.call("grep", {"pattern": "nowhere"})
    assert (root / "latin.txt").read_bytes() == "größe = 2\n".encode("latin-1")
    assert set(editor.asked) == {"app.py"}


async def test_a_file_with_unsaved_text_is_not_deleted(root):
    editor, box = opened(root, {"app.py": "unsaved = 1\n"})
    gone = "*** Begin Patch\n*** Delete File: app.py\n*** End Patch\n"
    result = await box.call("patch", {"patch": gone})
    assert result.fault is not None
    assert result.fault.code == "stale"
    assert "save" in result.text
    assert (root / "app.py").exists()
    del editor.texts["app.py"]
    assert (await box.call("patch", {"patch": gone})).ok
    assert not (root / "app.py").exists()


async def test_a_text_that_was_never_saved_is_not_overwritten(root):
    editor, box = opened(root, {"new.py": "the person's\n"})
    result = await box.call("write", {"path": "new.py", "content": "ours\n"})
    assert result.fault is not None
    assert result.fault.code == "stale"
    assert editor.texts == {"new.py": "the person's\n"}
    assert not (root / "new.py").exists()


async def test_when_the_editor_refuses_one_file_the_others_are_taken_back_on_disk_too(root):
    (root / "b.txt").write_text("b\n")
    (root / "old.txt").write_text("old\n")
    editor, box = opened(root, {"app.py": "unsaved = 1\n"})
    editor.refuses = {"b.txt"}
    patch = (
        "*** Begin Patch\n*** Delete File: old.txt\n*** Update File: app.py\n-unsaved = 1\n+u = 1\n"
        "*** Add File: deep/new.txt\n+new\n*** Update File: b.txt\n-b\n+B\n*** End Patch\n"
    )
    result = await box.call("patch", {"patch": patch})
    assert result.fault is not None
    assert result.fault.code == "storage"
    assert editor.texts == {"app.py": "unsaved = 1\n"}
    assert sorted(path.name for path in root.iterdir()) == ["app.py", "b.txt", "old.txt"]
    assert (root / "old.txt").read_text() == "old\n"


async def test_a_change_that_a_crash_left_open_is_finished_or_taken_back_with_the_editor(root):
    editor, box = opened(root, {"app.py": "after = 1\n"})
    entries, files = box.workspace.journal.entries, box.workspace.files
    change = Change("app.py", Node("file", b"before = 1\n"), Node("file", b"after = 1\n"))
    changes = ChangeSet.of(change)
    entries.intend(Call(tool="edit", args={}), Transaction(changes), files.plan(changes), ordinal=0)
    assert (await box.call("read", {"path": "app.py"})).ok
    assert entries.has_only_finished_entries
    assert (await box.call("undo", {"name": "app.py"})).ok
    assert editor.texts == {"app.py": "before = 1\n"}


async def test_a_large_folder_is_asked_about_in_part_and_the_answer_says_so(root):
    for number in range(4):
        (root / f"{number}.py").write_text("nothing\n")
    editor, box = opened(root, {"0.py": "unsaved\n"})
    box.workspace.search._max_asked_files = 2
    result = await box.call("grep", {"pattern": "unsaved"})
    assert "Only 2 of 5 files were checked" in result.text
    assert "0.py" in (await box.call("grep", {"pattern": "unsaved", "path": "0.py"})).text
    # What had unsaved text once is asked about in every later search.
    assert "0.py" in (await box.call("grep", {"pattern": "unsaved"})).text
    assert editor.asked
