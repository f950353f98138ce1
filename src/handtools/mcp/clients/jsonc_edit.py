"""Edit JSON with comments as text: get, set and remove values and list items, leaving the rest as is."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from handtools.core.errors import UsageError

_SPACE_OR_COMMENT = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PLAIN = re.compile(r"[^\s,\]}/]+")
_MAX_DEPTH = 100
"""Maximum nesting depth of objects and lists. No client's settings come close to it."""


@dataclass(frozen=True, slots=True)
class JsonMemberSpan:
    """Offsets of an object member in the JSON text: start of its key, start and end of its value."""

    key: str
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class JsonObjectSpan:
    """Offsets of a JSON object in the text: its opening and closing brace, and its members."""

    start: int
    end: int
    members: tuple[JsonMemberSpan, ...]


def find_value_text(text: str, path: Sequence[str]) -> str | None:
    """The JSON source text of the value at a path of keys; None if there is none."""
    member = _member(text, path)
    return None if member is None else text[member.value : member.end]


def replace_value_text(text: str, path: Sequence[str], written: str) -> str:
    """Set the value at a path of keys to the given JSON source text. Returns the new config text."""
    if _member(text, path) is None:
        text = set_value(text, path, None)
    member = _member(text, path)
    assert member is not None
    return text[: member.value] + written + text[member.end :]


def missing_list_items(text: str, path: Sequence[str], items: Sequence[str]) -> list[str]:
    """The items that are missing from the JSON list at a path of keys."""
    member = _member(text, path)
    there = (
        [] if member is None else [_parse_json(text[start:end]) for start, end in _item_spans(text, member)]
    )
    return [item for item in items if item not in there]


def add_list_items(text: str, path: Sequence[str], items: Sequence[str]) -> str:
    """Prepend items to the JSON list at a path of keys, keeping its layout. Returns the new config text."""
    member = _member(text, path)
    if member is None:
        return set_value(text, path, list(items))
    written = [json.dumps(item, ensure_ascii=False) for item in items]
    there, place = _item_spans(text, member), member.value + 1
    if not there:
        inside = text[place : member.end - 1]
        return (
            f"{text[:place]}{', '.join(written)}{inside if inside.strip() else ''}{text[member.end - 1 :]}"
        )
    # Put the whitespace of the present first item before each new one, to keep the list's layout.
    lead = text[place : there[0][0]]
    gap = "" if lead.strip() else lead
    return text[:place] + "".join(f"{gap}{item}," for item in written) + text[place:]


def remove_list_items(text: str, path: Sequence[str], items: Sequence[str]) -> str:
    """Remove items and their commas from the JSON list at a path of keys. Returns the new config text."""
    for item in items:
        member = _member(text, path)
        if member is None:
            return text
        there = _item_spans(text, member)
        at = next((n for n, (start, end) in enumerate(there) if _parse_json(text[start:end]) == item), None)
        if at is None:
            continue
        start, end = there[at]
        after = _skip_blanks_and_comments(text, end)
        if text[after] == ",":
            # Remove the whitespace before the item, too, so that the next item takes its place.
            lead = _space_before(text, start)
            text = text[:lead] + text[after + 1 :]
        elif at:
            comma = _skip_blanks_and_comments(text, there[at - 1][1])
            text = text[:comma] + text[comma + 1 : _space_before(text, start)] + text[end:]
        else:
            text = text[:start].rstrip(" \t\n") + text[end:].lstrip(" \t\n")
    return text


def set_value(text: str, path: Sequence[str], value: Any) -> str:
    """Set a value at a path of keys in JSON text, creating missing objects. Returns the new config text."""
    if not text.strip():
        text = "{}\n"
    outer = _object_span(text, _skip_blanks_and_comments(text, 0))
    for depth, key in enumerate(path):
        found = next((member for member in outer.members if member.key == key), None)
        last = depth == len(path) - 1
        if found is None:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _with_member(text, outer, key, value, depth + 1)
        if last:
            return text[: found.value] + _indented_json(value, depth + 1) + text[found.end :]
        outer = _object_span(text, found.value)
    return text


def remove_value(text: str, path: Sequence[str]) -> str:
    """Remove the member at a path of keys from JSON text, and any objects that become empty.

    Returns the text unchanged if the member does not exist.
    """
    if not text.strip():
        return text
    chain = [_object_span(text, _skip_blanks_and_comments(text, 0))]
    members: list[JsonMemberSpan] = []
    for key in path:
        found = next((member for member in chain[-1].members if member.key == key), None)
        if found is None:
            return text
        members.append(found)
        if len(members) < len(path):
            chain.append(_object_span(text, found.value))
    while len(members) > 1 and len(chain[-1].members) == 1:
        members.pop()
        chain.pop()
    return _without_member(text, chain[-1], members[-1])


