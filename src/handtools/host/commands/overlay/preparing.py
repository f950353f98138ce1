"""Preparing: room for a layer, and what becomes of it when the command has ended."""

import os
import shutil
import stat
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path

from handtools.core.changes import Change
from handtools.host import programs
from handtools.host.commands.capturing import Delta
from handtools.host.commands.launching import Launch, Overlay
from handtools.host.commands.overlay.cleaning import Cleaner
from handtools.host.commands.overlay.listing import Listing
from handtools.host.commands.overlay.mounting import NEW_MOUNTS, NEW_USER, mounted, options
from handtools.host.folders import Folder
from handtools.host.subtrees import everything_below, inner
from handtools.host.vault import MASKED, NEW, OLD, WORK, Item, Vault

KEPT = "kept"
"""In the vault: what commands wrote where another writer was first."""
SHOWN = 5
SPARE = 2
"""Layers that are kept for the next command."""
_PROBE_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Quota:
    """How much a layer may hold and still land."""

    bytes: int = 8 << 30
    files: int = 500_000


class OverlayCapture:
    """Every command gets a layer of its own over the workspace."""

    apart = True

    def __init__(self, root: str | Path, vault: Vault, *, quota: Quota | None = None) -> None:
        self._root = os.path.realpath(root)
        self._spare: list[Item] = []
        self._lock = threading.Lock()
        self.vault = vault
        self.quota = quota or Quota()

    def begin(self, launch: Launch, name: str) -> "OverlayCapturing":  # noqa: ARG002
        """Make the layer, and have the launch write into it."""
        item = self._room()
        root = os.stat(self._root)
        upper, work = item.path / NEW, item.path / WORK
        found = upper.stat()
        if os.geteuid() == 0 and (found.st_uid, found.st_gid) != (root.st_uid, root.st_gid):
            os.chown(upper, root.st_uid, root.st_gid)
        upper.chmod(stat.S_IMODE(root.st_mode))  # the layer's own folder is what the workspace looks like
        most = launch.allowance.written_bytes or self.quota.bytes
        overlay = Overlay(self._root, os.fspath(upper), os.fspath(work), self._root, most, self.quota.files)
        return OverlayCapturing(mounted(launch, overlay), overlay, item, self)

    def give_back(self, item: Item) -> None:
        """A layer that nobody needs any more: one that was never written to serves the next command."""
        upper = item.path / NEW
        with self._lock:
            used = any(os.path.lexists(item.path / part) for part in (OLD, MASKED))
            if len(self._spare) < SPARE and not os.listdir(upper) and not used:
                self._spare.append(item)
                return
        self._let_go(item)

    def close(self) -> None:
        """Let go of what is kept for the next command."""
        with self._lock:
            spare, self._spare = self._spare, []
        for item in spare:
            self._let_go(item)

    def _let_go(self, item: Item) -> None:
        self.vault.clear(item.name)
        item.release()

    def _room(self) -> Item:
        with self._lock:
            spare = self._spare.pop() if self._spare else None
        if spare is not None:
            if _cleared(spare.path / WORK):
                return spare
            self._let_go(spare)
        item = self.vault.item()
        for folder in (NEW, WORK):
            (item.path / folder).mkdir(0o700)
        return item


