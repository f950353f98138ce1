"""Keep a running job's layer up to date: the job sees other programs' changes and is notified of them.

An overlay caches each name that is looked up: if the file in the lower folder is replaced, the job still
sees the old one and inotify reports nothing. So each change is repeated *through* the overlay, with a
directory fd that the job's process sent out before exec. When the job has ended, our copies are removed
from the layer, so that it contains only the job's own changes. Files that the job wrote are never touched.
"""

import contextlib
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from handtools.host.files.folder_handle import FolderHandle, join_path, open_inner_folder
from handtools.host.files.folder_trees import TreeEntry
from handtools.host.files.syscalls import write_all
from handtools.host.files.temporary_file import is_temporary_name, temporary_name
from handtools.host.files.tree_watch import TreeWatch
from handtools.host.sandbox.overlay.whiteouts import OVERLAY_XATTR_PREFIXES, entry_meaning

MAX_REFRESHED_FILE_BYTES = 32 << 20
"""The maximum size of a file copied for a job; a larger one stays as the job first saw it."""
_PIECE_BYTES = 1 << 20

LayerEntryStamp = tuple[int, int]
"""Identifies an entry of the layer: its inode and ctime."""
_GONE_MARK: LayerEntryStamp = (0, 0)
_FOLDER_MARK: LayerEntryStamp = (-1, -1)


