"""In-memory implementations of the files and search ports, for tests.

Patterns use Python's regular expressions, which differ from ripgrep's in details and may be slow.
"""

import os
import re
import threading
import time
from collections import deque
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from handtools.core.changes import BackupRef, Change, Node, folder_item, folder_node, same_nodes
from handtools.core.errors import InvalidInput, NotFound, OutsideWorkspace, Stale, UsageError, WrongKind
from handtools.core.files import FileFacts, GitNamedPath, PlannedWrite, SettingPredicate
from handtools.core.search import (
    FolderEntry,
    FolderListing,
    FolderTree,
    FoundPaths,
    Hit,
    Hits,
    MatchCount,
    MatchCounts,
    PathFilter,
    SearchGaps,
    SearchPatterns,
    SearchScope,
    WantedKind,
)
from handtools.host.files.path_resolution import symlink_in_path_error
from handtools.host.files.temporary_file import is_temporary_name, temporary_name
from handtools.text.encoding import decode
from handtools.text.lines import convert_line_ends
from handtools.text.paths import BadPath, workspace_relative
from handtools.text.search.gitignore import IGNORE_FILES, IgnoreRules, ignored_paths, is_skipped_by_walk
from handtools.text.search.glob import GlobSet, PathSelection

MEMORY_ROOT = "/workspace"
"""Absolute path of the in-memory workspace."""
MAX_SYMLINKS = 40
_MODES = {"file": 0o644, "folder": 0o755, "link": 0o777}
_PRIVILEGE = 0o6000


class MemoryBackups:
    """In-memory backup store: nodes by reference and relative path."""

    def __init__(self) -> None:
        self.things: dict[str, dict[str, Node]] = {}

    def has(self, ref: str) -> bool:
        return ref in self.things

    def read(self, ref: str, most: int) -> bytes | None:
        node = self.things.get(ref, {}).get("")
        return node.data if node and node.kind == "file" and len(node.data) <= most else None

    def part(self, ref: str, start: int, size: int) -> bytes | None:
        node = self.things.get(ref, {}).get("")
        return node.data[start : start + size] if node and node.kind == "file" else None

    def drop(self, ref: str, *, erase: bool = False) -> None:  # noqa: ARG002
        self.things.pop(ref, None)

    def delete_item_leftovers(self, name: str) -> None:
        """Do nothing: memory has no leftovers."""

    def delete_unwanted_items(self, wanted: Collection[str]) -> list[str]:
        for ref in [ref for ref in self.things if ref.partition("/")[0] not in wanted]:
            del self.things[ref]
        return []


