"""Containers: made when needed, kept for the next command of the same shape, one command in each at a time."""

import atexit
import contextlib
import os
import select
import shutil
import socket
import tempfile
import threading
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from handtools.core.errors import HostError
from handtools.host.commands.container import owners
from handtools.host.commands.container.engine import Engine, speaking
from handtools.host.commands.container.layering import Layers
from handtools.host.commands.container.shape import Places, Shape, options
from handtools.host.commands.processes import groups
from handtools.host.commands.processes.groups import Group

IDLE = 2
"""Containers of one workspace that are kept without work."""
_PREFIX = "handtools-container-"


@dataclass(slots=True)
class Container:
    """One that runs."""

    id: str
    shape: Shape
    line: socket.socket
    """Its input. It ends when this is closed, however that came about."""
    pid: int
    """Of its first process, as this machine counts; 0 when the engine does not say."""
    folder: str
    slips: int
    """Handle of the folder for what commands are handed."""
    group: Group = field(default_factory=Group)
    layers: Layers | None = None
    """Whoever puts layers into it; nobody before the first."""

    def lay(self, mounts: Sequence[Sequence[Any]]) -> None:
        """Put a layer over its workspace, for one command."""
        self.layers = self.layers or Layers(self.pid, self.shape.root)
        self.layers.lay(mounts)

    def lift(self) -> None:
        """Take the layer away."""
        if self.layers is not None:
            self.layers.lift()

    @property
    def alive(self) -> bool:
        """Whether it still runs: its line ends with it."""
        waiting = select.poll()
        waiting.register(self.line, select.POLLIN | select.POLLHUP)
        return not waiting.poll(0)

    @property
    def seen(self) -> bool:
        """Whether we can look into it: not where the engine runs in a machine of its own."""
        return self.pid in self.group.pids()

    def others(self) -> list[int]:
        """What runs in it besides its first process."""
        return [pid for pid in self.group.pids() if pid != self.pid]


class Containers:
    """All of one engine, for all workspaces of a process."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._idle: list[Container] = []
        self._lock = threading.Lock()
        self._owner = 0

    @cached_property
    def nothing(self) -> str:
        """A folder with an empty `file` and an empty `folder`, to lie over what is private."""
        made = tempfile.mkdtemp(prefix=_PREFIX)
        Path(made, "file").touch(0o000)
        Path(made, "folder").mkdir(0o000)
        weakref.finalize(self, _remove_nothing, made)
        return made

    def take(self, shape: Shape) -> Container:
        """One that is free, or a new one."""
        with self._lock:
            self._begin()
            for place in reversed(range(len(self._idle))):
                if self._idle[place].shape == shape:
                    found = self._idle.pop(place)
                    if found.alive:
                        return found
                    _let_go(found)
        return self.make(shape)

    def give_back(self, container: Container, *, clean: bool) -> None:
        """It has nothing to do any more; one in which something is left is not used again."""
        gone = [] if clean else [container]
        with self._lock:
            if clean:
                self._idle.append(container)
                kept = [each for each in self._idle if each.shape.root == container.shape.root]
                gone = kept[: max(len(kept) - IDLE, 0)]
                self._idle = [each for each in self._idle if each not in gone]
        for each in gone:
            self.remove(each)

    def leave(self, root: str) -> None:
        """Remove what is kept for a workspace."""
        with self._lock:
            if self._owner != os.getpid():
                return
            gone = [each for each in self._idle if each.shape.root == root]
            self._idle = [each for each in self._idle if each.shape.root != root]
        for each in gone:
            self.remove(each)

    def close(self) -> None:
        """Remove all that is kept."""
        with self._lock:
            roots = {each.shape.root for each in self._idle}
        for root in roots:
            self.leave(root)
        self.engine.close()

    def kill(self, container: Container) -> None:
        """End all that runs in a container, and the container with it."""
        with contextlib.suppress(HostError), speaking():
            self.engine.client.api.kill(container.id)

    def remove(self, container: Container) -> None:
        """End a container and all that runs in it, now."""
        with contextlib.suppress(HostError), speaking():
            self.engine.client.api.remove_container(container.id, force=True)
        _let_go(container)

    def _begin(self) -> None:
        """Once in each process: after a fork they are our parent's."""
        if self._owner == os.getpid():
            return
        self._idle, self._owner = [], os.getpid()
        atexit.register(self.close)
        self._sweep()

    def _sweep(self) -> None:
        """Remove what others of us left who were killed, should the engine not have noticed."""
        api = self.engine.client.api
        with speaking():
            found = api.containers(all=True, filters={"label": owners.MINE})
        for each in found:
            labels = each["Labels"]
            if owners.left_behind(labels[owners.MINE]):
                with contextlib.suppress(HostError), speaking():
                    api.remove_container(each["Id"], force=True)
                _remove_folder(labels.get(owners.FOLDER, ""))

    def make(self, shape: Shape) -> Container:
        """A new one."""
        folder = tempfile.mkdtemp(prefix=_PREFIX)
        try:
            places = Places(_slips(folder, shape.user), self.nothing)
            return self._start(shape, places, folder)
        except BaseException:
            _remove_folder(folder)
            raise

    def _start(self, shape: Shape, places: Places, folder: str) -> Container:
        labels = {
            owners.MINE: owners.ours(),
            owners.WORKSPACE: owners.workspace(shape.root),
            owners.FOLDER: folder,
        }
        client = self.engine.client
        with speaking():
            made = client.containers.create(**options(shape, places, labels))
        try:
            line, _ = self.engine.stream(f"/containers/{made.id}/attach?stream=1&stdin=1")
            with speaking():
                client.api.start(made.id)
                pid = client.api.inspect_container(made.id)["State"]["Pid"]
        except BaseException:
            with contextlib.suppress(HostError), speaking():
                client.api.remove_container(made.id, force=True)
            raise
        slips = os.open(places.slips, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        return Container(made.id, shape, line, pid, folder, slips, groups.of(pid))


def _slips(folder: str, user: tuple[int, int]) -> str:
    """The folder that is mounted. Only this inner one is the command's: what is above it stays where it is."""
    slips = os.path.join(folder, "slips")
    os.chmod(folder, 0o711)  # noqa: S103 — nothing can be listed or made in it
    os.mkdir(slips, 0o700)
    if os.geteuid() == 0:
        os.chown(slips, *user)
    return slips


def _remove_nothing(folder: str) -> None:
    with contextlib.suppress(OSError):
        os.chmod(os.path.join(folder, "folder"), 0o700)
    shutil.rmtree(folder, ignore_errors=True)


def _let_go(container: Container) -> None:
    if container.layers is not None:
        container.layers.close()
    container.line.close()
    os.close(container.slips)
    _remove_folder(container.folder)


def _remove_folder(folder: str) -> None:
    """Only what we made: a label could name anything."""
    if os.path.basename(folder).startswith(_PREFIX) and os.path.dirname(folder) == tempfile.gettempdir():
        shutil.rmtree(folder, ignore_errors=True)
