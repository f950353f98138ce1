"""The private and the read-only paths of a workspace, known at any moment.

A mount needs a path, and a policy speaks in globs. So the tree is searched once, and from then on each folder in
it is watched. A folder that can't be watched is compared by inode and change time whenever somebody asks. No
command starts on an unfinished search. ADR 200.

A private file that appears while a command runs is visible to that command: the kernel lets nobody cover a name
ahead that does not exist yet. `PrivateFileAlarm` notices it, and then the command is ended and nothing that it
printed or changed is passed on.
"""

import os
import stat
import threading
import time
import weakref
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePath

from handtools.core.changes import parent_folders
from handtools.core.commands import PathPredicate
from handtools.host.files.folder_handle import join_path
from handtools.host.files.syscalls import is_local_filesystem
from handtools.host.files.tree_watch import INOTIFY, EventQueue, FolderEvent
from handtools.host.workspace_folders import path_in_folders, shown_folders, workspace_folders
from handtools.text.search.glob import GlobPrefilter, PathGlobs, any_covers

DEPENDENCY_FOLDERS = frozenset(
    {"node_modules", "site-packages", "dist-packages", ".tox", ".nox", "__pycache__"}
)
"""Folders with other people's files. They are searched only if a rule makes no exception of them."""
VERSION_CONTROL_FOLDERS = frozenset({".git", ".hg", ".jj", ".bzr"})
UNSEARCHED_FOLDERS = DEPENDENCY_FOLDERS | VERSION_CONTROL_FOLDERS
MAX_FINDERS = 8
"""How many combinations of a folder and a policy are kept up to date for one workspace."""
EXPLANATION_SECONDS = 1.0
"""How long a new private file may take to turn out harmless: made by a call, or tracked by git."""
MAX_LOOKED_AT = 200
"""How many files of a private folder are looked at one by one; a larger folder is hidden whole."""
_RETRY_SECONDS = 0.02
_CLOCK_TICK_NS = 50_000_000
"""A folder that changed less than this before it was listed may change again without getting another time."""


@dataclass(frozen=True, slots=True)
class PolicyPaths:
    """The private and the read-only paths found in a workspace, as absolute paths."""

    private: tuple[str, ...]
    read_only: tuple[str, ...]
    closed: tuple[str, ...] = ()
    """Folders that we can't list but a command could open: nobody has judged the names in them."""


class PrivateFileAlarm:
    """Notices private files that appear, or are written, in the view of one running command."""

    def __init__(
        self,
        root: str,
        private: Sequence[PathGlobs],
        is_open: PathPredicate,
        finders: "Sequence[PolicyGlobFinder]",
    ) -> None:
        """`is_open` says whether a private path, relative to the workspace, may be seen all the same."""
        self._root = root
        self._private = private
        self._is_open = is_open
        self._finders = finders
        self._suspects: dict[str, float] = {}
        """Paths that may have been read, each with the time by which it must turn out harmless."""
        self._hidden: frozenset[str] = frozenset()
        self.shown: Sequence[str] = ()
        """Paths with private names that the command may see, as they were when it began."""
        self._lost_events = False
        self.fd = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        """Readable when something new is suspected."""
        self._close_fd = weakref.finalize(self, os.close, self.fd)
        for finder in finders:
            finder.add_alarm(self)

    def close(self) -> None:
        """Stop noticing anything."""
        for finder in self._finders:
            finder.remove_alarm(self)
        self._close_fd()

    def set_hidden(self, masks: Iterable[str]) -> None:
        """Set which paths are masked in the command's view: nothing that appears there or below is seen."""
        self._hidden = frozenset(masks)
        self._suspects = {path: until for path, until in self._suspects.items() if not self._covers(path)}

    def lose_masks(self, folder: str) -> None:
        """Note that a folder is another one now: masks in it belong to the one that was there."""
        self._hidden = frozenset(
            path for path in self._hidden if path != folder and not path.startswith(f"{folder}/")
        )

    def suspect(self, path: str) -> None:
        """Note a private path that appeared, or was written."""
        if not self._covers(path):
            self._suspects[path] = time.monotonic() + EXPLANATION_SECONDS
            os.eventfd_write(self.fd, 1)

    def suspect_everything(self) -> None:
        """Note that events were lost: a private path may have been among them."""
        self._lost_events = True
        os.eventfd_write(self.fd, 1)

    def exposed_paths(self, *, thorough: bool = False) -> list[str]:
        """The private paths that the command could read, relative to the workspace.

        It waits a moment for those that turn out harmless. If too much changed at once to tell, `**` is one. What
        appeared in folders that can't be watched is found only by a thorough look, and only while it is there.
        """
        INOTIFY.drain()
        for finder in self._finders:
            finder.update(thorough=thorough)
        if thorough:
            # A program that holds its file open may have written to it without an event.
            self._suspects.update((path, 0.0) for path in self.shown if os.path.lexists(path))
        while True:
            suspects = dict(self._suspects)
            if not suspects and not self._lost_events:
                return []
            closed = hidden_private_paths(self._root, suspects, self._private, self._is_open)
            readable = [path for path in closed if not self._covers(path)]
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

    def _covers(self, path: str) -> bool:
        return any(place in self._hidden for place in (path, *map(str, PurePath(path).parents)))


