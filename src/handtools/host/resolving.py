"""Resolving: from a path the model wrote to a handle below the workspace, nothing trusted on the way."""

import errno
import os
import stat
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from handtools.core.errors import OutsideWorkspace
from handtools.host import syscalls
from handtools.host.folders import ENTERED, FOLDER, Folder
from handtools.text.paths import BadPath, relative

LINK_LIMIT = 40
RACE_LIMIT = 32
_ODD_PARTS = {"", ".", ".."}
_CONFINED = syscalls.BENEATH | syscalls.NO_MAGIC_LINKS
_LINKLESS = syscalls.BENEATH | syscalls.NO_LINKS
_WALK_INSTEAD = {errno.EXDEV, errno.EAGAIN, errno.ELOOP, errno.EPERM, errno.ENOSYS}
"""Absolute links that come back inside, lost races: what the kernel refuses, the walk looks at again."""


@dataclass(frozen=True, slots=True)
class Spot:
    """A name in an open folder, with the links before it resolved; the reader closes the folder."""

    folder: Folder
    name: str
    path: str
    """The real path below the workspace; empty for the workspace itself."""
    found: os.stat_result | None


class Root:
    """The workspace's folder. It is opened anew for each use: no handle at rest, and a replaced folder is seen."""

    def __init__(self, path: Path, *, kernel: bool) -> None:
        self.given = os.path.abspath(path)
        self.real = os.path.realpath(path)
        self._kernel = kernel and syscalls.HANDLES

    def relative(self, path: str) -> str:
        """The path below the workspace, `""` for the workspace itself; `OutsideWorkspace` for any other."""
        try:
            inside = relative(path, self.given)
        except BadPath as problem:
            try:
                inside = relative(path, self.real)
            except BadPath:
                raise _refusal(path, problem, self.given) from None
        return "" if inside == "." else inside

    def exact(self, path: str) -> str:
        """The same for a path that we gave out ourselves: any name that a disk can hold is good."""
        plain = _ODD_PARTS.isdisjoint(path.split("/")) and "\0" not in path
        return path if plain and (path.isascii() or _encodes(path)) else self.relative(path)

    def enter(self, path: str, *, flags: int = syscalls.PATH_ONLY) -> int | None:
        """A path-only handle of what is there, links followed; None where the kernel can't confine it."""
        if not (self._kernel and syscalls.confines()):
            return None
        with Folder.at(self.real) as root:
            return _beneath(root, path or ".", flags, _CONFINED)

    def folder(self, path: str, *, flags: int = ENTERED) -> Folder:
        """Open a folder, links followed."""
        if not path:
            return Folder.at(self.real, flags=flags)
        handle = self.enter(path, flags=flags)
        if handle is None:
            spot = self.spot(path, follow=True)
            with spot.folder:
                return spot.folder.child(spot.name, flags=flags)
        return Folder(handle, os.path.join(self.real, path))

    def straight(self, path: str) -> Folder:
        """Open a folder to which no link leads; `NotADirectoryError` when one does."""
        folder = Folder.at(self.real)
        for part in path.split("/") if path else ():
            try:
                inner = folder.child(part)
            finally:
                folder.close()
            folder = inner
        return folder

    def locate(self, path: str) -> str:
        """The real path below the workspace, whether or not anything is there."""
        spot = self._spot(path, follow=True, lenient=True)
        spot.folder.close()
        return spot.path

    def spot(self, path: str, *, follow: bool) -> Spot:
        """The folder that holds a path, and its name there; with `follow`, past a link at the end too."""
        return self._spot(path, follow=follow, lenient=False)

    def _spot(self, path: str, *, follow: bool, lenient: bool) -> Spot:
        root = Folder.at(self.real)
        try:
            spot = self._quick_spot(root, path)
            if spot and not (follow and spot.found and stat.S_ISLNK(spot.found.st_mode)):
                if spot.folder is not root:
                    root.close()
                return spot
            if spot and spot.folder is not root:
                spot.folder.close()
            walk = _Walk(root, (self.real, self.given), lenient=lenient)
            return walk.to(path, follow=follow)
        except BaseException:
            root.close()
            raise

    def _quick_spot(self, root: Folder, path: str) -> Spot | None:
        """The common case: not a single link on the way."""
        if not path or not (self._kernel and syscalls.confines()):
            return None
        above, _, name = path.rpartition("/")
        if not above:
            return Spot(root, name, path, root.find(name))
        try:
            fd = _beneath(root, above, FOLDER, _LINKLESS)
        except (FileNotFoundError, NotADirectoryError):  # the latter also for a link at its end
            return None
        if fd is None:
            return None
        folder = Folder(fd, os.path.join(root.path, above))
        try:
            return Spot(folder, name, path, folder.find(name))
        except BaseException:
            folder.close()
            raise


