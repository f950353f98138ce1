"""Approval requests and replies as values: a tool call can wait for a person's answer, also across processes.

ADR 1.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from handtools.text.truncation import clip_text

RememberScope = Literal["once", "session", "project"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """An approval request: title, preview and matching rule shown to a person before a tool call goes on."""

    call_id: str
    title: str
    preview: str
    rule: str
    """The policy rule that requires approval, in the wording of the `why` command."""
    fingerprint: str
    """Hash of the effect to be approved; a grant for it covers no other effect."""
    remembered: str
    """The grant lines that are stored when the person answers "session" or "project"."""
    agent: str = ""
    session: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The caller's metadata of the call, such as the chat in which to ask."""
    again: bool = False
    """Whether a person approved an earlier version of this effect, which has changed since."""
    preview_lines: int = 0
    preview_bytes: int = 0
    """Size of the full preview in bytes, of which `preview` may be a part; 0 when unknown."""

    def excerpt(self, *, max_lines: int, max_bytes: int) -> str:
        """Return the head and tail of the preview within the limits; a line between them tells what is missing."""
        whole = (self.preview_lines, self.preview_bytes) if self.preview_lines else None
        return clip_text(
            self.preview, max_lines=max_lines, max_bytes=max_bytes, keep="both", whole=whole
        ).text


@dataclass(frozen=True, slots=True)
class Reply:
    """A person's answer to an approval request: yes or no, for how long, and a message for the model."""

    allow: bool
    remember: RememberScope = "once"
    message: str = ""
    """Shown to the model when the answer is no: what to do instead."""
    fingerprint: str = ""
    """Fingerprint of the approval request being answered; a different request of the same call stays open.

    Empty answers any request, except one with `again` set.
    """


class Approver(Protocol):
    """Callback that asks a person for approval; it returns a reply, or None to leave the call pending."""

    async def __call__(self, approval: Approval, /) -> Reply | None:
        """Ask a person; return their reply, or None when no answer comes now."""
        ...


def approval_to_json(approval: Approval) -> dict[str, Any]:
    """Convert an approval request to JSON values."""
    return asdict(approval)
