"""Recent files: what was read or written last, so that the same bytes are not named twice."""

import threading
from collections import OrderedDict

from handtools.core.changes import Node

LARGEST_BYTES = 256 << 10
MOST_BYTES = 1 << 20
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
            if node.mode is not None or node.held or len(node.data) > LARGEST_BYTES:
                return
            self._nodes[path] = node
            self._bytes += len(node.data)
            while self._bytes > MOST_BYTES:
                self._drop(next(iter(self._nodes)))

    def _drop(self, path: str) -> None:
        gone = self._nodes.pop(path, None)
        self._bytes -= 0 if gone is None else len(gone.data)