class _Walk:
    """Going part by part with handles, reading links ourselves."""

    def __init__(self, root: Folder, prefixes: tuple[str, ...], *, lenient: bool) -> None:
        self._lenient = lenient
        self._prefixes = prefixes
        self._trail = [root]
        self._names: list[str] = []
        self._todo: deque[str] = deque()
        self._links = self._races = 0

    def to(self, path: str, *, follow: bool) -> Spot:
        """Where the path ends."""
        self._todo.extend(path.split("/"))
        try:
            while self._todo:
                part = self._todo.popleft()
                if part == "..":
                    self._climb()
                elif part not in {"", "."}:
                    end = self._descend(part, follow=follow)
                    if end:
                        return end
            return self._end(".", self._names, self._trail[-1].stat("."))
        except BaseException:
            _close(self._trail[1:])
            raise

    def _climb(self) -> None:
        if not self._names:
            raise OSError(errno.EXDEV, "above the workspace")
        self._names.pop()
        self._trail.pop().close()

    def _descend(self, part: str, *, follow: bool) -> Spot | None:
        found = self._trail[-1].find(part)
        last = not any(self._todo)
        if found is not None and stat.S_ISLNK(found.st_mode) and (follow or not last):
            self._follow(part)
            return None
        if last:
            return self._end(part, [*self._names, part], found)
        if found is None:
            return self._beyond(part)
        try:
            self._trail.append(self._trail[-1].child(part))
        except OSError as error:
            self._races += 1
            swapped = error.errno in {errno.ELOOP, errno.ENOTDIR} and stat.S_ISDIR(found.st_mode)
            if not swapped or self._races > RACE_LIMIT:
                raise
            self._todo.appendleft(part)  # a folder that became a link since we looked: look again
        else:
            self._names.append(part)
        return None

    def _beyond(self, part: str) -> Spot:
        rest = [name for name in self._todo if name not in {"", "."}]
        if not self._lenient or ".." in rest:
            raise FileNotFoundError(errno.ENOENT, "no such folder")
        return self._end(part, [*self._names, part, *rest], None)

    def _follow(self, part: str) -> None:
        self._links += 1
        if self._links > LINK_LIMIT:
            raise OSError(errno.ELOOP, "too many links")
        target = os.fsdecode(self._trail[-1].link_target(part))
        if os.path.isabs(target):
            target = self._inside(target)
            _close(self._trail[1:])
            del self._trail[1:], self._names[:]
        self._todo.extendleft(reversed(target.split("/")))

    def _inside(self, target: str) -> str:
        for prefix in self._prefixes:
            if target == prefix:
                return "."
            below = target.removeprefix(prefix.rstrip("/") + "/")
            if below != target:
                return below
        raise OSError(errno.EXDEV, "a link to outside")

    def _end(self, name: str, names: list[str], found: os.stat_result | None) -> Spot:
        _close(self._trail[:-1])
        return Spot(self._trail[-1], name, "/".join(names), found)


def _encodes(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def _refusal(path: str, problem: BadPath, root: str) -> OutsideWorkspace:
    return OutsideWorkspace(
        f"`{path[:200]}` {problem.reason}.", hint=f"{problem.hint} The root is `{root}`."
    )


def _beneath(root: Folder, path: str, flags: int, resolve: int) -> int | None:
    """Let the kernel resolve; None when it will not, and the walk has to say why."""
    if root.fd is None:
        return None
    for _ in range(RACE_LIMIT):
        try:
            return syscalls.openat2(root.fd, path, flags, resolve)
        except OSError as error:
            if error.errno == errno.EAGAIN:  # a rename somewhere on the way, at this very moment
                continue
            if error.errno in _WALK_INSTEAD:
                return None
            raise
    return None


def _close(folders: list[Folder]) -> None:
    for folder in folders:
        folder.close()
