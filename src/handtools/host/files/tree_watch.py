"""Watch folders for changes by any process, with one inotify instance for the whole process.

Linux allows 128 inotify instances per user by default, and one process can serve hundreds of workspaces, so
all workspaces share one instance.
"""

import contextlib
import ctypes
import functools
import os
import select
import stat
import struct
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from handtools.host.files.folder_handle import FolderHandle, join_path, open_inner_folder

MAX_WATCHED_FOLDERS = 100_000
"""The most folders watched in one tree; the system may allow fewer."""
CHANGE_GATHER_SECONDS = 0.02
"""How long to collect events after the first one, so that a save in several steps is one change."""
_CLOSE_WRITE, _ATTRIB, _MOVED_FROM, _MOVED_TO, _CREATE, _DELETE = 0x8, 0x4, 0x40, 0x80, 0x100, 0x200
_EVENTS = _CLOSE_WRITE | _ATTRIB | _MOVED_FROM | _MOVED_TO | _CREATE | _DELETE
_ONLY_FOLDERS, _NO_FOLLOW = 0x01000000, 0x02000000
_IS_FOLDER, _OVERFLOW, _WATCH_REMOVED = 0x40000000, 0x4000, 0x8000
_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 16
_PAUSE_SECONDS = 0.001
"""Pause after reading events, during which further events for the same name are coalesced."""


@dataclass(frozen=True, slots=True)
class FolderEvent:
    """A change to one name in a watched folder."""

    folder: str
    name: str
    mask: int

    @property
    def path(self) -> str:
        """The path relative to the watched tree."""
        return join_path(self.folder, self.name)

    @property
    def is_lost(self) -> bool:
        """Whether the kernel's event queue overflowed, so that events were lost."""
        return bool(self.mask & _OVERFLOW)

    @property
    def is_folder(self) -> bool:
        """Whether the name refers to a folder."""
        return bool(self.mask & _IS_FOLDER)

    @property
    def is_new(self) -> bool:
        """Whether the name was created or moved here."""
        return bool(self.mask & (_CREATE | _MOVED_TO))

    @property
    def is_gone(self) -> bool:
        """Whether the name was deleted or moved away."""
        return bool(self.mask & (_DELETE | _MOVED_FROM))

    @property
    def has_content(self) -> bool:
        """Whether there is new content to read: the file is new or was written."""
        return bool(self.mask & (_CREATE | _MOVED_TO | _CLOSE_WRITE))


class EventQueue:
    """The events of the folders watched for one tree; `notify` is called after events were added.

    Events for the same name are merged, so that a program that renames continuously can't keep us busy.
    """

    def __init__(self, notify: Callable[[], None]) -> None:
        self._masks: dict[tuple[str, str], int] = {}
        """The event bits by folder and name, ordered by the time of the last event."""
        self._lock = threading.Lock()
        self.notify = notify

    def add(self, folder: str, name: str, mask: int) -> None:
        with self._lock:
            self._masks[folder, name] = self._masks.pop((folder, name), 0) | mask

    def take(self) -> list[FolderEvent]:
        """Remove and return all queued events."""
        with self._lock:
            masks, self._masks = self._masks, {}
        return [FolderEvent(folder, name, mask) for (folder, name), mask in masks.items()]


