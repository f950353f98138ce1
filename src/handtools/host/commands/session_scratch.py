"""Scratch of a session: its `$HOME` and `/tmp`, and package caches that the sessions of a workspace share.

They are in the state folder and persist between commands. Confined commands write there, so the content is
untrusted: our own process never reads or runs any of it, counts and deletes it through directory fds that
don't follow symlinks, and never mounts at a name that a command could have replaced.
"""

import contextlib
import dataclasses
import hashlib
import json
import os
import secrets
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from handtools.host.files.folder_handle import FolderHandle, open_inner_folder
from handtools.host.files.folder_trees import empty_hostile_folder, walk_tree
from handtools.host.files.git_repository import worktree_git_folder
from handtools.host.sandbox.launch import Launch, SessionFolders
from handtools.host.sandbox.runners.bubblewrap_args import HOME_TOOLCHAINS, name_below_tmp
from handtools.host.sandbox.runners.command_user import workspace_owner
from handtools.host.workspace_folders import shown_folders

try:
    import fcntl
except ImportError:  # Windows, where commands are not supported
    fcntl = None  # type: ignore[assignment]

KEPT_SCRATCH_SECONDS = 7 * 86400.0
"""Seconds for which a session's scratch is kept after its last command: one week."""
KEPT_SCRATCH_BYTES = 32 << 30
"""Total scratch of a workspace's sessions, in bytes, above which the oldest is deleted."""
SCRATCH_COUNT_INTERVAL_SECONDS = 60.0
SCRATCH_COUNT_COST_FACTOR = 100
"""Wait at least this many times the duration of the last count before counting again."""
_BLOCK_BYTES = 512
_MAX_PATH_CHARS = 16 << 10
"""A tree with longer paths counts as over quota: no program needs one, and walking it is slow."""
_MAX_DELETED_FOLDERS = 4_000_000
_CACHES = {
    ".cache": "cache",
    ".npm": "npm",
    ".cargo/registry": "cargo-registry",
    "go/pkg/mod": "go-mod",
}
"""Package caches in a home folder, and the shared folders they are symlinks to."""
_OWN_FOLDERS = frozenset({".cache", ".cargo", ".config", ".local", ".npm", "go"})
"""Folders in home that programs write to: each session has its own instead of symlinks to the user's."""
_SETTINGS_BELOW_HOME = (
    ".cargo/config.toml", ".config/git/config", ".config/pip/pip.conf", ".config/uv/uv.toml",
    ".docker/config.json", ".gradle/init.gradle", ".m2/settings.xml", ".pip/pip.conf", ".ssh/config",
)  # fmt: skip
"""Settings of well-known programs in subfolders of home."""
_NO_SETTINGS = frozenset({".lesshst", ".viminfo", ".wget-hsts"})
_MAX_HOME_NAMES, _MAX_SETTINGS_NAMED = 200, 20
_TRAVERSABLE = 0o711
_SESSIONS, _SHARED = "sessions", "caches"
_HOME, _TMP, _FILES = "home", "tmp", "files"
_LOCK_NAME, _USAGE_NAME, _RESERVED_NAME = "lock", "usage", "reserved"
_GONE_PREFIX, _NEW_PREFIX = ".gone-", ".new-"


@dataclass(frozen=True, slots=True)
class ScratchQuota:
    """Limits in bytes and files: for the scratch of one session, and the same again for the shared caches."""

    bytes: int = 8 << 30
    files: int = 500_000

    def __str__(self) -> str:
        return f"{self.bytes >> 20:,} MiB or {self.files:,} files"


@dataclass(slots=True)
class OpenScratch:
    """The folders of a session while a command runs; `notes` is set when it ends."""

    folders: SessionFolders | None
    """None if commands are not confined or the folders can't be created."""
    notes: tuple[str, ...] = ()


