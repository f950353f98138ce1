"""Scratch of a session: its `$HOME` and `/tmp`, and package caches that the sessions of a workspace share.

They lie in the state folder and stay from one command to the next. Only confined commands write there, so their
content is hostile to us: our own process reads and runs nothing of it, counts and deletes it through directory
handles that follow no link, and has no mount made at a name that a command could have replaced. ADR 161.
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

from handtools.host.files.folder_handle import FolderHandle, open_inner_folder, walk_tree
from handtools.host.files.git_repository import worktree_git_folder
from handtools.host.files.tree_copy_and_removal import empty_hostile_folder
from handtools.host.sandbox.launch import Launch, SessionFolders
from handtools.host.sandbox.runners.bubblewrap_args import HOME_TOOLCHAINS, name_below_tmp
from handtools.host.sandbox.runners.default_user_and_limits import workspace_owner
from handtools.host.workspace_folders import shown_folders

try:
    import fcntl
except ImportError:  # Windows, where no commands are offered
    fcntl = None  # type: ignore[assignment]

KEPT_SCRATCH_SECONDS = 7 * 86400.0
"""For how many seconds scratch is kept after its last command: a week."""
KEPT_SCRATCH_BYTES = 32 << 30
"""How many bytes the scratch of a workspace's sessions may take together before the oldest is deleted."""
SCRATCH_COUNT_INTERVAL_SECONDS = 60.0
SCRATCH_COUNT_COST_FACTOR = 100
"""Scratch is not counted again before this many times as long as the last count took."""
_BLOCK_BYTES = 512
_MOST_PATH_CHARS = 16 << 10
"""A tree that is deeper counts as over its quota: nobody needs one, and counting it would take long."""
_MOST_DELETED_FOLDERS = 4_000_000
_CACHES = {
    ".cache": "cache",
    ".npm": "npm",
    ".cargo/registry": "cargo-registry",
    "go/pkg/mod": "go-mod",
}
"""Package caches below a home folder, and the shared folders that they are links to."""
_OWN_FOLDERS = frozenset({".cache", ".cargo", ".config", ".local", ".npm", "go"})
"""Folders of a home folder that programs write to: these are the session's own, not links to the user's."""
_SETTINGS_BELOW_HOME = (
    ".cargo/config.toml", ".config/git/config", ".config/pip/pip.conf", ".config/uv/uv.toml",
    ".docker/config.json", ".gradle/init.gradle", ".m2/settings.xml", ".pip/pip.conf", ".ssh/config",
)  # fmt: skip
"""Settings of well-known programs that are not directly in a home folder."""
_NO_SETTINGS = frozenset({".lesshst", ".viminfo", ".wget-hsts"})
_MOST_HOME_NAMES, _MOST_SETTINGS_NAMED = 200, 20
_TRAVERSABLE = 0o711
_SESSIONS, _SHARED = "sessions", "caches"
_HOME, _TMP, _FILES = "home", "tmp", "files"
_LOCK_NAME, _USAGE_NAME, _RESERVED_NAME = "lock", "usage", "reserved"
_GONE_PREFIX, _NEW_PREFIX = ".gone-", ".new-"


@dataclass(frozen=True, slots=True)
class ScratchQuota:
    """How many bytes and files the scratch of one session may hold; the shared caches may hold as much."""

    bytes: int = 8 << 30
    files: int = 500_000

    def __str__(self) -> str:
        return f"{self.bytes >> 20:,} MiB or {self.files:,} files"


@dataclass(slots=True)
class OpenScratch:
    """The folders of a session while a command runs; `notes` is set at its end."""

    folders: SessionFolders | None
    """None when there are none: where commands are not confined, or they can't be made."""
    notes: tuple[str, ...] = ()


