"""The private and read-only paths of a workspace, kept up to date.

A mount needs a path, but a policy has globs. So the tree is searched once, and from then on each folder is
watched with inotify. A folder that can't be watched is compared by inode and ctime on every query. No
command starts before the search is complete.

A private file that is created while a command runs is visible to that command, because a path can't be
masked before it exists. `PrivateFileAlarm` detects it; the command is then killed, and its output and
changes are discarded.
"""

import os
import stat
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from pathlib import PurePath

from handtools.core.changes import parent_folders
from handtools.core.commands import PathPredicate
from handtools.host.files.change_detection import FileState, file_state, will_show_changes
from handtools.host.files.folder_handle import join_path
from handtools.host.files.syscalls import is_local_filesystem
from handtools.host.files.tree_watch import INOTIFY, EventQueue, FolderEvent
from handtools.host.workspace_folders import path_in_folders, shown_folders, workspace_folders
from handtools.text.search.glob import GlobPrefilter, PathGlobs, any_covers

DEPENDENCY_FOLDERS = frozenset(
    {"node_modules", "site-packages", "dist-packages", ".tox", ".nox", "__pycache__"}
)
"""Folders with third-party files. They are not searched if every private rule exempts them."""
VERSION_CONTROL_FOLDERS = frozenset({".git", ".hg", ".jj", ".bzr"})
UNSEARCHED_FOLDERS = DEPENDENCY_FOLDERS | VERSION_CONTROL_FOLDERS
MAX_FINDERS = 8
"""How many combinations of a folder and a policy are kept up to date for one workspace."""
EXPLANATION_SECONDS = 1.0
"""How long to wait for a new private file to turn out harmless: created by a call, or tracked by git."""
MAX_LOOKED_AT = 200
"""How many files of a private folder are checked one by one; a larger folder is hidden in full."""
_RETRY_SECONDS = 0.02
_CLOCK_TICK_NS = 50_000_000
"""A folder that changed less than this before it was listed may change again with the same ctime."""


@dataclass(frozen=True, slots=True)
class PolicyPaths:
    """The private and read-only paths found in a workspace, as absolute paths."""

    private: tuple[str, ...]
    read_only: tuple[str, ...]
    closed: tuple[str, ...] = ()
    """Folders that a command could open but we can't list, so we don't know what is in them."""


class PrivateFileAlarm:
    """Detects private files that are created or written where one running command can see them."""

    def __init__(
        self,
        root: str,
        private_globs: Sequence[PathGlobs],
        is_open: PathPredicate,
        finders: "Sequence[PolicyGlobFinder]",
    ) -> None:
        """`is_open` returns whether a path (relative to the workspace) is visible although it is private."""
        self._root = root
        self._private_globs = private_globs
        self._is_open = is_open
        self._finders = finders
        self._suspects: dict[str, float] = {}
        """Paths that the command may have read; each counts as exposed unless harmless by its deadline."""
        self._hidden: frozenset[str] = frozenset()
        self.shown: Mapping[str, FileState] = {}
        """Private paths that the command was allowed to see when it started, and their states.

        The state is empty for a folder, and for a file that may change without a new state.
        """
        self._lost_events = False
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        """Readable when there is a new suspect."""
        self._close_fd = weakref.finalize(self, os.close, self.fd)
        for finder in finders:
            finder.add_alarm(self)

    def close(self) -> None:
        """Unregister from the finders and close the eventfd."""
        for finder in self._finders:
            finder.remove_alarm(self)
        self._close_fd()

    def set_hidden(self, masks: Iterable[str]) -> None:
        """Set which paths are masked for the command: files created there or below are invisible to it."""
        self._hidden = frozenset(masks)
        self._suspects = {
            path: until for path, until in self._suspects.items() if not self._is_hidden(path)
        }

    def lose_masks(self, folder: str) -> None:
        """Handle a replaced folder: its masks were mounted in the old one and are no longer effective."""
        self._hidden = frozenset(
            path for path in self._hidden if path != folder and not path.startswith(f"{folder}/")
        )

    def suspect(self, path: str) -> None:
        """Record a private path that was created or written."""
        if not self._is_hidden(path):
            self._suspects[path] = time.monotonic() + EXPLANATION_SECONDS
            os.eventfd_write(self.fd, 1)

    def suspect_everything(self) -> None:
        """Record that inotify events were lost: a private path may have been among them."""
        self._lost_events = True
        os.eventfd_write(self.fd, 1)

    @cached_property
    def exposed_at_end(self) -> list[str]:
        """The paths of a thorough `exposed_paths`, when the command has ended."""
        return self.exposed_paths(thorough=True)

    def exposed_paths(self, *, thorough: bool = False) -> list[str]:
        """Return the private paths that the command could read, relative to the workspace.

        Waits briefly, because a path may turn out harmless. If events were lost, the list contains `**`. New
        paths in folders that can't be watched are found only if `thorough`, and only while they exist.
        """
        INOTIFY.drain()
        for finder in self._finders:
            finder.update(thorough=thorough)
        if thorough:
            # A program that has one of these files open may have written to it without triggering an event.
            self._suspects.update(
                (path, 0.0)
                for path, state in self.shown.items()
                if not state or file_state(path) != state
                if os.path.lexists(path)
            )
        while True:
            suspects = dict(self._suspects)
            if not suspects and not self._lost_events:
                return []
            closed = hidden_private_paths(self._root, suspects, self._private_globs, self._is_open)
            readable = [path for path in closed if not self._is_hidden(path)]
            exposed = {
                suspect
                for suspect in suspects
                if any(path == suspect or path.startswith(f"{suspect}/") for path in readable)
            }
            for path in suspects.keys() - exposed:
                self._suspects.pop(path, None)
            now = time.monotonic()
            if self._lost_events or not exposed or any(suspects[path] <= now for path in exposed):
                places = tuple(shown_folders(self._root))
                named = sorted(path_in_folders(path, places) or path for path in readable)
                return ["**", *named] if self._lost_events else named
            time.sleep(_RETRY_SECONDS)

    def _is_hidden(self, path: str) -> bool:
        return any(place in self._hidden for place in (path, *map(str, PurePath(path).parents)))


