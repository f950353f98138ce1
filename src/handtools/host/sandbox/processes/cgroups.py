"""Cgroups, if this user may create them: they account for, limit and list a tree of processes.

A supervisor joins its cgroup once, and the processes it starts inherit it: moving each command into a
cgroup would take longer than the command itself.
"""

import contextlib
import os
import signal

_CGROUP_PREFIX = "handtools-"


class Cgroup:
    """A cgroup: its folder in the unified hierarchy, or one folder per controller."""

    def __init__(self) -> None:
        self.unified = ""
        self.controllers: dict[str, str] = {}
        """The folders by controller (memory, pids); in the unified hierarchy, only enabled controllers."""
        self._last: dict[str, str] = {}
        """The limits last written, so that only changed limits are written."""

    def __bool__(self) -> bool:
        return bool(self.folders)

    @property
    def folders(self) -> list[str]:
        """The group's folders, without duplicates."""
        return list(dict.fromkeys(path for path in (self.unified, *self.controllers.values()) if path))

    def join(self) -> bool:
        """Move this process into the group; returns False without permission."""
        return all(_write(f"{folder}/cgroup.procs", "0") for folder in self.folders)

    def limit(self, *, memory: int | None, processes: int | None, used: int) -> set[str]:
        """Set memory and process limits; the memory limit is in addition to `used`.

        Returns the names of the limits that the kernel enforces.
        """
        kept = set()
        most = memory and memory + used
        files = ("memory.max", "memory.limit_in_bytes"), ("memory.swap.max", "memory.memsw.limit_in_bytes")
        # The memory limit can't exceed memory plus swap, so raising and lowering need different orders.
        for names in (*files, files[0]):
            if self._set_limit("memory", names, most) and names == files[0]:
                kept.add("memory")
        if self._set_limit("pids", ("pids.max", "pids.max"), processes and processes + 1):
            kept.add("processes")
        _write(self._control_file_path("memory", "memory.peak", "memory.max_usage_in_bytes"), "0")
        return kept

    def pids(self) -> list[int]:
        """Return the pids of all other processes in the group."""
        own = os.getpid()
        return [int(pid) for pid in _read(f"{self._first_folder}/cgroup.procs").split() if int(pid) != own]

    def memory_used(self) -> int | None:
        """Return the memory that the group uses, in bytes; None if unknown."""
        return _number(self._control_file_path("memory", "memory.current", "memory.usage_in_bytes"))

    def peak(self) -> int | None:
        """Return the peak memory use in bytes since the limits were set; None if unknown."""
        return _number(self._control_file_path("memory", "memory.peak", "memory.max_usage_in_bytes"))

    def starved(self) -> int:
        """Return how often the OOM killer killed a process of the group."""
        for line in _read(
            self._control_file_path("memory", "memory.events", "memory.oom_control")
        ).splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
        return 0

    def remove(self) -> None:
        """Remove the group's folders."""
        for folder in self.folders:
            _write(f"{os.path.dirname(folder)}/cgroup.procs", "0")
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    @property
    def _first_folder(self) -> str:
        return next(iter(self.folders), "")

    def _control_file_path(self, controller: str, unified: str, old: str) -> str:
        home = self.controllers.get(controller, "")
        return f"{home}/{unified if home == self.unified else old}"

    def _set_limit(self, controller: str, names: tuple[str, str], value: int | None) -> bool:
        if controller not in self.controllers:
            return False
        path = self._control_file_path(controller, *names)
        old_memory = controller == "memory" and self.controllers["memory"] != self.unified
        none = "-1" if old_memory else "max"
        text = none if value is None else str(value)
        if self._last.get(path, none) != text:
            if not _write(path, text):
                return False
            self._last[path] = text
        return value is not None


def create_and_join_cgroup() -> Cgroup:
    """Create a cgroup below our own and join it; the result has no folders if this user isn't allowed to."""
    cgroup = Cgroup()
    name = f"{_CGROUP_PREFIX}{os.getpid()}"
    for controllers, folder in _cgroup_folders():
        with contextlib.suppress(OSError):
            _remove_stale(folder)
            path = f"{folder}/{name}"
            os.mkdir(path, 0o755)
            if not os.access(f"{folder}/cgroup.procs", os.W_OK):
                os.rmdir(path)
            elif controllers:
                cgroup.controllers |= dict.fromkeys(controllers, path)
            elif os.path.exists(f"{path}/cgroup.kill"):
                cgroup.unified = path
                enabled = _read(f"{path}/cgroup.controllers").split()
                cgroup.controllers |= {c: path for c in ("memory", "pids") if c in enabled}
            else:
                os.rmdir(path)
    if not cgroup.join():
        cgroup.remove()
        return Cgroup()
    return cgroup


def cgroup_of(pid: int) -> Cgroup:
    """Return the cgroup of another process, for reading; the result has no folders if it isn't visible."""
    cgroup = Cgroup()
    for controllers, folder in _cgroup_folders(str(pid)):
        if not os.path.exists(f"{folder}/cgroup.procs"):
            continue
        if controllers:
            cgroup.controllers |= dict.fromkeys(controllers, folder)
        else:
            cgroup.unified = folder
            enabled = _read(f"{folder}/cgroup.controllers").split()
            cgroup.controllers |= {c: folder for c in ("memory", "pids") if c in enabled}
    return cgroup


def _cgroup_folders(process: str = "self") -> list[tuple[list[str], str]]:
    """Return a process's folder in each relevant hierarchy, with controllers (none for the unified one)."""
    mounted: dict[str, str] = {}
    for line in _read("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            mounted[""] = before.split()[4]
        elif kind == "cgroup":
            mounted |= dict.fromkeys(options.split()[-1].split(","), before.split()[4])
    found: dict[str, list[str]] = {}
    for line in _read(f"/proc/{process}/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        wanted = [name for name in names.split(",") if name in {"memory", "pids"}]
        home = mounted.get(names.split(",")[0])
        if home is not None and (wanted or not names):
            found.setdefault(os.path.normpath(f"{home}/{path}"), []).extend(wanted)
    return [(controllers, folder) for folder, controllers in found.items()]


def _remove_stale(folder: str) -> None:
    """Remove groups of supervisors that were killed, and kill the processes still in them."""
    for name in os.listdir(folder):
        pid = name.removeprefix(_CGROUP_PREFIX)
        if name == pid or not pid.isdigit() or os.path.exists(f"/proc/{pid}"):
            continue
        kill_cgroup(f"{folder}/{name}")


def kill_cgroup(folder: str) -> None:
    """Kill all processes in a cgroup and remove it, after its supervisor was killed."""
    if not _write(f"{folder}/cgroup.kill", "1"):
        for pid in _read(f"{folder}/cgroup.procs").split():
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(int(pid), signal.SIGKILL)
    with contextlib.suppress(OSError):
        os.rmdir(folder)


def _number(path: str) -> int | None:
    found = _read(path).strip()
    return int(found) if found.isdigit() else None


def _read(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.read()
    except OSError:
        return ""


def _write(path: str, text: str) -> bool:
    try:
        with open(path, "w", encoding="ascii") as file:
            file.write(text)
    except OSError:
        return False
    return True
