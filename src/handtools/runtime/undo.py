"""Undo, redo and restore of recorded changes; a path that was changed again since then is a conflict."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Literal, NamedTuple

from anyio import from_thread, to_thread

from handtools.core.changes import (
    Change,
    ChangeSet,
    Node,
    RecordedChanges,
    TouchedPath,
    change_apply_order,
    is_folder_moved_as_one,
    parent_folders,
    paths_in_moved_folders,
    same_nodes,
    split_folder_change,
)
from handtools.core.errors import NotFound, NothingToUndo, ToolError
from handtools.core.undo import (
    LAST_NAME,
    PERSON_AGENT_NAME,
    FileVersion,
    ReviewPoint,
    TextRemovingCall,
    UndoConflict,
    UndoOutcome,
    UndoScope,
    is_change_number,
)
from handtools.runtime.guards.files import GuardedFiles
from handtools.runtime.journal import RecordedTouch
from handtools.runtime.journal.change_entries import ChangeEntryKind, Transaction, action_of
from handtools.runtime.journaled_transactions import node_at, node_bytes
from handtools.runtime.policy.change_rules import judge_reversal
from handtools.runtime.review import ChangeReview, is_plain_folder, plan_rejection
from handtools.runtime.workspace import Workspace
from handtools.text.changed_files import is_in_derived_folder
from handtools.text.diffs.three_way_merge import three_way_merge as merge_texts
from handtools.text.diffs.unified_diff import diff_without_carriage_returns, unified_diff
from handtools.text.encoding import decode, is_binary, without_surrogates
from handtools.text.git_config import enclosing_git_folder
from handtools.text.lines import convert_line_ends
from handtools.text.paths import folders_above
from handtools.text.truncation import clip_text

MAX_RESTORED_FILE_BYTES = 64 << 20
"""Size in bytes up to which a backed-up file is copied to restore a version."""


_NAMING_HINT = "Send the number of a change; the result of each change ends with it."
MAX_DIFFED_FILES, MAX_DIFFED_FILE_BYTES = 5, 1 << 20
SHOWN_DIFF_LINES, SHOWN_DIFF_BYTES = 30, 2_000
"""Limits of the diff in the result of an undo."""
REPLACER_SEARCH_CHANGES = 20
"""How many of a path's newest changes are searched for the call that removed a text."""


@dataclass(slots=True)
class ReversalPlan:
    """Plan of an undo: the changes to make, the touches they revert, and the conflicts."""

    changes: list[Change] = field(default_factory=list)
    reverts: dict[str, list[int]] = field(default_factory=dict)
    """Ids of the reverted touches, by path."""
    conflicts: list[UndoConflict] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class ReversalOptions:
    """Options of a reversal: note and kind of its journal entry, whether to merge, whether it is a dry run."""

    note: str
    merge: bool
    dry_run: bool
    kind: ChangeEntryKind = "undo"


class _UndoTarget(NamedTuple):
    """What to undo, as the journal names it: calls by their stored ids."""

    scope: UndoScope
    name: str
    passed_over: tuple[int, ...] = ()


