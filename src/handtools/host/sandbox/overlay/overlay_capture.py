"""Capture with overlayfs: each command writes to its own upper layer, from which its changes are read.

The overlay is mounted in a mount namespace that disappears with the command. Nothing is ever mounted where
other processes can see it, so there is nothing to unmount, even after a crash.
"""

import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from handtools.core.changes import Change
from handtools.host import programs
from handtools.host.files.backups import (
    MASK_LAYER_NAME,
    OVERLAY_WORK_NAME,
    REPLACED_FILES_NAME,
    UPPER_LAYER_NAME,
    BackupItem,
    FolderBackups,
)
from handtools.host.files.folder_handle import FolderHandle, join_path, open_inner_folder
from handtools.host.files.folder_trees import walk_tree
from handtools.host.sandbox.change_capture import CapturedChanges
from handtools.host.sandbox.launch import Launch, Overlay
from handtools.host.sandbox.overlay.layer_refresh import LayerRefresh
from handtools.host.sandbox.overlay.overlay_mount import overlay_mount
from handtools.host.sandbox.overlay.upper_layer_changes import UpperLayerDiff, UpperLayerSanitizer
from handtools.text.git_config import is_repository_state

_CLONE_NEWNS, _CLONE_NEWUSER = 0x00020000, 0x10000000
CONFLICTS_FOLDER = "kept"
"""The backup item with commands' versions of files that another program changed while they ran."""
MAX_LISTED_NAMES = 5
SPARE_LAYERS = 2
"""How many unused layers are kept for the next command."""
_PROBE_SECONDS = 10


@dataclass(frozen=True, slots=True)
class LayerQuota:
    """The maximum number of files and bytes in a layer that can be applied to the workspace."""

    bytes: int = 8 << 30
    files: int = 500_000


class OverlayCapture:
    """Captures changes by giving every command an overlay with its own upper layer over the workspace.

    `name` is the folder's name if the workspace has several folders.
    """

    has_isolated_writes = True

    def __init__(
        self, root: str | Path, backups: FolderBackups, *, quota: LayerQuota | None = None, name: str = ""
    ) -> None:
        self._root = os.path.realpath(root)
        self.name = name
        self._spare: list[BackupItem] = []
        self._lock = threading.Lock()
        self.backups = backups
        self.quota = quota or LayerQuota()

    def begin(self, launch: Launch, *, in_place: bool) -> "OverlayCommandCapture":  # noqa: ARG002
        """Create an upper layer for the command, or take an unused one."""
        item = self._spare_or_new_item()
        root = os.stat(self._root)
        upper, work = item.path / UPPER_LAYER_NAME, item.path / OVERLAY_WORK_NAME
        found = upper.stat()
        if os.geteuid() == 0 and (found.st_uid, found.st_gid) != (root.st_uid, root.st_gid):
            os.chown(upper, root.st_uid, root.st_gid)
        upper.chmod(stat.S_IMODE(root.st_mode))  # overlayfs shows the mode of the layer's root
        most = launch.limits.written_bytes or self.quota.bytes
        overlay = Overlay(self._root, os.fspath(upper), os.fspath(work), self._root, most, self.quota.files)
        captured = OverlayCommandCapture(overlay, item, self)
        if launch.refreshed is not None:
            captured.start_refresh_while_running(launch.refreshed)
        return captured

    def give_back(self, item: BackupItem, *, written: bool) -> None:
        """Keep a layer for the next command if it was never written to; otherwise delete it.

        A used layer is not reused even if it is empty because all its files were applied: undo moves them
        back into it.
        """
        upper = item.path / UPPER_LAYER_NAME
        with self._lock:
            parts = (REPLACED_FILES_NAME, MASK_LAYER_NAME)
            used = written or any(os.path.lexists(item.path / part) for part in parts)
            if len(self._spare) < SPARE_LAYERS and not os.listdir(upper) and not used:
                self._spare.append(item)
                return
        self._let_go(item)

    def close(self) -> None:
        """Delete the unused layers that were kept for the next commands."""
        with self._lock:
            spare, self._spare = self._spare, []
        for item in spare:
            self._let_go(item)

    def _let_go(self, item: BackupItem) -> None:
        self.backups.delete_item_leftovers(item.name)
        item.release()

    def _spare_or_new_item(self) -> BackupItem:
        with self._lock:
            spare = self._spare.pop() if self._spare else None
        if spare is not None:
            if reset_work_folder(spare.path / OVERLAY_WORK_NAME):
                return spare
            self._let_go(spare)
        item = self.backups.create_item()
        for folder in (UPPER_LAYER_NAME, OVERLAY_WORK_NAME):
            (item.path / folder).mkdir(0o700)
        return item


