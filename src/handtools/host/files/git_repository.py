"""Read a git repository without trusting its configuration: renames, commits, excludes, tracked content.

This is the only module that starts git. A repository's configuration can name programs to run, and an
archive or a command can create such a repository. So git never reads that configuration: it runs in a
temporary repository with our own configuration that links only the objects. HEAD is parsed here. Objects
are data and are never executed.
"""

import contextlib
import hashlib
import os
import re
import shutil
import stat
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from handtools.core.errors import HostError, TooLarge, UsageError
from handtools.host import programs
from handtools.host.files import syscalls
from handtools.host.files.change_detection import FileState, file_state
from handtools.host.files.folder_handle import FolderHandle
from handtools.host.files.folder_trees import walk_tree
from handtools.host.files.syscalls import SETTINGS_BYTES, read_bytes_at, read_small_text
from handtools.text.git_config import BadGitConfig, parse_git_config

_GITDIR_PREFIX = "gitdir: "
_EXCLUDE_BYTES = 1 << 20


def repository_folders_above(root: str) -> tuple[str, ...]:
    """Return the folders from the git repository's top down to the workspace's parent.

    Empty if the workspace has its own `.git` or is not in a repository.
    """
    if os.path.lexists(os.path.join(root, ".git")):
        return ()
    above = [str(folder) for folder in Path(root).parents]
    for depth, folder in enumerate(above, 1):
        if os.path.lexists(os.path.join(folder, ".git")):
            return tuple(reversed(above[:depth]))
    return ()


def worktree_excludes(folder: str) -> str:
    """Return the text of `info/exclude` for a linked worktree, whose `.git` is a file; empty if there is none."""
    try:
        own = _first_line(os.path.join(folder, ".git"))
        if not own.startswith(_GITDIR_PREFIX):
            return ""
        git = os.path.join(folder, own.removeprefix(_GITDIR_PREFIX))
        shared = os.path.join(git, _first_line(os.path.join(git, "commondir")))
        excludes = os.path.join(shared, "info", "exclude")
        return (
            read_small_text(excludes, _EXCLUDE_BYTES)
            if is_regular_file_without_symlinks(excludes, folder)
            else ""
        )
    except (OSError, ValueError):
        return ""


def is_regular_file_without_symlinks(path: str, root: str) -> bool:
    """Whether a path is a regular file that is reached without symlinks inside the root.

    Ignore rules are read only from such files. A symlink may point to a private file, and the names that
    its rules hide would reveal its contents.
    """
    try:
        plain = stat.S_ISREG(os.lstat(path).st_mode)
    except (OSError, ValueError):
        return False
    written = os.path.normpath(path)
    return plain and (not written.startswith(f"{root}/") or os.path.realpath(path) == written)


def _first_line(path: str) -> str:
    return read_small_text(path, _EXCLUDE_BYTES).partition("\n")[0].rstrip("\r")


