"""Every implementation of a port, to be held to one contract."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handtools.core.changes import Change, Node
from handtools.core.files import FileFacts, GitNamedPath, HostFiles, PlannedWrite, SettingPredicate
from handtools.host.files import syscalls
from handtools.host.files.backups import FolderBackups
from handtools.host.files.editor_files import EditorFiles
from handtools.host.files.local_files import LocalFiles
from handtools.host.workspace_folders import combined_workspace
from handtools.testing.memory_files_and_search import MEMORY_ROOT, MemoryFiles

MakeFiles = Callable[[Mapping[str, bytes | Node]], HostFiles]
LOCAL = ["kernel", "walk", "old kernel", "no handles"]
LARGE = ["large", "large, old kernel"]
"""As if every file were large: none is copied, each is moved aside as it is."""
SEVERAL = ["several", "several, old kernel", "several, large"]
"""As one folder of a workspace of three."""


def lay_out(root: Path, content: Mapping[str, bytes | Node]) -> None:
    """Put a tree on disk without our code."""
    for path, given in content.items():
        node = Node("file", given) if isinstance(given, bytes) else given
        place = root / path
        place.parent.mkdir(parents=True, exist_ok=True)
        if node.kind == "link":
            place.symlink_to(node.data.decode())
        elif node.kind == "folder":
            place.mkdir(exist_ok=True)
        else:
            place.write_bytes(node.data)
        if node.mode is not None:
            place.chmod(node.mode)


def forget_calls(patch: pytest.MonkeyPatch, *, handles: bool) -> None:
    """Make the machine one that has none of the calls beyond Python's own."""
    patch.setattr(syscalls, "_load_openat2", lambda: None)
    patch.setattr(syscalls, "_load_renameat2", lambda: None)
    patch.setattr(syscalls, "has_openat2", lambda: False)
    patch.setattr(syscalls, "can_reopen_path_handles", lambda: False)
    patch.setattr(syscalls, "try_read_lease", lambda fd: "unavailable")
    patch.setattr(syscalls, "HAS_DIR_FD", handles)


class OneOfSeveral:
    """The files of one folder in a workspace of several, by the paths that they have in it."""

    def __init__(self, files: LocalFiles, name: str) -> None:
        self._files = files
        self._name = name
        self.is_fast_to_read = files.is_fast_to_read
        self.backups = files.backups

    def with_backups(self, backups: FolderBackups) -> "OneOfSeveral":
        return OneOfSeveral(LocalFiles(self._files.root, backups=backups), self._name)

    def read(self, path: str, *, start: int = 0, size: int | None = None) -> bytes:
        return self._files.read(self._whole(path), start=start, size=size)

    def facts(self, path: str) -> FileFacts | None:
        found = self._files.facts(self._whole(path))
        return found and replace(found, path=self._part(found.path))

    def names(self, path: str) -> list[FileFacts]:
        return [replace(each, path=self._part(each.path)) for each in self._files.names(self._whole(path))]

    def node(self, path: str, *, like_node: Node | None = None) -> Node | None:
        return self._files.node(self._whole(path), like_node=like_node)

    def renamed_path(self, path: str) -> str | None:
        found = self._files.renamed_path(self._whole(path))
        return found and self._part(found)

    def is_tracked_by_git(self, path: str) -> bool:
        return self._files.is_tracked_by_git(self._whole(path))

    def git_named_paths(
        self, paths: Collection[str], is_plain: SettingPredicate
    ) -> tuple[GitNamedPath, ...]:
        found = self._files.git_named_paths([self._whole(path) for path in paths], is_plain)
        return tuple(replace(each, path=self._part(each.path)) for each in found)

    def verifies_git_pack(self, stem: str, refs: Mapping[str, str]) -> bool:
        return self._files.verifies_git_pack(self._whole(stem), refs)

    def writable(self, path: str) -> bool:
        return self._files.writable(self._whole(path))

    def locate(self, path: str) -> str:
        return self._part(self._files.locate(self._whole(path)))

    def plan(self, changes: Iterable[Change]) -> list[PlannedWrite]:
        whole = [Change(self._whole(each.path), each.before, each.after) for each in changes]
        return [self._step(step, self._part) for step in self._files.plan(whole)]

    def perform(self, steps: Sequence[PlannedWrite], *, synced: bool = True) -> None:
        self._files.perform([self._step(step, self._whole) for step in steps], synced=synced)

    def sync(self, paths: Collection[str]) -> None:
        self._files.sync([self._whole(path) for path in paths])

    def sweep(self, step: PlannedWrite) -> str | None:
        return self._files.sweep(self._step(step, self._whole))

    def _step(self, step: PlannedWrite, path: Callable[[str], str]) -> PlannedWrite:
        change = Change(path(step.change.path), step.change.before, step.change.after)
        return PlannedWrite(change, step.temporary)

    def _whole(self, path: str) -> str:
        if path.startswith(("/", "file:", "~/", "\\")) or path[1:2] == ":":
            return path
        return self._name if path in {"", "."} else f"{self._name}/{path}"

    def _part(self, path: str) -> str:
        return "." if path == self._name else path.removeprefix(f"{self._name}/")


class SavingEditor:
    """An editor that has unsaved texts of some files, and saves what it is told to write."""

    def __init__(self, root: Path, unsaved: Mapping[str, str] | None = None) -> None:
        self.root = root
        self.unsaved = dict(unsaved or {})
        self.asked: list[str] = []

    def read(self, path: str) -> str | None:
        self.asked.append(path)
        try:
            return self.unsaved[path] if path in self.unsaved else (self.root / path).read_bytes().decode()
        except OSError:
            return None

    def write(self, path: str, text: str) -> None:
        self.unsaved.pop(path, None)
        (self.root / path).write_bytes(text.encode())


def three_folders(folder: Path, *others: Path) -> Path:
    """Make a workspace of a folder and two others, in which there are files of the same names."""
    for other in others:
        lay_out(other, {"a.txt": b"of another folder", "a.py": b"other = 1\n", "src/b.py": b"other = 2\n"})
    return combined_workspace([folder, *others])


@pytest.fixture(params=[*LOCAL, *LARGE, *SEVERAL, "editor", "memory"])
def make_files(request, tmp_path, monkeypatch) -> MakeFiles:
    """Build a workspace that holds some files."""
    if request.param == "memory":
        return MemoryFiles
    if request.param in {"old kernel", "no handles", "large, old kernel", "several, old kernel"}:
        forget_calls(monkeypatch, handles=request.param != "no handles")
    root = tmp_path / "workspace"
    root.mkdir()

    def make(content):
        lay_out(root, content)
        large: dict[str, Any] = {"backups": FolderBackups(tmp_path / "vault"), "large_bytes": 0}
        if request.param in SEVERAL:
            monkeypatch.setenv("HANDTOOLS_STATE", str(tmp_path / "state"))
            whole = three_folders(root, tmp_path / "one", tmp_path / "two")
            return OneOfSeveral(LocalFiles(whole, **large if "large" in request.param else {}), root.name)
        if request.param in LARGE:
            return LocalFiles(root, **large)
        if request.param == "editor":
            return EditorFiles(LocalFiles(root), SavingEditor(root))
        return LocalFiles(root, kernel=request.param == "kernel")

    return make


@pytest.fixture
def absolute(make_files, tmp_path) -> str:
    """What an absolute path below the workspace starts with."""
    return MEMORY_ROOT if make_files is MemoryFiles else str(tmp_path / "workspace")