@dataclass(slots=True)
class LayerRefresh:
    """The thread that copies workspace changes into the layer of one running job."""

    lower: str
    upper: str
    since: int
    """When the layer was created, in ns by the file system's clock."""
    wanted: Callable[[str], bool]
    """Returns whether to copy a path into the layer.

    Must be false for a masked path, since replacing it would remove its mask mount.
    """
    handle_socket: socket.socket = field(init=False)
    """The job's end of a socket pair, over which its process sends the mounted overlay's directory fd."""
    seen: dict[str, int] = field(default_factory=dict)
    """The ctimes of the workspace files that were copied for the job, by path."""
    made: dict[str, LayerEntryStamp] = field(default_factory=dict)
    """The entries that we created in the layer, by path."""
    _line: socket.socket = field(init=False)
    _wake: tuple[int, int] = field(init=False)
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self._line, self.handle_socket = socket.socketpair()
        self._wake = os.pipe2(os.O_CLOEXEC)

    def start(self) -> None:
        """Start the thread, which waits for the overlay's directory fd."""
        self._thread = threading.Thread(target=self._run, name="handtools-refresh", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, so that we no longer use the overlay."""
        if self._thread is None:
            return
        self._line.shutdown(socket.SHUT_RDWR)
        os.write(self._wake[1], b"x")
        self._thread.join()
        self._thread = None
        for end in (self._line, self.handle_socket):
            end.close()
        for fd in self._wake:
            os.close(fd)

    def remove_unchanged_copies(self) -> None:
        """Remove our copies from the layer unless the job changed them."""
        with FolderHandle.at(self.upper) as top:
            for path, mark in sorted(self.made.items(), reverse=True):
                above, _, name = path.rpartition("/")
                with contextlib.suppress(OSError), open_inner_folder(top, above) as folder:
                    entry = _layer_entry(folder, name)
                    if entry is None:
                        continue
                    if mark == _FOLDER_MARK and entry.is_folder:
                        _remove_opaque_mark(entry)
                        folder.remove_folder(name)
                    elif mark == _mark_of(entry):
                        folder.unlink(name)

    def _run(self) -> None:
        try:
            _, fds, _, _ = socket.recv_fds(self._line, 1, 1)
        except OSError:
            return
        if not fds:
            return
        watch = TreeWatch(self.lower, self.wanted)
        with FolderHandle(fds[0], self.lower) as view:
            try:
                self._refresh(view, watch.start(self.since))
                for changed in watch.changes(self._wake[0]):
                    self._refresh(view, changed)
            except OSError:
                return  # the tree can't be watched: the job keeps seeing the old versions
            finally:
                watch.close()

    def _refresh(self, view_handle: FolderHandle, paths: set[str]) -> None:
        with FolderHandle.at(self.lower) as lower, FolderHandle.at(self.upper) as upper:
            # Sorted, so that a folder comes before its contents.
            for path in sorted(paths):
                if not is_temporary_name(path.rpartition("/")[2]):
                    with contextlib.suppress(OSError):
                        _PathRefresh(self, view_handle, lower, upper, path).run()


@dataclass(slots=True)
class _PathRefresh:
    """Updates one workspace path in the job's overlay."""

    refresh: LayerRefresh
    view_handle: FolderHandle
    lower_handle: FolderHandle
    upper_handle: FolderHandle
    path: str

    def run(self) -> None:
        above, _, name = self.path.rpartition("/")
        if not self._is_ours(self.path):
            return
        try:
            with open_inner_folder(self.lower_handle, above) as folder:
                found = folder.find(name)
                if found is not None:
                    self._copy_into_overlay(folder, name, found)
                    return
        except (FileNotFoundError, NotADirectoryError):
            pass
        with open_inner_folder(self.view_handle, above) as there:
            self._remove(there, self.path, name)

    def _is_ours(self, path: str) -> bool:
        """Whether the layer has no entry at a path, or only our copy."""
        above, _, name = path.rpartition("/")
        try:
            with open_inner_folder(self.upper_handle, above) as folder:
                entry = _layer_entry(folder, name)
                if entry is None or (entry.is_folder and entry_meaning(entry) == "merged"):
                    return True
                mark = self.refresh.made.get(path)
                return mark == (_FOLDER_MARK if entry.is_folder else _mark_of(entry))
        except FileNotFoundError:
            return True
        except OSError:  # the job replaced a parent folder with a file or a symlink
            return False

    def _copy_into_overlay(self, folder: FolderHandle, name: str, found: os.stat_result) -> None:
        above = self.path.rpartition("/")[0]
        with open_inner_folder(self.view_handle, above) as there:
            if stat.S_ISDIR(found.st_mode):
                if there.find(name) is None:
                    there.create_folder(name)
                    there.set_mode(name, stat.S_IMODE(found.st_mode))
                    _own_like(there, name, found)
                    self.refresh.made[self.path] = _FOLDER_MARK
                return
            temporary = temporary_name()
            try:
                if not _copy_file_or_link(folder, name, found, there, temporary):
                    return
                copy = there.stat(temporary)
                if not self._is_ours(self.path):  # the job wrote it in the meantime
                    there.unlink(temporary)
                    return
                there.replace(temporary, name)
            except BaseException:
                with contextlib.suppress(OSError):
                    there.unlink(temporary)
                raise
        self._record_copy(found, copy)

    def _remove(self, handle: FolderHandle, path: str, name: str) -> None:
        """Remove a path deleted from the workspace, except files that the job wrote itself."""
        found = handle.find(name)
        if not self._is_ours(path):
            return
        if found is None:
            # Lookups already fail, but listings still have the name and no inotify event was sent.
            os.close(handle.create_file(name, 0o600))
            handle.unlink(name)
        elif stat.S_ISDIR(found.st_mode):
            with handle.child(name) as inner:
                for each in inner.names():
                    self._remove(inner, join_path(path, each), each)
            handle.remove_folder(name)
        else:
            handle.unlink(name)
        self.refresh.made[path] = _GONE_MARK

    def _record_copy(self, found: os.stat_result, copy: os.stat_result) -> None:
        """Record the entry we created, unless the job has already changed it: then it is the job's."""
        above, _, name = self.path.rpartition("/")
        self.refresh.made.pop(self.path, None)
        self.refresh.seen[self.path] = found.st_ctime_ns
        with open_inner_folder(self.upper_handle, above) as folder:
            entry = _layer_entry(folder, name)
            if entry is not None and _same_state(entry.found, copy):
                self.refresh.made[self.path] = _mark_of(entry)


def _mark_of(entry: TreeEntry) -> LayerEntryStamp:
    # All whiteouts in a layer are hard links to one file, so its ctime is meaningless.
    if entry_meaning(entry) == "gone":
        return _GONE_MARK
    return entry.found.st_ino, entry.found.st_ctime_ns


def _same_state(one: os.stat_result, other: os.stat_result) -> bool:
    """Whether stat results from the layer and through the overlay show the same mtime, size and mode."""
    return (one.st_mtime_ns, one.st_size, one.st_mode) == (other.st_mtime_ns, other.st_size, other.st_mode)


def _layer_entry(folder: FolderHandle, name: str) -> TreeEntry | None:
    found = folder.find(name)
    return None if found is None else TreeEntry(name, folder, name, found)


def _remove_opaque_mark(entry: TreeEntry) -> None:
    """Remove the opaque mark, which overlayfs sets on a folder that we created over a workspace folder."""
    for prefix in OVERLAY_XATTR_PREFIXES:
        with contextlib.suppress(OSError):
            os.removexattr(entry.proc_fd_path, f"{prefix}opaque", follow_symlinks=False)


def _own_like(folder: FolderHandle, name: str, found: os.stat_result) -> None:
    if os.geteuid() == 0:
        folder.set_owner(name, found)


def _copy_file_or_link(
    folder: FolderHandle, name: str, found: os.stat_result, handle: FolderHandle, temporary: str
) -> bool:
    """Copy a file or a symlink with its mode, owner and times; False for other kinds and large files."""
    if stat.S_ISLNK(found.st_mode):
        handle.create_link(temporary, folder.link_target(name))
        _own_like(handle, temporary, found)
        return True
    if not stat.S_ISREG(found.st_mode) or found.st_size > MAX_REFRESHED_FILE_BYTES:
        return False
    source = folder.open_file(name)
    try:
        target = handle.create_file(temporary, 0o600)
        try:
            for piece in _pieces(source):
                write_all(target, piece)
            if os.geteuid() == 0:
                os.fchown(target, found.st_uid, found.st_gid)
            os.fchmod(target, stat.S_IMODE(found.st_mode) & 0o777)
            os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))
        finally:
            os.close(target)
    finally:
        os.close(source)
    return True


def _pieces(source: int) -> Iterator[bytes]:
    left = MAX_REFRESHED_FILE_BYTES
    while left > 0 and (piece := os.read(source, min(_PIECE_BYTES, left))):
        left -= len(piece)
        yield piece