class _Inotify:
    """The inotify instance of this process, and the thread that reads from it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._fd = -1
        self._paths: dict[int, dict[EventQueue, str]] = {}
        """For each watch, the queues that receive its events, each with the folder's path in that tree."""
        self._watches: dict[EventQueue, dict[str, int]] = {}
        self._abandoned: deque[EventQueue] = deque()

    def watch(self, queue: EventQueue, path: str, place: str) -> bool:
        """Watch the folder at `place`, reported as `path` in events; False if the system refuses."""
        with self._lock:
            watches = self._watches.setdefault(queue, {})
            if (self._fd < 0 and not self._open_and_start_thread()) or len(watches) >= MAX_WATCHED_FOLDERS:
                return False
            flags = _EVENTS | _ONLY_FOLDERS | _NO_FOLLOW
            watch = _libc().inotify_add_watch(self._fd, os.fsencode(place), flags)
            if watch < 0:
                return False
            # inotify returns the same watch for a folder that was moved; record its new path.
            self._paths.setdefault(watch, {})[queue] = path
            watches[path] = watch
            return True

    def unwatch(self, queue: EventQueue, path: str) -> None:
        """Stop watching a folder for one queue, if it is watched under this path."""
        with self._lock:
            watch = self._watches.get(queue, {}).pop(path, None)
            if watch is not None:
                self._remove_watch_of_queue(queue, path, watch)

    def unwatch_all(self, queue: EventQueue) -> None:
        """Stop watching all folders of a queue.

        The garbage collector may call this at any time, so the watches are removed by the next `drain`.
        """
        self._abandoned.append(queue)

    def serves(self, queue: EventQueue) -> bool:
        """Whether a queue receives events; false for a queue created before a fork."""
        return queue in self._watches

    def drain(self) -> None:
        """Deliver all events that the kernel has queued so far."""
        with self._lock:
            while self._abandoned:
                queue = self._abandoned.popleft()
                for path, watch in self._watches.pop(queue, {}).items():
                    self._remove_watch_of_queue(queue, path, watch)
            told = set(self._distribute_events())
        for queue in told:
            queue.notify()

    def _forget_after_fork(self) -> None:
        """Drop the inherited instance in a forked child; it belongs to the parent process."""
        if self._fd >= 0:
            os.close(self._fd)
        self.__init__()  # type: ignore[misc]

    def _open_and_start_thread(self) -> bool:
        library = _libc()
        if hasattr(library, "inotify_init1"):
            self._fd = library.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._fd < 0:
            return False
        os.register_at_fork(after_in_child=self._forget_after_fork)
        thread = threading.Thread(
            target=self._drain_in_loop, args=(self._fd,), name="handtools-watch", daemon=True
        )
        thread.start()
        return True

    def _drain_in_loop(self, fd: int) -> None:
        waiting = select.poll()
        waiting.register(fd, select.POLLIN)
        while waiting.poll():
            self.drain()
            time.sleep(_PAUSE_SECONDS)

    def _remove_watch_of_queue(self, queue: EventQueue, path: str, watch: int) -> None:
        queues = self._paths.get(watch, {})
        if queues.get(queue) == path:
            del queues[queue]
            if not queues:
                self._paths.pop(watch, None)
                _libc().inotify_rm_watch(self._fd, watch)

    def _distribute_events(self) -> Iterator[EventQueue]:
        """Distribute all events that the kernel has queued so far; yields each queue that received some."""
        # Read only the events queued now. Reading until none are left might never end, because a program
        # that renames continuously adds events faster than we read.
        left = _queued_bytes(self._fd) if self._fd >= 0 else 0
        while left > 0:
            try:
                data = os.read(self._fd, _READ_BYTES)
            except BlockingIOError:
                return
            left -= len(data)
            at = 0
            while at < len(data):
                watch, mask, _, size = _EVENT.unpack_from(data, at)
                name = os.fsdecode(data[at + _EVENT.size : at + _EVENT.size + size].rstrip(b"\0"))
                at += _EVENT.size + size
                if mask & _OVERFLOW:
                    for queue in self._watches:
                        queue.add("", "", mask)
                    yield from self._watches
                elif mask & _WATCH_REMOVED:
                    for queue, path in self._paths.pop(watch, {}).items():
                        if self._watches.get(queue, {}).get(path) == watch:
                            del self._watches[queue][path]
                elif name:
                    for queue, path in self._paths.get(watch, {}).items():
                        queue.add(path, name, mask)
                        yield queue


INOTIFY = _Inotify()


class TreeWatch:
    """Reports changed paths in a tree, filtered by `wanted`."""

    def __init__(self, root: str, wanted: Callable[[str], bool] = lambda _: True) -> None:
        """`wanted` returns whether a path is of interest; unwanted folders are skipped entirely."""
        self._root = root
        self._wanted = wanted
        self._ready = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        self._queue = EventQueue(self._signal_ready)
        self._closing = threading.Lock()
        self._closed = False

    def start(self, since: int) -> set[str]:
        """Start watching; returns paths changed after `since`, a time in ns by the file system's clock."""
        return set(self._watch_and_yield_changed("", since))

    def close(self) -> None:
        INOTIFY.unwatch_all(self._queue)
        with self._closing:
            self._closed = True
            os.close(self._ready)

    def _signal_ready(self) -> None:
        with self._closing:
            if not self._closed:
                os.eventfd_write(self._ready, 1)

    def changes(self, wake: int) -> Iterator[set[str]]:
        """Yield sets of changed paths as changes occur, until the descriptor `wake` is readable."""
        waiting = select.poll()
        waiting.register(self._ready, select.POLLIN)
        waiting.register(wake, select.POLLIN)
        while wake not in {fd for fd, _ in waiting.poll()}:
            changed: set[str] = set()
            while select.select([self._ready], [], [], CHANGE_GATHER_SECONDS)[0]:
                os.eventfd_read(self._ready)
                for event in self._queue.take():
                    changed |= self._changed_paths(event)
            yield changed

    def _changed_paths(self, event: FolderEvent) -> set[str]:
        if event.is_lost:
            return set(self._watch_and_yield_changed("", 0))
        if not self._wanted(event.path):
            return set()
        if event.is_folder and event.is_new:
            return {event.path, *self._watch_and_yield_changed(event.path, 0)}
        return {event.path}

    def _watch_and_yield_changed(self, top: str, since: int) -> Iterator[str]:
        """Watch a folder and everything below it; yields paths in it that changed after `since`."""
        waiting = [top]
        while waiting:
            above = waiting.pop()
            if not INOTIFY.watch(self._queue, above, os.path.join(self._root, above)):
                continue
            for path, found in self._entries_of_folder(above):
                folder, changed = stat.S_ISDIR(found.st_mode), found.st_ctime_ns > since
                if (folder or changed) and self._wanted(path):
                    waiting += [path] if folder else []
                    if changed:
                        yield path

    def _entries_of_folder(self, above: str) -> list[tuple[str, os.stat_result]]:
        """Return the entries of a folder; none if it was deleted or can't be opened."""
        with (
            contextlib.suppress(OSError),
            FolderHandle.at(self._root) as root,
            open_inner_folder(root, above) as folder,
        ):
            paths = ((join_path(above, name), folder.find(name)) for name in folder.names())
            return [(path, found) for path, found in paths if found is not None]
        return []


def _queued_bytes(fd: int) -> int:
    import fcntl
    import termios

    return int.from_bytes(fcntl.ioctl(fd, termios.FIONREAD, bytes(4)), sys.byteorder)


@functools.cache
def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None)
