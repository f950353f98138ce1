"""The vault: where held things are while they are not at their path."""

from collections.abc import Collection
from typing import Protocol


class Vault(Protocol):
    """Things kept outside the workspace as they are: moved in and out, not read and written."""

    def has(self, ref: str) -> bool:
        """Whether the thing is here, and not at its path."""
        ...

    def read(self, ref: str, most: int) -> bytes | None:
        """The bytes of a file that is here, unless there are more than so many."""
        ...

    def drop(self, ref: str, *, erase: bool = False) -> None:
        """Let go of a thing; no error when it is not here. With `erase`, a file's bytes are overwritten first."""
        ...

    def clear(self, name: str) -> None:
        """Remove what is left of an item when its changes have landed, or never will."""
        ...

    def tidy(self, wanted: Collection[str]) -> list[str]:
        """Remove the items that nobody works on and the record does not name; tells which can't be removed."""
        ...