RENAME_COMMITS = 300
"""How many commits are searched for renames."""
GIT_LOG_SECONDS = 2.0
_GIT_MEMORY_BYTES = 1 << 30
_MAX_HOPS = 20
_MAX_REFS_BYTES = 64 << 20
_LOG_LIMITS = programs.ProgramLimits(seconds=GIT_LOG_SECONDS, memory_bytes=_GIT_MEMORY_BYTES)
MAX_COMMIT_BYTES = 64 << 30
"""The largest total size of a commit's files, in bytes; a larger commit is not checked out."""
_LISTING_BYTES = 512 << 20
_COMMIT_LIMITS = programs.ProgramLimits(
    seconds=600.0, memory_bytes=4 * _GIT_MEMORY_BYTES, file_bytes=MAX_COMMIT_BYTES
)
_LISTING_LIMITS = programs.ProgramLimits(
    seconds=600.0, memory_bytes=_GIT_MEMORY_BYTES, output_bytes=_LISTING_BYTES
)
GIT_PACK_SECONDS = 60.0
"""How long git may take to verify a pack; one that takes longer counts as not verified."""
_PACK_LIMITS = programs.ProgramLimits(seconds=GIT_PACK_SECONDS, memory_bytes=_GIT_MEMORY_BYTES)
_MISSING_OBJECTS_HINT = (
    "Objects missing from a partial clone, or borrowed from another repository, can't be read. "
    "Use a full clone."
)
_LOOSE_FOLDER = re.compile("[0-9a-f]{2}")
_COMMIT = re.compile(r"(?:[0-9a-f]{40}|[0-9a-f]{64})")
_COMMIT_START = re.compile(r"[0-9a-f]{4,64}")
_COMMIT_NAME = re.compile(r"(?P<name>[^~^\s-][^~^\s]*)(?P<steps>(?:[~^][0-9]{0,4}){0,20})")
_REF = re.compile(r"refs(?:/[^/\0\s]+)+")
# Defense in depth: our configuration enables none of these.
_GIT_SETTINGS = (
    "core.fsmonitor=false", "core.hooksPath=/dev/null", "log.showSignature=false", "diff.external=",
    "safe.bareRepository=explicit", "protocol.allow=never",
)  # fmt: skip
_GIT_ENVIRONMENT = {
    "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "none", "GIT_NO_LAZY_FETCH": "1", "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0", "GIT_TERMINAL_PROMPT": "0",
}  # fmt: skip
_GIT_LOG_ARGS = (
    "log", f"-n{RENAME_COMMITS}", "--diff-filter=R", "-M", "--name-status", "--no-ext-diff", "--no-textconv", "-z",
    "--format=",
)  # fmt: skip


def path_after_git_renames(root: str | Path, path: str, *, workspace: str | Path = "") -> str | None:
    """Return the current path of a file that commits have renamed; None if there is no rename.

    The git program must not come from `workspace`, which defaults to `root`.
    """
    renames = _renames(os.path.realpath(root), workspace or root)
    now = path
    for _ in range(_MAX_HOPS):
        if now not in renames:
            break
        now = renames[now]
    return None if now == path else now


@dataclass(frozen=True, slots=True)
class _Repository:
    """The parts of a git repository that are read: its top folder, objects, HEAD and shallow commits."""

    top: str
    """The folder to which paths in the repository are relative."""
    objects: str
    head: str
    shallow: str
    """The content of git's `shallow` file: commits whose parents are missing."""
    shared: str
    """The folder with the refs."""

    def commit_named(self, name: str) -> str:
        """Return the commit id, maybe abbreviated, for `HEAD`, a branch, a tag or an id; empty if not found."""
        if name == "HEAD":
            return self.head
        refs = (name, f"refs/heads/{name}", f"refs/tags/{name}", f"refs/remotes/{name}")
        found = (_ref_value(Path(self.shared), ref) for ref in refs if _is_plain_ref(ref))
        commit = next((value for value in found if _COMMIT.fullmatch(value)), "")
        return commit or (name if _COMMIT_START.fullmatch(name) else "")


def commit_time(root: str | Path, name: str) -> float | None:
    """Return a commit's time in seconds since 1970; None if there is no such commit.

    `name` is an id, an abbreviated id, `HEAD`, a branch or a tag, optionally followed by `~2` or `^`.
    """
    place = os.path.realpath(root)
    repository = _find_repository(place)
    found = _COMMIT_NAME.fullmatch(name)
    if repository is None or found is None:
        return None
    commit = repository.commit_named(found["name"])
    if not commit:
        return None
    output = _run_git(repository, root, ["log", "-n1", "--format=%ct", f"{commit}{found['steps']}", "--"])
    return float(output) if output.strip().isdigit() else None


def _renames(root: str, workspace: str | Path) -> dict[str, str]:
    """Map each old path to its newest one, from the renames in the repository's history."""
    repository = _find_repository(root)
    if repository is None:
        return {}
    within = os.path.relpath(root, repository.top)
    relative = "--relative" if within == "." else f"--relative={within}/"
    output = _run_git(repository, workspace, [*_GIT_LOG_ARGS, relative, repository.head, "--"])
    words = [os.fsdecode(word) for word in output.split(b"\0") if word]
    renames: dict[str, str] = {}
    for status, old, new in zip(words[::3], words[1::3], words[2::3], strict=False):
        if status.lstrip("\n").startswith("R"):
            renames.setdefault(old, new)
    return renames


