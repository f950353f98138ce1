"""Decisions: what rules come to."""

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["deny", "ask", "allow"]

STRENGTH: dict[Verdict, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True)
class Decision:
    """A verdict, and the rule that gave it."""

    verdict: Verdict
    rule: str
    reason: str
    target: str = ""

    def __str__(self) -> str:
        return f"{self.verdict} by rule `{self.rule}`: {self.reason}"
