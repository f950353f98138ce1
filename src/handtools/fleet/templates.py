"""Templates: read-only folders, stored by content digest, from which workspaces are created."""

import contextlib
import hashlib
import json
import os
import re
import secrets
import shutil
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from handtools.core.errors import NotFound, StorageFault, UsageError
from handtools.fleet.image_layers import template_mode
from handtools.fleet.oci_image import unpack_image
from handtools.fleet.tar_archives import unpack_archive, unpacking
from handtools.host.files.folder_handle import FolderHandle, walk_tree
from handtools.host.files.git_repository import head_commit, write_commit
from handtools.host.files.tree_copy_and_removal import copy_tree, remove_tree

TEMPLATE_TREE_NAME = "tree"
TEMPLATE_FACTS_NAME = "facts.json"
TEMPLATE_DIGEST = re.compile("[0-9a-f]{64}")
_HASHED_CHUNK_BYTES = 1 << 20
_REPOSITORY_NAME = ".git"


@dataclass(frozen=True, slots=True)
class Template:
    """A read-only folder and its metadata."""

    digest: str
    """SHA-256 over the paths, modes and bytes of everything in it."""
    tree: Path
    files: int
    bytes: int
    source: str


class TemplateStore:
    """The templates of one machine, each unpacked once."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def add_folder(self, source: str | Path) -> Template:
        """Create a template from a copy of a folder. The same content gives the same template.

        Setuid and setgid bits are dropped.
        """
        with self._incoming() as place, FolderHandle.at(os.path.realpath(source)) as top:
            os.mkdir(place / TEMPLATE_TREE_NAME)
            with FolderHandle.at(os.fspath(place / TEMPLATE_TREE_NAME)) as tree:
                for name in top.names():
                    copy_tree(top, name, tree, name)
                _set_template_modes(tree)
            return self._keep(place, f"folder {source}")

    def add_tarball(self, source: str | Path | IO[bytes]) -> Template:
        """Create a template from a tar archive, compressed or not.

        Links are kept unchanged; owners and devices are dropped. Raises `UsageError` for a path outside the
        archive.
        """
        if isinstance(source, (str, Path)):
            with unpacking("archive"), open(source, "rb") as file:
                return self._add_tarball(file, f"tarball {source}")
        return self._add_tarball(source, "tarball")

    def _add_tarball(self, packed: IO[bytes], source: str) -> Template:
        with self._incoming() as place:
            unpack_archive(packed, place / TEMPLATE_TREE_NAME, place)
            return self._keep(place, source)

    def add_image(self, source: str | Path, *, folder: str = "") -> Template:
        """Create a template from a container image on disk, or from one folder of it such as `/app`.

        The image is an OCI layout (folder or tar archive) or the output of `docker save`. Paths outside the
        image are refused.
        """
        with self._incoming() as place:
            digest = unpack_image(source, place / TEMPLATE_TREE_NAME, place, folder=folder)
            return self._keep(place, f"image {digest} {folder}".strip())

    def add_git_commit(
        self, repository: str | Path, commit: str = "HEAD", *, with_repository: bool = True
    ) -> Template:
        """Create a template from a commit, by default with a checked-out repository of only that commit.

        Only objects are read: no filter, hook, remote or other setting of the repository is used. Git LFS
        files stay pointers, and missing objects are an error.
        """
        with self._incoming() as place:
            tree = place / TEMPLATE_TREE_NAME
            found = write_commit(repository, commit, tree, with_repository=with_repository)
            return self._keep(place, f"commit {found}", commit=found if with_repository else "")

    def add_stored(self, digest: str, packed: IO[bytes]) -> Template:
        """Recreate a template from a tar archive of its tree that was stored under its digest.

        Raises `StorageFault` if the content does not match the digest.
        """
        with self._incoming() as place:
            stored, tree = place / "stored", place / TEMPLATE_TREE_NAME
            try:
                unpack_archive(packed, stored, place)
                commit = head_commit(stored)
                if commit and _content_digest(stored, commit)[0] == digest:
                    # The digest covers only the commit of a repository, so recreate .git from the objects.
                    write_commit(stored, commit, tree, with_repository=True)
                    shutil.rmtree(stored)
                else:
                    commit = ""
                    stored.rename(tree)
                return self._keep(place, "store", commit=commit, digest=digest)
            except UsageError as problem:
                raise _damaged(digest, str(problem)) from problem

    def get(self, digest: str) -> Template:
        """Return a template by digest. Raises `NotFound`."""
        place = self._place(digest)
        try:
            facts = json.loads((place / TEMPLATE_FACTS_NAME).read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            raise NotFound(
                f"Template {digest[:12]} not found.", hint="Create it again from its source."
            ) from None
        return Template(digest, place / TEMPLATE_TREE_NAME, facts["files"], facts["bytes"], facts["source"])

    def tree(self, digest: str) -> Path:
        """The folder of a template, whether or not it exists."""
        return self._place(digest) / TEMPLATE_TREE_NAME

    def has(self, digest: str) -> bool:
        """Whether a template exists in the store."""
        return (self._place(digest) / TEMPLATE_FACTS_NAME).is_file()

    def digests(self) -> list[str]:
        """The digests of all templates in the store."""
        if not self.folder.is_dir():
            return []
        return sorted(name for name in os.listdir(self.folder) if _is_digest(name) and self.has(name))

    def touch(self, digest: str) -> None:
        """Mark a template as used now."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self._place(digest) / TEMPLATE_FACTS_NAME)

    def unused_seconds(self, digest: str) -> float:
        """Seconds since a template was last used."""
        return time.time() - (self._place(digest) / TEMPLATE_FACTS_NAME).stat().st_mtime

    def remove(self, digest: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            # Delete the facts first: without them it does not count as a template if we are interrupted.
            (self._place(digest) / TEMPLATE_FACTS_NAME).unlink()
        if self.folder.is_dir():
            with FolderHandle.at(os.fspath(self.folder)) as top:
                remove_tree(top, digest)

    def remove_leftovers(self, *, older_seconds: float = 3600.0) -> int:
        """Delete leftovers of interrupted operations. Returns the number deleted."""
        left = [
            name
            for name in (os.listdir(self.folder) if self.folder.is_dir() else ())
            if not (_is_digest(name) and self.has(name))
            and time.time() - (self.folder / name).stat().st_mtime > older_seconds
        ]
        for name in left:
            with FolderHandle.at(os.fspath(self.folder)) as top:
                remove_tree(top, name)
        return len(left)

    @contextmanager
    def _incoming(self) -> Iterator[Path]:
        self.folder.mkdir(0o700, parents=True, exist_ok=True)
        place = self.folder / f".{secrets.token_hex(8)}"
        place.mkdir(0o700)
        try:
            yield place
        finally:
            shutil.rmtree(place, ignore_errors=True)

    def _place(self, digest: str) -> Path:
        """The folder of a template, whether or not it exists."""
        if not _is_digest(digest):
            raise NotFound(f"{digest[:80]!r} is not a template digest.", hint="Use 64 hexadecimal digits.")
        return self.folder / digest

    def _keep(self, place: Path, source: str, *, commit: str = "", digest: str = "") -> Template:
        found, files, size = _content_digest(place / TEMPLATE_TREE_NAME, commit)
        if digest and found != digest:
            raise _damaged(digest, "The digest of its content does not match.")
        if not self.has(found):
            facts = {"files": files, "bytes": size, "source": source, "made": time.time()}
            (place / TEMPLATE_FACTS_NAME).write_text(json.dumps(facts))
            try:
                os.rename(place, self._place(found))
            except OSError:  # race: another process created the same template
                if not self.has(found):
                    raise
        return self.get(found)


def _is_digest(name: str) -> bool:
    return TEMPLATE_DIGEST.fullmatch(name) is not None


def _damaged(digest: str, problem: str) -> StorageFault:
    return StorageFault(
        f"The stored template {digest[:12]} is damaged or was replaced: {problem}",
        hint="Check who can write to the object store, and add the template to the fleet again.",
    )


def _set_template_modes(tree_handle: FolderHandle) -> None:
    for found in walk_tree(tree_handle):
        mode, is_folder = stat.S_IMODE(found.facts.st_mode), stat.S_ISDIR(found.facts.st_mode)
        wanted = template_mode(mode, is_folder=is_folder)
        if wanted == mode or stat.S_ISLNK(found.facts.st_mode):
            continue
        if is_folder:
            found.folder.set_mode(found.name, wanted)
        else:
            with open(found.folder.open_file(found.name), "rb") as file:
                os.fchmod(file.fileno(), wanted)


def content_digest(tree: str | Path) -> str:
    """SHA-256 over the paths, modes and bytes of everything in a folder."""
    return _content_digest(Path(tree), "")[0]


def _content_digest(tree: Path, commit: str) -> tuple[str, int, int]:
    """The digest of a folder, and its number of files and bytes.

    The repository of a commit is represented by the commit id, because its index contains varying
    timestamps.
    """
    total = hashlib.sha256()
    files = size = 0
    with FolderHandle.at(os.fspath(tree)) as top:
        for found in walk_tree(top):
            if commit and found.path.split("/", 1)[0] == _REPOSITORY_NAME:
                continue
            mode = found.facts.st_mode
            if stat.S_ISREG(mode):
                fd = found.folder.open_file(found.name)
                with open(fd, "rb") as file:
                    content = _digest_of(file)
                files, size = files + 1, size + found.facts.st_size
            else:
                content = found.folder.link_target(found.name).hex() if stat.S_ISLNK(mode) else ""
            # Symlinks have no meaningful mode; times and owners vary by machine, so ignore them.
            shown = 0 if stat.S_ISLNK(mode) else stat.S_IMODE(mode)
            line = [os.fsencode(found.path).hex(), stat.S_IFMT(mode), shown, content]
            total.update(json.dumps(line).encode() + b"\n")
    total.update(commit.encode())
    return total.hexdigest(), files, size


def _digest_of(file: IO[bytes]) -> str:
    digest = hashlib.sha256()
    while chunk := file.read(_HASHED_CHUNK_BYTES):
        digest.update(chunk)
    return digest.hexdigest()