@dataclass(slots=True)
class _SearchedFolder:
    """What is known of one folder of the tree."""

    stamp: tuple[int, int] | None
    """Inode and change time in ns, if the folder is not watched; None if it is."""
    subfolders: set[str] = field(default_factory=set)
    private: set[str] = field(default_factory=set)
    read_only: set[str] = field(default_factory=set)


class PolicyGlobFinder:
    """The paths in one folder of a workspace that the policy's globs cover, always up to date."""

    def __init__(
        self, root: str, private: Sequence[PathGlobs], read_only: Sequence[PathGlobs], *, name: str = ""
    ) -> None:
        """`name` is that of the folder `root`, if the workspace has several."""
        self._root = root
        self._prefix = f"{name}/" if name else ""
        self._private = private
        self._read_only = read_only
        rules = (*private, *read_only)
        self._likely = GlobPrefilter(glob for rule in rules for glob in rule.globs or ("**",))
        self._folders: dict[str, _SearchedFolder] = {}
        self._covered: set[str] = set()
        """Folders that hold something private or read-only."""
        self._only_private: set[str] = set()
        """Folders in which only private paths are of interest: read-only ones, and those below."""
        self._inside_private: set[str] = set()
        """Private folders that commands see a part of: all in them is private, and watched."""
        self._unwatched: set[str] = set()
        self._closed: set[str] = set()
        """Folders that can't be listed; each is tried again before the next command."""
        self._can_watch = is_local_filesystem(root)
        self._inode = 0
        self._lock = threading.Lock()
        self._alarms: weakref.WeakSet[PrivateFileAlarm] = weakref.WeakSet()
        self._queue = _queue_for(self)
        weakref.finalize(self, INOTIFY.unwatch_all, self._queue)

    def found(self) -> PolicyPaths:
        """The covered paths now."""
        if self._prefix and any_covers(self._private, self._prefix.rstrip("/")):
            return PolicyPaths((self._root,), ())
        INOTIFY.drain()
        with self._lock:
            self._update(thorough=True)
            closed, self._closed = self._closed, set()
            self._search(sorted(closed))
            covered = [self._folders[folder] for folder in self._covered]
            return PolicyPaths(
                tuple(sorted(self._place(path) for each in covered for path in each.private)),
                tuple(sorted(self._place(path) for each in covered for path in each.read_only)),
                tuple(sorted(filter(_can_be_opened, map(self._place, self._closed)))),
            )

    def add_alarm(self, alarm: PrivateFileAlarm) -> None:
        """Tell an alarm of private paths that appear from now on."""
        with self._lock:
            self._alarms.add(alarm)

    def remove_alarm(self, alarm: PrivateFileAlarm) -> None:
        """Tell an alarm nothing any more."""
        with self._lock:
            self._alarms.discard(alarm)

    def update(self, *, thorough: bool) -> None:
        """Take in what changed since the last time, so that alarms are told of it."""
        with self._lock:
            if self._folders:
                self._update(thorough=thorough)

    def watch_inside(self, path: str) -> None:
        """Watch a private folder, of which commands see a part: new files in it are private."""
        inside = os.path.relpath(path, self._root)
        with self._lock:
            if not inside.startswith("..") and inside not in self._inside_private:
                self._inside_private.add(inside)
                self._search([inside])

    def _place(self, path: str) -> str:
        return os.path.join(self._root, path)

    def _update(self, *, thorough: bool) -> None:
        if not self._folders or not INOTIFY.serves(self._queue) or self._inode != _inode(self._root):
            self._search_all()
        for event in self._queue.take():
            self._take_in(event)
        if thorough and self._unwatched:
            before = self._all_private()
            for folder in list(self._unwatched):
                self._compare(folder)
            self._suspect(self._all_private() - before)

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
            # Several things in turn had this name: only what is there now counts.
            found = _lstat(self._place(path))
            is_new, is_folder = found is not None, found is not None and stat.S_ISDIR(found.st_mode)
        if event.is_folder and event.is_new:
            for alarm in self._alarms:
                alarm.lose_masks(self._place(path))
        is_private = event.has_content and any_covers(self._private, self._prefix + path)
        if is_private:
            self._suspect([path])
        if event.is_new or event.is_gone:
            self._leave_out(event.folder, folder, path)
        if is_new:
            if is_private and is_folder and self._alarms:
                self._inside_private.add(path)
            below = self._judge(event.folder, {path: is_folder}, {self._prefix + path})
            self._search(below, appeared=True)

    def _compare(self, path: str) -> None:
        """List a folder again that is not watched, if it has changed."""
        known = self._folders.get(path)
        if known is None or known.stamp == self._stamp(path):
            return
        # Another folder may have taken the place of one that is watched: that one can't be compared.
        for subfolder in known.subfolders - self._unwatched:
            self._forget(subfolder)
        del self._folders[path]
        self._covered.discard(path)
        self._search([path])
        listed = self._folders.get(path)
        for subfolder in known.subfolders - (listed.subfolders if listed else set()):
            self._forget(subfolder)

    def _search(self, folders: list[str], *, appeared: bool = False) -> None:
        """Search folders and all below them, one level after another."""
        while folders:
            listed = {folder: found for folder in folders if (found := self._listed(folder)) is not None}
            # Of thousands of names hardly one is like a glob: one search through all of them finds that out.
            shown = [self._prefix + path for entries in listed.values() for path in entries]
            likely = self._likely.possible_matches(shown)
            folders = []
            for folder, entries in listed.items():
                below = self._judge(folder, entries, likely)
                folders += [path for path in below if path not in self._folders]
                if appeared:
                    self._suspect(self._folders[folder].private)

    def _judge(self, folder: str, entries: dict[str, bool], likely: set[str]) -> list[str]:
        """Record which paths in a folder are covered; gives the subfolders that are to be searched.

        `entries` says of each path whether it is a folder, and `likely` are the paths that a glob may match.
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
            if shown in likely and any_covers(self._private, shown):
                found.private.add(path)
                if is_folder and path in self._inside_private:
                    below.append(path)
                continue
            is_read_only = not only_private and shown in likely and any_covers(self._read_only, shown)
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
            return not all(rule.exempts_all_below(self._prefix + path) for rule in self._private)
        return name not in VERSION_CONTROL_FOLDERS

    def _suspect(self, paths: Iterable[str]) -> None:
        for path in paths:
            for alarm in self._alarms:
                alarm.suspect(self._place(path))

    def _leave_out(self, above: str, folder: _SearchedFolder, path: str) -> None:
        """Leave a path out of a folder, and the folder that was there with all below it."""
        for paths in (folder.private, folder.read_only, folder.subfolders):
            paths.discard(path)
        if not folder.private and not folder.read_only:
            self._covered.discard(above)
        self._forget(path)

    def _forget(self, path: str) -> None:
        """Forget a folder and all below it."""
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

    def _listed(self, path: str) -> dict[str, bool] | None:
        """The paths in a folder, and of each whether it is a folder itself; None if the folder can't be read.

        It is watched from before it is listed, so that nothing falls between.
        """
        place = self._place(path)
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
        """What is known to change with the names in a folder; unlike any other if that can't be relied on."""
        found = _lstat(self._place(path))
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
    """Whether a command of ours can get at the names in a folder that can't be listed."""
    found = _lstat(folder)
    return found is not None and (found.st_uid == os.geteuid() or os.access(folder, os.X_OK))


