"""The page of settings says what the schema says."""

import re
from pathlib import Path

from handtools.configuration import policy_of_config_file
from handtools.configuration.origins import ENVIRONMENT_VARIABLES
from handtools.configuration.schema import parse_config_file
from tests.docs.settings_page import EXAMPLE, PAGE, page

SOURCE = Path(__file__).parents[2] / "src/handtools"
OF_OUR_OWN = {
    "HANDTOOLS_RUN",
    "HANDTOOLS_FLEET_ADDRESS",
    "HANDTOOLS_FLEET_TOKEN",
    "HANDTOOLS_FLEET_WORKSPACE",
    "HANDTOOLS_MCP_CONFIG",
    "HANDTOOLS_TASK",
}
"""Set by us for processes that we start."""


def test_the_page_is_current():
    assert PAGE.read_text("utf-8") == page(), "run `just docs`"


def test_the_example_is_a_configuration():
    values, _ = parse_config_file(EXAMPLE, "the page")
    assert values.limits.memory == 4 << 30
    assert policy_of_config_file(values).defaults == {"run": "ask"}


def test_every_environment_variable_of_ours_is_named():
    text = "".join(path.read_text("utf-8") for path in SOURCE.rglob("*.py"))
    assert set(re.findall(r"\"(HANDTOOLS_[A-Z_]+)\"", text)) - OF_OUR_OWN == set(ENVIRONMENT_VARIABLES)