def _run_git(repository: _Repository, workspace: str | Path, args: Sequence[str]) -> bytes:
    """Run git in a temporary repository with the same objects; returns its output, empty on failure."""
    try:
        with tempfile.TemporaryDirectory(prefix="handtools-git-") as folder:
            if not programs.is_outside_workspace(folder, workspace):
                return b""
            _make_bare_repository(Path(folder), repository)
            done = _run_git_in_folder(Path(folder), args, _LOG_LIMITS, workspace=workspace)
    except (OSError, programs.ProgramTimeout):
        return b""
    return done.output if done is not None else b""


def _run_git_in_folder(
    own: Path,
    args: Sequence[str],
    bounds: programs.ProgramLimits,
    *,
    workspace: str | Path = "",
    work_tree: Path | None = None,
    given: str = "",
) -> programs.ProgramResult | None:
    """Run git in `own`, a repository with our configuration, with `given` as stdin; None if git is missing."""
    program = programs.find_program("git", workspace)
    if program is None:
        return None
    settings = [part for setting in _GIT_SETTINGS for part in ("-c", setting)]
    folders = {"GIT_DIR": os.fspath(own), "HOME": os.fspath(own)}
    if work_tree is not None:
        folders["GIT_WORK_TREE"] = os.fspath(work_tree)
    with programs.anonymous_file() as stdin:
        stdin.write(given.encode("ascii"))
        stdin.seek(0)
        return programs.run_program(
            program,
            [*settings, "--no-pager", *args],
            bounds,
            cwd=work_tree or own,
            env=programs.minimal_environment() | _GIT_ENVIRONMENT | folders,
            stdin=stdin,
        )


def _make_bare_repository(folder: Path, repository: _Repository) -> None:
    """Create a bare repository in `folder` with our configuration and the repository's objects."""
    _write_repository_files(folder, repository.head, is_bare=True)
    (folder / "HEAD").write_text(f"{repository.head}\n", "ascii")
    if repository.shallow:
        (folder / "shallow").write_text(repository.shallow, "ascii")
    _link_objects(repository.objects, folder / "objects")


def _write_repository_files(folder: Path, commit: str, *, is_bare: bool) -> None:
    """Create the folders and configuration of a repository without objects."""
    for inner in ("refs/heads", "objects/pack"):
        (folder / inner).mkdir(parents=True)
    is_long = len(commit) == 64
    version = "1\n[extensions]\n\tobjectFormat = sha256\n[core]" if is_long else "0"
    settings = [f"repositoryFormatVersion = {version}", f"bare = {str(is_bare).lower()}", "fileMode = true"]
    text = "".join(f"\t{setting}\n" for setting in settings)
    (folder / "config").write_text(f"[core]\n{text}", "ascii")


def _link_objects(source: str, target: Path) -> None:
    """Link the loose-object folders and packs of a repository, and nothing else in its `objects` folder.

    `info/alternates` is left out because it can name objects anywhere on this machine. Symlinks are
    skipped.
    """
    for each in os.scandir(source):
        if _LOOSE_FOLDER.fullmatch(each.name) and each.is_dir(follow_symlinks=False):
            (target / each.name).symlink_to(each.path)
    packs = os.path.join(source, "pack")
    for each in os.scandir(packs) if _is_folder(packs) else ():
        if each.name.endswith((".pack", ".idx")) and each.is_file(follow_symlinks=False):
            (target / "pack" / each.name).symlink_to(each.path)


def verify_pack(files: Mapping[str, str], id_chars: int, workspace: str | Path) -> bool:
    """Whether the index and the reverse index of a git pack are correct.

    `files` are the absolute paths by suffix: `pack`, `idx` and optionally `rev`. With a forged index, git
    would show different content for an object id.
    """
    states = tuple((suffix, path, file_state(path)) for suffix, path in sorted(files.items()))
    return all(state for *_, state in states) and _verify_pack(states, id_chars, str(workspace))