def _queue_for(finder: PolicyGlobFinder) -> EventQueue:
    """A queue whose events a finder takes in at once; it does not keep the finder alive."""
    reference = weakref.ref(finder)

    def notify() -> None:
        if (alive := reference()) is not None:
            alive.update(thorough=False)

    return EventQueue(notify)


def hidden_private_paths(
    root: str,
    found: Iterable[str],
    private: Sequence[PathGlobs],
    is_open: PathPredicate,
    read_only: Sequence[PathGlobs] = (),
) -> list[str]:
    """The private paths found, without those that may be seen; of a folder with some of them, its other files.

    A path may be seen if it is an exception to each rule that covers the folder, or if `is_open` says so. One that
    must not be written either stays hidden from a command that writes to the workspace itself: then `read_only` is
    given.
    """
    closed: list[str] = []
    places = tuple(shown_folders(root))

    def shows(path: str) -> bool:
        inside = path_in_folders(path, places) or os.path.relpath(path, root)
        if any_covers(private, inside) and not is_open(inside):
            return False
        return not any(any_covers(read_only, above) for above in (inside, *parent_folders(inside)))

    for path in found:
        if not os.path.isdir(path) or os.path.islink(path):
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
    """Notices private files that appear later; None if the command writes to the workspace itself."""


