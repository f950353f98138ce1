"""Pool of reusable Docker containers, matched by their spec and labelled with their owner process."""

import atexit
import contextlib
import hashlib
import os
import select
import shutil
import socket
import tempfile
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from handtools.core.errors import HostError
from handtools.host.sandbox.containers.docker_connection import DockerEngine, docker_errors
from handtools.host.sandbox.containers.overlay_mount_helper import OverlayMounter
from handtools.host.sandbox.processes import cgroups
from handtools.host.sandbox.processes.cgroups import Cgroup

CONTAINER_FD_FOLDER = "/run/handtools"
"""The folder in a container with the files that are passed as extra fds."""
CONTAINER_HOME = "/home/sandbox"
_TMP, _VAR_TMP = "/tmp", "/var/tmp"  # noqa: S108
# Waits for EOF on stdin, which is our connection, so the container exits when we do. Bash is needed to
# ignore SIGCHLD: then the kernel reaps the orphans that become children of this init process.
_IDLE_COMMAND = ("bash", "-c", "trap '' CHLD; exec cat >/dev/null")


@dataclass(frozen=True, slots=True)
class ContainerSizes:
    """Size limits of a container's private folders, and its memory and CPU limits."""

    temporary_bytes: int = 1 << 30
    home_bytes: int = 1 << 30
    shared_bytes: int = 256 << 20
    memory_bytes: int = 4 << 30
    cpus: float = 0.0
    """How many CPUs the container may use; 0 for no limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerSpec:
    """The settings a container is created with: image, workspace, user, hidden paths, network, limits.

    Containers with equal specs are reused.
    """

    image: str
    root: str
    """The absolute path of the workspace, the same inside and outside."""
    user: tuple[int, int]
    private_files: tuple[str, ...] = ()
    private_folders: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    network: str = "none"
    memory_bytes: int = 4 << 30
    processes: int = 1024
    sizes: ContainerSizes = field(default_factory=ContainerSizes)


@dataclass(frozen=True, slots=True)
class HostFolders:
    """Host folders that are mounted into a container."""

    slips: str
    nothing: str
    """A folder that contains an empty `file` and an empty `folder` to mount over private paths."""


def container_create_options(
    spec: ContainerSpec, host_folders: HostFolders, labels: dict[str, str]
) -> dict[str, Any]:
    """Return the Docker Engine options for creating a container with a spec."""
    from docker.types import LogConfig

    user, group = spec.user
    sizes = spec.sizes
    private = f"uid={user},gid={group},exec,nosuid,nodev"
    return {
        "image": spec.image,
        "entrypoint": list(_IDLE_COMMAND),
        "command": [],
        "working_dir": "/",
        "user": "0:0",  # for the idle process: a command can't stop or trace another user's process
        "labels": labels,
        "hostname": "sandbox",
        "stdin_open": True,
        "auto_remove": True,
        "healthcheck": {"test": ["NONE"]},
        "log_config": LogConfig(type=LogConfig.types.NONE),
        "network_mode": spec.network,
        "sysctls": {"net.ipv6.conf.lo.disable_ipv6": "0"},
        "ipc_mode": "private",
        "cgroupns": "private",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": spec.processes + 2,
        "mem_limit": spec.memory_bytes,
        "memswap_limit": spec.memory_bytes,
        "nano_cpus": int(sizes.cpus * 1e9) or None,
        "shm_size": sizes.shared_bytes,
        "tmpfs": {
            _TMP: f"mode=1777,size={sizes.temporary_bytes},exec,nosuid,nodev",
            _VAR_TMP: f"mode=1777,size={sizes.temporary_bytes},exec,nosuid,nodev",
            CONTAINER_HOME: f"mode=0700,size={sizes.home_bytes},{private}",
        },
        "mounts": _mounts(spec, host_folders),
    }


def _mounts(spec: ContainerSpec, host_folders: HostFolders) -> list[Any]:
    """Return the mounts of a container: the workspace, and masks over read-only and private paths."""
    from docker.types import Mount

    def bind(source: str, target: str, *, read_only: bool) -> Any:
        return Mount(target, source, type="bind", read_only=read_only, propagation="rprivate")

    return [
        bind(spec.root, spec.root, read_only=False),
        bind(host_folders.slips, CONTAINER_FD_FOLDER, read_only=False),
        *(bind(f"{host_folders.nothing}/file", path, read_only=True) for path in _image_secrets(spec.user)),
        *(bind(path, path, read_only=True) for path in spec.read_only),
        *(bind(f"{host_folders.nothing}/folder", path, read_only=True) for path in spec.private_folders),
        *(bind(f"{host_folders.nothing}/file", path, read_only=True) for path in spec.private_files),
    ]


def _image_secrets(user: tuple[int, int]) -> tuple[str, ...]:
    """Return files in the image that only root may read, to hide if the command runs as root."""
    return ("/etc/shadow", "/etc/gshadow") if user[0] == 0 else ()


OWNER_LABEL = "handtools.owner"
WORKSPACE_LABEL = "handtools.workspace"
FOLDER_LABEL = "handtools.folder"


def workspace_label(root: str) -> str:
    """Return the value of a container's workspace label: a digest of the path."""
    return hashlib.sha256(os.fsencode(root)).hexdigest()[:16]


