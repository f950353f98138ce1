"""Ports for data that is stored outside the workspace's files: backups, file locks, and named bytes."""

from collections.abc import Collection, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol


class Backups(Protocol):
    """Port of a store outside the workspace into which replaced files and folders are moved, for undo."""

    def has(self, ref: str) -> bool:
        """Whether the backup store has this reference."""
        ...

    def read(self, ref: str, most: int) -> bytes | None:
        """Return the bytes of a backed-up file; None if it is missing or larger than `most` bytes."""
        ...

    def part(self, ref: str, start: int, size: int) -> bytes | None:
        """Return up to `size` bytes of a backed-up file from offset `start`; None if it is missing."""
        ...

    def drop(self, ref: str, *, erase: bool = False) -> None:
        """Delete a backup, if it exists; with `erase` the file's bytes are overwritten first."""
        ...

    def delete_item_leftovers(self, name: str) -> None:
        """Delete what remains of a backup item after its changes were applied or abandoned."""
        ...

    def delete_unwanted_items(self, wanted: Collection[str]) -> list[str]:
        """Delete backup items that are neither in use nor in `wanted`.

        Return those that can't be deleted.
        """
        ...


class Locks(Protocol):
    """Port for exclusive locks across all processes that use a workspace."""

    def hold(self, keys: Sequence[str], *, timeout: float) -> AbstractAsyncContextManager[None]:
        """Lock all keys for a `with` block, in a fixed order; raises `Busy` after `timeout` seconds."""
        ...


class Store(Protocol):
    """Port of a key-value store for bytes outside the workspace: large old versions and long outputs."""

    def put(self, data: bytes, *, name: str) -> None:
        """Store bytes under a name; the same name must always have the same bytes."""
        ...

    def get(self, name: str) -> bytes:
        """Return the bytes stored under a name; raises `KeyError` if they are gone."""
        ...

    def part(self, name: str, start: int, size: int | None) -> bytes:
        """Return a range of the bytes stored under a name; raises `KeyError` if they are gone."""
        ...

    def size(self, name: str) -> int:
        """Return the number of bytes stored under a name; raises `KeyError` if they are gone."""
        ...

    def drop(self, name: str) -> None:
        """Delete a name and its bytes, if it exists."""
        ...

    def names(self) -> list[str]:
        """List all stored names."""
        ...