class MemoryFiles:
    """In-memory files port, filled with bytes by path, or with nodes for symlinks, folders and modes.

    Missing parent folders are created.
    """

    def __init__(self, nodes: Mapping[str, bytes | Node] | None = None) -> None:
        self._lock = threading.RLock()
        self._nodes: dict[str, Node] = {"": Node("folder", mode=_MODES["folder"])}
        self._modified: dict[str, float] = {}
        self.backups = MemoryBackups()
        for path, content in (nodes or {}).items():
            node = Node("file", content) if isinstance(content, bytes) else content
            parts = _normalised_path(path).split("/")
            for depth in range(1, len(parts)):
                self._nodes.setdefault("/".join(parts[:depth]), Node("folder", mode=0o755))
            self._set_node("/".join(parts), node)

    @property
    def is_fast_to_read(self) -> bool:
        """Always true: reading from memory needs no worker thread."""
        return True

    @property
    def files(self) -> dict[str, bytes]:
        """The bytes of all regular files by path."""
        with self._lock:
            return {path: node.data for path, node in self._nodes.items() if node.kind == "file"}

    def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        if start < 0 or (size is not None and size < 0):
            raise InvalidInput("`start` and `size` can't be negative.", hint="Count from 0.")
        with self._lock:
            node = self._nodes.get(self._path_checked_for_symlinks(_normalised_path(path)))
        if node is None:
            raise _not_found_error(path)
        if node.kind != "file":
            raise WrongKind(f"`{path}` is a folder, not a file.", hint="List it with `list`.")
        return node.data[start : None if size is None else start + size]

    def facts(self, path: str) -> FileFacts | None:
        inside = _normalised_path(path)
        with self._lock:
            return self._facts_of_node(inside or ".", self._path_checked_for_symlinks(inside))

    def names(self, path: str) -> list[FileFacts]:
        inside = _normalised_path(path)
        with self._lock:
            real = self._path_checked_for_symlinks(inside)
            node = self._nodes.get(real)
            if node is None:
                raise _not_found_error(path)
            if node.kind != "folder":
                raise WrongKind(f"`{path}` is not a folder.", hint="Read it instead.")
            prefix = f"{inside}/" if inside else ""
            found = [
                self._facts_of_node(prefix + child.rpartition("/")[2], child)
                for child in sorted(self._paths_of_children(real))
            ]
        return [facts for facts in found if facts]

    def node(self, path: str, *, like_node: Node | None = None) -> Node | None:
        with self._lock:
            real = self._path_checked_for_symlinks(_normalised_path(path), end=False)
            node = self._nodes.get(real)
            if node and like_node and like_node.held:
                return self._node_after_move_to_backup(real, node, like_node.held)
        return Node("link", node.data) if node and node.kind == "link" else node

    def renamed_path(self, path: str) -> str | None:
        """Always None: there is no git history in memory."""
        _normalised_path(path)
        return None

    def is_tracked_by_git(self, path: str) -> bool:
        """Always False: there is no git repository in memory."""
        _normalised_path(path)
        return False

    def git_named_paths(
        self, paths: Collection[str], is_plain: SettingPredicate
    ) -> tuple[GitNamedPath, ...]:
        """Always empty: git is not run in memory, so no git setting names a path."""
        del paths, is_plain
        return ()

    def verifies_git_pack(self, stem: str, refs: Mapping[str, str]) -> bool:
        """Always False: there is no git to verify a pack."""
        del stem, refs
        return False

    def writable(self, path: str) -> bool:
        """Whether the mode lets the owner write to the file."""
        node = self.node(path)
        return node is None or node.mode is None or bool(node.mode & 0o200)

    def locate(self, path: str) -> str:
        with self._lock:
            return self._resolve_symlinks(_workspace_relative_path(path)) or "."

    def plan(self, changes: Iterable[Change]) -> list[PlannedWrite]:
        return [PlannedWrite(change, temporary_name()) for change in changes]

    def perform(self, writes: Sequence[PlannedWrite], *, synced: bool = True) -> None:  # noqa: ARG002
        """Perform all writes or none; raises `Stale` if a path's content is not the change's `before`."""
        with self._lock:
            saved, modified = dict(self._nodes), dict(self._modified)
            kept = dict(self.backups.things)
            try:
                for step in writes:
                    self._perform_write(step)
            except BaseException:
                self._nodes, self._modified, self.backups.things = saved, modified, kept
                raise

    def sync(self, paths: Collection[str]) -> None:
        """Does nothing: memory has no disk."""

    def sweep(self, write: PlannedWrite) -> str | None:
        """Always None: a crash leaves nothing in memory."""
        _checked_write_path(write)
        return None

    def _perform_write(self, write: PlannedWrite) -> None:
        change, path = write.change, _checked_write_path(write)
        parent = path.rpartition("/")[0]
        holder = self._nodes.get(self._path_checked_for_symlinks(parent))
        if holder is None or holder.kind != "folder":
            message = f"There is no folder `{parent}`; nothing was written."
            raise NotFound(message, hint="Create it first.")
        real = path
        now = self._nodes.get(real)
        if now and change.before and change.before.held:
            now = self._node_after_move_to_backup(real, now, change.before.held)
        same = same_nodes(change.before, now)
        both_folders = change.before and change.after and change.after.kind == "folder"
        whole = change.before and change.before.held
        if (
            now
            and now.kind == "folder"
            and not both_folders
            and not whole
            and any(self._paths_of_children(real))
        ):
            same = False
        if not same:
            raise Stale(
                f"`{path}` has changed since this change was planned; nothing was written.",
                hint="Read it again and redo the change.",
            )
        if change.before and change.before.held:
            self.backups.things[change.before.held.ref] = self._pop_subtree(real)
        if change.after and change.after.held and change.after.is_moved_from_backups:
            for below, node in self.backups.things.pop(change.after.held.ref).items():
                self._nodes[real + below] = node
        else:
            self._set_node(real, change.after)

    def _node_after_move_to_backup(self, real: str, node: Node, backup: BackupRef) -> Node:
        """Describe the node at a path as it would be after moving it into the backup `backup`."""
        if node.kind != "folder":
            backup_ref = BackupRef(backup.ref, node.digest, len(node.data) if node.kind == "file" else 0)
            return Node(node.kind, node.data, node.mode if node.kind == "file" else None, backup_ref)
        below = {
            path.removeprefix(f"{real}/"): it
            for path, it in self._nodes.items()
            if path.startswith(f"{real}/")
        }
        return folder_node(
            [folder_item(path, it) for path, it in below.items()], mode=node.mode or 0, ref=backup.ref
        )

    def _pop_subtree(self, real: str) -> dict[str, Node]:
        """Remove and return a node and everything below it."""
        paths = [path for path in self._nodes if path == real or path.startswith(f"{real}/")]
        return {path.removeprefix(real): self._nodes.pop(path) for path in paths}

    def _set_node(self, path: str, node: Node | None) -> None:
        old = self._nodes.pop(path, None)
        self._modified[path] = time.time()
        if node is None:
            return
        mode = node.mode
        if mode is None:
            alike = old is not None and old.kind == node.kind
            mode = old.mode if old and alike else _MODES[node.kind]
        elif node.kind == "file":
            kept = (old.mode or 0) & _PRIVILEGE if old else 0
            mode = mode & ~_PRIVILEGE | mode & kept
        self._nodes[path] = Node(node.kind, node.data, mode)

    def _facts_of_node(self, shown: str, path: str) -> FileFacts | None:
        node = self._nodes.get(path)
        if node is None:
            return None
        modified = self._modified.get(path, 0.0)
        return FileFacts(shown, node.kind, len(node.data), node.mode or 0, modified)

    def _paths_of_children(self, folder: str) -> list[str]:
        return [path for path in self._nodes if path and path.rpartition("/")[0] == folder]

    def _path_checked_for_symlinks(self, path: str, *, end: bool = True) -> str:
        """Return a path unchanged; raises `SymlinkInPath` if a part of it is a symlink."""
        parts = path.split("/")
        for depth in range(1, len(parts) + end):
            node = self._nodes.get("/".join(parts[:depth]))
            if node is not None and node.kind == "link":
                raise symlink_in_path_error(path)
        return path

    def _resolve_symlinks(self, path: str) -> str:
        """Resolve all symlinks in a path; the path need not exist."""
        names: list[str] = []
        todo = deque(_path_parts(path))
        links = 0
        while todo:
            part = todo.popleft()
            if part == "..":
                if not names:
                    raise _outside_workspace_error(path)
                names.pop()
                continue
            here = "/".join([*names, part])
            node = self._nodes.get(here)
            if node is not None and node.kind == "link":
                links += 1
                target = os.fsdecode(node.data)
                if links > MAX_SYMLINKS or (target.startswith("/") and not _is_in_workspace(target)):
                    raise _outside_workspace_error(path)
                if target.startswith("/"):
                    names, target = [], target.removeprefix(MEMORY_ROOT)
                todo.extendleft(reversed(_path_parts(target)))
                continue
            if todo and (node is None or node.kind != "folder"):
                if node is None and ".." not in todo:
                    return "/".join([*names, part, *todo])
                raise _not_found_error(path)
            names.append(part)
        return "/".join(names)