def _member(text: str, path: Sequence[str]) -> JsonMemberSpan | None:
    if not text.strip():
        return None
    at, found = _skip_blanks_and_comments(text, 0), None
    for key in path:
        found = next((member for member in _object_span(text, at).members if member.key == key), None)
        if found is None:
            return None
        at = found.value
    return found


def _item_spans(text: str, member: JsonMemberSpan) -> list[tuple[int, int]]:
    """The start and end offsets of each item of a JSON list."""
    if text[member.value] != "[":
        raise UsageError("The configuration has another type of value where a list is expected.")
    items: list[tuple[int, int]] = []
    here = _skip_blanks_and_comments(text, member.value + 1)
    while text[here] != "]":
        end = _value_end(text, here)
        items.append((here, end))
        here = _skip_blanks_and_comments(text, end)
        if text[here] == ",":
            here = _skip_blanks_and_comments(text, here + 1)
    return items


def _space_before(text: str, at: int) -> int:
    while text[at - 1] in " \t\n":
        at -= 1
    return at


def _with_member(text: str, outer_span: JsonObjectSpan, key: str, value: Any, depth: int) -> str:
    """Insert a member as the first of an object, with its comma, so that removing it restores the text."""
    entry = f"\n{'  ' * depth}{json.dumps(key)}: {_indented_json(value, depth)}"
    place = outer_span.start + 1
    if outer_span.members:
        return f"{text[:place]}{entry},{text[place:]}"
    inside = text[place : outer_span.end]
    closing = inside if inside.strip() else "\n" + "  " * (depth - 1)
    return f"{text[:place]}{entry}{closing}{text[outer_span.end :]}"


def _without_member(text: str, outer_span: JsonObjectSpan, member: JsonMemberSpan) -> str:
    index, end = outer_span.members.index(member), member.end
    line = text.rfind("\n", 0, member.start)
    start = line if line > outer_span.start and not text[line : member.start].strip() else member.start
    after = _skip_blanks_and_comments(text, end)
    if text[after] == ",":
        return text[:start] + text[after + 1 :]
    if index:
        comma = _skip_blanks_and_comments(text, outer_span.members[index - 1].end)
        return text[:comma] + text[comma + 1 : start] + text[end:]
    inside = text[outer_span.start + 1 : start] + text[end : outer_span.end]
    return text[: outer_span.start + 1] + (inside if inside.strip() else "") + text[outer_span.end :]


def _indented_json(value: Any, depth: int) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n" + "  " * depth)


def _object_span(text: str, at: int, depth: int = 0) -> JsonObjectSpan:
    if at >= len(text) or text[at] != "{":
        raise UsageError("The configuration has another type of value where an object is expected.")
    members: list[JsonMemberSpan] = []
    here = _skip_blanks_and_comments(text, at + 1)
    while here < len(text) and text[here] != "}":
        string = _STRING.match(text, here)
        if string is None:
            raise UsageError("The configuration is not JSON that can be changed safely.")
        colon = _skip_blanks_and_comments(text, string.end())
        if text[colon : colon + 1] != ":":
            raise UsageError("The configuration is not JSON that can be changed safely.")
        value = _skip_blanks_and_comments(text, colon + 1)
        end = _value_end(text, value, depth + 1)
        members.append(JsonMemberSpan(_parse_json(string[0]), here, value, end))
        here = _skip_blanks_and_comments(text, end)
        if text[here : here + 1] == ",":
            here = _skip_blanks_and_comments(text, here + 1)
    if here >= len(text):
        raise UsageError("The configuration is incomplete: a closing brace is missing.")
    return JsonObjectSpan(at, here, tuple(members))


def _parse_json(written: str) -> Any:
    try:
        return json.loads(written)
    except ValueError as problem:
        raise UsageError("The configuration is not JSON that can be changed safely.") from problem


def _value_end(text: str, at: int, depth: int = 0) -> int:
    """The end offset of the JSON value that starts at an offset."""
    if depth > _MAX_DEPTH:
        raise UsageError("The configuration is nested too deeply to be changed safely.")
    if text[at : at + 1] == "{":
        return _object_span(text, at, depth).end + 1
    if text[at : at + 1] == "[":
        here = _skip_blanks_and_comments(text, at + 1)
        while here < len(text) and text[here] != "]":
            here = _skip_blanks_and_comments(text, _value_end(text, here, depth + 1))
            if text[here : here + 1] == ",":
                here = _skip_blanks_and_comments(text, here + 1)
        return here + 1
    found = _STRING.match(text, at) or _PLAIN.match(text, at)
    if found is None:
        raise UsageError("The configuration is not JSON that can be changed safely.")
    return found.end()


def _skip_blanks_and_comments(text: str, at: int) -> int:
    found = _SPACE_OR_COMMENT.match(text, at)
    return found.end() if found else at
