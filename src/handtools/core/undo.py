"""Undo history for tools: file versions, outcomes and conflicts of an undo, and the `History` port."""

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from handtools.core.changes import TouchedPath

UndoScope = Literal["last", "call", "since", "turn", "session", "path"]
"""What to undo: the session's last change, a call, a call and all later ones of its session, a turn, …"""

LAST_NAME = "last"
"""Name of the last change, turn or session."""

PERSON_AGENT_NAME = "person"
"""Agent name recorded for the user's own actions on the command line: undo, redo, review."""


_CHANGE_NUMBER = re.compile(r"#?[0-9]{1,18}")


def is_change_number(name: str) -> bool:
    """Whether a name is the number of a change, such as `9` or `#9`, and so never the start of a call's id."""
    return _CHANGE_NUMBER.fullmatch(name) is not None


def passed_over_text(numbers: Sequence[int]) -> str:
    """Return the sentence about changes that an undo of the last change passed over."""
    listed = ", ".join(map(str, numbers))
    noun = "change" if len(numbers) == 1 else "changes"
    return f"Passed over {noun} {listed}: only ignored files."


class ReviewPoint(NamedTuple):
    """Start of a review: the start of a session, one of its calls, or a time in seconds since 1970."""

    scope: Literal["session", "since", "time"]
    name: str


@dataclass(frozen=True, slots=True)
class FileVersion:
    """One recorded version of a file: number, the call that made it, time, action and size."""

    number: int
    call_id: str
    tool: str
    at: float
    action: str
    bytes: int | None


@dataclass(frozen=True, slots=True)
class TextRemovingCall:
    """The call that removed a text from a file, and how many calls of the session followed it."""

    call_id: str
    tool: str
    calls_ago: int


@dataclass(frozen=True, slots=True)
class UndoOutcome:
    """Outcome of an undo: the restored paths, and conflicting paths that were left as they are."""

    entry: int | None
    restored: tuple[str, ...]
    conflicts: tuple["UndoConflict", ...]
    touched: tuple[TouchedPath, ...] = ()
    """What the undo did to each restored path, for example `deleted` if the undone call had created it."""
    changed_at: float | None = None
    """Time of the undone change, if a single path was undone, in seconds since the epoch."""
    scope: UndoScope = "last"
    name: str = ""
    """What was undone, after `last` was resolved; a change is named by its number."""
    passed_over: tuple[int, ...] = ()
    """Numbers of newer changes that `last` did not mean, because commands changed only ignored files in them."""
    diff: str = ""
    """What changed in the text files that remain, as a short diff."""


@dataclass(frozen=True, slots=True)
class UndoConflict:
    """A path that changed after the call to be undone; it is left as it is, with a proposed merge."""

    path: str
    reason: str
    merged: str | None
    """Text of the three-way merge; None if it has conflicts."""


class History(Protocol):
    """Port for tools to undo, redo and restore recorded changes."""

    async def undo(
        self, scope: UndoScope, name: str, *, merge: bool = False, dry_run: bool = False
    ) -> UndoOutcome:
        """Undo the changes of a call, turn or session, or the last change of a path.

        Without a name, or with `last`, that is the last call or turn of this session, or this session. `dry_run`
        writes nothing.
        """
        ...

    async def redo(
        self, scope: UndoScope, name: str, *, merge: bool = False, dry_run: bool = False
    ) -> UndoOutcome:
        """Redo: revert the last undo with the same scope and name."""
        ...

    async def versions(self, path: str) -> list[FileVersion]:
        """List the recorded versions of a path, newest first."""
        ...

    async def restore(self, path: str, number: int, *, dry_run: bool = False) -> UndoOutcome:
        """Restore a path to one of its recorded versions."""
        ...

    async def reject(
        self, point: ReviewPoint, rejected: Mapping[str, Collection[str]], edited: Mapping[str, str]
    ) -> UndoOutcome:
        """Revert hunks that were made since a point, or replace them with other text.

        `rejected` has the ids of these hunks by path; `edited` has the new text of those to replace, by id.
        """
        ...

    async def find_removing_call(self, path: str, text: str) -> "TextRemovingCall | None":
        """Return the recorded call that removed a text from a file, or None."""
        ...
