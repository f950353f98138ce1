"""Rules over hosts."""

import pytest

from handtools import Policy, Rule, UsageError
from handtools.core.commands import Command
from handtools.core.effects import CommandRun, ReadEffect, effect_fingerprint, effect_targets
from handtools.core.web import Visit


def visit(host: str, port: int = 443, url: str = "") -> Visit:
    return Visit(host=host, port=port, url=url)


DOCS = Rule("docs", "allow", "They are public.", hosts=("docs.example", "*.docs.example:8080"))
EVIL = Rule(
    "evil", "deny", "It is known for it.", hosts=("*.evil.example", "evil.example"), match=("evil.example",)
)

OFFLINE = Rule("offline", "deny", "Nobody goes anywhere.")
KEYS = Rule("keys", "deny", "They are secret.", paths=("*.key",))


@pytest.mark.parametrize(
    ("policy", "wanted", "verdict", "rule"),
    [
        (Policy(), visit("a.example"), "ask", "default for visit"),
        (Policy(hosts=("a.example",)), visit("a.example"), "allow", "hosts"),
        (Policy(hosts=("a.example",)), visit("a.example", 80), "allow", "hosts"),
        (Policy(hosts=("a.example",)), visit("a.example", 8080), "ask", "default for visit"),
        (Policy(hosts=("a.example",)), visit("b.a.example"), "ask", "default for visit"),
        (Policy(rules=(DOCS,)), visit("docs.example"), "allow", "docs"),
        (Policy(rules=(DOCS,)), visit("x.docs.example", 8080), "allow", "docs"),
        (Policy(rules=(DOCS,)), visit("x.docs.example"), "ask", "default for visit"),
        (Policy(rules=(EVIL,), hosts=("x.evil.example",)), visit("x.evil.example"), "deny", "evil"),
        (Policy(rules=(OFFLINE,), hosts=("a.example",)), visit("a.example"), "deny", "offline"),
        (Policy(excluded=("a.example",)), visit("a.example"), "ask", "default for visit"),
        (Policy(rules=(KEYS,)), visit("a.key"), "ask", "default for visit"),
    ],
)  # fmt: skip
def test_a_visit_is_judged_by_rules_about_hosts_and_by_no_others(policy, wanted, verdict, rule):
    decision = policy.decide(wanted, "fetch")
    assert (decision.verdict, decision.rule) == (verdict, rule)


def test_a_rule_about_hosts_says_nothing_about_files_and_commands():
    policy = Policy(rules=(EVIL,))
    assert policy.decide(ReadEffect(("evil.example",)), "read").verdict == "allow"
    run = CommandRun(Command(script="evil.example"), confined=True)
    assert policy.decide(run, "bash").verdict == "allow"


def test_a_rule_may_be_for_one_tool():
    policy = Policy(
        rules=(Rule("search", "allow", "It is ours.", hosts=("s.example",), tools=("web_search",)),)
    )
    assert policy.decide(visit("s.example"), "web_search").verdict == "allow"
    assert policy.decide(visit("s.example"), "fetch").verdict == "ask"
    assert policy.opens("s.example", 443, "web_search")
    assert not policy.opens("s.example", 443, "fetch")


def test_only_what_is_listed_by_itself_is_opened():
    policy = Policy(hosts=("10.0.0.0/8:8080", "localhost:3000"), rules=(DOCS, Rule("all", "allow", "x")))
    assert policy.opens("10.1.2.3", 8080, "fetch")
    assert policy.opens("localhost", 3000, "fetch")
    assert policy.opens("docs.example", 443, "fetch")
    assert not policy.opens("10.1.2.3", 80, "fetch")
    assert not policy.opens("127.0.0.1", 3000, "fetch")
    assert not policy.opens("other.example", 443, "fetch")


@pytest.mark.parametrize("verdict", ["ask", "deny"])
def test_a_rule_that_does_not_allow_a_host_opens_nothing(verdict):
    policy = Policy(rules=(Rule("lan", verdict, "Ours.", hosts=("10.0.0.1:8080",)),))
    assert not policy.opens("10.0.0.1", 8080, "fetch")


@pytest.mark.parametrize(
    "rule",
    [
        Rule("bad", "allow", "x", hosts=("a b",)),
        Rule("both", "allow", "x", hosts=("a.example",), paths=("*.py",)),
        Rule("both", "allow", "x", hosts=("a.example",), commands=("curl",)),
        Rule("wrong", "allow", "x", hosts=("a.example",), match=("b.example",)),
        Rule("wrong", "allow", "x", hosts=("a.example:81",), match=("a.example",)),
        Rule("wrong", "allow", "x", hosts=("*.example",), not_match=("a.example:80",)),
    ],
)
def test_a_rule_that_can_not_be_meant_is_refused(rule):
    with pytest.raises(UsageError, match=rule.name):
        Policy(rules=(rule,))


def test_an_answer_for_a_host_holds_for_its_pages_and_for_both_usual_ports():
    first, other = (
        visit("a.example", 80, "http://a.example/"),
        visit("a.example", 443, "https://a.example/x"),
    )
    assert effect_fingerprint(first) == effect_fingerprint(other)
    assert effect_targets(first) == ("a.example",)
    assert effect_fingerprint(visit("a.example", 81)) != effect_fingerprint(first)
    assert effect_fingerprint(visit("b.example", 80)) != effect_fingerprint(first)
    assert visit("::1", 81).place == "[::1]:81"
