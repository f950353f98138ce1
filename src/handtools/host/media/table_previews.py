"""Previews of tables (CSV, SQLite, Parquet): the columns and the first rows."""

import csv
import io
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from importlib.util import find_spec
from itertools import islice
from typing import Any

from handtools.core.errors import WrongKind
from handtools.core.media import MediaPreview
from handtools.host.media import UNREADABLE_HINT
from handtools.text.encoding import decode
from handtools.text.plurals import number_with_noun
from handtools.text.truncation import collapse_to_one_line

TABLE_PREVIEW_ROWS = 10
TABLE_CELL_CHARS = 80
MAX_DATABASE_TABLES = 50
_SQLITE_STEPS = 2_000_000
"""Maximum number of SQLite virtual machine steps per query, so that counting a huge table is aborted."""


def preview(path: str, data: bytes) -> MediaPreview | None:
    """Preview the schema and first rows of a table file; None if no reader for the format is installed."""
    if data.startswith(b"SQLite"):
        return _sqlite_preview(path, data)
    if data.startswith(b"PAR1"):
        return _parquet_preview(path, data) if find_spec("pyarrow") else None
    return _csv_preview(path, data)


def _csv_preview(path: str, data: bytes) -> MediaPreview:
    text = decode(data).body
    tabbed = path.lower().endswith(".tsv")
    try:
        reader = csv.reader(
            io.StringIO(text, newline=""), delimiter="\t" if tabbed else _guess_delimiter(text)
        )
        rows = list(islice(reader, TABLE_PREVIEW_ROWS + 1))
        # Don't count lines: a quoted cell may contain line breaks.
        count = max(len(rows) - 1, 0) + sum(1 for _ in reader)
    except csv.Error as error:
        raise WrongKind(f"`{path}` can't be read as a table: {error}.", hint="Use view=text.") from error
    head, body = (rows[0], rows[1:]) if rows else ([], [])
    return MediaPreview(
        kind="table",
        title=f"{'TSV' if tabbed else 'CSV'}, {number_with_noun(len(head), 'column')},"
        f" {number_with_noun(count, 'row')}",
        text=_rows_text(head, body),
        left_out=f"rows after the first {TABLE_PREVIEW_ROWS}; use start_line or view=text"
        if count > len(body)
        else "",
    )


def _guess_delimiter(text: str) -> str:
    first = text.partition("\n")[0]
    return max(",;\t|", key=first.count)


def _sqlite_preview(path: str, data: bytes) -> MediaPreview:
    with closing(sqlite3.connect(":memory:")) as connection:
        try:
            connection.text_factory = lambda text: text.decode("utf-8", "replace")
            # Clear WAL mode in the header: an in-memory copy has no write-ahead log.
            connection.deserialize(data[:18] + b"\1\1" + data[20:])
            connection.execute("PRAGMA query_only = 1")
            connection.set_progress_handler(lambda: 1, _SQLITE_STEPS)
            query = "SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name"
            tables = connection.execute(query).fetchall()
            shown = [
                _table_text_and_count(connection, name, sql) for name, sql in tables[:MAX_DATABASE_TABLES]
            ]
        except (sqlite3.Error, UnicodeDecodeError) as error:
            message = f"`{path}` can't be read as a SQLite database: {error}."
            raise WrongKind(message, hint=UNREADABLE_HINT) from error
    more = len(tables) - MAX_DATABASE_TABLES
    left_out = [f"{more} more tables"] * (more > 0)
    left_out += [f"rows after the first {TABLE_PREVIEW_ROWS} of each"] * any(
        count > TABLE_PREVIEW_ROWS for _, count in shown
    )
    return MediaPreview(
        kind="table",
        title=f"SQLite database, {len(tables)} tables and views",
        text="\n\n".join(text for text, _ in shown),
        left_out="; ".join(left_out),
    )


def _table_text_and_count(connection: sqlite3.Connection, name: str, sql: str | None) -> tuple[str, int]:
    """Return the schema and first rows of a database table as text, and its number of rows."""
    quoted = '"' + name.replace('"', '""') + '"'
    try:
        rows = connection.execute(f"SELECT * FROM {quoted} LIMIT {TABLE_PREVIEW_ROWS}")
        head, body = [column[0] for column in rows.description], rows.fetchall()
        count = connection.execute(f"SELECT count(*) FROM {quoted}").fetchone()[0]
    except (sqlite3.Error, UnicodeDecodeError) as error:
        return f"{sql or name}\n({error})", 0
    return f"{sql or name}\n-- {number_with_noun(count, 'row')}\n{_rows_text(head, body)}", count


def _parquet_preview(path: str, data: bytes) -> MediaPreview:
    # Users install pyarrow themselves if they want it; handtools does not depend on it.
    from pyarrow import ArrowException, BufferReader  # pyright: ignore[reportMissingImports]
    from pyarrow.parquet import ParquetFile  # pyright: ignore[reportMissingImports]

    try:
        file = ParquetFile(BufferReader(data))
        first = next(file.iter_batches(batch_size=TABLE_PREVIEW_ROWS), None)
    except (ArrowException, OSError) as error:
        raise WrongKind(f"`{path}` can't be read as Parquet: {error}.", hint=UNREADABLE_HINT) from error
    schema = file.schema_arrow
    rows = [list(row.values()) for row in first.to_pylist()] if first is not None else []
    count = file.metadata.num_rows
    types = "\n".join(f"{field.name}: {field.type}" for field in schema)
    return MediaPreview(
        kind="table",
        title=f"Parquet, {number_with_noun(len(schema), 'column')}, {number_with_noun(count, 'row')}",
        text=f"{types}\n\n{_rows_text(schema.names, rows)}",
        left_out=f"rows after the first {TABLE_PREVIEW_ROWS}" if count > len(rows) else "",
    )


def _rows_text(head: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    every = [head, *rows]
    return "\n".join(" | ".join(_cell_text(value) for value in row) for row in every)


def _cell_text(value: Any) -> str:
    text = f"({len(value)} bytes)" if isinstance(value, bytes) else "" if value is None else str(value)
    return collapse_to_one_line(text, TABLE_CELL_CHARS)
