"""What archives hold, put together as one tree in memory: the layers of an image, or a plain archive. ADR 254.

Nothing is written while layers are merged, so that no name of one layer can lead through a link of another to a
place outside: a folder of the tree is a folder, and `..` is refused.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from handtools.core.errors import UsageError

WHITEOUT_PREFIX = ".wh."
OPAQUE_NAME = ".wh..wh..opq"
_UNION_FILE_SYSTEM_PREFIX = ".wh..wh."
"""Begins names that a union file system keeps for itself; they are no part of the image."""
_MOST_LINKS = 40
_MAX_PATH_CHARS = 1 << 16
_NEW_FOLDER_MODE = 0o755


@dataclass(frozen=True, slots=True)
class LayerEntry:
    """What a layer says about one path."""

    path: str
    kind: Literal["file", "folder", "link", "hard link"]
    mode: int = 0
    target: str = ""
    """Of a link, where it points; of a hard link, the path of its file."""
    content: Any = None
    """Of a file, what it takes to read it."""
    mtime: float | None = None
    """When it was changed, in seconds since 1970; None if nobody knows."""


@dataclass(slots=True)
class ImageNode:
    """What is at a path of the merged tree; paths that are hard links of each other share one node."""

    kind: Literal["file", "folder", "link"]
    mode: int = 0
    target: str = ""
    content: Any = None
    mtime: float | None = None
    children: "dict[str, ImageNode]" = field(default_factory=dict)


class ImageTree:
    """The files of an image, to which layers are applied from the lowest on; or those of one archive."""

    def __init__(self) -> None:
        self.root = ImageNode("folder", _NEW_FOLDER_MODE)

    def apply(self, layer: Iterable[LayerEntry], *, has_whiteouts: bool = True) -> None:
        """Apply a layer; raises `ValueError` for one that leads out or contradicts itself.

        In an archive that is no layer of an image a name such as `.wh.a` means nothing else than itself.
        """
        added: list[tuple[list[str], LayerEntry]] = []
        for entry in layer:
            parts = path_parts(entry.path)
            name = parts[-1] if parts else ""
            if has_whiteouts and name.startswith(WHITEOUT_PREFIX):
                # They hide what is below, never what the same layer brings: all of them go first.
                self._hide(parts)
            else:
                added.append((parts, entry))
        for parts, entry in added:
            self._add(parts, entry)

    def folder(self, path: str) -> ImageNode:
        """The folder at a path of the image; raises `UsageError` when there is none."""
        found = self._resolved(path_parts(path))
        if found is None or found.kind != "folder":
            raise UsageError(f"The image has no folder {path!r}.")
        return found

    def _hide(self, parts: list[str]) -> None:
        *above, name = parts
        folder = self._resolved(above)
        if folder is None or folder.kind != "folder":
            return
        if name == OPAQUE_NAME:
            folder.children.clear()
        elif not name.startswith(_UNION_FILE_SYSTEM_PREFIX):
            folder.children.pop(name.removeprefix(WHITEOUT_PREFIX), None)

    def _add(self, parts: list[str], entry: LayerEntry) -> None:
        if not parts:
            if entry.kind == "folder":
                self.root.mode, self.root.mtime = entry.mode, entry.mtime
            return
        *above, name = parts
        folder = self._resolved(above, make=True)
        if folder is None or folder.kind != "folder":
            raise ValueError(f"it has {entry.path[:200]!r} in something that is not a folder")
        known = folder.children.get(name)
        if entry.kind == "folder":
            if known is None or known.kind != "folder":
                known = folder.children[name] = ImageNode("folder")
            known.mode, known.mtime = entry.mode, entry.mtime
        elif entry.kind == "hard link":
            *around, last = path_parts(entry.target) or [""]
            beside = self._resolved(around)
            linked = None if beside is None else beside.children.get(last)
            if linked is None or linked.kind == "folder":
                raise ValueError(f"{entry.path[:200]!r} is a hard link to a file that is not in it")
            folder.children[name] = linked
        else:
            folder.children[name] = ImageNode(
                entry.kind, entry.mode, entry.target, entry.content, entry.mtime
            )

    def _resolved(self, parts: list[str], *, make: bool = False) -> ImageNode | None:
        """What is at a path, with links followed as a process in the image would; `make` adds missing folders."""
        stack, waiting, links = [self.root], parts[::-1], 0
        while waiting:
            name, here = waiting.pop(), stack[-1]
            if name in {"", "."}:
                continue
            if name == "..":
                stack = stack[:-1] or [self.root]
                continue
            if here.kind != "folder":
                return None
            found = here.children.get(name)
            if found is None:
                if not make:
                    return None
                found = here.children[name] = ImageNode("folder", _NEW_FOLDER_MODE)
            if found.kind == "link":
                links += 1
                if links > _MOST_LINKS:
                    return None
                if found.target.startswith("/"):
                    stack = [self.root]
                waiting += found.target.split("/")[::-1]
            else:
                stack.append(found)
        return stack[-1]


def walk_image(folder: ImageNode) -> Iterator[tuple[str, ImageNode]]:
    """All that is below a folder with its path there, a folder before what is in it."""
    waiting = [("", folder)]
    while waiting:
        above, here = waiting.pop()
        for name, node in here.children.items():
            path = f"{above}/{name}" if above else name
            yield path, node
            if node.kind == "folder":
                waiting.append((path, node))


def path_parts(path: str) -> list[str]:
    """The names in a path of an archive, from its root on; raises `ValueError` for a path that leads out."""
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if ".." in parts or "\0" in path:
        raise ValueError(f"it has a path that leads out of it: {path[:200]!r}")
    if len(path) > _MAX_PATH_CHARS:
        raise ValueError(f"it has a path of {len(path):,} characters: {path[:200]!r}…")
    return parts


def template_mode(mode: int, *, is_folder: bool) -> int:
    """The permission bits that a file or folder has in a template.

    Without set-user-id and set-group-id, and its owner can read it. The sticky bit of a shared folder stays.
    """
    return (mode & 0o1777) | 0o500 if is_folder else (mode & 0o777) | 0o400
