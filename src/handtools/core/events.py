"""Events of tool calls, in order: start, progress, decisions, approvals, changes, end."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from handtools.core.approval import Approval, Reply
from handtools.core.call import Call
from handtools.core.changes import RecordedChanges
from handtools.core.result import Result

if TYPE_CHECKING:
    from handtools.core.language import DiagnosticReview
    from handtools.core.web import Visit


@dataclass(frozen=True, slots=True)
class Started:
    """Event: a tool call started."""

    call: Call


@dataclass(frozen=True, slots=True)
class Progressed:
    """Event: a running call has new output; `bytes` counts all output so far."""

    call_id: str
    text: str
    bytes: int = 0
    clipped: bool = False
    path: str = ""
    """Path under which the complete output can be read; empty while the output is short."""


@dataclass(frozen=True, slots=True)
class Visited:
    """Event: a command connected to a host, or its connection was refused."""

    call_id: str
    visit: "Visit"


@dataclass(frozen=True, slots=True)
class Decided:
    """Event: a policy rule decided on an effect."""

    call_id: str
    verdict: str
    rule: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """Event: the user was asked for approval; `reply` is None until it is answered."""

    approval: Approval
    reply: Reply | None


@dataclass(frozen=True, slots=True)
class Changed:
    """Event: a call wrote files and recorded the changes."""

    call_id: str
    changes: RecordedChanges


@dataclass(frozen=True, slots=True)
class Reviewed:
    """Event: language servers reported diagnostics about a change after its call had ended."""

    call_id: str
    review: "DiagnosticReview"


@dataclass(frozen=True, slots=True)
class Settled:
    """Event: a tool call ended."""

    call: Call
    result: Result[Any]


Event = Started | Progressed | Visited | Decided | ApprovalAsked | Changed | Reviewed | Settled
EventListener = Callable[[Event], None]


def call_id_of_event(event: Event) -> str:
    """Return the id of the call that an event belongs to."""
    if isinstance(event, Started | Settled):
        return event.call.id
    return event.approval.call_id if isinstance(event, ApprovalAsked) else event.call_id
