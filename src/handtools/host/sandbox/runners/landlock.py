"""The Landlock runner, for machines without namespaces: file access rules, and seccomp to deny sockets."""

import contextlib
import os
import threading
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from handtools.core.commands import CommandNetwork
from handtools.core.errors import HostError
from handtools.host import programs
from handtools.host.sandbox.default_limits import with_default_limits
from handtools.host.sandbox.launch import NO_RESOURCES, ConfinedLaunch, Launch, LaunchResources
from handtools.host.sandbox.runners import bubblewrap_args as profile
from handtools.host.sandbox.runners import hidden_paths as hidden
from handtools.host.sandbox.runners import seccomp
from handtools.host.sandbox.runners.command_user import make_private_home, user_can_reach, workspace_owner
from handtools.host.sandbox.runners.landlock_ruleset import (
    DEVICE_ACCESS,
    LIST_ACCESS,
    READ_ACCESS,
    WRITE_ACCESS,
    create_ruleset,
    landlock_abi,
    landlock_syscall_filter,
)
from handtools.host.workspace_folders import workspace_folders

_DEVICE_FILES = ("null", "zero", "full", "random", "urandom")
_TERMINALS = ("tty", "ptmx", "pts")
_OTHER_TREES = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc", "/sys/devices/system/cpu")
_NOT_KEPT = "$HOME and $TMPDIR are not kept: the user that runs commands can't access the session's."


