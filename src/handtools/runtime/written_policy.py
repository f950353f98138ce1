"""A policy as people write it down: TOML with the words of `Policy` and `Rule`."""

import tomllib
from dataclasses import fields
from typing import Any, get_args

from handtools.core.effects import EffectKind
from handtools.core.errors import UsageError
from handtools.runtime.deciding import Verdict
from handtools.runtime.policy import DEFAULTS, Policy, ToolSet
from handtools.runtime.rules import Rule

LISTS = ("allow", "block", "excluded", "hosts")
CHOICES = {"tools": get_args(ToolSet), "unattended": get_args(Verdict)}
RULE_LISTS = {field.name for field in fields(Rule)} - {"name", "verdict", "reason"}


def read_policy(text: str, where: str) -> Policy:
    """The policy of a file's text. Its rules come beside the built-in ones; unknown words are refused."""
    try:
        written = tomllib.loads(text)
    except tomllib.TOMLDecodeError as problem:
        raise UsageError(f"{where} is no TOML: {problem}.") from problem
    try:
        return _policy(written)
    except UsageError as problem:
        raise UsageError(f"{where}: {problem}") from problem


def _policy(written: dict[str, Any]) -> Policy:
    _known(written, {*LISTS, *CHOICES, "defaults", "rule"}, "The policy")
    values: dict[str, Any] = {name: _words(written[name], name) for name in LISTS if name in written}
    for name, choices in CHOICES.items():
        if name in written:
            values[name] = _one_of(written[name], choices, name)
    defaults: Any = _table(written.get("defaults", {}), "defaults")
    _known(defaults, set(get_args(EffectKind)), "[defaults]")
    for kind, verdict in defaults.items():
        _one_of(verdict, get_args(Verdict), f"the default for {kind}")
    rules = written.get("rule", [])
    if not isinstance(rules, list):
        raise UsageError("rules are written as [[rule]] tables.")
    policy = Policy(**values, defaults=DEFAULTS | defaults)
    return policy.with_rules([_rule(_table(one, "a rule")) for one in rules])


def _rule(table: dict[str, Any]) -> Rule:
    name = str(table.get("name", ""))
    if not name or "verdict" not in table:
        raise UsageError("every rule needs a name and a verdict.")
    _known(table, {"name", "verdict", "reason", *RULE_LISTS}, f"Rule {name!r}")
    lists: dict[str, Any] = {key: _words(table[key], key) for key in RULE_LISTS if key in table}
    if "effects" in lists:
        for effect in lists["effects"]:
            _one_of(effect, get_args(EffectKind), f"an effect of rule {name!r}")
        lists["effects"] = frozenset(lists["effects"])
    reason = str(table.get("reason", "The policy file says so."))
    return Rule(name, table["verdict"], reason, **lists)


def _known(table: dict[str, Any], known: set[str], where: str) -> None:
    if unknown := sorted(set(table) - known):
        said = ", ".join(unknown)
        raise UsageError(f"{where} says {said}, which means nothing. Known: {', '.join(sorted(known))}.")


def _table(value: Any, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UsageError(f"{where} is a table.")
    return value


def _words(value: Any, where: str) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
        raise UsageError(f"{where} is a list of words.")
    return tuple(value)


def _one_of(value: Any, choices: tuple[str, ...], where: str) -> str:
    if value not in choices:
        raise UsageError(f"{where} is one of {', '.join(choices)}, and not {value!r}.")
    return str(value)
