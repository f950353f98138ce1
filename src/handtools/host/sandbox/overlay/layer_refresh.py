"""Keep the layer of a running job up to date: it sees what others change in the workspace, and is notified.

In an overlay a name that was looked up once keeps what it stood for when the file below is replaced, and nothing
is notified. So each change is made once more *through* the overlay, by a handle that the job's process passed out
before it executed. What we put into the layer we take out again when the job has ended: then it holds the job's
own changes and nothing else. What the job itself wrote is never touched. ADR 162.
"""

import contextlib
import os
import socket
import stat
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from handtools.host.files.folder_handle import FolderHandle, join_path, open_inner_folder
from handtools.host.files.temporary_file import is_temporary_name, temporary_name
from handtools.host.files.tree_watch import TreeWatch
from handtools.host.files.whole_reads_and_writes import write_all
from handtools.host.sandbox.overlay.whiteouts import OVERLAY_XATTR_PREFIXES, LayerEntry, entry_meaning

MOST_REFRESHED_FILE_BYTES = 32 << 20
"""How large a file may be that is copied for a job; a larger one stays as it was when the job first looked."""
_PIECE_BYTES = 1 << 20

LayerEntryStamp = tuple[int, int]
"""By which an entry of the layer is known again: its inode and change time."""
_GONE_MARK: LayerEntryStamp = (0, 0)
_FOLDER_MARK: LayerEntryStamp = (-1, -1)


