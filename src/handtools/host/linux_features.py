"""The parts of Linux that are used and that other systems may lack: what stands in for each, and what is lost.

One table for `handtools doctor`, the page docs/reference/systems.md and the tests that hide parts. ADR 259.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

from handtools.host.files import syscalls
from handtools.host.sandbox.processes import supervisor_client


@dataclass(frozen=True, slots=True)
class SystemPart:
    """A part of Linux: how it is found, what stands in for it and what a user loses without it."""

    name: str
    found: str
    stand_in: str
    loss: str
    is_missing: Callable[[], bool] | None = None
    """Whether it is missing on this machine; None where that depends on the file or on what else is installed."""
    check: str = ""
    """The name of the check of `handtools doctor` that speaks of it; its own name if empty."""

    @property
    def sentence(self) -> str:
        """What `handtools doctor` says where it is missing."""
        return f"{self.stand_in}; lost: {self.loss}"


def _lacks(name: str) -> Callable[[], bool]:
    return lambda: not hasattr(os, name)


SYSTEM_PARTS: tuple[SystemPart, ...] = (
    SystemPart(
        "openat2",
        "tried once",
        "paths are walked name by name instead",
        "time",
        lambda: not syscalls.has_openat2(),
    ),
    SystemPart(
        "O_PATH",
        "Python has the flag",
        "a name is looked at before it is opened, and again after",
        "time",
        lambda: not syscalls.PATH_ONLY,
    ),
    SystemPart(
        "exchange by rename",
        "tried on each file",
        "a hard link keeps the old file while the new one is renamed over it",
        "the version of whoever replaces the file in that very instant",
        check="renameat2",
    ),
    SystemPart(
        "leases",
        "tried on each file",
        "bytes are compared twice instead",
        "certainty: the gap for other writers is smaller, not closed",
        check="leases",
    ),
    SystemPart(
        "folder handles",
        "Python's `supports_dir_fd`",
        "whole paths are used",
        "time until a folder that was exchanged for a link is noticed",
        lambda: not syscalls.HAS_DIR_FD,
    ),
    SystemPart(
        "extended attributes",
        "Python has the call",
        "they are not carried over to a file's new version",
        "labels and access lists of an edited file",
        _lacks("listxattr"),
    ),
    SystemPart(
        "mount table",
        "`/proc/self/mountinfo` can be read",
        "every folder is taken as not local",
        "time: backups lie beside the state; and calls that are sent together may run in another order",
        lambda: syscalls.filesystem_type(os.sep) is None,
    ),
    SystemPart(
        "memory files",
        "Python has the call",
        "temporary files are used",
        "without control groups, the count of what commands keep in such files",
        _lacks("memfd_create"),
    ),
    SystemPart(
        "fork",
        "Python has the call",
        "each hard file has a process of its own, and source files are parsed in ours",
        "time; and what else waits while a source file that is hard to parse is parsed",
        _lacks("fork"),
    ),
    SystemPart(
        "pidfd",
        "Python has the call",
        "the end of a socket is waited for",
        "time until a supervisor notices that its owner has gone",
        _lacks("pidfd_open"),
    ),
    SystemPart(
        "overlay",
        "tried once",
        "the workspace is looked at before and after a command",
        "the changes of background jobs",
        check="capture",
    ),
    SystemPart(
        "bubblewrap",
        "tried once",
        "Landlock, else commands that no rule allows are asked about",
        "scratch and network of a session",
        check="not bubblewrap",
    ),
    SystemPart(
        "Landlock",
        "tried once",
        "bubblewrap, else commands that no rule allows are asked about",
        "nothing where bubblewrap works",
        check="not landlock",
    ),
    SystemPart(
        "supervisors",
        "the system is Linux (cgroups, subreaper, `/proc`)",
        "each command is a process group, which is ended as one",
        "the end of processes that leave their group, and limits of memory and processes",
        lambda: not supervisor_client.has_supervisors(),
    ),
)
