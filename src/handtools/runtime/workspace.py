"""A workspace: the ports of one machine, its journal, the outputs of each owner, a cache of recent files.

ADR 120.
"""

import threading
from collections import OrderedDict
from dataclasses import dataclass, field, replace

from handtools.core.changes import Node
from handtools.core.commands import HostCommands
from handtools.core.files import HostFiles, Locks, Store
from handtools.core.language import Formatters, HostLanguage
from handtools.core.media import Media
from handtools.core.search import HostSearch
from handtools.core.skills import HostSkills
from handtools.core.syntax import Syntax
from handtools.core.tool import AnyTool
from handtools.core.web import HostWeb
from handtools.runtime.journal import Journal
from handtools.runtime.journal.calls import Calls
from handtools.runtime.policy.rules import Rule


@dataclass(frozen=True, slots=True)
class OwnedOutputs:
    """The store of outputs, as far as the owner's calls are on record; the others are not there."""

    store: Store
    calls: Calls

    def put(self, data: bytes, *, name: str) -> None:
        """Keep bytes under a name."""
        self.store.put(data, name=name)

    def get(self, name: str) -> bytes:
        """The bytes of a name."""
        return self.store.get(self._own(name))

    def part(self, name: str, start: int, size: int | None) -> bytes:
        """A part of the bytes."""
        return self.store.part(self._own(name), start, size)

    def size(self, name: str) -> int:
        """How many bytes a name stands for."""
        return self.store.size(self._own(name))

    def drop(self, name: str) -> None:
        """Let go of a name."""
        if self._is_own(name):
            self.store.drop(name)

    def names(self) -> list[str]:
        """Every name that is kept of the owner's calls."""
        return [name for name in self.store.names() if self._is_own(name)]

    def _own(self, name: str) -> str:
        if not self._is_own(name):
            raise KeyError(name)
        return name

    def _is_own(self, name: str) -> bool:
        return self.calls.has(name.rpartition(".")[0])


MAX_RECENT_FILE_BYTES = 256 << 10
MAX_RECENT_BYTES = 1 << 20
"""Of all files together: comparing is cheap, and a few files are what an agent works on."""


class RecentFiles:
    """Files by their located paths. A node works out its digest once, and it takes longer than to compare."""

    def __init__(self) -> None:
        self._nodes: OrderedDict[str, Node] = OrderedDict()
        self._bytes = 0
        self._lock = threading.Lock()

    def node(self, path: str, data: bytes) -> Node:
        """A file that was read: the node it had before, if it is still the same."""
        known = self._nodes.get(path)
        if known is not None and known.data == data:
            return known
        node = Node("file", data)
        self.keep(path, node)
        return node

    def keep(self, path: str, node: Node) -> None:
        """Remember a file as it is now."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Parts of the machine, put together by the toolbox."""

    files: HostFiles
    locks: Locks
    journal: Journal
    outputs: Store
    kept: HostSearch
    """Searches the outputs, by their names."""
    search: HostSearch
    syntax: Syntax
    media: Media
    skills: HostSkills
    commands: HostCommands
    language: HostLanguage
    formatters: Formatters
    web: HostWeb
    rules: tuple[Rule, ...] = ()
    """What holds here under every policy."""
    recent: RecentFiles = field(default_factory=RecentFiles)

    def owned_by(self, owner: str) -> "Workspace":
        """The same workspace for one of its owners: of what the others' calls left, nothing is there."""
        journal = self.journal.owned_by(owner)
        return replace(self, journal=journal, outputs=OwnedOutputs(self.outputs, journal.calls))

    def serves(self, tool: AnyTool) -> bool:
        """Whether the machine has what the tool needs."""
        if "run" in tool.effects and self.commands.missing:
            return False
        if "visit" in tool.effects and self.web.missing:
            return False
        return tool.needs != "engine" or self.web.engine is not None
