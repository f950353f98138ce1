"""Ports for reading and changing the files of a workspace, and an editor's unsaved buffers."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from handtools.core.backups_locks_and_store import Backups
from handtools.core.changes import Change, ChangeSet, Node, NodeKind, RecordedChanges


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Metadata of a path: kind, size, mode, time of last change, number of hard links; without the bytes."""

    path: str
    kind: NodeKind | Literal["other"]
    bytes: int
    mode: int
    modified: float
    links: int = 1


SettingPredicate = Callable[[str, str], bool]
"""Predicate on the key and the value of a setting of git."""


@dataclass(frozen=True, slots=True)
class GitNamedPath:
    """A path of the workspace that a setting of git names, so that git runs or trusts what is there."""

    path: str
    key: str
    """The setting, such as `core.hookspath`, or the link in the git folder that leads to the path."""
    is_whole_folder: bool
    """Whether everything below the path counts as well."""


class Files(Protocol):
    """Port for tools to read and change files: paths relative to the workspace, effects judged and recorded."""

    async def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """Return the bytes of a regular file, or `size` of them from offset `start`."""
        ...

    async def facts(self, path: str) -> FileFacts | None:
        """Return the metadata of a path, or None if nothing is there."""
        ...

    async def names(self, path: str) -> list[FileFacts]:
        """List a folder's entries with their metadata, sorted by name."""
        ...

    def shown_path(self, path: str) -> str:
        """Return a path as results and diffs show it: relative to the workspace, links resolved."""
        ...

    async def renamed_path(self, path: str) -> str | None:
        """Return the new path of a missing file that git history shows as renamed; None if unknown."""
        ...

    async def missing_path_hint(self, path: str) -> str:
        """Return a sentence on where a missing path went, or on names near it; empty if nothing is known."""
        ...

    async def last_read_bytes(self, path: str) -> bytes | None:
        """Return the bytes of a file as this agent last read them, or None if they were not kept."""
        ...

    async def apply(self, changes: ChangeSet) -> RecordedChanges:
        """Apply changes: ask for approval if needed, compare with the content read, write, record, announce."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One step of a file transaction: the change and the temporary name beside its target."""

    change: Change
    temporary: str


class HostFiles(Protocol):
    """Port of the machine for a workspace's files: blocking, confined to it, without policy or journal.

    `locate` follows links and returns the real path. All other methods take located paths and follow no link: a
    link that appeared since is refused with `SymlinkInPath`, so that the judged file is the one opened.
    """

    @property
    def is_fast_to_read(self) -> bool:
        """Whether small reads are so fast that they need no worker thread."""
        ...

    def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """Return the bytes of a regular file, or `size` of them from offset `start`."""
        ...

    def facts(self, path: str) -> FileFacts | None:
        """Return the metadata of a path, or None if nothing is there."""
        ...

    def names(self, path: str) -> list[FileFacts]:
        """List a folder's entries with their metadata, sorted by name."""
        ...

    def node(self, path: str, *, like: Node | None = None) -> Node | None:
        """Return the node at a path with bytes and mode, without following a link; None if nothing is there.

        If `like` is backed up as a whole, the node is described the same way: by mark, a folder with all its
        items.
        """
        ...

    @property
    def vault(self) -> Backups | None:
        """The backup store for replaced files and folders; None if there is none."""
        ...

    def renamed_path(self, path: str) -> str | None:
        """Return the new path of a renamed file according to git history; None if unknown."""
        ...

    def is_tracked_by_git(self, path: str) -> bool:
        """Whether git tracks the content of the file at a path, so that everybody with the repository has it."""
        ...

    def git_named_paths(
        self, paths: Collection[str], is_plain: SettingPredicate
    ) -> tuple[GitNamedPath, ...]:
        """List the paths that git's settings name in the repositories above some located paths, and above all.

        The person's own settings count, too. Settings that are plain by the predicate name nothing.
        """
        ...

    def verifies_git_pack(self, stem: str, refs: Mapping[str, str]) -> bool:
        """Whether the index files of a pack say what is in it, as git finds it; False if that can't be found out.

        `stem` is the pack's path without `.pack`. Files are taken from the backups if `refs` has their suffix.
        """
        ...

    def writable(self, path: str) -> bool:
        """Whether the current user has write permission for the file at a path."""
        ...

    def locate(self, path: str) -> str:
        """Resolve a path inside the workspace with all links followed; it need not exist."""
        ...

    def plan(self, changes: Iterable[Change]) -> list[PlannedWrite]:
        """Plan changes as transaction steps with temporary names and backup references; writes nothing."""
        ...

    def perform(self, steps: Sequence[PlannedWrite]) -> None:
        """Perform all steps or none; raises `Stale`, after rolling back, if a path is not as `before` says."""
        ...

    def sweep(self, step: PlannedWrite) -> str | None:
        """Clean up a step's temporary file after a crash; return where foreign content was moved to, if any."""
        ...


class EditorBuffers(Protocol):
    """Port of an editor for the text it shows of workspace files, saved or not; blocking, from worker threads."""

    def read(self, path: str) -> str | None:
        """Return the text that the editor shows of a file; None if it can't tell, or has no such file."""
        ...

    def write(self, path: str, text: str) -> None:
        """Have the editor change its text of a file, or create the file; raises a `ToolError` if it does not."""
        ...
