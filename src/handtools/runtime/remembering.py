"""Remembering: what a lasting yes stands for, one line each."""

import hashlib
from collections.abc import Iterable

from handtools.core.effects import Effect, Run, fingerprint
from handtools.runtime.deciding import Decision
from handtools.text.shelling import quoted, read_script
from handtools.text.shelling.inheriting import uses
from handtools.text.shelling.prefixes import prefix
from handtools.text.visible import visible

FIRST_CHARS = 60


def remembered(effect: Effect, decisions: Iterable[Decision]) -> list[str]:
    """A line for everything that was asked about: all of them must have been granted before nobody is asked."""
    asked = [decision for decision in decisions if decision.verdict == "ask"]
    lines = (f"{effect.kind} {_named(effect, each.target)} ({each.rule})" for each in asked)
    return list(dict.fromkeys(lines))


def _named(effect: Effect, target: str) -> str:
    if not isinstance(effect, Run):
        return _exact(target, target)
    live = "live " if effect.command.live else ""
    return f"{live}{_command(effect, target)}"


def _command(run: Run, target: str) -> str:
    """The beginning of a plain command where that says enough; else exactly this one, by its digest."""
    parts = read_script(target).parts
    short = prefix(parts[0]) if parts else None
    as_named = not run.steering and not uses(run.script, run.defined)
    if short is not None and as_named:
        return f"{_exact(quoted(short), quoted(short))} …"
    first = visible(target.strip().partition("\n")[0])[:FIRST_CHARS]
    return f"exactly `{first}` [{_digest(fingerprint(run) + target)}]"


def _exact(name: str, target: str) -> str:
    """A name that can be read; with a digest where two of them would look alike."""
    flat = visible(name.replace("\n", "\\n"))
    return flat if flat == target else f"{flat} [{_digest(target)}]"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]
