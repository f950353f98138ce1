"""Bring a fork's changes into its parent workspace: merge them, or replace the parent with the fork.

The result is recorded in the parent as one change, so it can be undone like any other.
"""

import logging
import os
import stat
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

from anyio import to_thread

from handtools.core.call import Call
from handtools.core.changes import Change, ChangeSet, Node, change_apply_order, same_nodes
from handtools.core.errors import HostError, Stale, StorageFault, UsageError
from handtools.core.result import Result
from handtools.fleet.workspaces import WorkspaceStore
from handtools.runtime.journal.change_entries import Transaction
from handtools.runtime.journaled_transactions import commit_transaction, lock_keys
from handtools.text.diffs.three_way_merge import three_way_merge
from handtools.text.encoding import decode, is_binary
from handtools.toolbox import Toolbox

logger = logging.getLogger("handtools")
_LOCK_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class ForkMerge:
    """The result of a merge."""

    call_id: str
    """Id of the merge as a call in the parent's journal; empty if there was nothing to merge."""
    changed: tuple[str, ...]
    conflicts: tuple[str, ...]
    """Paths that fork and parent changed in incompatible ways. They are left as they are in the parent."""


async def merge_fork(store: WorkspaceStore, fork: str, parent_toolbox: Toolbox) -> ForkMerge:
    """Apply the fork's changes to the parent. A text file that both changed is merged line by line."""
    with _convert_os_errors(fork):
        changes, conflicts = await to_thread.run_sync(_changes_and_conflicts, store, fork)
    return await _commit_to_parent(parent_toolbox, "merge", fork, changes, conflicts)


async def promote_fork(store: WorkspaceStore, fork: str, parent_toolbox: Toolbox) -> ForkMerge:
    """Make the parent identical to the fork. Raises `Stale` if the parent has changed since the fork."""
    record = store.get_record(fork)
    with _convert_os_errors(fork):
        moved = await to_thread.run_sync(_paths_changed_in_parent, store, fork)
        changes, _ = await to_thread.run_sync(_changes_and_conflicts, store, fork)
    if moved:
        raise Stale(
            f"Workspace {record.parent} has changed since the fork: {', '.join(moved[:5])}.",
            hint="Merge the fork instead.",
        )
    return await _commit_to_parent(parent_toolbox, "promote", fork, changes, [])


@contextmanager
def _convert_os_errors(fork: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageFault(
            f"Can't compare fork {fork} with its parent: {error.strerror or error}. Nothing was changed.",
            hint="Free some space or check the disk, then merge it again.",
        ) from error


def _paths_changed_in_parent(store: WorkspaceStore, fork: str) -> list[str]:
    """The paths that changed in the parent since the fork."""
    with store.mount_base_view(fork) as base:
        return [
            each.path
            for each in store.differences_from_base(
                _parent_name(store, fork), base, store.get_record(fork).base
            )
        ]


def _changes_and_conflicts(store: WorkspaceStore, fork: str) -> tuple[list[Change], list[str]]:
    changes, conflicts = [], []
    theirs, ours = store.open(fork), store.open(_parent_name(store, fork))
    with store.mount_base_view(fork) as base:
        for each in store.diff(fork):
            nodes = [_read_node(os.path.join(top, each.path)) for top in (base, ours, theirs)]
            if same_nodes(nodes[1], nodes[2]):
                continue
            merged = _merged_node_or_conflict(*nodes)
            if merged == "conflict":
                conflicts.append(each.path)
            else:
                changes.append(Change(each.path, nodes[1], merged))
    return _drop_changes_blocked_by_conflicts(changes, conflicts), conflicts


def _merged_node_or_conflict(
    base_node: Node | None, our_node: Node | None, their_node: Node | None
) -> Node | Literal["conflict"] | None:
    """The merged content of a path: None if it is deleted, `conflict` if the changes can't be merged."""
    if same_nodes(base_node, our_node):
        return their_node
    if base_node is None or our_node is None or their_node is None:
        return "conflict"
    if {base_node.kind, our_node.kind, their_node.kind} != {"file"} or any(
        is_binary(node.data) for node in (base_node, our_node, their_node)
    ):
        return "conflict"
    texts = [decode(node.data) for node in (base_node, our_node, their_node)]
    merged = three_way_merge(*(text.body for text in texts))
    if merged.conflicts:
        return "conflict"
    return Node(
        "file",
        texts[1].encode(merged.text),
        our_node.mode if their_node.mode == base_node.mode else their_node.mode,
    )


def _drop_changes_blocked_by_conflicts(changes: Iterable[Change], conflicts: list[str]) -> list[Change]:
    """Drop changes that conflicts make impossible, and add them to `conflicts`.

    These are removing a folder that contains a conflict, and changing a path below one.
    """
    kept = []
    for change in sorted(changes, key=change_apply_order):
        inside = any(path.startswith(f"{change.path}/") for path in conflicts)
        below = any(change.path.startswith(f"{path}/") for path in conflicts)
        if below or (inside and (change.after is None or change.after.kind != "folder")):
            conflicts.append(change.path)
        else:
            kept.append(change)
    return kept


async def _commit_to_parent(
    parent_toolbox: Toolbox, what: str, fork: str, changes: list[Change], conflicts: list[str]
) -> ForkMerge:
    paths = tuple(change.path for change in changes)
    if not changes:
        return ForkMerge("", (), tuple(conflicts))
    workspace, began = parent_toolbox.workspace, time.time()
    call = workspace.journal.owned(Call(tool=what, args={"fork": fork}))
    transaction = Transaction(ChangeSet(tuple(changes), f"{what} {fork}"))
    async with workspace.locks.hold(lock_keys(paths), timeout=_LOCK_SECONDS):
        done = await to_thread.run_sync(lambda: commit_transaction(workspace, call, transaction, ordinal=0))
    text = f"{what} {fork}: {len(paths)} paths, {len(conflicts)} conflicts."
    result = Result(text, None, changes=done)
    try:
        await to_thread.run_sync(workspace.journal.calls.record, call, result, began)
    except HostError as failure:
        # Only the call's record is missing: the change is in the journal and can be undone by this id.
        logger.warning("Call %s is not in the log: %s", call.id, failure)
    return ForkMerge(call.id, paths, tuple(conflicts))


def _parent_name(store: WorkspaceStore, fork: str) -> str:
    parent = store.get_record(fork).parent
    if not parent:
        raise UsageError(f"Workspace {fork} is not a fork.")
    return parent


def _read_node(path: str) -> Node | None:
    try:
        found = os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    mode = stat.S_IMODE(found.st_mode)
    if stat.S_ISLNK(found.st_mode):
        return Node("link", os.fsencode(os.readlink(path)))
    if stat.S_ISDIR(found.st_mode):
        return Node("folder", mode=mode)
    with open(path, "rb") as file:
        return Node("file", file.read(), mode)
