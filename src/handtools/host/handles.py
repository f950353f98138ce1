"""Handles: the open folders of one transaction, few at a time however many folders it touches."""

import contextlib
import errno
import os
from collections.abc import Callable

from handtools.core.changes import Node
from handtools.core.errors import StorageFault, UsageError
from handtools.host.copying import remove
from handtools.host.folders import Folder
from handtools.host.marking import is_seen
from handtools.host.vault import Vault

OPEN_LIMIT = 64


class Handles:
    """Folders by path; one that had to be closed is opened again only if it is still the same."""

    def __init__(self, open_folder: Callable[[str], Folder]) -> None:
        self._open_folder = open_folder
        self._open: dict[str, Folder] = {}
        self._closed: dict[str, os.stat_result] = {}

    def folder(self, path: str) -> Folder:
        """The folder at a path."""
        folder = self._open.get(path)
        if folder is not None:
            return folder
        folder = self._open_folder(path)
        known = self._closed.pop(path, None)
        if known is not None and not os.path.samestat(known, folder.own_stat()):
            folder.close()
            raise OSError(errno.ENOENT, "another folder is there now")
        self._open[path] = folder
        if len(self._open) > OPEN_LIMIT:
            self._close_oldest()
        return folder

    def _close_oldest(self) -> None:
        path = next(iter(self._open))
        with self._open.pop(path) as folder:
            self._closed[path] = folder.own_stat()

    def forget(self, path: str) -> None:
        """A folder is gone from its path, with all that is in it: another may take its place."""
        for known in [known for known in self._open if known == path or known.startswith(f"{path}/")]:
            self._open.pop(known).close()
        for known in [known for known in self._closed if known == path or known.startswith(f"{path}/")]:
            del self._closed[known]

    def sync(self) -> None:
        """Make the names in every folder durable."""
        for path in [*self._open, *self._closed]:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):  # a folder that a step removed
                self.folder(path).sync()

    def close(self) -> None:
        """Let go of all."""
        for folder in self._open.values():
            folder.close()
        self._open.clear()


class Place:
    """A target, the temporary name beside it, and the vault where held things are while they are not here."""

    __slots__ = ("_handles", "_vault", "name", "parent", "temporary")

    def __init__(self, handles: Handles, path: str, temporary: str, vault: Vault | None = None) -> None:
        self._handles = handles
        self._vault = vault
        self.parent, _, self.name = path.rpartition("/")
        self.temporary = temporary

    @property
    def path(self) -> str:
        """The target below the workspace."""
        return f"{self.parent}/{self.name}" if self.parent else self.name

    @property
    def folder(self) -> Folder:
        """The folder both names are in."""
        return self._handles.folder(self.parent)

    @property
    def parts(self) -> tuple[Folder, str, str]:
        """The folder, the name, the temporary name."""
        return self._handles.folder(self.parent), self.name, self.temporary

    @property
    def vault(self) -> Vault:
        """Where held things are."""
        if self._vault is None:
            raise UsageError("These files have no vault, so nothing in them can be held.")
        return self._vault

    def forget(self) -> None:
        """The folder at the target is gone."""
        self._handles.forget(self.path)

    def fetch(self, node: Node) -> None:
        """Bring a held thing to the temporary name; not a file that someone wrote to where it is kept."""
        assert node.held is not None
        if node.kind == "file" and is_seen(node.held.mark) and not self.vault.knows(node.held):
            raise StorageFault(
                f"What is kept of `{self.path}` was written to by another program; nothing was changed.",
                hint="Write the file anew, or restore another version of it.",
            )
        self.vault.take_out(node.held.ref, self.folder, self.temporary)

    def put_away(self, node: Node) -> None:
        """Take a held thing from the temporary name back to where it is held."""
        assert node.held is not None
        self.vault.put_in(node.held.ref, self.folder, self.temporary)

    def put_back(self, node: Node) -> None:
        """Take back `fetch`."""
        assert node.held is not None
        self.vault.put_back(node.held.ref, self.folder, self.temporary)

    def is_copy(self, node: Node | None) -> bool:
        """Whether what is at the temporary name can only be a copy of a held thing, perhaps not a whole one."""
        return node is not None and node.held is not None and self.vault.has(node.held.ref)

    def remove_temporary(self) -> None:
        """Remove what is at the temporary name, whatever it is."""
        remove(self.folder, self.temporary)
