"""Sparing: the bytes of a large file are not read, packed and written for undo; the file itself is moved aside.

What displaced it is told by its size and a time that is given to it, so that both are known before it is written.
"""

import os
import secrets
import stat

from handtools.core.changes import Change, Held, Node
from handtools.host.folders import Folder
from handtools.host.marking import coming_mark, seen_mark
from handtools.host.vault import Vault

LARGE_BYTES = 1 << 20
"""Below this, to keep the bytes costs less than a second file does."""
SHELF = "large"
"""In the vault: files that the record names before they come here, so none of them is ever nobody's."""


def is_large(change: Change, large_bytes: int) -> bool:
    """Whether a change has bytes worth sparing."""
    return any(
        node is not None and node.kind == "file" and node.held is None and len(node.data) > large_bytes
        for node in (change.before, change.after)
    )


def spared(change: Change, folder: Folder, name: str, vault: Vault, large_bytes: int) -> Change:
    """The change with its large files held, where the vault is near and nobody else has a name for them."""
    if not vault.suits(folder.own_stat().st_dev):
        return change
    before, after, found = change.before, change.after, folder.find(name)
    if before is not None and found is not None and _can_move(before, found, large_bytes):
        before = _held(before, seen_mark(found))
    if after is not None and after.kind == "file" and after.held is None and len(after.data) > large_bytes:
        after = _held(after, coming_mark(len(after.data)), fresh=True)
    return Change(change.path, before, after)


def _can_move(node: Node, found: os.stat_result, large_bytes: int) -> bool:
    # Through another name the bytes could change after they were moved aside.
    alone = stat.S_ISREG(found.st_mode) and found.st_nlink == 1
    return alone and node.kind == "file" and node.held is None and len(node.data) > large_bytes


def _held(node: Node, mark: str, *, fresh: bool = False) -> Node:
    ref = f"{SHELF}/{secrets.token_hex(8)}"
    return Node("file", node.data, node.mode, Held(ref, mark, len(node.data), fresh))
