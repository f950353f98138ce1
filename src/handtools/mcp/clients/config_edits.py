"""Apply edits to a client's config file (JSON, TOML, YAML), record what they replaced, and revert them."""

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal, Protocol

from handtools.mcp.clients import jsonc_edit, toml_edit, yaml_edit
from handtools.text.diffs.alignment import common_prefix_length, common_suffix_length

ConfigFormat = Literal["json", "toml", "yaml"]


@dataclass(frozen=True, slots=True)
class ServerEntryEdit:
    """Config edit: set our MCP server entry. Later it is replaced or removed entirely, even if edited by hand."""

    keys: tuple[str, ...]
    value: Any


@dataclass(frozen=True, slots=True)
class SettingEdit:
    """Config edit: set one of the client's own settings to a value."""

    keys: tuple[str, ...]
    value: str | bool


@dataclass(frozen=True, slots=True)
class ListItemsEdit:
    """Config edit: add items to a list in the config, which may contain other items."""

    keys: tuple[str, ...]
    items: tuple[str, ...]


ConfigEdit = ServerEntryEdit | SettingEdit | ListItemsEdit


@dataclass(frozen=True, slots=True, kw_only=True)
class AppliedEdit:
    """An applied config edit, with the data needed to revert it."""

    kind: Literal["entry", "setting", "items"]
    keys: tuple[str, ...]
    before: str | None = None
    """The source text of the value that the edit replaced; None if there was no value."""
    ours: str | None = None
    """The source text that the edit wrote. If the setting differs now, the user has changed it, and it is kept."""
    items: tuple[str, ...] = ()
    """The list items that the edit added, without those that were already there."""


class ConfigEditor(Protocol):
    """Reads and edits values in the text of one config format, keeping comments and layout."""

    def find_value_text(self, text: str, path: Sequence[str]) -> str | None: ...
    def replace_value_text(self, text: str, path: Sequence[str], written: str) -> str: ...
    def set_value(self, text: str, path: Sequence[str], value: Any) -> str: ...
    def remove_value(self, text: str, path: Sequence[str]) -> str: ...


class ListConfigEditor(ConfigEditor, Protocol):
    """A config editor that can also find, add and remove items of lists."""

    def missing_list_items(self, text: str, path: Sequence[str], items: Sequence[str]) -> list[str]: ...
    def add_list_items(self, text: str, path: Sequence[str], items: Sequence[str]) -> str: ...
    def remove_list_items(self, text: str, path: Sequence[str], items: Sequence[str]) -> str: ...


CONFIG_EDITORS: dict[ConfigFormat, ConfigEditor] = {
    "json": jsonc_edit,
    "toml": toml_edit,
    "yaml": yaml_edit,
}
LIST_EDITORS: dict[ConfigFormat, ListConfigEditor] = {"json": jsonc_edit, "yaml": yaml_edit}


def apply_edits(
    shape: ConfigFormat, text: str, edits: Sequence[ConfigEdit]
) -> tuple[str, list[AppliedEdit]]:
    """Apply edits to a config text. Returns the new text and the data needed to revert each edit."""
    form = CONFIG_EDITORS[shape]
    applied: list[AppliedEdit] = []

    def changed(plain: str) -> str:
        for edit in edits:
            before = form.find_value_text(plain, edit.keys)
            if isinstance(edit, ListItemsEdit):
                items = LIST_EDITORS[shape].missing_list_items(plain, edit.keys, edit.items)
                plain = LIST_EDITORS[shape].add_list_items(plain, edit.keys, items) if items else plain
                applied.append(AppliedEdit(kind="items", keys=edit.keys, before=before, items=tuple(items)))
                continue
            plain = form.set_value(plain, edit.keys, edit.value)
            kind: Literal["entry", "setting"] = "entry" if isinstance(edit, ServerEntryEdit) else "setting"
            ours = form.find_value_text(plain, edit.keys)
            applied.append(AppliedEdit(kind=kind, keys=edit.keys, before=before, ours=ours))
        return plain

    return _change_plain_lines(text, changed), applied


def revert_edits(shape: ConfigFormat, text: str, applied: Sequence[AppliedEdit]) -> str:
    """Revert applied edits in a config text, last one first. Later changes by the user are kept."""
    form = CONFIG_EDITORS[shape]

    def changed(plain: str) -> str:
        for edit in reversed(applied):
            there = form.find_value_text(plain, edit.keys)
            if edit.kind == "items":
                plain = _without_items(LIST_EDITORS[shape], plain, edit)
            elif there is None or (edit.kind == "setting" and there != edit.ours):
                continue
            elif edit.before is None:
                plain = form.remove_value(plain, edit.keys)
            else:
                plain = form.replace_value_text(plain, edit.keys, edit.before)
        return plain

    return _change_plain_lines(text, changed)


