"""Refs: which things of the vault the record needs, and which of them are there."""

import sqlite3
from collections.abc import Iterable

from handtools.core.changes import Held
from handtools.core.vault import Vault
from handtools.runtime.journal.database import Database, storable, stored


class Refs:
    """Each touch that names a thing is one use of it."""

    def __init__(self, database: Database, vault: Vault | None) -> None:
        self._database = database
        self._vault = vault

    def put(self, connection: sqlite3.Connection, things: Iterable[Held]) -> None:
        """Count a use of each."""
        connection.executemany(
            "INSERT INTO refs (ref, uses, bytes, present) VALUES (?, 1, ?, 0) "
            "ON CONFLICT (ref) DO UPDATE SET uses = uses + 1",
            [(storable(held.ref), held.bytes) for held in things],
        )

    def landed(self, connection: sqlite3.Connection, entry: int) -> None:
        """What an entry displaced is in the vault now, and what it brought is not."""
        for column, present in (("after_ref", 0), ("before_ref", 1)):
            connection.execute(
                f"UPDATE refs SET present = {present} WHERE ref IN "
                f"(SELECT {column} FROM touches WHERE entry = ? AND {column} IS NOT NULL)",
                (entry,),
            )

    def release(self, connection: sqlite3.Connection, refs: Iterable[str | None]) -> int:
        """Take back one use of each; things without a use are let go. Gives back the bytes that were freed."""
        freed = 0
        for ref in (storable(ref) for ref in refs if ref):
            connection.execute("UPDATE refs SET uses = uses - 1 WHERE ref = ?", (ref,))
            row = connection.execute(
                "DELETE FROM refs WHERE ref = ?1 AND uses <= 0 AND NOT EXISTS "
                "(SELECT 1 FROM refs AS inner WHERE inner.ref > ?1 || '/' AND inner.ref < ?1 || '0') "
                "RETURNING bytes * present",
                (ref,),
            ).fetchone()
            if row:
                freed += row[0]
                self.drop(stored(ref))
        return freed

    def drop(self, ref: str, *, erase: bool = False) -> None:
        """Let go of a thing, whoever uses it."""
        if self._vault is not None:
            self._vault.drop(ref, erase=erase)

    def clear(self, items: Iterable[str]) -> None:
        """Remove what is left of items whose changes never land."""
        for item in items:
            if self._vault is not None:
                self._vault.clear(item)

    def items(self) -> set[str]:
        """The items of the vault that are needed."""
        with self._database.reading() as connection:
            rows = connection.execute(
                "SELECT before_ref, after_ref FROM touches WHERE coalesce(before_ref, after_ref) IS NOT NULL"
            )
            return {stored(ref).partition("/")[0] for row in rows for ref in row if ref}
