"""The keys of a policy as people write them down, in a file of their own or in the configuration."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools import Policy, UsageError
from handtools.configuration import policy_of_config_file
from handtools.configuration.schema import POLICY_KEYS, DefaultsTable, parse_config_file
from handtools.core.commands import PublishedPort
from handtools.core.effects import EFFECT_KINDS, Publication, ReadEffect
from handtools.core.web import Visit
from handtools.runtime.policy.rules import BUILT_IN_RULES

WHOLE = """
unattended = "deny"
tools = "coding"
block = ["jobs"]
excluded = ["vendor/**"]
hosts = ["docs.example.org"]

[defaults]
run = "deny"

[[rule]]
name = "migrations"
verdict = "ask"
reason = "A person looks at migrations."
effects = ["change"]
paths = ["migrations/**"]
match = ["migrations/1.sql"]
not_match = ["src/a.py"]

[[rule]]
name = "tests"
verdict = "allow"
commands = ["pytest"]
"""


def policy_from_toml(text, where):
    return policy_of_config_file(parse_config_file(text, where, keys=POLICY_KEYS)[0])


def test_every_kind_of_effect_has_a_default():
    assert set(DefaultsTable.model_fields) == EFFECT_KINDS


def test_an_empty_file_is_the_built_in_policy():
    assert policy_from_toml("", "policy.toml") == Policy()


def test_every_word_of_a_policy_can_be_written():
    policy = policy_from_toml(WHOLE, "policy.toml")
    assert policy.rules[: len(BUILT_IN_RULES)] == BUILT_IN_RULES
    own = policy.rules[len(BUILT_IN_RULES) :]
    assert [rule.name for rule in own] == ["migrations", "tests"]
    assert own[0].effects == {"change"}
    assert (policy.unattended, policy.tools, policy.block) == ("deny", "coding", ("jobs",))
    assert policy.defaults == {"run": "deny"}
    assert policy.excluded == ("vendor/**",)
    assert policy.hosts == ("docs.example.org",)


def test_what_is_private_stays_so_whatever_is_allowed():
    rule = '[[rule]]\nname = "all"\nverdict = "allow"\npaths = ["**"]'
    assert policy_from_toml(rule, "p").decide(ReadEffect((".env",)), "read").verdict == "deny"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("rules = 1", "`rules` (did you mean `rule`?) is not a known key"),
        ("unattended = 'maybe'", "unattended must be one of"),
        ("block = 'bash'", "a list of strings"),
        ("[defaults]\nrun = 'perhaps'", "defaults.run must be one of"),
        ("[defaults]\nfly = 'ask'", "`fly` is not a known key"),
        ("[[rule]]\nname = 'x'", "needs a name and a verdict"),
        ("[[rule]]\nname = 'x'\nverdict = 'no'", "rule.verdict must be one of"),
        (
            "[[rule]]\nname = 'x'\nverdict = 'deny'\npath = ['a']",
            "`path` (did you mean `paths`?)",
        ),
        ("[[rule]]\nname = 'x'\nverdict = 'deny'\neffects = ['fly']", "rule.effects must be one of"),
        (
            "[[rule]]\nname = 'x'\nverdict = 'deny'\npaths = ['a']\nmatch = ['b']",
            "contradicts its examples",
        ),
        ("rule = 1", "[[rule]]"),
        ("defaults = 1", "must be a table"),
        ("=", "not valid TOML"),
    ],
)
def test_what_can_not_be_meant_is_refused_with_the_name_of_the_file(text, told):
    with pytest.raises(UsageError) as caught:
        policy_from_toml(text, "/etc/policy.toml")
    assert str(caught.value).startswith("/etc/policy.toml")
    assert told in str(caught.value)


@given(st.text())
def test_no_text_does_more_than_be_refused(text):
    with contextlib.suppress(UsageError):
        assert isinstance(policy_from_toml(text, "p"), Policy)


def test_a_rule_about_hosts_can_be_written():
    text = '[[rule]]\nname = "pastes"\nverdict = "deny"\nhosts = ["*.paste.example"]\n'
    policy = policy_from_toml(text, "policy.toml")
    assert policy.decide(Visit(host="a.paste.example", port=443), "fetch").rule == "pastes"
    with pytest.raises(UsageError, match="is not a host"):
        policy_from_toml(text.replace("*.paste", "no host"), "policy.toml")


def publication(port):
    return Publication(job="job1", script="x", where=PublishedPort(port, port))


def test_a_policy_file_lists_ports_as_numbers_and_as_ranges():
    text = 'ports = [3000, "8000-8999"]\n[defaults]\npublish = "deny"\n'
    policy = policy_from_toml(text, "policy.toml")
    assert policy.ports == ("3000", "8000-8999")
    assert policy.decide(publication(8080), "jobs").verdict == "allow"
    assert policy.decide(publication(80), "jobs").verdict == "deny"


@pytest.mark.parametrize(
    "written", ['["x"]', "[0]", "[65536]", '["9-8"]', "[true]", "3000", '["1-2-3"]', "[1.5]"]
)
def test_what_is_no_port_does_not_load(written):
    with pytest.raises(UsageError):
        policy_from_toml(f"ports = {written}", "policy.toml")
