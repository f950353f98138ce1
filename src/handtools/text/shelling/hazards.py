"""Hazards: words that make a harmless-looking command write, delete or run something."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from handtools.text.shelling import sed
from handtools.text.shelling.table import EFFECTS, NO_CLUSTERS, OPERANDS, TASKED, options, patterns
from handtools.text.shelling.words import Words
from handtools.text.shelling.wrapping import bare_name

_GIT_FIRST: Mapping[str, str] = {"-c": "runs", "-C": "away", "-p": "runs", "--paginate": "runs"}
_PUSHED = re.compile(r"\+.+|:.+")


@dataclass(frozen=True, slots=True)
class Hazard:
    """One word, and what it does."""

    word: str
    effect: str

    def __str__(self) -> str:
        return f"`{self.word}` {self.effect}"


def hazards(words: Words) -> tuple[Hazard, ...]:
    """The words of a command that a rule about its beginning does not speak for."""
    name = bare_name(words[0])
    task = next((word for word in words[1:] if not word.startswith("-")), "") if name in TASKED else ""
    found = [*_of_git(words, task)] if name == "git" else []
    if name in {"sed", "gsed"}:
        reached = ((script, sed.reaches(script)) for script in sed.scripts(words))
        found += [Hazard(script, EFFECTS[effect]) for script, effect in reached if effect]
    known, operands = options(name, task), 0
    most, beyond = OPERANDS.get(f"{name}:{task}" if task else name, (len(words), ""))
    for place, word in enumerate(words[1:], 1):
        effect = _option(word, known, name) or _text(word, name, place)
        operands += not word.startswith("-")
        if not effect and not word.startswith("-") and operands > most:
            effect = EFFECTS[beyond]
        if effect:
            found.append(Hazard(word, effect))
    return tuple(found)


def _of_git(words: Words, task: str) -> Iterator[Hazard]:
    """What only git has: options before its task, places to push to, and settings."""
    first = words[1 : words.index(task)] if task else words[1:]
    yield from (Hazard(word, EFFECTS[_GIT_FIRST[word]]) for word in first if word in _GIT_FIRST)
    if task == "push":
        yield from (Hazard(word, EFFECTS["rewrites"]) for word in words if _PUSHED.fullmatch(word))
    plain = [word for word in words[1:] if not word.startswith("-")]
    if task == "config" and len(plain) > 2:
        yield Hazard(plain[1], EFFECTS["runs"])


def _option(word: str, known: Mapping[str, str], program: str) -> str:
    if word in known:
        return known[word]
    name = word.partition("=")[0]
    if program in NO_CLUSTERS:
        one_dash = name.removeprefix("-") if name.startswith("--") else name
        short = (effect for option, effect in known.items() if len(option) == 2 and word.startswith(option))
        return known.get(one_dash, "") or (next(short, "") if program not in {"find", "go"} else "")
    if name.startswith("--"):
        longer = (effect for option, effect in known.items() if len(name) > 2 and option.startswith(name))
        return next(longer, "")
    if word.startswith("-"):
        short = (effect for option, effect in known.items() if len(option) == 2 and option[1] in word[1:])
        return next(short, "")
    return ""


def _text(word: str, program: str, place: int) -> str:
    matching = (
        effect
        for pattern, effect, only in patterns(program)
        if only in {None, place} and pattern.fullmatch(word)
    )
    return next(matching, "")
