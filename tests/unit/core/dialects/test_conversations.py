"""A conversation in each dialect, made here: what each call means in ours, and what the model reads of it."""

import json
from pathlib import Path
from typing import Any

import pytest

from handtools import Call, coding
from handtools.core.dialects.all_dialects import DIALECTS
from handtools.toolbox import Toolbox

PNG = bytes.fromhex(
    "89504e470d0a1a0a0000000d49484452000000010000000108060000001f15c4890000000d49444154789c6360f8cfc0f01f0005050202"
    "5fc8f1d20000000049454e44ae426082"
)
CONVERSATIONS = Path(__file__).parent / "conversations"
FILES = {"tea.py": b'print("green")\n', "notes/README.md": b"# Notes\n", "pot.png": PNG}


@pytest.fixture
def folders(tmp_path, monkeypatch):
    monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("HANDTOOLS_LANGUAGE", "off")
    found = tmp_path / "theirs" / "work", tmp_path / "ours" / "work"
    for folder in found:
        for path, content in FILES.items():
            file = folder / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)
    return found


def journal(box: Toolbox, root: Path) -> list[tuple[str, Any, str]]:
    """Tool, arguments and status of every call that is recorded, oldest first."""
    rows = box.workspace.journal.calls.page(limit=100)
    found = [(row.tool, dict(row.args), row.status) for row in sorted(rows, key=lambda row: row.seq)]
    return json.loads(json.dumps(found).replace(str(root), "$WORK"))


def tree(root: Path) -> dict[str, bytes]:
    return {
        str(file.relative_to(root)): file.read_bytes()
        for file in sorted(root.rglob("*"))
        if file.is_file() and "__pycache__" not in file.parts
    }


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.linux("bubblewrap or Landlock")  # else somebody is asked
async def test_a_conversation_leaves_the_journal_and_the_files_that_our_own_calls_leave(name, folders):
    steps = json.loads((CONVERSATIONS / f"{name}.json").read_text())
    theirs, ours = folders
    async with coding(theirs) as box, coding(ours) as own:
        view = box.in_dialect(name)
        used = set()
        for step in steps:
            used.add(step["tool"])
            args = json.loads(json.dumps(step["args"]).replace("$WORK", str(theirs)))
            result = await view.call(Call(tool=step["tool"], args=args))
            read = result.text.replace(str(theirs), "$WORK")
            assert result.status == step.get("status", "ok"), read
            for text in step["reads"]:
                assert text in read
            for tool, meant in step["ours"]:
                plain = json.loads(json.dumps(meant).replace("$WORK", str(ours)))
                await view_of_ours(own, name).call(Call(tool=tool, args=plain))
        assert used == {definition.name for definition in view.definitions()}
        expected = [[tool, args] for step in steps for tool, args in step["ours"]]
        assert [row[:2] for row in journal(box, theirs)] == expected
        assert journal(box, theirs) == journal(own, ours)
    assert tree(theirs) == tree(ours)


def view_of_ours(box: Toolbox, name: str) -> Toolbox:
    """A toolbox that has the vendor's editor too, and takes our own names."""
    view = box.in_dialect(name)
    return Toolbox(tuple(view.tools.values()), workspace=box.workspace)
