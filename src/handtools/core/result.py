"""A result: content for the model, details for programs and people."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from typing import Any, Generic, Literal, TypeVar

from handtools.core.approval import Approval
from handtools.core.changes import Changes
from handtools.core.content import Block, Text, blocks

D = TypeVar("D", covariant=True)

Status = Literal["ok", "error", "denied", "cancelled", "timeout", "pending"]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why a call did not do what was asked, as values."""

    code: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class Spill:
    """Output that was too long for the model, kept whole in the store."""

    path: str
    bytes: int
    lines: int


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call cost."""

    seconds: float = 0.0
    tokens: int = 0
    bytes: int = 0


_UNUSED = Usage()


@dataclass(frozen=True, slots=True, init=False)
class Result(Generic[D]):
    """What came of a call. Tools give `content` and `details`; the executor fills in the rest."""

    content: tuple[Block, ...]
    details: D
    status: Status = "ok"
    fault: Fault | None = None
    changes: Changes | None = None
    spill: Spill | None = None
    usage: Usage = field(default_factory=Usage)
    request: Approval | None = None

    def __init__(
        self,
        content: str | Block | Sequence[Block],
        details: D,
        *,
        status: Status = "ok",
        fault: Fault | None = None,
        changes: Changes | None = None,
        spill: Spill | None = None,
        usage: Usage | None = None,
        request: Approval | None = None,
    ) -> None:
        give = object.__setattr__
        give(self, "content", blocks(content))
        give(self, "details", details)
        give(self, "status", status)
        give(self, "fault", fault)
        give(self, "changes", changes)
        give(self, "spill", spill)
        give(self, "usage", usage or _UNUSED)
        give(self, "request", request)

    @property
    def ok(self) -> bool:
        """Whether the call did what was asked."""
        return self.status == "ok"

    @property
    def text(self) -> str:
        """The text blocks, as one string."""
        return "\n".join(block.text for block in self.content if isinstance(block, Text))

    def settled(self, **facts: Any) -> "Result[D]":
        """This result with what only the executor knows."""
        known = {name: getattr(self, name) for name in _FIELDS}
        return Result(**(known | facts))


_FIELDS = tuple(one.name for one in fields(Result))
