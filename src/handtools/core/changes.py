"""Changes: what is at a path before and after, for files and whole folders; a `ChangeSet` is all or nothing.

ADR 60.
"""

import hashlib
import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from handtools.core.errors import UsageError

NodeKind = Literal["file", "link", "folder"]
Coverage = Literal["declared", "overlay", "scan", "none"]


def digest(data: bytes) -> str:
    """The name of some bytes in the store."""
    return hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, slots=True)
class BackupRef:
    """A thing that is moved and never read: at its path, or else in the vault under `ref`."""

    ref: str
    mark: str
    """Tells whether it is still the same: the digest of its bytes, or of what a look from outside shows."""
    bytes: int
    fresh: bool = False
    """Set on what has yet to be made from its bytes: it is in the vault only when it was displaced."""
    content: str = ""
    """The digest of its bytes where the mark is not that and somebody has worked it out."""

    def alike(self, other: "BackupRef") -> bool:
        """Whether both are the same by their marks, or else by their bytes as far as those are known."""
        return self.mark == other.mark or (bool(self.content) and self.content == other.content)


@dataclass(frozen=True)
class Node:
    """What is at a path: a file's bytes, a link's target, or a folder."""

    kind: NodeKind
    data: bytes = b""
    """Of a held folder, what is in it (see `core.changes`); of a held file, its bytes where they are at hand."""
    mode: int | None = None
    """Permission bits; None keeps what is there, or takes the default for something new."""
    held: BackupRef | None = None
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
class TouchedPath:
    """One path of a recorded change, for results and logs: names of bytes, not the bytes."""

    path: str
    action: Literal["created", "changed", "deleted"]


@dataclass(frozen=True, slots=True)
class RecordedChanges:
    """What a call really changed: the undo handle, the paths, and how much of it was seen."""

    entry: int
    touched: tuple[TouchedPath, ...]
    coverage: Coverage = "declared"
    omitted: tuple[str, ...] = ()
    """Paths that changed but could not be kept for undo."""

    def told(self, most: int) -> str:
        """What was done to which paths, in a line; only so many are named."""
        rows = [f"{touched.action} {touched.path}" for touched in self.touched[:most]]
        more = len(self.touched) - len(rows)
        return "Files: " + ", ".join(rows) + (f" and {more:,} more" if more > 0 else "") + "."


def merged_changes(parts: Iterable[RecordedChanges]) -> RecordedChanges | None:
    """One summary for a call that changed things more than once."""
    every = list(parts)
    if not every:
        return None
    touched = {item.path: item for part in every for item in part.touched}
    omitted = tuple(path for part in every for path in part.omitted)
    return RecordedChanges(every[-1].entry, tuple(touched.values()), every[-1].coverage, omitted)


WHOLE_FOLDER_ITEMS = 256
"""A folder with more than this in it is moved as one."""


@dataclass(frozen=True, slots=True)
class FolderItem:
    """One thing in a tree, by its path below the tree's folder."""

    path: str
    kind: NodeKind
    mode: int
    mark: str
    """Of a file, as in `BackupRef`; of a link, where it points; of a folder, nothing."""
    bytes: int


def pack_folder(leaves: Iterable[FolderItem]) -> bytes:
    """Leaves as the bytes of a folder's node; the same tree always gives the same bytes."""
    rows = sorted([leaf.path, leaf.kind, leaf.mode, leaf.mark, leaf.bytes] for leaf in leaves)
    return json.dumps(rows, separators=(",", ":")).encode()


def unpack_folder(data: bytes) -> list[FolderItem]:
    """The inverse of `pack_folder`."""
    rows: list[list[Any]] = json.loads(data or b"[]")
    return [FolderItem(*row) for row in rows]


def folder_node(leaves: Sequence[FolderItem], *, mode: int, ref: str) -> Node:
    """The node of a whole folder."""
    data = pack_folder(leaves)
    held = BackupRef(ref, digest(data), sum(leaf.bytes for leaf in leaves))
    return Node("folder", data, mode, held)


def is_whole_folder(node: Node | None) -> bool:
    """Whether a node stands for a folder with all that is in it."""
    return node is not None and node.kind == "folder" and node.held is not None


def paths_inside(change: Change) -> list[str]:
    """The paths that a change moves along with its own."""
    leaves = {
        leaf.path
        for node in (change.before, change.after)
        if node and is_whole_folder(node)
        for leaf in unpack_folder(node.data)
    }
    return [f"{change.path}/{path}" for path in sorted(leaves)]


def links_created(changes: Iterable[Change]) -> dict[str, str]:
    """Where links come to be, and where each points."""
    found = {}
    for change in changes:
        node = change.after
        if node and node.kind == "link":
            found[change.path] = node.data.decode(errors="surrogateescape")
        elif node and is_whole_folder(node):
            leaves = (leaf for leaf in unpack_folder(node.data) if leaf.kind == "link")
            found |= {f"{change.path}/{leaf.path}": leaf.mark for leaf in leaves}
    return found