@dataclass(slots=True)
class OverlayCapturing:
    """One command's layer."""

    launch: Launch
    overlay: Overlay
    item: Item
    capture: OverlayCapture
    since: int = field(init=False)

    def __post_init__(self) -> None:
        os.utime(self.overlay.upper)  # by the clock of the file system
        self.since = os.stat(self.overlay.upper).st_ctime_ns

    @property
    def name(self) -> str:
        """The item of the vault that holds the layer."""
        return self.item.name

    def finish(self) -> Delta:
        """What the command changed, ready to land."""
        # It may have closed the workspace's own folder. That does not land, and we have to look into it.
        os.chmod(self.overlay.upper, stat.S_IMODE(os.stat(self.overlay.lower).st_mode) | stat.S_IRWXU)
        over = self._over_quota()
        if over:
            return Delta((), "overlay", notes=(over,))
        owner = _owner(self.overlay.lower)
        listing = Listing(
            lambda path: f"{self.name}/{OLD}/{path}",
            lambda path: f"{self.name}/{NEW}/{path}",
            self.since,
            Cleaner(owner),
        )
        changes = listing.of(self.overlay.upper, self.overlay.lower)
        return Delta(tuple(changes), "overlay", notes=tuple(self._notes(listing)))

    def discard(self) -> None:
        """Remove what is left of the layer; what was displaced stays."""
        self.capture.give_back(self.item)

    def _over_quota(self) -> str:
        files = size = 0
        with Folder.at(self.overlay.upper) as upper:
            for found in everything_below(upper):
                files += 1
                size += 0 if stat.S_ISDIR(found.facts.st_mode) else found.facts.st_blocks * 512
                limit = self.overlay.most_bytes
                if size > limit:
                    return (
                        f"It wrote more than {limit >> 20:,} MiB to the workspace; nothing of it was kept."
                    )
                if files > self.overlay.most_files:
                    return f"It made more than {self.overlay.most_files:,} files; nothing of it was kept."
        return ""

    def _notes(self, listing: Listing) -> list[str]:
        cleaner = listing.cleaner
        notes: list[str] = []
        if cleaner.refused:
            refused = [f"`{path}` ({kind})" for path, kind in cleaner.refused.items()]
            notes.append(f"Not kept, being no files: {_few(refused)}.")
        if cleaner.stripped:
            notes.append(f"Privileges were taken from {_few([f'`{path}`' for path in cleaner.stripped])}.")
        if listing.stuck:
            notes.append(
                f"Pipes, sockets or devices stay: {_few([f'`{path}`' for path in listing.stuck])}."
            )
        if listing.closed:
            closed = _few([f"`{path}`" for path in listing.closed])
            notes.append(f"Folders that can't be looked into stay as they are: {closed}.")
        if listing.conflicts:
            kept = self._keep(listing)
            told = _few([f"`{path}`" for path in listing.conflicts])
            where = f" What the command wrote there is kept in {kept}." if kept else ""
            notes.append(
                f"Changed by someone else while the command ran, and left as they are: {told}.{where}"
            )
        return notes

    def _keep(self, listing: Listing) -> str:
        """Put the command's versions of what others changed where a person can find them."""
        shelf = f"{KEPT}/{self.name}"
        theirs = set(listing.conflicts)
        kept = [change for change in listing.changes if change.path in theirs and _held(change)]
        with Folder.at(self.overlay.upper) as upper:
            for change in kept:
                above, _, name = change.path.rpartition("/")
                with inner(upper, above) as folder:
                    self.capture.vault.put_in(f"{shelf}/{change.path}", folder, name)
        return os.fspath(self.capture.vault.folder / shelf) if kept else ""


def _cleared(work: Path) -> bool:
    """Whether a layer can be mounted once more: the kernel leaves a note that it was, which has to go."""
    own, note = work / "work", work / "work" / "incompat"
    try:
        for folder in (own, note, note / "volatile"):
            folder.chmod(0o700)
        shutil.rmtree(note)
    except OSError:
        return False
    return True


def _held(change: Change) -> bool:
    return change.after is not None and change.after.held is not None


def _owner(root: str) -> tuple[int, int] | None:
    if os.geteuid() != 0:
        return None
    found = os.stat(root)
    return found.st_uid, found.st_gid


def _few(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more


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


def problem(root: str | Path, vault: Vault) -> str:
    """Why a layer can't be put over the workspace here; empty when it can."""
    if not sys.platform.startswith("linux"):
        return "Layers need Linux."
    real = os.path.realpath(root)
    try:
        vault.folder.mkdir(0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=vault.folder, prefix=".probe-") as folder:
            upper, work = Path(folder, "upper"), Path(folder, "work")
            upper.mkdir()
            work.mkdir()
            words = options(
                Overlay(real, os.fspath(upper), os.fspath(work), real), as_root=os.geteuid() == 0
            )
            flags = NEW_MOUNTS | (NEW_USER if os.geteuid() else 0)
            done = programs.run(
                programs.python(),
                ["-ISc", _PROBE, str(flags), real, words],
                programs.Bounds(seconds=_PROBE_SECONDS),
            )
            for inner in work.iterdir():
                inner.chmod(0o700)
    except (OSError, programs.TookTooLong) as error:
        return f"A layer can't be made: {error}"
    return (
        f"A layer can't be mounted here: {done.errors.decode().strip().splitlines()[-1]}."
        if done.code
        else ""
    )
