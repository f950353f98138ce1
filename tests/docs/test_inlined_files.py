"""A block that is marked as a file (`<!-- file: examples/… -->`) is that file as it stands, which tests run."""

import re
from pathlib import Path

import pytest

from tests.docs.test_examples import markdown
from tests.shape.reading import ROOT

INLINED = re.compile(r"<!-- file: (\S+) -->\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)
PAGES = [path for path in markdown(ROOT) if "<!-- file: " in path.read_text("utf-8")]


def stale_files(page: str, root: Path) -> list[str]:
    return [name for name, block in INLINED.findall(page) if (root / name).read_text("utf-8") != block]


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_the_files_in_the_page_are_those_of_the_repository(page: Path) -> None:
    text = page.read_text("utf-8")
    assert len(INLINED.findall(text)) == text.count("<!-- file: "), "a mark with no block after it"
    assert stale_files(text, ROOT) == []


def test_a_file_that_changed_since_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("new = 1\n", "utf-8")
    page = "<!-- file: a.py -->\n```python\nold = 1\n```\n"
    assert stale_files(page, tmp_path) == ["a.py"]
    assert stale_files(page.replace("old", "new"), tmp_path) == []
