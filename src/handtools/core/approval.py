"""Approval as a value: a question that can be answered now, later, or in another process."""

from dataclasses import dataclass
from typing import Literal, Protocol

Remember = Literal["once", "session", "project"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """What a person is asked: enough to decide, and to resume the call from another process."""

    call_id: str
    title: str
    preview: str
    rule: str
    """The rule that asked, as `why` prints it."""
    fingerprint: str
    """Names exactly this effect: a grant for it covers nothing else."""
    remembered: str
    """What answering "session" or "project" would store."""
    agent: str = ""
    session: str = ""


@dataclass(frozen=True, slots=True)
class Reply:
    """A person's answer."""

    allow: bool
    remember: Remember = "once"
    message: str = ""
    """Said to the model when the answer is no: what to do instead."""


class Approver(Protocol):
    """Answers now, or returns None for "not now": the call then ends as pending."""

    async def __call__(self, approval: Approval, /) -> Reply | None:
        """Put the question to a person."""
        ...
