"""The record of changes, as tools see it: what can be taken back, and what that comes to."""

from dataclasses import dataclass
from typing import Literal, Protocol

UndoScope = Literal["call", "turn", "session", "path"]


@dataclass(frozen=True, slots=True)
class FileVersion:
    """One recorded version of a path."""

    number: int
    call_id: str
    tool: str
    at: float
    action: str
    bytes: int | None


@dataclass(frozen=True, slots=True)
class ReplacingCall:
    """The call that replaced a text, and how many calls of the session came after it."""

    call_id: str
    tool: str
    calls_ago: int


@dataclass(frozen=True, slots=True)
class UndoOutcome:
    """What an undo restored, and what it left alone."""

    entry: int | None
    restored: tuple[str, ...]
    conflicts: tuple["UndoConflict", ...]
    changed_at: float | None = None
    """When the change of a path that was taken back had been made, in seconds since the epoch."""


@dataclass(frozen=True, slots=True)
class UndoConflict:
    """A path that is no longer as the call left it: kept as it is, with a merge to take or leave."""

    path: str
    reason: str
    merged: str | None
    """The three-way merge, where it is clean."""


class History(Protocol):
    """The record, as the undo tool sees it."""

    async def undo(self, scope: UndoScope, name: str, *, merge: bool = False) -> UndoOutcome:
        """Take back a call, a turn, a session, or the last change of a path."""
        ...

    async def redo(self, scope: UndoScope, name: str, *, merge: bool = False) -> UndoOutcome:
        """Take back the last undo of the same words."""
        ...

    async def versions(self, path: str) -> list[FileVersion]:
        """Recorded versions of a path, newest first."""
        ...

    async def restore(self, path: str, number: int) -> UndoOutcome:
        """Bring a path back to a recorded version."""
        ...

    async def replacer(self, path: str, text: str) -> "ReplacingCall | None":
        """The recorded call that took a text out of a file, where there is one."""
        ...