@dataclass(slots=True)
class GuardedHistory:
    """The history port for one call: an undo is checked, approved and recorded like any other change."""

    workspace: Workspace
    files: GuardedFiles

    async def undo(
        self, scope: UndoScope, name: str, *, merge: bool = False, dry_run: bool = False
    ) -> UndoOutcome:
        """Undo a call, a turn, a session, or the last change to a path; with `dry_run`, change nothing."""
        options = ReversalOptions(f"undo {scope} {name}".rstrip(), merge=merge, dry_run=dry_run)
        target = await to_thread.run_sync(self._undo_target, scope, name, "undo")
        touches = await to_thread.run_sync(self._touches_to_undo, target.scope, target.name)
        at, located = None, touches[0].path
        if target.scope == "path":
            at = await to_thread.run_sync(self._made_at, touches[0])
            located = await to_thread.run_sync(self.workspace.files.locate, target.name)
        if located != touches[0].path:
            outcome = await self._revert_within(touches[0], located, options)
        else:
            outcome = await self._revert(touches, options)
        named = replace(outcome, scope=target.scope, name=self._name_to_show(target))
        return replace(named, changed_at=at, passed_over=target.passed_over)

    async def redo(
        self, scope: UndoScope, name: str, *, merge: bool = False, dry_run: bool = False
    ) -> UndoOutcome:
        """Redo changes by reverting their most recent undo."""
        options = ReversalOptions(
            f"redo {scope} {name}".rstrip(), kind="redo", merge=merge, dry_run=dry_run
        )
        target = await to_thread.run_sync(self._undo_target, scope, name, "redo")
        touches = await to_thread.run_sync(self._touches_to_redo, target.scope, target.name)
        outcome = await self._revert(touches, options)
        return replace(outcome, scope=target.scope, name=self._name_to_show(target))

    async def versions(self, path: str) -> list[FileVersion]:
        """List the recorded versions of a path, newest first."""
        located = await to_thread.run_sync(self.workspace.files.locate, path)
        return await to_thread.run_sync(self.workspace.journal.entries.versions, located)

    async def restore(self, path: str, number: int, *, dry_run: bool = False) -> UndoOutcome:
        """Restore a path to a recorded version; 0 is its state before the first recorded change."""
        changes = await to_thread.run_sync(self._to_version, path, number)
        if not changes:
            return UndoOutcome(None, (), (), scope="path", name=path)
        restored_changes = ChangeSet(
            tuple(sorted(changes, key=change_apply_order)), f"restore version {number}"
        )
        done = None
        if not dry_run:
            done = await self.files.apply_transaction(Transaction(restored_changes, exact=True))
        return replace(self._outcome(done, restored_changes, ()), scope="path", name=path)

    async def reject(
        self, point: ReviewPoint, rejected: Mapping[str, Collection[str]], edited: Mapping[str, str]
    ) -> UndoOutcome:
        """Reject parts of the changes since a point. This is recorded as a change, so it can be undone.

        A part that changed after it was shown, or that others edited since, is kept as a conflict.
        """
        review = ChangeReview(self.workspace.journal, self.workspace.files, point)
        plan = await to_thread.run_sync(plan_rejection, review, rejected, edited)
        if not plan.changes:
            return UndoOutcome(None, (), tuple(plan.conflicts))
        planned_changes = ChangeSet(tuple(plan.changes), "review")
        changes, question = await to_thread.run_sync(self._judged_changes, planned_changes)
        transaction = Transaction(changes, reverts=tuple(plan.reverts), exact=True)
        done = await self.files.land(transaction, question=question)
        return self._outcome(done, changes, tuple(plan.conflicts))

    async def find_removing_call(self, path: str, text: str) -> TextRemovingCall | None:
        """Return the recorded call that removed a text from a file, or None."""
        return await to_thread.run_sync(self._call_that_removed_text, path, text)

    def _call_that_removed_text(self, path: str, text: str) -> TextRemovingCall | None:
        journal = self.workspace.journal
        located = self.workspace.files.locate(path)
        for touch in journal.entries.selected("path", located)[:REPLACER_SEARCH_CHANGES]:
            before, after = (_recorded_text(self.workspace, touch, before=side) for side in (True, False))
            if before is not None and text in before and (after is None or text not in after):
                call_id = journal.entries.call_of(touch.entry)
                logged = journal.calls.find(call_id)
                if logged is not None:
                    return TextRemovingCall(call_id, logged.tool, journal.calls.count_since(logged))
        return None

    def _outcome(
        self, recorded: RecordedChanges | None, changes: ChangeSet, conflicts: tuple[UndoConflict, ...]
    ) -> UndoOutcome:
        touched = tuple(TouchedPath(each.path, action_of(each.before, each.after)) for each in changes)
        edited = (each for each in changes if _is_short_text(each.before) and _is_short_text(each.after))
        hides = self.files.gate.policy.hides
        shown = (each for each in edited if not enclosing_git_folder(each.path) and not hides(each.path))
        entry, diff = recorded.entry if recorded else None, _short_diff(shown)
        return UndoOutcome(entry, changes.paths, conflicts, touched, diff=diff)

    async def _revert(
        self, recorded_touches: Sequence[RecordedTouch], options: "ReversalOptions"
    ) -> UndoOutcome:
        plan = await to_thread.run_sync(
            lambda: plan_reversal(self.workspace, recorded_touches, merge=options.merge)
        )
        conflicts = tuple(plan.conflicts)
        if not plan.reverts:
            return UndoOutcome(None, (), conflicts)
        planned_changes = ChangeSet(tuple(plan.changes), options.note)
        if options.dry_run:
            return self._outcome(None, planned_changes, conflicts)
        reverts = tuple(dict.fromkeys(touch for touches in plan.reverts.values() for touch in touches))
        changes, question = await to_thread.run_sync(self._judged_changes, planned_changes)
        done = await self.files.land(Transaction(changes, options.kind, reverts), question=question)
        return self._outcome(done, changes, conflicts)

    async def _revert_within(
        self, touch: RecordedTouch, path: str, options: "ReversalOptions"
    ) -> UndoOutcome:
        """Undo one path in a folder that was moved with its contents; the rest of that change remains."""
        plan = await to_thread.run_sync(
            lambda: plan_reversal(self.workspace, [touch], merge=options.merge, within=path)
        )
        if not plan.changes and not plan.conflicts:
            raise _nothing_to_undo("path", path, undone=True)
        if not plan.changes:
            return UndoOutcome(None, (), tuple(plan.conflicts))
        planned_changes = ChangeSet(tuple(plan.changes), options.note)
        if options.dry_run:
            return self._outcome(None, planned_changes, tuple(plan.conflicts))
        changes, question = await to_thread.run_sync(self._judged_changes, planned_changes)
        done = await self.files.land(Transaction(changes, "undo"), question=question)
        return self._outcome(done, changes, tuple(plan.conflicts))

    def _undo_target(self, scope: UndoScope, name: str, action: Literal["undo", "redo"]) -> "_UndoTarget":
        """Resolve what to undo: `last` and empty names to a call, turn or session, names of calls to their ids."""
        if scope == "path" or (scope == "session" and name not in ("", LAST_NAME)):
            return _UndoTarget(scope, name)
        if scope in ("call", "since") and name not in ("", LAST_NAME):
            return _UndoTarget(scope, self._call_named(name))
        calls, by_user = self.workspace.journal.calls, self.files.call.agent == PERSON_AGENT_NAME
        newest = calls.newest_change if action == "undo" else calls.newest_undone
        if action == "undo" and scope in ("last", "call"):
            return self._last_change(None if by_user else self.files.call.session)
        if scope in ("last", "call", "since"):
            author = newest(None if by_user else self.files.call.session)
            if author is not None:
                return _UndoTarget("since" if scope == "since" else "call", author.call_id)
            raise _nothing_to_do(action, by_user=by_user)
        session, _, turn = name.rpartition("/") if scope == "turn" else ("", "", "")
        if session in ("", LAST_NAME):
            session = self._last_session(action) if by_user else self.files.call.session
        if scope == "turn" and turn in ("", LAST_NAME):
            author = newest(session)
            if author is None:
                raise _nothing_to_do(action, by_user=by_user)
            turn = author.turn
        return _UndoTarget(scope, f"{session}/{turn}" if scope == "turn" else session)

    def _last_change(self, session: str | None) -> "_UndoTarget":
        """Find the last change to undo; passes over changes of commands that only touched ignored files."""
        passed_over: list[int] = []
        for change in self.workspace.journal.calls.newest_changes(session):
            if change.coverage == "declared" or not self._changed_only_ignored_files(change.call_id):
                return _UndoTarget("call", change.call_id, tuple(passed_over))
            passed_over.append(change.number)
        raise _nothing_to_do("undo", by_user=session is None, passed_over=passed_over)

    def _changed_only_ignored_files(self, call_id: str) -> bool:
        touches = self.workspace.journal.entries.selected("call", call_id)
        paths = {touch.path for touch in touches if not is_plain_folder(touch)}
        rest = [path for path in paths if not is_in_derived_folder(path)]
        ignored = from_thread.run(self.workspace.search.find_ignored_paths, rest) if rest else set()
        return bool(paths) and ignored.issuperset(rest)

    def _last_session(self, action: Literal["undo", "redo"]) -> str:
        """Return what `last` means for the user: the last agent's session, or that of the last undone change."""
        calls = self.workspace.journal.calls
        undone = calls.newest_undone() if action == "redo" else None
        return undone.session if undone else calls.last_agent_session()

    def _name_to_show(self, target: "_UndoTarget") -> str:
        if target.scope not in ("call", "since"):
            return target.name
        entries = self.workspace.journal.entries.of_call(target.name)
        return str(entries[0].id) if entries else target.name

    def _call_named(self, name: str) -> str:
        found = self.workspace.journal.calls_named(name)
        if len(found) == 1:
            return found[0]
        if found:
            raise NothingToUndo(
                f"Several calls match `{name}`: {', '.join(found)}.", hint="Send a full id."
            )
        what = "change" if is_change_number(name) else "call"
        raise NothingToUndo(f"No {what} `{name}` is recorded.", hint=_NAMING_HINT)

    def _judged_changes(self, changes: ChangeSet) -> tuple[ChangeSet, str]:
        return judge_reversal(changes, self.files.view)

    def _touches_to_undo(self, scope: UndoScope, name: str) -> list[RecordedTouch]:
        """List the touches to undo; only scope "call" includes touches made by an undo."""
        entries = self.workspace.journal.entries
        if scope == "path":
            name = self.workspace.files.locate(name)
        named = entries.selected(scope, name)
        if scope == "path":
            named = sorted([*named, *self._moved_along(name)], key=lambda touch: -touch.id)
        standing = [t for t in named if t.reverted_by is None and (scope == "call" or t.kind == "change")]
        if not standing:
            raise _nothing_to_undo(scope, name, undone=bool(named))
        if scope != "path":
            return standing
        # A formatter's change is a separate entry that belongs to the same call.
        path, call_id = standing[0].path, entries.call_of(standing[0].entry)
        together = [t for t in standing if t.path == path and entries.call_of(t.entry) == call_id]
        return [*together, *self._touches_of_emptied_folders(together[-1])]

    def _made_at(self, touch: RecordedTouch) -> float | None:
        recorded = self.workspace.journal.entries.versions(touch.path)
        return next((version.at for version in recorded if version.number == touch.id), None)

    def _touches_of_emptied_folders(self, touch: RecordedTouch) -> list[RecordedTouch]:
        """List the touches of folders created for a file that contain nothing but that file, deepest first."""
        if touch.before is not None:
            return []
        made = {each.path: each for each in self.workspace.journal.entries.touches(touch.entry)}
        going, folders = touch.path, list[RecordedTouch]()
        for above in parent_folders(touch.path):
            folder = made.get(above)
            if folder is None or folder.before is not None or folder.reverted_by is not None:
                break
            there = node_at(self.workspace.files, above, like_node=None)
            if there is None or there.kind != "folder":
                break
            if any(facts.path != going for facts in self.workspace.files.names(above)):
                break
            folders.append(folder)
            going = above
        return folders

    def _moved_along(self, path: str) -> Iterator[RecordedTouch]:
        """Yield the touches of parent folders that were moved with their contents, including this path."""
        for above in parent_folders(path):
            for touch in self.workspace.journal.entries.selected("path", above):
                with suppress(NotFound):
                    before, after = (
                        _recorded_node(self.workspace, touch, before=side) for side in (True, False)
                    )
                    if path in paths_in_moved_folders(Change(above, before, after)):
                        yield touch

    def _touches_to_redo(self, scope: UndoScope, name: str) -> list[RecordedTouch]:
        """List the touches of the newest undo of the named changes."""
        entries = self.workspace.journal.entries
        if scope == "path":
            name = self.workspace.files.locate(name)
        named = entries.selected(scope, name)
        if scope == "path" and named and self._is_restore(named[0]):
            return entries.touches(named[0].entry)[::-1]
        # Ignore undos that were already redone: a second redo reverts the undo before them.
        takers = {t.reverted_by for t in named if t.reverted_by is not None}
        undos = [entry for entry in takers if entries.kind(entry) == "undo"]
        if not undos and scope == "path":
            # If only a part of a moved folder was undone, the folder's change is not marked as reverted.
            undos = [t.entry for t in named if t.kind == "undo" and t.reverted_by is None]
        if not undos:
            raise NothingToUndo(f"No change of {scope} `{name}` was undone.", hint="`log` lists the calls.")
        undo = max(undos)
        changed = entries.touches(undo)[::-1]
        # The undo changed nothing at a path that was already as before the call: redo the call's own change there.
        unchanged = {t.path for t in named} - {t.path for t in changed}
        again = [t for t in named[::-1] if t.reverted_by == undo and t.path in unchanged]
        return [*changed, *(replace(touch, before=touch.after, after=touch.before) for touch in again)]

    def _is_restore(self, touch: RecordedTouch) -> bool:
        """Whether the undo tool made this touch to restore an old version."""
        entries, calls = self.workspace.journal.entries, self.workspace.journal.calls
        if touch.kind != "change" or touch.reverted_by is not None:
            return False
        logged = calls.find(entries.call_of(touch.entry))
        return logged is not None and logged.tool == "undo"

    def _to_version(self, path: str, number: int) -> list[Change]:
        entries = self.workspace.journal.entries
        located = self.workspace.files.locate(path)
        touch = entries.find_touch(number) if number else entries.first(located)
        if touch is None or touch.path != located:
            known = ", ".join(str(v.number) for v in entries.versions(located)[:10])
            hint = f"Use one of these versions: {known}." if known else "`handtools log` lists the calls."
            raise NotFound(f"`{path}` has no recorded version {number}.", hint=hint)
        wanted = self._node_with_bytes(path, _recorded_node(self.workspace, touch, before=not number))
        now = self.workspace.files.node(located)
        if same_nodes(now, wanted):
            return []
        folders = self._touches_of_emptied_folders(touch) if wanted is None else []
        nodes = (
            (folder.path, node_at(self.workspace.files, folder.path, like_node=None)) for folder in folders
        )
        return [Change(located, now, wanted), *(Change(above, node, None) for above, node in nodes if node)]

    def _node_with_bytes(self, path: str, node: Node | None) -> Node | None:
        """Return a version with its bytes loaded from the backups; raises `NotFound` if that fails."""
        if node is None or node.held is None:
            return node
        data = node_bytes(self.workspace.files, path, node, MAX_RESTORED_FILE_BYTES)
        if node.kind == "folder" or data is None:
            raise NotFound(
                f"This version of `{path}` can't be copied.", hint="Undo the call that changed it."
            )
        return Node(node.kind, data, node.mode)


