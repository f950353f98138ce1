"""Effects: everything a tool does to the world, as values that policy can judge before they happen."""

import hashlib
from dataclasses import dataclass
from typing import Literal

from handtools.core.changes import ChangeSet

EffectKind = Literal["read", "change", "run", "visit"]


@dataclass(frozen=True, slots=True)
class Read:
    """Looking at paths: their bytes, their names or their facts."""

    paths: tuple[str, ...]

    @property
    def kind(self) -> Literal["read"]:
        """As rules name it."""
        return "read"


Effect = Read | ChangeSet


def targets(effect: Effect) -> tuple[str, ...]:
    """What rules match against: paths today; commands and hosts when those effects land."""
    return effect.paths


def fingerprint(effect: Effect) -> str:
    """Names exactly this effect, so that a grant covers it and nothing else."""
    seen = hashlib.sha256(effect.kind.encode())
    if isinstance(effect, ChangeSet):
        for change in effect:
            for node in (change.before, change.after):
                state = "absent" if node is None else f"{node.kind} {node.digest} {node.mode}"
                seen.update(f"\0{change.path}\0{state}".encode())
    else:
        seen.update("\0".join(effect.paths).encode())
    return seen.hexdigest()
