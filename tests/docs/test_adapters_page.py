"""The page about the adapters says what the contract found, with the versions that are locked."""

import re

import pytest

from tests.adapters.drivers import CELLS
from tests.docs.adapters_page import PAGE, REQUIREMENTS, adapters, found, page


def test_the_page_is_made_from_what_was_found():
    assert PAGE.read_text("utf-8") == page(), "run `just docs` and commit the page"


@pytest.mark.parametrize("name", [f"{name}{which}" for name in adapters() for which in ("", "-floor")])
def test_what_was_found_is_whole_and_of_the_versions_that_are_locked(name):
    run = found(name)
    assert list(run["cells"]) == list(CELLS)
    pins = (REQUIREMENTS / f"{name}.txt").read_text("utf-8")
    locked = dict(re.findall(r"(?m)^([\w.-]+)==([^\s;]+)", pins))
    assert run["versions"] == {package: locked[package] for package in run["versions"]}, (
        "run `just adapters`, then `just docs`, and commit both"
    )
