"""Files: the ports for reading and changing a workspace, with locks, stored bytes and backups."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from handtools.core.changes import Change, ChangeSet, Node, NodeKind, RecordedChanges


class Backups(Protocol):
    """Things kept outside the workspace as they are: moved in and out, not read and written."""

    def has(self, ref: str) -> bool:
        """Whether the thing is here, and not at its path."""
        ...

    def read(self, ref: str, most: int) -> bytes | None:
        """The bytes of a file that is here, unless there are more than so many."""
        ...

    def drop(self, ref: str, *, erase: bool = False) -> None:
        """Let go of a thing; no error when it is not here. With `erase`, a file's bytes are overwritten first."""
        ...

    def clear(self, name: str) -> None:
        """Remove what is left of an item when its changes have landed, or never will."""
        ...

    def tidy(self, wanted: Collection[str]) -> list[str]:
        """Remove the items that nobody works on and the record does not name; tells which can't be removed."""
        ...


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is at a path, without its bytes."""

    path: str
    kind: NodeKind | Literal["other"]
    bytes: int
    mode: int
    modified: float
    links: int = 1


class Files(Protocol):
    """Files as a tool sees them: every path is relative to the workspace, every effect is judged and recorded."""

    async def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """The bytes of a regular file, or a part of them."""
        ...

    async def facts(self, path: str) -> FileFacts | None:
        """What is there, or None."""
        ...

    async def names(self, path: str) -> list[FileFacts]:
        """What a folder holds, by name."""
        ...

    def named(self, path: str) -> str:
        """The path as answers and diffs show it: relative to the workspace, links resolved."""
        ...

    async def moved(self, path: str) -> str | None:
        """Where a file that is gone went, if the repository's history tells and it is there."""
        ...

    async def seen(self, path: str) -> bytes | None:
        """What this agent last saw of a file, where that was kept."""
        ...

    async def apply(self, changes: ChangeSet) -> RecordedChanges:
        """Ask, compare with what was read, write, record, announce: the one way to change a file."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One planned write of a transaction: the change, and the name beside the target that it goes through."""

    change: Change
    temporary: str


class HostFiles(Protocol):
    """A workspace's files as a machine offers them: blocking, confined, without policy or memory.

    `locate` follows links and says where a path leads. Everything else takes located paths and goes through no
    link: one that has come into the way since is refused with `Redirected`. So what was judged is what is opened.
    """

    @property
    def quick(self) -> bool:
        """Whether a small look is answered from memory, so that a thread would cost more than it saves."""
        ...

    def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """The bytes of a regular file."""
        ...

    def facts(self, path: str) -> FileFacts | None:
        """What is there; None when nothing is."""
        ...

    def names(self, path: str) -> list[FileFacts]:
        """What a folder holds, by name."""
        ...

    def node(self, path: str, *, like: Node | None = None) -> Node | None:
        """What is at the path itself, with its bytes and mode; a link at its end is a thing like others.

        With a `like` that is held, seen the way that was: by a mark, a folder with all that is in it.
        """
        ...

    @property
    def vault(self) -> Backups | None:
        """Where held things are while they are not at their path."""
        ...

    def moved(self, path: str) -> str | None:
        """Where a file went, as far as the repository's history tells."""
        ...

    def writable(self, path: str) -> bool:
        """Whether this user may write to what is there; a program that opens it would be let."""
        ...

    def locate(self, path: str) -> str:
        """The path with inner links resolved, as locks, rules and the record name it; it need not exist."""
        ...

    def plan(self, changes: Iterable[Change]) -> list[PlannedWrite]:
        """Name the temporary of each step, and say what will be held; touches nothing."""
        ...

    def perform(self, steps: Sequence[PlannedWrite]) -> None:
        """Do all steps or none: each only if `before` is still there. Raises `Stale`, having undone the rest."""
        ...

    def sweep(self, step: PlannedWrite) -> str | None:
        """After a crash: put away what a step left beside its target; says where bytes that are not ours went."""
        ...


class Locks(Protocol):
    """Exclusive locks that hold across the processes of one checkout."""

    def hold(self, keys: Sequence[str], *, timeout: float) -> AbstractAsyncContextManager[None]:
        """Hold all keys, taken in one order; raises `Busy` when they can't be had in time."""
        ...


class Store(Protocol):
    """Bytes kept outside the workspace: large preimages and overflowing outputs."""

    def put(self, data: bytes, *, name: str) -> None:
        """Keep bytes under a name; the same name again is the same bytes."""
        ...

    def get(self, name: str) -> bytes:
        """The bytes of a name; `KeyError` when they are gone."""
        ...

    def part(self, name: str, start: int, size: int | None) -> bytes:
        """A part of the bytes, without holding the others; `KeyError` when they are gone."""
        ...

    def size(self, name: str) -> int:
        """How many bytes a name stands for; `KeyError` when they are gone."""
        ...

    def drop(self, name: str) -> None:
        """Let go of a name; no error when it is gone."""
        ...

    def names(self) -> list[str]:
        """Every name that is kept."""
        ...
