"""Lines in the middle left out, in both arguments: to be applied where one place fits, else refused."""

import random
from dataclasses import dataclass

from bench.editbench.drafting import Draft, Line, Lines, draft
from bench.editbench.edits import Scene, indent_of, loose

ELISIONS = (
    "...",
    "// ...",
    "# ...",
    "// ... existing code ...",
    "# ... rest of the code ...",
    "/* ... */",
    "…",
)


@dataclass(frozen=True, slots=True)
class _Elided:
    """What is left of a span above and below the gap, before and after the edit."""

    above: tuple[Lines, Lines]
    below: tuple[Lines, Lines]
    mark: str

    def draft(self, scene: Scene) -> Draft | None:
        """The case, whatever must become of it."""
        old, new = (
            (above, (self.mark,), below) for above, below in zip(self.above, self.below, strict=True)
        )
        return draft(scene, sum(old, ()), sum(new, ()), (scene.result(),))

    def fits_once(self, lines: Lines, key: Line) -> bool:
        """Whether the lines to change can be meant in one place only, the others standing on their side."""
        keys = [key(line) for line in lines]
        above, below = (_starts(keys, [key(line) for line in old]) for old, _ in (self.above, self.below))
        gap = len(self.above[0])
        heads = [start for start in above if start + gap < max(below)]
        tails = [start for start in below if start > min(above) + gap]
        return all(
            old == new or len(starts) == 1
            for (old, new), starts in ((self.above, heads), (self.below, tails))
        )


def elision(rng: random.Random, scene: Scene) -> Draft | None:
    """The edit lies wholly outside the gap, in lines that fit one place."""
    elided = _elided(rng, scene)
    return elided.draft(scene) if elided and elided.fits_once(scene.lines, _key) else None


def elision_twin(rng: random.Random, scene: Scene) -> Draft | None:
    """The same in lines that fit several places, of which nothing says which one is meant."""
    elided = _elided(rng, scene)
    return elided.draft(scene) if elided and not elided.fits_once(scene.lines, str) else None


def _elided(rng: random.Random, scene: Scene) -> _Elided | None:
    size = len(scene.old)
    if size < 5:
        return None
    first = rng.randrange(1, size - 3)
    last = rng.randrange(first + 2, size)
    gap = set(range(first, last))
    touched = [i for i, step in enumerate(scene.script) if step.kept and step.of in gap]
    if [scene.script[i].of for i in touched] != sorted(gap) or touched[-1] - touched[0] + 1 != len(gap):
        return None
    mark = indent_of(scene.old[first]) + rng.choice(ELISIONS)
    if loose(scene.old[:first]).strip() == "" or mark + "\n" in scene.content():
        return None
    above = scene.old[:first], scene.new[: touched[0]]
    return _Elided(above, (scene.old[last:], scene.new[touched[-1] + 1 :]), mark)


def _starts(keys: list[str], wanted: list[str]) -> list[int]:
    """Where the lines stand one after the other."""
    return [
        start
        for start in range(len(keys) - len(wanted) + 1)
        if keys[start] == wanted[0] and keys[start : start + len(wanted)] == wanted
    ]


def _key(line: str) -> str:
    """A line without anything that a matcher may forget."""
    return loose([line]).strip("\n")
