"""Every folder beside this file is a call with what it starts from and what it must leave: see README.md."""

import json
from pathlib import Path
from typing import Any

import pytest

from handtools.testing.memory_toolbox import memory_toolbox
from handtools.toolbox import CODING
from handtools.tools.text_editor import text_editor

HERE = Path(__file__).parent
FOLDERS = sorted(path for path in HERE.iterdir() if (path / "call.json").is_file())
TOOLS = [*CODING, text_editor("text_editor_20250124"), text_editor("text_editor_20250728")]
FEWEST = 60


def tree(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def loaded(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
async def test_the_call_leaves_what_is_expected_and_says_so(folder: Path) -> None:
    before = tree(folder / "input")
    box = memory_toolbox(before, tools=TOOLS)
    calls = loaded(folder / "call.json")
    *first, last = calls if isinstance(calls, list) else [calls]
    for call in first:
        done = await box.call(call["tool"], call["args"])
        assert done.ok, done.text
    result = await box.call(last["tool"], last["args"])

    wanted = loaded(folder / "result.json")
    assert result.status == wanted["status"], result.text
    assert (result.fault.code if result.fault else None) == wanted.get("code"), result.text
    for said in wanted.get("says", []):
        assert said in result.text
    for unsaid in wanted.get("never_says", []):
        assert unsaid not in result.text
    details = result.details.model_dump() if result.details else {}
    for name, value in wanted.get("details", {}).items():
        assert details[name] == value, name
    expected = folder / "expected"
    assert box.workspace.files.files == (tree(expected) if expected.is_dir() else before)


def test_there_are_enough_of_them_and_their_numbers_are_unique() -> None:
    numbers = [folder.name.partition("_")[0] for folder in FOLDERS]
    assert len(FOLDERS) >= FEWEST
    assert len(set(numbers)) == len(numbers)


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)
def test_a_refusal_expects_no_change_and_a_success_says_what_it_expects(folder: Path) -> None:
    wanted = loaded(folder / "result.json")
    assert set(wanted) <= {"status", "code", "says", "never_says", "details"}
    assert (wanted["status"] == "ok") == ("code" not in wanted)
    calls = loaded(folder / "call.json")
    if wanted["status"] != "ok" and not isinstance(calls, list):
        assert not (folder / "expected").exists()
