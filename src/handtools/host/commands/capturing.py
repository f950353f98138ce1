"""Capturing what a command does to the workspace: the seam where overlays and scans plug in."""

from dataclasses import dataclass
from typing import Protocol

from handtools.core.changes import Change, Coverage
from handtools.host.commands.launching import Launch


@dataclass(frozen=True, slots=True)
class Delta:
    """What a command changed."""

    changes: tuple[Change, ...] | None
    """None: not captured, and it happened in place."""
    coverage: Coverage
    omitted: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


class Capturing(Protocol):
    """One command's capture."""

    @property
    def launch(self) -> Launch:
        """The launch, changed so that its writes are seen."""
        ...

    def finish(self) -> Delta:
        """After the command has ended: what it changed."""
        ...

    def discard(self) -> None:
        """Let go of everything that was held for it; the delta has landed or never will."""
        ...


class Capture(Protocol):
    """One way to see what commands change."""

    @property
    def apart(self) -> bool:
        """Whether what a command writes is kept apart: then nobody else's changes are taken for its own."""
        ...

    def begin(self, launch: Launch, name: str) -> Capturing:
        """Make ready for a command; `name` is the call's."""
        ...

    def close(self) -> None:
        """Let go of what is kept for the next command."""
        ...


@dataclass(frozen=True, slots=True)
class Uncaptured:
    """A command whose changes nobody sees."""

    launch: Launch

    def finish(self) -> Delta:
        """Nothing is known."""
        return Delta(None, "none")

    def discard(self) -> None:
        """Nothing was held."""


class NoCapture:
    """Commands write in place, and what they change is not recorded."""

    apart = False

    def begin(self, launch: Launch, name: str) -> Uncaptured:  # noqa: ARG002
        """As it is."""
        return Uncaptured(launch)

    def close(self) -> None:
        """Nothing is kept."""