def _checked_write_path(write: PlannedWrite) -> str:
    path = _normalised_path(write.change.path)
    if not path or not is_temporary_name(write.temporary):
        raise UsageError("A step needs a path below the workspace and a temporary name from `plan`.")
    return path


def _workspace_relative_path(path: str) -> str:
    try:
        inside = workspace_relative(path, MEMORY_ROOT)
    except BadPath as problem:
        message = f"`{path[:200]}` {problem.reason}."
        raise OutsideWorkspace(message, hint=problem.hint) from None
    return "" if inside == "." else inside


def _normalised_path(path: str) -> str:
    odd = {"", ".", ".."}.intersection(path.split("/"))
    return _workspace_relative_path(path) if odd or "\0" in path else path


def _path_parts(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in {"", "."}]


def _is_in_workspace(target: str) -> bool:
    return target == MEMORY_ROOT or target.startswith(f"{MEMORY_ROOT}/")


def _not_found_error(path: str) -> NotFound:
    return NotFound(f"`{path}` does not exist.", hint="List the parent folder to see its entries.")


def _outside_workspace_error(path: str) -> OutsideWorkspace:
    return OutsideWorkspace(
        f"`{path}` leads outside the workspace.", hint="Use a path inside the workspace."
    )


VERSION_CONTROL = frozenset({".git", ".hg", ".svn", ".jj"})


