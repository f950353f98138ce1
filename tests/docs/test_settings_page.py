"""The page of settings says what the model says."""

import re
from pathlib import Path

from handtools.configuration import COMMAND_LIMIT_KEYS, SETTINGS_KEYS, settings_from_toml
from handtools.runtime.policy.project_policy import PROJECT_POLICY_KEYS

PAGE = (Path(__file__).parents[2] / "docs/reference/settings.md").read_text("utf-8")


def rows(head):
    table = PAGE[PAGE.index(head) :].partition("\n\n")[0]
    return re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)


def test_every_key_has_its_row():
    assert rows("| key | value") == [*SETTINGS_KEYS]
    assert rows("| key of `[limits]`") == [*COMMAND_LIMIT_KEYS]


def test_the_example_is_a_settings_file():
    example = re.search(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    assert settings_from_toml(example[1], "the page").limits.memory_bytes == 4 << 30


def test_what_a_project_may_say_is_named():
    about = PAGE[PAGE.index("## A project's own file") :].partition("\n## ")[0]
    assert all(f"`{key}`" in about for key in (*PROJECT_POLICY_KEYS, "limits"))
