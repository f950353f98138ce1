"""Stored call outputs, readable only by their owner."""

from dataclasses import dataclass

from handtools.core.backups_locks_and_store import Store
from handtools.runtime.journal.calls import Calls


@dataclass(frozen=True, slots=True)
class OwnedOutputs:
    """A view of the output store restricted to one owner's calls."""

    store: Store
    calls: Calls

    def put(self, data: bytes, *, name: str) -> None:
        self.store.put(data, name=name)

    def get(self, name: str) -> bytes:
        """Return the bytes of a name; raises `KeyError` if it is missing or belongs to another owner."""
        return self.store.get(self._own(name))

    def part(self, name: str, start: int, size: int | None) -> bytes:
        return self.store.part(self._own(name), start, size)

    def size(self, name: str) -> int:
        return self.store.size(self._own(name))

    def drop(self, name: str) -> None:
        if self._is_own(name):
            self.store.drop(name)

    def names(self) -> list[str]:
        return [name for name in self.store.names() if self._is_own(name)]

    def _own(self, name: str) -> str:
        if not self._is_own(name):
            raise KeyError(name)
        return name

    def _is_own(self, name: str) -> bool:
        return self.calls.has(name.rpartition(".")[0])