def owner_label() -> str:
    """Return a label that identifies this process uniquely: boot id, pid namespace, pid, start time."""
    pid = os.getpid()
    return f"{_boot_id()} {_pid_namespace()} {pid} {_start_time(pid)}"


def is_owner_gone(owner: str) -> bool:
    """Whether the process in an owner label has exited; False if it is in another pid namespace."""
    try:
        boot, namespace, pid, started = owner.split(" ")
    except ValueError:
        return False
    if boot != _boot_id():
        return True
    return namespace == _pid_namespace() and _start_time(int(pid)) != started


def _boot_id() -> str:
    return Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()


def _pid_namespace() -> str:
    return os.readlink("/proc/self/ns/pid")


def _start_time(pid: int) -> str:
    """Return the start time of a process in clock ticks; empty if it doesn't exist or has exited."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    except OSError:
        return ""
    return "" if facts[0] in {"Z", "X"} else facts[19]


IDLE_CONTAINERS = 2
"""How many idle containers are kept for each workspace."""
_FOLDER_PREFIX = "handtools-container-"


@dataclass(slots=True)
class Container:
    """A running container and our connection to it."""

    id: str
    spec: ContainerSpec
    line: socket.socket
    """A connection to the stdin of the container's init process; closing it stops the container."""
    pid: int
    """The host's pid of the container's init process; 0 if the engine doesn't report it."""
    folder: str
    slips: int
    """The fd of the host folder with the files that are passed to commands as fds."""
    cgroup: Cgroup = field(default_factory=Cgroup)
    mounter: OverlayMounter | None = None
    """The helper process that mounts overlays in the container; None before the first overlay."""

    def lay(self, mounts: Sequence[Sequence[Any]]) -> None:
        """Mount an overlay over the workspace inside the container, for one command."""
        self.mounter = self.mounter or OverlayMounter(self.pid, self.spec.root)
        self.mounter.lay(mounts)

    def lift(self) -> None:
        """Unmount the overlay."""
        if self.mounter is not None:
            self.mounter.lift()

    @property
    def alive(self) -> bool:
        """Whether the container still runs."""
        waiting = select.poll()
        waiting.register(self.line, select.POLLIN | select.POLLHUP)
        return not waiting.poll(0)

    @property
    def has_visible_processes(self) -> bool:
        """Whether its processes are visible from here; not if the engine runs in a virtual machine."""
        return self.pid in self.cgroup.pids()

    def others(self) -> list[int]:
        """Return the pids of all processes in the container except its init process."""
        return [pid for pid in self.cgroup.pids() if pid != self.pid]


