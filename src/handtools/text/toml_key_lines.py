"""Line numbers of the keys in a TOML file, for messages that say where something is set."""

from typing import Any

from handtools.text.toml_text import parse_toml

KeyPath = tuple[str | int, ...]
"""A key with its tables and its indexes in arrays of tables: `("rule", 0, "name")`."""

MAX_PARSED_CHARS = 500_000
"""Most characters that are parsed to find lines; later keys get no line."""


def toml_key_lines(text: str) -> dict[KeyPath, int]:
    """Map each key and each table header of a valid TOML text to its line, counted from 1.

    A statement ends where its lines parse on their own, so the real parser handles multi-line strings and
    arrays.
    """
    found: dict[KeyPath, int] = {}
    tables: dict[KeyPath, int] = {}
    table: KeyPath = ()
    start, pending, parsed = 1, "", 0
    for number, line in enumerate(text.split("\n"), 1):
        pending += f"{line}\n"
        parsed += len(pending)
        if parsed > MAX_PARSED_CHARS:
            break
        try:
            statement = parse_toml(pending)
        except (ValueError, RecursionError):
            continue
        if pending.lstrip().startswith("["):
            table = _table_path(statement, tables)
            found.setdefault(table, start)
        else:
            for path in _key_paths(statement):
                found.setdefault((*table, *path), start)
        start, pending = number + 1, ""
    return found


def _table_path(header: dict[str, Any], tables: dict[KeyPath, int]) -> KeyPath:
    """Return the path of the table that a header opens; `tables` has each table array's last index."""
    path: KeyPath = ()
    value: Any = header
    while isinstance(value, dict) and value:
        ((key, value),) = value.items()
        path = (*path, key)
        if isinstance(value, list):
            tables[path] = tables.get(path, -1) + 1
            return (*path, tables[path])
        if path in tables:
            path = (*path, tables[path])
    return path


def _key_paths(statement: dict[str, Any]) -> list[KeyPath]:
    """List the paths of the keys in one statement; dotted keys and inline tables have several."""
    paths: list[KeyPath] = []
    for key, value in statement.items():
        paths.append((key,))
        if isinstance(value, dict):
            paths += [(key, *below) for below in _key_paths(value)]
    return paths
