"""Path resolution: from a path written by the model to an open file in the workspace, never outside it.

There are two steps, and the policy checks the path between them. `locate` follows symlinks and returns the
real path. All other methods take a path from `locate` and follow no symlink, so the file that is opened is
the file that was checked: a symlink that appears in between is refused, and the path is located and checked
again.

In a workspace with several folders, the first name of a path selects the folder. A symlink from one folder
into another resolves to the target's path in that folder, so the policy treats it like any other path
there.
"""

import errno
import os
import re
import stat
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from handtools.core.errors import InvalidInput, OutsideWorkspace, SymlinkInPath
from handtools.host.files import syscalls
from handtools.host.files.folder_handle import (
    OPEN_FOLDER_TO_ENTER_FLAGS,
    FolderHandle,
    is_link,
    join_path,
    open_beneath,
    open_folder_below,
    reopen_for_reading,
)
from handtools.host.workspace_folders import workspace_folders
from handtools.text.paths import BadPath, workspace_relative

_ROOT = re.compile(r"(?P<drive>[A-Za-z]:)(?=/|\Z)|//(?P<server>[^/?.][^/]*)/(?P<share>[^/]+)(?=/|\Z)")
_URL_DRIVE = re.compile(r"file:(?://(?:localhost)?)?/(?=[A-Za-z]:[\\/])", re.IGNORECASE)
_DEVICE = re.compile(
    r"(?:CON|PRN|AUX|NUL|CONIN\$|CONOUT\$|(?:COM|LPT)[0-9¹²³])(?:\s*\..*)?\Z", re.IGNORECASE
)
_FORBIDDEN = re.compile(r'[<>:"|?*]')


def windows_workspace_relative(path: str, root: str) -> str:
    """Normalize a path or `file:` URL to one with forward slashes relative to `root`; raises `BadPath`.

    `root` is an absolute path with a drive or a share.
    """
    plain = _URL_DRIVE.sub("", path).replace("\\", "/")
    top, above = _split_root(root.replace("\\", "/"))
    if top is None:
        raise ValueError(f"the root {root!r} is not absolute")
    start, names = _split_root(plain)
    if start is None and plain.startswith("//"):
        raise BadPath(path, "is a Windows device path")
    if start is None and plain.startswith("/"):
        raise BadPath(path, "starts at the root of an unnamed drive")
    if start is not None:
        if ".." in names:
            raise BadPath(path, "contains `..`, which may not lead where it seems to", "Write it without.")
        if start.lower() != top.lower() or _lower_case_names(names[: len(above)]) != _lower_case_names(
            above
        ):
            raise BadPath(path, "is outside the workspace")
        names = names[len(above) :]
    for name in names:
        _refuse_name(path, name)
    return workspace_relative("/".join(names), "/")


def _split_root(path: str) -> tuple[str | None, list[str]]:
    """Split a path into its drive or share (None if it has none) and its names."""
    match = _ROOT.match(path)
    rest = path[match.end() :] if match else path
    return match[0] if match else None, [name for name in rest.split("/") if name not in {"", "."}]


def _lower_case_names(names: list[str]) -> list[str]:
    return [name.lower() for name in names]


def _refuse_name(path: str, name: str) -> None:
    """Raise `BadPath` for a name that Windows would reject or change, or that names a device."""
    if _DEVICE.match(name):
        raise BadPath(path, f"names the device {name[:20]}", "Use another name.")
    if found := _FORBIDDEN.search(name):
        raise BadPath(
            path, f"contains `{found[0]}`, which Windows does not allow", "Write the name without it."
        )
    if name != ".." and name.endswith((" ", ".")):
        raise BadPath(
            path, "has a name that ends with a space or a dot", "Windows drops these: leave them out."
        )


MAX_SYMLINKS = 40
MAX_RACES = 32
_ODD_PARTS = {"", ".", ".."}
_relative = windows_workspace_relative if os.name == "nt" else workspace_relative