@lru_cache(maxsize=16)
def _verify_pack(states: tuple[tuple[str, str, FileState], ...], id_chars: int, workspace: str) -> bool:
    reverse = "--rev-index" if "rev" in [suffix for suffix, *_ in states] else "--no-rev-index"
    try:
        with tempfile.TemporaryDirectory(prefix="handtools-git-") as folder:
            if not programs.is_outside_workspace(folder, workspace):
                return False
            own, commit = Path(folder), "0" * id_chars
            _write_repository_files(own, commit, is_bare=True)
            (own / "HEAD").write_text(f"{commit}\n", "ascii")
            for suffix, path, _ in states:
                (own / f"checked.{suffix}").symlink_to(path)
            args = ["index-pack", "--verify", reverse, "checked.pack"]
            done = _run_git_in_folder(own, args, _PACK_LIMITS, workspace=workspace)
    except (OSError, programs.ProgramTimeout):
        return False
    return done is not None and done.code == 0


def head_commit(folder: Path) -> str:
    """Return the commit id of HEAD in a folder's `.git` repository; empty if there is none."""
    own = folder / ".git"
    return _head_commit(own, own) if _is_folder(own) else ""


def write_commit(repository: str | Path, name: str, tree: Path, *, with_repository: bool) -> str:
    """Check out a commit of a repository into the new folder `tree`; returns the commit's id.

    `tree` gets a repository with only that commit and our own configuration, unless `with_repository` is
    False. Every object's hash is verified. `name` is as for `commit_time`. Raises `UsageError` if the
    commit does not exist or objects are missing.
    """
    source = _repository_at(os.path.realpath(repository))
    if source is None:
        raise UsageError(
            f"{os.fspath(repository)[:200]} is not a readable git repository with at least one commit."
        )
    own = tree / ".git"
    with tempfile.TemporaryDirectory(prefix="handtools-git-", dir=tree.parent) as folder:
        _make_bare_repository(Path(folder), source)
        commit = _commit_id(Path(folder), source, name)
        _write_repository_files(own, commit, is_bare=False)
        # The parents are not copied: the new repository is shallow.
        wanted = f"--shallow {commit}\n{commit}\n"
        _git_output(
            Path(folder), ["pack-objects", "--revs", "-q", f"{own}/objects/pack/pack"], given=wanted
        )
    for file, text in (
        ("HEAD", "ref: refs/heads/main"),
        ("refs/heads/main", commit),
        ("shallow", commit),
    ):
        (own / file).write_text(f"{text}\n", "ascii")
    for pack in (own / "objects" / "pack").glob("*.pack"):
        # Rebuild the index, so that each object is listed under its real hash.
        pack.with_suffix(".idx").unlink()
        _git_output(own, ["index-pack", os.fspath(pack)])
    _check_commit_size(own, commit)
    _git_output(own, ["read-tree", commit], work_tree=tree)
    _git_output(own, ["checkout-index", "--all", "--index", "--quiet"], work_tree=tree)
    if not with_repository:
        shutil.rmtree(own)
    _set_checkout_modes(tree)
    return commit


def _repository_at(place: str) -> _Repository | None:
    """Return the repository that contains a folder, or the folder itself if it is a bare repository."""
    is_bare = not os.path.lexists(os.path.join(place, ".git")) and all(
        _is_folder(os.path.join(place, part)) for part in ("objects", "refs")
    )
    here = Path(place)
    return _read_repository(here, here, here) if is_bare else _find_repository(place)


def _commit_id(own: Path, source_repository: _Repository, name: str) -> str:
    parts = _COMMIT_NAME.fullmatch(name)
    start = source_repository.commit_named(parts["name"]) if parts is not None else ""
    if parts is None or not start:
        raise UsageError(
            f"There is no commit {name[:200]!r} in {source_repository.top}. Use a commit id, a branch or a tag."
        )
    wanted = f"{start}{parts['steps']}^{{commit}}"
    return _git_output(own, ["rev-parse", "--verify", wanted]).decode("ascii").strip()


