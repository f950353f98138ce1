"""A case before it has a name, and how one damage goes through both arguments."""

import itertools
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from bench.editbench.edits import Scene

Line = Callable[[str], str]
Lines = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Draft:
    """A case before it has a name: file, arguments, right results, and what was meant without the damage."""

    content: str | bytes
    old: str
    new: str
    accept: tuple[str | bytes, ...]
    meant: tuple[str, str] | None = None
    line: int | None = None
    seen: str | None = None


Family = Callable[[random.Random, Scene], Draft | None]


def spoil(scene: Scene, change: Line, *, literal: bool = False) -> tuple[Lines, Lines, tuple[str, ...]]:
    """Both arguments through one damage; kept lines stay equal. With `literal` the model's own spelling
    of what it changed or added is right as well, since nothing in the file says otherwise."""
    old = tuple(change(line) for line in scene.old)
    new = tuple(
        old[step.of] if step.kept and step.of is not None else change(step.text) for step in scene.script
    )
    return old, new, variants(scene, change if literal else str)


def variants(scene: Scene, change: Line) -> tuple[str, ...]:
    """Every result in which each line the edit touches is as meant or as the model spelt it."""
    choices = [
        (s.text,) if s.kept else tuple(dict.fromkeys((s.text, change(s.text)))) for s in scene.script
    ]
    free = sum(len(choice) > 1 for choice in choices)
    lines = itertools.product(*choices) if free <= 6 else ((tuple(c[-1] for c in choices)), scene.new)
    return tuple(dict.fromkeys(scene.result(tuple(one)) for one in lines))


def draft(
    scene: Scene,
    old: Iterable[str],
    new: Iterable[str],
    accept: tuple[str | bytes, ...],
    content: str | None = None,
) -> Draft | None:
    """The case, unless the damage turned out to be none."""
    body = scene.content() if content is None else content
    told, wanted = "\n".join(old), "\n".join(new)
    if told in body or told == wanted:
        return None
    return Draft(body, told, wanted, accept, meant=("\n".join(scene.old), "\n".join(scene.new)))


def spoiled(scene: Scene, change: Line, *, literal: bool = False) -> Draft | None:
    return draft(scene, *spoil(scene, change, literal=literal))