@dataclass(slots=True)
class _SearchedFolder:
    """One folder of the tree: its subfolders, and the paths in it that the policy's globs cover."""

    stamp: tuple[int, int] | None
    """Inode and ctime in ns if the folder is not watched; None if it is."""
    subfolders: set[str] = field(default_factory=set)
    private: set[str] = field(default_factory=set)
    read_only: set[str] = field(default_factory=set)


class PolicyGlobFinder:
    """Finds the paths in one workspace folder that the policy's globs cover, and keeps them up to date."""

    def __init__(
        self,
        root: str,
        private_globs: Sequence[PathGlobs],
        read_only_globs: Sequence[PathGlobs],
        *,
        name: str = "",
    ) -> None:
        """`name` is the name of the folder `root` if the workspace has several folders."""
        self._root = root
        self._prefix = f"{name}/" if name else ""
        self._private_globs = private_globs
        self._read_only_globs = read_only_globs
        rules = (*private_globs, *read_only_globs)
        self._likely = GlobPrefilter(glob for rule in rules for glob in rule.globs or ("**",))
        self._folders: dict[str, _SearchedFolder] = {}
        self._covered: set[str] = set()
        """Folders that contain private or read-only paths."""
        self._only_private: set[str] = set()
        """Folders searched only for private paths: read-only and dependency folders, with subfolders."""
        self._inside_private: set[str] = set()
        """Private folders that are partly visible to commands: all their files are private and watched."""
        self._unwatched: set[str] = set()
        self._closed: set[str] = set()
        """Folders that can't be listed; retried before the next command."""
        self._can_watch = is_local_filesystem(root)
        self._inode = 0
        self._lock = threading.Lock()
        self._alarms: weakref.WeakSet[PrivateFileAlarm] = weakref.WeakSet()
        self._queue = _queue_for(self)
        weakref.finalize(self, INOTIFY.unwatch_all, self._queue)

    def found(self) -> PolicyPaths:
        """Return the currently covered paths."""
        if self._prefix and any_covers(self._private_globs, self._prefix.rstrip("/")):
            return PolicyPaths((self._root,), ())
        INOTIFY.drain()
        with self._lock:
            self._update(thorough=True)
            closed, self._closed = self._closed, set()
            self._search(sorted(closed))
            covered = [self._folders[folder] for folder in self._covered]
            return PolicyPaths(
                tuple(sorted(self._absolute_path(path) for each in covered for path in each.private)),
                tuple(sorted(self._absolute_path(path) for each in covered for path in each.read_only)),
                tuple(sorted(filter(_can_be_opened, map(self._absolute_path, self._closed)))),
            )

    def add_alarm(self, alarm: PrivateFileAlarm) -> None:
        """Notify an alarm of private paths that are created from now on."""
        with self._lock:
            self._alarms.add(alarm)

    def remove_alarm(self, alarm: PrivateFileAlarm) -> None:
        """Stop notifying an alarm."""
        with self._lock:
            self._alarms.discard(alarm)

    def update(self, *, thorough: bool) -> None:
        """Process the changes since the last update and notify the alarms."""
        with self._lock:
            if self._folders:
                self._update(thorough=thorough)

    def watch_inside(self, path: str) -> None:
        """Watch a private folder that is partly visible to commands: new files in it are private."""
        inside = os.path.relpath(path, self._root)
        with self._lock:
            if not inside.startswith("..") and inside not in self._inside_private:
                self._inside_private.add(inside)
                self._search([inside])

    def _absolute_path(self, path: str) -> str:
        return os.path.join(self._root, path)

    def _update(self, *, thorough: bool) -> None:
        if not self._folders or not INOTIFY.serves(self._queue) or self._inode != _inode(self._root):
            self._search_all()
        for event in self._queue.take():
            self._take_in(event)
        if thorough and self._unwatched:
            before = self._all_private()
            for folder in list(self._unwatched):
                self._relist_if_changed(folder)
            self._report_to_alarms(self._all_private() - before)

    def _all_private(self) -> set[str]:
        return {path for folder in self._covered for path in self._folders[folder].private}

    def _search_all(self) -> None:
        for known in (self._folders, self._covered, self._only_private, self._unwatched, self._closed):
            known.clear()
        self._inode = _inode(self._root)
        self._search([""])

    def _take_in(self, event: FolderEvent) -> None:
        if event.is_lost:
            for alarm in self._alarms:
                alarm.suspect_everything()
            self._search_all()
            return
        folder = self._folders.get(event.folder)
        if folder is None:
            return
        path = event.path
        is_new, is_folder = event.is_new, event.is_folder
        if is_new and event.is_gone:
            # Events for several files of this name were merged: only the current file counts.
            found = _lstat(self._absolute_path(path))
            is_new, is_folder = found is not None, found is not None and stat.S_ISDIR(found.st_mode)
        if event.is_folder and event.is_new:
            for alarm in self._alarms:
                alarm.lose_masks(self._absolute_path(path))
        is_private = event.has_content and any_covers(self._private_globs, self._prefix + path)
        if is_private:
            self._report_to_alarms([path])
        if event.is_new or event.is_gone:
            self._leave_out(event.folder, folder, path)
        if is_new:
            if is_private and is_folder and self._alarms:
                self._inside_private.add(path)
            below = self._record_covered_paths(event.folder, {path: is_folder}, {self._prefix + path})
            self._search(below, appeared=True)

    def _relist_if_changed(self, path: str) -> None:
        """List an unwatched folder again if it has changed."""
        known = self._folders.get(path)
        if known is None or known.stamp == self._stamp(path):
            return
        # A watched subfolder may have been replaced; it has no stamp to compare, so forget it.
        for subfolder in known.subfolders - self._unwatched:
            self._forget(subfolder)
        del self._folders[path]
        self._covered.discard(path)
        self._search([path])
        listed = self._folders.get(path)
        for subfolder in known.subfolders - (listed.subfolders if listed else set()):
            self._forget(subfolder)

    def _search(self, folders: list[str], *, appeared: bool = False) -> None:
        """Search folders and everything below them, level by level."""
        while folders:
            listed = {
                folder: found for folder in folders if (found := self._list_and_watch(folder)) is not None
            }
            # There may be thousands of names, and few match a glob: prefilter all of them in one search.
            shown = [self._prefix + path for entries in listed.values() for path in entries]
            likely = self._likely.possible_matches(shown)
            folders = []
            for folder, entries in listed.items():
                below = self._record_covered_paths(folder, entries, likely)
                folders += [path for path in below if path not in self._folders]
                if appeared:
                    self._report_to_alarms(self._folders[folder].private)

    def _record_covered_paths(self, folder: str, entries: dict[str, bool], likely: set[str]) -> list[str]:
        """Record which paths in a folder are covered, and return the subfolders to search.

        `entries` maps each path to whether it is a folder; `likely` has the paths that a glob may match.
        """
        found = self._folders[folder]
        inside_private = folder in self._inside_private
        only_private = folder in self._only_private
        below: list[str] = []
        for path, is_folder in entries.items():
            shown = self._prefix + path
            if inside_private:
                if is_folder:
                    self._inside_private.add(path)
                    below.append(path)
                continue
            if shown in likely and any_covers(self._private_globs, shown):
                found.private.add(path)
                if is_folder and path in self._inside_private:
                    below.append(path)
                continue
            is_read_only = not only_private and shown in likely and any_covers(self._read_only_globs, shown)
            if is_read_only:
                found.read_only.add(path)
            if is_folder and self._is_searched(path):
                if only_private or is_read_only or path.rpartition("/")[2] in DEPENDENCY_FOLDERS:
                    self._only_private.add(path)
                below.append(path)
        found.subfolders.update(below)
        if found.private or found.read_only:
            self._covered.add(folder)
        return below

    def _is_searched(self, path: str) -> bool:
        name = path.rpartition("/")[2]
        if name in DEPENDENCY_FOLDERS:
            return not all(rule.exempts_all_below(self._prefix + path) for rule in self._private_globs)
        return name not in VERSION_CONTROL_FOLDERS

    def _report_to_alarms(self, paths: Iterable[str]) -> None:
        for path in paths:
            for alarm in self._alarms:
                alarm.suspect(self._absolute_path(path))

    def _leave_out(self, above: str, folder: _SearchedFolder, path: str) -> None:
        """Remove a path from a folder's entries; if it was a folder, forget it and everything below."""
        for paths in (folder.private, folder.read_only, folder.subfolders):
            paths.discard(path)
        if not folder.private and not folder.read_only:
            self._covered.discard(above)
        self._forget(path)

    def _forget(self, path: str) -> None:
        """Forget a folder and everything below it."""
        waiting = [path]
        while waiting:
            gone = waiting.pop()
            self._closed.discard(gone)
            known = self._folders.pop(gone, None)
            if known is not None:
                waiting += known.subfolders
                INOTIFY.unwatch(self._queue, gone)
                for folders in (self._covered, self._only_private, self._inside_private, self._unwatched):
                    folders.discard(gone)

    def _list_and_watch(self, path: str) -> dict[str, bool] | None:
        """Return the paths in a folder and whether each is a folder; None if the folder can't be read.

        The watch is added before listing, so that no change in between is missed.
        """
        place = self._absolute_path(path)
        watched = self._can_watch and INOTIFY.watch(self._queue, path, place)
        stamp = None if watched else self._stamp(path)
        try:
            with os.scandir(place) as entries:
                listed = {
                    join_path(path, each.name): each.is_dir(follow_symlinks=False) for each in entries
                }
        except OSError as error:
            INOTIFY.unwatch(self._queue, path)
            if isinstance(error, PermissionError):
                self._closed.add(path)
            return None
        self._folders[path] = _SearchedFolder(stamp)
        if not watched:
            self._unwatched.add(path)
        return listed

    def _stamp(self, path: str) -> tuple[int, int]:
        """Return a folder's inode and ctime, which change when its entries change.

        If it changed recently, the ctime is replaced with a unique value, so that it is listed again.
        """
        found = _lstat(self._absolute_path(path))
        if found is None:
            return (0, 0)
        recent = found.st_ctime_ns > time.time_ns() - _CLOCK_TICK_NS
        return (found.st_ino, -time.monotonic_ns() if recent else found.st_ctime_ns)


