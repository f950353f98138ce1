"""Changes: the one value behind the preview, the write, the event, the undo and the multi-file patch."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from handtools.core.errors import UsageError

Kind = Literal["file", "link", "folder"]
Coverage = Literal["declared", "overlay", "scan", "none"]


def digest(data: bytes) -> str:
    """The name of some bytes in the store."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class Held:
    """A thing that is moved and never read: at its path, or else in the vault under `ref`."""

    ref: str
    mark: str
    """Tells whether it is still the same: the digest of its bytes, or of what a look from outside shows."""
    bytes: int
    fresh: bool = False
    """Set on what has yet to be made from its bytes: it is in the vault only when it was displaced."""
    content: str = ""
    """The digest of its bytes where the mark is not that and somebody has worked it out."""

    def alike(self, other: "Held") -> bool:
        """Whether both are the same by their marks, or else by their bytes as far as those are known."""
        return self.mark == other.mark or (bool(self.content) and self.content == other.content)


@dataclass(frozen=True)
class Node:
    """What is at a path: a file's bytes, a link's target, or a folder."""

    kind: Kind
    data: bytes = b""
    """Of a held folder, what is in it (see `core.trees`); of a held file, its bytes where they are at hand."""
    mode: int | None = None
    """Permission bits; None keeps what is there, or takes the default for something new."""
    held: Held | None = None
    """Set when the thing itself is moved in and out, a folder with all that is in it."""

    @cached_property
    def digest(self) -> str:
        """The name of the node's bytes in the store; of something held, its mark."""
        return self.held.mark if self.held else digest(self.data)

    @property
    def bytes(self) -> int:
        """How large it is."""
        return self.held.bytes if self.held else len(self.data)

    @property
    def moved(self) -> bool:
        """Whether it comes as it is, out of the vault, and is not made from its bytes."""
        return self.held is not None and not self.held.fresh

    @property
    def known(self) -> bool:
        """Whether `data` is all of it."""
        return self.held is None or bool(self.data) or not self.held.bytes

    def same(self, other: "Node | None") -> bool:
        """Whether a path that holds `other` holds this; a mode of None matches any."""
        if other is None or self.kind != other.kind:
            return False
        if self.held and other.held:
            alike = self.held.alike(other.held)
        elif self.held or other.held:
            alike = self.digest == other.digest
        else:
            alike = self.data == other.data
        return alike and (self.mode is None or other.mode is None or self.mode == other.mode)


@dataclass(frozen=True, slots=True)
class Change:
    """One path: what must be there before, and what is to be there after. None is absence."""

    path: str
    before: Node | None
    after: Node | None

    @classmethod
    def of(
        cls, path: str, *, before: bytes | None, after: bytes | None, mode: int | None = None
    ) -> "Change":
        """A change of a regular file's bytes."""
        was = None if before is None else Node("file", before)
        return cls(path, was, None if after is None else Node("file", after, mode))

    @property
    def inverse(self) -> "Change":
        """The change that takes this one back."""
        return Change(self.path, self.after, self.before)


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Changes that land together or not at all, each path once."""

    changes: tuple[Change, ...]
    note: str = ""
    """One line from the model on what this is for; shown in approvals and in the log."""

    @property
    def kind(self) -> Literal["change"]:
        """As rules name it."""
        return "change"

    def __post_init__(self) -> None:
        if len({change.path for change in self.changes}) != len(self.changes):
            raise UsageError("A ChangeSet names each path once.")

    @classmethod
    def of(cls, *changes: Change, note: str = "") -> "ChangeSet":
        """Put changes together."""
        return cls(changes, note)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    @property
    def paths(self) -> tuple[str, ...]:
        """Every path that is touched."""
        return tuple(change.path for change in self.changes)


@dataclass(frozen=True, slots=True)
class Touched:
    """One path of a recorded change, for results and logs: names of bytes, not the bytes."""

    path: str
    action: Literal["created", "changed", "deleted"]


@dataclass(frozen=True, slots=True)
class Changes:
    """What a call really changed: the undo handle, the paths, and how much of it was seen."""

    entry: int
    touched: tuple[Touched, ...]
    coverage: Coverage = "declared"
    omitted: tuple[str, ...] = ()
    """Paths that changed but could not be kept for undo."""

    def told(self, most: int) -> str:
        """What was done to which paths, in a line; only so many are named."""
        rows = [f"{touched.action} {touched.path}" for touched in self.touched[:most]]
        more = len(self.touched) - len(rows)
        return "Files: " + ", ".join(rows) + (f" and {more:,} more" if more > 0 else "") + "."


def together(parts: Iterable[Changes]) -> Changes | None:
    """One summary for a call that changed things more than once."""
    every = list(parts)
    if not every:
        return None
    touched = {item.path: item for part in every for item in part.touched}
    omitted = tuple(path for part in every for path in part.omitted)
    return Changes(every[-1].entry, tuple(touched.values()), every[-1].coverage, omitted)
