"""Edits of a client's configuration: applied with a note of what was there, kept on record.

And taken back by that note.
"""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from handtools.mcp.clients import jsonc_edit, toml_edit, yaml_edit
from handtools.text.diffs.alignment import common_prefix, common_suffix

ConfigFormat = Literal["json", "toml", "yaml"]


@dataclass(frozen=True, slots=True)
class ServerEntryEdit:
    """The entry of our server: ours as a whole, whatever people changed in it."""

    keys: tuple[str, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class SettingEdit:
    """One value of the client's own."""

    keys: tuple[str, ...]
    value: str | bool


@dataclass(frozen=True, slots=True)
class ListItemsEdit:
    """Words in a list that may hold other people's words, too."""

    keys: tuple[str, ...]
    items: tuple[str, ...]


ConfigEdit = ServerEntryEdit | SettingEdit | ListItemsEdit


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


class ConfigEditor(Protocol):
    """How a shape of file is read and changed in place."""

    def find(self, text: str, path: Sequence[str]) -> str | None: ...
    def replace(self, text: str, path: Sequence[str], written: str) -> str: ...
    def put(self, text: str, path: Sequence[str], value: Any) -> str: ...
    def drop(self, text: str, path: Sequence[str]) -> str: ...


class ListConfigEditor(ConfigEditor, Protocol):
    """The same, where lists of words can be changed, too."""

    def missing(self, text: str, path: Sequence[str], items: Sequence[str]) -> list[str]: ...
    def add(self, text: str, path: Sequence[str], items: Sequence[str]) -> str: ...
    def remove(self, text: str, path: Sequence[str], items: Sequence[str]) -> str: ...


CONFIG_EDITORS: dict[ConfigFormat, ConfigEditor] = {
    "json": jsonc_edit,
    "toml": toml_edit,
    "yaml": yaml_edit,
}
LIST_EDITORS: dict[ConfigFormat, ListConfigEditor] = {"json": jsonc_edit, "yaml": yaml_edit}


def apply_edits(
    shape: ConfigFormat, text: str, edits: Sequence[ConfigEdit]
) -> tuple[str, list[AppliedEdit]]:
    """The text with the edits, and how to take each one back."""
    form = CONFIG_EDITORS[shape]
    applied: list[AppliedEdit] = []

    def changed(plain: str) -> str:
        for edit in edits:
            before = form.find(plain, edit.keys)
            if isinstance(edit, ListItemsEdit):
                items = LIST_EDITORS[shape].missing(plain, edit.keys, edit.items)
                plain = LIST_EDITORS[shape].add(plain, edit.keys, items) if items else plain
                applied.append(AppliedEdit(kind="items", keys=edit.keys, before=before, items=tuple(items)))
                continue
            plain = form.put(plain, edit.keys, edit.value)
            kind: Literal["entry", "setting"] = "entry" if isinstance(edit, ServerEntryEdit) else "setting"
            ours = form.find(plain, edit.keys)
            applied.append(AppliedEdit(kind=kind, keys=edit.keys, before=before, ours=ours))
        return plain

    return _change_plain_lines(text, changed), applied


def revert_edits(shape: ConfigFormat, text: str, applied: Sequence[AppliedEdit]) -> str:
    """The text without the edits; what people wrote meanwhile stays."""
    form = CONFIG_EDITORS[shape]

    def changed(plain: str) -> str:
        for edit in reversed(applied):
            there = form.find(plain, edit.keys)
            if edit.kind == "items":
                plain = _without_items(LIST_EDITORS[shape], plain, edit)
            elif there is None or (edit.kind == "setting" and there != edit.ours):
                continue
            elif edit.before is None:
                plain = form.drop(plain, edit.keys)
            else:
                plain = form.replace(plain, edit.keys, edit.before)
        return plain

    return _change_plain_lines(text, changed)


def written_at(shape: ConfigFormat, text: str, keys: Sequence[str]) -> str | None:
    """What is at `keys`, as it is written."""
    return CONFIG_EDITORS[shape].find(_plain_lines(text), keys)


def edits_in_place(shape: ConfigFormat, text: str, edits: Sequence[ConfigEdit]) -> list[AppliedEdit]:
    """Those of the edits that the text has, where nobody noted what was there before them."""
    form, plain = CONFIG_EDITORS[shape], _plain_lines(text)
    found: list[AppliedEdit] = []
    for edit in edits:
        there = form.find(plain, edit.keys)
        if isinstance(edit, ListItemsEdit):
            lacking = LIST_EDITORS[shape].missing(plain, edit.keys, edit.items)
            items = tuple(item for item in edit.items if item not in lacking)
            if items:
                found.append(AppliedEdit(kind="items", keys=edit.keys, items=items))
        elif isinstance(edit, ServerEntryEdit):
            if there is not None:
                found.append(AppliedEdit(kind="entry", keys=edit.keys))
        elif there is not None and there == form.find(form.put("", edit.keys, edit.value), edit.keys):
            found.append(AppliedEdit(kind="setting", keys=edit.keys, ours=there))
    return found


def _without_items(form: ListConfigEditor, text: str, edit: AppliedEdit) -> str:
    left = form.remove(text, edit.keys, edit.items)
    there = form.find(left, edit.keys)
    # A list that we made goes when nothing else is in it.
    if edit.before is None and there is not None and not there.strip("[] \n"):
        return form.drop(left, edit.keys)
    return left


def _plain_lines(text: str) -> str:
    return text.replace("\r\n", "\n").removeprefix("\ufeff")


def _change_plain_lines(text: str, change: Callable[[str], str]) -> str:
    """Change a text as if its lines ended in a line feed and no mark stood before them."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    returns = "\r\n" in text and text.count("\r\n") == text.count("\n")
    plain = text.removeprefix(mark)
    changed = change(plain.replace("\r\n", "\n") if returns else plain)
    return mark + (changed.replace("\n", "\r\n") if returns else changed)


INSTALL_RECORD_NAME = "clients.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledFile:
    """One file that was changed, and how it was before: the part that differs, not a copy of people's settings."""

    workspace: str
    existed: bool
    made_folder: bool
    after_digest: str
    start: int
    old: str
    end: int
    edits: tuple[AppliedEdit, ...]

    @classmethod
    def of(
        cls,
        workspace: Path,
        before: str | None,
        after: str,
        edits: Sequence[AppliedEdit],
        *,
        made_folder: bool,
    ) -> "InstalledFile":
        """Note a change."""
        old = before or ""
        start = common_prefix(old, after)
        end = common_suffix(old[start:], after[start:])
        return cls(
            workspace=str(workspace), existed=before is not None, made_folder=made_folder,
            after_digest=_text_digest(after), start=start, old=old[start : len(old) - end], end=end,
            edits=tuple(edits),
        )  # fmt: skip

    def restored(self, shape: ConfigFormat, text: str) -> str | None:
        """The file as it was before, byte for byte where nobody changed it since; None where there was none."""
        if _text_digest(text) == self.after_digest:
            before = text[: self.start] + self.old + text[len(text) - self.end :]
            return before if self.existed else None
        left = revert_edits(shape, text, self.edits)
        return None if not self.existed and left.strip() in {"", "{}"} else left


class InstallRecord:
    """The changed files of one person, by path."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / INSTALL_RECORD_NAME
        self._files = self._read()

    def find(self, file: Path) -> InstalledFile | None:
        """What was changed in a file."""
        found = self._files.get(str(file))
        if found is None:
            return None
        edits = tuple(
            AppliedEdit(**{**edit, "keys": tuple(edit["keys"]), "items": tuple(edit["items"])})
            for edit in found["edits"]
        )
        return InstalledFile(**{**found, "edits": edits})

    def keep(self, file: Path, installed: InstalledFile | None) -> None:
        """Remember a file, or forget it."""
        self._files.pop(str(file), None)
        if installed is not None:
            self._files[str(file)] = asdict(installed)
        self._file.parent.mkdir(0o700, parents=True, exist_ok=True)
        beside = self._file.with_name(f".{INSTALL_RECORD_NAME}.new")
        beside.unlink(missing_ok=True)
        with open(
            os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8"
        ) as out:
            json.dump(self._files, out, indent=1)
        beside.replace(self._file)

    def _read(self) -> dict[str, Any]:
        try:
            found: dict[str, Any] = json.loads(self._file.read_bytes())
        except (OSError, ValueError):
            # Without it `uninstall` still takes out what is ours; it only can't tell what was there before.
            return {}
        return found


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
