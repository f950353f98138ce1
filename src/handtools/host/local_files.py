"""Local files: a workspace on this machine's disk, confined to its folder."""

import errno
import os
import stat
from collections.abc import Iterable, Sequence
from pathlib import Path

from handtools.core.changes import Change, Node
from handtools.core.errors import InvalidInput, Redirected, TooLarge, UsageError, WrongKind
from handtools.core.ports import FileFacts, Step
from handtools.host import git, landing, sparing, sweeping
from handtools.host.faults import fault
from handtools.host.folders import Folder, kind_of, not_a_file
from handtools.host.handles import Handles, Place
from handtools.host.marking import look
from handtools.host.mounts import is_near
from handtools.host.resolving import Root
from handtools.host.sparing import LARGE_BYTES
from handtools.host.staging import is_temporary, temporary_name
from handtools.host.vault import Vault
from handtools.host.watching import read_at

WHOLE_LIMIT_BYTES = 1 << 30
"""The largest file that is read in one piece."""
_MADE_UP_BYTES = 1 << 16
_MISSING = {errno.ENOENT, errno.ENOTDIR}


class LocalFiles:
    """Files below one folder. It holds nothing open, so there may be thousands of them.

    `kernel=False` resolves paths by hand even where the kernel can confine them.
    Of a file larger than `large_bytes` the old one goes to the vault as it is, where there is one.
    """

    def __init__(
        self,
        root: str | Path,
        *,
        vault: Vault | None = None,
        kernel: bool = True,
        large_bytes: int = LARGE_BYTES,
    ) -> None:
        self._root = Root(Path(root), kernel=kernel)
        self._vault = vault
        self._large_bytes = large_bytes
        self._near: bool | None = None

    @property
    def root(self) -> Path:
        """The workspace's folder, links resolved."""
        return Path(self._root.real)

    @property
    def vault(self) -> Vault | None:
        """Where held things are while they are not in the workspace."""
        return self._vault

    @property
    def quick(self) -> bool:
        """Whether the folder is on this machine: a small look is then answered from memory."""
        if self._near is None:
            self._near = is_near(self._root.real)
        return self._near

    def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        """The bytes of a regular file at a located path, or a part of them."""
        try:
            found, fd = self._root.found(self._root.exact(path))
            if fd is None:
                raise not_a_file(found, path)
            try:
                return _read(fd, found.st_size, path, start, size)
            finally:
                os.close(fd)
        except OSError as error:
            raise fault(error, path) from error

    def facts(self, path: str) -> FileFacts | None:
        """What is at a located path; None when nothing is."""
        inside = self._root.exact(path)
        try:
            return _facts(inside or ".", self._root.stat(inside))
        except OSError as error:
            if error.errno in _MISSING:
                return None
            raise fault(error, path) from error

    def names(self, path: str) -> list[FileFacts]:
        """What a folder holds, by name, links not followed; temporaries of ours are left out."""
        inside = self._root.exact(path)
        prefix = f"{inside}/" if inside else ""
        try:
            with self._root.straight(inside) as folder:
                found = [(name, folder.find(name)) for name in sorted(folder.names())]
        except OSError as error:
            if error.errno == errno.ENOTDIR and self.facts(path):
                raise WrongKind(f"`{path}` is not a folder.", hint="Read it instead.") from None
            raise fault(error, path) from error
        return [_facts(prefix + name, it) for name, it in found if it and not is_temporary(name)]

    def node(self, path: str, *, like: Node | None = None) -> Node | None:
        """What is at the path itself, with its bytes or seen as something held; links are not followed."""
        inside = self._root.exact(path)
        try:
            folder, name = self._root.holding(inside)
            with folder:
                if like is not None and like.held:
                    return look(folder, name, like=like)
                return _node(folder, name, path)
        except OSError as error:
            if error.errno in _MISSING:
                return None
            raise fault(error, path) from error

    def moved(self, path: str) -> str | None:
        """Where a file went, as far as the repository's history tells."""
        return git.moved(self._root.real, self._root.exact(path))

    def writable(self, path: str) -> bool:
        """Whether this user may write to what is there; a program that opens it would be let."""
        inside = self._root.exact(path)
        try:
            folder, name = self._root.holding(inside)
            with folder:
                return folder.writable(name)
        except OSError as error:
            raise fault(error, path) from error

    def locate(self, path: str) -> str:
        """The path with inner links resolved, as locks, rules and the record name it; it need not exist."""
        inside = self._root.relative(path)
        try:
            return self._root.locate(inside) or "."
        except OSError as error:
            raise fault(error, path) from error

    def plan(self, changes: Iterable[Change]) -> list[Step]:
        """Name the temporary of each step, and have large files moved and not copied; touches nothing."""
        return [Step(self._spared(change), temporary_name()) for change in changes]

    def perform(self, steps: Sequence[Step]) -> None:
        """Do all steps or none: each only if `before` is still there. Raises `Stale`, having undone the rest."""
        if steps:
            # The folders of located paths, and no others: a link that has come in between leads somewhere else.
            landing.land([self._exact(step) for step in steps], self._root.straight, self._vault)

    def sweep(self, step: Step) -> str | None:
        """After a crash: put away what a step left beside its target; says where bytes that are not ours went."""
        change = self._exact(step).change
        handles = Handles(self._root.straight)
        try:
            place = Place(handles, change.path, step.temporary, self._vault)
            return sweeping.sweep(place, change.before, change.after)
        except OSError as error:
            if error.errno not in _MISSING:
                raise fault(error, change.path) from error
            return None
        finally:
            handles.close()

    def _spared(self, change: Change) -> Change:
        if self._vault is None or not sparing.is_large(change, self._large_bytes):
            return change
        parent, _, name = self._root.exact(change.path).rpartition("/")
        try:
            with self._root.straight(parent) as folder:
                return sparing.spared(change, folder, name, self._vault, self._large_bytes)
        except (OSError, Redirected):
            return change  # not to be done at all, as will be seen

    def _exact(self, step: Step) -> Step:
        path = self._root.exact(step.change.path)
        if path == step.change.path and is_temporary(step.temporary):
            return step
        if not path or not is_temporary(step.temporary):
            raise UsageError("A step has a path below the workspace and a name given by `plan`.")
        return Step(Change(path, step.change.before, step.change.after), step.temporary)


