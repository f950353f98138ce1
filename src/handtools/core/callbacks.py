"""Callbacks that the embedding program supplies: deliver a file, delegate to an agent, run a model.

A tool that needs a callback is offered only if the program supplied it.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from handtools.text.media_type_sniffing import MediumKind

ToolRequirement = Literal["deliver", "delegate", "model", "engine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A workspace file to deliver to the user: name, bytes, media type, title and the sending call."""

    name: str
    path: str
    """Path of the file in the workspace."""
    data: bytes
    kind: MediumKind
    """Kind of media, detected from the content; an animated picture counts as an image."""
    media_type: str
    title: str = ""
    """Title from the model, or the file name."""
    description: str = ""
    call_id: str = ""
    session: str = ""
    """Session of the call that delivers the file; with `metadata` it identifies the chat."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """A task for another agent: title, prompt, and the call that delegates it."""

    title: str
    prompt: str
    session: str
    """Session of the delegating call, so that the other agent's changes can be identified and undone."""
    parent: str
    """Id of the delegating call; calls made by the other agent must name it as their parent."""
    depth: int = 1
    """Nesting depth of delegation, this task included."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Metadata of the delegating call, to be copied into the other agent's calls."""


DeliverCallback = Callable[[Attachment], Awaitable[str]]
"""Callback that sends a file to the user and returns a few words on where it went."""
DelegateCallback = Callable[[Errand], Awaitable[str]]
"""Callback that has another agent do a task and returns its report."""
ModelCallback = Callable[[str], AsyncIterator[str]]
"""Callback that sends a prompt to a language model and streams back its response text."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """The callbacks that the embedding program supplied; None for each that it did not."""

    deliver: DeliverCallback | None = None
    delegate: DelegateCallback | None = None
    model: ModelCallback | None = None

    def has(self, need: ToolRequirement | None) -> bool:
        """Whether the callback that a tool needs was supplied.

        True for "engine", which comes from the host.
        """
        return need is None or need == "engine" or getattr(self, need) is not None


@asynccontextmanager
async def closing_stream(answer: AsyncIterator[str]) -> AsyncIterator[None]:
    """Context manager that closes a model's response stream on exit, even if it was not read to its end."""
    try:
        yield
    finally:
        close = getattr(answer, "aclose", None)
        if close is not None:
            await close()
