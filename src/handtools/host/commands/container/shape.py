"""The shape of a container: all that is settled when it is made, so that equal shapes can share one."""

from dataclasses import dataclass, field
from typing import Any

SLIPS = "/run/handtools"
"""Inside: a folder for what a command is handed besides its input and output."""
HOME = "/home/sandbox"
_TEMPORARY, _ELSEWHERE = "/tmp", "/var/tmp"  # noqa: S108
# Nothing to do but to end when we are gone: its input is a connection of ours. Bash, because ignoring this signal
# is what makes the kernel clear away the orphans that become its children.
_IDLE = ("bash", "-c", "trap '' CHLD; exec cat >/dev/null")


@dataclass(frozen=True, slots=True)
class Sizes:
    """What the private places may hold, and what all processes together may use."""

    temporary_bytes: int = 1 << 30
    home_bytes: int = 1 << 30
    shared_bytes: int = 256 << 20
    memory_bytes: int = 4 << 30
    cpus: float = 0.0
    """Processors' worth of time; 0 leaves it to the engine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """One kind of container."""

    image: str
    root: str
    """The workspace, at its own path."""
    user: tuple[int, int]
    private_files: tuple[str, ...] = ()
    private_folders: tuple[str, ...] = ()
    read_only: tuple[str, ...] = ()
    network: str = "none"
    memory_bytes: int = 4 << 30
    processes: int = 1024
    sizes: Sizes = field(default_factory=Sizes)


@dataclass(frozen=True, slots=True)
class Places:
    """Folders of ours that a container needs."""

    slips: str
    nothing: str
    """A folder with an empty `file` and an empty `folder`, to lie over what is private."""


def options(shape: Shape, places: Places, labels: dict[str, str]) -> dict[str, Any]:
    """What the engine is told."""
    from docker.types import LogConfig

    user, group = shape.user
    sizes = shape.sizes
    private = f"uid={user},gid={group},exec,nosuid,nodev"
    return {
        "image": shape.image,
        "entrypoint": list(_IDLE),
        "command": [],
        "working_dir": "/",
        "user": "0:0",  # the idle process: a command can't stop or trace what is another's
        "labels": labels,
        "hostname": "sandbox",
        "stdin_open": True,
        "auto_remove": True,
        "healthcheck": {"test": ["NONE"]},
        "log_config": LogConfig(type=LogConfig.types.NONE),
        "network_mode": shape.network,
        "sysctls": {"net.ipv6.conf.lo.disable_ipv6": "0"},
        "ipc_mode": "private",
        "cgroupns": "private",
        "read_only": True,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": shape.processes + 2,
        "mem_limit": shape.memory_bytes,
        "memswap_limit": shape.memory_bytes,
        "nano_cpus": int(sizes.cpus * 1e9) or None,
        "shm_size": sizes.shared_bytes,
        "tmpfs": {
            _TEMPORARY: f"mode=1777,size={sizes.temporary_bytes},exec,nosuid,nodev",
            _ELSEWHERE: f"mode=1777,size={sizes.temporary_bytes},exec,nosuid,nodev",
            HOME: f"mode=0700,size={sizes.home_bytes},{private}",
        },
        "mounts": _mounts(shape, places),
    }


def _mounts(shape: Shape, places: Places) -> list[Any]:
    """The workspace, and over it what must not be written or seen."""
    from docker.types import Mount

    def bind(source: str, target: str, *, read_only: bool) -> Any:
        return Mount(target, source, type="bind", read_only=read_only, propagation="rprivate")

    return [
        bind(shape.root, shape.root, read_only=False),
        bind(places.slips, SLIPS, read_only=False),
        *(bind(f"{places.nothing}/file", path, read_only=True) for path in _secrets(shape.user)),
        *(bind(path, path, read_only=True) for path in shape.read_only),
        *(bind(f"{places.nothing}/folder", path, read_only=True) for path in shape.private_folders),
        *(bind(f"{places.nothing}/file", path, read_only=True) for path in shape.private_files),
    ]


def _secrets(user: tuple[int, int]) -> tuple[str, ...]:
    """What of an image only root could read: everybody else is kept from it anyway."""
    return ("/etc/shadow", "/etc/gshadow") if user[0] == 0 else ()
