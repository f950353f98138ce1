"""Landlock: what is left where no namespaces can be had: rules on files, and no sockets."""

import contextlib
import os
import shutil
import tempfile
import threading
import weakref
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from handtools.core.errors import HostError
from handtools.host import programs
from handtools.host.commands.launching import Launch
from handtools.host.commands.runners import bubblewrap_hidden as hidden
from handtools.host.commands.runners import bubblewrap_profile as profile
from handtools.host.commands.runners import seccomp
from handtools.host.commands.runners.landlock_rules import (
    DEVICE,
    LISTING,
    READING,
    WRITING,
    call_filter,
    ruleset,
    version,
)
from handtools.host.commands.runners.standing import bounded, owner_of

_DEVICE_FILES = ("null", "zero", "full", "random", "urandom")
_TERMINALS = ("tty", "ptmx", "pts")
_OTHER_TREES = ("/bin", "/sbin", "/lib", "/lib32", "/lib64", "/proc", "/sys/devices/system/cpu")
_LISTED = "Hosts can't be listed here: the command had no network."


class LandlockRunner:
    """File rules and a filter on system calls: reduced, and it says so."""

    name = "landlock"
    boundary = (
        "Reduced: it can't write outside the workspace, read most other files or open sockets; but it sees which "
        "programs run, can change modes and times of this user's other files, and private files and .git in the "
        "workspace are open to it."
    )
    confined = False

    def __init__(self, root: str | os.PathLike[str] = "", *, readable: Iterable[str] = ()) -> None:
        """`root` is the workspace, in which no program is looked for."""
        self._root = root
        self._readable = tuple(readable)
        self._rules: dict[tuple[object, ...], tuple[tuple[object, ...], int]] = {}
        self._lock = threading.Lock()
        weakref.finalize(self, _close, self._rules)

    def available(self) -> str:
        """Empty when it works on this machine, else why not."""
        if not seccomp.known():
            return f"There is no filter on system calls for {seccomp.machine()}."
        if version() < 1:
            return "The kernel has no Landlock, or it is switched off."
        if os.geteuid() == 0 and programs.find("setpriv", self._root) is None:
            return "As root it needs setpriv, to give up root's capabilities."
        return ""

    def confine(self, launch: Launch) -> Launch:
        """The same command under rules. The descriptor that this adds is the caller's to close."""
        home, temporary = os.path.join(self._private, "home"), os.path.join(self._private, "tmp")
        user = launch.user or owner_of(launch.root)
        argv = launch.argv
        if os.geteuid() == 0:
            if user is None:
                setpriv = programs.find("setpriv", launch.root)
                if setpriv is None:
                    raise HostError("As root it needs setpriv, to give up root's capabilities.")
                argv = (
                    setpriv.file,
                    "--bounding-set=-all",
                    "--inh-caps=-all",
                    "--ambient-caps=-all",
                    "--",
                    *argv,
                )
            else:
                for folder in (self._private, home, temporary):
                    os.chown(folder, *user)
        sockets: seccomp.Sockets = "own" if launch.network == "on" else "none"
        env = profile.environment(launch.env, home=home, root_inside=os.geteuid() == 0 and user is None)
        return replace(
            launch,
            argv=argv,
            env=env | {"TMPDIR": temporary},
            user=user,
            # No network of its own, where there are no namespaces: so no door into it either.
            unshare=0 if launch.door else launch.unshare,
            door=None,
            landlock=self._ruleset(launch),
            seccomp=call_filter(sockets),
            allowance=bounded(launch.allowance),
            notes=(*launch.notes, *((_LISTED,) if launch.network == "listed" else ())),
        )

    def _ruleset(self, launch: Launch) -> int:
        """The rules for a launch, as a descriptor of its own; those made before serve as long as nothing moved.

        A rule is about the thing that was at a path when it was made, not about the path.
        """
        network = launch.network == "on"
        special = (launch.frozen, launch.readable, launch.writable)
        key = (launch.root, launch.env.get("HOME"), launch.terminal is not None, network, special)
        state = self._state(launch)
        with self._lock:
            known, rules = self._rules.get(key, (None, -1))
            if known != state:
                if self._rules.pop(key, None):
                    os.close(rules)
                rules = ruleset(self._grants(launch), network=network)
                self._rules[key] = state, rules
            return os.dup(rules)

    def _state(self, launch: Launch) -> tuple[object, ...]:
        """Which things the granted trees are, and when the folders changed that are granted in parts."""
        secret = hidden.system_secrets()
        parts = {"/etc", *(os.path.dirname(path) for path in (*secret.files, *secret.folders))}
        return (*map(_identity, (*self._trees(launch), launch.root)), *map(_changed, sorted(parts)))

    def _trees(self, launch: Launch) -> tuple[str, ...]:
        """What may be read and executed as a whole."""
        system = [path for path in (*profile.SYSTEM, *_OTHER_TREES) if path != "/etc"]
        return (*system, *profile.toolchains(launch.env.get("HOME", "")), *self._readable, *launch.readable)

    def _grants(self, launch: Launch) -> Iterator[tuple[str, int]]:
        """Paths, and what may be done below them."""
        for path in self._trees(launch):
            yield path, READING
        secret = hidden.system_secrets()
        yield "/etc", LISTING
        for path in _without("/etc", (*secret.files, *secret.folders)):
            yield path, READING
        # A terminal of its own can't be told from the person's, so there is none unless it was asked for.
        for name in (*_DEVICE_FILES, *(_TERMINALS if launch.terminal else ())):
            yield f"/dev/{name}", DEVICE
        yield launch.root, READING if launch.frozen else WRITING
        for path in (self._private, *launch.writable):
            yield path, WRITING

    @cached_property
    def _private(self) -> str:
        """A home and a place for temporary files, for as long as this runner lives."""
        folder = tempfile.mkdtemp(prefix="handtools-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        for name in ("home", "tmp"):
            Path(folder, name).mkdir(0o700)
        return folder


def _close(rules: dict[tuple[object, ...], tuple[tuple[object, ...], int]]) -> None:
    for _, fd in rules.values():
        os.close(fd)


def _identity(path: str) -> tuple[str, int, int] | None:
    with contextlib.suppress(OSError):
        found = os.stat(path)
        return path, found.st_dev, found.st_ino
    return None


def _changed(path: str) -> int:
    with contextlib.suppress(OSError):
        return os.stat(path).st_mtime_ns
    return 0


def _without(tree: str, secret: Iterable[str]) -> Iterator[str]:
    """A tree as the largest parts of it that hold nothing secret: rules can only grant."""
    inside = [path for path in secret if Path(path).is_relative_to(tree)]
    if not inside:
        yield tree
    elif tree not in inside:
        for name in os.listdir(tree):
            yield from _without(os.path.join(tree, name), inside)
