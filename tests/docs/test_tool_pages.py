"""The reference pages say what the code says."""

import pytest

from tests.docs.tool_pages import FOLDER, pages


@pytest.mark.parametrize("name", pages())
def test_the_page_is_current(name: str) -> None:
    assert (FOLDER / name).read_text("utf-8") == pages()[name], "run `just docs`"


def test_no_page_is_left_of_a_tool_that_is_gone() -> None:
    assert {path.name for path in FOLDER.glob("*.md")} == set(pages())
