"""Ports: what tools may reach, and what a machine must offer. The runtime stands between the two."""

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol

from handtools.core.call import Call
from handtools.core.changes import Change, Changes, ChangeSet, Kind, Node
from handtools.core.command import Command, Exit, Inherited, Job, Page, Ran, Settle, Show
from handtools.core.media import MediaKind, Preview, Wish
from handtools.core.searching import Admit, Hits, Paths, Patterns, Scope, Tallies, Tree, Wanted
from handtools.core.syntax import Match, Outline, Role, Spot, Symbol
from handtools.core.vault import Vault


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What is at a path, without its bytes."""

    path: str
    kind: Kind | Literal["other"]
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

    async def apply(self, changes: ChangeSet) -> Changes:
        """Ask, compare with what was read, write, record, announce: the one way to change a file."""
        ...


@dataclass(frozen=True, slots=True)
class Step:
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
    def vault(self) -> Vault | None:
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

    def plan(self, changes: Iterable[Change]) -> list[Step]:
        """Name the temporary of each step, and say what will be held; touches nothing."""
        ...

    def perform(self, steps: Sequence[Step]) -> None:
        """Do all steps or none: each only if `before` is still there. Raises `Stale`, having undone the rest."""
        ...

    def sweep(self, step: Step) -> str | None:
        """After a crash: put away what a step left beside its target; says where bytes that are not ours went."""
        ...


class Search(Protocol):
    """Looking through the workspace: what rules hide is never in an answer, whatever is asked."""

    async def hits(self, patterns: Patterns, scope: Scope, *, most: int) -> Hits:
        """The first hits in the order of their paths, `most` at the most."""
        ...

    async def tallies(self, patterns: Patterns, scope: Scope, *, most: int) -> Tallies:
        """The first files that hold it, and how often."""
        ...

    async def paths(self, scope: Scope, *, wanted: Wanted, most: int) -> Paths:
        """The newest paths below a folder, and how many there are."""
        ...

    async def tree(self, scope: Scope, *, depth: int, most: int) -> Tree:
        """What a folder holds, and the folders in it."""
        ...

    async def read(self, paths: Sequence[str]) -> dict[str, bytes]:
        """The bytes behind hits, for their surroundings; this does not count as seen by the agent."""
        ...


class HostSearch(Protocol):
    """A workspace's search as a machine offers it: confined, without policy. Roots are located paths."""

    async def hits(self, patterns: Patterns, scope: Scope, *, most: int, admit: Admit) -> Hits:
        """As `Search`; only paths that `admit` lets through count."""
        ...

    async def tallies(self, patterns: Patterns, scope: Scope, *, most: int, admit: Admit) -> Tallies:
        """As `Search`."""
        ...

    async def paths(self, scope: Scope, *, wanted: Wanted, most: int, admit: Admit) -> Paths:
        """As `Search`."""
        ...

    async def tree(self, scope: Scope, *, depth: int, most: int, admit: Admit) -> Tree:
        """As `Search`."""
        ...


class Commands(Protocol):
    """Commands as a tool sees them: judged, confined, limited, and what they changed recorded."""

    async def run(self, command: Command) -> Exit:
        """Run to the end; a failing command is a result. Progress is announced as it goes."""
        ...

    async def start(self, command: Command, description: str) -> Job:
        """Run in the background."""
        ...

    async def jobs(self) -> list[Job]:
        """The session's jobs, newest first."""
        ...

    async def job(self, job_id: str, *, timeout: float = 0.0) -> Job:  # noqa: ASYNC109
        """One job, after waiting at most so long for its end."""
        ...

    async def page(self, job_id: str, start: int, size: int) -> Page:
        """A part of what a job printed."""
        ...

    async def send(self, job_id: str, data: bytes) -> None:
        """Write to a job's input or terminal."""
        ...

    async def kill(self, job_id: str) -> Job:
        """End a job and everything it started."""
        ...


class HostCommands(Protocol):
    """Commands as a machine offers them: confined and limited, without policy or memory."""

    @property
    def boundary(self) -> str:
        """One honest sentence about what keeps a command in."""
        ...

    @property
    def confined(self) -> bool:
        """Whether the kernel keeps commands inside the workspace."""
        ...

    @property
    def missing(self) -> str:
        """Why there are no commands here; empty when there are."""
        ...

    async def run(
        self, command: Command, *, call: Call, show: Show, private: Sequence[str], read_only: Sequence[str]
    ) -> Ran:
        """Run to the end; `private` and `read_only` are globs that the policy gives."""
        ...

    async def start(
        self,
        command: Command,
        *,
        call: Call,
        description: str,
        private: Sequence[str],
        read_only: Sequence[str],
        show: Show,
        settle: Settle,
    ) -> Job:
        """Run in the background until it ends, is killed, or we are gone."""
        ...

    async def jobs(self, session: str) -> list[Job]:
        """The jobs of a session, newest first."""
        ...

    async def job(self, job_id: str, session: str, *, timeout: float) -> Job:  # noqa: ASYNC109
        """One job, after waiting for its end."""
        ...

    async def page(self, job_id: str, session: str, start: int, size: int) -> Page:
        """A part of what a job printed."""
        ...

    async def send(self, job_id: str, session: str, data: bytes) -> None:
        """Write to a job's input or terminal."""
        ...

    async def kill(self, job_id: str, session: str) -> Job:
        """End a job and everything it started."""
        ...

    def inherited(self, session: str) -> Inherited:
        """What the next command of a session begins with, and where."""
        ...

    def settled(self, job_id: str, session: str, end: Exit) -> None:
        """Note that what a job changed has landed, or never will."""
        ...

    def close(self) -> None:
        """End every job."""
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


class Syntax(Protocol):
    """What parsers know about bytes that the caller holds already: no effect on the world, so nothing to judge."""

    async def outline(self, path: str, data: bytes) -> Outline | None:
        """What the file defines; None when no grammar fits its name or first line, or it is too large."""
        ...

    async def enclosing(
        self, path: str, data: bytes, lines: Sequence[int]
    ) -> dict[int, tuple[Symbol, ...]]:
        """The symbols around each line, outermost first; empty where there are none or no grammar fits."""
        ...

    async def classify(
        self, path: str, data: bytes, spots: Sequence[Spot]
    ) -> dict[Spot, frozenset[Role]] | None:
        """What the text at each spot is: a definition, a call and so on; None when no grammar fits."""
        ...

    async def structural(self, path: str, data: bytes, pattern: str) -> list[Match] | None:
        """Where an ast-grep pattern such as `open($FILE, $$$)` matches; None when no grammar fits."""
        ...


class Media(Protocol):
    """Readers of files that are not plain text, over bytes that the caller holds already."""

    def kind(self, path: str, head: bytes) -> MediaKind | None:
        """What a file is, by its first bytes and its name; None when it is nothing that can be shown."""
        ...

    def describe(self, head: bytes) -> str:
        """A binary file's kind in a few words; empty when nobody can tell."""
        ...

    async def preview(self, path: str, data: bytes, wish: Wish) -> Preview | None:
        """The file as text or pictures; None when nothing here can show it."""
        ...


Progress = Callable[[str], None]
