"""The page about the Python API is made from the code, and shows every public name in an example that runs."""

import re

import handtools
from tests.docs.api_examples import PARTS
from tests.docs.api_page import PAGE, page


def test_the_page_is_made_from_the_code():
    assert PAGE.read_text("utf-8") == page(), "run `just docs` and commit the page"


def test_every_public_name_stands_once_on_the_page_and_in_an_example():
    shown = [name for part in PARTS for name in part.names]
    assert sorted(shown) == sorted(handtools.__all__)
    for part in PARTS:
        assert set(part.names) <= set(re.findall(r"\w+", part.code)), part.title


def test_every_public_name_has_a_docstring_of_its_own():
    for name in handtools.__all__:
        said = getattr(handtools, name).__doc__
        assert said, name
        assert not said.startswith(f"{name}("), name
