"""The policy of a project's own file: it may be hostile, so it may only tighten the person's policy.

ADR 166.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from handtools.core.effects import EffectKind
from handtools.runtime.policy import Policy, policy_from_table
from handtools.runtime.policy.rules import VERDICT_STRENGTH, Rule, Verdict

PROJECT_POLICY_KEYS = ("block", "defaults", "excluded", "rule", "unattended")
"""Policy keys that a project's file may use."""
PROJECT_RULE_PREFIX = "project: "
"""What the names of a project's rules begin with, so that none passes for a rule of the person's."""


@dataclass(frozen=True, slots=True)
class TightenedPolicy:
    """A policy with what a project's file adds to it, and a sentence for each key that would have widened it."""

    policy: Policy
    ignored: tuple[str, ...]


def tightened_policy(policy: Policy, written: Mapping[str, Any]) -> TightenedPolicy:
    """Tighten a policy by the policy keys of a project's file; raises `UsageError` for malformed values."""
    project = policy_from_table({key: written[key] for key in PROJECT_POLICY_KEYS if key in written})
    ignored: list[str] = []
    unattended = policy.unattended
    if "unattended" in written:
        if _weaker(project.unattended, unattended):
            ignored.append(f'`unattended = "{project.unattended}"` is weaker than yours.')
        else:
            unattended = project.unattended
    defaults = dict(policy.defaults)
    for kind, verdict in project.defaults.items():
        if _weaker(verdict, policy.default_verdict(kind)):
            ignored.append(f'the default `{kind} = "{verdict}"` is weaker than yours.')
        else:
            defaults[kind] = verdict
    tightened = replace(
        policy,
        unattended=unattended,
        defaults=defaults,
        block=(*policy.block, *project.block),
        excluded=(*policy.excluded, *project.excluded),
    )
    rules = list(_tightening_rules(tightened, project.rules[len(Policy().rules) :], ignored))
    return TightenedPolicy(tightened.with_rules(rules), tuple(ignored))


def _tightening_rules(policy: Policy, rules: tuple[Rule, ...], ignored: list[str]) -> Iterator[Rule]:
    """Yield a project's rules as far as they tighten: a rule is heard before a default, also before a stricter."""
    for rule in rules:
        effects = frozenset(kind for kind in rule.effects if not _undercuts(policy, rule, kind))
        if effects:
            yield replace(rule, name=f"{PROJECT_RULE_PREFIX}{rule.name}", effects=effects)
        if effects != rule.effects:
            ignored.append(f"the rule `{rule.name}` ({rule.verdict}) is weaker than your policy.")


def _undercuts(policy: Policy, rule: Rule, kind: EffectKind) -> bool:
    return rule.verdict == "allow" or _weaker(rule.verdict, policy.default_verdict(kind))


def _weaker(verdict: Verdict, other: Verdict) -> bool:
    return VERDICT_STRENGTH[verdict] < VERDICT_STRENGTH[other]
