"""The page about walls says what the table says."""

from tests.docs.walls_page import PAGE, page


def test_the_page_is_made_from_the_table():
    assert PAGE.read_text("utf-8") == page(), "run `just docs` and commit the page"
