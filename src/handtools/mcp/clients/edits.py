"""Edits of a client's configuration: applied with a note of what was there, and taken back by that note."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

from handtools.mcp.clients import jsonc, toml, yaml

Shape = Literal["json", "toml", "yaml"]


@dataclass(frozen=True, slots=True)
class ServerEntry:
    """The entry of our server: ours as a whole, whatever people changed in it."""

    keys: tuple[str, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class Setting:
    """One value of the client's own."""

    keys: tuple[str, ...]
    value: str | bool


@dataclass(frozen=True, slots=True)
class ListItems:
    """Words in a list that may hold other people's words, too."""

    keys: tuple[str, ...]
    items: tuple[str, ...]


Edit = ServerEntry | Setting | ListItems


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedEdit:
    """An edit that is in place, and what it takes to undo it."""

    kind: Literal["entry", "setting", "items"]
    keys: tuple[str, ...]
    before: str | None = None
    """What was there, as it was written; None for nothing."""
    ours: str | None = None
    """What we wrote: a setting that says something else by now was changed by a person, and stays."""
    items: tuple[str, ...] = ()
    """The words that were not there before."""


class Format(Protocol):
    """How a shape of file is read and changed in place."""

    def find(self, text: str, path: Sequence[str]) -> str | None: ...
    def replace(self, text: str, path: Sequence[str], written: str) -> str: ...
    def put(self, text: str, path: Sequence[str], value: Any) -> str: ...
    def drop(self, text: str, path: Sequence[str]) -> str: ...


class ListFormat(Format, Protocol):
    """The same, where lists of words can be changed, too."""

    def missing(self, text: str, path: Sequence[str], items: Sequence[str]) -> list[str]: ...
    def add(self, text: str, path: Sequence[str], items: Sequence[str]) -> str: ...
    def remove(self, text: str, path: Sequence[str], items: Sequence[str]) -> str: ...


FORMATS: dict[Shape, Format] = {"json": jsonc, "toml": toml, "yaml": yaml}
LISTS: dict[Shape, ListFormat] = {"json": jsonc, "yaml": yaml}


def apply(shape: Shape, text: str, edits: Sequence[Edit]) -> tuple[str, list[AppliedEdit]]:
    """The text with the edits, and how to take each one back."""
    form = FORMATS[shape]
    applied: list[AppliedEdit] = []

    def changed(plain: str) -> str:
        for edit in edits:
            before = form.find(plain, edit.keys)
            if isinstance(edit, ListItems):
                items = LISTS[shape].missing(plain, edit.keys, edit.items)
                plain = LISTS[shape].add(plain, edit.keys, items) if items else plain
                applied.append(AppliedEdit(kind="items", keys=edit.keys, before=before, items=tuple(items)))
                continue
            plain = form.put(plain, edit.keys, edit.value)
            kind: Literal["entry", "setting"] = "entry" if isinstance(edit, ServerEntry) else "setting"
            ours = form.find(plain, edit.keys)
            applied.append(AppliedEdit(kind=kind, keys=edit.keys, before=before, ours=ours))
        return plain

    return _as_lines(text, changed), applied


def revert(shape: Shape, text: str, applied: Sequence[AppliedEdit]) -> str:
    """The text without the edits; what people wrote meanwhile stays."""
    form = FORMATS[shape]

    def changed(plain: str) -> str:
        for edit in reversed(applied):
            there = form.find(plain, edit.keys)
            if edit.kind == "items":
                plain = _without_items(LISTS[shape], plain, edit)
            elif there is None or (edit.kind == "setting" and there != edit.ours):
                continue
            elif edit.before is None:
                plain = form.drop(plain, edit.keys)
            else:
                plain = form.replace(plain, edit.keys, edit.before)
        return plain

    return _as_lines(text, changed)


def written_at(shape: Shape, text: str, keys: Sequence[str]) -> str | None:
    """What is at `keys`, as it is written."""
    return FORMATS[shape].find(_plain(text), keys)


def in_place(shape: Shape, text: str, edits: Sequence[Edit]) -> list[AppliedEdit]:
    """Those of the edits that the text has, where nobody noted what was there before them."""
    form, plain = FORMATS[shape], _plain(text)
    found: list[AppliedEdit] = []
    for edit in edits:
        there = form.find(plain, edit.keys)
        if isinstance(edit, ListItems):
            lacking = LISTS[shape].missing(plain, edit.keys, edit.items)
            items = tuple(item for item in edit.items if item not in lacking)
            if items:
                found.append(AppliedEdit(kind="items", keys=edit.keys, items=items))
        elif isinstance(edit, ServerEntry):
            if there is not None:
                found.append(AppliedEdit(kind="entry", keys=edit.keys))
        elif there is not None and there == form.find(form.put("", edit.keys, edit.value), edit.keys):
            found.append(AppliedEdit(kind="setting", keys=edit.keys, ours=there))
    return found


def _without_items(form: ListFormat, text: str, edit: AppliedEdit) -> str:
    left = form.remove(text, edit.keys, edit.items)
    there = form.find(left, edit.keys)
    # A list that we made goes when nothing else is in it.
    if edit.before is None and there is not None and not there.strip("[] \n"):
        return form.drop(left, edit.keys)
    return left


def _plain(text: str) -> str:
    return text.replace("\r\n", "\n").removeprefix("\ufeff")


def _as_lines(text: str, change: Callable[[str], str]) -> str:
    """Change a text as if its lines ended in a line feed and no mark stood before them."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    returns = "\r\n" in text and text.count("\r\n") == text.count("\n")
    plain = text.removeprefix(mark)
    changed = change(plain.replace("\r\n", "\n") if returns else plain)
    return mark + (changed.replace("\n", "\r\n") if returns else changed)
