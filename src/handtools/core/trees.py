"""Trees: a whole folder that comes or goes as one change, and the changes it is made of."""

import json
from bisect import bisect_left
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from handtools.core.changes import Change, Held, Kind, Node, digest

WHOLE = 256
"""A folder with more than this in it is moved as one."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """One thing in a tree, by its path below the tree's folder."""

    path: str
    kind: Kind
    mode: int
    mark: str
    """Of a file, as in `Held`; of a link, where it points; of a folder, nothing."""
    bytes: int


def pack(leaves: Iterable[Leaf]) -> bytes:
    """Leaves as the bytes of a folder's node; the same tree always gives the same bytes."""
    rows = sorted([leaf.path, leaf.kind, leaf.mode, leaf.mark, leaf.bytes] for leaf in leaves)
    return json.dumps(rows, separators=(",", ":")).encode()


def unpack(data: bytes) -> list[Leaf]:
    """The inverse of `pack`."""
    rows: list[list[Any]] = json.loads(data or b"[]")
    return [Leaf(*row) for row in rows]


def tree(leaves: Sequence[Leaf], *, mode: int, ref: str) -> Node:
    """The node of a whole folder."""
    data = pack(leaves)
    held = Held(ref, digest(data), sum(leaf.bytes for leaf in leaves))
    return Node("folder", data, mode, held)


def is_tree(node: Node | None) -> bool:
    """Whether a node stands for a folder with all that is in it."""
    return node is not None and node.kind == "folder" and node.held is not None


def inside(change: Change) -> list[str]:
    """The paths that a change moves along with its own."""
    leaves = {
        leaf.path
        for node in (change.before, change.after)
        if node and is_tree(node)
        for leaf in unpack(node.data)
    }
    return [f"{change.path}/{path}" for path in sorted(leaves)]


def links_made(changes: Iterable[Change]) -> dict[str, str]:
    """Where links come to be, and where each points."""
    found = {}
    for change in changes:
        node = change.after
        if node and node.kind == "link":
            found[change.path] = node.data.decode(errors="surrogateescape")
        elif node and is_tree(node):
            leaves = (leaf for leaf in unpack(node.data) if leaf.kind == "link")
            found |= {f"{change.path}/{leaf.path}": leaf.mark for leaf in leaves}
    return found


def unfolded(change: Change) -> list[Change]:
    """A change of whole folders as the changes of everything in them; any other as it is."""
    if not is_tree(change.before) and not is_tree(change.after):
        return [change]
    before, after = _nodes(change.before), _nodes(change.after)
    own = _own(change)
    parts = [Change(f"{own.path}/{path}", before.get(path), after.get(path)) for path in {*before, *after}]
    return sorted((part for part in (own, *parts) if not _equal(part.before, part.after)), key=order)


def folded(changes: Sequence[Change], *, apart: Collection[str] = (), whole: int = WHOLE) -> list[Change]:
    """Changes with large folders that come or go put together; `unfolded` takes them apart again.

    A folder that comes or goes does so with everything below it, so all of that is in the list, except what is
    `apart`: a folder that holds such a path stays in pieces.
    """
    split = {above for path in apart for above in folders_above(path)}
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


def order(change: Change) -> tuple[int, int]:
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
    leaves = [leaf(path[start:], node) for path, node in nodes if node]
    node = tree(
        leaves, mode=0o755 if folder.mode is None else folder.mode, ref=ref.removesuffix(path[start - 1 :])
    )
    return Change(own.path, None, node) if coming else Change(own.path, node, None)


def leaf(path: str, node: Node) -> Leaf:
    """A node as a part of a tree."""
    mark = node.data.decode(errors="surrogateescape") if node.kind == "link" else ""
    if node.kind == "file":
        mark = node.digest
    mode = 0 if node.kind == "link" else node.mode or 0
    return Leaf(path, node.kind, mode, mark, node.bytes if node.kind == "file" else 0)


def _nodes(node: Node | None) -> dict[str, Node]:
    if node is None or node.held is None or node.kind != "folder":
        return {}
    return {leaf.path: _node(leaf, node.held.ref) for leaf in unpack(node.data)}


def _node(leaf: Leaf, ref: str) -> Node:
    if leaf.kind == "folder":
        return Node("folder", mode=leaf.mode)
    ref = f"{ref}/{leaf.path}"
    if leaf.kind == "link":
        target = leaf.mark.encode(errors="surrogateescape")
        return Node("link", target, None, Held(ref, digest(target), 0))
    return Node("file", b"", leaf.mode, Held(ref, leaf.mark, leaf.bytes))


def _own(change: Change) -> Change:
    """The change of the folder itself, without what is in it."""
    before, after = (
        Node("folder", mode=node.mode) if node and is_tree(node) else node
        for node in (change.before, change.after)
    )
    return Change(change.path, before, after)


def _equal(one: Node | None, other: Node | None) -> bool:
    return other is None if one is None else one.same(other)


def folders_above(path: str) -> Iterator[str]:
    """The folders that a path is in, innermost first."""
    while "/" in path:
        path = path.rpartition("/")[0]
        yield path
