"""Depending: a change inside a body concerns nobody else; one of a head concerns those who name it."""

import pytest

from handtools.host.language.change_diagnostics import ChangedDefinitions, dependent_files
from handtools.host.language.lsp_client import DocumentFiles

pytestmark = pytest.mark.anyio

SOURCE = "def area(width):\n    total = width\n    return total\n\n\ndef other():\n    return 1\n"


async def touched(before, after):
    return await ChangedDefinitions().touched("a.py", before, after)


async def test_a_body_touches_nobody():
    assert await touched(SOURCE, SOURCE.replace("return total", "return total + 1")) == set()


async def test_a_head_touches_its_name_before_and_after():
    assert await touched(SOURCE, SOURCE.replace("area(width)", "area(breadth)")) == {"area"}
    assert await touched(SOURCE, SOURCE.replace("def area", "def surface")) == {"area", "surface"}


async def test_a_definition_that_goes_or_comes_counts():
    assert "other" in await touched(SOURCE, SOURCE.replace("def other():\n    return 1\n", ""))
    assert "new" in await touched(SOURCE, SOURCE + "\n\ndef new():\n    return 2\n")


async def test_what_is_remembered_of_a_body_is_still_right_after_it():
    heads = ChangedDefinitions()
    first = SOURCE.replace("return total", "return total + 1")
    await heads.touched("a.py", SOURCE, first)
    assert await heads.touched("a.py", first, first.replace("other()", "other(x)")) == {"other"}


def test_files_that_name_it_come_newest_first(tmp_path):
    import os

    for age, name in enumerate(("old.py", "new.py", "none.py", "note.txt")):
        (tmp_path / name).write_text("area(1)\n" if name != "none.py" else "areas(1)\n")
        os.utime(tmp_path / name, (1000 + age, 1000 + age))
    found = dependent_files(str(tmp_path), DocumentFiles(str(tmp_path)), ["area"], (".py",))
    assert found == ["new.py", "old.py"]