def without_whole_folders(change: Change) -> list[Change]:
    """A change of whole folders as the changes of everything in them; any other as it is."""
    if not is_whole_folder(change.before) and not is_whole_folder(change.after):
        return [change]
    before, after = _nodes(change.before), _nodes(change.after)
    own = _own(change)
    parts = [Change(f"{own.path}/{path}", before.get(path), after.get(path)) for path in {*before, *after}]
    return sorted((part for part in (own, *parts) if not _equal(part.before, part.after)), key=apply_order)


def with_whole_folders(
    changes: Sequence[Change], *, apart: Collection[str] = (), whole: int = WHOLE_FOLDER_ITEMS
) -> list[Change]:
    """Changes with large folders that come or go put together; `without_whole_folders` takes them apart again.

    A folder that comes or goes does so with everything below it, so all of that is in the list, except what is
    `apart`: a folder that holds such a path stays in pieces.
    """
    split = {above for path in apart for above in parent_folders(path)}
    ordered = sorted(changes, key=lambda change: change.path)
    paths = [change.path for change in ordered]
    gathered: dict[str, Change] = {}
    inner: set[str] = set()
    for change in sorted(ordered, key=lambda change: change.path.count("/")):
        if change.path in split or change.path in inner:
            continue
        # Everything below a folder stands together: `0` is the sign after the slash.
        first, last = bisect_left(paths, f"{change.path}/"), bisect_left(paths, f"{change.path}0")
        one = _together(change, ordered[first:last], whole) if last > first else None
        if one:
            gathered[change.path] = one
            inner.update(paths[first:last])
    return [gathered.get(change.path, change) for change in changes if change.path not in inner]


def apply_order(change: Change) -> tuple[int, int]:
    """Removals first and deepest first, then what comes, shallowest first."""
    depth = change.path.count("/")
    return (0, -depth) if change.after is None else (1, depth)


def _together(own: Change, below: Sequence[Change], whole: int) -> Change | None:
    coming = own.before is None and all(change.before is None for change in below)
    going = own.after is None and all(change.after is None for change in below)
    if not (coming or going):
        return None
    nodes = [(change.path, change.after if coming else change.before) for change in below]
    folder = own.after if coming else own.before
    if folder is None or folder.kind != "folder":
        return None
    folders = [folder, *(node for _, node in nodes if node and node.kind == "folder")]
    locked = any(node.mode is not None and node.mode & 0o300 != 0o300 for node in folders)
    refs = [(path, node.held.ref) for path, node in nodes if node and node.held]
    if not refs or not (len(nodes) > whole or locked):
        return None
    start = len(own.path) + 1
    path, ref = refs[0]
    leaves = [folder_item(path[start:], node) for path, node in nodes if node]
    node = folder_node(
        leaves, mode=0o755 if folder.mode is None else folder.mode, ref=ref.removesuffix(path[start - 1 :])
    )
    return Change(own.path, None, node) if coming else Change(own.path, node, None)


def folder_item(path: str, node: Node) -> FolderItem:
    """A node as a part of a tree."""
    mark = node.data.decode(errors="surrogateescape") if node.kind == "link" else ""
    if node.kind == "file":
        mark = node.digest
    mode = 0 if node.kind == "link" else node.mode or 0
    return FolderItem(path, node.kind, mode, mark, node.bytes if node.kind == "file" else 0)


def _nodes(node: Node | None) -> dict[str, Node]:
    if node is None or node.held is None or node.kind != "folder":
        return {}
    return {leaf.path: _node(leaf, node.held.ref) for leaf in unpack_folder(node.data)}


def _node(leaf: FolderItem, ref: str) -> Node:
    if leaf.kind == "folder":
        return Node("folder", mode=leaf.mode)
    ref = f"{ref}/{leaf.path}"
    if leaf.kind == "link":
        target = leaf.mark.encode(errors="surrogateescape")
        return Node("link", target, None, BackupRef(ref, digest(target), 0))
    return Node("file", b"", leaf.mode, BackupRef(ref, leaf.mark, leaf.bytes))


def _own(change: Change) -> Change:
    """The change of the folder itself, without what is in it."""
    before, after = (
        Node("folder", mode=node.mode) if node and is_whole_folder(node) else node
        for node in (change.before, change.after)
    )
    return Change(change.path, before, after)


def _equal(one: Node | None, other: Node | None) -> bool:
    return other is None if one is None else one.same(other)


def parent_folders(path: str) -> Iterator[str]:
    """The folders that a path is in, innermost first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