def plan_reversal(
    workspace: Workspace, touches: Iterable[RecordedTouch], *, merge: bool, within: str = ""
) -> ReversalPlan:
    """Plan the changes that revert touches, given newest first, and find conflicts; writes nothing.

    With `within`, only changes at that path and below it are reverted.
    """
    plan = ReversalPlan()
    parts_by_path: dict[str, list[ReversalPart]] = {}
    for part in reversal_parts(workspace, list(touches), plan.conflicts, within=within):
        parts_by_path.setdefault(part.change.path, []).append(part)
    for path, group in parts_by_path.items():
        # If the change removed the node, compare what is there now with the node before the change.
        now = node_at(workspace.files, path, like_node=group[0].change.after or group[0].change.before)
        node = now
        for part in group:
            back = _step_back(part.change, node, merge=merge)
            if isinstance(back, UndoConflict):
                plan.conflicts.append(back)
                break
            now = back.before if part is group[0] else now
            node = back.after
            plan.reverts.setdefault(path, []).append(part.touch)
        if not same_nodes(now, node) or _has_different_refs(now, node):
            plan.changes.append(Change(path, now, node))
    _add_missing_folders(workspace, plan)
    plan.changes.sort(key=change_apply_order)
    since = min((part.made_at for parts in parts_by_path.values() for part in parts), default=0.0)
    _keep_used_repositories(workspace, plan, since)
    _keep_used_folders(workspace, plan)
    return plan


