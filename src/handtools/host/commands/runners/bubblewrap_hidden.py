"""Hidden: what must not be seen, looked up on the machine: secrets of the system, sockets, private files."""

import os
import stat
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from handtools.core.errors import HostError
from handtools.host.commands.runners.bubblewrap_profile import SYSTEM, Masks
from handtools.host.git import worktree_record

_LISTENING = "/proc/net/unix"


@cache
def system_secrets() -> Masks:
    """What of /etc is not for everybody, as far as this user could read it."""
    files: list[str] = []
    folders: list[str] = []
    for folder, names, plain in os.walk("/etc"):
        shut = [name for name in names if not _for_all(os.path.join(folder, name), 0o005)]
        folders += [os.path.join(folder, name) for name in shut]
        names[:] = [name for name in names if name not in shut]
        paths = [os.path.join(folder, name) for name in plain]
        files += [path for path in paths if not _for_all(path, 0o004) and os.stat(path).st_size]
    return Masks(
        tuple(path for path in files if os.access(path, os.R_OK)),
        tuple(path for path in folders if os.access(path, os.X_OK)),
    )


def _for_all(path: str, bits: int) -> bool:
    """Whether everybody may read it; a link says nothing by itself."""
    try:
        mode = os.lstat(path).st_mode
    except OSError:
        return True
    return stat.S_ISLNK(mode) or mode & bits == bits


def visible_sockets(root: str) -> list[str]:
    """Sockets of running programs in folders that a command sees: a read-only mount does not close them."""
    try:
        rows = Path(_LISTENING).read_text("utf-8", "surrogateescape").splitlines()[1:]
    except OSError:
        return []
    seen = tuple(f"{tree.rstrip('/')}/" for tree in (root, *SYSTEM))
    paths = {row.split(None, 7)[7] for row in rows if row.count(" /")}
    return sorted(path for path in paths if path.startswith(seen) and os.path.exists(path))


def masks(root: str, private: Iterable[str]) -> Masks:
    """Private paths of a workspace as what is really there; what leads out of it can't be reached anyway."""
    files: list[str] = []
    folders: list[str] = []
    for path in private:
        real = os.path.realpath(path)
        if not Path(real).is_relative_to(root) or real == root:
            continue
        if os.path.isdir(real):
            folders.append(real)
        elif os.path.exists(real):
            files.append(real)
    # What lies in a masked folder is gone with it.
    shut = tuple(f"{folder}/" for folder in folders)
    return Masks(
        tuple(sorted({path for path in files if not path.startswith(shut)})),
        tuple(sorted({path for path in folders if not path.startswith(shut)})),
    )


def fitted(masks: Masks, root: str, *, most: int) -> tuple[Masks, tuple[str, ...]]:
    """At most so many masks: where there are more, folders with many private files are hidden whole, and told."""
    files, folders = list(masks.files), list(masks.folders)
    notes = []
    while len(files) + len(folders) > most:
        held = Counter(os.path.dirname(path) for path in files)
        held.pop(root, None)
        if not held:
            raise HostError(
                f"The workspace holds private files in {len(files) + len(folders):,} places; at most {most:,} "
                "can be hidden from a command that writes to it directly. Run it without `live`, move them into "
                "one folder, or say in the policy that they are not private."
            )
        shut = held.most_common(1)[0][0]
        files = [path for path in files if not path.startswith(f"{shut}/")]
        folders = [*(path for path in folders if not path.startswith(f"{shut}/")), shut]
        notes.append(
            f"`{os.path.relpath(shut, root)}` is hidden from it whole: it holds too many private files."
        )
    return Masks(tuple(files), tuple(folders)), tuple(notes)


def kept_paths(root: str, read_only: Iterable[str]) -> list[str]:
    """Paths of the workspace that must not be written, as far as they exist; a worktree's record too."""
    found = []
    for path in read_only:
        real = os.path.realpath(path)
        if os.path.exists(real) and Path(real).is_relative_to(root) and real != root:
            found.append(real)
    record = _worktree_record(root)
    return [*sorted(found), *([record] if record else [])]


def _worktree_record(root: str) -> str | None:
    """The repository of a linked worktree, which lies elsewhere: only if it says so, too."""
    record = worktree_record(Path(root, ".git"))
    real = os.path.realpath(record.parents[1]) if record else ""
    return real if real and os.path.isfile(f"{real}/HEAD") else None
