"""Stored outputs of calls, each readable by its owner alone."""

from dataclasses import dataclass

from handtools.core.backups_locks_and_store import Store
from handtools.runtime.journal.calls import Calls


@dataclass(frozen=True, slots=True)
class OwnedOutputs:
    """Store of outputs restricted to calls of one owner."""

    store: Store
    calls: Calls

    def put(self, data: bytes, *, name: str) -> None:
        """Store bytes under a name."""
        self.store.put(data, name=name)

    def get(self, name: str) -> bytes:
        """Return the bytes of a name; raises `KeyError` if missing or of another owner."""
        return self.store.get(self._own(name))

    def part(self, name: str, start: int, size: int | None) -> bytes:
        """Return a range of the bytes of a name."""
        return self.store.part(self._own(name), start, size)

    def size(self, name: str) -> int:
        """Return the size in bytes of a name's content."""
        return self.store.size(self._own(name))

    def drop(self, name: str) -> None:
        """Delete a name and its bytes."""
        if self._is_own(name):
            self.store.drop(name)

    def names(self) -> list[str]:
        """List the names of the owner's outputs."""
        return [name for name in self.store.names() if self._is_own(name)]

    def _own(self, name: str) -> str:
        if not self._is_own(name):
            raise KeyError(name)
        return name

    def _is_own(self, name: str) -> bool:
        return self.calls.has(name.rpartition(".")[0])
