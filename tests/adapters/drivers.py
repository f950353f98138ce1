"""What the contract asks of an adapter's driver: run scripted calls through the real SDK, and its pause."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Protocol

from handtools import Toolbox


class Wanted(NamedTuple):
    """A call of the scripted model; arguments as text are sent as they are."""

    tool: str
    args: Mapping[str, Any] | str
    id: str


@dataclass
class Said:
    """What the model reads of one call."""

    text: str
    error: bool
    media: list[str] = field(default_factory=list)


class Driver(Protocol):
    async def run(self, box: Toolbox, *calls: Wanted, conversation: str = "") -> list[Said]:
        """Let a model make these calls in one turn and then end."""

    async def ask(self, box: Toolbox, call: Wanted) -> Any:
        """Run into a question; return the paused run as it would be stored, and the question."""

    async def answer(
        self, box: Toolbox, paused: Any, *, allow: bool, args: Mapping[str, Any] | None = None
    ) -> list[Said]:
        """Go on from the stored pause, with another toolbox."""
