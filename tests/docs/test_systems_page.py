"""The page of what is used of the system is what the code says, and no part has a failure on it."""

import json

from handtools.host.linux_feature_fallbacks import SYSTEM_PARTS
from tests.docs.systems_page import FIGURES, PAGE, page
from tests.portable.hiding import PARTS


def test_the_page_is_what_the_code_says():
    assert PAGE.read_text("utf-8") == page(), "just docs"


def test_every_part_of_the_table_can_be_hidden_and_no_other():
    assert sorted(PARTS) == sorted(part.name for part in SYSTEM_PARTS)


def test_the_figures_are_of_parts_and_without_failures():
    figures = json.loads(FIGURES.read_text("utf-8"))
    assert set(figures) <= {*PARTS, "all"}
    assert {*PARTS, "all"} <= figures.keys()
    assert not [name for name, each in figures.items() if each["failed"] or each["error"]]