class ContainerPool:
    """Creates, reuses and removes containers of one engine, for all workspaces of this process."""

    def __init__(self, engine: DockerEngine) -> None:
        self.engine = engine
        self._idle: list[Container] = []
        self._lock = threading.Lock()
        self._owner = 0

    @cached_property
    def empty_mount_sources(self) -> str:
        """The path of a folder with an empty `file` and an empty `folder` to mount over private paths."""
        made = tempfile.mkdtemp(prefix=_FOLDER_PREFIX)
        Path(made, "file").touch(0o000)
        Path(made, "folder").mkdir(0o000)
        weakref.finalize(self, _remove_mask_folder, made)
        return made

    def take(self, spec: ContainerSpec) -> Container:
        """Take an idle container with this spec, or create one."""
        with self._lock:
            self._initialize_once_per_process()
            for place in reversed(range(len(self._idle))):
                if self._idle[place].spec == spec:
                    found = self._idle.pop(place)
                    if found.alive:
                        return found
                    _release_local_resources(found)
        return self.make(spec)

    def give_back(self, container: Container, *, clean: bool) -> None:
        """Return a container to the pool; removes it if it is not `clean` or enough are idle."""
        gone = [] if clean else [container]
        with self._lock:
            if clean:
                self._idle.append(container)
                kept = [each for each in self._idle if each.spec.root == container.spec.root]
                gone = kept[: max(len(kept) - IDLE_CONTAINERS, 0)]
                self._idle = [each for each in self._idle if each not in gone]
        for each in gone:
            self.remove(each)

    def release_workspace(self, root: str) -> None:
        """Remove all idle containers of a workspace."""
        with self._lock:
            if self._owner != os.getpid():
                return
            gone = [each for each in self._idle if each.spec.root == root]
            self._idle = [each for each in self._idle if each.spec.root != root]
        for each in gone:
            self.remove(each)

    def close(self) -> None:
        """Remove all idle containers."""
        with self._lock:
            roots = {each.spec.root for each in self._idle}
        for root in roots:
            self.release_workspace(root)
        self.engine.close()

    def kill(self, container: Container) -> None:
        """Kill all processes in a container, which stops it."""
        with contextlib.suppress(HostError), docker_errors():
            self.engine.client.api.kill(container.id)

    def remove(self, container: Container) -> None:
        """Force-remove a container with all its processes, and close our connection to it."""
        with contextlib.suppress(HostError), docker_errors():
            self.engine.client.api.remove_container(container.id, force=True)
        _release_local_resources(container)

    def _initialize_once_per_process(self) -> None:
        """Initialize the pool once per process: after a fork, the containers still belong to the parent."""
        if self._owner == os.getpid():
            return
        self._idle, self._owner = [], os.getpid()
        atexit.register(self.close)
        self._remove_orphaned_containers()

    def _remove_orphaned_containers(self) -> None:
        """Remove containers whose owner process was killed."""
        api = self.engine.client.api
        with docker_errors():
            found = api.containers(all=True, filters={"label": OWNER_LABEL})
        for each in found:
            labels = each["Labels"]
            if is_owner_gone(labels[OWNER_LABEL]):
                with contextlib.suppress(HostError), docker_errors():
                    api.remove_container(each["Id"], force=True)
                _remove_folder(labels.get(FOLDER_LABEL, ""))

    def make(self, spec: ContainerSpec) -> Container:
        """Create and start a new container with this spec."""
        folder = tempfile.mkdtemp(prefix=_FOLDER_PREFIX)
        try:
            host_folders = HostFolders(_make_fd_files_folder(folder, spec.user), self.empty_mount_sources)
            return self._start_container(spec, host_folders, folder)
        except BaseException:
            _remove_folder(folder)
            raise

    def _start_container(self, spec: ContainerSpec, host_folders: HostFolders, folder: str) -> Container:
        labels = {
            OWNER_LABEL: owner_label(),
            WORKSPACE_LABEL: workspace_label(spec.root),
            FOLDER_LABEL: folder,
        }
        client = self.engine.client
        with docker_errors():
            made = client.containers.create(**container_create_options(spec, host_folders, labels))
        try:
            line, _ = self.engine.stream(f"/containers/{made.id}/attach?stream=1&stdin=1")
            with docker_errors():
                client.api.start(made.id)
                pid = client.api.inspect_container(made.id)["State"]["Pid"]
        except BaseException:
            with contextlib.suppress(HostError), docker_errors():
                client.api.remove_container(made.id, force=True)
            raise
        slips = os.open(host_folders.slips, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return Container(made.id, spec, line, pid, folder, slips, cgroups.cgroup_of(pid))


def _make_fd_files_folder(folder: str, user: tuple[int, int]) -> str:
    """Create the folder for files passed as fds, and return its path.

    The command's user owns it but can't change its parent folder.
    """
    slips = os.path.join(folder, "slips")
    os.chmod(folder, 0o711)  # noqa: S103 — others can't list it or create files in it
    os.mkdir(slips, 0o700)
    if os.geteuid() == 0:
        os.chown(slips, *user)
    return slips


def _remove_mask_folder(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.chmod(os.path.join(folder, "folder"), 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _release_local_resources(container: Container) -> None:
    if container.mounter is not None:
        container.mounter.close()
    container.line.close()
    os.close(container.slips)
    _remove_folder(container.folder)


def _remove_folder(folder: str) -> None:
    """Delete a temporary folder only if we created it: a container's label could name any path."""
    if (
        os.path.basename(folder).startswith(_FOLDER_PREFIX)
        and os.path.dirname(folder) == tempfile.gettempdir()
    ):
        shutil.rmtree(folder, ignore_errors=True)