def _add_missing_folders(workspace: Workspace, plan: ReversalPlan) -> None:
    """Add missing parent folders, so that a single file of a removed folder can be restored."""
    coming = folders_above(change.path for change in plan.changes if change.after)
    for folder in coming - {change.path for change in plan.changes}:
        if node_at(workspace.files, folder, like_node=None) is None:
            plan.changes.append(Change(folder, None, Node("folder")))


@dataclass(frozen=True, slots=True)
class ReversalPart:
    """One change to revert, the touch it belongs to, and when that was made."""

    change: Change
    touch: int
    made_at: float


def reversal_parts(
    workspace: Workspace,
    touches: Sequence[RecordedTouch],
    conflicts: list[UndoConflict],
    *,
    within: str = "",
) -> list[ReversalPart]:
    """Load the changes of touches, and add those whose content was pruned to `conflicts`.

    The change of a folder moved with its contents is split into files if the contents changed since then.
    """
    every = []
    paths = {touch.path for touch in touches}
    made_at = {
        entry: workspace.journal.entries.made_at(entry) for entry in {touch.entry for touch in touches}
    }
    for touch in touches:
        try:
            before, after = (
                _recorded_node(workspace, touch, before=True),
                _recorded_node(workspace, touch, before=False),
            )
        except NotFound as lost:
            conflicts.append(UndoConflict(touch.path, str(lost), None))
            continue
        change, at = Change(touch.path, before, after), made_at[touch.entry]
        if within:
            every += [
                ReversalPart(each, touch.id, at)
                for each in split_folder_change(change)
                if _folder_is_used(workspace, each, within)
            ]
        elif (is_folder_moved_as_one(before) or is_folder_moved_as_one(after)) and not _is_unchanged_folder(
            workspace, change, paths
        ):
            every += [ReversalPart(piece, touch.id, at) for piece in split_folder_change(change)]
        else:
            every.append(ReversalPart(change, touch.id, at))
    return every


