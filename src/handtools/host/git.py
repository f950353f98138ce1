"""Git: where a file went, from the history of its repository.

A repository's configuration can name programs, and an archive or a command can bring a repository along. So git
never sees one: it is given a folder of ours with a configuration of ours, in which only the objects are the
repository's. What its HEAD is we read ourselves. Objects are data; nothing in them is executed.
"""

import os
import re
import stat
import tempfile
from dataclasses import dataclass
from pathlib import Path

from handtools.host import programs
from handtools.host.small_files import small_text

COMMITS = 300
"""How far back renames are looked for."""
SECONDS = 2.0
_MEMORY_BYTES = 1 << 30
_STEPS = 20
_LARGE_BYTES = 64 << 20
_COMMIT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")
_REF = re.compile(r"refs(?:/[^/\0\s]+)+")
# A second wall: there is nothing left that these could switch off.
_SETTINGS = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false", "diff.external=",
    "safe.bareRepository=explicit", "protocol.allow=never",
)  # fmt: skip
_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0",
}  # fmt: skip
_ARGUMENTS = (
    "log", f"-n{COMMITS}", "--diff-filter=R", "-M", "--name-status", "--no-ext-diff", "--no-textconv", "-z",
    "--format=",
)  # fmt: skip


def moved(root: str | Path, path: str) -> str | None:
    """The path that a file has now, if commits renamed it; None when git does not say."""
    renames = _renames(os.path.realpath(root))
    now = path
    for _ in range(_STEPS):
        if now not in renames:
            break
        now = renames[now]
    return None if now == path else now


@dataclass(frozen=True, slots=True)
class _Repository:
    """What of a repository is used: data."""

    top: str
    """The folder that its paths are relative to."""
    objects: str
    head: str
    shallow: str
    """Commits whose parents are not here."""


def _renames(root: str) -> dict[str, str]:
    """The newest rename of each old name."""
    repository, program = _repository(root), programs.find("git", root)
    if repository is None or program is None:
        return {}
    within = os.path.relpath(root, repository.top)
    relative = "--relative" if within == "." else f"--relative={within}/"
    settings = [part for setting in _SETTINGS for part in ("-c", setting)]
    bounds = programs.Bounds(seconds=SECONDS, memory_bytes=_MEMORY_BYTES)
    try:
        with tempfile.TemporaryDirectory(prefix="handtools-git-") as folder:
            if not programs.outside(folder, root):
                return {}
            _furnish(Path(folder), repository)
            own = {"GIT_DIR": folder, "HOME": folder}
            done = programs.run(
                program,
                [*settings, "--no-pager", *_ARGUMENTS, relative, repository.head, "--"],
                bounds,
                cwd=folder,
                env=programs.environment() | _ENVIRONMENT | own,
            )
    except (OSError, programs.TookTooLong):
        return {}
    words = [os.fsdecode(word) for word in done.output.split(b"\0") if word]
    renames: dict[str, str] = {}
    for status, old, new in zip(words[::3], words[1::3], words[2::3], strict=False):
        if status.lstrip("\n").startswith("R"):
            renames.setdefault(old, new)
    return renames


def _furnish(folder: Path, repository: _Repository) -> None:
    """Make a repository of ours around the objects."""
    long = len(repository.head) == 64
    version = "1\n[extensions]\n\tobjectFormat = sha256\n[core]" if long else "0"
    (folder / "config").write_text(
        f"[core]\n\trepositoryFormatVersion = {version}\n\tbare = true\n", "ascii"
    )
    (folder / "HEAD").write_text(f"{repository.head}\n", "ascii")
    (folder / "refs").mkdir()
    (folder / "objects").symlink_to(repository.objects)
    if repository.shallow:
        (folder / "shallow").write_text(repository.shallow, "ascii")


def _repository(root: str) -> _Repository | None:
    """The repository that holds the workspace: the nearest folder above it with a `.git` decides."""
    for folder in (Path(root), *Path(root).parents):
        place = folder / ".git"
        if _is_folder(place):
            return _opened(folder, place, place)
        if os.path.lexists(place):
            return _worktree(folder, place)
    return None


def _worktree(top: Path, link: Path) -> _Repository | None:
    record = worktree_record(link)
    return None if record is None else _opened(top, record, record.parents[1])


def worktree_record(link: Path) -> Path | None:
    """Where the repository of a linked worktree has it on record: only if that names the worktree, too.

    The repository is the second folder above, not what its `commondir` says: that could be any of this machine.
    """
    written = small_text(link).removeprefix("gitdir:").strip()
    record = Path(os.path.normpath(link.parent / written)) if written and "\0" not in written else None
    if record is None or record.parent.name != "worktrees":
        return None
    return record if small_text(record / "gitdir").strip() == os.fspath(link) else None


def _opened(top: Path, own: Path, shared: Path) -> _Repository | None:
    head, objects = _head(own, shared), shared / "objects"
    if not head or not _is_folder(objects):
        return None
    cut = [
        commit
        for commit in small_text(shared / "shallow", _LARGE_BYTES).split()
        if _COMMIT.fullmatch(commit)
    ]
    return _Repository(os.fspath(top), os.fspath(objects), head, "".join(f"{commit}\n" for commit in cut))


def _is_folder(path: Path) -> bool:
    """Whether it is one itself, not a link to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _head(own: Path, shared: Path) -> str:
    """The commit that HEAD means; empty when it can't be told."""
    value = small_text(own / "HEAD").strip()
    for _ in range(_STEPS):
        if not value.startswith("ref:"):
            break
        name = value.removeprefix("ref:").strip()
        if not _REF.fullmatch(name) or ".." in name.split("/"):
            return ""
        # A link on the way could lead to the refs of any repository.
        straight = os.path.realpath(shared / name) == os.path.join(os.path.realpath(shared), name)
        value = (straight and small_text(shared / name).strip()) or _packed(shared, name)
    return value if _COMMIT.fullmatch(value) else ""


def _packed(shared: Path, name: str) -> str:
    for line in small_text(shared / "packed-refs", _LARGE_BYTES).splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""