@dataclass(slots=True)
class OverlayCommandCapture:
    """The capture of one command through its upper layer."""

    overlay: Overlay
    item: BackupItem
    capture: OverlayCapture
    since: int = field(init=False)
    written: bool = False
    """Whether the layer contained changes, so that the journal may refer to it."""
    refresh: LayerRefresh | None = None

    def __post_init__(self) -> None:
        os.utime(self.overlay.upper)  # uses the file system's clock
        self.since = os.stat(self.overlay.upper).st_ctime_ns

    @property
    def overlays(self) -> tuple[Overlay, ...]:
        return (self.overlay,)

    @property
    def name(self) -> str:
        """The name of the backup item that contains the layer."""
        return self.item.name

    def start_refresh_while_running(self, wanted: Callable[[str], bool]) -> None:
        """Copy other programs' workspace changes into the layer, from now until the command ends."""
        self.refresh = LayerRefresh(
            self.overlay.lower,
            self.overlay.upper,
            self.since,
            lambda path: wanted(self._workspace_path(path)),
        )
        self.overlay = replace(self.overlay, view_socket=self.refresh.handle_socket.fileno())
        self.refresh.start()

    def finish(self) -> CapturedChanges:
        """Return the command's file changes from its upper layer, ready to be applied."""
        if self.refresh is not None:
            self.refresh.stop()
            self.refresh.remove_unchanged_copies()
        # The command may have made the workspace root inaccessible. That is not applied, and we must be able
        # to read it.
        os.chmod(self.overlay.upper, stat.S_IMODE(os.stat(self.overlay.lower).st_mode) | stat.S_IRWXU)
        over = self._over_quota()
        if over:
            return CapturedChanges((), "overlay", notes=(over,))
        owner = _owner_to_keep(self.overlay.lower)
        layer_diff = UpperLayerDiff(
            lambda path: f"{self.name}/{REPLACED_FILES_NAME}/{path}",
            lambda path: f"{self.name}/{UPPER_LAYER_NAME}/{path}",
            self.since,
            UpperLayerSanitizer(owner),
            shown=self.refresh.seen if self.refresh else {},
        )
        changes = layer_diff.list_changes(self.overlay.upper, self.overlay.lower)
        moved = [path for path in layer_diff.conflicts if is_repository_state(path)]
        if moved and self.refresh is None:
            # If its files were applied without its commit, running it again would change them twice. A job,
            # which is refreshed, keeps its files, because it may have worked for hours.
            names = self._quoted_path_list(moved)
            return CapturedChanges(
                (), "overlay", discarded=f"Another program changed {names} while it ran."
            )
        self.written = bool(changes)
        if self.capture.name:
            changes = [Change(self._workspace_path(each.path), each.before, each.after) for each in changes]
        return CapturedChanges(tuple(changes), "overlay", notes=tuple(self._notes(layer_diff)))

    def _workspace_path(self, path: str) -> str:
        """Convert a path in the folder to a workspace path."""
        return join_path(self.capture.name, path)

    def _quoted_path_list(self, paths: Iterable[str]) -> str:
        return _shortened_list([f"`{self._workspace_path(path)}`" for path in paths])

    def discard(self) -> None:
        """Delete the layer, but not the replaced files that undo needs."""
        if self.refresh is not None:
            self.refresh.stop()
        self.capture.give_back(self.item, written=self.written)

    def _over_quota(self) -> str:
        files = size = 0
        with FolderHandle.at(self.overlay.upper) as upper:
            for entry in walk_tree(upper):
                files += 1
                size += 0 if entry.is_folder else entry.found.st_blocks * 512
                limit = self.overlay.most_bytes
                if size > limit:
                    return (
                        f"It wrote more than {limit >> 20:,} MiB to the workspace; all of it was discarded."
                    )
                if files > self.overlay.most_files:
                    return f"It created more than {self.overlay.most_files:,} files; all were discarded."
        return ""

    def _notes(self, layer_diff: UpperLayerDiff) -> list[str]:
        cleaner = layer_diff.sanitizer
        notes: list[str] = []
        if cleaner.refused:
            refused = [f"`{self._workspace_path(path)}` ({kind})" for path, kind in cleaner.refused.items()]
            notes.append(f"Not kept, because they are not regular files: {_shortened_list(refused)}.")
        if cleaner.stripped:
            notes.append(f"Privileges were removed from {self._quoted_path_list(cleaner.stripped)}.")
        if layer_diff.stuck:
            notes.append(
                f"Pipes, sockets or devices were left unchanged: {self._quoted_path_list(layer_diff.stuck)}."
            )
        if layer_diff.closed:
            closed = self._quoted_path_list(layer_diff.closed)
            notes.append(f"Folders that can't be read were left unchanged: {closed}.")
        if layer_diff.conflicts:
            kept = self._back_up_conflicts(layer_diff)
            told = self._quoted_path_list(layer_diff.conflicts)
            where = f" The command's versions are kept in {kept}." if kept else ""
            notes.append(f"Not applied, because another program changed them while it ran: {told}.{where}")
        return notes

    def _back_up_conflicts(self, layer_diff: UpperLayerDiff) -> str:
        """Save the command's versions of conflicting files in the backups.

        Returns their folder, or "" if there are none.
        """
        shelf = f"{CONFLICTS_FOLDER}/{self.name}"
        theirs = set(layer_diff.conflicts)
        kept = [change for change in layer_diff.changes if change.path in theirs and _is_held(change)]
        with FolderHandle.at(self.overlay.upper) as upper:
            for change in kept:
                above, _, name = change.path.rpartition("/")
                with open_inner_folder(upper, above) as folder:
                    self.capture.backups.put_in(f"{shelf}/{change.path}", folder, name)
        return os.fspath(self.capture.backups.folder / shelf) if kept else ""