class MemorySearch:
    """In-memory search port over `MemoryFiles`."""

    def __init__(self, files: MemoryFiles) -> None:
        self._files = files

    async def hits(
        self, patterns: SearchPatterns, scope: SearchScope, *, most: int, admit: PathFilter
    ) -> Hits:
        wanted = _compiled_pattern(patterns)
        texts = self._paths_and_texts(scope, admit)
        every = (found for path, text in texts for found in _hits_in_text(path, text, wanted, patterns))
        found = list(islice(every, most + 1))
        return Hits(tuple(found[:most]), SearchGaps(capped=len(found) > most))

    async def tallies(
        self, patterns: SearchPatterns, scope: SearchScope, *, most: int, admit: PathFilter
    ) -> MatchCounts:
        wanted = _compiled_pattern(patterns)
        counts = ((path, len(wanted.findall(text))) for path, text in self._paths_and_texts(scope, admit))
        found = list(islice((MatchCount(path, count) for path, count in counts if count), most + 1))
        return MatchCounts(tuple(found[:most]), SearchGaps(capped=len(found) > most))

    async def paths(
        self, scope: SearchScope, *, wanted: WantedKind, most: int, admit: PathFilter
    ) -> FoundPaths:
        asked = _path_selection(scope, itself=wanted != "file")
        found = [
            entry
            for entry in self._walk(scope.root, self._ignore_rules_above(scope), scope, admit)
            if wanted in {"any", entry.kind} and asked.takes(entry.path)
        ]
        found.sort(key=lambda entry: (-(entry.modified or 0.0), entry.path))
        return FoundPaths(tuple(found[:most]), len(found))

    async def tree(self, scope: SearchScope, *, depth: int, most: int, admit: PathFilter) -> FolderTree:
        folder_entries: dict[str, list[FolderEntry]] = {}
        waiting = [(scope.root, self._ignore_rules_above(scope), 1)]
        left, left_out, unvisited, ignored = most, 0, 0, 0
        for folder, ignores, level in waiting:
            if left <= 0:
                unvisited += 1
                continue
            entries, below, passed = self._list_folder(folder, ignores, scope, admit)
            entries.sort(key=lambda entry: (entry.kind != "folder", entry.path))
            folder_entries[folder] = entries[:left]
            left_out, ignored = left_out + len(entries[left:]), ignored + passed
            left -= len(folder_entries[folder])
            if level < depth:
                waiting += [
                    (e.path, below, level + 1) for e in folder_entries[folder] if e.kind == "folder"
                ]
        listings = {folder: FolderListing.of(entries) for folder, entries in folder_entries.items()}
        return FolderTree(listings.pop(scope.root), listings, left_out, unvisited, ignored)

    async def find_ignored_paths(self, paths: Sequence[str]) -> set[str]:
        return ignored_paths(paths, self._ignore_rules_inside)

    def _paths_and_texts(self, scope: SearchScope, admit: PathFilter) -> Iterator[tuple[str, str]]:
        asked = _path_selection(scope)
        facts = self._files.facts(scope.root)
        if facts is not None and facts.kind == "file":
            entries = [FolderEntry(scope.root, "file")] if admit([scope.root]) else []
        else:
            entries = list(self._walk(scope.root, self._ignore_rules_above(scope), scope, admit))
        paths = [entry.path for entry in entries if entry.kind == "file" and asked.takes(entry.path)]
        for path in sorted(paths, key=lambda path: path.split("/")):
            data = self._files.read(path)
            if b"\0" not in data:
                yield path, convert_line_ends(decode(data).body, "\n")

    def _walk(
        self, folder: str, ignores: IgnoreRules, scope: SearchScope, admit: PathFilter
    ) -> Iterator[FolderEntry]:
        entries, below, _ = self._list_folder(folder, ignores, scope, admit)
        for entry in entries:
            yield entry
            if entry.kind == "folder":
                yield from self._walk(entry.path, below, scope, admit)

    def _list_folder(
        self, folder: str, ignores: IgnoreRules, scope: SearchScope, admit: PathFilter
    ) -> tuple[list[FolderEntry], IgnoreRules, int]:
        facts = self._files.names(folder)
        inside = "" if folder == "." else folder
        if not scope.ignored:
            ignores = self._ignore_rules_inside(ignores, inside)
        excluded_globs = GlobSet(scope.exclude, case_sensitive=False)
        entries: list[FolderEntry] = []
        ignored = 0
        for found in facts:
            name, below = found.path.rpartition("/")[2], found.kind == "folder"
            if name in VERSION_CONTROL:
                continue
            passed = is_skipped_by_walk(ignores, found.path, folder=below, hidden=scope.hidden)
            if passed or scope.skips(name, folder=below):
                ignored += 1
                continue
            shown = found.path + "/" * below
            if not excluded_globs.matches(found.path, folder=below) and admit([shown]):
                entries.append(
                    FolderEntry(found.path, found.kind, None if below else found.bytes, found.modified)
                )
        return entries, ignores, ignored

    def _ignore_rules_above(self, scope: SearchScope) -> IgnoreRules:
        ignores = IgnoreRules()
        if scope.ignored or scope.root == ".":
            return ignores
        parts = scope.root.split("/")
        for depth in range(len(parts)):
            path = "/".join(parts[:depth])
            ignores = self._ignore_rules_inside(ignores, path)
        return ignores

    def _ignore_rules_inside(self, ignores: IgnoreRules, folder: str) -> IgnoreRules:
        git = self._files.facts(f"{folder}/.git" if folder else ".git")
        return ignores.into(folder, self._ignore_texts(folder), repository=git is not None)

    def _ignore_texts(self, folder: str) -> dict[str, str]:
        files = self._files.files
        paths = {name: f"{folder}/{name}" if folder else name for name in IGNORE_FILES}
        return {
            name: files[path].decode("utf-8", "replace") for name, path in paths.items() if path in files
        }


