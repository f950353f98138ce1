"""Events: what happened, in order; the log, the live stream and the replay are all made of them."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from handtools.core.approval import Approval, Reply
from handtools.core.call import Call
from handtools.core.changes import RecordedChanges
from handtools.core.language import DiagnosticReview
from handtools.core.result import Result
from handtools.core.web import Visit


@dataclass(frozen=True, slots=True)
class Started:
    """A call began."""

    call: Call


@dataclass(frozen=True, slots=True)
class Progressed:
    """A running call has something to show; `bytes` counts all output so far, shown or not."""

    call_id: str
    text: str
    bytes: int = 0
    clipped: bool = False
    path: str = ""
    """Where the whole output is being kept, for `read`; empty while it is short enough to need no file."""


@dataclass(frozen=True, slots=True)
class Visited:
    """A command connected to a host, or was refused."""

    call_id: str
    visit: Visit


@dataclass(frozen=True, slots=True)
class Decided:
    """A rule judged an effect."""

    call_id: str
    verdict: str
    rule: str
    targets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ApprovalAsked:
    """A person was asked; `reply` is None while the answer is out."""

    approval: Approval
    reply: Reply | None


@dataclass(frozen=True, slots=True)
class Changed:
    """Files were written and recorded."""

    call_id: str
    changes: RecordedChanges


@dataclass(frozen=True, slots=True)
class Reviewed:
    """Language servers had more to say about a change, after its call had ended."""

    call_id: str
    review: DiagnosticReview


@dataclass(frozen=True, slots=True)
class Settled:
    """A call ended."""

    call: Call
    result: Result[Any]


Event = Started | Progressed | Visited | Decided | ApprovalAsked | Changed | Reviewed | Settled
Listener = Callable[[Event], None]


def call_id_of(event: Event) -> str:
    """The id of the call that an event is about."""
    if isinstance(event, Started | Settled):
        return event.call.id
    return event.approval.call_id if isinstance(event, ApprovalAsked) else event.call_id
