"""Templates: read-only folders by the digest of their content, from which workspaces are made. ADR 236."""

import contextlib
import hashlib
import json
import os
import secrets
import shutil
import stat
import tarfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from handtools.core.errors import HostError, NotFound, UsageError
from handtools.fleet.oci_image import unpack_image
from handtools.host import programs
from handtools.host.files.folder_handle import FolderHandle, walk_tree
from handtools.host.files.tree_copy_and_removal import copy_tree, remove_tree

TEMPLATE_TREE_NAME = "tree"
TEMPLATE_FACTS_NAME = "facts.json"
_GIT_SECONDS = 600.0
_HASHED_CHUNK_BYTES = 1 << 20
_REPOSITORY_NAME = ".git"


@dataclass(frozen=True, slots=True)
class Template:
    """A read-only folder, and what is known of it."""

    digest: str
    """SHA-256 over the paths, modes and bytes of all that is in it."""
    tree: Path
    files: int
    bytes: int
    source: str


class TemplateStore:
    """The templates of one machine, each unpacked once."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = Path(folder)

    def add_folder(self, source: str | Path) -> Template:
        """Make a template of a copy of a folder; the same content gives the same template."""
        with self._incoming() as place, FolderHandle.at(os.path.realpath(source)) as top:
            os.mkdir(place / TEMPLATE_TREE_NAME)
            with FolderHandle.at(os.fspath(place / TEMPLATE_TREE_NAME)) as tree:
                for name in top.names():
                    copy_tree(top, name, tree, name)
            return self._keep(place, f"folder {source}")

    def add_tarball(self, source: str | Path | IO[bytes]) -> Template:
        """Make a template of a tar archive, compressed or not; what leads out of it is refused."""
        with self._incoming() as place:
            _unpack(source, place / TEMPLATE_TREE_NAME)
            return self._keep(place, f"tarball {source if isinstance(source, (str, Path)) else ''}".strip())

    def add_image(self, source: str | Path, *, folder: str = "") -> Template:
        """Make a template of a container image on disk, or of one folder of it such as `/app`.

        That is an OCI layout, as a folder or a tar archive, or what `docker save` wrote; what leads out of it is
        refused.
        """
        with self._incoming() as place:
            scratch = place / "layers"
            scratch.mkdir()
            digest = unpack_image(source, place / TEMPLATE_TREE_NAME, scratch, folder=folder)
            shutil.rmtree(scratch)
            return self._keep(place, f"image {digest} {folder}".strip())

    def add_git_commit(
        self, repository: str | Path, commit: str = "HEAD", *, with_repository: bool = True
    ) -> Template:
        """Make a template of a commit, by default with a repository of that commit alone, checked out."""
        found = _git(repository, "rev-parse", "--verify", f"{commit}^{{commit}}").decode().strip()
        with self._incoming() as place:
            tree = place / TEMPLATE_TREE_NAME
            if with_repository:
                tree.mkdir()
                _git(tree, "init", "--quiet")
                url = Path(repository).resolve().as_uri()
                _git(tree, "-c", "protocol.file.allow=always", "fetch", "--quiet", "--depth=1", url, found)
                _git(tree, "checkout", "--quiet", "-B", "main", found)
                (tree / _REPOSITORY_NAME / "FETCH_HEAD").unlink()  # it names the folder that it came from
            else:
                archive = place / "archive.tar"
                _git(repository, "archive", "--format=tar", f"--output={archive}", found)
                _unpack(archive, tree)
                archive.unlink()
            return self._keep(place, f"commit {found}", commit=found if with_repository else "")

    def add_stored(self, digest: str, source: IO[bytes]) -> Template:
        """Make a template again from a tar archive of its own tree, which was stored under its digest."""
        with self._incoming() as place:
            tree = place / TEMPLATE_TREE_NAME
            tree.mkdir()
            with tarfile.open(fileobj=source) as archive:
                archive.extractall(tree, filter="tar")
            return self._keep(place, "store", digest=digest)

    def get(self, digest: str) -> Template:
        """Return a template by its digest; raises `NotFound`."""
        place = self.folder / digest
        try:
            facts = json.loads((place / TEMPLATE_FACTS_NAME).read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            raise NotFound(
                f"There is no template {digest[:12]} here.", hint="Make it again from its source."
            ) from None
        return Template(digest, place / TEMPLATE_TREE_NAME, facts["files"], facts["bytes"], facts["source"])

    def tree(self, digest: str) -> Path:
        """The folder of a template, whether it is there or not."""
        return self.folder / digest / TEMPLATE_TREE_NAME

    def has(self, digest: str) -> bool:
        """Whether a template is here."""
        return (self.folder / digest / TEMPLATE_FACTS_NAME).is_file()

    def digests(self) -> list[str]:
        """The digests of all templates that are here."""
        if not self.folder.is_dir():
            return []
        return sorted(name for name in os.listdir(self.folder) if self.has(name))

    def touch(self, digest: str) -> None:
        """Note that a template is used now."""
        with contextlib.suppress(FileNotFoundError):
            os.utime(self.folder / digest / TEMPLATE_FACTS_NAME)

    def unused_seconds(self, digest: str) -> float:
        """How long ago a template was last used."""
        return time.time() - (self.folder / digest / TEMPLATE_FACTS_NAME).stat().st_mtime

    def remove(self, digest: str) -> None:
        """Delete a template."""
        with contextlib.suppress(FileNotFoundError):
            # Without its facts it is no template any more, however far the rest comes.
            (self.folder / digest / TEMPLATE_FACTS_NAME).unlink()
        if self.folder.is_dir():
            with FolderHandle.at(os.fspath(self.folder)) as top:
                remove_tree(top, digest)

    def remove_leftovers(self, *, older_seconds: float = 3600.0) -> int:
        """Delete what interrupted work left; returns how many."""
        left = [
            name
            for name in (os.listdir(self.folder) if self.folder.is_dir() else ())
            if not self.has(name) and time.time() - (self.folder / name).stat().st_mtime > older_seconds
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

    def _keep(self, place: Path, source: str, *, commit: str = "", digest: str = "") -> Template:
        found, files, size = _content_digest(place / TEMPLATE_TREE_NAME, commit)
        digest = digest or found
        if not self.has(digest):
            facts = {"files": files, "bytes": size, "source": source, "made": time.time()}
            (place / TEMPLATE_FACTS_NAME).write_text(json.dumps(facts))
            try:
                os.rename(place, self.folder / digest)
            except OSError:  # somebody else was first, and theirs is the same
                if not self.has(digest):
                    raise
        return self.get(digest)


def content_digest(tree: str | Path) -> str:
    """SHA-256 over the paths, modes and bytes of all that is in a folder."""
    return _content_digest(Path(tree), "")[0]


def _content_digest(tree: Path, commit: str) -> tuple[str, int, int]:
    """The digest of a folder with its number of files and bytes.

    The repository of a commit stands for itself: its index has times in it, which are never the same.
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
            # A link's mode says nothing; times and owners are the machine's.
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


def _unpack(source: str | Path | IO[bytes], tree: Path) -> None:
    tree.mkdir()
    try:
        with (
            tarfile.open(source) if isinstance(source, (str, Path)) else tarfile.open(fileobj=source)
        ) as archive:
            archive.extractall(tree, filter="data")
    except (tarfile.TarError, OSError, EOFError) as problem:
        raise UsageError(f"The archive can't be unpacked: {problem}.") from problem


def _git(folder: str | Path, *arguments: str) -> bytes:
    git = programs.find_program("git", "")
    if git is None:
        raise HostError("Templates of commits need git, which is not installed.")
    safe = ["-c", "core.hooksPath=/dev/null", "-c", "gc.auto=0", "-c", "safe.directory=*"]
    done = programs.run_program(
        git, [*safe, *arguments], programs.ProgramLimits(seconds=_GIT_SECONDS), cwd=folder
    )
    if done.code:
        raise UsageError(f"git can't: {done.errors.decode(errors='replace').strip()[:500]}")
    return done.output
