"""What robots.txt says to a program that nobody steers."""

import pytest

from handtools.runtime.guards.web import robots_allow

RULES = """
# everyone
User-agent: *
Disallow: /private
Allow: /private/open
Disallow: /*.pdf$
Disallow:

User-agent: handtools/1.0
User-Agent: other
Disallow: /ours
"""


@pytest.mark.parametrize(
    ("agent", "path", "allowed"),
    [
        ("someone", "/", True),
        ("someone", "/private", False),
        ("someone", "/private/x", False),
        ("someone", "/private/open/x", True),
        ("someone", "/a/b.pdf", False),
        ("someone", "/a/b.pdf?x", True),
        ("HandTools", "/private", True),
        ("handtools", "/ours/x", False),
        ("other", "/ours/x", False),
        ("handtools", "/", True),
    ],
)
def test_the_longest_rule_of_our_group_decides(agent, path, allowed):
    assert robots_allow(RULES, agent, path) is allowed


@pytest.mark.parametrize(
    ("rule", "path", "allowed"),
    [
        ("/a*b", "/axxb/c", False),
        ("/a*b$", "/axxb/c", True),
        ("/a*b*c$", "/a1b2c", False),
        ("/$", "/", False),
        ("/$", "/x", True),
        ("*", "/x", False),
        ("/a*a$", "/a", True),
    ],
)
def test_stars_and_the_end(rule, path, allowed):
    assert robots_allow(f"User-agent: *\nDisallow: {rule}", "x", path) is allowed


def test_no_rules_allow_everything():
    assert robots_allow("", "x", "/")
    assert robots_allow("Disallow: /", "x", "/")