def _inode(path: str) -> int:
    try:
        return os.stat(path).st_ino
    except OSError:
        return 0


def _lstat(path: str) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except OSError:
        return None


def _can_be_opened(folder: str) -> bool:
    """Whether a command could access the files in a folder that can't be listed."""
    found = _lstat(folder)
    return found is not None and (found.st_uid == os.geteuid() or os.access(folder, os.X_OK))


def _queue_for(finder: PolicyGlobFinder) -> EventQueue:
    """Return an event queue that updates a finder on each event, through a weak reference to it."""
    reference = weakref.ref(finder)

    def notify() -> None:
        if (alive := reference()) is not None:
            alive.update(thorough=False)

    return EventQueue(notify)


def hidden_private_paths(
    root: str,
    found: Iterable[str],
    private_globs: Sequence[PathGlobs],
    is_open: PathPredicate,
    read_only_globs: Sequence[PathGlobs] = (),
) -> list[str]:
    """Return the private paths that must be hidden; for a folder with some visible files, its other files.

    A path is visible if it is an exception to each rule that covers the folder, or if `is_open` returns
    True. `read_only_globs` are given for a command that writes directly to the workspace: private paths
    that they cover stay hidden from it.
    """
    closed: list[str] = []
    places = tuple(shown_folders(root))

    def shows(path: str) -> bool:
        inside = path_in_folders(path, places) or os.path.relpath(path, root)
        if not is_open(inside) and any_covers(private_globs, inside):
            return False
        return not read_only_globs or not any(
            any_covers(read_only_globs, above) for above in (inside, *parent_folders(inside))
        )

    for path in found:
        facts = _lstat(path)
        if facts is None or not stat.S_ISDIR(facts.st_mode):
            closed += [] if shows(path) else [path]
            continue
        files = list(islice(_files_below(path), MAX_LOOKED_AT + 1))
        shut = [each for each in files if not shows(each)]
        whole = len(shut) == len(files) or len(files) > MAX_LOOKED_AT
        closed += [path] if whole else shut
    return closed


