"""Diffs: unified diffs, with or without the extended headers of git."""

import re
from dataclasses import dataclass, field

from handtools.text.patching.forms import FilePatch, Hunk, Malformed, Row
from handtools.text.patching.naming import NOWHERE, stripped, titled, unquoted
from handtools.text.patching.ranges import Range, range_of

_TITLE = "diff --git "
_NO_END = "\\"
_LINK_MODE = "120000"
_INDEX = re.compile(r"index [0-9a-f]+\.\.[0-9a-f]+ (\d{6})\s*")
_MODE = re.compile(r"(old mode|new mode|new file mode|deleted file mode) (\d{6})\s*")
_PLACE = re.compile(r"(rename|copy) (from|to) (.+)")
_BINARY = re.compile(r"GIT binary patch|Binary files .* differ")
_FILE_MODES = {"100644": False, "100755": True}


def read(rows: list[str]) -> list[FilePatch]:
    """Read every file of the diff; prose before the first is left out."""
    reader = _Reader(rows)
    files = []
    while (file := reader.file()) is not None:
        files.append(file)
    return files


@dataclass(slots=True)
class _Header:
    """What stands before the hunks of a file."""

    number: int
    old: str | None = None
    new: str | None = None
    modes: dict[str, str] = field(default_factory=dict)
    moved: dict[str, str] = field(default_factory=dict)
    copied: bool = False


@dataclass(slots=True)
class _Reader:
    rows: list[str]
    at: int = 0

    def file(self) -> FilePatch | None:
        """The next file; None at the end."""
        while self.at < len(self.rows) and not self._starts_file():
            if self.rows[self.at].startswith("@@ "):
                raise Malformed(
                    self.at + 1, "a hunk without a file: put `--- a/path` and `+++ b/path` before it."
                )
            self.at += 1
        if self.at >= len(self.rows):
            return None
        header = self._header()
        hunks = []
        while self._row().startswith("@@"):
            hunks.append(self._hunk())
        return _file(header, tuple(hunks))

    def _row(self) -> str:
        return self.rows[self.at] if self.at < len(self.rows) else ""

    def _starts_file(self) -> bool:
        row = self.rows[self.at]
        following = self.rows[self.at + 1] if self.at + 1 < len(self.rows) else ""
        return row.startswith(_TITLE) or (row.startswith("--- ") and following.startswith("+++ "))

    def _header(self) -> _Header:
        header = _Header(self.at + 1)
        if self._row().startswith(_TITLE):
            header.old, header.new = titled(self._row().removeprefix(_TITLE).rstrip("\r")) or (None, None)
            self.at += 1
        while self.at < len(self.rows) and not self._row().startswith(("@@", _TITLE)):
            row = self._row()
            if row.startswith("--- ") and self._starts_file():
                header.old, header.new = stripped(unquoted(row[4:]), unquoted(self.rows[self.at + 1][4:]))
                self.at += 2
                break
            if match := _MODE.fullmatch(row):
                header.modes[match[1]] = match[2]
            elif match := _INDEX.fullmatch(row):
                header.modes["index"] = match[1]
            elif match := _PLACE.fullmatch(row):
                header.moved[match[2]] = unquoted(match[3])
                header.copied = match[1] == "copy"
            elif _BINARY.match(row):
                raise Malformed(
                    self.at + 1, f"{header.new} is changed as a binary file; only text can be patched."
                )
            self.at += 1
        return header

    def _hunk(self) -> Hunk:
        number, span = self.at + 1, range_of(self._row())
        title = self._row()
        self.at += 1
        rows = None if span is None else self._counted(span)
        if rows is None:
            rows = self._signed()
        if not rows:
            raise Malformed(number, "a hunk without lines.")
        if span is None:
            scope = title.strip("@ \t\r.")
            return Hunk(tuple(rows), scopes=(scope,) if scope else ())
        return Hunk(tuple(rows), span.old_start)

    def _counted(self, span: Range) -> list[Row] | None:
        """The rows that the header counts; None where it counts wrongly, which models often do."""
        old, new, at = span.old_size, span.new_size, self.at
        rows: list[Row] = []
        while at < len(self.rows) and (old > 0 or new > 0 or self.rows[at].startswith(_NO_END)):
            row = self.rows[at]
            at += 1
            if row.startswith(_NO_END) and rows:
                rows[-1] = rows[-1]._replace(ended=False)
                continue
            if (read := _signed_row(row)) is None:
                return None
            rows.append(read)
            old -= read.sign != "+"
            new -= read.sign != "-"
        more = self.rows[at] if at < len(self.rows) else ""
        goes_on = more[:1] in (" ", "+", "-") and more.strip() and not self._starts_at(at)
        if old or new or goes_on:
            return None
        self.at = at
        return rows

    def _starts_at(self, at: int) -> bool:
        rest = self.rows[at : at + 2]
        return len(rest) == 2 and rest[0].startswith("--- ") and rest[1].startswith("+++ ")

    def _signed(self) -> list[Row]:
        """The rows that look like a hunk's, up to the next header."""
        rows: list[Row] = []
        while self.at < len(self.rows) and not self._starts_file():
            row = self._row()
            if row.startswith(_NO_END) and rows:
                rows[-1] = rows[-1]._replace(ended=False)
            elif (read := _signed_row(row)) is not None:
                rows.append(read)
            elif row.startswith("@@"):
                break
            else:
                raise Malformed(
                    self.at + 1, f"a line of a hunk begins with ` `, `-` or `+`, not {row[:60]!r}."
                )
            self.at += 1
        while rows and rows[-1] == (" ", "", True):
            rows.pop()
        return rows


def _signed_row(row: str) -> Row | None:
    """A row of a hunk; a blank line whose sign got lost is a kept one."""
    if row[:1] in (" ", "-", "+"):
        return Row(row[0], row[1:])  # type: ignore[arg-type]
    return Row(" ", row) if not row.strip() else None


def _file(header: _Header, hunks: tuple[Hunk, ...]) -> FilePatch:
    old = header.moved.get("from", header.old)
    new = header.moved.get("to", header.new)
    if old is None or new is None:
        raise Malformed(header.number, "the names after `diff --git` can't be told apart.")
    odd = [mode for mode in header.modes.values() if mode not in _FILE_MODES]
    if odd:
        what = "a symbolic link" if odd[0] == _LINK_MODE else f"no regular file (mode {odd[0]})"
        name = old if new == NOWHERE else new
        raise Malformed(
            header.number, f"{name} is {what}; only files can be patched. Use a command such as ln or rm."
        )
    made, gone = header.modes.get("new file mode"), header.modes.get("deleted file mode")
    if made or old == NOWHERE:
        return FilePatch(
            action="add", path=new, hunks=hunks, executable=_FILE_MODES.get(made or "") or None
        )
    if gone or new == NOWHERE:
        was = _FILE_MODES.get(gone or "") or None
        return FilePatch(action="delete", path=old, hunks=hunks, was_executable=was)
    return FilePatch(
        action="update",
        path=new,
        origin=None if old == new else old,
        keeps_origin=header.copied,
        hunks=hunks,
        executable=_FILE_MODES.get(header.modes.get("new mode", "")),
        was_executable=_FILE_MODES.get(header.modes.get("old mode", "")),
    )