class SessionScratchFolders:
    """The scratch folders of the sessions of a workspace."""

    def __init__(self, folder: Path, *, quota: ScratchQuota | None = None) -> None:
        self._folder = folder
        self._quota = quota or ScratchQuota()

    @contextmanager
    def opened(self, launch: Launch, session: str, owner: str, runner: str) -> Iterator[OpenScratch]:
        """Context manager: the folders of a session for a launch; they are counted when it has ended.

        A runner has folders of its own: what one keeps commands from replacing, another may not.
        """
        with contextlib.ExitStack() as stack:
            try:
                opened = stack.enter_context(self._opened(launch, session, owner, runner))
            except OSError as error:
                note = f"$HOME and /tmp are empty, and not kept: {error.strerror}."
                opened = OpenScratch(None, (note,))
            yield opened

    @contextmanager
    def _opened(self, launch: Launch, session: str, owner: str, runner: str) -> Iterator[OpenScratch]:
        user = launch.user or workspace_owner(launch.root)
        caches = _LastingFolder(self._folder / _SHARED / _digest(owner), {_FILES: 0o700}, user)
        link_home = _HomeLinks(launch, os.path.relpath(caches.path / _FILES, self._room(session, runner)))
        own = _LastingFolder(
            self._room(session, runner), {_HOME: 0o700, _TMP: 0o1777}, user, link_home.furnish
        )
        with caches.kept_from_deletion(), own.kept_from_deletion():
            caches.make_folders(_FILES, _CACHES.values())
            opened = OpenScratch(
                SessionFolders(
                    base=os.fspath(self._folder),
                    home=os.fspath(own.path / _HOME),
                    temporary=os.fspath(own.path / _TMP),
                    caches=os.fspath(caches.path / _FILES),
                    reserved=own.reserve_mount_names(_names_below_tmp(launch)),
                    quotas=tuple(
                        self._limits(each, launch.allowance.written_bytes) for each in (own, caches)
                    ),
                )
            )
            try:
                yield opened
            finally:
                with contextlib.suppress(
                    OSError
                ):  # the disk is full, or a command is changing what is counted
                    opened.notes = (*self._shrunk(own, link_home), *self._shrunk_caches(caches))

    def tidy(self) -> None:
        """Delete scratch that was not used for a week, then the oldest while the rest is too large.

        What goes is renamed at once, and deleted in a thread: it may be a large tree.
        """
        kept = []
        for path in self._rooms():
            with contextlib.suppress(OSError):
                kept.append((path.stat().st_mtime, _read_usage(path).bytes, path))
        horizon, total = time.time() - KEPT_SCRATCH_SECONDS, sum(size for _, size, _ in kept)
        for used, size, path in sorted(kept):
            if used >= horizon and total <= KEPT_SCRATCH_BYTES:
                break
            if _set_aside(path):
                total -= size
        gone = list(self._rooms(gone=True))
        if gone:
            threading.Thread(target=_delete, args=(gone,), name="handtools-scratch", daemon=True).start()

    def settings_in_home(self, session: str, runner: str) -> tuple[str, ...]:
        """The paths of settings that commands left in a session's home folder; nothing is opened but folders."""
        found: list[str] = []
        try:
            home = FolderHandle.at(os.fspath(self._room(session, runner) / _HOME))
        except OSError:
            return ()
        with home:
            names = sorted(name for name in home.names() if name.startswith("."))
            found += [name for name in names[:_MOST_HOME_NAMES] if _is_settings_file(home, name)]
            for path in _SETTINGS_BELOW_HOME:
                above, _, name = path.rpartition("/")
                with contextlib.suppress(OSError), open_inner_folder(home, above) as folder:
                    found += [path] if _is_settings_file(folder, name) else []
        return tuple(f"~/{path}" for path in found[:_MOST_SETTINGS_NAMED])

    def drop(self, session: str, runner: str) -> None:
        """Delete the scratch of a session, unless a command of it still runs."""
        if _set_aside(self._room(session, runner)):
            _delete(self._rooms(gone=True))

    def _limits(self, folder: "_LastingFolder", written: int | None) -> tuple[str, int, int]:
        """A folder, and how many bytes and files it may hold: the quota, or what one command may add if less."""
        most = self._quota.bytes
        if written is not None:
            most = min(most, folder.count(self._quota).bytes + written)
        return os.fspath(folder.path), most, self._quota.files

    def _room(self, session: str, runner: str) -> Path:
        return self._folder / _SESSIONS / _digest(f"{runner}\n{session}")

    def _rooms(self, *, gone: bool = False) -> Iterator[Path]:
        """The folders of sessions and of shared caches; or those that are to be deleted."""
        for above in (self._folder / _SESSIONS, self._folder / _SHARED):
            with contextlib.suppress(FileNotFoundError):
                for name in os.listdir(above):
                    if name.startswith(_GONE_PREFIX) if gone else not name.startswith("."):
                        yield above / name

    def _shrunk(self, own: "_LastingFolder", links: "_HomeLinks") -> Iterator[str]:
        """Empty scratch that is over its quota; a sentence about it."""
        if not own.over(self._quota):
            return
        own.empty(_TMP, but=own.reserved_mount_names())
        emptied = "the latter was emptied"
        if own.over(self._quota, count=True):
            own.empty(_HOME)
            links.furnish(own.path)
            own.count(self._quota)
            emptied = "both were emptied"
        yield f"$HOME and /tmp of this session held more than {self._quota}: {emptied}."

    def _shrunk_caches(self, caches: "_LastingFolder") -> Iterator[str]:
        if caches.over(self._quota):
            caches.empty(_FILES)
            caches.count(self._quota)
            yield f"The package caches of this workspace held more than {self._quota}, and were emptied."


