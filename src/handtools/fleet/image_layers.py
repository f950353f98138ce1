"""Merge the layers of an image, or a plain archive, into one tree in memory.

Nothing is written to disk while layers are merged, so a path in one layer can't escape through a symlink in
another. All folders of the merged tree are real folders, and `..` is refused.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from handtools.core.errors import UsageError

WHITEOUT_PREFIX = ".wh."
OPAQUE_NAME = ".wh..wh..opq"
_UNION_FILE_SYSTEM_PREFIX = ".wh..wh."
"""Prefix of names reserved by union file systems. They are not part of the image."""
_MAX_LINKS = 40
_MAX_PATH_CHARS = 1 << 16
_NEW_FOLDER_MODE = 0o755


@dataclass(slots=True)
class ImageNode:
    """A node of a layer or of the merged tree, in which hard links to the same file share one node."""

    kind: Literal["file", "folder", "link", "hard link"]
    """`hard link` occurs only in layers, not in the merged tree."""
    mode: int = 0
    target: str = ""
    """The target of a symlink, or the path of the file that a hard link refers to."""
    content: Any = None
    """For a file, what the archive's reader needs to find its bytes."""
    mtime: float | None = None
    """Modification time in seconds since 1970; None if unknown."""
    children: "dict[str, ImageNode]" = field(default_factory=dict)


class ImageTree:
    """The file tree of an image, built by applying its layers from lowest to highest; or of one archive."""

    def __init__(self) -> None:
        self.root = ImageNode("folder", _NEW_FOLDER_MODE)

    def apply_layer(
        self, layer_nodes: Iterable[tuple[str, ImageNode]], *, has_whiteouts: bool = True
    ) -> None:
        """Apply a layer, given as paths and nodes, on top of the tree.

        Raises `ValueError` if a path escapes the tree or the layer contradicts itself. In a plain archive
        (`has_whiteouts=False`), a name such as `.wh.a` has no special meaning.
        """
        added_nodes: list[tuple[list[str], ImageNode]] = []
        for path, node in layer_nodes:
            parts = path_parts(path)
            name = parts[-1] if parts else ""
            if has_whiteouts and name.startswith(WHITEOUT_PREFIX):
                # Whiteouts hide lower layers, never entries of the same layer, so apply them first.
                self._apply_whiteout(parts)
            else:
                added_nodes.append((parts, node))
        for parts, node in added_nodes:
            self._add_node(parts, node)

    def folder_node(self, path: str) -> ImageNode:
        """The folder at a path of the image. Raises `UsageError` if there is none."""
        found = self._node_at(path_parts(path))
        if found is None or found.kind != "folder":
            raise UsageError(f"The image has no folder {path!r}.")
        return found

    def _apply_whiteout(self, parts: list[str]) -> None:
        *above, name = parts
        folder = self._node_at(above)
        if folder is None or folder.kind != "folder":
            return
        if name == OPAQUE_NAME:
            folder.children.clear()
        elif not name.startswith(_UNION_FILE_SYSTEM_PREFIX):
            folder.children.pop(name.removeprefix(WHITEOUT_PREFIX), None)

    def _add_node(self, parts: list[str], node: ImageNode) -> None:
        if not parts:
            if node.kind == "folder":
                self.root.mode, self.root.mtime = node.mode, node.mtime
            return
        path = "/".join(parts)
        *above, name = parts
        folder = self._node_at(above, make=True)
        if folder is None or folder.kind != "folder":
            raise ValueError(f"the parent of {path[:200]!r} is not a folder")
        known = folder.children.get(name)
        if node.kind == "folder":
            if known is None or known.kind != "folder":
                known = folder.children[name] = ImageNode("folder")
            known.mode, known.mtime = node.mode, node.mtime
        elif node.kind == "hard link":
            *around, last = path_parts(node.target) or [""]
            beside = self._node_at(around)
            linked = None if beside is None else beside.children.get(last)
            if linked is None or linked.kind == "folder":
                raise ValueError(f"{path[:200]!r} is a hard link to a missing file")
            folder.children[name] = linked
        else:
            folder.children[name] = node

    def _node_at(self, parts: list[str], *, make: bool = False) -> ImageNode | None:
        """The node at a path; symlinks are resolved within the image. With `make`, add missing folders."""
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
                if links > _MAX_LINKS:
                    return None
                if found.target.startswith("/"):
                    stack = [self.root]
                waiting += found.target.split("/")[::-1]
            else:
                stack.append(found)
        return stack[-1]


def walk_image_nodes(folder_node: ImageNode) -> Iterator[tuple[str, ImageNode]]:
    """Yield everything below a folder with its relative path, each folder before its contents."""
    waiting = [("", folder_node)]
    while waiting:
        above, here = waiting.pop()
        for name, node in here.children.items():
            path = f"{above}/{name}" if above else name
            yield path, node
            if node.kind == "folder":
                waiting.append((path, node))


def path_parts(path: str) -> list[str]:
    """The components of an archive path. Raises `ValueError` for a path that escapes the archive."""
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if ".." in parts or "\0" in path:
        raise ValueError(f"it contains a path outside itself: {path[:200]!r}")
    if len(path) > _MAX_PATH_CHARS:
        raise ValueError(f"it contains a path of {len(path):,} characters: {path[:200]!r}…")
    return parts


def permissions_in_template(mode: int, *, is_folder: bool) -> int:
    """The permission bits of a file or folder in a template.

    Setuid and setgid bits are cleared, and the owner can read it. Folders keep their sticky bit.
    """
    return (mode & 0o1777) | 0o500 if is_folder else (mode & 0o777) | 0o400