class SessionScratchFolders:
    """The scratch folders of the sessions of a workspace."""

    def __init__(self, folder: Path, *, quota: ScratchQuota | None = None) -> None:
        self._folder = folder
        self._quota = quota or ScratchQuota()

    @contextmanager
    def opened(self, launch: Launch, session: str, owner: str, runner: str) -> Iterator[OpenScratch]:
        """Context manager: yields the folders of a session for a launch; counts their usage on exit.

        Each runner has separate folders, because runners differ in what they let commands replace.
        """
        with contextlib.ExitStack() as stack:
            try:
                opened = stack.enter_context(self._open_folders(launch, session, owner, runner))
            except OSError as error:
                note = f"$HOME and /tmp are empty and will not be kept: {error.strerror}."
                opened = OpenScratch(None, (note,))
            yield opened

    @contextmanager
    def _open_folders(self, launch: Launch, session: str, owner: str, runner: str) -> Iterator[OpenScratch]:
        user = workspace_owner(launch.root)
        cache_folders = _LastingFolder(self._folder / _SHARED / _digest(owner), {_FILES: 0o700}, user)
        link_home = _HomeLinks(
            launch, os.path.relpath(cache_folders.path / _FILES, self._session_folder(session, runner))
        )
        own_folders = _LastingFolder(
            self._session_folder(session, runner), {_HOME: 0o700, _TMP: 0o1777}, user, link_home.furnish
        )
        with cache_folders.kept_from_deletion(), own_folders.kept_from_deletion():
            cache_folders.make_folders(_FILES, _CACHES.values())
            opened = OpenScratch(
                SessionFolders(
                    base=os.fspath(self._folder),
                    home=os.fspath(own_folders.path / _HOME),
                    temporary=os.fspath(own_folders.path / _TMP),
                    caches=os.fspath(cache_folders.path / _FILES),
                    reserved=own_folders.reserve_mount_names(_names_below_tmp(launch)),
                    quotas=tuple(
                        self._folder_limits(each, launch.limits.written_bytes)
                        for each in (own_folders, cache_folders)
                    ),
                )
            )
            try:
                yield opened
            finally:
                with contextlib.suppress(
                    OSError
                ):  # disk full, or a command is changing the tree during the count
                    opened.notes = (
                        *self._empty_if_over_quota(own_folders, link_home),
                        *self._shrunk_caches(cache_folders),
                    )

    def tidy(self) -> None:
        """Delete scratch folders unused for a week, then the oldest ones until the rest fits within the limit.

        The folders are renamed immediately and deleted in a background thread, because they may be large.
        """
        kept = []
        for path in self._session_and_cache_folders():
            with contextlib.suppress(OSError):
                kept.append((path.stat().st_mtime, _read_usage(path).bytes, path))
        horizon, total = time.time() - KEPT_SCRATCH_SECONDS, sum(size for _, size, _ in kept)
        for used, size, path in sorted(kept):
            if used >= horizon and total <= KEPT_SCRATCH_BYTES:
                break
            if _set_aside(path):
                total -= size
        gone = list(self._session_and_cache_folders(gone=True))
        if gone:
            threading.Thread(target=_delete, args=(gone,), name="handtools-scratch", daemon=True).start()

    def settings_in_home(self, session: str, runner: str) -> tuple[str, ...]:
        """Return the paths of settings files that commands created in a session's home; opens no files."""
        found: list[str] = []
        try:
            home = FolderHandle.at(os.fspath(self._session_folder(session, runner) / _HOME))
        except OSError:
            return ()
        with home:
            names = sorted(name for name in home.names() if name.startswith("."))
            found += [name for name in names[:_MAX_HOME_NAMES] if _is_settings_file(home, name)]
            for path in _SETTINGS_BELOW_HOME:
                above, _, name = path.rpartition("/")
                with contextlib.suppress(OSError), open_inner_folder(home, above) as folder:
                    found += [path] if _is_settings_file(folder, name) else []
        return tuple(f"~/{path}" for path in found[:_MAX_SETTINGS_NAMED])

    def drop(self, session: str, runner: str) -> None:
        """Delete the scratch of a session, unless one of its commands is still running."""
        if _set_aside(self._session_folder(session, runner)):
            _delete(self._session_and_cache_folders(gone=True))

    def _folder_limits(self, folder: "_LastingFolder", written: int | None) -> tuple[str, int, int]:
        """Return a folder's path and its limits in bytes and files.

        The limit in bytes is the quota, or the current usage plus `written` if that is lower.
        """
        most = self._quota.bytes
        if written is not None:
            most = min(most, folder.count(self._quota).bytes + written)
        return os.fspath(folder.path), most, self._quota.files

    def _session_folder(self, session: str, runner: str) -> Path:
        return self._folder / _SESSIONS / _digest(f"{runner}\n{session}")

    def _session_and_cache_folders(self, *, gone: bool = False) -> Iterator[Path]:
        """Yield the folders of sessions and shared caches; with `gone`, only those that wait for deletion."""
        for above in (self._folder / _SESSIONS, self._folder / _SHARED):
            with contextlib.suppress(FileNotFoundError):
                for name in os.listdir(above):
                    if name.startswith(_GONE_PREFIX) if gone else not name.startswith("."):
                        yield above / name

    def _empty_if_over_quota(self, own_folders: "_LastingFolder", links: "_HomeLinks") -> Iterator[str]:
        """Empty a session's scratch if it is over quota, and yield a note about it."""
        if not own_folders.over(self._quota):
            return
        own_folders.empty(_TMP, but=own_folders.reserved_mount_names())
        emptied = "only /tmp was emptied"
        if own_folders.over(self._quota, count=True):
            own_folders.empty(_HOME)
            links.furnish(own_folders.path)
            own_folders.count(self._quota)
            emptied = "both were emptied"
        yield f"$HOME and /tmp of this session exceeded {self._quota}: {emptied}."

    def _shrunk_caches(self, cache_folders: "_LastingFolder") -> Iterator[str]:
        if cache_folders.over(self._quota):
            cache_folders.empty(_FILES)
            cache_folders.count(self._quota)
            yield f"The package caches of this workspace exceeded {self._quota} and were emptied."


