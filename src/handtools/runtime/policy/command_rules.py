"""Policy for commands: checks a script part by part before it runs. It does not confine the script."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from handtools.core.effects import CommandRun
from handtools.runtime.policy.rules import VERDICT_STRENGTH, Decision, Rule, strictest_decision
from handtools.text.shell import CommandWords, quote_words

_CONFINED = "The sandbox confines it to the workspace and the listed hosts."


def command_decisions(
    run: CommandRun, rules: Iterable[Rule], tool: str, default_decision: Decision, *, stated: bool
) -> list[Decision]:
    """Return the decisions of deny and ask rules on any part of a script, then one for each simple command.

    If the policy itself states the default decision (`stated`), it also applies to confined commands.
    """
    spoken = [rule for rule in rules if rule.speaks("run", tool)]
    general = [rule for rule in spoken if not rule.commands and not rule.paths]
    decisive = [_decision_of(rule) for rule in general if not rule.only_tightens]
    about = [rule for rule in spoken if rule.commands]
    strict = [*_strict_decisions(run, about), *([] if run.confined else _private_words(run, spoken))]
    if decisive:
        default_decision = strictest_decision(decisive)
    elif (
        run.confined and not stated and default_decision.verdict == "ask" and _could_look_at_all(run, about)
    ):
        default_decision = Decision("allow", "confined", _CONFINED)
    default_decision = strictest_decision(
        [default_decision, *(_decision_of(rule) for rule in general if rule.only_tightens)]
    )
    return [
        *strict,
        *_part_decisions(run, [rule for rule in about if rule.verdict == "allow"], default_decision),
    ]


def _could_look_at_all(run: CommandRun, rules: Sequence[Rule]) -> bool:
    """Whether all commands in the script are known, or no deny or ask rule needs them."""
    return run.script.seen or all(rule.verdict == "allow" for rule in rules)


def _strict_decisions(run: CommandRun, rules: Sequence[Rule]) -> Iterator[Decision]:
    """Yield decisions of deny and ask rules on commands found anywhere in the script."""
    for rule in rules:
        if rule.verdict != "allow":
            hits = (words for words in run.script.found if rule.command_prefixes.match(words))
            yield from (_decision_of(rule, quote_words(words)) for words in hits)


def _private_words(run: CommandRun, rules: Sequence[Rule]) -> Iterator[Decision]:
    """Yield deny decisions for arguments of unconfined commands that name private paths."""
    closed = [rule for rule in rules if rule.verdict == "deny" and rule.paths and "read" in rule.effects]
    for words in run.script.found if closed else ():
        for word in words[1:]:
            named = word.partition("=")[2] or word
            rule = next((rule for rule in closed if rule.covers(named.removeprefix("./"))), None)
            if rule is not None and not word.isspace() and word:
                yield _decision_of(rule, quote_words(words))


def _part_decisions(
    run: CommandRun, rules: Sequence[Rule], default_decision: Decision
) -> Iterator[Decision]:
    script = run.script
    if not script.parts:
        asks = default_decision.verdict == "ask" and script.opaque
        reason = (
            f"Rules can't match a script that is not plain: {script.opaque}"
            if asks
            else default_decision.reason
        )
        yield replace(
            default_decision,
            rule="not plain" if asks else default_decision.rule,
            reason=reason,
            target=script.text,
        )
    for words in script.parts:
        target = quote_words(words)
        meant = [rule for rule in rules if rule.command_prefixes.match(words)]
        reasons = {
            _other_program(run, words) or rule.command_prefixes.hazard_beyond_prefix(words): rule
            for rule in meant
        }
        if "" in reasons and VERDICT_STRENGTH[default_decision.verdict] < VERDICT_STRENGTH["deny"]:
            yield _decision_of(reasons[""], target)
        elif reasons and default_decision.verdict == "ask":
            excess, rule = next(iter(reasons.items()))
            yield replace(
                default_decision, reason=f"Rule `{rule.name}` does not cover this: {excess}.", target=target
            )
        else:
            yield replace(default_decision, target=target)


def _other_program(run: CommandRun, words: CommandWords) -> str:
    """Return why a command's name may stand for another program (alias, changed PATH); empty if it doesn't."""
    if words[0] in run.defined:
        return f"`{words[0]}` is a function or alias in this session"
    if run.steering:
        by = "the caller" if set(run.steering) <= run.command.env.keys() else "this session"
        return f"{by} has set {', '.join(run.steering)}"
    return ""


def _decision_of(rule: Rule, target: str = "") -> Decision:
    return Decision(rule.verdict, rule.name, rule.reason, target)
