"""Edits of a server: applied to the characters that it means, or refused as a whole."""

import pytest

from handtools.core.errors import OutsideWorkspace, Stale
from handtools.host.language.lsp_client import DocumentFiles
from handtools.host.language.lsp_requests import files_of_workspace_edit


def span(line, start, end, text, end_line=None):
    last = line if end_line is None else end_line
    return {
        "range": {"start": {"line": line, "character": start}, "end": {"line": last, "character": end}},
        "newText": text,
    }


@pytest.fixture
def texts(tmp_path):
    return DocumentFiles(str(tmp_path))


def test_positions_count_units_of_utf_16_and_line_ends_stay(texts, tmp_path):
    (tmp_path / "a.py").write_bytes("😀 old\r\nold\r\n".encode())
    edit = {"changes": {texts.uri("a.py"): [span(1, 0, 3, "new"), span(0, 3, 6, "new")]}}
    (file,) = files_of_workspace_edit(edit, texts)
    assert file.after == "😀 new\r\nnew\r\n".encode()
    assert file.before == "😀 old\r\nold\r\n".encode()


def test_files_are_made_moved_and_deleted(texts, tmp_path):
    (tmp_path / "old.py").write_bytes(b"x\n")
    (tmp_path / "gone.py").write_bytes(b"y\n")
    steps = [
        {"kind": "create", "uri": texts.uri("made.py")},
        {"textDocument": {"uri": texts.uri("made.py")}, "edits": [span(0, 0, 0, "z\n")]},
        {"kind": "rename", "oldUri": texts.uri("old.py"), "newUri": texts.uri("new.py")},
        {"kind": "delete", "uri": texts.uri("gone.py")},
    ]
    found = {
        file.path: (file.before, file.after)
        for file in files_of_workspace_edit({"documentChanges": steps}, texts)
    }
    assert found == {
        "made.py": (None, b"z\n"),
        "old.py": (b"x\n", None),
        "new.py": (None, b"x\n"),
        "gone.py": (b"y\n", None),
    }


def test_a_file_outside_refuses_the_whole(texts, tmp_path):
    (tmp_path / "a.py").write_bytes(b"x\n")
    for uri in ("file:///etc/passwd", f"{texts.uri('a.py')}/../../../../etc/passwd", "untitled:x"):
        edit = {"changes": {texts.uri("a.py"): [span(0, 0, 1, "y")], uri: [span(0, 0, 0, "z")]}}
        with pytest.raises(OutsideWorkspace):
            files_of_workspace_edit(edit, texts)


def test_edits_that_overlap_are_refused(texts, tmp_path):
    (tmp_path / "a.py").write_bytes(b"abcdef\n")
    with pytest.raises(Stale):
        files_of_workspace_edit(
            {"changes": {texts.uri("a.py"): [span(0, 0, 4, "x"), span(0, 2, 5, "y")]}}, texts
        )
