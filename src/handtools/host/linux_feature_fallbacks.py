"""The Linux features we use that other systems may lack: the fallback for each, and what a user loses.

`handtools doctor`, the page docs/reference/systems.md and the tests that hide features use this table.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass

from handtools.host.files import syscalls
from handtools.host.sandbox.processes import supervisor_client


@dataclass(frozen=True, slots=True)
class SystemPart:
    """A Linux feature: how it is detected, the fallback for it, and what a user loses without it."""

    name: str
    found: str
    stand_in: str
    loss: str
    is_missing: Callable[[], bool] | None = None
    """Returns whether this machine lacks it; None if that depends on the file or on installed programs."""
    check: str = ""
    """The `handtools doctor` check that reports it; defaults to the feature's own name."""

    @property
    def sentence(self) -> str:
        """The text that `handtools doctor` prints if it is missing."""
        return f"{self.stand_in}; lost: {self.loss}"


def _missing_os_attribute_check(name: str) -> Callable[[], bool]:
    return lambda: not hasattr(os, name)


SYSTEM_PARTS: tuple[SystemPart, ...] = (
    SystemPart(
        "openat2",
        "tried once",
        "paths are resolved one component at a time",
        "time",
        lambda: not syscalls.has_openat2(),
    ),
    SystemPart(
        "O_PATH",
        "Python has the flag",
        "a path is checked before and after it is opened",
        "time",
        lambda: not syscalls.PATH_ONLY,
    ),
    SystemPart(
        "exchange by rename",
        "tried on each file",
        "a hard link keeps the old file while the new one is renamed over it",
        "another program's version, if it replaces the file at that exact moment",
        check="renameat2",
    ),
    SystemPart(
        "leases",
        "tried on each file",
        "the content is compared twice",
        "certainty: the race with other writers is shorter, but not eliminated",
        check="leases",
    ),
    SystemPart(
        "folder handles",
        "Python's `supports_dir_fd`",
        "full paths are used",
        "time until a folder that was replaced with a symlink is noticed",
        lambda: not syscalls.HAS_DIR_FD,
    ),
    SystemPart(
        "extended attributes",
        "Python has the call",
        "they are not copied to a file's new version",
        "security labels and ACLs of edited files",
        _missing_os_attribute_check("listxattr"),
    ),
    SystemPart(
        "mount table",
        "`/proc/self/mountinfo` can be read",
        "every folder is treated as a network folder",
        "time: backups are kept next to the state; and calls sent together may run in a different order",
        lambda: syscalls.filesystem_type(os.sep) is None,
    ),
    SystemPart(
        "memory files",
        "Python has the call",
        "temporary files are used",
        "accounting of the memory that commands use in such files, if there are no cgroups",
        _missing_os_attribute_check("memfd_create"),
    ),
    SystemPart(
        "fork",
        "Python has the call",
        "each untrusted file gets a new process, and source files are parsed in the main process",
        "time; and a source file that is slow to parse blocks other work",
        _missing_os_attribute_check("fork"),
    ),
    SystemPart(
        "pidfd",
        "Python has the call",
        "a closed socket shows that the owner exited",
        "time until a supervisor notices that its owner exited",
        _missing_os_attribute_check("pidfd_open"),
    ),
    SystemPart(
        "overlay",
        "tried once",
        "the workspace is scanned before and after a command",
        "the changes made by background jobs",
        check="capture",
    ),
    SystemPart(
        "bubblewrap",
        "tried once",
        "Landlock; without it, commands that no rule allows need approval",
        "a session's scratch folder and network",
        check="not bubblewrap",
    ),
    SystemPart(
        "Landlock",
        "tried once",
        "bubblewrap; without it, commands that no rule allows need approval",
        "nothing if bubblewrap works",
        check="not landlock",
    ),
    SystemPart(
        "supervisors",
        "the system is Linux (cgroups, subreaper, `/proc`)",
        "each command is a process group, which is killed as a whole",
        "killing of processes that leave their group, and limits on memory and processes",
        lambda: not supervisor_client.has_supervisors(),
    ),
)
