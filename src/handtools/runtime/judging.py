"""Judging commands: each part of a script by the rules about commands.

A script is allowed when every part of it is; one part is enough to deny or to ask; what can't be read asks.
None of this keeps a command inside: it decides who is asked. What the kernel keeps inside needs no question.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from handtools.core.effects import Run
from handtools.runtime.deciding import STRENGTH, Decision
from handtools.runtime.rules import Rule
from handtools.text.shelling import Words, quoted

_CONFINED = "The kernel keeps it in the workspace, and off all hosts but those that are listed."


def judged(run: Run, rules: Iterable[Rule], tool: str, usual: Decision) -> list[Decision]:
    """The decisions on a script: those of strict rules, then one for each part."""
    spoken = [rule for rule in rules if rule.speaks("run", tool)]
    general = [rule for rule in spoken if not rule.commands and not rule.paths]
    about = [rule for rule in spoken if rule.commands]
    strict = [*_strict(run, about), *([] if run.confined else _private(run, spoken))]
    if general:
        usual = _of(max(general, key=lambda rule: STRENGTH[rule.verdict]))
    elif run.confined and usual.verdict == "ask" and _looked_for(run, about):
        usual = Decision("allow", "confined", _CONFINED)
    return [*strict, *_parts(run, [rule for rule in about if rule.verdict == "allow"], usual)]


def _looked_for(run: Run, rules: Sequence[Rule]) -> bool:
    """Whether strict rules could look at all of it: padding must not carry a command past them."""
    return run.script.seen or all(rule.verdict == "allow" for rule in rules)


def _strict(run: Run, rules: Sequence[Rule]) -> Iterator[Decision]:
    """Wherever it stands in the script, as far as it can be seen."""
    for rule in rules:
        if rule.verdict != "allow":
            hits = (words for words in run.script.found if rule.beginnings.match(words))
            yield from (_of(rule, quoted(words)) for words in hits)


def _private(run: Run, rules: Sequence[Rule]) -> Iterator[Decision]:
    """Words that name what no tool may read. In a sandbox it is not there; here it is at least not handed out."""
    closed = [rule for rule in rules if rule.verdict == "deny" and rule.paths and "read" in rule.effects]
    for words in run.script.found if closed else ():
        for word in words[1:]:
            named = word.partition("=")[2] or word
            rule = next((rule for rule in closed if rule.covers(named.removeprefix("./"))), None)
            if rule is not None and not word.isspace() and word:
                yield _of(rule, quoted(words))


def _parts(run: Run, allowing: Sequence[Rule], usual: Decision) -> Iterator[Decision]:
    script = run.script
    if not script.parts:
        asks = usual.verdict == "ask" and script.opaque
        reason = (
            f"Rules can't speak for a script that is not plain: {script.opaque}" if asks else usual.reason
        )
        yield replace(usual, rule="not plain" if asks else usual.rule, reason=reason, target=script.text)
    for words in script.parts:
        target = quoted(words)
        meant = [rule for rule in allowing if rule.beginnings.match(words)]
        reasons = {_other_program(run, words) or rule.beginnings.excess(words): rule for rule in meant}
        if "" in reasons and STRENGTH[usual.verdict] < STRENGTH["deny"]:
            yield _of(reasons[""], target)
        elif reasons and usual.verdict == "ask":
            excess, rule = next(iter(reasons.items()))
            yield replace(usual, reason=f"Rule `{rule.name}` does not go so far: {excess}.", target=target)
        else:
            yield replace(usual, target=target)


def _other_program(run: Run, words: Words) -> str:
    """Why a name does not stand for the program that a rule means, or nothing."""
    if words[0] in run.defined:
        return f"`{words[0]}` is a function or an alias of this session"
    if run.steering:
        by = "the caller" if set(run.steering) <= run.command.env.keys() else "this session"
        return f"{by} has set {', '.join(run.steering)}"
    return ""


def _of(rule: Rule, target: str = "") -> Decision:
    return Decision(rule.verdict, rule.name, rule.reason, target)
