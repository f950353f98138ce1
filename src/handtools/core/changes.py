"""File changes as values: the `Node` at a path before and after, and a `ChangeSet` applied atomically.

A folder with very many items is changed as one node that lists its items.
"""

import hashlib
import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any, Literal, NamedTuple

from handtools.core.errors import UsageError
from handtools.text.paths import folders_above

NodeKind = Literal["file", "link", "folder"]
ChangeCoverage = Literal["declared", "overlay", "scan", "none"]


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of bytes in hex, used as their storage key."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class BackupRef:
    """Reference to a file or folder that is moved to and from the backups instead of being copied."""

    ref: str
    mark: str
    """Differs if the content differs: SHA-256 of its bytes, or of its metadata such as size and times."""
    bytes: int
    fresh: bool = False
    """Whether the file is new and must still be written from its bytes.

    A backup exists only after this file was itself replaced.
    """
    content: str = ""
    """SHA-256 of the bytes, if it was computed and `mark` is something else; otherwise empty."""

    def alike(self, other_backup: "BackupRef") -> bool:
        """Whether two references have the same content: equal marks, or equal known digests."""
        return self.mark == other_backup.mark or (
            bool(self.content) and self.content == other_backup.content
        )


@dataclass(frozen=True)
class Node:
    """What is at a path: a regular file with its bytes, a symlink with its target, or a folder."""

    kind: NodeKind
    data: bytes = b""
    """File bytes or symlink target; for a backed-up folder the packed list of its items."""
    mode: int | None = None
    """Permission bits; None keeps the existing file's bits, or uses the default for a new file."""
    held: BackupRef | None = None
    """Set when the file or folder is moved to or from the backups as a whole."""

    @cached_property
    def digest(self) -> str:
        """SHA-256 of the node's bytes; for a backed-up node its mark."""
        return self.held.mark if self.held else sha256_hex(self.data)

    @property
    def bytes(self) -> int:
        """Size of the node's content in bytes."""
        return self.held.bytes if self.held else len(self.data)

    @property
    def is_moved_from_backups(self) -> bool:
        """Whether the node is moved back from the backups instead of being written from its bytes."""
        return self.held is not None and not self.held.fresh

    @property
    def known(self) -> bool:
        """Whether `data` contains all of the node's bytes."""
        return self.held is None or bool(self.data) or not self.held.bytes

    def same(self, other: "Node | None") -> bool:
        """Whether two nodes have the same kind, content and mode; a mode of None matches any."""
        if other is None or self.kind != other.kind:
            return False
        if self.held and other.held:
            alike = self.held.alike(other.held)
        elif self.held or other.held:
            alike = self.digest == other.digest
        else:
            alike = self.data == other.data
        return alike and (self.mode is None or other.mode is None or self.mode == other.mode)


_BLOCK_BYTES = 512


def is_partial_copy(data: bytes, whole: bytes) -> bool:
    """Whether a power failure may have left these bytes of a write of `whole`.

    Blocks that did not reach the disk are zeros, or missing at the end.
    """
    if len(data) > len(whole):
        return False
    for start in range(0, len(data), _BLOCK_BYTES):
        block = data[start : start + _BLOCK_BYTES]
        if any(block) and not whole.startswith(block, start):
            return False
    return True


def same_nodes(node: Node | None, other_node: Node | None) -> bool:
    """Whether two nodes are the same, or both None."""
    return other_node is None if node is None else node.same(other_node)


@dataclass(frozen=True, slots=True)
class Change:
    """Change of one path: the expected node before and the node after; None means that nothing is there."""

    path: str
    before: Node | None
    after: Node | None

    @classmethod
    def of(
        cls, path: str, *, before: bytes | None, after: bytes | None, mode: int | None = None
    ) -> "Change":
        """Build a change of a regular file from its bytes before and after; None means no file."""
        was = None if before is None else Node("file", before)
        return cls(path, was, None if after is None else Node("file", after, mode))

    @property
    def inverse(self) -> "Change":
        """The reverse change: from `after` back to `before`."""
        return Change(self.path, self.after, self.before)


@dataclass(frozen=True, slots=True)
class ChangeSet:
    """Changes of different paths that are applied together or not at all."""

    changes: tuple[Change, ...]
    note: str = ""
    """One line from the model about the purpose; shown in approvals and in the log."""
    exempt: frozenset[tuple[str, str]] = frozenset()
    """Pairs of a path and a built-in rule that does not apply to it because its content was checked."""

    @property
    def kind(self) -> Literal["change"]:
        """The effect kind that policy rules use for changes."""
        return "change"

    def __post_init__(self) -> None:
        if len({change.path for change in self.changes}) != len(self.changes):
            raise UsageError("A path occurs twice in a ChangeSet.")

    @classmethod
    def of(cls, *changes: Change, note: str = "") -> "ChangeSet":
        """Build a change set from single changes; raises `UsageError` if a path occurs twice."""
        return cls(changes, note)

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    @property
    def paths(self) -> tuple[str, ...]:
        """The paths of all changes, in order."""
        return tuple(change.path for change in self.changes)