def _folder_is_used(workspace: Workspace, change: Change, path: str) -> bool:
    """Whether reverting a change affects paths at or below `path`, or restores a missing parent folder of it."""
    if f"{change.path}/".startswith(f"{path}/"):
        return True
    on_the_way = path.startswith(f"{change.path}/") and change.after is None
    return on_the_way and node_at(workspace.files, change.path, like_node=None) is None


def _is_unchanged_folder(workspace: Workspace, change: Change, paths: Collection[str]) -> bool:
    """Whether a folder and its contents are unchanged since the change, so that it can be reverted in one step."""
    if any(path.startswith(f"{change.path}/") for path in paths):
        return False
    return same_nodes(change.after, node_at(workspace.files, change.path, like_node=change.after))


def _step_back(change: Change, node: Node | None, *, merge: bool) -> Change | UndoConflict:
    """Return the change from the current node to the one before `change`, merged if needed; or a conflict."""
    before, after = change.before, change.after
    if same_nodes(after, node) or (same_nodes(before, node) and not _has_different_refs(before, node)):
        return Change(change.path, node, before)
    if node is None:
        return UndoConflict(change.path, "It was deleted since then.", None)
    merged = _merged_text(base_node=after, our_node=node, their_node=before)
    if merged is None:
        large = any(it and it.kind == "file" and not it.known for it in (before, after))
        why = "and is too large to merge" if large else "in the same place"
        return UndoConflict(change.path, f"It changed since then, {why}.", None)
    if not merge:
        return UndoConflict(change.path, "It changed since then; the changes can be merged.", merged)
    source = decode(node.data)
    plain_node = Node(
        "file", node.data, node.mode
    )  # without a backup reference, so that the bytes of the current file are recorded
    return Change(change.path, plain_node, Node("file", source.encode(merged), node.mode))


