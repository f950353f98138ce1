"""TOML parsing with Python's parser, limited to linear time; the lines of keys, and a table of pyproject.toml."""

import json
import re
from typing import Any

PYPROJECT_NAME = "pyproject.toml"
PYPROJECT_TABLE = ("tool", "handtools")
"""The keys that lead to the project's settings table in pyproject.toml."""
MAX_PYPROJECT_BYTES = 1 << 20
"""A larger pyproject.toml is not read, and counts as having no table."""
BROKEN_TABLE = "broken"
"""The value for a file that is not valid TOML but seems to have the table."""
_NAMED = re.compile(r"handtools|\\[uU]")
"""Text that contains neither the name nor an escape that may hide it has no table, and is not parsed."""
_SEEMS_TO_HAVE_TABLE = re.compile(
    r"""^\s*\[[^\n]*handtools | handtools["']?\s*(?:\.|=(?!=)) | \\[uU]""", re.MULTILINE | re.VERBOSE
)


def handtools_table(text: str) -> str:
    """Return the `tool.handtools` table of a pyproject.toml as JSON with sorted keys; empty if there is none.

    For a file that is not valid TOML, returns `BROKEN_TABLE` if the name is in a header or before a dot or a
    single equals sign, and otherwise an empty string.
    """
    if not _NAMED.search(text):
        return ""
    try:
        found = parse_toml(text)
        for name in PYPROJECT_TABLE:
            if not isinstance(found, dict) or name not in found:
                return ""
            found = found[name]
        return json.dumps(found, sort_keys=True, default=repr)
    except (ValueError, RecursionError):
        return BROKEN_TABLE if _SEEMS_TO_HAVE_TABLE.search(text) else ""


MAX_TOML_CHARS = 1 << 20
MAX_KEY_PARTS = 64
_PART = r"""[\w"'-]++[ \t]*+\.[ \t]*+"""
_LONG_KEY = re.compile(rf"""(?<![\w"'.-])(?:{_PART}){{{MAX_KEY_PARTS}}}""")


def parse_toml(text: str) -> dict[str, Any]:
    """Parse a TOML text; raises `ValueError` or `RecursionError` if it is not valid TOML or too large.

    The parser's time is quadratic in the length of a dotted key: 32 kB of `a.a.a.…` would take seconds.
    """
    if len(text) > MAX_TOML_CHARS:
        raise ValueError(f"it is longer than {MAX_TOML_CHARS:,} characters")
    if found := _LONG_KEY.search(text):
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"a key on line {line} has more than {MAX_KEY_PARTS} parts")
    import tomllib

    return tomllib.loads(text)


KeyPath = tuple[str | int, ...]
"""A key with its tables and its indexes in arrays of tables: `("rule", 0, "name")`."""

MAX_PARSED_CHARS = 500_000
"""Maximum number of characters that are parsed to find lines; later keys get no line."""


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
            table = _path_of_table_header(statement, tables)
            found.setdefault(table, start)
        else:
            for path in _key_paths(statement):
                found.setdefault((*table, *path), start)
        start, pending = number + 1, ""
    return found


def _path_of_table_header(header: dict[str, Any], tables: dict[KeyPath, int]) -> KeyPath:
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