class LandlockRunner:
    """Confines commands with Landlock file rules and a seccomp filter; weaker than bubblewrap."""

    name = "landlock"
    boundary = (
        "Reduced: it can't write outside the workspace, read most other files or open sockets. But it sees "
        "which programs run, can change modes and times of this user's other files, and can access private "
        "files and .git in the workspace."
    )
    confined = False
    keeps_scratch = True
    can_mount_overlay = False
    """Landlock rules bind to inodes; an overlay has new ones, so the workspace would be inaccessible."""
    session_network_modes: frozenset[CommandNetwork] = frozenset()

    def __init__(self, root: str | os.PathLike[str] = "", *, readable: Iterable[str] = ()) -> None:
        """`root` is the workspace: helper programs in it are never used."""
        self._root = root
        self._readable = tuple(readable)
        self._rules: dict[tuple[object, ...], tuple[tuple[object, ...], int]] = {}
        self._lock = threading.Lock()
        weakref.finalize(self, _close_rulesets, self._rules)

    def unavailable_reason(self) -> str:
        """Return why Landlock does not work on this machine; empty if it does."""
        if not seccomp.architecture_known():
            return f"There is no seccomp filter for {seccomp.machine_architecture()}."
        if landlock_abi() < 1:
            return "The kernel doesn't support Landlock, or it is disabled."
        if os.geteuid() == 0 and programs.find_program("setpriv", self._root) is None:
            return "Running as root needs setpriv, to drop root's capabilities."
        return ""

    def confine(self, launch: Launch, resources: LaunchResources = NO_RESOURCES) -> ConfinedLaunch:
        """Return the launch with a Landlock ruleset and a seccomp filter."""
        user, notes = workspace_owner(launch.root), launch.host_list_notes
        home, temporary = os.path.join(self._private_home, "home"), os.path.join(self._private_home, "tmp")
        scratch = resources.session_folders
        if scratch and user_can_reach(scratch.home, user):
            home, temporary = scratch.home, scratch.temporary
            launch = replace(launch, writable=(*launch.writable, home, temporary, scratch.caches))
        elif scratch:
            resources, notes = replace(resources, session_folders=None), (_NOT_KEPT, *notes)
        argv = launch.argv
        if os.geteuid() == 0:
            if user is None:
                setpriv = programs.find_program("setpriv", launch.root)
                if setpriv is None:
                    raise HostError("Running as root needs setpriv, to drop root's capabilities.")
                argv = (
                    setpriv.file,
                    "--bounding-set=-all",
                    "--inh-caps=-all",
                    "--ambient-caps=-all",
                    "--",
                    *argv,
                )
            else:
                for folder in (
                    self._private_home,
                    *(os.path.join(self._private_home, name) for name in ("home", "tmp")),
                ):
                    os.chown(folder, *user)
        sockets: seccomp.SeccompSocketMode = "own" if launch.network == "on" else "none"
        env = profile.sandbox_environment(
            launch.env,
            home=home,
            root_inside=os.geteuid() == 0 and user is None,
            users_home=launch.env.get("HOME", ""),
        )
        ruleset = self._ruleset(launch)
        return ConfinedLaunch(
            launch=launch,
            resources=resources,
            argv=argv,
            env=env | {"TMPDIR": temporary},
            limits=with_default_limits(launch.limits),
            runner_fds=(ruleset,),
            user=user,
            landlock=ruleset,
            seccomp=landlock_syscall_filter(sockets),
            notes=notes,
        )

    def _ruleset(self, launch: Launch) -> int:
        """Return an fd of the launch's Landlock ruleset, cached while the granted files are the same.

        A rule binds to the inode that was at a path when the rule was created, not to the path.
        """
        network = launch.network == "on"
        special = (launch.frozen, launch.readable, launch.writable)
        key = (launch.root, launch.env.get("HOME"), launch.terminal is not None, network, special)
        state = self._granted_files_state(launch)
        with self._lock:
            known, rules = self._rules.get(key, (None, -1))
            if known != state:
                if self._rules.pop(key, None):
                    os.close(rules)
                rules = create_ruleset(self._grants(launch), network=network)
                self._rules[key] = state, rules
            return os.dup(rules)

    def _granted_files_state(self, launch: Launch) -> tuple[object, ...]:
        """Return a cache key: the inodes of granted trees, and mtimes of folders granted in part."""
        secret = hidden.system_secrets()
        parts = {"/etc", *(os.path.dirname(path) for path in (*secret.files, *secret.folders))}
        return (
            *map(_file_identity, (*self._readable_trees(launch), *workspace_folders(launch.root).values())),
            *map(_modified_at, sorted(parts)),
        )

    def _readable_trees(self, launch: Launch) -> tuple[str, ...]:
        """Return the folders in which everything may be read and executed."""
        system = [path for path in (*profile.SANDBOX_SYSTEM_FOLDERS, *_OTHER_TREES) if path != "/etc"]
        return (
            *system,
            *profile.toolchain_folders(launch.env.get("HOME", "")),
            *self._readable,
            *launch.readable,
        )

    def _grants(self, launch: Launch) -> Iterator[tuple[str, int]]:
        """Yield pairs of a path and the access rights granted below it."""
        for path in self._readable_trees(launch):
            yield path, READ_ACCESS
        secret = hidden.system_secrets()
        yield "/etc", LIST_ACCESS
        for path in _trees_without("/etc", (*secret.files, *secret.folders)):
            yield path, READ_ACCESS
        # Rules can't tell the command's terminal from the user's, so none is granted unless requested.
        for name in (*_DEVICE_FILES, *(_TERMINALS if launch.terminal else ())):
            yield f"/dev/{name}", DEVICE_ACCESS
        for name, folder in workspace_folders(launch.root).items():
            yield folder, READ_ACCESS if launch.frozen else WRITE_ACCESS
            if name:
                yield launch.root, READ_ACCESS  # it contains the symlinks to its folders
        for path in (self._private_home, *launch.writable):
            yield path, WRITE_ACCESS

    @cached_property
    def _private_home(self) -> str:
        """A private home and temporary folder that exist as long as this runner."""
        return make_private_home(self)


def _close_rulesets(rules: dict[tuple[object, ...], tuple[tuple[object, ...], int]]) -> None:
    for _, fd in rules.values():
        os.close(fd)


def _file_identity(path: str) -> tuple[str, int, int] | None:
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return path, found.st_dev, found.st_ino
    return None


def _modified_at(path: str) -> int:
    with contextlib.suppress(OSError):
        return os.stat(path).st_mtime_ns
    return 0


def _trees_without(tree: str, secret: Iterable[str]) -> Iterator[str]:
    """Yield the largest subtrees of a folder without secrets, since rules can only grant access."""
    inside = [path for path in secret if Path(path).is_relative_to(tree)]
    if not inside:
        yield tree
    elif tree not in inside:
        for name in os.listdir(tree):
            yield from _trees_without(os.path.join(tree, name), inside)
