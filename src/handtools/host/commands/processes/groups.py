"""Groups: control groups where this user may make them: they count, limit and end a tree in one stroke.

A group is made once per supervisor and used for one command after the other: making and removing one costs
more than a command.
"""

import contextlib
import os
import signal
import time
from dataclasses import dataclass, field

_MARK = "handtools-"
_WAIT = 0.002


@dataclass(slots=True)
class Group:
    """The folders of one group: a kernel has one hierarchy, or one for each controller."""

    unified: str = ""
    controllers: dict[str, str] = field(default_factory=dict)
    """Folders by controller: freezer, memory, pids; in the unified hierarchy those that are switched on."""

    def __bool__(self) -> bool:
        return bool(self.unified or "freezer" in self.controllers)

    @property
    def folders(self) -> list[str]:
        """Every folder, each once."""
        return list(dict.fromkeys(path for path in (self.unified, *self.controllers.values()) if path))

    def entrances(self) -> list[int]:
        """Descriptors to which a process writes `0` to join."""
        flags = os.O_WRONLY | os.O_CLOEXEC
        return [os.open(f"{folder}/cgroup.procs", flags) for folder in self.folders]

    def limit(self, *, memory: int | None, processes: int | None) -> set[str]:
        """Set the limits of the next command; gives back those that are now the kernel's."""
        kept = set()
        if self._set("memory", ("memory.max", "memory.limit_in_bytes"), memory):
            self._set("memory", ("memory.swap.max", "memory.memsw.limit_in_bytes"), memory)
            kept.add("memory")
        if self._set("pids", ("pids.max", "pids.max"), processes):
            kept.add("processes")
        for name in ("memory.peak", "memory.max_usage_in_bytes"):
            _write(f"{self.controllers.get('memory', '')}/{name}", "0")
        return kept

    def pids(self) -> list[int]:
        """Everything in the group."""
        return [int(pid) for pid in _read(f"{self._home}/cgroup.procs").split()]

    def kill(self) -> None:
        """End everything in it, whatever it does."""
        if self.unified and _write(f"{self.unified}/cgroup.kill", "1"):
            return
        home = self.controllers.get("freezer", "")
        _write(f"{home}/freezer.state", "FROZEN")
        deadline = time.monotonic() + 0.2
        while "FROZEN" not in _read(f"{home}/freezer.state") and time.monotonic() < deadline:
            time.sleep(_WAIT)
        for pid in self.pids():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        _write(f"{home}/freezer.state", "THAWED")

    def peak(self) -> int | None:
        """The most memory that the last command used."""
        home = self.controllers.get("memory", "")
        found = _read(f"{home}/memory.peak") or _read(f"{home}/memory.max_usage_in_bytes")
        return int(found) if found.strip().isdigit() else None

    def starved(self) -> int:
        """How often the kernel ended a process for lack of memory."""
        home = self.controllers.get("memory", "")
        for line in (_read(f"{home}/memory.events") or _read(f"{home}/memory.oom_control")).splitlines():
            if line.startswith("oom_kill "):
                return int(line.split()[1])
        return 0

    def remove(self) -> None:
        """Take the folders away."""
        for folder in self.folders:
            with contextlib.suppress(OSError):
                os.rmdir(folder)

    @property
    def _home(self) -> str:
        return self.unified or self.controllers.get("freezer", "")

    def _set(self, controller: str, names: tuple[str, str], value: int | None) -> bool:
        home = self.controllers.get(controller)
        if not home:
            return False
        unified = home == self.unified
        text = str(value) if value is not None else "max" if unified or controller == "pids" else "-1"
        return _write(f"{home}/{names[0 if unified else 1]}", text) and value is not None


def make() -> Group:
    """A new group below our own; an empty one when this user may not."""
    group = Group()
    name = f"{_MARK}{os.getpid()}"
    for controllers, folder in _ours():
        with contextlib.suppress(OSError):
            _sweep(folder)
            path = f"{folder}/{name}"
            os.mkdir(path, 0o755)
            if not os.access(f"{folder}/cgroup.procs", os.W_OK):
                os.rmdir(path)
            elif controllers:
                group.controllers |= dict.fromkeys(controllers, path)
            elif os.path.exists(f"{path}/cgroup.kill"):
                group.unified = path
                enabled = _read(f"{path}/cgroup.controllers").split()
                group.controllers |= {c: path for c in ("memory", "pids") if c in enabled}
            else:
                os.rmdir(path)
    if not group:
        group.remove()
        return Group()
    return group


def _ours() -> list[tuple[list[str], str]]:
    """Our folder in each hierarchy of use, with the controllers it stands for; none for the unified one."""
    mounted: dict[str, str] = {}
    for line in _read("/proc/self/mountinfo").splitlines():
        before, _, after = line.partition(" - ")
        kind, _, options = after.split(" ", 2)
        if kind == "cgroup2":
            mounted[""] = before.split()[4]
        elif kind == "cgroup":
            mounted |= dict.fromkeys(options.split()[-1].split(","), before.split()[4])
    found: dict[str, list[str]] = {}
    for line in _read("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        wanted = [name for name in names.split(",") if name in {"freezer", "memory", "pids"}]
        home = mounted.get(names.split(",")[0])
        if home is not None and (wanted or not names):
            found.setdefault(os.path.normpath(f"{home}/{path}"), []).extend(wanted)
    return [(controllers, folder) for folder, controllers in found.items()]


def _sweep(folder: str) -> None:
    """Remove what supervisors left that were killed themselves, and whatever still runs in it."""
    for name in os.listdir(folder):
        pid = name.removeprefix(_MARK)
        if name == pid or not pid.isdigit() or os.path.exists(f"/proc/{pid}"):
            continue
        _write(f"{folder}/{name}/cgroup.kill", "1")
        with contextlib.suppress(OSError):
            os.rmdir(f"{folder}/{name}")


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