def _files_below(folder: str) -> Iterator[str]:
    for above, _, names in os.walk(folder):
        yield from (os.path.join(above, name) for name in names)


@dataclass(frozen=True, slots=True)
class CoveredPaths:
    """The paths of a workspace that one command must not read or write."""

    hidden: tuple[str, ...]
    read_only: tuple[str, ...]
    alarm: PrivateFileAlarm | None
    """Detects private files created later; None if the command writes directly to the workspace."""


class PolicyPathFinder:
    """Keeps a `PolicyGlobFinder` between commands for each workspace folder and policy."""

    def __init__(self) -> None:
        self._finders: dict[tuple[object, ...], PolicyGlobFinder] = {}
        self._lock = threading.Lock()

    def covered(
        self,
        root: str,
        private_globs: tuple[PathGlobs, ...],
        read_only_globs: tuple[PathGlobs, ...],
        is_open: PathPredicate,
        *,
        writes_apart: bool,
    ) -> CoveredPaths:
        """Return the workspace paths that a command must not read or write.

        With `writes_apart` (an overlay captures the command's writes) there is an alarm for new private
        files. A command that writes directly to the workspace may create such files itself, so it has no
        alarm.
        """
        finders = self._finders_for(root, private_globs, read_only_globs)
        # Register the alarm before the search, so that no file created in between is missed.
        alarm = PrivateFileAlarm(root, private_globs, is_open, finders) if writes_apart else None
        found = [finder.found() for finder in finders]
        names = [path for each in found for path in each.private]
        now = time.time_ns()
        states = {path: file_state(path) for path in names} if alarm is not None else {}
        hidden = hidden_private_paths(
            root, names, private_globs, is_open, () if writes_apart else read_only_globs
        )
        hidden = [*hidden, *(path for each in found for path in each.closed)]
        if alarm is not None:
            masked = frozenset(hidden)
            alarm.shown = {
                path: state if will_show_changes(state, now) else ()
                for path, state in states.items()
                if path not in masked
            }
            for path in (path for path, state in alarm.shown.items() if not state and os.path.isdir(path)):
                for finder in finders:
                    finder.watch_inside(path)
        return CoveredPaths(tuple(hidden), tuple(path for each in found for path in each.read_only), alarm)

    def _finders_for(
        self, root: str, private_globs: tuple[PathGlobs, ...], read_only_globs: tuple[PathGlobs, ...]
    ) -> list[PolicyGlobFinder]:
        """Return one finder for each workspace folder, evicting the least recently used ones."""
        finders: list[PolicyGlobFinder] = []
        with self._lock:
            for name, folder in workspace_folders(root).items() if private_globs or read_only_globs else ():
                key = (name, folder, private_globs, read_only_globs)
                finder = self._finders.pop(key, None)
                finder = finder or PolicyGlobFinder(folder, private_globs, read_only_globs, name=name)
                self._finders[key] = finder  # the most recently used is at the end
                finders.append(finder)
            while len(self._finders) > max(MAX_FINDERS, len(finders)):
                del self._finders[next(iter(self._finders))]
        return finders