@dataclass(frozen=True, slots=True)
class TouchedPath:
    """One path of a recorded change and whether it was created, changed or deleted; without the bytes."""

    path: str
    action: Literal["created", "changed", "deleted"]


@dataclass(frozen=True, slots=True)
class RecordedChanges:
    """Summary of a call's changes: the journal entry to undo, the paths, and how they were detected."""

    entry: int
    touched: tuple[TouchedPath, ...]
    coverage: ChangeCoverage = "declared"
    omitted: tuple[str, ...] = ()
    """Paths that changed but whose old content could not be saved for undo."""


def merge_recorded_changes(recorded_changes: Iterable[RecordedChanges]) -> RecordedChanges | None:
    """Merge the change summaries of one call into one; None if there are none."""
    every = list(recorded_changes)
    if not every:
        return None
    touched = {item.path: item for part in every for item in part.touched}
    omitted = tuple(path for part in every for path in part.omitted)
    return RecordedChanges(every[0].entry, tuple(touched.values()), every[-1].coverage, omitted)


WHOLE_FOLDER_ITEMS = 256
"""A folder with more than this many items is moved as one node."""


class FolderItem(NamedTuple):
    """One file, symlink or folder inside a folder that is moved as one, by its relative path."""

    path: str
    kind: NodeKind
    mode: int
    mark: str
    """For a file its mark as in `BackupRef`, for a symlink its target, for a folder empty."""
    bytes: int


def pack_folder(items: Iterable[FolderItem]) -> bytes:
    """Encode a folder's items as JSON bytes for its node, sorted so that equal folders give equal bytes."""
    return json.dumps(sorted(items), separators=(",", ":")).encode()


def unpack_folder(data: bytes) -> list[FolderItem]:
    """Decode the items of a folder from the bytes made by `pack_folder`."""
    rows: list[list[Any]] = json.loads(data or b"[]")
    return [FolderItem._make(row) for row in rows]


def folder_node(items: Sequence[FolderItem], *, mode: int, ref: str) -> Node:
    """Build the node of a folder that is moved as one, from its items and its backup reference."""
    data = pack_folder(items)
    backup = BackupRef(ref, sha256_hex(data), sum(leaf.bytes for leaf in items))
    return Node("folder", data, mode, backup)


def is_folder_moved_as_one(node: Node | None) -> bool:
    """Whether a node is a folder that is moved as one with all its items."""
    return node is not None and node.kind == "folder" and node.held is not None


def paths_in_moved_folders(change: Change) -> list[str]:
    """List the paths of all items in the folders that a change moves as one."""
    folders = [node for node in (change.before, change.after) if node and is_folder_moved_as_one(node)]
    leaves = {leaf.path for node in folders for leaf in unpack_folder(node.data)}
    return [f"{change.path}/{path}" for path in sorted(leaves)]


def links_created(changes: Iterable[Change]) -> dict[str, str]:
    """Map the path of each symlink that the changes create to its target."""
    found = {}
    for change in changes:
        node = change.after
        if node and node.kind == "link":
            found[change.path] = node.data.decode(errors="surrogateescape")
        elif node and is_folder_moved_as_one(node):
            leaves = (leaf for leaf in unpack_folder(node.data) if leaf.kind == "link")
            found |= {f"{change.path}/{leaf.path}": leaf.mark for leaf in leaves}
    return found


def split_folder_change(change: Change) -> list[Change]:
    """Split a change of a folder moved as one into changes of its items.

    Other changes are returned unchanged.
    """
    if not is_folder_moved_as_one(change.before) and not is_folder_moved_as_one(change.after):
        return [change]
    before, after = _nodes_inside_folder(change.before), _nodes_inside_folder(change.after)
    own = _change_of_folder_alone(change)
    parts = [Change(f"{own.path}/{path}", before.get(path), after.get(path)) for path in {*before, *after}]
    return sorted(
        (part for part in (own, *parts) if not same_nodes(part.before, part.after)), key=change_apply_order
    )