def config_value_text(shape: ConfigFormat, text: str, keys: Sequence[str]) -> str | None:
    """The source text of the value under `keys` in a config text; None if there is none."""
    return CONFIG_EDITORS[shape].find_value_text(_plain_lines(text), keys)


def config_edits_present(shape: ConfigFormat, text: str, edits: Sequence[ConfigEdit]) -> list[AppliedEdit]:
    """The edits that a config text already contains, in a form that can be reverted.

    This is for files without an install record.
    """
    form, plain = CONFIG_EDITORS[shape], _plain_lines(text)
    applied_edits: list[AppliedEdit] = []
    for edit in edits:
        there = form.find_value_text(plain, edit.keys)
        if isinstance(edit, ListItemsEdit):
            lacking = LIST_EDITORS[shape].missing_list_items(plain, edit.keys, edit.items)
            items = tuple(item for item in edit.items if item not in lacking)
            if items:
                applied_edits.append(AppliedEdit(kind="items", keys=edit.keys, items=items))
        elif isinstance(edit, ServerEntryEdit):
            if there is not None:
                applied_edits.append(AppliedEdit(kind="entry", keys=edit.keys))
        elif there is not None and there == form.find_value_text(
            form.set_value("", edit.keys, edit.value), edit.keys
        ):
            applied_edits.append(AppliedEdit(kind="setting", keys=edit.keys, ours=there))
    return applied_edits


def _without_items(editor: ListConfigEditor, text: str, edit: AppliedEdit) -> str:
    left = editor.remove_list_items(text, edit.keys, edit.items)
    there = editor.find_value_text(left, edit.keys)
    # Remove a list that we created if it is empty now.
    if edit.before is None and there is not None and not there.strip("[] \n"):
        return editor.remove_value(left, edit.keys)
    return left


def _plain_lines(text: str) -> str:
    return text.replace("\r\n", "\n").removeprefix("\ufeff")


def _change_plain_lines(text: str, change: Callable[[str], str]) -> str:
    """Apply `change` to a text without its CRLF line ends and byte order mark, then restore them."""
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    returns = "\r\n" in text and text.count("\r\n") == text.count("\n")
    plain = text.removeprefix(mark)
    changed = change(plain.replace("\r\n", "\n") if returns else plain)
    return mark + (changed.replace("\n", "\r\n") if returns else changed)


INSTALL_RECORD_NAME = "clients.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstalledFile:
    """How install changed one config file.

    It has only the replaced part of the text, not a copy of the user's settings.
    """

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
        """Describe a change from `before` to `after` by where they differ and the old text there."""
        old = before or ""
        start = common_prefix_length(old, after)
        end = common_suffix_length(old[start:], after[start:])
        return cls(
            workspace=str(workspace), existed=before is not None, made_folder=made_folder,
            after_digest=_text_digest(after), start=start, old=old[start : len(old) - end], end=end,
            edits=tuple(edits),
        )  # fmt: skip

    def restored(self, shape: ConfigFormat, text: str) -> str | None:
        """The config text as it was before the install; None if the file did not exist then.

        Exactly that if the file has not changed since then; otherwise the current text with our edits reverted.
        """
        if _text_digest(text) == self.after_digest:
            before = text[: self.start] + self.old + text[len(text) - self.end :]
            return before if self.existed else None
        left = revert_edits(shape, text, self.edits)
        return None if not self.existed and left.strip() in {"", "{}"} else left


class InstallRecord:
    """The JSON file in the user's state folder that lists the config files that install changed."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / INSTALL_RECORD_NAME
        self._files = self._read()

    def find(self, file: Path) -> InstalledFile | None:
        """The recorded change of a config file; None if install did not change it."""
        found = self._files.get(str(file))
        if found is None:
            return None
        edits = tuple(
            AppliedEdit(**{**edit, "keys": tuple(edit["keys"]), "items": tuple(edit["items"])})
            for edit in found["edits"]
        )
        return InstalledFile(**{**found, "edits": edits})

    def keep(self, file: Path, installed: InstalledFile | None) -> None:
        """Store the change of a config file, or delete the stored one if None, and save the record."""
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
            # Without a record, `uninstall` still removes our entries, but can't restore the values they replaced.
            return {}
        return found


def _text_digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
