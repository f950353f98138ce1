"""Ports for reading and changing the files of a workspace, and an editor's unsaved buffers."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from handtools.core.backups_locks_and_store import Backups
from handtools.core.changes import Change, ChangeSet, Node, NodeKind, RecordedChanges


@dataclass(frozen=True, slots=True)
class FileFacts:
    """Metadata of a path: kind, size, mode, modification time, number of hard links, time of the last change."""

    path: str
    kind: NodeKind | Literal["other"]
    bytes: int
    mode: int
    modified: float
    links: int = 1
    changed: float = 0.0
    """When the file or its metadata last changed (ctime); unlike `modified`, programs can't set it."""


SettingPredicate = Callable[[str, str], bool]
"""Predicate on the key and value of a git setting."""


@dataclass(frozen=True, slots=True)
class GitNamedPath:
    """A workspace path named by a git setting, so that git runs or trusts its content."""

    path: str
    key: str
    """The setting, such as `core.hookspath`, or the symlink in the git folder that points to the path."""
    is_whole_folder: bool
    """Whether everything below the path is included."""


class Files(Protocol):
    """Port for tools to read and change files by workspace path; checks policy and records effects."""

    async def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """Return the bytes of a regular file: all of them, or up to `size` bytes from offset `start`."""
        ...

    async def facts(self, path: str) -> FileFacts | None:
        """Return the metadata of a path, or None if nothing is there."""
        ...

    async def names(self, path: str) -> list[FileFacts]:
        """List a folder's entries with their metadata, sorted by name."""
        ...

    def shown_path(self, path: str) -> str:
        """Return a path as results and diffs show it: relative to the workspace, symlinks resolved."""
        ...

    async def renamed_path(self, path: str) -> str | None:
        """Return the new path of a missing file that git history shows as renamed; None if unknown."""
        ...

    async def missing_path_hint(self, path: str) -> str:
        """Return a sentence on where a missing path moved to, or on similar names; empty if unknown."""
        ...

    async def last_read_bytes(self, path: str) -> bytes | None:
        """Return the bytes of a file as this agent was last shown them, or None if they were not stored.

        Lines that no call showed are as they were when the agent was first shown a part of the file.
        """
        ...

    async def mark_shown(
        self, path: str, data: bytes, shown: Sequence[tuple[int, int]] | None = None
    ) -> None:
        """Record that the result shows a file, or with `shown` only these ranges of its lines.

        `data` are the file's bytes as read. Reading a file does not count as showing it.
        """
        ...

    async def apply(self, changes: ChangeSet) -> RecordedChanges:
        """Apply changes: get approval if needed, compare with the content read, write, record, announce."""
        ...


@dataclass(frozen=True, slots=True)
class PlannedWrite:
    """One step of a file transaction: the change, and the temporary name next to its target."""

    change: Change
    temporary: str


class HostFiles(Protocol):
    """Host port for a workspace's files: blocking, confined to it, without policy or journal.

    `locate` follows symlinks and returns the real path. All other methods take located paths and follow no
    symlinks: if one has appeared since, they raise `SymlinkInPath`, so the file that was checked is the one
    opened.
    """

    @property
    def is_fast_to_read(self) -> bool:
        """Whether small reads are so fast that they need no worker thread."""
        ...

    def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """Return the bytes of a regular file: all of them, or up to `size` bytes from offset `start`."""
        ...

    def facts(self, path: str) -> FileFacts | None:
        """Return the metadata of a path, or None if nothing is there."""
        ...

    def names(self, path: str) -> list[FileFacts]:
        """List a folder's entries with their metadata, sorted by name."""
        ...

    def node(self, path: str, *, like_node: Node | None = None) -> Node | None:
        """Return the node at a path with bytes and mode, not following symlinks; None if nothing is there.

        If `like_node` is backed up as a whole, the node is described the same way: by its mark, and a folder
        with all its items.
        """
        ...

    @property
    def backups(self) -> Backups | None:
        """The backup store for replaced files and folders; None if there is none."""
        ...

    def renamed_path(self, path: str) -> str | None:
        """Return the new path of a renamed file according to git history; None if unknown."""
        ...

    def is_tracked_by_git(self, path: str) -> bool:
        """Whether git tracks the file's content, so that everyone with the repository has it."""
        ...

    def git_named_paths(
        self, paths: Collection[str], is_plain: SettingPredicate
    ) -> tuple[GitNamedPath, ...]:
        """List the paths that git settings name, in the repositories above some located paths and the root.

        This includes the user's own git settings. Settings for which `is_plain` is true are ignored.
        """
        ...

    def verifies_git_pack(self, stem: str, refs: Mapping[str, str]) -> bool:
        """Whether git confirms that a pack's index files match its content; False if that can't be checked.

        `stem` is the pack's path without `.pack`. Files are read from the backups if `refs` has their
        suffix.
        """
        ...

    def writable(self, path: str) -> bool:
        """Whether the current user has write permission for the file at a path."""
        ...

    def locate(self, path: str) -> str:
        """Resolve a path inside the workspace, following all symlinks; it need not exist."""
        ...

    def plan(self, changes: Iterable[Change]) -> list[PlannedWrite]:
        """Plan changes as transaction steps with temporary names and backup references; writes nothing."""
        ...

    def perform(self, writes: Sequence[PlannedWrite], *, synced: bool = True) -> None:
        """Perform all steps or none.

        Raises `Stale`, after rolling back, if a path is not as `before` says. Without `synced`, a power
        failure may undo or tear the writes until `sync` has returned.
        """
        ...

    def sync(self, paths: Collection[str]) -> None:
        """Wait until what is at these paths is on disk; skips what is gone. Raises `OSError`."""
        ...

    def sweep(self, write: PlannedWrite) -> str | None:
        """Clean up a step's temporary file after a crash.

        If it had another program's content, returns a sentence on where that was moved to; otherwise None.
        """
        ...


class EditorBuffers(Protocol):
    """Port to an editor's text of workspace files, saved or not; blocking, called from worker threads."""

    def read(self, path: str) -> str | None:
        """Return the editor's text of a file; None if it has no such file or can't provide it."""
        ...

    def write(self, path: str, text: str) -> None:
        """Have the editor change its text of a file, or create the file.

        Raises a `ToolError` if that fails.
        """
        ...