def _git_output(own: Path, args: Sequence[str], *, work_tree: Path | None = None, given: str = "") -> bytes:
    try:
        done = _run_git_in_folder(own, args, _COMMIT_LIMITS, work_tree=work_tree, given=given)
    except programs.ProgramTimeout as late:
        raise UsageError(f"Can't read the commit: {late}.") from late
    if done is None:
        raise HostError("Templates from commits need git, which is not installed.")
    if done.code:
        said = done.errors.decode(errors="replace").strip()[:500] or f"git {args[0]} failed: {done.code}"
        raise UsageError(f"Can't read the commit: {said}. {_MISSING_OBJECTS_HINT}")
    return done.output


def _check_commit_size(own: Path, commit: str) -> None:
    """Raise `TooLarge` for a commit that would fill the disk: small trees can expand exponentially."""
    rows: list[bytes] = []
    with contextlib.suppress(programs.ProgramTimeout):
        listed = _run_git_in_folder(
            own, ["ls-tree", "-r", "-l", "-z", "--full-tree", commit], _LISTING_LIMITS
        )
        rows = listed.output.split(b"\0") if listed is not None and not listed.code else []
    sizes = [size for row in rows if (size := row.partition(b"\t")[0].rpartition(b" ")[2]).isdigit()]
    if not rows or sum(map(int, sizes)) > MAX_COMMIT_BYTES:
        raise TooLarge(
            f"The commit exceeds {MAX_COMMIT_BYTES >> 30} GiB or {_LISTING_BYTES >> 20} MiB of names.",
            hint="Use a smaller commit.",
        )


def _set_checkout_modes(tree: Path) -> None:
    """Set files and folders to the modes they have in git, regardless of our umask."""
    with FolderHandle.at(os.fspath(tree)) as top:
        for entry in walk_tree(top):
            wanted = 0o755 if entry.mode & 0o100 else 0o644
            if entry.kind != "link" and not entry.path.startswith(".git/"):
                entry.set_mode(wanted)


def _find_repository(root: str) -> _Repository | None:
    """Find the repository of a folder: the nearest `.git` in it or above it."""
    for folder in (Path(root), *Path(root).parents):
        place = folder / ".git"
        if _is_folder(place):
            return _read_repository(folder, place, place)
        if os.path.lexists(place):
            return _worktree_repository(folder, place)
    return None


def _worktree_repository(top: Path, link: Path) -> _Repository | None:
    record = worktree_git_folder(link)
    return None if record is None else _read_repository(top, record, record.parents[1])


def worktree_git_folder(link: Path) -> Path | None:
    """Return the `.git/worktrees/NAME` folder of a linked worktree; None unless its `gitdir` points back to it.

    The repository is two folders up. `commondir` is not used: it could name any repository on this machine.
    """
    written = read_small_text(link).removeprefix("gitdir:").strip()
    record = Path(os.path.normpath(link.parent / written)) if written and "\0" not in written else None
    if record is None or record.parent.name != "worktrees":
        return None
    return record if read_small_text(record / "gitdir").strip() == os.fspath(link) else None


def _read_repository(top: Path, own: Path, shared: Path) -> _Repository | None:
    head, objects = _head_commit(own, shared), shared / "objects"
    if not head or not _is_folder(objects):
        return None
    cut = [
        commit
        for commit in read_small_text(shared / "shallow", _MAX_REFS_BYTES).split()
        if _COMMIT.fullmatch(commit)
    ]
    shallow = "".join(f"{commit}\n" for commit in cut)
    return _Repository(os.fspath(top), os.fspath(objects), head, shallow, os.fspath(shared))


def _is_folder(path: Path | str) -> bool:
    """Whether a path is a folder, not a symlink to one."""
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _head_commit(own: Path, shared: Path) -> str:
    """Return the commit id of HEAD, through a branch or packed refs; empty if it can't be found."""
    value = read_small_text(own / "HEAD").strip()
    for _ in range(_MAX_HOPS):
        if not value.startswith("ref:"):
            break
        name = value.removeprefix("ref:").strip()
        if not _is_plain_ref(name):
            return ""
        value = _ref_value(shared, name)
    return value if _COMMIT.fullmatch(value) else ""


