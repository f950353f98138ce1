"""Callbacks: what only the program around us can do. A tool that needs one is offered when it is there.

ADR 80.
"""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal

from handtools.text.media_types import MediumKind

Need = Literal["deliver", "delegate", "model", "engine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A file on its way to a person."""

    name: str
    path: str
    """Where it is in the workspace."""
    data: bytes
    kind: MediumKind
    """By its content. An animated picture is an image: its media type tells."""
    media_type: str
    title: str = ""
    """The name of the file where the model gave it no other."""
    description: str = ""
    call_id: str = ""
    session: str = ""
    """Of the call that delivers it; with `metadata` they tell one chat from another."""
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Errand:
    """Work for another agent."""

    title: str
    prompt: str
    session: str
    """Of the call that asks, so that what the other agent does can be told apart and undone."""
    parent: str
    """The id of that call. Give it to the calls that the other agent makes, as their parent."""
    depth: int = 1
    """How many errands this one is inside of, itself included."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """Of that call, for the calls that the other agent makes."""


Deliver = Callable[[Attachment], Awaitable[str]]
"""Bring a file to the person; answers where it went, in a few words."""
Delegate = Callable[[Errand], Awaitable[str]]
"""Have another agent do it; answers what it found."""
Model = Callable[[str], AsyncIterator[str]]
"""Answer a prompt, piece by piece as it is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Callbacks:
    """What the program around us supplies; None is "not here"."""

    deliver: Deliver | None = None
    delegate: Delegate | None = None
    model: Model | None = None

    def has(self, need: Need | None) -> bool:
        """Whether what a tool needs of the program around us was supplied; an engine is the machine's."""
        return need is None or need == "engine" or getattr(self, need) is not None


@asynccontextmanager
async def closing_stream(answer: AsyncIterator[str]) -> AsyncIterator[None]:
    """A model whose answer is not read to its end lets go of its connection."""
    try:
        yield
    finally:
        close = getattr(answer, "aclose", None)
        if close is not None:
            await close()