def reset_work_folder(work: Path) -> bool:
    """Remove the kernel's `incompat` mark from a work folder; returns whether the folder can be reused."""
    own, note = work / "work", work / "work" / "incompat"
    try:
        for folder in (own, note, note / "volatile"):
            folder.chmod(0o700)
        shutil.rmtree(note)
    except OSError:
        return False
    return True


def _is_held(change: Change) -> bool:
    return change.after is not None and change.after.held is not None


def _owner_to_keep(root: str) -> tuple[int, int] | None:
    if os.geteuid() != 0:
        return None
    found = os.stat(root)
    return found.st_uid, found.st_gid


def _shortened_list(names: list[str]) -> str:
    more = f" and {len(names) - MAX_LISTED_NAMES} more" if len(names) > MAX_LISTED_NAMES else ""
    return ", ".join(names[:MAX_LISTED_NAMES]) + more


_PROBE = """
import ctypes, os, sys
flags, user, group, target, words = int(sys.argv[1]), os.geteuid(), os.getegid(), *sys.argv[2:]
libc = ctypes.CDLL(None, use_errno=True)
def check(answer):
    if answer: sys.exit(os.strerror(ctypes.get_errno()))
check(libc.unshare(flags))
if user:
    for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
        open(f"/proc/self/{name}", "w").write(text)
check(libc.mount(b"none", b"/", None, ctypes.c_ulong(0x44000), None))
check(libc.mount(b"overlay", target.encode(), b"overlay", ctypes.c_ulong(0), words.encode()))
"""


def overlay_problem(root: str | Path, backups: FolderBackups) -> str:
    """Return why overlayfs can't be mounted over the workspace; empty if it can."""
    if not sys.platform.startswith("linux"):
        return "Overlays need Linux."
    real = os.path.realpath(root)
    try:
        backups.folder.mkdir(0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=backups.folder, prefix=".probe-") as folder:
            upper, work = Path(folder, "upper"), Path(folder, "work")
            upper.mkdir()
            work.mkdir()
            words = overlay_mount(Overlay(real, os.fspath(upper), os.fspath(work), real)).options
            flags = _CLONE_NEWNS | (_CLONE_NEWUSER if os.geteuid() else 0)
            done = programs.run_program(
                programs.python_interpreter(),
                ["-ISc", _PROBE, str(flags), real, words],
                programs.ProgramLimits(seconds=_PROBE_SECONDS),
            )
            for inner in work.iterdir():
                inner.chmod(0o700)
    except (OSError, programs.ProgramTimeout) as error:
        return f"Can't create an overlay: {error}"
    return (
        f"Can't mount an overlay here: {done.errors.decode().strip().splitlines()[-1]}."
        if done.code
        else ""
    )
