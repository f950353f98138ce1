"""Guarded files and skills: resolve paths, check the policy, then lock, apply and record changes."""

import contextlib
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from anyio import to_thread

from handtools.core.call import Call
from handtools.core.changes import Change, ChangeSet, Node, RecordedChanges
from handtools.core.effects import ReadEffect
from handtools.core.errors import (
    HandtoolsError,
    NotFound,
    StorageFault,
    SymlinkInPath,
    ToolError,
    WrongKind,
)
from handtools.core.events import Changed, Event
from handtools.core.files import FileFacts, GitNamedPath
from handtools.core.search import SearchScope
from handtools.core.skills import SKILL_SCHEME, Skill, SkillFileList
from handtools.runtime.approval.gate import ApprovalGate
from handtools.runtime.journal.change_entries import MAX_SEEN_BYTES, Transaction
from handtools.runtime.journaled_transactions import (
    commit_transaction,
    lock_keys,
    node_at,
    node_pieces,
    recover_transactions,
)
from handtools.runtime.workspace import Workspace
from handtools.text.diffs.three_way_merge import changed_line_ranges, take_shown_changes
from handtools.text.paths import parse_path_spec, similar_names

if TYPE_CHECKING:
    from handtools.runtime.policy.git_changes import WorkspaceView


@dataclass(frozen=True, slots=True)
class GuardedSkills:
    """The skills port for one call, without skills that policy rules hide."""

    workspace: Workspace
    gate: ApprovalGate

    async def found(self, near: str) -> list[Skill]:
        """List the visible skills that apply to a file or folder, nearest first."""
        return await to_thread.run_sync(self._visible_skills, near)

    def _visible_skills(self, near: str) -> list[Skill]:
        skills = self.workspace.skills.found(self.workspace.files.locate(near or "."))
        return [skill for skill in skills if not skill.is_hidden(self.gate.policy.hides)]

    async def bundle(self, skill: Skill) -> SkillFileList:
        """List the files of a skill that rules don't hide, including dot files."""
        return await to_thread.run_sync(self._visible_files, skill)

    def _visible_files(self, skill: Skill) -> SkillFileList:
        found = self.workspace.skills.bundle(skill)
        return replace(
            found, files=tuple(f for f in found.files if self._is_visible(f"{skill.folder}/{f.path}"))
        )

    def _is_visible(self, path: str) -> bool:
        """Whether a skill's file is visible: neither its path nor its symlink target is hidden."""
        hides = self.gate.policy.hides
        try:
            return not hides(path) and (
                path.startswith(SKILL_SCHEME) or not hides(self.workspace.files.locate(path))
            )
        except ToolError:
            return False


def split_skill_path(path: str) -> tuple[str, str]:
    """Split `skill:NAME/path` into the skill's name and the path in its folder."""
    name, _, inner = path.removeprefix(SKILL_SCHEME).partition("/")
    if not name:
        raise NotFound(f"`{path}` has no skill name.", hint="Use `skill:NAME/path`.")
    return name, inner or "."


OUTPUT_SCHEME = "output:"
"""Path prefix of stored command outputs, which are read-only."""
READ_ONLY_SCHEMES = (OUTPUT_SCHEME, SKILL_SCHEME)
"""Prefixes of paths that are outside the workspace and read-only."""
LOCK_TIMEOUT_SECONDS = 30.0
SIMILAR_PATH_SEARCH_SECONDS = 2.0
"""Time limit in seconds for finding the new path of a missing file."""
MAX_NEAR_HINTS = 2
"""Most missing paths of one call for which similar names are looked up."""
_GLOB_CHARACTERS = frozenset("*?[]{}!\\")
MAX_PATH_OPEN_TRIES = 16
"""Most attempts to open a path whose symlinks keep changing, which indicates an attack."""
T = TypeVar("T")
UNTHREADED_READ_BYTES = 256 << 10
"""Files up to this size are read without a thread if reading is fast."""


