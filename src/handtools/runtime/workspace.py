"""The `Workspace`: the ports of one machine, its journal, its stored outputs, and a cache of recent files."""

import copy
import threading
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from handtools.core.backups_locks_and_store import Locks, Store
from handtools.core.changes import Node
from handtools.core.files import HostFiles
from handtools.core.tool import AnyTool
from handtools.runtime.journal import Journal
from handtools.runtime.journal.calls import Calls
from handtools.runtime.policy.rules import Rule

if TYPE_CHECKING:
    from handtools.core.commands import HostCommands
    from handtools.core.language import Formatters, HostLanguage
    from handtools.core.media import Media
    from handtools.core.search import HostSearch
    from handtools.core.skills import HostSkills
    from handtools.core.syntax import Syntax
    from handtools.core.web import HostWeb


@dataclass(frozen=True, slots=True)
class OwnedOutputs:
    """A view of the output store restricted to one owner's calls."""

    store: Store
    calls: Calls

    def put(self, data: bytes, *, name: str) -> None:
        self.store.put(data, name=name)

    def get(self, name: str) -> bytes:
        """Return the output with this name; raises `KeyError` if there is none or it belongs to another owner."""
        return self.store.get(self._checked_own_name(name))

    def part(self, name: str, start: int, size: int | None) -> bytes:
        return self.store.part(self._checked_own_name(name), start, size)

    def size(self, name: str) -> int:
        return self.store.size(self._checked_own_name(name))

    def drop(self, name: str) -> None:
        if self._is_own(name):
            self.store.drop(name)

    def names(self) -> list[str]:
        return [name for name in self.store.names() if self._is_own(name)]

    def _checked_own_name(self, name: str) -> str:
        if not self._is_own(name):
            raise KeyError(name)
        return name

    def _is_own(self, name: str) -> bool:
        return self.calls.has(name.rpartition(".")[0])


MAX_RECENT_FILE_BYTES = 256 << 10
MAX_RECENT_BYTES = 1 << 20
"""Most bytes that all cached files may have in total."""


class RecentFiles:
    """Cache of recently read files as nodes by path, to avoid computing their digests again."""

    def __init__(self) -> None:
        self._nodes: OrderedDict[str, Node] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def node(self, path: str, data: bytes) -> Node:
        """Return the cached node of a file if its bytes are the same, otherwise a new node."""
        known = self._nodes.get(path)
        if known is not None and known.data == data:
            return known
        node = Node("file", data)
        self.keep(path, node)
        return node

    def keep(self, path: str, node: Node) -> None:
        """Cache a file's node, unless it is too large or more than plain bytes."""
        with self._lock:
            self._drop(path)
            if node.mode is not None or node.held or len(node.data) > MAX_RECENT_FILE_BYTES:
                return
            self._nodes[path] = node
            self._bytes += len(node.data)
            while self._bytes > MAX_RECENT_BYTES:
                self._drop(next(iter(self._nodes)))

    def _drop(self, path: str) -> None:
        gone = self._nodes.pop(path, None)
        self._bytes -= 0 if gone is None else len(gone.data)


T = TypeVar("T")


class PortOnUse(Generic[T]):
    """Makes a port when it is first used, so that a call imports only the ports that it needs. Thread-safe."""

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._lock = threading.Lock()
        self.made: T | None = None

    def __call__(self) -> T:
        """Return the port; the first call makes it."""
        with self._lock:
            if self.made is None:
                self.made = self._make()
            return self.made


class Port(Generic[T]):
    """A field of `Workspace` that is set to a port or to a `PortOnUse`, and always reads as the port."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, workspace: Any, owner: type | None = None) -> T:
        if workspace is None:  # a dataclass asks for the default: there is none
            raise AttributeError(self._name)
        port: Any = workspace.__dict__[self._name]
        made: T = port() if isinstance(port, PortOnUse) else port
        return made

    def __set__(self, workspace: Any, port: T | PortOnUse[T]) -> None:
        workspace.__dict__[self._name] = port


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Workspace:
    """The ports of one machine for one workspace folder, with its journal and stored outputs."""

    files: HostFiles
    locks: Locks
    journal: Journal
    output_store: Store
    host_search: "Port[HostSearch]" = Port()
    """Search port for the stored outputs."""
    search: "Port[HostSearch]" = Port()
    syntax: "Port[Syntax]" = Port()
    media: "Port[Media]" = Port()
    skills: "Port[HostSkills]" = Port()
    commands: "Port[HostCommands]" = Port()
    language: "Port[HostLanguage]" = Port()
    formatters: "Port[Formatters]" = Port()
    web: "Port[HostWeb]" = Port()
    rules: tuple[Rule, ...] = ()
    """Rules that apply under every policy."""
    folders: tuple[str, ...] = ()
    """The folder names of a workspace with several folders: every path begins with one of them."""
    root: str = ""
    """The real path of the workspace folder if commands see it at the same path; otherwise empty."""
    boot: str = ""
    """Identifies this boot of the machine, if the journal is on a disk and survives a power failure.

    Changes are then written without syncing each file, and restored from the journal if necessary.
    """
    recent: RecentFiles = field(default_factory=RecentFiles)

    def owned_by(self, owner: str) -> "Workspace":
        """Return the same workspace restricted to one owner's calls and outputs."""
        journal = self.journal.owned_by(owner)
        view = copy.copy(self)  # `replace` would read, and so make, every port
        view.__dict__.update(journal=journal, output_store=OwnedOutputs(self.output_store, journal.calls))
        return view

    def close(self) -> None:
        """Close the journal, and commands and language servers if they were used."""
        for port in (self.__dict__["commands"], self.__dict__["language"]):
            made = port.made if isinstance(port, PortOnUse) else port
            if made is not None:
                made.close()
        self.journal.close()

    def can_run_tool(self, tool: AnyTool) -> bool:
        """Whether the machine supports what a tool needs, such as commands or a search engine."""
        if "run" in tool.effects and self.commands.missing:
            return False
        if "visit" in tool.effects and self.web.missing:
            return False
        return tool.needs != "engine" or self.web.engine is not None
