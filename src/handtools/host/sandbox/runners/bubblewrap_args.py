"""The arguments of bubblewrap: which files, devices and namespaces a command gets.

Nothing is there unless it is named here: the root is empty, programs are read-only, the workspace is at its own
path, and the rest is private and small. Order matters: what is mounted later lies on top.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from handtools.host.sandbox.launch import Launch

SANDBOX_SYSTEM_FOLDERS = ("/usr", "/etc", "/opt", "/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew")
"""System folders with programs and settings, mounted read-only where they exist."""
_MERGED_USR_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Folders that are links into /usr on current systems, and real folders on older ones."""
_DEV_SHM, _TMP = "/dev/shm", "/tmp"  # noqa: S108
_TOOLCHAINS = (
    ".pyenv", ".local/share/uv/python", ".local/share/mise/installs", ".asdf/installs", ".nvm/versions",
    ".volta/tools", ".cargo/bin", ".rustup", ".sdkman/candidates", ".rbenv/versions", ".deno/bin", ".bun/bin",
    "go/bin", ".ghcup/bin", ".local/bin",
)  # fmt: skip
"""Folders below a home folder with toolchains: programs, never credentials."""
_HOST_SOCKET_VARIABLES = (
    "SSH_AUTH_SOCK",
    "SSH_AGENT_PID",
    "GPG_AGENT_INFO",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "DOCKER_HOST",
)
_HOST_PATH_VARIABLES = ("XDG_RUNTIME_DIR", "DBUS_SESSION_BUS_ADDRESS", "XAUTHORITY", "TMUX", "OLDPWD")


@dataclass(frozen=True, slots=True)
class TmpfsSizes:
    """Size limits in bytes of the private folders, which are in memory (tmpfs)."""

    temporary_bytes: int = 1 << 30
    home_bytes: int = 1 << 30
    shared_bytes: int = 256 << 20
    run_bytes: int = 16 << 20


@dataclass(frozen=True, slots=True)
class MaskedPaths:
    """Files and folders in visible places that must be hidden from the command."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


def namespace_args(launch: Launch, *, hostname: str = "sandbox") -> Iterator[str]:
    """Arguments for namespaces, capabilities and the session."""
    yield from ("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
    # The network of its session is joined before this program starts.
    if launch.network != "on" and not launch.namespaces:
        yield "--unshare-net"
    yield from ("--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--hostname", hostname)
    # On a terminal of its own it needs to stay in control of it; what it types there reaches only us.
    if launch.terminal is None:
        yield "--new-session"


def system_args(launch: Launch, *, home: str, sizes: TmpfsSizes, readable: Iterable[str]) -> Iterator[str]:
    """Arguments that mount the system read-only, and the private tmpfs folders."""
    for tree in filter(os.path.isdir, SANDBOX_SYSTEM_FOLDERS):
        yield from ("--ro-bind", tree, tree)
    for folder in _MERGED_USR_FOLDERS:
        if os.path.islink(folder):
            yield from ("--symlink", os.readlink(folder), folder)
        elif os.path.isdir(folder):
            yield from ("--ro-bind", folder, folder)
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from _tmpfs_args(_DEV_SHM, sizes.shared_bytes, "1777")
    yield from _tmpfs_args(_TMP, sizes.temporary_bytes, "1777")
    yield from _tmpfs_args("/run", sizes.run_bytes, "0755")
    yield from ("--symlink", "../tmp", f"/var{_TMP}", "--symlink", "../run", "/var/run")
    resolver = os.path.realpath("/etc/resolv.conf")
    if launch.network == "on" and resolver.startswith("/run/"):
        yield from ("--ro-bind-try", resolver, resolver)
    yield from _tmpfs_args(home, sizes.home_bytes, "0700")
    for tree in readable:
        yield from ("--ro-bind", tree, tree)


def tmpfs_folders(home: str) -> tuple[str, ...]:
    """The private tmpfs folders: /dev/shm, /tmp, /run and the home folder."""
    return _DEV_SHM, _TMP, "/run", home


def workspace_args(launch: Launch, kept: Iterable[str]) -> Iterator[str]:
    """Arguments that mount the workspace at its own path, writable unless frozen, and its read-only paths."""
    source = launch.overlay.mounted_at if launch.overlay else launch.root
    yield from ("--ro-bind" if launch.frozen else "--bind", source, launch.root)
    for path in launch.writable:
        yield from ("--bind", path, path)
    for path in kept:
        yield from ("--ro-bind", path, path)


def mask_args(masks: MaskedPaths) -> Iterator[str]:
    """Arguments that cover hidden files and folders with something unreadable."""
    for folder in masks.folders:
        yield from ("--perms", "0000", "--tmpfs", folder, "--remount-ro", folder)
    for path in masks.files:
        yield from ("--ro-bind", os.devnull, path)


def remount_read_only_args(cwd: str) -> Iterator[str]:
    """Arguments that make the rest of the root, /dev and /proc read-only.

    Of /proc this matters to workspaces that root owns: the kernel lets uid 0 change its settings, and does not ask
    for a capability.
    """
    yield from ("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", cwd)


def toolchain_folders(home: str) -> list[str]:
    """The toolchain folders that exist below a home folder."""
    return [path for path in (os.path.join(home, each) for each in _TOOLCHAINS) if os.path.isdir(path)]


def sandbox_environment(given: Mapping[str, str], *, home: str, root_inside: bool) -> dict[str, str]:
    """The environment with HOME and temporary folders moved inside, without sockets of the user's own programs."""
    kept = {
        name: value
        for name, value in given.items()
        if name not in (*_HOST_SOCKET_VARIABLES, *_HOST_PATH_VARIABLES)
    }
    kept |= {"HOME": home, "TMPDIR": _TMP}
    if root_inside:
        # Root of a namespace with one user in it can't give files to others, and tar as root would try.
        kept.setdefault("TAR_OPTIONS", "--no-same-owner")
    return kept


def private_home(launch: Launch) -> str:
    """The path of the home folder inside: the usual one, unless that is in the workspace."""
    home = os.path.normpath(launch.env.get("HOME", "") or "/")
    inside = Path(home).is_relative_to(launch.root) and home != launch.root
    usual = home.startswith("/") and home != "/" and not home.startswith(("/usr", "/etc", "/proc", "/dev"))
    return home if usual and not inside else "/home/sandbox"


def _tmpfs_args(path: str, size: int, mode: str) -> tuple[str, ...]:
    return ("--perms", mode, "--size", str(size), "--tmpfs", path)
