"""Edit TOML as text: get, set and remove tables and single values, leaving the rest unchanged."""

import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any

from handtools.core.errors import UsageError

_HEADER = re.compile(r"^[ \t]*\[", re.MULTILINE)
_VALUE = r"(\"(?:[^\"\\\n]|\\.)*\"|'[^'\n]*'|[^\s#,\[\]{}\"']+)"


def find_value_text(text: str, path: Sequence[str]) -> str | None:
    """The TOML source at a path of keys: a table with its header, or a value; None if neither exists."""
    block = _table_pattern(path).search(text)
    if block is not None:
        return block[0].strip("\n") + "\n"
    value = _value_match(text, path)
    return None if value is None else value[1]


def replace_value_text(text: str, path: Sequence[str], written: str) -> str:
    """Put the given TOML source text (a table or value) at a path of keys. Returns the new config text."""
    if written.lstrip().startswith("["):
        return _with_appended_block(remove_value(text, path), written)
    return _with_value(text, path, written)


def set_value(text: str, path: Sequence[str], value: Any) -> str:
    """Set a value at a path of keys in TOML text. A mapping becomes a table at the end of the file.

    Returns the new config text. Raises `UsageError` if parsing the new text does not yield the value.
    """
    _parse_toml(text)
    if not isinstance(value, Mapping):
        return _verified_text(_with_value(text, path, json.dumps(value)), path, value)
    # JSON strings, lists and booleans are also valid TOML.
    lines = [f"[{'.'.join(path)}]", *(f"{key} = {json.dumps(item)}" for key, item in value.items())]
    return _verified_text(
        _with_appended_block(remove_value(text, path), "\n".join(lines) + "\n"), path, dict(value)
    )


def remove_value(text: str, path: Sequence[str]) -> str:
    """Remove the value, or the table and its subtables, at a path of keys from TOML text.

    A table that becomes empty is also removed. Returns the new config text.
    """
    _parse_toml(text)
    block = _table_pattern(path)
    while found := block.search(text):
        before, after = text[: found.start()], text[found.end() :]
        text = (
            before
            + ("\n" if before and not before.endswith("\n") else "")
            + ("\n" if before and after else "")
            + after
        )
    value = _value_match(text, path)
    if value is None:
        return text
    start = text.rfind("\n", 0, value.start(1)) + 1
    end = text.find("\n", value.end(1))
    rest = text[end + 1 :] if end >= 0 else ""
    text = rest.removeprefix("\n") if not start else text[:start] + rest
    alone = _table_pattern(path[:-1]).search(text) if len(path) > 1 else None
    if alone is not None and not alone[0].strip().partition("\n")[2].strip():
        return remove_value(text, path[:-1])
    return text


def _table_pattern(path: Sequence[str]) -> re.Pattern[str]:
    name = re.escape(".".join(path))
    return re.compile(
        rf"(?:^|\n)\n?\[{name}(?:\.[^\]]*)?\][^\n]*(?:\n|$)(?:(?!\[)[^\n]*(?:\n|$))*?(?=\n*\[|\n*\Z)\n*"
    )


def _value_match(text: str, path: Sequence[str]) -> re.Match[str] | None:
    start, end = _table_body_span(text, path[:-1])
    if start < 0:
        return None
    return re.compile(rf"^[ \t]*{re.escape(path[-1])}[ \t]*=[ \t]*{_VALUE}", re.MULTILINE).search(
        text, start, end
    )


def _table_body_span(text: str, table: Sequence[str]) -> tuple[int, int]:
    """Start and end offset of the key lines of a TOML table; (-1, -1) if it has no header."""
    start = 0
    if table:
        header = re.search(rf"^[ \t]*\[{re.escape('.'.join(table))}\][^\n]*(?:\n|\Z)", text, re.MULTILINE)
        if header is None:
            return -1, -1
        start = header.end()
    following = _HEADER.search(text, start)
    return start, following.start() if following else len(text)


def _with_value(text: str, path: Sequence[str], written: str) -> str:
    there = _value_match(text, path)
    if there is not None:
        return text[: there.start(1)] + written + text[there.end(1) :]
    line = f"{path[-1]} = {written}\n"
    start, _end = _table_body_span(text, path[:-1])
    if start < 0:
        return _with_appended_block(text, f"[{'.'.join(path[:-1])}]\n{line}")
    gap = "\n" if start and not text[:start].endswith("\n") else ""
    # Separate top-level keys from the first table with a blank line.
    line += "\n" if not start and text.startswith("[") else ""
    return text[:start] + gap + line + text[start:]


def _with_appended_block(text: str, block: str) -> str:
    gap = "" if not text else "\n" if text.endswith("\n") else "\n\n"
    return text + gap + block


def _verified_text(text: str, path: Sequence[str], value: Any) -> str:
    """Return the TOML text, or raise `UsageError` if parsing it does not give the value at the path."""
    found: Any = _parse_toml(text)
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    if found != value:
        raise UsageError(
            f"The configuration has `{'.'.join(path)}` in a form that can't be changed safely."
        )
    return text


def _parse_toml(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as problem:
        raise UsageError(f"The configuration is not valid TOML: {problem}.") from problem