def combine_folder_changes(
    changes: Sequence[Change], *, apart: Collection[str] = (), whole: int = WHOLE_FOLDER_ITEMS
) -> list[Change]:
    """Combine the changes of large folders that are created or deleted into one change per folder.

    Folders that contain a path in `apart` stay split. The inverse is `split_folder_change`.
    """
    split = folders_above(apart)
    ordered = sorted(changes, key=lambda change: change.path)
    paths = [change.path for change in ordered]
    # Prefix sums over the sorted changes avoid a scan per folder: folders can nest deeply.
    sums = [
        [*accumulate(map(trait, ordered), initial=0)]
        for trait in (_is_coming, _is_going, _is_held, _is_locked)
    ]
    gathered_changes: dict[str, Change] = {}
    inner: set[str] = set()
    for change in sorted(ordered, key=lambda change: change.path.count("/")):
        if change.path in split or change.path in inner:
            continue
        # Paths below a folder are contiguous when sorted: `0` is the character after `/`.
        first, last = bisect_left(paths, f"{change.path}/"), bisect_left(paths, f"{change.path}0")
        coming, going, held, locked = (each[last] - each[first] for each in sums)
        size = last - first
        as_one = (_is_coming(change) and coming == size) or (_is_going(change) and going == size)
        large = size > whole or locked or _is_locked(change)
        if held and as_one and large and _folder_of(change):
            gathered_changes[change.path] = _change_of_whole_folder(change, ordered[first:last])
            inner.update(paths[first:last])
    return [gathered_changes.get(change.path, change) for change in changes if change.path not in inner]


def change_apply_order(change: Change) -> tuple[int, int, str]:
    """Sort key of changes: deletions first, deepest path first; then the others, shallowest path first.

    Changes of the same depth are sorted by path, so that every process applies and shows them in the same
    order.
    """
    depth = change.path.count("/")
    return (0, -depth, change.path) if change.after is None else (1, depth, change.path)


def _is_coming(change: Change) -> bool:
    return change.before is None


def _is_going(change: Change) -> bool:
    return change.after is None


def _is_held(change: Change) -> bool:
    return any(node and node.held for node in (change.before, change.after))


def _is_locked(change: Change) -> bool:
    """Whether a change is of a folder that its owner can't write to or enter."""
    folder = _folder_of(change)
    return folder is not None and folder.mode is not None and folder.mode & 0o300 != 0o300


def _folder_of(change: Change) -> Node | None:
    """Return the folder that a change creates or deletes; None for other nodes."""
    node = change.before or change.after
    return node if node and node.kind == "folder" else None


def _change_of_whole_folder(own_changes: Change, changes_below: Sequence[Change]) -> Change:
    """Return one change that creates or deletes a folder with everything in it."""
    start = len(own_changes.path) + 1
    nodes = [(change.path, node) for change in changes_below if (node := change.before or change.after)]
    path, ref = next((path, node.held.ref) for path, node in nodes if node.held)
    folder = _folder_of(own_changes)
    mode = 0o755 if folder is None or folder.mode is None else folder.mode
    leaves = [folder_item(path[start:], node) for path, node in nodes]
    node = folder_node(leaves, mode=mode, ref=ref.removesuffix(path[start - 1 :]))
    return (
        Change(own_changes.path, None, node)
        if _is_coming(own_changes)
        else Change(own_changes.path, node, None)
    )


def folder_item(path: str, node: Node) -> FolderItem:
    """Convert a node to an item of a folder that is moved as one."""
    mark = node.data.decode(errors="surrogateescape") if node.kind == "link" else ""
    if node.kind == "file":
        mark = node.digest
    mode = 0 if node.kind == "link" else node.mode or 0
    return FolderItem(path, node.kind, mode, mark, node.bytes if node.kind == "file" else 0)


def _nodes_inside_folder(node: Node | None) -> dict[str, Node]:
    if node is None or node.held is None or node.kind != "folder":
        return {}
    return {leaf.path: _node_of_item(leaf, node.held.ref) for leaf in unpack_folder(node.data)}


def _node_of_item(item: FolderItem, ref: str) -> Node:
    if item.kind == "folder":
        return Node("folder", mode=item.mode)
    ref = f"{ref}/{item.path}"
    if item.kind == "link":
        target = item.mark.encode(errors="surrogateescape")
        return Node("link", target, None, BackupRef(ref, sha256_hex(target), 0))
    return Node("file", b"", item.mode, BackupRef(ref, item.mark, item.bytes))


def _change_of_folder_alone(change: Change) -> Change:
    """Return the change of the folder itself, without its items."""
    before, after = (
        Node("folder", mode=node.mode) if node and is_folder_moved_as_one(node) else node
        for node in (change.before, change.after)
    )
    return Change(change.path, before, after)


def parent_folders(path: str) -> Iterator[str]:
    """Yield the parent folders of a path, innermost first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