@dataclass(frozen=True, slots=True)
class _HomeLinks:
    """The links in a new home folder: to the shared caches, and to what is shown of the user's own home."""

    launch: Launch
    caches: str
    """The folder of the caches, relative to the session's own."""

    def furnish(self, room: Path) -> None:
        """Make the links. The way to the caches is the same on disk and in a sandbox: beside the home folder."""
        user = workspace_owner(self.launch.root)
        with contextlib.suppress(FileExistsError):
            (room / _SHARED).symlink_to(self.caches)
        for inside, name in _CACHES.items():
            *above, last = inside.split("/")
            up = "/".join([".."] * (len(above) + 1))
            _link(room / _HOME, (*above, last), f"{up}/{_SHARED}/{name}", user)
        for name, target in self._users_own():
            _link(room / _HOME, (name,), target, user)

    def _users_own(self) -> Iterator[tuple[str, str]]:
        """Names in the user's home folder that lead to the workspace or to toolchains."""
        home = self.launch.env.get("HOME", "")
        paths = [os.path.join(home, each) for each in HOME_TOOLCHAINS]
        names = [path[len(home) :].split("/")[1] for path in paths if os.path.isdir(path)]
        for _, folder in shown_folders(self.launch.root):
            if folder.startswith(f"{home.rstrip('/')}/") and home.strip("/"):
                names.append(folder[len(home.rstrip("/")) + 1 :].split("/")[0])
        for name in dict.fromkeys(names):
            if name not in _OWN_FOLDERS and os.path.isabs(home):
                yield name, os.path.join(home, name)


def _link(home: Path, parts: tuple[str, ...], target: str, user: tuple[int, int] | None) -> None:
    """Make a symbolic link at a path below a folder that commands write to, unless something is there."""
    folder = FolderHandle.at(os.fspath(home))
    try:
        for part in parts[:-1]:
            with contextlib.suppress(FileExistsError):
                folder.create_folder(part)
                _give(folder, part, user)
            inner = folder.child(part)
            folder.close()
            folder = inner
        folder.create_link(parts[-1], os.fsencode(target))
        _give(folder, parts[-1], user)
    except OSError:
        return  # a command put something else there, or the disk is full: the session does without
    finally:
        folder.close()


def _is_settings_file(folder: FolderHandle, name: str) -> bool:
    facts = folder.find(name)
    is_history = name in _NO_SETTINGS or name.endswith("_history")
    return facts is not None and stat.S_ISREG(facts.st_mode) and not is_history


def _give(folder: FolderHandle, name: str, user: tuple[int, int] | None) -> None:
    if user is not None:
        os.chown(name, *user, dir_fd=folder.fd, follow_symlinks=False)


@dataclass(frozen=True, slots=True)
class _Usage:
    """How much a folder held when it was counted last, and how much room its file system had."""

    bytes: int = 0
    files: int = 0
    free_bytes: int = 0
    free_files: int = 0
    at: float = 0.0
    cost: float = 0.0


