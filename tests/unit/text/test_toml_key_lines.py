"""Where the keys of a TOML file stand."""

import tomllib

from hypothesis import given
from hypothesis import strategies as st

from handtools.text.toml_parsing import toml_key_lines

TEXT = '''\
# a comment = 1
hosts = [
    "a",  # ] not the end
    """x
    runner = 1""",
]
runner = "plain"

[limits]
memory = 1
[tool.handtools]
block = []
[[rule]]
name = "x"
[[rule]]
name = """
name = 2
"""
verdict = "deny"
[tool.handtools.defaults]
run.fast = 1
notify = { bell = true }
'''


def test_each_key_has_the_line_on_which_its_statement_begins():
    assert toml_key_lines(TEXT) == {
        ("hosts",): 2,
        ("runner",): 7,
        ("limits",): 9,
        ("limits", "memory"): 10,
        ("tool", "handtools"): 11,
        ("tool", "handtools", "block"): 12,
        ("rule", 0): 13,
        ("rule", 0, "name"): 14,
        ("rule", 1): 15,
        ("rule", 1, "name"): 16,
        ("rule", 1, "verdict"): 19,
        ("tool", "handtools", "defaults"): 20,
        ("tool", "handtools", "defaults", "run"): 21,
        ("tool", "handtools", "defaults", "run", "fast"): 21,
        ("tool", "handtools", "defaults", "notify"): 22,
        ("tool", "handtools", "defaults", "notify", "bell"): 22,
    }


def test_a_value_of_very_many_lines_takes_no_minutes():
    text = "a = [\n" + "1,\n" * 20_000 + "]\nb = 1\n"
    assert tomllib.loads(text)["b"] == 1
    assert ("b",) not in toml_key_lines(text)


@given(st.text())
def test_any_text_is_looked_at_without_a_failure(text):
    toml_key_lines(text)
