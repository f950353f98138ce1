"""The policy of a project's own file: it may be hostile, so it may only tighten the person's policy.

ADR 166.
"""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from handtools.core.effects import EffectKind
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import VERDICT_STRENGTH, Rule, Verdict
from handtools.text.search.glob import glob_in_folder

PROJECT_RULE_PREFIX = "project: "
"""What the names of a project's rules begin with, so that none passes for a rule of the person's."""


@dataclass(frozen=True, slots=True)
class TightenedPolicy:
    """A policy with what a project's file adds to it, and a sentence for each key that would have widened it."""

    policy: Policy
    ignored: Mapping[str, str]
    """Sentences by key: `unattended`, `defaults.run`, `rule.0`."""


def tightened_policy(
    policy: Policy, project: Policy, rules: Sequence[Rule], *, said: Collection[str], folder: str = ""
) -> TightenedPolicy:
    """Tighten a policy by that of a project's file, whose own rules are `rules` and whose keys are `said`.

    With `folder`, the name of a folder in the workspace, the file's globs are about paths in that folder.
    """
    ignored: dict[str, str] = {}
    unattended = policy.unattended
    if "unattended" in said:
        if _weaker(project.unattended, unattended):
            ignored["unattended"] = f'`unattended = "{project.unattended}"` is weaker than yours.'
        else:
            unattended = project.unattended
    defaults = dict(policy.defaults)
    for kind, verdict in project.defaults.items():
        if _weaker(verdict, policy.default_verdict(kind)):
            ignored[f"defaults.{kind}"] = f'the default `{kind} = "{verdict}"` is weaker than yours.'
        else:
            defaults[kind] = verdict
    tightened = replace(
        policy,
        unattended=unattended,
        defaults=defaults,
        block=(*policy.block, *project.block),
        excluded=(*policy.excluded, *(glob_in_folder(glob, folder) for glob in project.excluded)),
    )
    own = [_in_folder(rule, folder) for rule in rules]
    kept = list(_tightening_rules(tightened, own, ignored))
    return TightenedPolicy(tightened.with_rules(kept), ignored)


def _in_folder(rule: Rule, folder: str) -> Rule:
    """A project's rule about paths as a rule about paths in its folder."""
    if not folder or rule.commands or rule.hosts:
        return rule
    paths = tuple(glob_in_folder(glob, folder) for glob in rule.paths or ("**",))
    but = tuple(glob_in_folder(glob, folder) for glob in rule.but)
    return replace(rule, paths=paths, but=but, match=(), not_match=())


def _tightening_rules(policy: Policy, rules: Sequence[Rule], ignored: dict[str, str]) -> Iterator[Rule]:
    """Yield a project's rules as far as they tighten: a rule is heard before a default, also before a stricter."""
    for number, rule in enumerate(rules):
        effects = frozenset(kind for kind in rule.effects if not _undercuts(policy, rule, kind))
        if effects:
            name = f"{PROJECT_RULE_PREFIX}{rule.name}"
            yield replace(rule, name=name, effects=effects, only_tightens=True)
        if effects != rule.effects:
            ignored[f"rule.{number}"] = (
                f"the rule `{rule.name}` ({rule.verdict}) is weaker than your policy."
            )


def _undercuts(policy: Policy, rule: Rule, kind: EffectKind) -> bool:
    return rule.verdict == "allow" or _weaker(rule.verdict, policy.default_verdict(kind))


def _weaker(verdict: Verdict, other: Verdict) -> bool:
    return VERDICT_STRENGTH[verdict] < VERDICT_STRENGTH[other]