@dataclass(slots=True)
class _LastingFolder:
    """A folder of ours with subfolders that commands write to; beside these are its lock and what was counted."""

    path: Path
    parts: Mapping[str, int]
    """The subfolders, with their modes."""
    user: tuple[int, int] | None
    """The user that commands run as; None for our own."""
    furnish: Callable[[Path], None] = lambda _: None
    """Called with the folder when it is new, before anybody else sees it."""
    _lock: int = field(default=-1, init=False)

    @contextmanager
    def kept_from_deletion(self) -> Iterator[None]:
        """Context manager: the folder is there, made if need be, and is not deleted while this lasts."""
        while not self._taken():
            self._make()
        try:
            os.utime(self.path)
            for part in self.parts:
                self._own(self.path / part)
            yield
        finally:
            os.close(self._lock)

    def reserve_mount_names(self, wanted: frozenset[str]) -> tuple[str, ...]:
        """The names in `tmp` at which every command of the session has a mount, with the wanted ones.

        A name is added only while no command runs that could put something else there; else it stays out.
        """
        known = self.reserved_mount_names()
        missing = wanted - known
        if missing and self._alone():
            with FolderHandle.at(os.fspath(self.path / _TMP)) as folder:
                for name in sorted(missing):
                    if folder.find(name) is not None:
                        folder.move_new(name, f"{name}-{secrets.token_hex(4)}")
                    folder.create_folder(name)
                    _give(folder, name, self.user)
            known |= missing
            _write(self.path / _RESERVED_NAME, json.dumps(sorted(known)))
        fcntl.flock(self._lock, fcntl.LOCK_SH)
        return tuple(sorted(known))

    def reserved_mount_names(self) -> frozenset[str]:
        """The names in `tmp` that are reserved for mounts."""
        try:
            return frozenset(json.loads((self.path / _RESERVED_NAME).read_text("utf-8")))
        except (OSError, ValueError):
            return frozenset()

    def make_folders(self, part: str, names: Iterable[str]) -> None:
        """Make folders in a subfolder, where they are missing."""
        with FolderHandle.at(os.fspath(self.path / part)) as folder:
            for name in names:
                if folder.find(name) is None:
                    with contextlib.suppress(FileExistsError):
                        folder.create_folder(name)
                        _give(folder, name, self.user)

    def over(self, quota: ScratchQuota, *, count: bool = False) -> bool:
        """Whether more is in it than allowed; counted only if it can have grown much, or was not lately."""
        known = _read_usage(self.path)
        if count or self._may_have_grown(known, quota):
            known = self.count(quota)
        return known.bytes > quota.bytes or known.files > quota.files

    def count(self, quota: ScratchQuota) -> _Usage:
        """Count what is in it, as far as the quota, and write that down."""
        began = time.monotonic()
        files = size = 0
        for part in self.parts:
            with FolderHandle.at(os.fspath(self.path / part)) as top:
                for found in walk_tree(top):
                    files += 1 if len(found.path) < _MOST_PATH_CHARS else quota.files + 1
                    size += found.facts.st_blocks * _BLOCK_BYTES
                    if files > quota.files or size > quota.bytes:
                        break
                    if stat.S_ISDIR(found.facts.st_mode) and found.facts.st_mode & 0o500 != 0o500:
                        with contextlib.suppress(OSError):  # what nobody may look into would not be counted
                            found.folder.set_mode(found.name, 0o700)
        free = os.statvfs(self.path)
        took = time.monotonic() - began
        usage = _Usage(size, files, free.f_bavail * free.f_frsize, free.f_ffree, time.time(), took)
        _write(self.path / _USAGE_NAME, json.dumps(dataclasses.astuple(usage)))
        return usage

    def empty(self, part: str, *, but: Collection[str] = ()) -> None:
        """Delete what is in a subfolder; a command that still runs may be making more."""
        with FolderHandle.at(os.fspath(self.path / part)) as folder:
            empty_hostile_folder(folder, most=_MOST_DELETED_FOLDERS, but=but)

    def _may_have_grown(self, known: _Usage, quota: ScratchQuota) -> bool:
        since = time.time() - known.at
        if not 0 <= since <= max(SCRATCH_COUNT_INTERVAL_SECONDS, known.cost * SCRATCH_COUNT_COST_FACTOR):
            return True
        free = os.statvfs(self.path)
        filled, made = known.free_bytes - free.f_bavail * free.f_frsize, known.free_files - free.f_ffree
        return filled > _much(quota.bytes, known.bytes) or made > _much(quota.files, known.files)

    def _taken(self) -> bool:
        """Take the shared lock; False when the folder is not there, or has just been deleted."""
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

    def _alone(self) -> bool:
        """Whether no other command holds the folder; then none can, until the lock is shared again."""
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def _make(self) -> None:
        """Make the folder under another name and rename it when it is whole; another process may be faster."""
        above = self.path.parent
        above.mkdir(parents=True, exist_ok=True)
        new = above / f"{_NEW_PREFIX}{secrets.token_hex(8)}"
        new.mkdir()
        # Those below are for the user that commands run as; nobody else gets through the state folder.
        for folder in (above.parent, above, new):
            folder.chmod(_TRAVERSABLE)
        for part, mode in self.parts.items():
            (new / part).mkdir()
            (new / part).chmod(mode)
            self._own(new / part)
        self.furnish(new)
        (new / _LOCK_NAME).touch(0o600)
        try:
            new.rename(self.path)
        except OSError:
            _delete([new])

    def _own(self, part: Path) -> None:
        if self.user is not None and part.lstat().st_uid != self.user[0]:
            os.chown(part, *self.user, follow_symlinks=False)


def _much(most: int, known: int) -> int:
    """How much more in the file system is a reason to count again: not less than would fill what is left."""
    return min(most // 16, max(most - known, most // 256))


def _set_aside(path: Path) -> bool:
    """Rename a folder that no command holds, so that it can be deleted; whether it was."""
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
                empty_hostile_folder(folder, most=_MOST_DELETED_FOLDERS)
            path.rmdir()


def _names_below_tmp(launch: Launch) -> frozenset[str]:
    """The names in /tmp below which something is mounted for a launch."""
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
