"""The Seatbelt runner, for macOS: `sandbox-exec` with a profile built here. We have not run it on macOS."""

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Literal

from handtools.core.commands import CommandNetwork
from handtools.core.errors import HostError
from handtools.host.sandbox.default_limits import with_default_limits
from handtools.host.sandbox.launch import NO_RESOURCES, ConfinedLaunch, Launch, LaunchResources
from handtools.host.sandbox.policy_paths import PolicyPathFinder
from handtools.host.sandbox.runners import bubblewrap_args as profile
from handtools.host.sandbox.runners import hidden_paths as hidden
from handtools.host.sandbox.runners.command_user import make_private_home
from handtools.host.workspace_folders import workspace_folders

PathAccess = Literal["hidden", "read", "write"]
_ALWAYS = (
    "(allow process-fork)",
    "(allow signal (target same-sandbox))",
    "(allow process-info* (target same-sandbox))",
    "(allow sysctl-read)",
    "(allow ipc-posix-sem)",
    '(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))',
)
"""Permissions that every program needs: fork, signals inside the sandbox, sysctl, user name lookup."""
_TERMINAL = ("(allow pseudo-tty)", '(allow file-ioctl file-read* file-write* (regex #"^/dev/ttys[0-9]+$"))')
_NETWORK = (
    "(allow network*)",
    "(allow system-socket)",
    '(allow mach-lookup (global-name "com.apple.dnssd.service") (global-name "com.apple.trustd.agent"))',
)
_LINKED_FOLDERS = ("/etc", "/tmp", "/var")  # noqa: S108
"""Symlinks into /private: rules match their targets, but programs also stat the symlinks themselves."""
_DEVICES = ("null", "zero", "random", "urandom", "tty", "fd")


@dataclass(frozen=True, slots=True)
class PathGrant:
    """A command's access to a path and everything below it."""

    path: str
    access: PathAccess


def effective_grants(grants: Iterable[PathGrant]) -> list[PathGrant]:
    """Drop grants that a later one covers, so that an inner grant always comes after an outer one."""
    path_grants: dict[str, PathGrant] = {}
    for grant in grants:
        above = grant.path.rstrip("/") + "/"
        path_grants = {
            path: each
            for path, each in path_grants.items()
            if path != grant.path and not path.startswith(above)
        }
        path_grants[grant.path] = grant
    return list(path_grants.values())


def seatbelt_profile(grants: Sequence[PathGrant], *, network: bool, terminal: bool) -> str:
    """Return the text of a profile that allows only what is granted."""
    found = effective_grants(grants)
    above = {str(parent) for grant in found for parent in PurePosixPath(grant.path).parents}
    lines = [
        "(version 1)",
        "(deny default)",
        *_ALWAYS,
        _rule("allow", ("file-read-metadata",), "literal", sorted({*above, *_LINKED_FOLDERS})),
        _rule("allow", ("file-read*", "file-write-data"), "literal", [f"/dev/{name}" for name in _DEVICES]),
        *(_TERMINAL if terminal else ()),
        *(_NETWORK if network else ()),
        *(line for grant in found for line in _grant_rules(grant)),
    ]
    return "\n".join(lines) + "\n"


def _grant_rules(grant: PathGrant) -> Iterator[str]:
    reading, writing = ("file-read*", "process-exec"), ("file-write*",)
    if grant.access == "hidden":
        yield _rule("deny", (*reading, *writing), "subpath", [grant.path])
        return
    yield _rule("allow", reading, "subpath", [grant.path])
    yield _rule("allow" if grant.access == "write" else "deny", writing, "subpath", [grant.path])


def _rule(
    decision: Literal["allow", "deny"], operations: Sequence[str], match: str, paths: Sequence[str]
) -> str:
    filters = " ".join(f"({match} {_quoted(path)})" for path in paths)
    return f"({decision} {' '.join(operations)} {filters})"


def _quoted(path: str) -> str:
    if not path.startswith("/") or not path.isprintable():
        raise HostError(f"{path!r} can't be used in a Seatbelt profile.")
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


