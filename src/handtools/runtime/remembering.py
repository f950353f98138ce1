"""Remembering: what a lasting yes stands for, one line each."""

import hashlib
from collections.abc import Iterable

from handtools.core.effects import Effect, Run
from handtools.runtime.deciding import Decision
from handtools.text.shelling import quoted, read_script
from handtools.text.shelling.prefixes import prefix


def remembered(effect: Effect, decisions: Iterable[Decision]) -> list[str]:
    """A line for everything that was asked about: all of them must have been granted before nobody is asked."""
    asked = [decision for decision in decisions if decision.verdict == "ask"]
    name = _command if isinstance(effect, Run) else _path
    return list(dict.fromkeys(f"{effect.kind} {name(each.target)} ({each.rule})" for each in asked))


def _path(target: str) -> str:
    return target.replace("\r", "\\r").replace("\n", "\\n")


def _command(target: str) -> str:
    """The beginning of a plain command where that says enough; else exactly this text, by its digest."""
    parts = read_script(target).parts
    short = prefix(parts[0]) if parts else None
    if short is not None:
        return f"{quoted(short)} …".replace("\n", "\\n")
    digest = hashlib.sha256(target.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    first = target.strip().partition("\n")[0][:60]
    return f"exactly `{first}` [{digest}]"
