"""What `install` changed on this machine: kept, so that `uninstall` puts every file back as it was."""

import hashlib
import json
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from handtools.mcp.clients.edits import AppliedEdit, Shape, revert
from handtools.text.comparing import common_prefix, common_suffix

FILE = "clients.json"


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
            after_digest=_digest(after), start=start, old=old[start : len(old) - end], end=end,
            edits=tuple(edits),
        )  # fmt: skip

    def restored(self, shape: Shape, text: str) -> str | None:
        """The file as it was before, byte for byte where nobody changed it since; None where there was none."""
        if _digest(text) == self.after_digest:
            before = text[: self.start] + self.old + text[len(text) - self.end :]
            return before if self.existed else None
        left = revert(shape, text, self.edits)
        return None if not self.existed and left.strip() in {"", "{}"} else left


class InstallRecord:
    """The changed files of one person, by path."""

    def __init__(self, folder: Path) -> None:
        self._file = folder / FILE
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
        beside = self._file.with_name(f".{FILE}.new")
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


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
