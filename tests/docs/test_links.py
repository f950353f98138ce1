"""Links between our pages lead somewhere."""

import re
from pathlib import Path

import pytest

from tests.docs.test_examples import markdown
from tests.shape.reading import ROOT

LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def dead_links(page: Path) -> list[str]:
    prose = re.sub(r"```.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
    targets = (target.partition("#")[0] for target in LINK.findall(prose) if "://" not in target)
    return [target for target in targets if target and not (page.parent / target).exists()]


@pytest.mark.parametrize("page", markdown(ROOT), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_link_of_the_page_is_dead(page: Path) -> None:
    assert dead_links(page) == []


def test_the_index_has_every_page_once() -> None:
    docs = ROOT / "docs"
    listed = LINK.findall((docs / "index.md").read_text("utf-8"))
    assert sorted(set(listed)) == sorted(listed)
    sdks = {
        f"how-to/{target}"
        for target in LINK.findall((docs / "how-to" / "agent-sdks.md").read_text("utf-8"))
    }
    folders = ("tutorial", "how-to", "explanation", "reference")
    pages = {
        path.relative_to(docs).as_posix() for folder in folders for path in (docs / folder).glob("*.md")
    }
    assert pages - sdks - set(listed) == set()


def test_a_dead_link_is_noticed(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[there](page.md#part) and [gone](gone.md)", "utf-8")
    assert dead_links(page) == ["gone.md"]
