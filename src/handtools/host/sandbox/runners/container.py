"""The container runner: runs a command in a Docker container with an image's programs and the workspace."""

import contextlib
import os
import secrets
import tempfile
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from handtools.core.commands import CommandLimits, CommandNetwork
from handtools.core.errors import HostError
from handtools.host.sandbox.containers.container_exec import ContainerExecThreads
from handtools.host.sandbox.containers.container_pool import (
    CONTAINER_HOME,
    ContainerPool,
    ContainerSizes,
    ContainerSpec,
)
from handtools.host.sandbox.containers.docker_connection import DockerEngine
from handtools.host.sandbox.default_limits import with_default_limits
from handtools.host.sandbox.launch import (
    NO_RESOURCES,
    ConfinedLaunch,
    Launch,
    LaunchResources,
    Mount,
)
from handtools.host.sandbox.policy_paths import PolicyPathFinder
from handtools.host.sandbox.processes.running_process import RunningProcess
from handtools.host.sandbox.runners import bubblewrap_args as profile
from handtools.host.sandbox.runners import hidden_paths as hidden
from handtools.host.sandbox.runners.bubblewrap_args import MaskedPaths
from handtools.host.sandbox.runners.command_user import workspace_owner
from handtools.host.workspace_folders import workspace_folders

IMAGE_VARIABLE = "HANDTOOLS_IMAGE"
"""Environment variable with the default image."""
_DEFAULT_IMAGE = "debian:stable-slim"
_HOST_PATH_VARIABLES = ("HOME", "LOGNAME", "PATH", "SHELL", "TMPDIR", "USER", "VIRTUAL_ENV")
"""Variables with paths of this machine, which are not valid in an image."""
_SYSTEM_FOLDERS = (
    "/", "/usr", "/etc", "/proc", "/sys", "/dev", "/run", "/home", "/tmp", "/var", "/bin", "/lib",  # noqa: S108
)  # fmt: skip
_MAX_MASKS = 256
_MS_BIND, _MS_REMOUNT, _MS_RDONLY = 0x1000, 0x20, 0x1
_PROBE_SECONDS = 30.0


