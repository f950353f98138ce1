"""The vault: things that were moved out of a workspace, or wait to be moved in, kept as they are.

It lies outside the workspace, on the same file system where there is a place for it: moving is then one rename,
however large the thing is. Elsewhere things are copied, and the copy is complete before anything is removed.
"""

import contextlib
import errno
import os
import re
import secrets
import stat
import tempfile
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from handtools.core.changes import Held
from handtools.core.errors import UsageError
from handtools.host import syscalls
from handtools.host.copying import copy, remove
from handtools.host.folders import Folder
from handtools.host.locks import try_lock, unlock
from handtools.host.marking import content_mark, marked_time, seen_mark

OLD, NEW = "before", "upper"
"""In an item: what was displaced, and what is to come in."""
WORK = "work"
MASKED = "masked"
"""In an item: a layer of empty files, which hides private ones from a command."""
"""In an item: what the kernel needs for a layer."""
LOCK = "lock"
ASIDE = "aside-"
"""Before the name of an item that can't be removed."""
_ITEM = re.compile(r"[0-9a-f]{16}")


@dataclass(slots=True)
class Item:
    """Room for what one command moves; ours as long as its lock is held."""

    name: str
    path: Path
    _lock: int | None

    def release(self) -> None:
        """Leave it to whoever finds it: what the record names stays, the rest is cleared away."""
        if self._lock is not None:
            lock, self._lock = self._lock, None
            unlock(lock)


class Vault:
    """A folder of items."""

    def __init__(self, folder: str | Path) -> None:
        self._folder = Path(folder)
        self._device: int | None = None

    @property
    def folder(self) -> Path:
        """Where it is."""
        return self._folder

    def item(self) -> Item:
        """New room."""
        self._folder.mkdir(0o700, parents=True, exist_ok=True)
        name = secrets.token_hex(8)
        path = self._folder / name
        path.mkdir(0o700)
        return Item(name, path, try_lock(path / LOCK))

    def suits(self, device: int) -> bool:
        """Whether files of a device come here by a rename, and their times to the nanosecond."""
        if self._device is None:
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
            self._device = _precise_device(self._folder)
        return self._device == device

    def has(self, ref: str) -> bool:
        """Whether the thing is here, and not at its path."""
        return os.path.lexists(self._path(ref))

    def size(self, ref: str) -> int | None:
        """The size of a file that is here."""
        found = self._found(ref)
        return found and found.st_size

    def knows(self, held: Held) -> bool:
        """Whether a file that is here is the one that is meant, by a look from outside or else by its bytes.

        One that was saved again before it came here gets its old time back: by that it is known from now on.
        """
        found = self._found(held.ref)
        if found is None or seen_mark(found) == held.mark:
            return True
        if not held.content or found.st_size != held.bytes:
            return False
        with contextlib.suppress(OSError), self._path(held.ref).open("rb") as file:
            if content_mark(file.fileno()) == held.content:
                os.utime(file.fileno(), ns=(found.st_atime_ns, marked_time(held.mark)))
                return True
        return False

    def _found(self, ref: str) -> os.stat_result | None:
        try:
            found = os.lstat(self._path(ref))
        except OSError:
            return None
        return found if stat.S_ISREG(found.st_mode) else None

    def read(self, ref: str, most: int) -> bytes | None:
        """The bytes of a file that is here, unless there are more than so many."""
        size = self.size(ref)
        if size is None or size > most:
            return None
        with contextlib.suppress(OSError):
            return self._path(ref).read_bytes()
        return None

    def take_out(self, ref: str, folder: Folder, name: str) -> None:
        """Move a thing to a new name in a folder of the workspace; across file systems it stays here too."""
        with self._parent(ref) as (shelf, kept):
            if not _move(shelf, kept, folder, name):
                copy(shelf, kept, folder, name)

    def put_in(self, ref: str, folder: Folder, name: str) -> None:
        """Move a thing here from a folder of the workspace; what an interrupted copy left of it gives way."""
        with self._parent(ref, make=True) as (shelf, kept):
            remove(shelf, kept)
            if not _move(folder, name, shelf, kept):
                partial = f".{secrets.token_hex(8)}"
                copy(folder, name, shelf, partial)
                shelf.move_new(partial, kept)
                remove(folder, name)

    def copy_in(self, ref: str, folder: Folder, name: str) -> None:
        """Keep a copy of a thing here."""
        with self._parent(ref, make=True) as (shelf, kept):
            copy(folder, name, shelf, kept)

    def put_back(self, ref: str, folder: Folder, name: str) -> None:
        """Undo `take_out`."""
        if self.has(ref):
            remove(folder, name)
        else:
            self.put_in(ref, folder, name)

    def drop(self, ref: str, *, erase: bool = False) -> None:
        """Let go of a thing; no error when it is not here. With `erase`, a file's bytes are overwritten first."""
        with contextlib.suppress(FileNotFoundError, NotADirectoryError), self._parent(ref) as (shelf, kept):
            if erase:
                _overwrite(self._path(ref))
            remove(shelf, kept)

    def clear(self, name: str) -> None:
        """Remove what is left of a layer, and the item when nothing was displaced either."""
        for part in (NEW, WORK, MASKED):
            self.drop(f"{name}/{part}")
        with contextlib.suppress(OSError):
            if not {*os.listdir(self._folder / name)} - {LOCK}:
                self.drop(name)

    def tidy(self, wanted: Collection[str]) -> list[str]:
        """Remove the items that nobody works on and the record does not name.

        Gives back a sentence for each that can't be removed: it is set aside, and not tried again.
        """
        told = []
        with contextlib.suppress(FileNotFoundError):
            for name in os.listdir(self._folder):
                lock = try_lock(self._folder / name / LOCK) if _ITEM.fullmatch(name) else None
                if lock is None:
                    continue
                try:
                    self.drop(f"{name}/{WORK}" if name in wanted else name)
                except (OSError, RecursionError) as problem:
                    told.append(self._set_aside(name, problem))
                finally:
                    unlock(lock)
        return told

    def _set_aside(self, name: str, problem: Exception) -> str:
        """Keep an item that can't be removed from being tried again at every start."""
        aside = self._folder / f"{ASIDE}{name}"
        with contextlib.suppress(OSError):
            os.rename(self._folder / name, aside)
        return f"What a command left in {aside} can't be removed ({problem}); it is set aside."

    def _path(self, ref: str) -> Path:
        if not ref or not {"", ".", ".."}.isdisjoint(ref.split("/")):
            raise UsageError(f"{ref[:80]!r} is not a name in the vault.")
        return self._folder / ref

    @contextmanager
    def _parent(self, ref: str, *, make: bool = False) -> Iterator[tuple[Folder, str]]:
        """The folder that holds a thing; no link is followed on the way."""
        *above, name = self._path(ref).relative_to(self._folder).parts
        if make:
            self._folder.mkdir(0o700, parents=True, exist_ok=True)
        folder = Folder.at(os.fspath(self._folder))
        try:
            for part in above:
                if make:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(folder.name(part), 0o700, dir_fd=folder.fd)
                inner = folder.child(part)
                folder.close()
                folder = inner
            yield folder, name
        finally:
            folder.close()