_PROGRAM = "/usr/bin/sandbox-exec"
_SYSTEM_FOLDERS = (
    "/System", "/Library", "/usr", "/bin", "/sbin", "/opt", "/private/etc", "/private/var/db/timezone",
    "/private/var/select", "/Applications/Xcode.app", "/nix/store",
)  # fmt: skip
"""macOS folders with programs and settings."""


class SeatbeltRunner:
    """Confines commands with macOS's Seatbelt. We have not run it on macOS, so commands need approval."""

    name = "seatbelt"
    boundary = (
        "Not tested on macOS. Intended: it writes only to the workspace and its own folders, reads only "
        "those and programs, and has no network unless allowed. It sees which programs run."
    )
    confined = False
    """False until it has been tested on macOS: an untested sandbox can't be relied on."""
    keeps_scratch = True
    can_mount_overlay = False
    session_network_modes: frozenset[CommandNetwork] = frozenset()

    def __init__(self, root: str | os.PathLike[str] = "", *, readable: Iterable[str] = ()) -> None:  # noqa: ARG002
        """`root` is the workspace, as in other runners; unused, since `sandbox-exec` has a fixed path."""
        self._readable = tuple(readable)
        self._finders = PolicyPathFinder()

    def unavailable_reason(self) -> str:
        """Return why Seatbelt does not work on this machine; empty if it does."""
        found = "" if os.access(_PROGRAM, os.X_OK) else f"{_PROGRAM} is not installed."
        return found if sys.platform == "darwin" else "Seatbelt is a part of macOS."

    def confine(self, launch: Launch, resources: LaunchResources = NO_RESOURCES) -> ConfinedLaunch:
        """Return the launch wrapped in `sandbox-exec`."""
        for folder in workspace_folders(launch.root).values():
            if any(Path(tree).is_relative_to(folder) for tree in ("/usr", "/System")):
                raise HostError(f"{folder} can't be a workspace in a sandbox: it contains system folders.")
        home, temporary = os.path.join(self._private_home, "home"), os.path.join(self._private_home, "tmp")
        if scratch := resources.session_folders:
            home, temporary = scratch.home, scratch.temporary
            launch = replace(launch, writable=(*launch.writable, scratch.caches))
        text = seatbelt_profile(
            list(self._grants(launch, home, temporary)),
            network=launch.network == "on",
            terminal=launch.terminal is not None,
        )
        env = profile.sandbox_environment(
            launch.env, home=home, root_inside=False, users_home=launch.env.get("HOME", "")
        )
        return ConfinedLaunch(
            launch=launch,
            resources=resources,
            argv=(_PROGRAM, "-p", text, *launch.argv),
            env=env | {"TMPDIR": temporary},
            limits=with_default_limits(launch.limits),
            notes=launch.host_list_notes,
        )

    def _grants(self, launch: Launch, home: str, temporary: str) -> Iterator[PathGrant]:
        """Yield the grants in the order of bubblewrap's mounts: later ones override earlier ones."""
        found = self._finders.covered(
            launch.root, launch.private_globs, launch.read_only_globs, launch.is_open, writes_apart=False
        )
        private = hidden.private_masks(launch.root, found.hidden)
        users = profile.toolchain_folders(launch.env.get("HOME", ""))
        folders = workspace_folders(launch.root).values()
        granted: tuple[tuple[PathAccess, Iterable[str]], ...] = (
            ("read", (*_SYSTEM_FOLDERS, *users, *self._readable, *launch.readable)),
            ("write", (home, temporary)),
            ("read" if launch.frozen else "write", folders),
            ("write", launch.writable),
            ("read", hidden.read_only_paths(launch, found.read_only, writes_apart=False)),
            ("hidden", (*private.files, *private.folders)),
        )
        for access, paths in granted:
            for path in paths:
                yield PathGrant(os.path.realpath(path), access)  # rules match real paths

    @cached_property
    def _private_home(self) -> str:
        """A private home and temporary folder that exist as long as this runner."""
        return make_private_home(self)
