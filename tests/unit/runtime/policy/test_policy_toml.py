"""A policy as people write it down."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handtools import Policy, UsageError
from handtools.core.effects import ReadEffect
from handtools.core.web import Visit
from handtools.runtime.policy import policy_from_toml
from handtools.runtime.policy.rules import PRIVATE_RULE, PROTECTED_RULE

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


def test_an_empty_file_is_the_built_in_policy():
    assert policy_from_toml("", "policy.toml") == Policy()


def test_every_word_of_a_policy_can_be_written():
    policy = policy_from_toml(WHOLE, "policy.toml")
    assert policy.rules[:2] == (PRIVATE_RULE, PROTECTED_RULE)
    assert [rule.name for rule in policy.rules[2:]] == ["migrations", "tests"]
    assert policy.rules[2].effects == {"change"}
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
        ("rules = 1", "which means nothing"),
        ("unattended = 'maybe'", "one of"),
        ("block = 'bash'", "a list of words"),
        ("[defaults]\nrun = 'perhaps'", "the default for run"),
        ("[defaults]\nfly = 'ask'", "`fly`, which means nothing"),
        ("[[rule]]\nname = 'x'", "needs a name and a verdict"),
        ("[[rule]]\nname = 'x'\nverdict = 'no'", "no verdict"),
        (
            "[[rule]]\nname = 'x'\nverdict = 'deny'\npath = ['a']",
            "`path` (did you mean `paths`?)",
        ),
        ("[[rule]]\nname = 'x'\nverdict = 'deny'\neffects = ['fly']", "an effect of rule 'x'"),
        ("[[rule]]\nname = 'x'\nverdict = 'deny'\npaths = ['a']\nmatch = ['b']", "its examples say"),
        ("rule = 1", "[[rule]]"),
        ("defaults = 1", "is a table"),
        ("=", "is no TOML"),
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
