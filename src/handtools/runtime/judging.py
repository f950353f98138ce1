"""Judging commands: each part of a script by the rules about commands.

A script is allowed when every part of it is; one part is enough to deny or to ask; what can't be read asks.
None of this keeps a command inside: it decides who is asked. What the kernel keeps inside needs no question.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING

from handtools.core.effects import Run
from handtools.core.errors import UsageError
from handtools.runtime.deciding import STRENGTH, Decision
from handtools.text.shelling import Words, quoted, read_script
from handtools.text.shelling.hazards import hazards
from handtools.text.shelling.wrappers import base

if TYPE_CHECKING:
    from handtools.runtime.policy import Rule

_CONFINED = "The kernel keeps it in the workspace, and off all hosts but those that are listed."


@dataclass(frozen=True)
class Beginnings:
    """Beginnings of commands, as rules write them: words with `|` between alternatives, `*` for any word."""

    written: tuple[str, ...]
    narrow: bool
    """An allowance: exactly this program, and no word after the beginning that changes what the command is."""

    def match(self, words: Words) -> bool:
        """Whether a command begins like one of them."""
        return any(self._begins(words, each) for each in self._read)

    def excess(self, words: Words) -> str:
        """Why a command that begins so is still not meant, or nothing."""
        lengths = [len(each) for each in self._read if self._begins(words, each)]
        spoken_for = words[: max(lengths, default=0)]
        left = [hazard for hazard in hazards(words) if hazard.word not in spoken_for]
        return str(left[0]) if left else ""

    def cover(self, text: str) -> bool:
        """Whether a whole script is what the rule is about."""
        script = read_script(text)
        if not self.narrow:
            return any(self.match(words) for words in script.found)
        return bool(script.parts) and all(
            self.match(words) and not self.excess(words) for words in script.parts
        )

    def _begins(self, words: Words, beginning: Sequence[frozenset[str]]) -> bool:
        if len(words) < len(beginning):
            return False
        name = words[0] if self.narrow else base(words[0])
        return all(
            "*" in some or word in some for word, some in zip((name, *words[1:]), beginning, strict=False)
        )

    @cached_property
    def _read(self) -> tuple[tuple[frozenset[str], ...], ...]:
        read = tuple(tuple(frozenset(word.split("|")) for word in each.split()) for each in self.written)
        if not all(read):
            raise UsageError("A rule names an empty command.")
        return read


def judged(run: Run, rules: Iterable["Rule"], tool: str, usual: Decision) -> list[Decision]:
    """The decisions on a script: those of strict rules, then one for each part."""
    spoken = [rule for rule in rules if rule.speaks("run", tool)]
    general = [rule for rule in spoken if not rule.commands and not rule.paths]
    about = [rule for rule in spoken if rule.commands]
    strict = [*_strict(run, about), *([] if run.confined else _private(run, spoken))]
    if general:
        usual = _of(max(general, key=lambda rule: STRENGTH[rule.verdict]))
    elif run.confined and usual.verdict == "ask":
        usual = Decision("allow", "confined", _CONFINED)
    return [*strict, *_parts(run, [rule for rule in about if rule.verdict == "allow"], usual)]


def _strict(run: Run, rules: Sequence["Rule"]) -> Iterator[Decision]:
    """Wherever it stands in the script, as far as it can be seen."""
    for rule in rules:
        if rule.verdict != "allow":
            hits = (words for words in run.script.found if rule.beginnings.match(words))
            yield from (_of(rule, quoted(words)) for words in hits)


def _private(run: Run, rules: Sequence["Rule"]) -> Iterator[Decision]:
    """Words that name what no tool may read. In a sandbox it is not there; here it is at least not handed out."""
    closed = [rule for rule in rules if rule.verdict == "deny" and rule.paths and "read" in rule.effects]
    for words in run.script.found if closed else ():
        for word in words[1:]:
            named = word.partition("=")[2] or word
            rule = next((rule for rule in closed if rule.covers(named.removeprefix("./"))), None)
            if rule is not None and not word.isspace() and word:
                yield _of(rule, quoted(words))


def _parts(run: Run, allowing: Sequence["Rule"], usual: Decision) -> Iterator[Decision]:
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
        reasons = {rule.beginnings.excess(words): rule for rule in meant}
        if "" in reasons and STRENGTH[usual.verdict] < STRENGTH["deny"]:
            yield _of(reasons[""], target)
        elif reasons and usual.verdict == "ask":
            excess, rule = next(iter(reasons.items()))
            yield replace(usual, reason=f"Rule `{rule.name}` does not go so far: {excess}.", target=target)
        else:
            yield replace(usual, target=target)


def _of(rule: "Rule", target: str = "") -> Decision:
    return Decision(rule.verdict, rule.name, rule.reason, target)