class PolicyPathFinder:
    """Keeps a `PolicyGlobFinder` for each folder of a workspace and each policy, from command to command."""

    def __init__(self) -> None:
        self._finders: dict[tuple[object, ...], PolicyGlobFinder] = {}
        self._lock = threading.Lock()

    def covered(
        self,
        root: str,
        private: tuple[PathGlobs, ...],
        read_only: tuple[PathGlobs, ...],
        is_open: PathPredicate,
        *,
        writes_apart: bool,
    ) -> CoveredPaths:
        """The paths of a workspace that a command must not read or write.

        If a layer keeps its writes apart, there is an alarm for private files that appear. One that writes to the
        workspace itself may make such files, so there is none.
        """
        finders = self._finders_for(root, private, read_only)
        # From before the search, so that nothing appears between the two.
        alarm = PrivateFileAlarm(root, private, is_open, finders) if writes_apart else None
        found = [finder.found() for finder in finders]
        names = [path for each in found for path in each.private]
        hidden = hidden_private_paths(root, names, private, is_open, () if writes_apart else read_only)
        hidden = [*hidden, *(path for each in found for path in each.closed)]
        if alarm is not None:
            alarm.shown = [path for path in names if path not in hidden]
            for path in filter(os.path.isdir, alarm.shown):
                for finder in finders:
                    finder.watch_inside(path)
        return CoveredPaths(tuple(hidden), tuple(path for each in found for path in each.read_only), alarm)

    def _finders_for(
        self, root: str, private: tuple[PathGlobs, ...], read_only: tuple[PathGlobs, ...]
    ) -> list[PolicyGlobFinder]:
        """One finder for each folder of a workspace."""
        finders: list[PolicyGlobFinder] = []
        with self._lock:
            for name, folder in workspace_folders(root).items() if private or read_only else ():
                key = (name, folder, private, read_only)
                finder = self._finders.pop(key, None)
                finder = finder or PolicyGlobFinder(folder, private, read_only, name=name)
                self._finders[key] = finder  # the one that was used last is at the end
                finders.append(finder)
            while len(self._finders) > max(MAX_FINDERS, len(finders)):
                del self._finders[next(iter(self._finders))]
        return finders