def _is_plain_ref(name: str) -> bool:
    return _REF.fullmatch(name) is not None and ".." not in name.split("/")


def _ref_value(shared: Path, name: str) -> str:
    # A symlink in the path could lead to the refs of another repository.
    straight = os.path.realpath(shared / name) == os.path.join(os.path.realpath(shared), name)
    return (straight and read_small_text(shared / name).strip()) or _packed_ref(shared, name)


def _packed_ref(shared: Path, name: str) -> str:
    for line in read_small_text(shared / "packed-refs", _MAX_REFS_BYTES).splitlines():
        commit, _, ref = line.partition(" ")
        if ref == name:
            return commit
    return ""


_MAX_INDEX_BYTES = 64 << 20


def git_index_above(root: str, path: str) -> str:
    """Return the index file of the nearest git repository above a path, up to `root`; empty if none."""
    folder = path
    while folder:
        folder = os.path.dirname(folder)
        place = os.path.join(root, folder, ".git")
        if not os.path.lexists(place):
            continue
        if _is_folder(place):
            return f"{place}/index"
        link = Path(place)
        own = worktree_git_folder(link) or _submodule_git_folder(root, link)
        return "" if own is None else os.fspath(own / "index")
    return ""


def git_index_lists(index: str, state: FileState, data: bytes) -> bool:
    """Whether a git index file, in this state, lists a file with exactly these bytes.

    The check is by hash, not by name: a command that can add the hash to an index already has the bytes, so
    a forged index reveals nothing new to it.
    """
    header = b"blob %d\0" % len(data)
    digests = (hashlib.sha1(header, usedforsecurity=False), hashlib.sha256(header))
    for digest in digests:
        digest.update(data)
    listed = _read_index(index, state)
    return any(digest.digest() in listed for digest in digests)


def _submodule_git_folder(root: str, link: Path) -> Path | None:
    """Return the `.git/modules/NAME` folder of a submodule; None if its `.git` file points elsewhere."""
    written = read_small_text(link).removeprefix("gitdir:").strip()
    folder = os.path.normpath(link.parent / written) if written and "\0" not in written else ""
    inside = folder.startswith(f"{root}/") and "/.git/modules/" in folder
    return Path(folder) if inside and os.path.realpath(folder) == folder else None


@lru_cache(maxsize=2)
def _read_index(path: str, state: FileState) -> bytes:
    if not state or state[2] > _MAX_INDEX_BYTES:
        return b""
    try:
        fd = os.open(path, os.O_RDONLY | syscalls.OPEN_FLAGS | syscalls.NO_FOLLOW)
    except OSError:
        return b""
    try:
        return read_bytes_at(fd, state[2], 0)
    finally:
        os.close(fd)


_PASSED_ON_KEYS = ("user.name", "user.email", "init.defaultbranch")
"""The user's git settings that commands get: identity and default branch. None of them runs a program."""
SYSTEM_GIT_CONFIG = "/etc/gitconfig"


def passed_on_git_config(home: str) -> str:
    """Return a git configuration with the user's identity, for commands that can't see the user's home."""
    # The second file wins, as in git.
    files = (os.path.join(home, ".config/git/config"), os.path.join(home, ".gitconfig"))
    return _passed_on_git_config(tuple((file, file_state(os.path.realpath(file))) for file in files))


@lru_cache(maxsize=4)
def _passed_on_git_config(files: tuple[tuple[str, FileState], ...]) -> str:
    found: dict[str, str] = {}
    for file, _ in files:
        try:
            config = parse_git_config(
                read_small_text(file, SETTINGS_BYTES, links=True).encode("utf-8", "replace")
            )
        except BadGitConfig:
            continue
        found |= {key: value for key in _PASSED_ON_KEYS if (value := config.get(key, (None,))[-1])}
    rows = [
        ("include", "path", SYSTEM_GIT_CONFIG),
        *((*key.split("."), value) for key, value in found.items()),
    ]
    return "".join(f"[{section}]\n\t{name} = {_quoted(value)}\n" for section, name, value in rows)


def _quoted(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("\t", "\\t")
    return f'"{escaped}"'
