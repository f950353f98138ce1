"""Approval requests and replies as values: a call can wait for the user's answer, even across processes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, Protocol

from handtools.text.truncation import clip_text

RememberScope = Literal["once", "session", "project"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """An approval request: title, preview and matching rule, shown to the user before a call continues."""

    call_id: str
    title: str
    preview: str
    rule: str
    """The policy rule that requires approval, worded as in the `why` command."""
    fingerprint: str
    """Hash of the effect to be approved; an approval covers no other effect."""
    remembered: str
    """The grant lines that are stored if the user approves for the session or project."""
    agent: str = ""
    session: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The caller's metadata of the call, such as the chat in which to show the request."""
    again: bool = False
    """Whether the user approved an earlier version of this effect, which has changed since."""
    preview_lines: int = 0
    preview_bytes: int = 0
    """Size of the full preview in bytes, since `preview` may be cut; 0 if unknown."""

    def excerpt(self, *, max_lines: int, max_bytes: int) -> str:
        """Return the head and tail of the preview within the limits, with a line on what was left out."""
        whole = (self.preview_lines, self.preview_bytes) if self.preview_lines else None
        return clip_text(
            self.preview, max_lines=max_lines, max_bytes=max_bytes, keep="both", whole=whole
        ).text


@dataclass(frozen=True, slots=True)
class Reply:
    """The user's answer to an approval request: allow or deny, duration, and a message for the model."""

    allow: bool
    remember: RememberScope = "once"
    message: str = ""
    """Shown to the model if the request was denied: what to do instead."""
    fingerprint: str = ""
    """Fingerprint of the approval request being answered; a different request of the same call stays open.

    An empty fingerprint answers any request, except one with `again` set.
    """


class Approver(Protocol):
    """Callback that asks the user for approval; it returns a reply, or None to leave the call pending."""

    async def __call__(self, approval: Approval, /) -> Reply | None:
        """Ask the user; return the reply, or None if there is no answer for now."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Notify:
    """How the user is notified of a call that needs approval."""

    desktop: bool = False
    """Whether to show a desktop notification with `notify-send` or `osascript`."""
    bell: bool = False
    """Whether to ring the bell of the process's terminal."""
    command: tuple[str, ...] = ()
    """A program and its arguments. It gets the approval request as one JSON object on stdin."""

    def __bool__(self) -> bool:
        return self.desktop or self.bell or bool(self.command)


def approval_to_json(approval: Approval) -> dict[str, Any]:
    """Convert an approval request to JSON values."""
    return asdict(approval)