@dataclass(slots=True)
class GuardedFiles:
    """The files port for one call: resolves paths, checks effects, and locks and records changes."""

    call: Call
    workspace: Workspace
    gate: ApprovalGate
    announce: Callable[[Event], None]
    held: frozenset[str] = frozenset()
    """Located paths that have been locked for the call since its start."""
    recorded_changes: list[RecordedChanges] = field(default_factory=list)
    transactions: list[Transaction] = field(default_factory=list)
    """The transactions behind `recorded_changes`, including the bytes, for the after-change steps."""
    linked: dict[str, int] = field(default_factory=dict)
    """Number of other hard links to each replaced file; they keep the old content."""
    read_nodes: dict[str, Node] = field(default_factory=dict)
    """Files that were read in full in this call, by located path."""
    known_nodes: dict[str, Node] = field(default_factory=dict)
    """Files as the agent knows them after this call, by located path; recorded when the call ends."""
    hints: dict[str, str] = field(default_factory=dict)
    """Cached hints for missing paths, because both the tool and the executor ask and each takes a search."""

    async def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """Return the bytes of a regular file, or `size` of them from offset `start`."""
        if path.startswith(OUTPUT_SCHEME):
            return await to_thread.run_sync(self._read_stored_output, path, start, size)
        if path.startswith(SKILL_SCHEME):
            await self.gate.admit(ReadEffect((path,)))
            return await to_thread.run_sync(self._of_skill, path, start, size)
        read = partial(self._read, start=start, size=size)
        is_near = self.workspace.files.is_fast_to_read
        if is_near and start == 0 and (size is None or size > UNTHREADED_READ_BYTES):
            most = UNTHREADED_READ_BYTES + 1
            found = self._if_allowed(path, partial(self._read, start=0, size=most))
            if not isinstance(found, bytes):
                return await self._if_approved(found, read)
            if len(found) < most:
                return found
        return await self._run_on_admitted_path(path, read, threaded=True)

    async def facts(self, path: str) -> FileFacts | None:
        """Return the metadata of a path, or None if nothing is there."""
        if path.startswith(OUTPUT_SCHEME):
            size = await to_thread.run_sync(self._kept_bytes, path)
            return FileFacts(path, "file", size, 0o600, 0.0)
        if path.startswith(SKILL_SCHEME):
            await self.gate.admit(ReadEffect((path,)))
            return await to_thread.run_sync(self.workspace.skills.facts, *split_skill_path(path))
        files = self.workspace.files
        return await self._run_on_admitted_path(path, files.facts, threaded=not files.is_fast_to_read)

    async def names(self, path: str) -> list[FileFacts]:
        """List a folder's entries by name, without those that the policy hides."""
        if path.startswith(READ_ONLY_SCHEMES):
            return []
        found = await self._run_on_admitted_path(path, self.workspace.files.names, threaded=True)
        return [facts for facts in found if not self.gate.policy.hides(facts.path)]

    async def _run_on_admitted_path(self, path: str, look: Callable[[str], T], *, threaded: bool) -> T:
        """Resolve and check a path, asking the user if a rule requires it, then run `look` on it."""
        if threaded:
            found = await to_thread.run_sync(self._if_allowed, path, look)
        else:
            found = self._if_allowed(path, look)
        return await self._if_approved(found, look) if isinstance(found, ReadEffect) else found

    def _if_allowed(self, path: str, look: Callable[[str], T]) -> T | ReadEffect:
        """Run `look` on a resolved path if the policy allows it; otherwise return the effect to approve."""

        def look_if_allowed() -> T | ReadEffect:
            located = self.workspace.files.locate(path)
            effect = ReadEffect((located,))
            return look(located) if self.gate.allows(effect) else effect

        return retry_while_links_change(look_if_allowed)

    async def _if_approved(self, effect: ReadEffect, look: Callable[[str], T]) -> T:
        await self.gate.admit(effect)
        return await to_thread.run_sync(look, effect.paths[0])

    def shown_path(self, path: str) -> str:
        """Return a path as shown in results and diffs: relative to the workspace, symlinks resolved."""
        # Locked paths were already resolved when the call began.
        return (
            path
            if path in self.held or path.startswith(READ_ONLY_SCHEMES)
            else self.workspace.files.locate(path)
        )

    async def renamed_path(self, path: str) -> str | None:
        """Return the new path of a missing file that was renamed in git's history; None if unknown."""
        return (
            None
            if path.startswith(READ_ONLY_SCHEMES)
            else await to_thread.run_sync(self._new_path_if_visible, path)
        )

    def _new_path_if_visible(self, path: str) -> str | None:
        files = self.workspace.files
        now = files.renamed_path(files.locate(path))
        if now is None or self.gate.policy.hides(now) or files.facts(now) is None:
            return None
        return now

    async def missing_path_hint(self, path: str) -> str:
        """Return a hint about where a missing path went, or similar names; empty if nothing was found."""
        if path.startswith(READ_ONLY_SCHEMES):
            return ""
        if path not in self.hints:
            self.hints[path] = await self._look_for_missing_path(path)
        return self.hints[path]

    async def _look_for_missing_path(self, path: str) -> str:
        if (now := await self.renamed_path(path)) is not None:
            return f"It was moved to {now}."
        folder, _, name = path.rpartition("/")
        facts = await self.facts(folder or ".")
        entries = await self.names(folder or ".") if facts is not None and facts.kind == "folder" else []
        names = {entry.path.rpartition("/")[2]: entry.kind for entry in entries}
        if names.get(name) == "link":
            return "It is a symlink whose target does not exist. List its folder."
        close = [f"{folder}/{found}" if folder else found for found in similar_names(name, list(names))]
        close = close or await self._same_name_elsewhere(name)
        return f"Did you mean {' or '.join(close)}?" if close else ""

    async def _same_name_elsewhere(self, name: str) -> list[str]:
        if not name or _GLOB_CHARACTERS.intersection(name):
            return []
        hides = self.gate.policy.hides
        scope = SearchScope(include=(f"**/{name}",), timeout=SIMILAR_PATH_SEARCH_SECONDS)
        try:
            found = await self.workspace.search.paths(
                scope,
                wanted="file",
                most=3,
                admit=lambda paths: [path for path in paths if not hides(path)],
            )
        except HandtoolsError:
            return []
        return [entry.path for entry in found.found]

    async def with_near_names(self, error: NotFound, paths: Iterable[str]) -> NotFound:
        """Return the error with hints for the call's paths that don't exist."""
        told: dict[str, None] = {}
        for path in dict.fromkeys(parse_path_spec(path).path for path in paths):
            if len(told) < MAX_NEAR_HINTS and await to_thread.run_sync(self._is_gone, path):
                told |= dict.fromkeys([await self.missing_path_hint(path)])
        new = [hint for hint in told if hint and hint not in error.hint]
        return NotFound(error.message, hint=" ".join([*new, error.hint]).strip()) if new else error

    def _is_gone(self, path: str) -> bool:
        try:
            return not path.startswith(READ_ONLY_SCHEMES) and not self.is_there(
                self.workspace.files.locate(path)
            )
        except ToolError:
            return False

    async def last_read_bytes(self, path: str) -> bytes | None:
        """Return the bytes of a file as this agent was last shown them, or None if they are not stored."""
        if path.startswith(READ_ONLY_SCHEMES):
            return None
        return await to_thread.run_sync(lambda: self._known_bytes(self.workspace.files.locate(path)))

    async def mark_shown(
        self, path: str, data: bytes, shown: Sequence[tuple[int, int]] | None = None
    ) -> None:
        """Record that the result shows a file, or with `shown` only these ranges of its lines."""
        if path.startswith(READ_ONLY_SCHEMES):
            return
        located = path if path in self.read_nodes else self.workspace.files.locate(path)
        node = self.workspace.recent.node(located, data)
        if shown is None or self._known_digest(located) in {None, node.digest}:
            self.known_nodes[located] = node
        else:
            await to_thread.run_sync(self._learn, located, node, shown)

    async def apply(self, changes: ChangeSet) -> RecordedChanges:
        """Apply changes: check the policy, ask if needed, check that files are as last read, write, and record."""
        return await self.apply_transaction(Transaction(changes))

    async def apply_transaction(self, transaction: Transaction) -> RecordedChanges:
        """Apply a transaction in the same way as `apply`."""
        done = await to_thread.run_sync(self._apply_if_plain, transaction)
        if isinstance(done, Transaction):
            return await self.land(done, question=await to_thread.run_sync(self.question, done.changes))
        return self._announce_changes(done)

    async def land(self, transaction: Transaction, *, question: str = "") -> RecordedChanges:
        """Apply a transaction whose paths are resolved; with a `question`, only if the user approves."""
        changes = transaction.changes
        await self.gate.admit(changes, question=question)
        async with AsyncExitStack() as stack:
            missing = [key for key in lock_keys(changes.paths) if key not in self.held]
            if missing:
                await stack.enter_async_context(
                    self.workspace.locks.hold(missing, timeout=LOCK_TIMEOUT_SECONDS)
                )
            if not self.workspace.journal.entries.has_only_finished_entries:
                await recover_transactions(
                    self.workspace, held={*self.held, *changes.paths}, only_held=True
                )
            # Cancelling the call doesn't abandon this thread, so the journal entry is always closed.
            done = await to_thread.run_sync(self._commit, transaction)
        return self._announce_changes(done)

    async def record_landed_changes(self, transaction: Transaction) -> RecordedChanges:
        """Record changes that were already made."""
        return self._announce_changes(await to_thread.run_sync(self._commit, transaction))

    def _announce_changes(self, recorded: RecordedChanges) -> RecordedChanges:
        self.announce(Changed(self.call.id, recorded))
        return recorded

    def _apply_if_plain(self, transaction: Transaction) -> RecordedChanges | Transaction:
        """Apply the changes if all are allowed and their paths are locked.

        Otherwise return the transaction with paths resolved and missing parent folders added.
        """
        full = self._with_parent_folders(transaction.changes)
        plain = (
            self.held.issuperset(full.paths)
            and self.workspace.journal.entries.has_only_finished_entries
            and not self.question(full)
            and self.gate.allows(full)
        )
        completed = replace(transaction, changes=full)
        return self._commit(completed) if plain else completed

    def question(self, changes: ChangeSet) -> str:
        """Return why changes that rules allow still need approval, such as a symlink to outside; empty if not."""
        from handtools.runtime.policy.change_rules import reason_to_ask

        asked = reason_to_ask(changes.changes, self.view)
        return f"It would create {asked}." if asked else ""

    def is_there(self, path: str) -> bool:
        """Whether a file, folder or symlink exists at a located path."""
        try:
            return self.workspace.files.facts(path) is not None
        except ToolError:
            return True  # a parent folder is a symlink, or the path is not accessible

    @property
    def view(self) -> "WorkspaceView":
        """Queries about the workspace for rules that depend on content."""
        from handtools.runtime.policy.git_changes import WorkspaceView

        files = self.workspace.files
        return WorkspaceView(
            self.is_there,
            self.is_within,
            partial(node_pieces, files),
            lambda stem, nodes: files.verifies_git_pack(
                stem, {suffix: node.held.ref for suffix, node in nodes.items() if node.held}
            ),
            self.named_by_git,
        )

    def named_by_git(self, paths: Collection[str]) -> Sequence[GitNamedPath]:
        """List the paths that git settings name, in the repositories that contain the given paths."""
        from handtools.runtime.policy.harmless_git_settings import has_plain_value

        return self.workspace.files.git_named_paths(paths, has_plain_value)

    def is_open(self, path: str) -> bool:
        """Whether a file with a private name has no secrets: git tracks its content, or a call wrote it.

        Overrides only the built-in rule, which is based on names alone.
        """
        if not self.gate.policy.hides_by_name(path):
            return False
        try:
            return self.workspace.files.is_tracked_by_git(path) or self._is_own(path)
        except ToolError:
            return False

    def _is_own(self, path: str) -> bool:
        """Whether a file is unchanged since a call of this owner wrote it."""
        entries = self.workspace.journal.entries
        left = entries.left_at(path)
        if left is None or left.kind != "file":
            return False
        try:
            node = entries.node(left)
        except KeyError:
            return False
        return node is not None and node.same(node_at(self.workspace.files, path, like_node=node))

    def is_within(self, target: str) -> bool:
        """Whether a path resolves to a path inside the workspace."""
        try:
            self.workspace.files.locate(target)
        except ToolError:
            return False
        return True

    def _commit(self, transaction: Transaction) -> RecordedChanges:
        done = commit_transaction(
            self.workspace, self.call, transaction, ordinal=len(self.recorded_changes)
        )
        self.recorded_changes.append(done)
        self.transactions.append(transaction)
        for change in transaction.changes:
            # The agent has not seen files that a command wrote.
            if change.after is not None and change.after.kind == "file" and not change.after.held:
                self.read_nodes[change.path] = change.after
                self.workspace.recent.keep(change.path, change.after)
                self._learn_own_change(change.path, change.before, change.after)
        return done

    def _learn_own_change(self, path: str, before: Node | None, after: Node) -> None:
        """Record a file as the agent changed it; what someone else changed in it stays unseen."""
        digest = self._known_digest(path)
        if (
            digest is None
            or before is None
            or before.kind != "file"
            or before.held
            or digest == before.digest
        ):
            self.known_nodes[path] = after
        else:
            self._learn(path, after, changed_line_ranges(before.data, after.data))

    def _learn(self, located: str, node: Node, shown: Sequence[tuple[int, int]]) -> None:
        """Record that the agent knows some lines of a file as they are now, and the others as before."""
        known = self._known_bytes(located)
        if known is not None and known != node.data and len(node.data) <= MAX_SEEN_BYTES:
            node = Node("file", take_shown_changes(known, node.data, shown))
        self.known_nodes[located] = node

    def _read(self, located: str, *, start: int, size: int | None) -> bytes:
        data = self.workspace.files.read(located, start=start, size=size)
        if start or (size is not None and len(data) >= size):
            return data
        seen = self.read_nodes[located] = self.workspace.recent.node(located, data)
        return seen.data

    def _known_digest(self, located: str) -> str | None:
        known = self.known_nodes.get(located)
        return known.digest if known else self.workspace.journal.entries.seen_digest(self.call, located)

    def _known_bytes(self, located: str) -> bytes | None:
        known = self.known_nodes.get(located)
        return known.data if known else self.workspace.journal.entries.seen_bytes(self.call, located)

    def _of_skill(self, path: str, start: int, size: int | None) -> bytes:
        name, inner = split_skill_path(path)
        return self.workspace.skills.read(name, inner, start=start, size=size)

    def _read_stored_output(self, path: str, start: int, size: int | None) -> bytes:
        try:
            return self.workspace.output_store.part(path.removeprefix(OUTPUT_SCHEME), start, size)
        except KeyError:
            raise output_not_found(path) from None

    def _kept_bytes(self, path: str) -> int:
        try:
            return self.workspace.output_store.size(path.removeprefix(OUTPUT_SCHEME))
        except KeyError:
            raise output_not_found(path) from None

    def _with_parent_folders(self, changes: ChangeSet) -> ChangeSet:
        """Resolve the paths of changes, and add missing parent folders so that they are checked and recorded."""
        files = self.workspace.files
        full_changes: dict[str, Change] = {}
        for change in changes:
            if change.path.startswith(READ_ONLY_SCHEMES):
                words = "Stored outputs and skills outside the workspace can't be changed."
                raise WrongKind(words, hint="Write to a file in the workspace.")
            located, before = files.locate(change.path), change.before
            if before is not None:
                if not files.writable(located):
                    hint = "Ask the user to make it writable, or write another file."
                    raise StorageFault(f"`{change.path}` is not writable by this process.", hint=hint)
                facts = files.facts(located)
                if change.after and facts and facts.kind == "file" and facts.links > 1:
                    self.linked[located] = facts.links - 1
                before = self._with_mode(located, before, change.after, facts)
            if change.after is not None:
                for folder in self._missing_folders(located):
                    full_changes.setdefault(folder, Change(folder, None, Node("folder")))
            full_changes[located] = Change(located, before, change.after)
        return ChangeSet(tuple(full_changes.values()), changes.note)

    def _missing_folders(self, located: str) -> list[str]:
        missing = []
        parent = located.rpartition("/")[0]
        while parent and self.workspace.files.facts(parent) is None:
            missing.append(parent)
            parent = parent.rpartition("/")[0]
        return missing[::-1]

    def _with_mode(self, located: str, before: Node, after: Node | None, facts: FileFacts | None) -> Node:
        """Return the node before a change, including its mode if the change affects that, for undo."""
        if after is None or after.mode is not None:
            return Node(before.kind, before.data, facts.mode if facts else None)
        # Prefer an equal node read in this call: its digest may be computed already.
        seen = self.read_nodes.get(located)
        return seen if seen is not None and seen == before else before


def retry_while_links_change(look: Callable[[], T]) -> T:
    """Run a function that resolves, checks and opens a path; retry if a symlink appears between these steps."""
    for _ in range(MAX_PATH_OPEN_TRIES - 1):
        with contextlib.suppress(SymlinkInPath):
            return look()
    return look()


def output_not_found(path: str) -> NotFound:
    """Return the error for an output that is no longer stored."""
    hint = "Run the command again, or read another output."
    return NotFound(f"The output `{path}` is no longer stored.", hint=hint)
