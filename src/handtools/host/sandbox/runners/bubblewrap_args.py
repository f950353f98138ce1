"""The arguments of bubblewrap: which files, devices and namespaces a command gets.

Only the paths named here exist in the sandbox: the root is empty, programs are read-only, the workspace is
at its own path, and all other folders are private and small. Order matters: later mounts are on top.
"""

import os
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from handtools.core.errors import HostError
from handtools.host.sandbox.launch import Launch, SessionFolders
from handtools.host.workspace_folders import is_at_or_below, shown_folders, workspace_folders

SANDBOX_SYSTEM_FOLDERS = ("/usr", "/etc", "/opt", "/nix/store", "/gnu/store", "/home/linuxbrew/.linuxbrew")
"""System folders with programs and settings, mounted read-only if they exist."""
_MERGED_USR_FOLDERS = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
"""Folders that are symlinks into /usr on current systems, and real folders on older ones."""
SANDBOX_GIT_CONFIG_PATH = "/run/gitconfig"
"""The git configuration with the commit author; a repository's own settings take precedence."""
_DEV_SHM, _TMP = "/dev/shm", "/tmp"  # noqa: S108
_SCRATCH_PARENTS = ("/home", "/var/lib", "/srv")
"""Possible parents of a persistent home folder in the sandbox; the first one without conflicts is used."""
_SCRATCH_HOME, _SCRATCH_CACHES = "sandbox", "caches"
_MIN_TMPFS_BYTES = 64 << 10
"""The size of a tmpfs that contains only mount points."""
_OWN_PROGRAMS = (".local/bin", ".cargo/bin", "go/bin")
"""Folders below a home folder where programs are installed without root."""
HOME_TOOLCHAINS = (
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
    """Files and folders in visible folders that must be hidden from the command."""

    files: tuple[str, ...] = ()
    folders: tuple[str, ...] = ()


def namespace_args(*, own_network: bool) -> Iterator[str]:
    """Yield the arguments for namespaces, capabilities and the session."""
    yield from ("--unshare-user", "--unshare-ipc", "--unshare-pid", "--unshare-uts", "--unshare-cgroup-try")
    if own_network:
        yield "--unshare-net"
    yield from ("--disable-userns", "--cap-drop", "ALL", "--die-with-parent", "--hostname", "sandbox")
    yield "--new-session"


def system_args(
    launch: Launch,
    *,
    home: str,
    sizes: TmpfsSizes,
    readable: Collection[str],
    session_folders: SessionFolders | None = None,
) -> Iterator[str]:
    """Yield arguments that mount the system read-only, and private folders (tmpfs, or `session_folders`)."""
    for tree in filter(os.path.isdir, SANDBOX_SYSTEM_FOLDERS):
        yield from ("--ro-bind", tree, tree)
    for folder in _MERGED_USR_FOLDERS:
        if os.path.islink(folder):
            yield from ("--symlink", os.readlink(folder), folder)
        elif os.path.isdir(folder):
            yield from ("--ro-bind", folder, folder)
    yield from ("--proc", "/proc", "--dev", "/dev")
    yield from _tmpfs_args(_DEV_SHM, sizes.shared_bytes, "1777")
    if session_folders is None:
        yield from _tmpfs_args(_TMP, sizes.temporary_bytes, "1777")
    else:
        yield from ("--bind", session_folders.temporary, _TMP)
        # A command can't rename or remove a mount point in its own namespace. So it can't replace these
        # names with symlinks that would redirect the next command's mounts below them.
        for name in session_folders.reserved:
            yield from _tmpfs_args(f"{_TMP}/{name}", sizes.temporary_bytes, "0755")
    yield from _tmpfs_args("/run", sizes.run_bytes, "0755")
    yield from ("--symlink", "../tmp", f"/var{_TMP}", "--symlink", "../run", "/var/run")
    resolver = os.path.realpath("/etc/resolv.conf")
    if launch.network == "on" and resolver.startswith("/run/"):
        yield from ("--ro-bind-try", resolver, resolver)
    if session_folders is None:
        yield from _tmpfs_args(home, sizes.home_bytes, "0700")
    else:
        yield from ("--bind", session_folders.home, home)
        yield from ("--bind", session_folders.caches, os.path.join(os.path.dirname(home), _SCRATCH_CACHES))
    for tree in readable:
        yield from ("--ro-bind", tree, tree)


def git_config_mount_args(fd: int) -> tuple[str, ...]:
    """Return arguments that mount a git configuration, read from an fd, as git's system configuration."""
    return ("--perms", "0444", "--ro-bind-data", str(fd), SANDBOX_GIT_CONFIG_PATH)


def tmpfs_folders(home: str, session_folders: SessionFolders | None) -> tuple[str, ...]:
    """Return the private tmpfs folders.

    They are /dev/shm, /run and, without `session_folders`, /tmp and the home folder.
    """
    if session_folders is None:
        return _DEV_SHM, _TMP, "/run", home
    return _DEV_SHM, "/run", *(f"{_TMP}/{name}" for name in session_folders.reserved)


def name_below_tmp(path: str) -> str:
    """Return the name directly in /tmp that a path starts with; empty for paths outside /tmp."""
    parts = os.path.normpath(path).split("/") if path.startswith("/") else []
    return parts[2] if len(parts) > 2 and f"/{parts[1]}" == _TMP else ""


def can_mount_at(path: str, session_folders: SessionFolders | None) -> bool:
    """Whether a path is safe to mount at: not below a name that the session's commands could replace."""
    name = name_below_tmp(path)
    return session_folders is None or not name or name in session_folders.reserved


def scratch_home(launch: Launch, readable: Iterable[str]) -> str:
    """Return the path of a persistent home folder inside the sandbox.

    It can't be the user's own home path: the workspace and toolchains are mounted below that path, and
    nothing may be mounted below a folder where another command could have created a symlink.
    """
    taken = [*(folder for _, folder in shown_folders(launch.root)), *readable, *launch.writable]
    for parent in _SCRATCH_PARENTS:
        mounts = [f"{parent}/{name}" for name in (_SCRATCH_HOME, _SCRATCH_CACHES)]
        if not any(is_at_or_below(path, mount) for path in taken for mount in mounts):
            return mounts[0]
    raise HostError(f"{launch.root} can't be a workspace in a sandbox: the home folder would cover it.")


def path_variable_with_home_bins(path: str, *, home: str, users_home: str) -> str:
    """Add the program folders of `home` to PATH, each before the user's own folder or at the end."""
    places = path.split(os.pathsep)
    for folder in _OWN_PROGRAMS:
        theirs, ours = os.path.join(users_home, folder), os.path.join(home, folder)
        places.insert(places.index(theirs) if theirs in places else len(places), ours)
    return os.pathsep.join(filter(None, places))


def workspace_args(launch: Launch) -> Iterator[str]:
    """Yield arguments that mount the workspace at its own path, writable unless frozen.

    If it has several folders, each is mounted at its own path, because installed programs may contain
    absolute paths, and under its name in the workspace. There it is a folder, not a symlink, so that `find`
    and `grep -r` descend into it.
    """
    how = "--ro-bind" if launch.frozen else "--bind"
    folders = workspace_folders(launch.root)
    for folder in folders.values():
        yield from (how, folder, folder)
    if "" not in folders:
        yield from _tmpfs_args(launch.root, _MIN_TMPFS_BYTES, "0755")
        for name, folder in folders.items():
            yield from (how, folder, f"{launch.root}/{name}")
        yield from ("--remount-ro", launch.root)
    for path in launch.writable:
        yield from ("--bind", path, path)


def read_only_args(pairs: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield arguments that mount paths read-only; `pairs` are tuples of source and target."""
    for path, place in pairs:
        yield from ("--ro-bind", path, place)


def mask_args(masks: MaskedPaths) -> Iterator[str]:
    """Yield arguments that mask hidden files and folders with unreadable mounts."""
    for folder in masks.folders:
        yield from ("--perms", "0000", "--tmpfs", folder, "--remount-ro", folder)
    for path in masks.files:
        yield from ("--ro-bind", os.devnull, path)


def remount_read_only_args(cwd: str) -> Iterator[str]:
    """Yield arguments that make the rest of the root, /dev and /proc read-only.

    For /proc this matters in workspaces owned by root: the kernel lets uid 0 change sysctls without
    checking for a capability.
    """
    yield from ("--remount-ro", "/proc", "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", cwd)


def toolchain_folders(home: str) -> list[str]:
    """Return the existing toolchain folders below a home folder."""
    return [path for path in (os.path.join(home, each) for each in HOME_TOOLCHAINS) if os.path.isdir(path)]


def sandbox_environment(
    given: Mapping[str, str], *, home: str, root_inside: bool, users_home: str = ""
) -> dict[str, str]:
    """Return the environment with HOME and TMPDIR inside the sandbox, without the user's sockets."""
    kept = {
        name: value
        for name, value in given.items()
        if name not in (*_HOST_SOCKET_VARIABLES, *_HOST_PATH_VARIABLES)
    }
    kept |= {"HOME": home, "TMPDIR": _TMP}
    if users_home and home != users_home:
        kept["PATH"] = path_variable_with_home_bins(kept.get("PATH", ""), home=home, users_home=users_home)
    if root_inside:
        # In a namespace with a single user, root can't chown files, but tar run as root tries to.
        kept.setdefault("TAR_OPTIONS", "--no-same-owner")
    return kept


def private_home(launch: Launch) -> str:
    """Return the sandbox's home folder: the user's own home path unless that is in the workspace."""
    home = os.path.normpath(launch.env.get("HOME", "") or "/")
    tops = [folder for _, folder in shown_folders(launch.root)]
    inside = any(is_at_or_below(home, top) and home != top for top in tops)
    usual = home.startswith("/") and home != "/" and not home.startswith(("/usr", "/etc", "/proc", "/dev"))
    return home if usual and not inside else "/home/sandbox"


def _tmpfs_args(path: str, size: int, mode: str) -> tuple[str, ...]:
    return ("--perms", mode, "--size", str(size), "--tmpfs", path)
