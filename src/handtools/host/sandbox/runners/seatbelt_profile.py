"""The profile of a command for Seatbelt, the macOS sandbox, in its language (SBPL).

Built from the same values as the arguments of bubblewrap, in the same order: later grants override earlier
ones. Public descriptions disagree on whether the last or the innermost matching rule decides, so the rules
are ordered such that both are the same rule. We have not run it on macOS.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from handtools.core.errors import HostError

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
