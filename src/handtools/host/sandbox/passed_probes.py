"""Probes that passed since the machine was booted, so that every new process need not repeat them.

Only successes are kept. A probe passes if the strongest sandbox works, so an outdated or forged entry can't
lead to a weaker one: the command would fail instead of running.
"""

import hashlib
import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from handtools.core.errors import HostError
from handtools.host.files.change_detection import state_of
from handtools.host.home_folders import state_root

PROBES_NAME = "passed-probes.json"
KEPT_PROBE_SECONDS = 86_400.0
"""How long a success is believed, in case something changed that `_machine_and_user` doesn't show."""
_MAX_KEPT, _MAX_BYTES = 200, 64 << 10
_STATUS_FIELDS = ("Uid:", "Gid:", "CapEff:", "CapBnd:", "NoNewPrivs:", "Seccomp:")
_SETTINGS = (
    "/proc/sys/kernel/unprivileged_userns_clone",
    "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
    "/proc/sys/user/max_user_namespaces",
    "/proc/self/attr/current",
)
"""Files that determine whether this process may create namespaces; some kernels have only a few of them."""


def problem_unless_passed(probe: Callable[[], str], *subject: object) -> str:
    """Return the problem that a probe finds, or ""; a probe that passed is not run again until a reboot.

    `subject` identifies what is probed: its name, and the state of the files that it depends on.
    """
    try:
        place, key = state_root() / PROBES_NAME, _key(subject)
    except (OSError, HostError):
        return probe()
    if 0 <= time.time() - _passed(place).get(key, -1.0) < KEPT_PROBE_SECONDS:
        return ""
    problem = probe()
    if not problem:
        _keep(place, key)
    return problem


def forget_passed_probes() -> None:
    """Have every probe run again."""
    with suppress(OSError, HostError):
        (state_root() / PROBES_NAME).unlink()


def _key(subject: tuple[object, ...]) -> str:
    installed = state_of(os.stat(__file__))  # another version of handtools may use other features
    return hashlib.sha256(repr((installed, _machine_and_user(), subject)).encode()).hexdigest()


def _machine_and_user() -> tuple[str, ...]:
    """Return what determines whether a sandbox works; raises `OSError` where there is no /proc."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii")
    status = Path("/proc/self/status").read_text("utf-8", "replace").splitlines()
    settings = []
    for file in _SETTINGS:
        try:
            settings.append(Path(file).read_text("utf-8", "replace"))
        except OSError:
            settings.append("")
    return (
        boot,
        *os.uname(),
        *(line for line in status if line.startswith(_STATUS_FIELDS)),
        *(os.readlink(f"/proc/self/ns/{kind}") for kind in ("user", "mnt", "pid")),
        *settings,
    )


def _passed(place: Path) -> dict[str, float]:
    """Return when each probe passed; none if the file isn't ours alone."""
    try:
        fd = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(fd, encoding="utf-8") as file:
            found = os.fstat(fd)
            if found.st_uid != os.geteuid() or found.st_mode & 0o022:
                return {}
            kept = json.loads(file.read(_MAX_BYTES))
    except (OSError, ValueError):
        return {}
    entries = kept.items() if isinstance(kept, dict) else ()
    return {key: float(at) for key, at in entries if isinstance(at, (int, float))}


def _keep(place: Path, key: str) -> None:
    """Add a success; without a state folder, or if it can't be written, nothing is kept."""
    now = time.time()
    known = {each: at for each, at in _passed(place).items() if 0 <= now - at < KEPT_PROBE_SECONDS}
    newest = sorted((known | {key: now}).items(), key=lambda each: -each[1])
    beside = place.with_name(f".{PROBES_NAME}-{os.getpid()}-{time.monotonic_ns()}")
    with suppress(OSError):
        fd = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        with open(fd, "w", encoding="utf-8") as file:
            json.dump(dict(newest[:_MAX_KEPT]), file)
        os.replace(beside, place)