@dataclass(frozen=True, slots=True)
class _HomeLinks:
    """The symlinks in a new home: to the shared caches and to the visible parts of the user's home."""

    launch: Launch
    caches: str
    """The caches folder, relative to the session's folder."""

    def furnish(self, room: Path) -> None:
        """Create the symlinks in a session's folder; the caches are next to its home, in a sandbox too."""
        user = workspace_owner(self.launch.root)
        with contextlib.suppress(FileExistsError):
            (room / _SHARED).symlink_to(self.caches)
        for inside, name in _CACHES.items():
            *above, last = inside.split("/")
            up = "/".join([".."] * (len(above) + 1))
            _create_home_link(room / _HOME, (*above, last), f"{up}/{_SHARED}/{name}", user)
        for name, target in self._users_own():
            _create_home_link(room / _HOME, (name,), target, user)

    def _users_own(self) -> Iterator[tuple[str, str]]:
        """Yield names and paths in the user's home folder that lead to the workspace or to toolchains."""
        home = self.launch.env.get("HOME", "")
        paths = [os.path.join(home, each) for each in HOME_TOOLCHAINS]
        names = [path[len(home) :].split("/")[1] for path in paths if os.path.isdir(path)]
        for _, folder in shown_folders(self.launch.root):
            if folder.startswith(f"{home.rstrip('/')}/") and home.strip("/"):
                names.append(folder[len(home.rstrip("/")) + 1 :].split("/")[0])
        for name in dict.fromkeys(names):
            if name not in _OWN_FOLDERS and os.path.isabs(home):
                yield name, os.path.join(home, name)


def _create_home_link(
    home: Path, parts: tuple[str, ...], target: str, user: tuple[int, int] | None
) -> None:
    """Create a symlink below a folder that commands write to, unless the path exists."""
    folder = FolderHandle.at(os.fspath(home))
    try:
        for part in parts[:-1]:
            with contextlib.suppress(FileExistsError):
                folder.create_folder(part)
                _set_owner_of_entry(folder, part, user)
            inner = folder.child(part)
            folder.close()
            folder = inner
        folder.create_link(parts[-1], os.fsencode(target))
        _set_owner_of_entry(folder, parts[-1], user)
    except OSError:
        return  # a command created something there, or the disk is full: continue without it
    finally:
        folder.close()


def _is_settings_file(folder: FolderHandle, name: str) -> bool:
    facts = folder.find(name)
    is_history = name in _NO_SETTINGS or name.endswith("_history")
    return facts is not None and stat.S_ISREG(facts.st_mode) and not is_history


