"""The page of the command line has every command, and its help as it is."""

import pytest

from tests.docs.cli_page import HEADING, PAGE, help_of_commands, page

HELP = help_of_commands()


def test_the_help_on_the_page_is_current():
    assert PAGE.read_text("utf-8") == page(), "run `just docs`"


@pytest.mark.parametrize("name", HELP)
def test_every_command_has_a_row_and_an_example(name):
    by_hand = PAGE.read_text("utf-8").partition(HEADING)[0]
    assert f"\n| `{name}`" in by_hand or f"\n| `{name} " in by_hand
    assert f"\n  Example: handtools {name}" in HELP[name]
