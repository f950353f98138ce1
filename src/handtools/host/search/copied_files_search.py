"""Search files that are not on this machine's disk, such as an editor's buffers, by searching a copy.

Reads and searches must see the same text. ripgrep only searches files on disk, so before every search a
temporary folder is synchronized with the host's files. Files that the policy hides are not copied.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from weakref import finalize

from anyio import Lock, to_thread

from handtools.core.changes import sha256_hex
from handtools.core.errors import ToolError
from handtools.core.files import FileFacts, HostFiles
from handtools.core.search import (
    FolderTree,
    FoundPaths,
    Hits,
    MatchCounts,
    PathFilter,
    SearchGaps,
    SearchPatterns,
    SearchScope,
    WantedKind,
)
from handtools.host.search.ripgrep_process import VERSION_CONTROL_FOLDERS
from handtools.host.search.ripgrep_search import RipgrepSearch
from handtools.text.search.gitignore import IGNORE_FILES

MAX_COPIED_FILE_BYTES = 64 << 20
"""Larger files are not copied and count as unreadable."""


class CopiedFilesSearch:
    """The HostSearch port for any host's files: copies them to a temporary folder and searches there."""

    def __init__(self, files: HostFiles, root: str | Path) -> None:
        """`root` is the workspace; the `rg` program is never taken from it."""
        self._files = files
        self._copy = Path(tempfile.mkdtemp(prefix="handtools-search-"))
        finalize(self, shutil.rmtree, self._copy, ignore_errors=True)
        self._search = RipgrepSearch(self._copy, workspace=root)
        self._digests: dict[str, str] = {}
        # All searches share one copy, which must not change during a search.
        self._lock = Lock()

    async def hits(
        self, patterns: SearchPatterns, scope: SearchScope, *, most: int, admit: PathFilter
    ) -> Hits:
        async with self._lock:
            missed = await to_thread.run_sync(self._update, admit)
            found = await self._search.hits(patterns, scope, most=most, admit=admit)
        return replace(found, gaps=_with_missed(found.gaps, missed))

    async def tallies(
        self, patterns: SearchPatterns, scope: SearchScope, *, most: int, admit: PathFilter
    ) -> MatchCounts:
        async with self._lock:
            missed = await to_thread.run_sync(self._update, admit)
            found = await self._search.tallies(patterns, scope, most=most, admit=admit)
        return replace(found, gaps=_with_missed(found.gaps, missed))

    async def paths(
        self, scope: SearchScope, *, wanted: WantedKind, most: int, admit: PathFilter
    ) -> FoundPaths:
        async with self._lock:
            await to_thread.run_sync(self._update, admit)
            return await self._search.paths(scope, wanted=wanted, most=most, admit=admit)

    async def tree(self, scope: SearchScope, *, depth: int, most: int, admit: PathFilter) -> FolderTree:
        async with self._lock:
            await to_thread.run_sync(self._update, admit)
            return await self._search.tree(scope, depth=depth, most=most, admit=admit)

    async def find_ignored_paths(self, paths: Sequence[str]) -> set[str]:
        async with self._lock:
            await to_thread.run_sync(self._update, _folders_and_ignore_files)
            return await self._search.find_ignored_paths(paths)

    def _update(self, admit: PathFilter) -> list[str]:
        """Update the copy; returns the paths of files that could not be copied."""
        there = {facts.path: facts for facts in self._entries_to_copy(admit)}
        self._remove_all_but(there)
        missed: list[str] = []
        for path, facts in there.items():
            if facts.kind == "folder":
                (self._copy / path).mkdir(exist_ok=True)
            elif not self._copy_file(facts):
                missed.append(path)
        return missed

    def _entries_to_copy(self, admit: PathFilter) -> Iterator[FileFacts]:
        """Yield every file and folder to copy, each folder before its contents."""
        waiting = ["."]
        while waiting:
            shown = {
                facts.path + "/" * (facts.kind == "folder"): facts
                for facts in self._files.names(waiting.pop())
                if facts.kind in {"file", "folder"}
            }
            allowed = set(admit(list(shown)))
            for name, facts in shown.items():
                if facts.path.rpartition("/")[2] in VERSION_CONTROL_FOLDERS:
                    yield from self._repository_entries(facts)
                elif name in allowed:
                    yield facts
                    if facts.kind == "folder":
                        waiting.append(facts.path)

    def _repository_entries(self, facts: FileFacts) -> Iterator[FileFacts]:
        """Yield the parts of a repository's `.git` that ripgrep needs: the folder itself and `info/exclude`."""
        yield facts
        inner = [self._files.facts(f"{facts.path}/{path}") for path in ("info", "info/exclude")]
        if facts.kind == "folder" and [each and each.kind for each in inner] == ["folder", "file"]:
            yield from (each for each in inner if each)

    def _copy_file(self, facts: FileFacts) -> bool:
        target = self._copy / facts.path
        try:
            data = self._files.read(facts.path, size=MAX_COPIED_FILE_BYTES + 1)
        except ToolError:
            data = None
        if data is None or len(data) > MAX_COPIED_FILE_BYTES:
            target.unlink(missing_ok=True)
            self._digests.pop(facts.path, None)
            return False
        digest = sha256_hex(data)
        if self._digests.get(facts.path) != digest:
            target.write_bytes(data)
            self._digests[facts.path] = digest
        os.utime(target, (facts.modified, facts.modified))
        return True

    def _remove_all_but(self, facts: dict[str, FileFacts]) -> None:
        for folder, folders, files in os.walk(self._copy, topdown=False):
            inside = os.path.relpath(folder, self._copy)
            for kind, names in (("file", files), ("folder", folders)):
                for name in names:
                    path = os.path.normpath(os.path.join(inside, name))
                    if path not in facts or facts[path].kind != kind:
                        self._remove(path)

    def _remove(self, path: str) -> None:
        self._digests.pop(path, None)
        target = self._copy / path
        if target.is_dir():
            target.rmdir()
        else:
            target.unlink()


def _folders_and_ignore_files(paths: Sequence[str]) -> list[str]:
    return [path for path in paths if path.endswith("/") or path.rpartition("/")[2] in IGNORE_FILES]


def _with_missed(gaps: SearchGaps, missed: list[str]) -> SearchGaps:
    if not missed:
        return gaps
    example = gaps.example or f"{missed[0]}: could not be copied"
    return replace(gaps, unreadable=gaps.unreadable + len(missed), example=example)
