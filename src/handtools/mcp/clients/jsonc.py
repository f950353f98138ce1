"""JSON with comments, changed in place: everything that is not ours stays as it was, byte for byte."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from handtools.core.errors import UsageError

_SKIP = re.compile(r"(?:\s+|//[^\n]*|/\*.*?\*/)*", re.DOTALL)
_STRING = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)
_PLAIN = re.compile(r"[^\s,\]}/]+")


@dataclass(frozen=True, slots=True)
class Member:
    """One member of an object: from the first quote of its key to the end of its value."""

    key: str
    start: int
    value: int
    end: int


@dataclass(frozen=True, slots=True)
class Braces:
    """An object in the text: its braces and its members."""

    start: int
    end: int
    members: tuple[Member, ...]


def put(text: str, path: Sequence[str], value: Any) -> str:
    """The text with `value` at `path`; objects on the way are made where they are missing."""
    if not text.strip():
        text = "{}\n"
    outer = _object(text, _skip(text, 0))
    for depth, key in enumerate(path):
        found = next((member for member in outer.members if member.key == key), None)
        last = depth == len(path) - 1
        if found is None:
            for missing in reversed(path[depth + 1 :]):
                value = {missing: value}
            return _inserted(text, outer, key, value, depth + 1)
        if last:
            return text[: found.value] + _written(value, depth + 1) + text[found.end :]
        outer = _object(text, found.value)
    return text


def drop(text: str, path: Sequence[str]) -> str:
    """The text without what is at `path`; as it is when nothing is there. Objects that this empties go too."""
    if not text.strip():
        return text
    chain = [_object(text, _skip(text, 0))]
    members: list[Member] = []
    for key in path:
        found = next((member for member in chain[-1].members if member.key == key), None)
        if found is None:
            return text
        members.append(found)
        if len(members) < len(path):
            chain.append(_object(text, found.value))
    while len(members) > 1 and len(chain[-1].members) == 1:
        members.pop()
        chain.pop()
    return _removed(text, chain[-1], members[-1])


def _inserted(text: str, outer: Braces, key: str, value: Any, depth: int) -> str:
    """As the first member, with its comma: taking it out again then leaves the text as it was."""
    entry = f"\n{'  ' * depth}{json.dumps(key)}: {_written(value, depth)}"
    place = outer.start + 1
    if outer.members:
        return f"{text[:place]}{entry},{text[place:]}"
    inside = text[place : outer.end]
    return f"{text[:place]}{entry}{inside if inside.strip() else chr(10) + '  ' * (depth - 1)}{text[outer.end :]}"


def _removed(text: str, outer: Braces, member: Member) -> str:
    index, end = outer.members.index(member), member.end
    line = text.rfind("\n", 0, member.start)
    start = line if line > outer.start and not text[line : member.start].strip() else member.start
    after = _skip(text, end)
    if text[after] == ",":
        return text[:start] + text[after + 1 :]
    if index:
        comma = _skip(text, outer.members[index - 1].end)
        return text[:comma] + text[comma + 1 : start] + text[end:]
    inside = text[outer.start + 1 : start] + text[end : outer.end]
    return text[: outer.start + 1] + (inside if inside.strip() else "") + text[outer.end :]


def _written(value: Any, depth: int) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False).replace("\n", "\n" + "  " * depth)


def _object(text: str, at: int) -> Braces:
    if at >= len(text) or text[at] != "{":
        raise UsageError("The configuration has something else where an object should be.")
    members: list[Member] = []
    here = _skip(text, at + 1)
    while here < len(text) and text[here] != "}":
        string = _STRING.match(text, here)
        if string is None:
            raise UsageError("The configuration is no JSON that can be changed safely.")
        colon = _skip(text, string.end())
        if text[colon : colon + 1] != ":":
            raise UsageError("The configuration is no JSON that can be changed safely.")
        value = _skip(text, colon + 1)
        end = _end(text, value)
        members.append(Member(json.loads(string[0]), here, value, end))
        here = _skip(text, end)
        if text[here : here + 1] == ",":
            here = _skip(text, here + 1)
    if here >= len(text):
        raise UsageError("The configuration ends in the middle.")
    return Braces(at, here, tuple(members))


def _end(text: str, at: int) -> int:
    """The end of the value that begins here."""
    if text[at : at + 1] == "{":
        return _object(text, at).end + 1
    if text[at : at + 1] == "[":
        here = _skip(text, at + 1)
        while here < len(text) and text[here] != "]":
            here = _skip(text, _end(text, here))
            if text[here : here + 1] == ",":
                here = _skip(text, here + 1)
        return here + 1
    found = _STRING.match(text, at) or _PLAIN.match(text, at)
    if found is None:
        raise UsageError("The configuration is no JSON that can be changed safely.")
    return found.end()


def _skip(text: str, at: int) -> int:
    found = _SKIP.match(text, at)
    return found.end() if found else at
