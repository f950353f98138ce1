"""Outputs of one owner: a kept output belongs to the call that it is named after."""

from dataclasses import dataclass

from handtools.core.ports import Store
from handtools.runtime.journal.calls import Calls


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
