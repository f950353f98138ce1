"""Parts of Linux that can be hidden from a process, as if it ran where they are missing.

Where Python itself tells whether a part is there (`os.memfd_create`), that is taken away, before handtools is
imported; else the one function of ours that asks the system is made to say no, when its module is imported.
"""

import fcntl
import importlib.abc
import importlib.util
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from types import ModuleType
from typing import Any


def _without(owner: Any, *names: str) -> Callable[[], None]:
    def take_away() -> None:
        for name in names:
            if hasattr(owner, name):
                delattr(owner, name)

    return take_away


def _no_dir_fd() -> None:
    os.supports_dir_fd = set()


def _no_xattrs() -> None:
    _without(os, "listxattr", "getxattr", "setxattr", "removexattr")()
    # What shutil defines where they are missing; pytest has imported it already.
    shutil._copyxattr = lambda *_, **__: None  # type: ignore[attr-defined]


def _unsupported(module: ModuleType, name: str) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise module.SyscallUnsupported

    setattr(module, name, refuse)


def _says(name: str, answer: object) -> Callable[[ModuleType], None]:
    """Let a function or method of a module (`Class.method`) give this answer."""

    def patch(module: ModuleType) -> None:
        *path, last = name.split(".")
        owner: Any = module
        for part in path:
            owner = getattr(owner, part)
        told = (
            property(lambda self: answer)
            if isinstance(vars(owner).get(last), property)
            else lambda *_, **__: answer
        )
        setattr(owner, last, told)

    return patch


REASON = "It is hidden for this test."
SYSCALLS = "handtools.host.files.syscalls"
TAKEN_AWAY: dict[str, Callable[[], None]] = {
    "leases": _without(fcntl, "F_SETLEASE", "F_GETLEASE"),
    "O_PATH": _without(os, "O_PATH"),
    "memory files": _without(os, "memfd_create"),
    "pidfd": _without(os, "pidfd_open"),
    "fork": _without(os, "fork"),
    "extended attributes": _no_xattrs,
    "folder handles": _no_dir_fd,
}
"""What Python tells about the system, by the part."""
NO_OVERLAY = {
    "handtools.host.sandbox.overlay.overlay_capture": _says("overlay_problem", REASON),
    "handtools.host.sandbox.overlay.overlay_mount": _says("overlay_mount_problem", REASON),
}
MADE_TO_SAY_NO: dict[str, dict[str, Callable[[ModuleType], None]]] = {
    "O_PATH": {
        SYSCALLS: lambda module: _unsupported(module, "openat2")
    },  # no system has the one without the other
    "openat2": {SYSCALLS: lambda module: _unsupported(module, "openat2")},
    "exchange by rename": {SYSCALLS: lambda module: _unsupported(module, "_renameat2")},
    "mount table": {SYSCALLS: _says("filesystem_type", None)},
    "bubblewrap": {
        "handtools.host.sandbox.runners.bubblewrap": _says("BubblewrapRunner.unavailable_reason", REASON)
    },
    "Landlock": {
        "handtools.host.sandbox.runners.landlock": _says("LandlockRunner.unavailable_reason", REASON)
    },
    "overlay": NO_OVERLAY,
    # No system has them without supervisors.
    "supervisors": {
        "handtools.host.sandbox.processes.supervisor_client": _says("has_supervisors", False),
        **NO_OVERLAY,
    },
}
"""What a function of ours says, by the part and the function's module."""
PARTS = tuple(dict.fromkeys((*TAKEN_AWAY, *MADE_TO_SAY_NO)))


class _PatchOnImport(importlib.abc.MetaPathFinder):
    """Changes a module of ours right after it was imported."""

    def __init__(self, patches: dict[str, list[Callable[[ModuleType], None]]]) -> None:
        self._patches = patches

    def find_spec(self, fullname: str, path: Any, target: Any = None) -> Any:
        patches = self._patches.pop(fullname, None)
        if patches is None:
            return None
        spec = importlib.util.find_spec(fullname)
        assert spec is not None
        assert spec.loader is not None
        execute = spec.loader.exec_module

        def execute_and_patch(module: ModuleType) -> None:
            execute(module)
            for patch in patches:
                patch(module)

        spec.loader.exec_module = execute_and_patch  # type: ignore[method-assign]
        return spec


def hide(parts: Iterable[str]) -> None:
    """Hide parts (`all` for every one) from this process, before it imports handtools."""
    wanted = set(PARTS) if "all" in (named := set(parts)) else named
    assert wanted <= set(PARTS), f"no such part: {sorted(wanted - set(PARTS))}"
    assert not any(name.startswith("handtools.host") for name in sys.modules), (
        "handtools is imported already"
    )
    patches: dict[str, list[Callable[[ModuleType], None]]] = {}
    for part in wanted:
        if part in TAKEN_AWAY:
            TAKEN_AWAY[part]()
        for module, patch in MADE_TO_SAY_NO.get(part, {}).items():
            patches.setdefault(module, []).append(patch)
    if patches:
        sys.meta_path.insert(0, _PatchOnImport(patches))
