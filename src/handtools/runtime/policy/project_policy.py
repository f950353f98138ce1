"""The policy in a project's file. It is untrusted, so it can only tighten the user's policy."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from handtools.core.effects import EffectKind
from handtools.runtime.policy import Policy
from handtools.runtime.policy.rules import VERDICT_STRENGTH, Rule, Verdict
from handtools.text.search.glob import glob_in_folder

PROJECT_RULE_PREFIX = "project: "
"""Prefix of the names of a project's rules, so that none looks like one of the user's rules."""


@dataclass(frozen=True, slots=True)
class TightenedPolicy:
    """A policy tightened by a project's file, and a sentence for each key that would have weakened it."""

    policy: Policy
    ignored: Mapping[str, str]
    """Sentences about ignored keys, by key, such as `unattended`, `defaults.run` or `rule.0`."""


def tightened_policy(
    policy: Policy,
    project_policy: Policy,
    rules: Sequence[Rule],
    *,
    keys_set: Collection[str],
    folder: str = "",
) -> TightenedPolicy:
    """Tighten a policy with a project's file, which contains the rules `rules` and the keys `keys_set`.

    With `folder`, the name of a folder in the workspace, the file's globs apply to paths in that folder.
    """
    ignored: dict[str, str] = {}
    unattended = policy.unattended
    if "unattended" in keys_set:
        if _is_weaker(project_policy.unattended, unattended):
            ignored["unattended"] = f'`unattended = "{project_policy.unattended}"` is weaker than yours.'
        else:
            unattended = project_policy.unattended
    defaults = dict(policy.defaults)
    for kind, verdict in project_policy.defaults.items():
        if _is_weaker(verdict, policy.default_verdict(kind)):
            ignored[f"defaults.{kind}"] = f'the default `{kind} = "{verdict}"` is weaker than yours.'
        else:
            defaults[kind] = verdict
    tightened = replace(
        policy,
        unattended=unattended,
        defaults=defaults,
        block=(*policy.block, *project_policy.block),
        excluded=(*policy.excluded, *(glob_in_folder(glob, folder) for glob in project_policy.excluded)),
    )
    own = [_in_folder(rule, folder) for rule in rules]
    kept = list(_tightening_rules(tightened, own, ignored))
    return TightenedPolicy(tightened.with_rules(kept), ignored)


def _in_folder(rule: Rule, folder: str) -> Rule:
    """Return a project's rule limited to paths in its folder."""
    if not folder or rule.commands or rule.hosts:
        return rule
    paths = tuple(glob_in_folder(glob, folder) for glob in rule.paths or ("**",))
    but = tuple(glob_in_folder(glob, folder) for glob in rule.but)
    return replace(rule, paths=paths, but=but, match=(), not_match=())


def _tightening_rules(policy: Policy, rules: Sequence[Rule], ignored: dict[str, str]) -> Iterator[Rule]:
    """Yield a project's rules without effects that would weaken the policy, and report those in `ignored`."""
    for number, rule in enumerate(rules):
        effects = frozenset(kind for kind in rule.effects if not _is_loosening(policy, rule, kind))
        if effects:
            name = f"{PROJECT_RULE_PREFIX}{rule.name}"
            yield replace(rule, name=name, effects=effects, only_tightens=True)
        if effects != rule.effects:
            ignored[f"rule.{number}"] = (
                f"the rule `{rule.name}` ({rule.verdict}) is weaker than your policy."
            )


def _is_loosening(policy: Policy, rule: Rule, kind: EffectKind) -> bool:
    return rule.verdict == "allow" or _is_weaker(rule.verdict, policy.default_verdict(kind))


def _is_weaker(verdict: Verdict, other: Verdict) -> bool:
    return VERDICT_STRENGTH[verdict] < VERDICT_STRENGTH[other]
