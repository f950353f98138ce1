"""Approval as a value: a question to a person that is answered now, later, or from another process.

ADR 1.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from handtools.text.truncation import clip

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
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Of the call: which chat to ask in, for a program that serves several."""
    again: bool = False
    """Whether a person said yes before, and it has changed since: that yes was for something else."""
    preview_lines: int = 0
    preview_bytes: int = 0
    """Of the whole that was to be shown, of which `preview` may be a part; 0 when it is not known."""

    def excerpt(self, *, max_lines: int, max_bytes: int) -> str:
        """As much of the preview as fits, of both ends; how much of the whole is missing stands between them."""
        whole = (self.preview_lines, self.preview_bytes) if self.preview_lines else None
        return clip(self.preview, max_lines=max_lines, max_bytes=max_bytes, keep="both", whole=whole).text


@dataclass(frozen=True, slots=True)
class Reply:
    """A person's answer."""

    allow: bool
    remember: Remember = "once"
    message: str = ""
    """Said to the model when the answer is no: what to do instead."""
    fingerprint: str = ""
    """Of the question that it answers: another that the call has come to meanwhile stays open.

    Empty answers any, but one that is asked again.
    """


class Approver(Protocol):
    """Answers now, or returns None for "not now": the call then ends as pending."""

    async def __call__(self, approval: Approval, /) -> Reply | None:
        """Put the question to a person."""
        ...


def approval_to_json(approval: Approval) -> dict[str, Any]:
    """An approval as JSON values."""
    return asdict(approval)
