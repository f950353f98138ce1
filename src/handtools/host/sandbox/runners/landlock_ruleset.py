"""Create Landlock rulesets from paths and access rights, as fds with which a process restricts itself."""

import ctypes
import os
import struct
from collections.abc import Iterable
from functools import cache

from handtools.core.errors import HostError
from handtools.host.sandbox.runners import seccomp

_LANDLOCK_CREATE_RULESET, _LANDLOCK_ADD_RULE, _ASK_VERSION = 444, 445, 1
_EXECUTE, _WRITE, _READ, _LIST = 0x1, 0x2, 0x4, 0x8
_DEVICES = 0x40 | 0x800
_TRUNCATE, _CONTROL = 0x4000, 0x8000
_ON_FILES = _EXECUTE | _WRITE | _READ | _TRUNCATE | _CONTROL
LIST_ACCESS = _LIST
READ_ACCESS = _EXECUTE | _READ | _LIST
WRITE_ACCESS = 0xFFFF & ~_DEVICES
DEVICE_ACCESS = _READ | _WRITE | _LIST | _CONTROL
"""The Landlock access rights granted for devices."""
_RIGHTS_BY_ABI = {1: 0x1FFF, 2: 0x3FFF, 3: 0x7FFF, 4: 0x7FFF, 5: 0xFFFF}
"""All file access rights that each Landlock ABI version handles."""
_TCP, _SCOPES = 0x3, 0x3


@cache
def landlock_syscall_filter(sockets: seccomp.SeccompSocketMode) -> bytes:
    """Return the seccomp filter used together with Landlock."""
    return seccomp.assemble_filter(
        seccomp.syscall_rules(sockets=sockets, namespaces="host"),
        architecture=seccomp.machine_architecture(),
    )


def landlock_abi() -> int:
    """Return the kernel's Landlock ABI version; below 1 if it has no Landlock."""
    try:
        return int(
            ctypes.CDLL(None, use_errno=True).syscall(_LANDLOCK_CREATE_RULESET, None, 0, _ASK_VERSION)
        )
    except (OSError, AttributeError):
        return -1


def create_ruleset(grants: Iterable[tuple[str, int]], *, network: bool) -> int:
    """Create a Landlock ruleset and return its fd; it refuses all access that is not granted."""
    known = landlock_abi()
    library = ctypes.CDLL(None, use_errno=True)
    every = _RIGHTS_BY_ABI[min(known, max(_RIGHTS_BY_ABI))]
    asked = [every]
    if known >= 4:
        asked.append(0 if network else _TCP)
    if known >= 6:
        asked.append(_SCOPES)
    attributes = struct.pack(f"{len(asked)}Q", *asked)
    ruleset = library.syscall(_LANDLOCK_CREATE_RULESET, attributes, len(attributes), 0)
    if ruleset < 0:
        raise HostError(f"Can't create a Landlock ruleset: {os.strerror(ctypes.get_errno())}.")
    for path, rights in grants:
        try:
            place = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # a missing path needs no rule
        try:
            allowed = rights & every & (-1 if os.path.isdir(path) else _ON_FILES)
            rule = struct.pack("=Qi", allowed, place)
            if library.syscall(_LANDLOCK_ADD_RULE, ruleset, 1, rule, 0) < 0:
                os.close(ruleset)
                raise HostError(f"Can't add a Landlock rule for {path}: {os.strerror(ctypes.get_errno())}.")
        finally:
            os.close(place)
    return int(ruleset)
