"""Rules of a site's robots.txt (RFC 9309): whether a crawler may fetch a path."""

import re
from collections.abc import Iterator

MAX_ROBOTS_CHARS = 500_000
_LINE = re.compile(r"[ \t]*([A-Za-z-]+)[ \t]*:[ \t]*([^#\r\n]*)")


def robots_allow(text: str, agent: str, path: str) -> bool:
    """Whether robots.txt allows an agent to fetch a path; the longest rule decides, on a tie `allow`."""
    rules = [(len(rule), allowed) for rule, allowed in _rules(text, agent) if _matches(rule, path)]
    return max(rules, default=(0, True))[1]


def _rules(text: str, agent: str) -> list[tuple[str, bool]]:
    """Return the rules of all groups that name the agent; if none does, the rules of the groups for `*`."""
    groups = list(_groups(text[:MAX_ROBOTS_CHARS]))
    ours = [rule for names, rules in groups if agent.lower() in names for rule in rules]
    named = any(agent.lower() in names for names, _ in groups)
    return ours if named else [rule for names, rules in groups if "*" in names for rule in rules]


def _groups(text: str) -> Iterator[tuple[set[str], list[tuple[str, bool]]]]:
    names, rules, naming = set[str](), list[tuple[str, bool]](), False
    for line in text.splitlines():
        found = _LINE.match(line)
        if found is None:
            continue
        field, value = found[1].lower(), found[2].strip()
        if field == "user-agent":
            if not naming:
                yield names, rules
                names, rules = set(), []
            names.add(value.lower().partition("/")[0])
            naming = True
        elif field in {"allow", "disallow"}:
            naming = False
            if value:
                rules.append((value, field == "allow"))
    yield names, rules


def _matches(rule: str, path: str) -> bool:
    """Whether a path matches a rule: by prefix, with `*` for anything and `$` for the end.

    Takes time linear in the path per star.
    """
    ends = rule.endswith("$")
    first, *others = rule.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    last = others.pop() if ends and others else None
    for part in others:
        at = path.find(part, at)
        if at < 0:
            return False
        at += len(part)
    if last is not None:
        return path.endswith(last) and len(path) - len(last) >= at
    return not ends or at == len(path)