def _set_owner_of_entry(folder: FolderHandle, name: str, user: tuple[int, int] | None) -> None:
    if user is not None:
        os.chown(name, *user, dir_fd=folder.fd, follow_symlinks=False)


@dataclass(frozen=True, slots=True)
class _Usage:
    """A folder's size at the last count, and the free space of its file system then."""

    bytes: int = 0
    files: int = 0
    free_bytes: int = 0
    free_files: int = 0
    at: float = 0.0
    cost: float = 0.0


@dataclass(slots=True)
class _LastingFolder:
    """A folder with subfolders that commands write to, and our lock and usage files next to them."""

    path: Path
    parts: Mapping[str, int]
    """The subfolders, with their modes."""
    user: tuple[int, int] | None
    """The user that commands run as; None for the current user."""
    furnish: Callable[[Path], None] = lambda _: None
    """Called with a new folder before it is renamed into place."""
    _lock: int = field(default=-1, init=False)

    @contextmanager
    def kept_from_deletion(self) -> Iterator[None]:
        """Context manager: create the folder if needed, and lock it (shared) so that it isn't deleted."""
        while not self._take_shared_lock():
            self._create_atomically()
        try:
            os.utime(self.path)
            for part in self.parts:
                self._set_owner_of_part(self.path / part)
            yield
        finally:
            os.close(self._lock)

    def reserve_mount_names(self, wanted: frozenset[str]) -> tuple[str, ...]:
        """Add `wanted` to the names below `tmp` that are mounted for every command of the session.

        Returns all names that are mounted. New ones are skipped while another command runs, because that
        command could replace them.
        """
        known = self.reserved_mount_names()
        missing = wanted - known
        if missing and self._try_exclusive_lock():
            with FolderHandle.at(os.fspath(self.path / _TMP)) as folder:
                for name in sorted(missing):
                    if folder.find(name) is not None:
                        folder.move_new(name, f"{name}-{secrets.token_hex(4)}")
                    folder.create_folder(name)
                    _set_owner_of_entry(folder, name, self.user)
            known |= missing
            _write(self.path / _RESERVED_NAME, json.dumps(sorted(known)))
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        return tuple(sorted(known))

    def reserved_mount_names(self) -> frozenset[str]:
        try:
            return frozenset(json.loads((self.path / _RESERVED_NAME).read_text("utf-8")))
        except (OSError, ValueError):
            return frozenset()

    def make_folders(self, part: str, names: Iterable[str]) -> None:
        """Create missing folders in a subfolder."""
        with FolderHandle.at(os.fspath(self.path / part)) as folder:
            for name in names:
                if folder.find(name) is None:
                    with contextlib.suppress(FileExistsError):
                        folder.create_folder(name)
                        _set_owner_of_entry(folder, name, self.user)

    def over(self, quota: ScratchQuota, *, count: bool = False) -> bool:
        """Whether the folder is over quota; recounts only after likely growth or when the count is old."""
        known = _read_usage(self.path)
        if count or self._may_have_grown(known, quota):
            known = self.count(quota)
        return known.bytes > quota.bytes or known.files > quota.files

    def count(self, quota: ScratchQuota) -> _Usage:
        """Count files and bytes, stopping above the quota, and save the result."""
        began = time.monotonic()
        files = size = 0
        for part in self.parts:
            with FolderHandle.at(os.fspath(self.path / part)) as top:
                for entry in walk_tree(top):
                    files += 1 if len(entry.path) < _MAX_PATH_CHARS else quota.files + 1
                    size += entry.found.st_blocks * _BLOCK_BYTES
                    if files > quota.files or size > quota.bytes:
                        break
                    if entry.is_folder and entry.mode & 0o500 != 0o500:
                        with contextlib.suppress(OSError):  # an unreadable folder would not be counted
                            entry.folder.set_mode(entry.name, 0o700)
        free = os.statvfs(self.path)
        took = time.monotonic() - began
        usage = _Usage(size, files, free.f_bavail * free.f_frsize, free.f_ffree, time.time(), took)
        _write(self.path / _USAGE_NAME, json.dumps(dataclasses.astuple(usage)))
        return usage

    def empty(self, part: str, *, but: Collection[str] = ()) -> None:
        """Delete the content of a subfolder, even while a running command is adding to it."""
        with FolderHandle.at(os.fspath(self.path / part)) as folder:
            empty_hostile_folder(folder, most=_MAX_DELETED_FOLDERS, but=but)

    def _may_have_grown(self, usage: _Usage, quota: ScratchQuota) -> bool:
        since = time.time() - usage.at
        if not 0 <= since <= max(SCRATCH_COUNT_INTERVAL_SECONDS, usage.cost * SCRATCH_COUNT_COST_FACTOR):
            return True
        free = os.statvfs(self.path)
        filled, made = usage.free_bytes - free.f_bavail * free.f_frsize, usage.free_files - free.f_ffree
        return filled > _recount_threshold(quota.bytes, usage.bytes) or made > _recount_threshold(
            quota.files, usage.files
        )

    def _take_shared_lock(self) -> bool:
        """Take the shared lock; False if the folder does not exist or was just deleted."""
        try:
            lock = os.open(self.path / _LOCK_NAME, os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        fcntl.flock(lock, fcntl.LOCK_SH)
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(lock), os.stat(self.path / _LOCK_NAME)):
                self._lock = lock
                return True
        os.close(lock)
        return False

    def _try_exclusive_lock(self) -> bool:
        """Try to upgrade to the exclusive lock; False if another command shares it."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _create_atomically(self) -> None:
        """Create the folder under a temporary name and rename it, unless another process was faster."""
        above = self.path.parent
        above.mkdir(parents=True, exist_ok=True)
        new = above / f"{_NEW_PREFIX}{secrets.token_hex(8)}"
        new.mkdir()
        # Let the user that commands run as pass through; the state folder itself keeps others out.
        for folder in (above.parent, above, new):
            folder.chmod(_TRAVERSABLE)
        for part, mode in self.parts.items():
            (new / part).mkdir()
            (new / part).chmod(mode)
            self._set_owner_of_part(new / part)
        self.furnish(new)
        (new / _LOCK_NAME).touch(0o600)
        try:
            new.rename(self.path)
        except OSError:
            _delete([new])

    def _set_owner_of_part(self, part: Path) -> None:
        if self.user is not None and part.lstat().st_uid != self.user[0]:
            os.chown(part, *self.user, follow_symlinks=False)


def _recount_threshold(most: int, known: int) -> int:
    """Return the growth of the file system that triggers a recount: about the rest of the quota."""
    return min(most // 16, max(most - known, most // 256))


def _set_aside(path: Path) -> bool:
    """Rename a folder for deletion, unless a command has it locked; returns whether it was renamed."""
    try:
        lock = os.open(path / _LOCK_NAME, os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.rename(path.parent / f"{_GONE_PREFIX}{secrets.token_hex(8)}")
    except OSError:
        return False
    finally:
        os.close(lock)
    return True


def _delete(paths: Iterable[Path]) -> None:
    for path in paths:
        with contextlib.suppress(OSError):
            with FolderHandle.at(os.fspath(path)) as folder:
                empty_hostile_folder(folder, most=_MAX_DELETED_FOLDERS)
            path.rmdir()


def _names_below_tmp(launch: Launch) -> frozenset[str]:
    """Return the names in /tmp at or below which a launch has mounts."""
    tops = [folder for _, folder in shown_folders(launch.root)]
    records = [worktree_git_folder(Path(folder, ".git")) for folder in tops]
    paths = [*tops, *launch.readable, *launch.writable, launch.env.get("HOME", "")]
    paths += [os.path.realpath(record.parents[1]) for record in records if record]
    return frozenset(filter(None, map(name_below_tmp, paths)))


def _read_usage(path: Path) -> _Usage:
    try:
        return _Usage(*json.loads((path / _USAGE_NAME).read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return _Usage()


def _write(path: Path, text: str) -> None:
    beside = path.with_suffix(f".{secrets.token_hex(4)}")
    beside.write_text(text, "utf-8")
    beside.replace(path)


def _digest(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:24]