def _compiled_pattern(patterns: SearchPatterns) -> re.Pattern[str]:
    each = [re.escape(one) if patterns.literal else one for one in patterns.patterns]
    flags = re.MULTILINE if patterns.case_sensitive else re.MULTILINE | re.IGNORECASE
    try:
        return re.compile("|".join(f"(?:{one})" for one in each), flags)
    except re.error as problem:
        hint = "Escape special characters, or set syntax='literal'."
        raise InvalidInput(f"Invalid pattern: {problem}.", hint=hint) from None


def _hits_in_text(path: str, text: str, wanted: re.Pattern[str], patterns: SearchPatterns) -> Iterator[Hit]:
    if patterns.multiline:
        yield from _multiline_hits(path, text, wanted)
        return
    for number, line in enumerate(text.removesuffix("\n").split("\n") if text else [], 1):
        spans = tuple(match.span() for match in wanted.finditer(line))
        if spans:
            yield Hit(path, number, line, spans)


def _multiline_hits(path: str, text: str, wanted: re.Pattern[str]) -> Iterator[Hit]:
    """Yield the matches of a multi-line pattern as full lines; matches that share a line become one hit."""
    spans: list[tuple[int, int]] = []
    end, start = -1, 0
    for match in wanted.finditer(text):
        begins = text.rfind("\n", 0, match.start()) + 1
        if spans and begins > end:
            yield _multiline_hit(path, text, start, end, spans)
            spans = []
        start = start if spans else begins
        spans.append(match.span())
        end = max(end, text.find("\n", max(match.end() - 1, match.start())))
        end = len(text) if end < 0 else end
    if spans:
        yield _multiline_hit(path, text, start, end, spans)


def _multiline_hit(path: str, text: str, start: int, end: int, spans: list[tuple[int, int]]) -> Hit:
    inside = tuple((min(a, end) - start, min(b, end) - start) for a, b in spans)
    return Hit(path, text.count("\n", 0, start) + 1, text[start:end], inside)


def _path_selection(scope: SearchScope, *, itself: bool = False) -> PathSelection:
    return PathSelection(
        scope.include,
        root=scope.root,
        case_sensitive=scope.case_sensitive,
        hidden=scope.hidden,
        itself=itself,
    )