class WorkspaceRoot:
    """Resolves and opens paths below the workspace folder, which is reopened for each use."""

    def __init__(self, path: Path, *, kernel: bool) -> None:
        self.given = os.path.abspath(path)
        self.real = os.path.realpath(path)
        self.folders = workspace_folders(path)
        self._kernel = kernel and syscalls.HAS_DIR_FD
        self._several = "" not in self.folders

    def relative(self, path: str) -> str:
        """Return the path relative to the workspace, `""` for the workspace itself.

        Raises `OutsideWorkspace` for paths outside it.
        """
        tops = [("", self.given), ("", self.real), *(self.folders.items() if self._several else ())]
        problems = []
        for name, top in tops:
            try:
                inside = _relative(path, top)
            except BadPath as problem:
                problems.append(problem)
            else:
                return name if inside == "." else join_path(name, inside)
        raise self._outside_workspace_error(path, problems[0])

    def _outside_workspace_error(self, path: str, error: BadPath) -> OutsideWorkspace:
        where = (
            f"Its folders are {self._folder_names_text()}."
            if self._several
            else f"The root is `{self.given}`."
        )
        return OutsideWorkspace(f"`{path[:200]}` {error.reason}.", hint=f"{error.hint} {where}")

    def _folder_names_text(self) -> str:
        return ", ".join(f"`{name}`" for name in self.folders)

    def split(self, path: str) -> tuple[str, str, str]:
        """Return the name and real path of a path's workspace folder, and the path below it.

        For the top of a workspace with several folders, and for unknown names there, the name is empty and
        the folder is the top itself.
        """
        if not self._several:
            return "", self.real, path
        name, _, below = path.partition("/")
        folder = self.folders.get(name)
        return ("", self.real, path) if folder is None else (name, folder, below)

    def check_changeable(self, path: str) -> None:
        """If there are several workspace folders, refuse changes to a folder itself or outside all of them.

        Raises `InvalidInput`.
        """
        if not self._several:
            return
        name, _, below = self.split(self.relative_located_path(path))
        if name and not below:
            raise InvalidInput(
                f"`{name}` is a workspace folder and can't be changed itself.", hint="Change files in it."
            )
        if not name:
            raise InvalidInput(
                f"`{path[:200]}` is not in any workspace folder. The folders are {self._folder_names_text()}.",
                hint="Start the path with one of these names.",
            )

    def names(self, path: str) -> list[tuple[str, os.stat_result | None]]:
        """List the names in a folder, sorted, each with its stat result, or None if it has just been deleted."""
        if self._several and not path:
            return [(name, self._stat_or_none(name)) for name in self.folders]
        with self.open_folder_no_follow(path) as folder:
            return [(name, folder.find(name)) for name in sorted(folder.names())]

    def _stat_or_none(self, path: str) -> os.stat_result | None:
        try:
            return self.stat(path)
        except FileNotFoundError:
            return None

    def relative_located_path(self, path: str) -> str:
        """Return the relative form of a path that we returned before, which may contain any file name."""
        plain = _ODD_PARTS.isdisjoint(path.split("/")) and "\0" not in path
        return path if plain and (path.isascii() or _is_encodable(path)) else self.relative(path)

    def open_folder_no_follow(self, path: str, *, flags: int = OPEN_FOLDER_TO_ENTER_FLAGS) -> FolderHandle:
        """Open a folder in the workspace; raises `SymlinkInPath` if there is a symlink in the path."""
        _, top, below = self.split(path)
        root = FolderHandle.at(top, flags=OPEN_FOLDER_TO_ENTER_FLAGS if below else flags)
        with _refusing_links(path):
            return open_folder_below(root, below, flags=flags, kernel=self._kernel)

    def open_parent_folder(self, path: str) -> tuple[FolderHandle, str]:
        """Open the parent folder of a path, refusing symlinks; returns its handle and the last name."""
        if path in self.folders:
            return self.open_folder_no_follow(path), "."
        above, _, name = path.rpartition("/")
        return self.open_folder_no_follow(above), name or "."

    def stat_and_open_path(self, path: str) -> tuple[os.stat_result, int | None]:
        """Stat a path from `locate` and, if it is a regular file, open it for reading; refuses symlinks."""
        handle = self._open_path_handle(path) if syscalls.can_reopen_path_handles() else None
        if handle is not None:
            return reopen_for_reading(handle)
        folder, name = self.open_parent_folder(path)
        with folder:
            found, fd = folder.stat_and_open_file(name)
        if stat.S_ISLNK(found.st_mode):
            raise symlink_in_path_error(path)
        return found, fd

    def stat(self, path: str) -> os.stat_result:
        """Stat a path from `locate`, refusing symlinks."""
        handle = self._open_path_handle(path)
        if handle is not None:
            try:
                return os.fstat(handle)
            finally:
                os.close(handle)
        folder, name = self.open_parent_folder(path)
        with folder:
            found = folder.stat(name)
        if stat.S_ISLNK(found.st_mode):
            raise symlink_in_path_error(path)
        return found

    def _open_path_handle(self, path: str) -> int | None:
        """Return an O_PATH fd of a path; None if the kernel lacks openat2, which refuses symlinks."""
        if not (self._kernel and syscalls.has_openat2()):
            return None
        _, top, below = self.split(path)
        with FolderHandle.at(top) as root, _refusing_links(path):
            return open_beneath(root, below or ".", syscalls.PATH_ONLY)

    def locate(self, path: str) -> str:
        """Resolve symlinks and return the real path in the workspace, which need not exist."""
        for hops in range(MAX_SYMLINKS):
            name, top, below = self.split(path)
            with FolderHandle.at(top) as root:
                # A symlink target may contain `.` or `..`, which must not appear in the result.
                if not hops and self._is_plain(root, below):
                    return path
                try:
                    tops = (top,) if name else (self.real, self.given)
                    return join_path(name, _LinkResolver(root, tops).to(below)).rstrip("/")
                except LinkToOutside as link:
                    path = self._in_another_folder(link)
        raise OSError(errno.ELOOP, "too many symlinks")

    def _in_another_folder(self, link: "LinkToOutside") -> str:
        """Return a symlink target's path in another workspace folder; raises `link` if it is in none."""
        for name, folder in (*self.folders.items(), ("", self.real)) if self._several else ():
            if link.target == folder or link.target.startswith(f"{folder.rstrip('/')}/"):
                return join_path(name, link.target.removeprefix(folder).strip("/")).rstrip("/")
        raise link

    def _is_plain(self, root_handle: FolderHandle, path: str) -> bool:
        """Whether a path contains no symlink, not even as its last part, and so needs no resolving."""
        if not path or not (self._kernel and syscalls.has_openat2()):
            return not path
        above, _, name = path.rpartition("/")
        if not above:
            return not is_link(root_handle, name)
        try:
            fd = open_beneath(root_handle, above, OPEN_FOLDER_TO_ENTER_FLAGS)
        except OSError as error:
            if error.errno in {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}:
                return False
            raise
        if fd is None:
            return False
        with FolderHandle(fd, above) as folder:
            return not is_link(folder, name)