def _merged_text(*, base_node: Node | None, our_node: Node | None, their_node: Node | None) -> str | None:
    """Merge three text files; None on conflicts or binary content."""
    texts = []
    for node in (base_node, our_node, their_node):
        if node is None or node.kind != "file" or not node.known or is_binary(node.data):
            return None
        texts.append(decode(node.data).body)
    merged = merge_texts(*texts)
    return None if merged.conflicts else merged.text


def _keep_used_repositories(workspace: Workspace, plan: ReversalPlan, since: float) -> None:
    """Keep git repositories consistent: don't change any with a conflict, nor delete objects of any used since.

    Later commits may build on a commit that is undone; without its objects they would be broken.
    """
    clashes = {folder for conflict in plan.conflicts if (folder := enclosing_git_folder(conflict.path))}
    folders = {folder for change in plan.changes if (folder := enclosing_git_folder(change.path))}
    used = {folder for folder in folders - clashes if _is_used_since(workspace, folder, plan, since)}
    # Removing a whole repository would remove its objects, too.
    clashes |= {change.path for change in plan.changes if change.path in used and change.after is None}
    kept = []
    for change in plan.changes:
        folder = enclosing_git_folder(change.path)
        if folder in clashes:
            plan.reverts.pop(change.path, None)
        elif folder not in used or not _removes_objects(change, folder):
            kept.append(change)
    plan.changes[:] = kept
    for folder in sorted(clashes & folders):
        plan.conflicts.append(
            UndoConflict(folder, "The repository was used since then; it was kept as it is.", None)
        )


