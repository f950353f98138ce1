"""Watch a folder tree for changes by anybody, with inotify: which paths to look at again."""

import contextlib
import ctypes
import errno
import os
import select
import stat
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from handtools.host.files.folder_handle import FolderHandle, join_path, open_inner_folder

MOST_WATCHED_FOLDERS = 20_000
"""How many folders one tree watch covers; what lies in further ones is not noticed."""
CHANGE_GATHER_SECONDS = 0.02
"""How long events are gathered after the first one, so that a save in several steps is one change."""
_CLOSE_WRITE, _ATTRIB, _MOVED, _CREATE, _DELETE = 0x8, 0x4, 0xC0, 0x100, 0x200
_EVENTS = _CLOSE_WRITE | _ATTRIB | _MOVED | _CREATE | _DELETE
_ONLY_FOLDERS, _NO_FOLLOW = 0x01000000, 0x02000000
_IS_FOLDER, _OVERFLOW, _GONE = 0x40000000, 0x4000, 0x8000
_EVENT = struct.Struct("iIII")
_READ_BYTES = 1 << 16
_LIBC = ctypes.CDLL(None, use_errno=True)


@dataclass(slots=True)
class TreeWatch:
    """Inotify watches on a folder and on all below it that are wanted."""

    root: str
    wanted: Callable[[str], bool] = lambda _: True
    """Whether a path is of interest; a folder that is not is passed by with all below it."""
    complete: bool = True
    """Whether every folder is watched: there may be more than the limit or the system allows."""
    _fd: int = -1
    _paths: dict[int, str] = field(default_factory=dict)

    def start(self, since: int) -> set[str]:
        """Watch the tree; the paths in it that have changed since a time, in ns by the file system's clock."""
        self._fd = _LIBC.inotify_init1(os.O_CLOEXEC | os.O_NONBLOCK)
        if self._fd < 0:
            raise OSError(ctypes.get_errno(), "inotify can't be used")
        return set(self._added("", since))

    def close(self) -> None:
        """Remove all watches."""
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1

    def changes(self, wake: int) -> Iterator[set[str]]:
        """Wait for changes again and again and yield the paths, until `wake` is readable."""
        waiting = select.poll()
        waiting.register(self._fd, select.POLLIN)
        waiting.register(wake, select.POLLIN)
        while wake not in (ready := {fd for fd, _ in waiting.poll()}):
            if self._fd not in ready:
                continue
            changed = self._read()
            while select.select([self._fd], [], [], CHANGE_GATHER_SECONDS)[0]:
                changed |= self._read()
            yield changed

    def _read(self) -> set[str]:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except BlockingIOError:
            return set()
        changed: set[str] = set()
        at = 0
        while at < len(data):
            watch, mask, _, size = _EVENT.unpack_from(data, at)
            name = os.fsdecode(data[at + _EVENT.size : at + _EVENT.size + size].rstrip(b"\0"))
            at += _EVENT.size + size
            if mask & _OVERFLOW:
                changed |= set(self._added("", 0))
            elif mask & _GONE:
                self._paths.pop(watch, None)
            elif watch in self._paths and name:
                changed |= self._event(join_path(self._paths[watch], name), mask)
        return changed

    def _event(self, path: str, mask: int) -> set[str]:
        if not self.wanted(path):
            return set()
        if mask & _IS_FOLDER and mask & (_CREATE | _MOVED):
            return {path, *self._added(path, 0)}
        return {path}

    def _added(self, top: str, since: int) -> Iterator[str]:
        """Watch a folder and all below it; yields the paths in it that changed later than `since`."""
        waiting = [top]
        while waiting:
            above = waiting.pop()
            if not self._watch(above):
                continue
            for path, found in self._listed(above):
                folder, changed = stat.S_ISDIR(found.st_mode), found.st_ctime_ns > since
                if (folder or changed) and self.wanted(path):
                    waiting += [path] if folder else []
                    if changed:
                        yield path

    def _listed(self, above: str) -> list[tuple[str, os.stat_result]]:
        """The entries of a folder; none of one that is gone or closed."""
        with (
            contextlib.suppress(OSError),
            FolderHandle.at(self.root) as root,
            open_inner_folder(root, above) as folder,
        ):
            paths = ((join_path(above, name), folder.find(name)) for name in folder.names())
            return [(path, found) for path, found in paths if found is not None]
        return []

    def _watch(self, path: str) -> bool:
        if len(self._paths) >= MOST_WATCHED_FOLDERS:
            self.complete = False
            return False
        place = os.fsencode(os.path.join(self.root, path))
        watch = _LIBC.inotify_add_watch(self._fd, place, _EVENTS | _ONLY_FOLDERS | _NO_FOLLOW)
        if watch < 0:
            self.complete = self.complete and ctypes.get_errno() != errno.ENOSPC
            return False
        self._paths[watch] = path
        return True