def _facts(path: str, found: os.stat_result) -> FileFacts:
    kind = kind_of(found.st_mode)
    return FileFacts(
        path=path,
        kind=kind or "other",
        bytes=0 if kind == "folder" else found.st_size,
        mode=stat.S_IMODE(found.st_mode),
        modified=found.st_mtime,
        links=found.st_nlink,
    )


def _node(folder: Folder, name: str, path: str) -> Node | None:
    found = folder.find(name)
    if found is None:
        return None
    kind, mode = kind_of(found.st_mode), stat.S_IMODE(found.st_mode)
    if kind is None:
        raise WrongKind(f"`{path}` is a pipe, a socket or a device.", hint="Use another path.")
    if kind == "folder":
        return Node("folder", mode=mode)
    if kind == "link":
        return Node("link", folder.link_target(name))
    found, fd = folder.open_found(name)
    if fd is None:
        raise not_a_file(found, path)
    try:
        data = _read(fd, found.st_size, path, 0, None)
        return Node("file", data, stat.S_IMODE(found.st_mode))
    finally:
        os.close(fd)


def _read(fd: int, known: int, path: str, start: int, size: int | None) -> bytes:
    if start < 0 or (size is not None and size < 0):
        raise InvalidInput("`start` and `size` can't be negative.", hint="Count from 0.")
    # A size of 0 may be a file that the system makes up as it is read.
    wanted = max(known - start, 0) if known else _MADE_UP_BYTES
    if size is not None:
        wanted = min(size, wanted)
    if wanted > WHOLE_LIMIT_BYTES:
        limit = f"{WHOLE_LIMIT_BYTES >> 20} MiB"
        raise TooLarge(f"`{path}` holds more than {limit}.", hint="Read it in parts.")
    data = read_at(fd, wanted, start)
    while known and len(data) < wanted:
        more = read_at(fd, wanted - len(data), start + len(data))
        if not more:
            break
        data += more
    return data