def _move(source: Folder, old: str, target: Folder, new: str) -> bool:
    """Rename between folders; False when they are on different file systems."""
    try:
        _rename(source, old, target, new)
    except PermissionError:
        # A folder's own entry for what is above it changes too: it has to be writable for that moment.
        found = source.stat(old)
        if not stat.S_ISDIR(found.st_mode):
            raise
        mode = stat.S_IMODE(found.st_mode)
        source.set_mode(old, mode | 0o700)
        _rename(source, old, target, new)
        target.set_mode(new, mode)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        return False
    return True


def _rename(source: Folder, old: str, target: Folder, new: str) -> None:
    old, new = source.name(old), target.name(new)
    try:
        syscalls.move_new(source.fd, old, new, into=target.fd)
    except syscalls.Unsupported:
        with contextlib.suppress(FileNotFoundError):
            os.stat(new, dir_fd=target.fd, follow_symlinks=False)
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), new) from None
        os.rename(old, new, src_dir_fd=source.fd, dst_dir_fd=target.fd)


def _precise_device(folder: Path) -> int:
    """The device of a folder; -1 where times are not kept to the nanosecond."""
    odd = time.time_ns() | 1
    with tempfile.TemporaryFile(dir=folder) as file:
        if os.utime not in os.supports_fd:
            return -1
        os.utime(file.fileno(), ns=(odd, odd))
        found = os.fstat(file.fileno())
        return found.st_dev if found.st_mtime_ns == odd else -1


def _overwrite(path: Path) -> None:
    """Write over a file that has no other name."""
    with contextlib.suppress(OSError):
        found = os.lstat(path)
        if stat.S_ISREG(found.st_mode) and found.st_nlink == 1:
            with path.open("r+b") as file:
                for start in range(0, found.st_size, 1 << 20):
                    file.write(bytes(min(1 << 20, found.st_size - start)))
                file.flush()
                os.fsync(file.fileno())