@dataclass(slots=True)
class LayerRefresh:
    """The thread that brings changes of the workspace into the layer of one running job."""

    lower: str
    upper: str
    since: int
    """When the layer was made, in ns by the clock of the file system."""
    wanted: Callable[[str], bool]
    """Whether a path is brought into the layer: one that is covered in the job's view would lose its cover."""
    handle_socket: socket.socket = field(init=False)
    """The job's side of a socket pair, over which its process sends a handle of the mounted overlay."""
    seen: dict[str, int] = field(default_factory=dict)
    """Change times of the workspace's files as the job has got them, by path."""
    made: dict[str, LayerEntryStamp] = field(default_factory=dict)
    """The entries that we made in the layer, by path."""
    _line: socket.socket = field(init=False)
    _wake: tuple[int, int] = field(init=False)
    _thread: threading.Thread | None = None

    def __post_init__(self) -> None:
        self._line, self.handle_socket = socket.socketpair()
        self._wake = os.pipe2(os.O_CLOEXEC)

    def start(self) -> None:
        """Start the thread; it waits for the overlay's handle."""
        self._thread = threading.Thread(target=self._run, name="handtools-refresh", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """End the thread; the overlay is no longer used by us."""
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
        """Remove from the layer what we put there and the job left as it was."""
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
                return  # no watch can be had here: the job sees what it saw first
            finally:
                watch.close()

    def _refresh(self, view: FolderHandle, paths: set[str]) -> None:
        with FolderHandle.at(self.lower) as lower, FolderHandle.at(self.upper) as upper:
            # A folder comes before what is in it.
            for path in sorted(paths):
                if not is_temporary_name(path.rpartition("/")[2]):
                    with contextlib.suppress(OSError):
                        _PathRefresh(self, view, lower, upper, path).run()


@dataclass(slots=True)
class _PathRefresh:
    """One path of the workspace, brought into the job's view."""

    refresh: LayerRefresh
    view: FolderHandle
    lower: FolderHandle
    upper: FolderHandle
    path: str

    def run(self) -> None:
        above, _, name = self.path.rpartition("/")
        if not self._is_ours(self.path):
            return
        try:
            with open_inner_folder(self.lower, above) as folder:
                found = folder.find(name)
                if found is not None:
                    self._bring(folder, name, found)
                    return
        except (FileNotFoundError, NotADirectoryError):
            pass
        with open_inner_folder(self.view, above) as there:
            self._remove(there, self.path, name)

    def _is_ours(self, path: str) -> bool:
        """Whether the layer holds nothing at a path, or only what we put there."""
        above, _, name = path.rpartition("/")
        try:
            with open_inner_folder(self.upper, above) as folder:
                entry = _layer_entry(folder, name)
                if entry is None or (entry.is_folder and entry_meaning(entry) == "merged"):
                    return True
                mark = self.refresh.made.get(path)
                return mark == (_FOLDER_MARK if entry.is_folder else _mark_of(entry))
        except FileNotFoundError:
            return True
        except OSError:  # what is above it is a file or a link of the job's
            return False

    def _bring(self, folder: FolderHandle, name: str, found: os.stat_result) -> None:
        above = self.path.rpartition("/")[0]
        with open_inner_folder(self.view, above) as there:
            if stat.S_ISDIR(found.st_mode):
                if there.find(name) is None:
                    there.create_folder(name)
                    there.set_mode(name, stat.S_IMODE(found.st_mode))
                    _own_like(there, name, found)
                    self.refresh.made[self.path] = _FOLDER_MARK
                return
            temporary = temporary_name()
            try:
                if not _copied(folder, name, found, there, temporary):
                    return
                copy = there.stat(temporary)
                if not self._is_ours(self.path):  # the job was at it meanwhile
                    there.unlink(temporary)
                    return
                there.replace(temporary, name)
            except BaseException:
                with contextlib.suppress(OSError):
                    there.unlink(temporary)
                raise
        self._note(found, copy)

    def _remove(self, there: FolderHandle, path: str, name: str) -> None:
        """Remove what is gone from the workspace, but for what the job itself has there."""
        found = there.find(name)
        if not self._is_ours(path):
            return
        if found is None:
            # It is gone for who looks it up, and not yet for who lists the folder or waits to be notified.
            os.close(there.create_file(name, 0o600))
            there.unlink(name)
        elif stat.S_ISDIR(found.st_mode):
            with there.child(name) as inner:
                for each in inner.names():
                    self._remove(inner, join_path(path, each), each)
            there.remove_folder(name)
        else:
            there.unlink(name)
        self.refresh.made[path] = _GONE_MARK

    def _note(self, found: os.stat_result, copy: os.stat_result) -> None:
        """Remember what we made, unless the job has changed it already: then it is the job's."""
        above, _, name = self.path.rpartition("/")
        self.refresh.made.pop(self.path, None)
        self.refresh.seen[self.path] = found.st_ctime_ns
        with open_inner_folder(self.upper, above) as folder:
            entry = _layer_entry(folder, name)
            if entry is not None and _same_state(entry.found, copy):
                self.refresh.made[self.path] = _mark_of(entry)


def _mark_of(entry: LayerEntry) -> LayerEntryStamp:
    # All removals in a layer are links to one file, whose change time says nothing.
    if entry_meaning(entry) == "gone":
        return _GONE_MARK
    return entry.found.st_ino, entry.found.st_ctime_ns


def _same_state(one: os.stat_result, other: os.stat_result) -> bool:
    """Whether two looks at a file, in the layer and through it, show the same contents and mode."""
    return (one.st_mtime_ns, one.st_size, one.st_mode) == (other.st_mtime_ns, other.st_size, other.st_mode)


def _layer_entry(folder: FolderHandle, name: str) -> LayerEntry | None:
    found = folder.find(name)
    assert folder.fd is not None, "layers are there where handles are"
    return None if found is None else LayerEntry(folder.fd, name, found)


def _remove_opaque_mark(entry: LayerEntry) -> None:
    """A folder that was made over one of the workspace is marked as if it replaced it; it does not."""
    for prefix in OVERLAY_XATTR_PREFIXES:
        with contextlib.suppress(OSError):
            os.removexattr(entry.proc_fd_path, f"{prefix}opaque", follow_symlinks=False)


def _own_like(folder: FolderHandle, name: str, found: os.stat_result) -> None:
    if os.geteuid() == 0:
        folder.set_owner(name, found)


def _copied(
    folder: FolderHandle, name: str, found: os.stat_result, there: FolderHandle, temporary: str
) -> bool:
    """Copy a file or a link with its mode, owner and times; False for what is not copied."""
    if stat.S_ISLNK(found.st_mode):
        there.create_link(temporary, folder.link_target(name))
        _own_like(there, temporary, found)
        return True
    if not stat.S_ISREG(found.st_mode) or found.st_size > MOST_REFRESHED_FILE_BYTES:
        return False
    source = folder.open_file(name)
    try:
        target = there.create_file(temporary, 0o600)
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
    left = MOST_REFRESHED_FILE_BYTES
    while left > 0 and (piece := os.read(source, min(_PIECE_BYTES, left))):
        left -= len(piece)
        yield piece
