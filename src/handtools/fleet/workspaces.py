"""Workspaces made of overlay layers: a template, frozen layers on top of it, and a writable upper layer.

Creating a workspace takes a mount and a few folders, whatever the template's size, and disk space is used
only for changes. `fork` freezes the upper layer; parent and forks share it from then on. If overlays can't
be mounted, a workspace is a copy of the template with the same methods.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import stat
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

from handtools.core.errors import Busy, HostError, NotFound, StorageFault, TooLarge, UsageError
from handtools.fleet.templates import TemplateStore
from handtools.fleet.tree_diff import TreeDifference, apply_differences, tree_differences
from handtools.host.files.file_locks import try_lock, unlock
from handtools.host.files.folder_handle import FolderHandle
from handtools.host.files.folder_trees import copy_tree, remove_tree, walk_tree
from handtools.host.files.syscalls import is_root
from handtools.host.sandbox.overlay.overlay_capture import reset_work_folder
from handtools.host.sandbox.overlay.overlay_mount import (
    is_mounted,
    make_mount_point,
    mount_overlay,
    overlay_mount_problem,
    remove_mount_point,
    unmount,
)

MAX_LAYERS = 16
"""With this many frozen layers, they are merged into one: mount options must fit into a memory page."""
_STORE_LOCK_SECONDS = 60.0
WORKSPACE_NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]{0,63}")
BASE_SUFFIX = ".base"
"""Suffix of the temporary workspace from which a recovered fork is created."""


@dataclass(frozen=True, slots=True)
class WorkspaceQuota:
    """Limits on how much a workspace can store on top of its template."""

    bytes: int = 2 << 30
    files: int = 200_000


@dataclass(frozen=True, slots=True)
class WorkspaceRecord:
    """The metadata of a workspace, stored next to its layers."""

    id: str
    template: str
    kind: Literal["overlay", "copy"]
    layers: tuple[str, ...] = ()
    """The frozen layers on top of the template, lowest first."""
    base: tuple[str, ...] = ()
    """The layers that the workspace started with. In a copy, at most one layer, which contains all files."""
    parent: str = ""
    tenant: str = ""
    made: float = 0.0


@dataclass(frozen=True, slots=True)
class WorkspaceDiskUsage:
    """The disk space and number of files that a workspace uses on top of its shared layers."""

    bytes: int
    files: int


@dataclass(frozen=True, slots=True)
class CollectedGarbage:
    """How many workspaces, layers and templates a garbage collection deleted."""

    workspaces: int
    layers: int
    templates: int


class WorkspaceStore:
    """The workspaces of one machine in one folder, with their templates and layers."""

    def __init__(
        self,
        folder: str | Path,
        *,
        quota: WorkspaceQuota | None = None,
        kind: Literal["overlay", "copy"] | None = None,
        templates: str | Path | None = None,
        mount_point: str | Path | None = None,
    ) -> None:
        """`mount_point` is a common parent folder of several stores, in which only workspaces are mounted."""
        self.folder = Path(os.path.abspath(folder))
        self._mount_point = Path(os.path.realpath(mount_point or self.folder))
        self.mounts_left = ""
        """The mount point above all workspaces, which commands unmount in their namespace; or empty."""
        self._kind: Literal["overlay", "copy"] | None = kind
        self.templates = TemplateStore(templates or self.folder / "templates")
        self._shares_templates = templates is not None
        self.quota = quota or WorkspaceQuota()
        self._layers, self._workspaces = self.folder / "layers", self.folder / "workspaces"
        for each in (self.folder, self._layers, self._workspaces):
            each.mkdir(0o700, parents=True, exist_ok=True)
        self._lock = threading.RLock()
        self._owned: dict[str, int] = {}
        """The locks of the workspaces that are open in this process, by name."""

    @cached_property
    def new_workspace_kind(self) -> Literal["overlay", "copy"]:
        """The kind of new workspaces: as configured, otherwise overlays if they can be mounted."""
        if self._kind:
            return self._kind
        return "copy" if overlay_mount_problem(self.folder) else "overlay"

    def create(self, template: str, *, name: str = "", tenant: str = "") -> WorkspaceRecord:
        """Create a workspace from a template and open it. Raises `NotFound` for an unknown template."""
        self.templates.get_template(template)
        with self._lock_store():
            record = WorkspaceRecord(
                name or secrets.token_hex(8),
                template,
                self.new_workspace_kind,
                tenant=tenant,
                made=time.time(),
            )
            self._create_from_record(record)
        return record

    def open(self, name: str) -> Path:
        """Mount a workspace's files if necessary, and return its folder.

        Raises `Busy` if another process has it open.
        """
        with self._lock:
            if name not in self._owned:
                self._lock_and_mount(self.get_record(name))
            elif (record := self.get_record(name)).kind == "overlay" and not (
                self._has_last_layer(record) and is_mounted(self.files_folder(name))
            ):
                with self._lock_mount_point():
                    self._mount_overlay(record)  # a disk error during a fork may have left it unmounted
            return self.files_folder(name)

    def _lock_and_mount(self, record: WorkspaceRecord) -> None:
        lock = try_lock(self._workspace_folder(record.id) / "lock")
        if lock is None:
            raise Busy(f"Workspace {record.id} is open in another process.", hint="Use its host.")
        self._owned[record.id] = lock
        if record.kind == "overlay":
            try:
                with self._lock_mount_point():
                    if not self.mounts_left and make_mount_point(self._mount_point):
                        self.mounts_left = os.fspath(self._mount_point)
                    self._mount_overlay(record)
            except BaseException:
                unlock(self._owned.pop(record.id))
                self._remove_unused_mount_point()
                raise

    def close(self, name: str) -> None:
        """Unmount a workspace and release its lock. It stays on disk and can be opened again."""
        with self._lock:
            lock = self._owned.pop(name, None)
            unmount(self.files_folder(name))
            if lock is not None:
                unlock(lock)
            self._remove_unused_mount_point()

    def _remove_unused_mount_point(self) -> None:
        if self.mounts_left and not self._owned:
            with self._lock_mount_point():
                remove_mount_point(self.mounts_left)
                self.mounts_left = ""

    def close_all(self) -> None:
        """Close every workspace that is open in this process."""
        for name in list(self._owned):
            self.close(name)

    def open_workspace_names(self) -> list[str]:
        """The names of the workspaces open in this process."""
        return list(self._owned)

    def files_folder(self, name: str) -> Path:
        """The folder of a workspace's files, which are accessible while it is open."""
        return self._workspace_folder(name) / "root"

    def state_folder(self, name: str) -> Path:
        """The folder of a workspace's journal, which is outside its files."""
        return self._workspace_folder(name) / "state"

    def get_record(self, name: str) -> WorkspaceRecord:
        """Return the metadata of a workspace. Raises `NotFound`."""
        try:
            value = json.loads((self._workspace_folder(name) / "workspace.json").read_bytes())
        except (FileNotFoundError, NotADirectoryError, ValueError):
            raise NotFound(f"Workspace {name} not found.", hint="List the workspaces.") from None
        except OSError as error:
            raise StorageFault(
                f"Can't read the metadata of workspace {name}: {error.strerror}.", hint="Try again."
            ) from error
        return WorkspaceRecord(**{**value, "layers": tuple(value["layers"]), "base": tuple(value["base"])})

    def workspace_names(self) -> list[str]:
        """The names of all workspaces in the store."""
        return sorted(
            name
            for name in os.listdir(self._workspaces)
            if WORKSPACE_NAME.fullmatch(name.removesuffix(BASE_SUFFIX))
            and (self._workspaces / name / "workspace.json").exists()
        )

    def fork(self, name: str, count: int = 1, *, names: Sequence[str] = ()) -> list[WorkspaceRecord]:
        """Fork a workspace in its current state. Parent and forks are independent from then on.

        Close its toolbox first: nothing may write to the workspace during the call, and open file
        descriptors would still refer to the frozen layer. Forks have new, empty journals. Creates all forks
        or none; raises `StorageFault` if that fails.
        """
        records: list[WorkspaceRecord] = []
        try:
            self.open(name)
            with self._lock_store():
                record = self._freeze_upper_layer(self.get_record(name))
                for each in names or [secrets.token_hex(8) for _ in range(count)]:
                    fork = replace(record, id=each, base=record.layers, parent=name, made=time.time())
                    self._create_from_record(fork)
                    records.append(fork)
        except OSError as error:
            for fork in records:
                with contextlib.suppress(OSError):
                    self.remove(fork.id)
            raise StorageFault(
                f"Can't fork workspace {name}: {error.strerror or error}.",
                hint="It was not changed. Free some space or check the disk, then fork it again.",
            ) from error
        return records

    def diff(self, name: str) -> list[TreeDifference]:
        """The differences between a workspace and its initial state."""
        with self.mount_base_view(name) as base:
            return self.differences_from_base(name, base, self.get_record(name).base)

    def differences_from_base(self, name: str, base: str, shared: tuple[str, ...]) -> list[TreeDifference]:
        """The differences between a workspace and `base`, a view of only its template and layers `shared`."""
        root, record = os.fspath(self.open(name)), self.get_record(name)
        if record.kind == "copy" or record.layers[: len(shared)] != shared:
            return tree_differences(base, root)
        own = record.layers[len(shared) :]
        return tree_differences(
            base, root, [*map(self._layer_path, own), os.fspath(self._workspace_folder(name) / "upper")]
        )

    @contextmanager
    def mount_base_view(self, name: str) -> Iterator[str]:
        """A read-only view of a workspace's initial state."""
        record = self.get_record(name)
        tree = os.fspath(self.templates.get_template(record.template).tree)
        if record.kind == "copy" or not record.base:
            yield self._layer_path(record.base[-1]) if record.base else tree
            return
        place = self._workspace_folder(name) / f"base-{secrets.token_hex(4)}"
        place.mkdir()
        try:
            mount_overlay(place, [*map(self._layer_path, reversed(record.base)), tree])
            yield os.fspath(place)
        finally:
            unmount(place)
            place.rmdir()

    def disk_usage(self, name: str) -> WorkspaceDiskUsage:
        """The disk usage of a workspace since it was created or last forked."""
        record = self.get_record(name)
        top = self._workspace_folder(name) / ("upper" if record.kind == "overlay" else "root")
        files = size = 0
        with FolderHandle.at(os.fspath(top)) as handle:
            for entry in walk_tree(handle):
                files += 1
                size += 0 if entry.is_folder else entry.found.st_blocks * 512
        if record.kind == "copy":
            template = self.templates.get_template(record.template)
            files, size = max(0, files - template.files), max(0, size - template.bytes)
        return WorkspaceDiskUsage(size, files)

    def check_quota(self, name: str) -> None:
        """Raise `TooLarge` if a workspace has added more than its quota."""
        used = self.disk_usage(name)
        if used.bytes > self.quota.bytes or used.files > self.quota.files:
            raise TooLarge(
                f"The workspace is over its quota: {used.bytes >> 20:,} MiB in {used.files:,} files; "
                f"{self.quota.bytes >> 20:,} MiB and {self.quota.files:,} files are allowed.",
                hint="Delete unneeded files with `bash`.",
            )

    def set_parent(self, name: str, parent: str) -> WorkspaceRecord:
        """Record that a workspace was forked from `parent`."""
        record = replace(self.get_record(name), parent=parent)
        self._write_record(record)
        return record

    def remove(self, name: str) -> None:
        """Delete a workspace and its journal. Its forks are not affected."""
        with self._lock_store():
            self.close(name)
            with contextlib.suppress(FileNotFoundError):
                (self._workspace_folder(name) / "workspace.json").unlink()
            _remove_folder(self._workspace_folder(name))

    def collect_garbage(self, *, templates_unused_seconds: float = 7 * 86400.0) -> CollectedGarbage:
        """Delete unreferenced layers, long unused templates, and leftovers of interrupted operations."""
        with self._lock_store():
            names = self.workspace_names()
            kept = [self.get_record(name) for name in names]
            broken = set(os.listdir(self._workspaces)) - set(names)
            for name in broken:
                unmount(self._workspaces / name / "root")
                _remove_folder(self._workspaces / name)
            layers = set(os.listdir(self._layers)) - {
                layer for record in kept for layer in (*record.layers, *record.base)
            }
            for layer in layers:
                _remove_folder(self._layers / layer)
            unused = [
                digest
                for digest in set(self.templates.digests()) - {record.template for record in kept}
                # Don't delete shared templates: other stores may use them.
                if not self._shares_templates
                and self.templates.unused_seconds(digest) >= templates_unused_seconds
            ]
            for digest in unused:
                self.templates.remove(digest)
            self.templates.remove_leftovers()
        return CollectedGarbage(len(broken), len(layers), len(unused))

    def _create_from_record(self, record: WorkspaceRecord) -> None:
        place = self._workspace_folder(record.id)
        if (place / "workspace.json").exists():
            raise UsageError(f"Workspace {record.id} already exists.")
        self._remove_unfinished(record.id)
        try:
            self._make_folders_and_open(record)
        except BaseException:
            with contextlib.suppress(
                OSError
            ):  # if it fails, the next workspace with that name or garbage collection removes the rest
                self._remove_unfinished(record.id)
            raise

    def _remove_unfinished(self, name: str) -> None:
        """Remove the leftovers of a workspace that could not be created."""
        place = self._workspace_folder(name)
        if place.exists():
            (place / "workspace.json").unlink(missing_ok=True)
            self.close(name)
            _remove_folder(place)

    def _make_folders_and_open(self, record: WorkspaceRecord) -> None:
        place = self._workspace_folder(record.id)
        place.mkdir(0o700)
        (place / "state").mkdir(0o700)
        if record.kind == "overlay":
            (place / "root").mkdir()
            self._create_upper_layer(record)
        else:
            source = Path(self._lower_layer_folders(record)[0])
            _copy_folder(source, place / "root")
        self._write_record(record)
        self.templates.mark_as_used(record.template)
        self._lock_and_mount(record)

    def _create_upper_layer(self, record: WorkspaceRecord) -> None:
        place = self._workspace_folder(record.id)
        if (place / "work").exists():
            _remove_folder(place / "work")
        # Create it under another name: when `upper` exists, its work folder, owner and mode are ready too.
        unnamed = place / "upper.new"
        for folder in (place / "work", unnamed):
            folder.mkdir(0o700, exist_ok=True)
        # The upper layer's folder determines the owner and mode of the workspace's root.
        like = os.stat(self._lower_layer_folders(record)[0])
        if is_root():
            with FolderHandle.at(str(place)) as ours:
                ours.set_owner("upper.new", like)
        unnamed.chmod(stat.S_IMODE(like.st_mode))
        os.rename(unnamed, place / "upper")

    def _has_last_layer(self, record: WorkspaceRecord) -> bool:
        """Whether a workspace's last layer exists; it is recorded in the metadata before it is created."""
        return not record.layers or os.path.exists(self._layer_path(record.layers[-1]))

    def _mount_overlay(self, record: WorkspaceRecord) -> None:
        place = self._workspace_folder(record.id)
        unmount(place / "root")  # a killed process leaves its mounts behind
        if not self._has_last_layer(record):
            os.rename(place / "upper", self._layer_path(record.layers[-1]))
        if not (place / "upper").exists():
            self._create_upper_layer(record)
        if (place / "work" / "work" / "incompat").exists() and not reset_work_folder(place / "work"):
            raise HostError(f"Can't mount the upper layer of workspace {record.id} again.")
        try:
            mount_overlay(
                place / "root",
                self._lower_layer_folders(record),
                os.fspath(place / "upper"),
                os.fspath(place / "work"),
            )
        except OSError as error:
            raise HostError(f"Can't mount workspace {record.id}: {error}.") from error

    def _freeze_upper_layer(self, record: WorkspaceRecord) -> WorkspaceRecord:
        """Freeze the upper layer of a workspace and add a new, empty one. Returns the new metadata."""
        layer = secrets.token_hex(8)
        place = self._workspace_folder(record.id)
        if record.kind == "copy":
            (self._layers / layer).mkdir(0o700)
            _copy_folder(place / "root", self._layers / layer / "tree")
            # A copy has all files itself, so only the forks use the layer.
            return replace(record, layers=(layer,))
        if not os.listdir(place / "upper"):
            return record
        if len(record.layers) + 1 >= MAX_LAYERS:
            return self._flatten_layers(record)
        frozen = replace(record, layers=(*record.layers, layer))
        (self._layers / layer).mkdir(0o700)
        self._write_record(frozen)  # from here on, even after a crash, `_mount_overlay` does the rest
        try:
            self._mount_overlay(frozen)
        except (OSError, HostError):
            self._mount_overlay(frozen)  # try again: the error may be transient
        return frozen

    def _flatten_layers(self, record: WorkspaceRecord) -> WorkspaceRecord:
        """Merge all layers of a workspace into one on top of the template. Returns the new metadata."""
        layer, place = secrets.token_hex(8), self._workspace_folder(record.id)
        template = self.templates.get_template(record.template)
        layers = [*map(self._layer_path, record.layers), os.fspath(place / "upper")]
        root = os.fspath(place / "root")
        found = tree_differences(os.fspath(template.tree), root, layers)
        folder = self._layers / layer
        for each in (folder, folder / "tree", folder / "work", folder / "view"):
            each.mkdir(0o700)
        shutil.copystat(root, folder / "tree")
        mount_overlay(
            folder / "view",
            [os.fspath(template.tree)],
            os.fspath(folder / "tree"),
            os.fspath(folder / "work"),
        )
        try:
            apply_differences(found, root, os.fspath(folder / "view"))
        finally:
            unmount(folder / "view")
        unmount(place / "root")
        flat = replace(record, layers=(layer,))
        # If we crash before `upper` is deleted, it does no harm: the new layer has the same contents.
        self._write_record(flat)
        _remove_folder(place / "upper")
        self._mount_overlay(flat)
        return flat

    def _lower_layer_folders(self, record: WorkspaceRecord) -> list[str]:
        return [
            *map(self._layer_path, reversed(record.layers)),
            os.fspath(self.templates.files_folder(record.template)),
        ]

    def _layer_path(self, name: str) -> str:
        return os.fspath(self._layers / name / "tree")

    def _workspace_folder(self, name: str) -> Path:
        if not WORKSPACE_NAME.fullmatch(name.removesuffix(BASE_SUFFIX)):
            raise UsageError(f"{name[:80]!r} is not a valid workspace name.")
        return self._workspaces / name

    def _write_record(self, record: WorkspaceRecord) -> None:
        path = self._workspace_folder(record.id) / "workspace.json"
        partial = path.with_suffix(".partial")
        partial.write_text(json.dumps(asdict(record)))
        os.replace(partial, path)

    @contextmanager
    def _lock_store(self) -> Iterator[None]:
        """Lock the store across threads and processes, to create or remove layers and workspaces."""
        with self._lock, _hold_file_lock(self.folder / "lock"):
            yield

    def _lock_mount_point(self) -> AbstractContextManager[None]:
        """Lock the mount point for all stores: creating it again would hide the mounts below it."""
        return _hold_file_lock(self._mount_point / "mounts-lock")


@contextmanager
def _hold_file_lock(path: Path) -> Iterator[None]:
    deadline = time.monotonic() + _STORE_LOCK_SECONDS
    while (lock := try_lock(path)) is None:
        if time.monotonic() > deadline:
            raise Busy("Another process is changing the workspaces.", hint="Try again.")
        time.sleep(0.005)
    try:
        yield
    finally:
        unlock(lock)


def _copy_folder(source: Path, target: Path) -> None:
    with (
        FolderHandle.at(os.fspath(source.parent)) as here,
        FolderHandle.at(os.fspath(target.parent)) as there,
    ):
        copy_tree(here, source.name, there, target.name)


def _remove_folder(path: Path) -> None:
    with contextlib.suppress(FileNotFoundError), FolderHandle.at(os.fspath(path.parent)) as folder:
        remove_tree(folder, path.name)