def _removes_objects(change: Change, folder: str | None) -> bool:
    return change.after is None and f"{change.path}/".startswith(f"{folder}/objects/")


def _is_used_since(workspace: Workspace, folder: str, plan: ReversalPlan, since: float) -> bool:
    """Whether any file in a repository, other than those being undone, was written after the time `since`."""
    own = {change.path for change in plan.changes}
    waiting = [folder]
    while waiting:
        with suppress(ToolError):
            for facts in workspace.files.names(waiting.pop()):
                if facts.kind == "folder":
                    waiting.append(facts.path)
                elif facts.path not in own and facts.modified > since:
                    return True
    return False


def _keep_used_folders(workspace: Workspace, plan: ReversalPlan) -> None:
    """Turn the deletion of each folder that would not be empty into a conflict."""
    going = {change.path for change in plan.changes if change.after is None}
    for change in list(plan.changes):
        if change.before is None or change.before.kind != "folder" or change.before.held:
            continue
        if change.after is not None and change.after.kind == "folder":
            continue
        if any(facts.path not in going for facts in workspace.files.names(change.path)):
            plan.changes.remove(change)
            del plan.reverts[change.path]
            going.discard(change.path)
            plan.conflicts.append(
                UndoConflict(change.path, "The folder is no longer empty; it was kept.", None)
            )


def _short_diff(changes: Iterable[Change]) -> str:
    """Return the beginning of the diff of changed text files."""
    nodes = ((each.path, each.before, each.after) for each in islice(changes, MAX_DIFFED_FILES))
    diff = "".join(
        unified_diff(path, decode(before.data).body, decode(after.data).body)
        for path, before, after in nodes
        if before and after
    )
    shown = diff_without_carriage_returns(without_surrogates(diff))
    return clip_text(shown, max_lines=SHOWN_DIFF_LINES, max_bytes=SHOWN_DIFF_BYTES, keep="head").text


def _is_short_text(node: Node | None) -> bool:
    if node is None or node.kind != "file" or not node.known or node.bytes > MAX_DIFFED_FILE_BYTES:
        return False
    return not is_binary(node.data)


def _has_different_refs(node: Node | None, other_node: Node | None) -> bool:
    """Whether two backed-up nodes have different references."""
    return bool(
        node and other_node and node.held and other_node.held and node.held.ref != other_node.held.ref
    )


def _recorded_node(workspace: Workspace, touch: RecordedTouch, *, before: bool) -> Node | None:
    try:
        return workspace.journal.entries.node(touch.before if before else touch.after)
    except KeyError:
        message = f"The content of `{touch.path}` is no longer stored."
        raise NotFound(message, hint="Write the file again.") from None


def _recorded_text(workspace: Workspace, touch: RecordedTouch, *, before: bool) -> str | None:
    """Return the recorded text before or after a touch; None if it is not text or was pruned."""
    try:
        node = _recorded_node(workspace, touch, before=before)
    except NotFound:
        return None
    data = (
        None
        if node is None or node.kind != "file"
        else node_bytes(workspace.files, touch.path, node, MAX_RESTORED_FILE_BYTES)
    )
    return None if data is None or is_binary(data) else convert_line_ends(decode(data).body, "\n")


def _nothing_to_do(action: str, *, by_user: bool, passed_over: Sequence[int] = ()) -> NothingToUndo:
    whose, hint = "There is" if by_user else "This session has", _NAMING_HINT
    but = ""
    if passed_over:
        but = f" but {', '.join(map(str, passed_over))}, which changed only ignored files"
        hint = f"To undo that, give its number: {passed_over[0]}."
    return NothingToUndo(f"{whose} no change to {action}{but}.", hint=hint)


def _nothing_to_undo(scope: UndoScope, name: str, *, undone: bool) -> NothingToUndo:
    said = "was already undone" if undone else "has no recorded changes"
    return NothingToUndo(f"The {scope} `{name}` {said}.", hint="`handtools log` lists the calls.")