class LinkToOutside(OSError):
    """Raised for a symlink that leaves the folder being resolved, with its absolute target."""

    def __init__(self, message: str, target: str) -> None:
        super().__init__(errno.EXDEV, message)
        self.target = target


class _LinkResolver:
    """Resolves symlinks part by part with directory fds, and refuses those that leave the workspace."""

    def __init__(self, root_handle: FolderHandle, prefixes: tuple[str, ...]) -> None:
        self._prefixes = prefixes
        self._trail = [root_handle]
        self._names: list[str] = []
        self._todo: deque[str] = deque()
        self._links = self._races = 0

    def to(self, path: str) -> str:
        """Return the path with all symlinks resolved, including the last part."""
        self._todo.extend(path.split("/"))
        try:
            while self._todo:
                part = self._todo.popleft()
                if part == "..":
                    self._go_to_parent()
                elif part not in {"", "."} and self._is_end(part):
                    break
            return "/".join(self._names)
        finally:
            _close_all(self._trail[1:])

    def _go_to_parent(self) -> None:
        if not self._names:
            above = os.path.dirname(self._prefixes[0])
            while self._todo and self._todo[0] in {"..", "."}:
                above = os.path.dirname(above) if self._todo.popleft() == ".." else above
            raise LinkToOutside("above the workspace", os.path.join(above, *self._todo))
        self._names.pop()
        self._trail.pop().close()

    def _is_end(self, part: str) -> bool:
        """Resolve one part of the path; True if it is the last one or does not exist, so resolving ends."""
        found = self._trail[-1].find(part)
        last = not any(self._todo)
        if found is not None and stat.S_ISLNK(found.st_mode):
            with self._again_if(part, errno.EINVAL):
                self._follow(part)
        elif last or found is None:
            rest = [name for name in self._todo if name not in {"", "."}]
            if ".." in rest:
                raise FileNotFoundError(errno.ENOENT, "no such folder")
            self._names += [part, *rest]
            return True
        else:
            self._enter_folder(part, found)
        return False

    def _enter_folder(self, part: str, found: os.stat_result) -> None:
        swapped = (errno.ELOOP, errno.ENOTDIR) if stat.S_ISDIR(found.st_mode) else ()
        with self._again_if(part, *swapped):
            self._trail.append(self._trail[-1].child(part))
            self._names.append(part)

    @contextmanager
    def _again_if(self, part: str, *swapped: int) -> Iterator[None]:
        """Context manager that retries a part if a folder was replaced by a symlink, or vice versa."""
        try:
            yield
        except OSError as error:
            self._races += 1
            if error.errno not in swapped or self._races > MAX_RACES:
                raise
            self._todo.appendleft(part)

    def _follow(self, part: str) -> None:
        self._links += 1
        if self._links > MAX_SYMLINKS:
            raise OSError(errno.ELOOP, "too many symlinks")
        target = os.fsdecode(self._trail[-1].link_target(part))
        if os.path.isabs(target):
            target = self._path_below_prefix(target)
            _close_all(self._trail[1:])
            del self._trail[1:], self._names[:]
        self._todo.extendleft(reversed(target.split("/")))

    def _path_below_prefix(self, target: str) -> str:
        for prefix in self._prefixes:
            if target == prefix:
                return "."
            below = target.removeprefix(prefix.rstrip("/") + "/")
            if below != target:
                return below
        raise LinkToOutside("a symlink to outside", "/".join((target, *self._todo)))


def _is_encodable(path: str) -> bool:
    try:
        os.fsencode(path)
    except UnicodeEncodeError:
        return False
    return True


def symlink_in_path_error(path: str) -> SymlinkInPath:
    """The `SymlinkInPath` error: a symlink appeared in the path after it had been located."""
    return SymlinkInPath(
        f"A symlink has appeared in the path `{path[:200]}`; nothing was read or written.",
        hint="Check where it leads, then try again.",
    )


@contextmanager
def _refusing_links(path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise symlink_in_path_error(path) from error
        raise


def _close_all(folders: list[FolderHandle]) -> None:
    for folder in folders:
        folder.close()