class ContainerRunner:
    """Confines commands in Docker containers: read-only root, no capabilities, Docker's seccomp filter."""

    name = "container"
    boundary = (
        "It sees only the workspace and the image's programs: no other files, processes or sockets, and no "
        "network unless allowed. The container engine is trusted."
    )
    confined = True
    keeps_scratch = False
    session_network_modes: frozenset[CommandNetwork] = frozenset()

    def __init__(self, *, image: str = "", address: str = "", sizes: ContainerSizes | None = None) -> None:
        self.image = image or os.environ.get(IMAGE_VARIABLE, "") or _DEFAULT_IMAGE
        self._sizes = sizes or ContainerSizes()
        self._containers = ContainerPool(DockerEngine(address))
        self._finders = PolicyPathFinder()
        weakref.finalize(self, self._containers.close)

    def unavailable_reason(self) -> str:
        """Return why containers can't be used on this machine; empty if they can."""
        return self._problem

    def confine(self, launch: Launch, resources: LaunchResources = NO_RESOURCES) -> ConfinedLaunch:
        """Return the launch set up to run in a container for its workspace."""
        if "" not in workspace_folders(launch.root):
            raise HostError("Containers support only workspaces with one folder. Use another runner.")
        if launch.root in _SYSTEM_FOLDERS:
            raise HostError(
                f"{launch.root} can't be a workspace in a container: the image has its own folder there."
            )
        writes_apart = bool(resources.overlays)
        covered = self._finders.covered(
            launch.root,
            launch.private_globs,
            launch.read_only_globs,
            launch.is_open,
            writes_apart=writes_apart,
        )
        hide, notes = self._masks_and_notes(launch.root, covered.hidden, writes_apart=writes_apart)
        if covered.alarm is not None:
            covered.alarm.set_hidden((*hide.files, *hide.folders))
        kept = tuple(hidden.read_only_paths(launch, covered.read_only, writes_apart=writes_apart))
        mounts: tuple[Mount, ...] = ()
        if not writes_apart:
            shape = self._container_spec(launch, hide, kept)
        else:
            # The overlay covers the workspace, so masks of workspace paths are mounted on top of it. A
            # worktree's git folder is outside.
            inner = [path for path in kept if Path(path).is_relative_to(launch.root)]
            shape = self._container_spec(
                launch, MaskedPaths(), tuple(path for path in kept if path not in inner)
            )
            mounts = tuple(_mask_mounts(hide, inner, self._containers.empty_mount_sources))
        return ConfinedLaunch(
            launch=launch,
            resources=resources,
            argv=(os.path.basename(launch.argv[0]), *launch.argv[1:]) if _is_bash(launch) else launch.argv,
            env=_container_environment(launch.env, as_root=shape.user[0] == 0),
            limits=with_default_limits(launch.limits),
            pool=ContainerExecThreads(self._containers, shape),
            mounts=mounts,
            private_file_alarm=covered.alarm,
            notes=(*launch.host_list_notes, *notes),
        )

    def release_workspace(self, root: str) -> None:
        self._containers.release_workspace(root)

    def _masks_and_notes(
        self, root: str, private_paths: Iterable[str], *, writes_apart: bool
    ) -> tuple[MaskedPaths, tuple[str, ...]]:
        """Return the paths to mask, and notes about other files that are hidden with them."""
        every = hidden.private_masks(root, private_paths)
        private, notes = hidden.limit_masks(every, root, most=_MAX_MASKS)
        # Sockets seen through an overlay need no masks: connecting to them fails.
        sockets = [] if writes_apart else hidden.visible_sockets(root)
        inside = [path for path in sockets if Path(path).is_relative_to(root)]
        files = tuple(dict.fromkeys((*private.files, *inside)))
        return MaskedPaths(files, private.folders), tuple(notes)

    def _container_spec(self, launch: Launch, masks: MaskedPaths, kept: tuple[str, ...]) -> ContainerSpec:
        limits = with_default_limits(launch.limits)
        return ContainerSpec(
            image=self.image,
            root=launch.root,
            user=workspace_owner(launch.root) or (os.geteuid(), os.getegid()),
            private_files=masks.files,
            private_folders=masks.folders,
            read_only=kept,
            network="bridge" if launch.network == "on" else "none",
            memory_bytes=limits.memory_bytes or self._sizes.memory_bytes,
            processes=limits.processes or 0,
            sizes=self._sizes,
        )

    @cached_property
    def _problem(self) -> str:
        problem = self._containers.engine.problem()
        if problem:
            return problem
        try:
            return self._probe_failure()
        except (OSError, HostError) as error:
            return f"Can't start a container with {self.image}: {error}"

    def _probe_failure(self) -> str:
        """Test once whether a container can read a file of this machine; returns why it failed, or "".

        It can't if the engine is on another machine.
        """
        with _probe_folder() as (root, word, _):
            return (
                ""
                if self._read_in_container(root) == word
                else "Docker can't mount this machine's folders."
            )

    @property
    def can_mount_overlay(self) -> bool:
        """Whether overlays can be mounted in containers: only as root, on the engine's machine."""
        return self._overlay_works

    @cached_property
    def _overlay_works(self) -> bool:
        if os.geteuid() != 0 or self._problem:
            return False
        with _probe_folder() as (root, _, other), contextlib.suppress(OSError, HostError):
            mounts_over = Mount(os.path.join(root, "other"), root, flags=_MS_BIND)
            return self._read_in_container(root, mounts_over) == other
        return False

    def _read_in_container(self, root: str, *mounts: Mount) -> str:
        """Read the file `word` in the folder `root` with a command in a container."""
        limits = CommandLimits(seconds=_PROBE_SECONDS)
        launch = Launch(argv=("cat", "word"), env={}, cwd=root, root=root, limits=limits)
        confined = replace(self.confine(launch), mounts=mounts)
        running = RunningProcess(
            launch, Path(root, "output"), None, lambda _: contextlib.nullcontext(confined)
        )
        try:
            ended = running.result()
        finally:
            running.close()
            self.release_workspace(root)
        if ended.fault:
            raise HostError(ended.fault)
        return ended.output.head.decode("utf-8", "replace")


@contextlib.contextmanager
def _probe_folder() -> Iterator[tuple[str, str, str]]:
    """Context manager: a temporary folder with a random word in a file, and a subfolder with another."""
    one, other = secrets.token_hex(8), secrets.token_hex(8)
    with tempfile.TemporaryDirectory() as folder:
        root = os.path.realpath(folder)
        Path(root, "word").write_text(one)
        Path(root, "other").mkdir()
        Path(root, "other", "word").write_text(other)
        yield root, one, other


def _container_environment(given: Mapping[str, str], *, as_root: bool) -> dict[str, str]:
    """Return the environment without variables that contain host paths; the image sets its own."""
    moved = profile.sandbox_environment(given, home=CONTAINER_HOME, root_inside=as_root)
    ours = {name for name in _HOST_PATH_VARIABLES if name in moved and moved[name] == os.environ.get(name)}
    return {name: value for name, value in moved.items() if name not in ours} | {"HOME": CONTAINER_HOME}


def _is_bash(launch: Launch) -> bool:
    """Whether the launch runs bash, which may have another path in the image."""
    return os.path.basename(launch.argv[0]) == "bash"


def _mask_mounts(masks: MaskedPaths, kept: Iterable[str], nothing: str) -> Iterator[Mount]:
    """Yield the mounts that hide or write-protect paths on top of the command's overlay."""
    pairs = [
        *((path, path) for path in kept),
        *((f"{nothing}/folder", path) for path in masks.folders),
        *((f"{nothing}/file", path) for path in masks.files),
    ]
    for source, target in pairs:
        yield Mount(source, target, flags=_MS_BIND)
        yield Mount("none", target, flags=_MS_BIND | _MS_REMOUNT | _MS_RDONLY)
