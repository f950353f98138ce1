"""Edit YAML as lines of text: get, set and remove a mapping or list items of a top-level section."""

import json
import re
from collections.abc import Sequence
from typing import Any

from handtools.core.errors import UsageError

NAMED_ITEM_KEY = "[name=]"
"""Key in a path, for a section that is a list of mappings. The next key is the `name` of the mapping."""


def find_value_text(text: str, path: Sequence[str]) -> str | None:
    """The YAML lines at a path of keys: a top-level section or our mapping in it; None if missing."""
    if len(path) == 1:
        section = re.search(
            rf"^{re.escape(path[0])}:[^\n]*\n((?:[ \t]+[^\n]*\n|- [^\n]*\n)*)", text, re.MULTILINE
        )
        return None if section is None else section[1]
    found = _entry_pattern(path).search(text)
    return None if found is None else text[found.end(1) : found.end()]


def replace_value_text(text: str, path: Sequence[str], written: str) -> str:
    """Replace the lines at a path of keys with the given YAML source lines. Returns the new config text."""
    return _with_inserted_block(remove_value(text, path), path[0], written)


def set_value(text: str, path: Sequence[str], value: Any) -> str:
    """Write a mapping as the first entry of its top-level YAML section. Returns the new config text."""
    lines = [f"{key}: {json.dumps(item)}" for key, item in value.items()]
    if NAMED_ITEM_KEY in path:
        block = "  - " + "\n    ".join(lines) + "\n"
    else:
        block = f"  {path[-1]}:\n    " + "\n    ".join(lines) + "\n"
    return replace_value_text(text, path, block)


def remove_value(text: str, path: Sequence[str]) -> str:
    """Remove the mapping at a path of keys from YAML text, and its section if that becomes empty.

    Returns the new config text.
    """
    found = _entry_pattern(path).search(text)
    return text if found is None else _without_match(text, found, path[0])


def missing_list_items(text: str, path: Sequence[str], items: Sequence[str]) -> list[str]:
    """The items that are missing from the YAML list at a path of keys."""
    return [item for item in items if _list_item_pattern(path[0], item).search(text) is None]


def add_list_items(text: str, path: Sequence[str], items: Sequence[str]) -> str:
    """Prepend items to the YAML list at a path of keys. Returns the new config text."""
    there = re.search(rf"^{re.escape(path[0])}:[ \t]*\n([ \t]*)- ", text, re.MULTILINE)
    indent = there[1] if there else "  "
    return _with_inserted_block(text, path[0], "".join(f"{indent}- {item}\n" for item in items))


def remove_list_items(text: str, path: Sequence[str], items: Sequence[str]) -> str:
    """Remove items from the YAML list at a path of keys. Returns the new config text."""
    for item in items:
        found = _list_item_pattern(path[0], item).search(text)
        if found is not None:
            text = _without_match(text, found, path[0])
    return text


def _entry_pattern(path: Sequence[str]) -> re.Pattern[str]:
    name = re.escape(path[-1])
    if NAMED_ITEM_KEY in path:
        first, more = rf"  - name:[ \t]*[\"']?{name}[\"']?[ \t]*\n", r"(?:    [^\n]*(?:\n|\Z))*"
    else:
        first, more = rf"  {name}:[ \t]*\n", r"(?:   [^\n]*(?:\n|\Z))*"
    return re.compile(_section_start_regex(path[0]) + first + more, re.MULTILINE)


def _list_item_pattern(section: str, item: str) -> re.Pattern[str]:
    return re.compile(
        rf"{_section_start_regex(section)}[ \t]*- [\"']?{re.escape(item)}[\"']?[ \t]*(?:\n|\Z)",
        re.MULTILINE,
    )


def _section_start_regex(section: str) -> str:
    """A regex that matches a YAML section's heading, and its lines up to the entry being searched for."""
    return rf"(^{re.escape(section)}:[ \t]*\n(?:[ \t]+[^\n]*\n|[ \t]*- [^\n]*\n|[ \t]*#[^\n]*\n|\n)*?)"


def _with_inserted_block(text: str, section: str, block: str) -> str:
    head = re.search(rf"^{re.escape(section)}:[ \t]*(?:\{{\}}|\[\])?[ \t]*(?:\n|\Z)", text, re.MULTILINE)
    if head is not None:
        return f"{text[: head.start()]}{section}:\n{block}{text[head.end() :]}"
    if re.search(rf"^[\"']?{re.escape(section)}[\"']?[ \t]*:", text, re.MULTILINE):
        raise UsageError(f"The configuration has `{section}` in a form that can't be changed safely.")
    gap = "" if not text or text.endswith("\n") else "\n"
    return f"{text}{gap}{section}:\n{block}"


def _without_match(text: str, found: re.Match[str], section: str) -> str:
    head, rest = found[1], text[found.end() :]
    alone = head.strip() == f"{section}:" and not re.match(r"[ \t]|- ", rest)
    return text[: found.start()] + ("" if alone else head) + rest
